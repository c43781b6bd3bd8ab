// How common topics are in classes of documents.

import { element, nameOf } from "./dom.js";
import { formatPercent } from "./numbers.js";
import { labelOf, plural } from "./topics_data.js";

/** Share of the documents of a class that are on a topic. */
function shareIn({ classes }, topic, k) {
  return classes.topics[topic.number][k] / Math.max(classes.total[k], 1);
}

/** Bars of one topic: its share of the documents of every class. */
export function classBars(data, topic) {
  const { names, total } = data.classes;
  const order = [...names.keys()].sort((a, b) => shareIn(data, topic, b) - shareIn(data, topic, a));
  const rows = order.map((k) => {
    const share = shareIn(data, topic, k);
    const bar = element("span", { class: "share" }, element("span", { class: "fill" }));
    bar.style.setProperty("--on", String(share));
    return element(
      "li",
      { title: plural(total[k], "document") },
      nameOf(names[k]),
      bar,
      element("span", { class: "figures" }, formatPercent(share)),
    );
  });
  return element("ul", { class: `words series-${topic.series}` }, rows);
}

/** A table of the broadest topics by classes. */
export function classTable(data, choose) {
  if (!data.classes) return null;
  const { names, total, title } = data.classes;
  const head = names.map((name, k) =>
    element("th", { scope: "col", title: plural(total[k], "document") }, nameOf(name)),
  );
  const rows = data.roots.map((number) => {
    const topic = data.topics[number];
    const press = element("button", { type: "button", class: "link" }, nameOf(labelOf(topic, 2)));
    press.addEventListener("click", () => choose(number));
    const cells = names.map((_, k) => {
      const share = shareIn(data, topic, k);
      const cell = element("td", { class: "figures" }, formatPercent(share));
      cell.style.setProperty("--share", share.toFixed(4));
      return cell;
    });
    return element(
      "tr",
      { class: `series-${topic.series}` },
      element("th", { scope: "row" }, press),
      cells,
    );
  });
  return element(
    "div",
    {},
    element("h3", {}, `Topics by ${title}`),
    element(
      "div",
      { class: "scroll", tabindex: 0 },
      element(
        "table",
        { class: "classes" },
        element("thead", {}, element("tr", {}, element("td", {}), head)),
        element("tbody", {}, rows),
      ),
    ),
    element("p", { class: "quiet" }, "Expected share of the documents of a column on a topic."),
  );
}
