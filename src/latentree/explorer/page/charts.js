// Small pictures in the panel: a bell curve, bars.

import { element, svgElement } from "./dom.js";
import { mixtureDensity, mixtureOf } from "./emissions.js";
import { valueAt } from "./margins.js";
import { isCount, isHidden, isOnGrid, rankMargin } from "./model.js";
import { clamp, formatNumber } from "./numbers.js";

const WIDTH = 300;
const HEIGHT = 92;
const BASE = HEIGHT - 16;
const BARS = 24; // of a histogram

/** Histogram of the data (if any), the model's curve, and the curve given the evidence. */
export function bellChart(state, v) {
  const { model, prior, posterior, evidence } = state;
  const before = { mean: prior.mean[v], deviation: Math.sqrt(prior.variance[v]) };
  const after = { mean: posterior.mean[v], deviation: Math.sqrt(posterior.variance[v]) };
  const range = rangeOf(model, v, before, after);
  const toX = (value) => ((value - range.low) / (range.high - range.low)) * WIDTH;
  const width = (range.high - range.low) / BARS;
  const [usual, now] = [prior, posterior].map((found) => densityOf(state, v, found, width));
  const curves = [pointsOf(model, v, usual, range)];
  if (evidence.size > 0 && !evidence.has(v)) curves.push(pointsOf(model, v, now, range));
  const peak = Math.max(...curves.flat().map(([, density]) => density));
  const tallest = Math.min(peak, 1.26 / before.deviation) * 1.05;
  const toY = (density) => BASE - Math.min(density / tallest, 1.02) * (BASE - 6);
  const chart = svgElement("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    class: "bell",
    role: "img",
  });
  const middle = rankMargin(model, v) ? "median" : "mean";
  chart.append(svgElement("title", {}, bellText(middle, before, after, evidence.size > 0)));
  if (model.data && v < model.observed) chart.append(...histogram(model, v, toX, toY));
  chart.append(svgElement("line", { x1: 0, x2: WIDTH, y1: BASE, y2: BASE, class: "axis" }));
  chart.append(curve(curves[0], toX, toY, "prior"));
  if (evidence.has(v)) {
    chart.append(
      svgElement("line", {
        x1: toX(after.mean),
        x2: toX(after.mean),
        y1: 6,
        y2: BASE,
        class: "given",
      }),
    );
  } else if (curves.length > 1) {
    chart.append(curve(curves[1], toX, toY, "posterior"));
  }
  const sides = [-2, 0, 2].map((sigma) => before.mean + sigma * before.deviation);
  const even = [0.1, 0.5, 0.9].map((share) => range.low + share * (range.high - range.low));
  for (const value of rankMargin(model, v) ? even : sides) {
    const label = svgElement("text", { x: toX(value), y: HEIGHT - 4, class: "tick" });
    label.textContent = formatNumber(value);
    chart.append(
      svgElement("line", { x1: toX(value), x2: toX(value), y1: BASE, y2: BASE + 3, class: "axis" }),
      label,
    );
  }
  return chart;
}

function bellText(middle, before, after, asked) {
  const say = ({ mean, deviation }) =>
    `${middle} ${formatNumber(mean)}, deviation ${formatNumber(deviation)}`;
  return asked ? `Before: ${say(before)}. Given the evidence: ${say(after)}.` : say(before);
}

function rangeOf(model, v, before, after) {
  const margin = rankMargin(model, v);
  if (margin && !margin.isCount) {
    const [low, high] = [-2.4, 2.4].map((y) => valueAt(margin, y)); // of 98 % of the values
    return { low: Math.min(low, after.mean), high: Math.max(high, after.mean) };
  }
  let low = Math.min(before.mean - 3.4 * before.deviation, after.mean - 2 * after.deviation);
  let high = Math.max(before.mean + 3.4 * before.deviation, after.mean + 2 * after.deviation);
  if (model.data && v < model.observed) {
    low = Math.min(low, Math.max(model.data.low[v], before.mean - 5 * before.deviation));
    high = Math.max(high, Math.min(model.data.high[v], before.mean + 5 * before.deviation));
  }
  return isCount(model, v) ? { low: -0.5, high: Math.max(high, 3) } : { low, high };
}

/** Density of a number as a function, in the distribution before or after the evidence. */
function densityOf({ model }, v, found, width) {
  if (!found.parts || isHidden(model, v)) return densityIn(model, v, found, width);
  const parts = found.parts.filter(({ share }) => share > 0);
  const own = parts.map((part) => densityIn(part.model, v, part.found, width));
  return (x) => parts.reduce((sum, { share }, k) => sum + share * own[k](x), 0);
}

/** The same in one tree. */
function densityIn(model, v, found, width) {
  if (isOnGrid(model, v)) return gridDensity(model, v, found.probability);
  return mixtureDensity(...mixtureOf(model, v, found), width);
}

/** The probabilities of a grid as a density, straight between its points. */
function gridDensity({ points, stateStart }, v, probability) {
  const step = points[1] - points[0];
  const at = (k) => (probability[stateStart[v] + k] ?? 0) / step;
  return (x) => {
    const place = (x - points[0]) / step;
    const k = Math.floor(place);
    if (k < 0 || k >= points.length - 1) return 0;
    return at(k) + (place - k) * (at(k + 1) - at(k));
  };
}

/** Points of a density within a range: of a count at whole numbers only, with flat tops. */
function pointsOf(model, v, density, { low, high }) {
  const count = isCount(model, v) && high - low < 80;
  const number = count ? Math.ceil(high - low) : 120;
  const at = (i) => low + ((high - low) * i) / number;
  if (!count) return Array.from({ length: number + 1 }, (_, i) => [at(i), density(at(i))]);
  return Array.from({ length: number }, (_, k) => k).flatMap((k) => [
    [k - 0.5, density(k)],
    [Math.min(k + 0.5, high), density(k)],
  ]);
}

function curve(points, toX, toY, kind) {
  const text = points.map(([x, density]) => `${toX(x).toFixed(1)},${toY(density).toFixed(1)}`);
  return svgElement("polyline", { points: text.join(" "), class: kind });
}

function histogram(model, v, toX, toY) {
  const { low, high, counts, bins, countStart } = model.data;
  const own = counts.subarray(countStart[v], countStart[v + 1]);
  const total = own.reduce((a, b) => a + b, 0);
  const step = (high[v] - low[v]) / bins;
  if (!(total > 0) || !(step > 0)) return [];
  return Array.from(own, (count, i) => {
    const top = toY(count / (total * step));
    const ends = [i, i + 1].map((k) => clamp(toX(low[v] + k * step), 0, WIDTH));
    const width = Math.max(ends[1] - ends[0] - 0.6, 0);
    return svgElement("rect", {
      x: ends[0],
      y: top,
      width,
      height: Math.max(BASE - top, 0),
      class: "bar",
    });
  });
}

/** A bar from 0 to 1, with a mark for a second value. */
export function shareBar(share, mark = null, kind = "") {
  const bar = element("span", { class: `share ${kind}`, "aria-hidden": "true" });
  const fill = element("span", { class: "fill" });
  fill.style.width = `${(100 * Math.min(Math.max(share, 0), 1)).toFixed(2)}%`;
  bar.append(fill);
  if (mark !== null) {
    const line = element("span", { class: "mark" });
    line.style.left = `${(100 * Math.min(Math.max(mark, 0), 1)).toFixed(2)}%`;
    bar.append(line);
  }
  return bar;
}

/** A bar from the middle line to the left or to the right, of a value from −1 to 1. */
export function sideBar(value) {
  const bar = element("span", { class: "share side", "aria-hidden": "true" });
  const fill = element("span", { class: value < 0 ? "fill less" : "fill" });
  fill.style.width = `${(50 * Math.min(Math.abs(value), 1)).toFixed(2)}%`;
  fill.style.marginLeft = value < 0 ? `${(50 * (1 - Math.min(-value, 1))).toFixed(2)}%` : "50%";
  bar.append(fill);
  return bar;
}
