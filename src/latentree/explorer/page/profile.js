// What the states of a hidden variable are: how each answers the items around it, what sets it
// apart in words, and how large it is.

import { stateButtons } from "./asking.js";
import { element, nameOf } from "./dom.js";
import { infer } from "./inference.js";
import { influence } from "./influence.js";
import { shortName } from "./labels.js";
import { counted, section } from "./lists.js";
import { isHidden, neighbors, titleOf } from "./model.js";
import { clamp, formatNumber, formatPercent } from "./numbers.js";

const MOST_STATES = 8; // the rest is folded away
const FEWEST_ITEMS = 6; // variables farther away stand in for neighbors that are hidden
const MOST_ITEMS = 12;
const MOST_LETTERS = 32; // of an item in the name of a state
const MOST_WORDS = 2; // items that name a state
const NOTABLE = 0.25; // standard deviations by which an item sets a state apart
const STEPS = 50; // of the power method
const FULL = 1.2; // the same that have the full color
const ONE_LINE = 0.5; // share of what tells states apart above which they lie on a line
const YES = /^(1|1\.0|yes|y|true)$/i;

/** The profile of a hidden variable with states. */
export function profileSection(state, v) {
  const { model, prior } = state;
  const sizes = prior.probability.subarray(model.stateStart[v], model.stateStart[v + 1]);
  const found = Array.from(sizes, (_, k) => infer(model, new Map([[v, k]])));
  const items = itemsOf(model, v);
  const cells = (k) => items.map((u) => cellOf(model, prior, found[k], u));
  const profiles = Array.from(sizes, (size, k) => ({ k, size, cells: cells(k) }));
  const captions = profiles.map((profile) => captionOf(state, items, profile));
  const bySize = profiles.toSorted((a, b) => b.size - a.size || a.k - b.k);
  const shown = bySize.slice(0, MOST_STATES);
  const score = mainDirection(shown);
  if (score) shown.sort((a, b) => score(a) - score(b) || a.k - b.k);
  return section(
    "States",
    many(sizes.length),
    stateButtons(
      state,
      v,
      shown.map(({ k }) => k),
      captions,
    ),
    orderNote(shown, score !== null),
    rest(state, v, bySize.slice(MOST_STATES), captions),
    heatMap(state, v, items, shown),
  );
}

function orderNote({ length }, isLine) {
  if (length < 3) return null;
  const how = isLine
    ? "from one end of what tells them apart most to the other"
    : "the largest first: no single scale tells them apart";
  return element("p", { class: "quiet" }, `In order: ${how}.`);
}

/**
 * The place of states on the line along which they differ most: the first principal direction of
 * what they answer, in which the item that says most rises. Null where they lie on no line.
 */
function mainDirection(profiles) {
  const width = profiles[0].cells.length;
  const total = profiles.reduce((sum, { size }) => sum + size, 0);
  const mean = Array.from({ length: width }, (_, i) =>
    profiles.reduce((sum, { size, cells }) => sum + (size / total) * cells[i].apart, 0),
  );
  const away = profiles.map(({ cells }) => cells.map(({ apart }, i) => apart - mean[i]));
  const spread = away.map((row) => row.reduce((sum, x) => sum + x * x, 0));
  const all = profiles.reduce((sum, { size }, k) => sum + size * spread[k], 0);
  if (!(all > 0)) return null;
  // By powers, from the state that is farthest from the mean.
  let axis = away[spread.indexOf(Math.max(...spread))].slice();
  let along = 0;
  for (let i = 0; i < STEPS; i++) {
    const norm = Math.hypot(...axis);
    axis = axis.map((x) => x / norm);
    const dots = away.map((row) => row.reduce((sum, x, j) => sum + x * axis[j], 0));
    along = profiles.reduce((sum, { size }, k) => sum + size * dots[k] ** 2, 0);
    axis = mean.map((_, j) =>
      profiles.reduce((sum, { size }, k) => sum + size * dots[k] * away[k][j], 0),
    );
  }
  if (along < ONE_LINE * all) return null;
  const best = axis.reduce((top, x, j) => (Math.abs(x) > Math.abs(axis[top]) ? j : top), 0);
  const sign = Math.sign(axis[best]);
  return ({ cells }) => sign * cells.reduce((sum, { apart }, j) => sum + apart * axis[j], 0);
}

function many(count) {
  if (count <= MOST_STATES) return null;
  return element(
    "p",
    {},
    `${count} states: what ties these variables together comes in degrees or in many small kinds, and each further state was worth its parameters when the model was learned. Read the largest ones, and how they change from one to the next.`,
  );
}

function rest(state, v, profiles, captions) {
  if (profiles.length === 0) return null;
  const share = formatPercent(profiles.reduce((sum, { size }) => sum + size, 0));
  return element(
    "details",
    { class: "naming" },
    element("summary", {}, `${counted(profiles.length, "smaller state")}, ${share} together`),
    stateButtons(
      state,
      v,
      profiles.map(({ k }) => k),
      captions,
    ),
  );
}

/** Observed neighbors, the strongest first; where they are few, the strongest of all variables. */
function itemsOf(model, v) {
  const { strength } = influence(model, v);
  const byStrength = (a, b) => Math.abs(strength[b]) - Math.abs(strength[a]) || a - b;
  const near = neighbors(model, v).filter((u) => !isHidden(model, u));
  const all = Array.from({ length: model.observed }, (_, u) => u).filter(
    (u) => !near.includes(u) && Math.abs(strength[u]) >= 0.05,
  );
  const more = all.sort(byStrength).slice(0, Math.max(FEWEST_ITEMS - near.length, 0));
  return [...near, ...more].sort(byStrength).slice(0, MOST_ITEMS);
}

/**
 * What a state says of an item: the text of its answer, how far that is from the usual one in
 * standard deviations (`apart`), and of labels without an order the one that is more common here.
 */
function cellOf(model, prior, found, u) {
  if (model.numeric[u]) {
    const apart = (found.mean[u] - prior.mean[u]) / Math.sqrt(prior.variance[u]);
    return { apart, text: formatNumber(found.mean[u]) };
  }
  const [from, to] = [model.stateStart[u], model.stateStart[u + 1]];
  const [own, usual] = [found, prior].map(({ probability }) => probability.subarray(from, to));
  const deviation = (k) =>
    (own[k] - usual[k]) / Math.sqrt(Math.max(usual[k] * (1 - usual[k]), 1e-9));
  if (own.length === 2) return { apart: deviation(1), text: formatPercent(own[1]) };
  if (model.kinds[u] === "ordered") {
    const mean = (p) => p.reduce((sum, share, k) => sum + share * k, 0);
    const center = mean(usual);
    const spread = Math.sqrt(usual.reduce((sum, p, k) => sum + p * (k - center) ** 2, 0));
    return { apart: (mean(own) - center) / (spread || 1), text: model.labels(u)[middleOf(own)] };
  }
  let best = 0;
  for (let k = 1; k < own.length; k++) if (deviation(k) > deviation(best)) best = k;
  const label = model.labels(u)[best];
  return { apart: deviation(best), text: `${label} ${formatPercent(own[best])}`, label };
}

/** The state at which half of the probability is reached. */
function middleOf(shares) {
  let sum = 0;
  return shares.findIndex((share) => {
    sum += share;
    return sum >= 0.5;
  });
}

/** "often sad, seldom calm": the items that set a state apart most. */
function captionOf(state, items, { cells }) {
  const order = [...items.keys()].sort(
    (a, b) => Math.abs(cells[b].apart) - Math.abs(cells[a].apart),
  );
  const notable = order.filter((i) => Math.abs(cells[i].apart) >= NOTABLE).slice(0, MOST_WORDS);
  return notable.map((i) => phrase(state, items[i], cells[i])).join(", ") || "like the average";
}

function phrase(state, u, { apart, label }) {
  const { model } = state;
  const name = shortName(state, u, MOST_LETTERS);
  if (label !== undefined) return `${name}: ${label}`;
  if (model.numeric[u] || model.states[u] > 2) return `${apart > 0 ? "high" : "low"} ${name}`;
  const labels = model.labels(u);
  if (YES.test(labels[1])) return `${apart > 0 ? "often" : "seldom"} ${name}`;
  return `${name}: ${labels[apart > 0 ? 1 : 0]}`;
}

/** Items by states: the answer, on a color that says how far it is from the usual one. */
function heatMap(state, v, items, profiles) {
  const { model } = state;
  if (items.length === 0) return null;
  const labels = model.labels(v);
  const head = profiles.map(({ k, size }) =>
    element(
      "th",
      { scope: "col" },
      nameOf(labels[k]),
      element("span", { class: "quiet size" }, formatPercent(size)),
    ),
  );
  const rows = items.map((u, i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, itemName(model, u)),
      profiles.map(({ cells }) => heatCell(cells[i])),
    ),
  );
  return element(
    "figure",
    {},
    element(
      "figcaption",
      { class: "quiet" },
      "How each state answers; color where that is more (orange) or less (blue) than usual.",
    ),
    element(
      "div",
      { class: "scroll", tabindex: 0 },
      element(
        "table",
        { class: "heat" },
        element("thead", {}, element("tr", {}, element("td", {}), head)),
        element("tbody", {}, rows),
      ),
    ),
  );
}

/** Of two answers one is counted, and the name says which. */
function itemName(model, u) {
  const name = nameOf(titleOf(model, u));
  if (model.numeric[u] || model.states[u] !== 2 || YES.test(model.labels(u)[1])) return name;
  return [name, " = ", nameOf(model.labels(u)[1])];
}

function heatCell({ apart, text }) {
  const cell = element("td", { class: apart < 0 ? "figures low" : "figures" }, text);
  cell.style.setProperty("--share", clamp(Math.abs(apart) / FULL, 0, 1).toFixed(3));
  return cell;
}
