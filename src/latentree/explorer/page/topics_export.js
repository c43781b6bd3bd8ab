// What can be taken away: a table of the topics, and the page with the names that people gave.

import { byId, download } from "./dom.js";
import { csvCell } from "./numbers.js";
import { labelOf } from "./topics_data.js";

/** The page as it was written, before anything is shown; its data. */
export function takeSource() {
  const data = byId("payload");
  const payload = JSON.parse(data.textContent);
  data.textContent = "";
  return { payload, html: `<!doctype html>\n${document.documentElement.outerHTML}\n` };
}

/** Names that people gave to topics, by the numbers that the topics go by. */
export function titlesOf({ topics }) {
  return Object.fromEntries(topics.flatMap(({ name, title }) => (title ? [[name, title]] : [])));
}

/** The page with its names. */
export function toPage(data, { payload, html }) {
  const mark = 'id="payload">';
  const json = JSON.stringify({ ...payload, titles: titlesOf(data) }).replaceAll("<", "\\u003c");
  const place = html.indexOf(mark) + mark.length;
  return html.slice(0, place) + json + html.slice(place);
}

/** One line a topic, with its shares of classes and of periods of time. */
export function toCsv(data) {
  const sums = [data.classes, data.times].filter(Boolean);
  const names = sums.flatMap((each) => each.names ?? each.labels);
  const head = ["topic", "name", "level", "above", "share", "support", "words", ...names];
  const lines = data.topics.map((topic) => {
    const shares = sums.flatMap(({ topics, total }) =>
      topics[topic.number].map((on, k) => on / Math.max(total[k], 1)),
    );
    const above = topic.parent < 0 ? "" : data.topics[topic.parent].name;
    const plain = [topic.name, labelOf(topic), topic.level, above, topic.size, topic.support ?? ""];
    return [...plain, topic.words.join(" "), ...shares].map((cell) => csvCell(String(cell)));
  });
  return `${[head.map(csvCell), ...lines].map((line) => line.join(",")).join("\r\n")}\r\n`;
}

export function createExports(data, source) {
  const actions = {
    "save-csv": () => download(toCsv(data), "topics.csv", "text/csv"),
    "save-page": () => download(toPage(data, source), "topics.html", "text/html"),
  };
  for (const [id, action] of Object.entries(actions)) {
    byId(id).addEventListener("click", () => {
      byId("take").open = false;
      action();
    });
  }
}
