// What the colors and shapes of nodes mean: groups, or any number that there is of every node.

import { highState } from "./inference.js";
import { isHidden } from "./model.js";
import { formatNumber, formatPercent, formatSigned } from "./numbers.js";

// From low to high: hue and lightness change together, and shapes say the same without color.
const STEPS = [
  { color: "#9c8a1c", dark_color: "#8577d8", marker: "v" },
  { color: "#4c8f4f", dark_color: "#5b8fd6", marker: "D" },
  { color: "#217f88", dark_color: "#3fb3a8", marker: "o" },
  { color: "#3a5a8c", dark_color: "#8fd16a", marker: "s" },
  { color: "#4b1a66", dark_color: "#f2e24c", marker: "^" },
];

/** What nodes can be colored by: keys and names. */
export function colorChoices({ model }) {
  const grouped = model.groups[0].label !== null;
  const choices = [["group", grouped ? "group" : "nothing"]];
  choices.push(["posterior", model.isGaussian ? "mean, supposed" : "probability, supposed"]);
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
  const { model, colorBy } = state;
  const note = colorBy.startsWith("a") ? model.annotations[Number(colorBy.slice(1))] : null;
  if (note?.styles) return { styles: note.styles, number: withHidden(model, note.number) };
  const found = note
    ? { values: withHidden(model, note.values), say: (x) => formatNumber(x, 4) }
    : null;
  const scale = found ?? SCALES[colorBy]?.(state);
  return scale ? inSteps(scale) : { styles: model.groups, number: withHidden(model, model.group) };
}

const SCALES = {
  posterior: (state) => nowScale(state),
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

/** What is known now: probabilities of states, and of numbers the way from their usual mean. */
function nowScale(state) {
  const { model, posterior, change } = state;
  if (!model.isGaussian) return { ...probabilities(state, posterior), range: [0, 1] };
  return { values: change, say: (value) => `${formatSigned(value, 1)} σ`, range: [-2, 2] };
}

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
