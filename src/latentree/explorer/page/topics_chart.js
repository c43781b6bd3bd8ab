// The share of a topic over time.

import { element, svgElement } from "./dom.js";
import { formatPercent } from "./numbers.js";

const WIDTH = 640;
const HEIGHT = 96;

export function timeLine(times, topic) {
  const shares = times.topics[topic.number].map((on, i) => on / Math.max(times.total[i], 1));
  const top = Math.max(...shares, 1e-9);
  const step = WIDTH / shares.length;
  const picture = svgElement("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: `times series-${topic.series}`,
    role: "img",
    "aria-label": `Share of the documents by ${times.unit}, at most ${formatPercent(top)}`,
  });
  shares.forEach((share, i) => {
    const height = (HEIGHT - 4) * (share / top);
    const bar = svgElement("rect", {
      x: i * step + step * 0.1,
      y: HEIGHT - height,
      width: Math.max(step * 0.8, 1),
      height,
    });
    const title = svgElement("title");
    title.textContent = `${times.labels[i]}: ${formatPercent(share)} of ${times.total[i]} documents`;
    const column = svgElement("rect", {
      x: i * step,
      y: 0,
      width: step,
      height: HEIGHT,
      class: "hit",
    });
    const group = svgElement("g", {});
    group.append(title, bar, column);
    picture.append(group);
  });
  picture.append(svgElement("line", { x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT, class: "axis" }));
  const middle = times.labels[Math.floor(shares.length / 2)];
  const ends = [times.labels[0], middle, times.labels.at(-1)];
  const dates = element("div", { class: "dates quiet" });
  dates.append(...Array.from(new Set(ends), (text) => element("span", {}, text)));
  const note = `Share of the documents by ${times.unit}; the highest bar is ${formatPercent(top)}.`;
  return element("figure", {}, picture, dates, element("figcaption", { class: "quiet" }, note));
}
