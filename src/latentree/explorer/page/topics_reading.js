// The right side: an overview, a topic with its documents, or what a search found.

import { element, nameOf } from "./dom.js";
import { formatPercent } from "./numbers.js";
import { timeLine } from "./topics_chart.js";
import { classBars, classTable } from "./topics_classes.js";
import { documentsOn, isDoubtful, labelOf, pathTo, plural } from "./topics_data.js";
import { excerpt, finderOf, marked } from "./topics_marks.js";

const AT_ONCE = 10; // documents that are added at a time

/** What the page is, before anything is chosen. */
export function overview(data, choose) {
  const narrow = data.topics.filter((topic) => topic.level === data.levels).length;
  const shown =
    data.documents.length < data.total
      ? ` ${plural(data.documents.length, "document")} are in this page: a sample, and the most typical of each topic.`
      : "";
  return [
    element(
      "p",
      { class: "kind" },
      `${plural(data.total, "document")} · ${plural(narrow, "topic")}`,
    ),
    element("h2", {}, "What the documents are about"),
    element(
      "p",
      {},
      "Topics are words that occur together in documents more often than by chance. Choose one to read its most typical documents.",
      shown,
    ),
    element(
      "div",
      { class: "cards" },
      data.roots.map((number) => card(data, number, choose)),
    ),
    classTable(data, choose),
    element("h3", {}, "What to keep in mind"),
    element(
      "ul",
      { class: "notes" },
      element(
        "li",
        {},
        "A percentage is the expected share of the documents that are on a topic. Narrow topics overlap: a document can be on several or on none.",
      ),
      element(
        "li",
        {},
        "Words do not say what is claimed about them: read documents before you conclude anything.",
      ),
      element(
        "li",
        {},
        "A topic marked as doubtful came back with few of its words from other samples of the documents.",
      ),
    ),
  ];
}

function card(data, number, choose) {
  const topic = data.topics[number];
  return element(
    "button",
    { type: "button", class: `card series-${topic.series}`, click: () => choose(number) },
    element("span", { class: "figures" }, formatPercent(topic.size)),
    nameOf(labelOf(topic, 3), { class: "card-name" }),
    element("span", { class: "quiet" }, topic.words.slice(3, 8).join(" · ")),
  );
}

/** A topic: where it stands, its words, narrower topics, time line and documents. */
export function topicView(data, number, choose, changed) {
  const topic = data.topics[number];
  const finder = finderOf(topic.words);
  const path = pathTo(data, number).slice(0, -1);
  const found = documentsOn(topic);
  return [
    element(
      "p",
      { class: "kind path" },
      path.flatMap((above) => [topicLink(data, above, choose), " › "]),
      `topic ${topic.name}`,
    ),
    titleField(topic, changed),
    element("p", { class: "facts" }, facts(data, topic)),
    largerThanAbove(data, topic),
    isDoubtful(topic)
      ? element(
          "p",
          { class: "warning" },
          "Doubtful: other samples of the documents gave other words.",
        )
      : null,
    element("h3", {}, "Words"),
    wordSection(data, topic),
    data.classes ? element("h3", {}, `By ${data.classes.title}`) : null,
    data.classes ? classBars(data, topic) : null,
    topic.children.length > 0 ? element("h3", {}, "Narrower topics") : null,
    topic.children.length > 0
      ? element(
          "p",
          { class: "chips" },
          topic.children.map((below) => topicLink(data, below, choose, true)),
        )
      : null,
    data.times ? element("h3", {}, "Over time") : null,
    data.times ? timeLine(data.times, topic) : null,
    element(
      "h3",
      {},
      found.length > 0 ? `Most typical of ${plural(found.length, "document")}` : "Documents",
    ),
    found.length > 0
      ? documentList(
          data,
          found.map((each) => each.number),
          finder,
          choose,
        )
      : element("p", { class: "quiet" }, "No document in this page is likely on this topic."),
  ];
}

function facts(data, topic) {
  const about = Math.round(topic.size * data.total);
  const parts = [
    `${formatPercent(topic.size)} of the documents (about ${about.toLocaleString("en")})`,
    `coherence ${topic.coherence.toFixed(2)}`,
  ];
  if (topic.support !== null) parts.push(`${formatPercent(topic.support)} of the words come back`);
  return parts.join(" · ");
}

/** The name of a topic, to be changed in place; empty for its words. */
function titleField(topic, changed) {
  const field = element("input", {
    class: "rename",
    value: labelOf(topic),
    dir: "auto",
    spellcheck: "false",
    "aria-label": "Name of this topic",
    change: () => {
      const title = field.value.trim();
      topic.title = "";
      if (title !== labelOf(topic)) topic.title = title;
      field.value = labelOf(topic);
      changed();
    },
  });
  return element("h2", {}, field);
}

/** Why a narrower topic can be larger than the one above it, where it is. */
function largerThanAbove(data, topic) {
  const above = data.topics[topic.parent];
  if (!above || topic.size <= above.size) return null;
  return element(
    "p",
    { class: "quiet larger" },
    `More documents are on this topic (${formatPercent(topic.size)}) than on `,
    nameOf(labelOf(above)),
    ` above it (${formatPercent(above.size)}): a broad topic is what its narrower ones have in common, not their sum.`,
  );
}

const ORDERS = { common: "Most common", telling: "Most telling" };

/** The words of a topic, the most common or the most telling ones first. */
function wordSection(data, topic) {
  const box = element("div", {});
  const buttons = Object.entries(ORDERS).map(([key, text]) =>
    element(
      "button",
      { type: "button", "data-order": key, title: ORDER_TIPS[key], click: () => fill(key) },
      text,
    ),
  );
  const fill = (order) => {
    data.wordOrder = order;
    for (const button of buttons) {
      button.setAttribute("aria-pressed", String(button.dataset.order === order));
    }
    box.replaceChildren(...words(data, topic, order));
  };
  fill(data.wordOrder ?? "common");
  return element(
    "div",
    {},
    element(
      "div",
      { class: "pair orders", role: "group", "aria-label": "Order of words" },
      buttons,
    ),
    box,
  );
}

const ORDER_TIPS = {
  common: "By the share of documents on the topic that have the word",
  telling: "By how much more common the word is here than in all documents",
};

/** Places of a topic's words in an order. */
function wordOrder(data, topic, order) {
  const places = [...topic.words.keys()];
  const lift = (i) => topic.probabilities[i] / Math.max(data.words[topic.words[i]] ?? 0, 1e-6);
  const key = order === "telling" ? lift : (i) => topic.probabilities[i];
  return places.sort((a, b) => key(b) - key(a) || a - b);
}

/** Bars: how many documents on the topic have the word, with a mark for all documents. */
function words(data, topic, order) {
  const rows = wordOrder(data, topic, order).map((i) => {
    const word = topic.words[i];
    const bar = element(
      "span",
      { class: "share" },
      element("span", { class: "fill" }),
      element("span", { class: "all" }),
    );
    bar.style.setProperty("--on", String(topic.probabilities[i]));
    bar.style.setProperty("--all", String(data.words[word] ?? 0));
    const tip = `${formatPercent(topic.probabilities[i])} of documents on the topic, ${formatPercent(data.words[word] ?? 0)} of all`;
    return element(
      "li",
      { title: tip },
      nameOf(word),
      bar,
      element("span", { class: "figures" }, formatPercent(topic.probabilities[i])),
    );
  });
  return [
    element("ul", { class: `words series-${topic.series}` }, rows),
    element(
      "p",
      { class: "quiet" },
      "Bars: share of documents on the topic that have the word. The line marks its share of all documents.",
    ),
  ];
}

export function topicLink(data, number, choose, sized = false) {
  const topic = data.topics[number];
  return element(
    "button",
    { type: "button", class: `link series-${topic.series}`, click: () => choose(number) },
    nameOf(labelOf(topic)),
    sized ? element("span", { class: "quiet" }, ` ${formatPercent(topic.size)}`) : null,
  );
}

/** Documents with the words marked, some at a time. */
export function documentList(data, numbers, finder, choose) {
  const list = element("ol", { class: "documents" });
  const more = element("button", { type: "button", class: "more" });
  let shown = 0;
  const add = () => {
    const next = numbers.slice(shown, shown + AT_ONCE);
    list.append(...next.map((number) => documentItem(data, number, finder, choose)));
    shown += next.length;
    more.hidden = shown >= numbers.length;
    more.textContent = `Show more (${plural(numbers.length - shown, "document")} left)`;
  };
  more.addEventListener("click", add);
  add();
  return element("div", {}, list, more);
}

function documentItem(data, number, finder, choose) {
  const each = data.documents[number];
  const body = element("div", { class: "text", dir: "auto" });
  const item = element("li", { class: "document", id: `document-${number}` });
  const open = element(
    "button",
    { type: "button", class: "more", "aria-expanded": "false" },
    "Read all",
  );
  const on = element("p", { class: "chips", hidden: true });
  const short = excerpt(each.text, finder);
  body.append(...marked(short, finder));
  open.addEventListener("click", () => {
    const opened = open.getAttribute("aria-expanded") === "true";
    open.setAttribute("aria-expanded", String(!opened));
    open.textContent = opened ? "Read all" : "Read less";
    body.replaceChildren(...marked(opened ? short : each.text, finder));
    on.hidden = opened;
    if (on.childElementCount === 0) on.append(...documentTopics(data, each, choose));
  });
  item.append(
    element("p", { class: "quiet source" }, nameOf(each.name), each.date ? ` · ${each.date}` : ""),
    body,
    on,
    open,
  );
  return item;
}

function documentTopics(data, each, choose) {
  const narrow = each.on.filter(
    ([topic, percent]) => percent >= 50 && data.topics[topic].level === data.levels,
  );
  if (narrow.length === 0) return [element("span", { class: "quiet" }, "On no narrow topic.")];
  return narrow.map(([topic]) => topicLink(data, topic, choose));
}
