// The topics as a tree: broad ones to the left, narrow ones to the right.

import { element, svgElement } from "./dom.js";
import { formatPercent } from "./numbers.js";
import { labelOf } from "./topics_data.js";

const ROW = 23; // pixels of a narrow topic
const COLUMN = 158; // from level to level
const LABEL = 250; // for the words of the narrowest topics
const SIDES = 36; // of the box around the tree
const LETTER = 6.7; // mean width of a letter: branches begin after the words
const BOLD = 1.1; // how much wider those of the broadest topics are
const LARGEST = 10; // radius of the largest topic

/** Draw the tree; returns a function that marks the selected topic. */
export function createTree(box, data, choose) {
  const place = layOut(data);
  const height = (place.rows + 1) * ROW;
  const before = LARGEST * 2 + COLUMN * (data.levels - 1);
  const width = Math.max(before + LABEL, box.parentElement.clientWidth - SIDES);
  const letters = Math.floor((width - before - LARGEST - 5) / LETTER);
  const picture = svgElement("svg", {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: "group",
    "aria-label": "The topics as a tree",
  });
  const largest = Math.max(...data.topics.map((topic) => topic.size));
  for (const topic of data.topics) {
    if (topic.parent >= 0) picture.append(branch(place, topic, data.topics[topic.parent]));
  }
  const nodes = data.topics.map((topic) =>
    node(place, topic, largest, data.levels, letters, choose),
  );
  picture.append(...nodes);
  box.append(element("div", { class: "scroll" }, picture));
  return (number) => {
    nodes.forEach((each, other) => {
      each.classList.toggle("chosen", other === number);
    });
    if (number >= 0) nodes[number].scrollIntoView({ block: "nearest", inline: "nearest" });
  };
}

/** A row for each topic without narrower ones; others are in the middle of theirs. */
function layOut(data) {
  const y = new Array(data.topics.length).fill(0);
  let rows = 0;
  // Topics come in the order of the outline: backwards, those below come before those above.
  for (const topic of data.topics) {
    if (topic.children.length === 0) {
      rows += 1;
      y[topic.number] = rows * ROW;
    }
  }
  for (const topic of [...data.topics].reverse()) {
    const below = topic.children.map((child) => y[child]);
    if (below.length > 0) y[topic.number] = (below[0] + below.at(-1)) / 2;
  }
  const x = data.topics.map((topic) => LARGEST + 2 + COLUMN * (topic.level - 1));
  return { x, y, rows };
}

function branch({ x, y }, topic, above) {
  const [from, to] = [topic.parent, topic.number];
  const letter = above.level === 1 ? LETTER * BOLD : LETTER;
  const start = Math.min(x[from] + LARGEST + 6 + letter * innerLabel(above).length, x[to] - 14);
  const middle = (start + x[to]) / 2;
  const path = `M${start} ${y[from]}C${middle} ${y[from]} ${middle} ${y[to]} ${x[to]} ${y[to]}`;
  return svgElement("path", { d: path, class: `branch series-${topic.series}` });
}

function node({ x, y }, topic, largest, levels, letters, choose) {
  const number = topic.number;
  const radius = 2.5 + (LARGEST - 2.5) * Math.sqrt(topic.size / largest);
  const words = topic.level === levels ? shorten(labelOf(topic, 4), letters) : innerLabel(topic);
  const group = svgElement("g", {
    class: `node level-${topic.level} series-${topic.series}`,
    transform: `translate(${x[number]} ${y[number]})`,
    tabindex: "0",
    role: "button",
    "aria-label": `${words}, ${formatPercent(topic.size)}`,
  });
  const label = svgElement("text", { x: radius + 5, y: "4" });
  label.textContent = words;
  const title = svgElement("title");
  title.textContent = `${topic.words.join(" · ")} (${formatPercent(topic.size)})`;
  group.append(title, svgElement("circle", { r: radius }), label);
  group.addEventListener("click", () => choose(number));
  group.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      choose(number);
    }
  });
  return group;
}

/** Words of a topic that has narrower ones. */
function innerLabel(topic) {
  return shorten(labelOf(topic, 2), 19);
}

function shorten(text, most) {
  return text.length <= most ? text : `${text.slice(0, most - 1).replace(/[\s·]+$/u, "")}…`;
}
