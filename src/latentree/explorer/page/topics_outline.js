// The topics as an outline.

import { element, nameOf } from "./dom.js";
import { formatPercent } from "./numbers.js";
import { isDoubtful, labelOf } from "./topics_data.js";

const OPEN = 40; // topics up to which all branches are open from the start

/** Build the list; returns a function that marks the selected topic and opens what is above it. */
export function createOutline(box, data, choose) {
  const rows = new Map();
  const largest = Math.max(...data.topics.map((topic) => topic.size));
  const open = data.topics.length <= OPEN;
  const list = (numbers) => element("ul", {}, numbers.map(item));
  function item(number) {
    const topic = data.topics[number];
    const below = topic.children.length > 0 ? list(topic.children) : null;
    const row = element("div", { class: `row level-${topic.level} series-${topic.series}` });
    const press = element(
      "button",
      { type: "button", class: "topic", click: () => choose(number) },
      nameOf(labelOf(topic, topic.level === 1 ? 4 : 5)),
      isDoubtful(topic) ? element("span", { class: "doubt" }, "doubtful") : null,
    );
    const bar = element("span", { class: "bar", "aria-hidden": "true" });
    bar.style.setProperty("--share", String(topic.size / largest));
    const size = element("span", { class: "figures" }, formatPercent(topic.size));
    row.append(below ? toggle(below, topic) : element("span", { class: "leaf" }), press, bar, size);
    rows.set(number, { row, press, below });
    return element("li", {}, row, below);
  }
  function toggle(below, topic) {
    const show = open || topic.level === 1;
    const button = element("button", {
      type: "button",
      class: "toggle",
      "aria-expanded": String(show),
      "aria-label": `Narrower topics of ${labelOf(topic)}`,
    });
    below.hidden = !show;
    button.addEventListener("click", () => {
      below.hidden = !below.hidden;
      button.setAttribute("aria-expanded", String(!below.hidden));
    });
    return button;
  }
  box.append(list(data.roots));
  return (number) => {
    for (const [other, { row, press }] of rows) {
      row.classList.toggle("chosen", other === number);
      press.setAttribute("aria-current", String(other === number));
    }
    for (
      let at = number < 0 ? -1 : data.topics[number].parent;
      at >= 0;
      at = data.topics[at].parent
    ) {
      const { row, below } = rows.get(at);
      below.hidden = false;
      row.querySelector(".toggle").setAttribute("aria-expanded", "true");
    }
    if (number >= 0) rows.get(number).row.scrollIntoView({ block: "nearest" });
  };
}
