// What the colors and shapes of nodes mean: groups, or any number that there is of every node.

import { directionOf, highState, movedBy } from "./inference.js";
import { isHidden } from "./model.js";
import { formatNumber, formatPercent } from "./numbers.js";

// From low to high: hue and lightness change together, and shapes say the same without color.
const STEPS = [
  { color: "#9c8a1c", dark_color: "#8577d8", marker: "v" },
  { color: "#4c8f4f", dark_color: "#5b8fd6", marker: "D" },
  { color: "#217f88", dark_color: "#3fb3a8", marker: "o" },
  { color: "#3a5a8c", dark_color: "#8fd16a", marker: "s" },
  { color: "#4b1a66", dark_color: "#f2e24c", marker: "^" },
];

// Changes, from much less to much more, and of what can only be different.
const CHANGES = [
  { words: "much less", color: "#263c8f", dark_color: "#b3c2ff", marker: "v" },
  { words: "less", color: "#5470c6", dark_color: "#7d95f0", marker: "v" },
  { words: "a little less", color: "#98a9e0", dark_color: "#5066b5", marker: "v" },
  { words: "as usual", color: "#a3a7ab", dark_color: "#5d666f", marker: "o" },
  { words: "a little more", color: "#e3a85c", dark_color: "#8f6428", marker: "^" },
  { words: "more", color: "#c8751a", dark_color: "#d0913a", marker: "^" },
  { words: "much more", color: "#8a4200", dark_color: "#ffc877", marker: "^" },
  { words: "different", color: "#3f7a4c", dark_color: "#86c98f", marker: "s" },
];
const BOUNDS = [0.05, 0.25, 0.6]; // shares of the greatest change that divide the steps above
const SAME = 3; // the step of what has not changed
const OTHER = 7;

/** What nodes can be colored by: keys and names. */
export function colorChoices({ model }) {
  const grouped = model.groups[0].label !== null;
  const usual = grouped ? "group" : "nothing";
  const choices = [
    ["auto", `${usual}, or change`],
    ["group", usual],
    ["change", "change, supposed"],
  ];
  if (!model.isGaussian) choices.push(["posterior", "probability, supposed"]);
  if (model.isGaussian || model.emissions.length > 0) choices.push(["mean", "mean"]);
  if (!model.isGaussian) choices.push(["probability", "probability"]);
  if (model.data?.missing.some((count) => count > 0)) choices.push(["missing", "missing cells"]);
  if (model.support) choices.push(["support", "support"]);
  model.annotations.forEach(({ name }, i) => {
    choices.push([`a${i}`, name]);
  });
  return choices;
}

/**
 * The `styles` of nodes and the number of every node's; −1 for nodes that have none. With numbers
 * the styles are five steps between the least and the greatest.
 */
export function coloringOf(state) {
  const { model, evidence } = state;
  const colorBy =
    state.colorBy === "auto" ? (evidence.size > 0 ? "change" : "group") : state.colorBy;
  if (colorBy === "change") return changeColoring(state);
  const note = colorBy.startsWith("a") ? model.annotations[Number(colorBy.slice(1))] : null;
  if (note?.styles) return { styles: note.styles, number: withHidden(model, note.number) };
  const found = note
    ? { values: withHidden(model, note.values), say: (x) => formatNumber(x, 4) }
    : null;
  const scale = found ?? SCALES[colorBy]?.(state);
  return scale ? inSteps(scale) : { styles: model.groups, number: withHidden(model, model.group) };
}

/** Signed changes on a scale that the greatest of them fills; of folded branches the greatest. */
function changeColoring(state) {
  const { model, limits, evidence, posterior } = state;
  const number = new Int32Array(model.size).fill(SAME);
  const size = new Float64Array(model.size);
  if (evidence.size > 0 && posterior.possible) {
    for (let v = 0; v < model.size; v++) {
      const share =
        Math.abs(movedBy(state, v)) / (model.numeric[v] ? limits.numbers : limits.states);
      const steps = BOUNDS.filter((bound) => share >= bound).length;
      const way = directionOf(model, state.change, v);
      size[v] = share;
      if (steps > 0) number[v] = way === 0 ? OTHER : SAME + way * steps;
    }
    showFolded(state, number, size);
  }
  return { styles: changeStyles(state), number, isChange: true };
}

/** A folded branch shows the greatest change in it. */
function showFolded({ tree, folded }, number, size) {
  const [most, which] = [size.slice(), Int32Array.from(size.keys())];
  for (const v of tree.order.toReversed()) {
    const above = tree.parent[v];
    if (above >= 0 && most[v] > most[above]) [most[above], which[above]] = [most[v], which[v]];
  }
  const shown = number.slice();
  for (let v = 0; v < folded.length; v++) if (folded[v]) number[v] = shown[which[v]];
}

/** Words for all kinds of nodes together; with numbers where there is but one kind. */
function changeStyles({ model, limits }) {
  const numbers = model.numeric.filter((numeric) => numeric).length;
  const alone = numbers === model.size || numbers === 0;
  const [full, say] =
    numbers > 0
      ? [limits.numbers, (x) => `${formatNumber(x, 2)} σ`]
      : [limits.states, (x) => `${formatNumber(100 * x, 2)} pp`];
  const usedSteps = model.directed.some((way) => !way) ? CHANGES.length : OTHER;
  return CHANGES.slice(0, usedSteps).map((style, i) => {
    const isEnd = i === 0 || i === OTHER - 1; // a bound for these says how all are meant
    const from = isEnd ? BOUNDS.at(-1) : undefined;
    const bound = alone && from !== undefined ? ` (${say(from * full)} or more)` : "";
    return { ...style, label: `${style.words}${bound}` };
  });
}

const SCALES = {
  posterior: (state) => ({ ...probabilities(state, state.posterior), range: [0, 1] }),
  mean: ({ model, prior }) => ({
    values: Float64Array.from(model.numeric, (numeric, v) =>
      numeric && !isHidden(model, v) ? prior.mean[v] : Number.NaN,
    ),
    say: formatNumber,
  }),
  probability: (state) => ({ ...probabilities(state, state.prior), range: [0, 1] }),
  missing: ({ model }) => ({
    values: withHidden(
      model,
      Float64Array.from(model.data.missing, (count) => count / model.data.rows),
    ),
    say: formatPercent,
  }),
  support: ({ model }) => ({
    values: Float64Array.from([...model.support.variables, ...model.support.hidden]),
    say: formatPercent,
    range: [0, 1],
  }),
};

/** Probability of the state that counts as more; of ordered states their mean place, from 0 to 1. */
function probabilities({ model }, { probability }) {
  const values = new Float64Array(model.size).fill(Number.NaN);
  for (let v = 0; v < model.size; v++) {
    const [at, count] = [model.stateStart[v], model.states[v]];
    if (model.numeric[v]) continue;
    if (count === 2) values[v] = probability[at + highState(model, v)];
    if (count > 2 && model.kinds[v] === "ordered") {
      const own = probability.subarray(at, at + count);
      values[v] = own.reduce((sum, p, k) => sum + p * k, 0) / (count - 1);
    }
  }
  return { values, say: formatPercent };
}

function withHidden(model, own) {
  const out = new Float64Array(model.size).fill(own instanceof Int32Array ? -1 : Number.NaN);
  out.set(own);
  return out;
}

function inSteps({ values, say, range }) {
  const known = values.filter((value) => !Number.isNaN(value));
  const low = range?.[0] ?? known.reduce((a, b) => Math.min(a, b), Infinity);
  const high = range?.[1] ?? known.reduce((a, b) => Math.max(a, b), -Infinity);
  const step = (high - low) / STEPS.length || 1;
  const place = (value) =>
    Math.min(Math.max(Math.floor((value - low) / step), 0), STEPS.length - 1);
  const number = values.map((value) => (Number.isNaN(value) ? -1 : place(value)));
  const styles = STEPS.map((style, i) => ({
    ...style,
    label: `${say(low + i * step)} to ${say(low + (i + 1) * step)}`,
  }));
  return { styles, number };
}
