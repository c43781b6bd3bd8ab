// The distribution of a node, and asking: supposing a value of it.

import { bellChart, shareBar } from "./charts.js";
import { element, nameOf } from "./dom.js";
import { mixtureOf } from "./emissions.js";
import { atSigmas, sigmasOf } from "./inference.js";
import { counted } from "./lists.js";
import { quantileOf } from "./margins.js";
import { isCount, isPossible, nearestValue, rankMargin } from "./model.js";
import { formatNumber, formatPercent, formatSigned, formatWithin, parseNumber } from "./numbers.js";
import { setEvidence } from "./state.js";

const FAR = 4; // standard deviations beyond which a value is no longer usual

export function distribution(state, v) {
  return state.model.numeric[v]
    ? [
        bellChart(state, v),
        summaryOf(state, v),
        rangeNote(state, v),
        numberControl(state, v),
        dataNote(state, v),
      ]
    : [stateRows(state, v), dataNote(state, v)];
}

export function summaryOf(state, v) {
  const { prior, posterior, evidence } = state;
  const usual = Math.sqrt(prior.variance[v]);
  const say = (from) =>
    `${formatWithin(from.mean[v], usual)} ± ${formatWithin(Math.sqrt(from.variance[v]), usual)}`;
  const moved = formatSigned(state.change[v]);
  if (evidence.has(v)) {
    return element(
      "p",
      { class: "summary figures" },
      `Supposed: ${formatNumber(posterior.mean[v], 5)} (${moved} σ)`,
    );
  }
  const text =
    evidence.size === 0 ? say(prior) : `${say(prior)}  →  ${say(posterior)}  (${moved} σ)`;
  return element("p", { class: "summary figures" }, text);
}

/** Quantiles of a number whose scale comes from ranks: its deviations differ on both sides. */
function rangeNote({ model, posterior, evidence }, v) {
  if (!rankMargin(model, v) || evidence.has(v) || posterior.parts || !posterior.possible)
    return null;
  const [low, high] = [0.8413, 0.1587].map((share) =>
    formatWithin(
      quantileOf(...mixtureOf(model, v, posterior), share),
      Math.sqrt(posterior.variance[v]),
    ),
  );
  return element("p", { class: "quiet" }, `68 % between ${low} and ${high}.`);
}

/** What to say of a value that the model has never seen: nothing, or a sentence. */
export function extrapolation(state, v) {
  const { model, evidence } = state;
  if (v < 0 || !evidence.has(v) || !model.numeric[v]) return "";
  const value = evidence.get(v);
  const sigma = sigmasOf(state, v, value);
  if (model.data && v < model.observed) {
    const [low, high] = dataRange(model, v);
    if (high > low && (value < low || value > high))
      return `Outside the data, which go from ${formatNumber(low)} to ${formatNumber(high)}: what follows is extrapolated.`;
  }
  return Math.abs(sigma) > FAR
    ? `${formatSigned(sigma, 1)} σ is far from all that is usual: what follows is extrapolated.`
    : "";
}

/** The least and the greatest value of the data; of counts the bins end halfway between them. */
function dataRange(model, v) {
  const { low, high, counts, bins, countStart } = model.data;
  if (!isCount(model, v)) return [low[v], high[v]];
  const own = counts.subarray(countStart[v], countStart[v + 1]);
  const last = own.findLastIndex((count) => count > 0);
  return [low[v] + 0.5, low[v] + ((last + 1) * (high[v] - low[v])) / bins - 0.5];
}

/** The same beside the field in which the value stands. */
export function farWarning(state, v) {
  const text = extrapolation(state, v);
  return element("p", { class: "warning far", role: "status", hidden: text === "" }, text);
}

/** A slider in standard deviations, of counts in counts, and a field in the units of the data. */
function numberControl(state, v) {
  const { model, prior, evidence } = state;
  const given = evidence.get(v);
  const set = (value) => setEvidence(state, v, value);
  const beyond = (sigma) => nearestValue(model, v, atSigmas(state, v, sigma));
  const scale = isCount(model, v)
    ? { min: 0, max: Math.ceil(atSigmas(state, v, 4)), step: 1, label: "Value" }
    : { min: -4, max: 4, step: 0.05, label: "Value in standard deviations" };
  const toValue = (at) => (isCount(model, v) ? at : beyond(at));
  const fromValue = (value) => (isCount(model, v) ? value : sigmasOf(state, v, value));
  const slider = element("input", {
    type: "range",
    min: scale.min,
    max: scale.max,
    step: scale.step,
    value: fromValue(given ?? prior.mean[v]),
    "aria-label": scale.label,
    "data-key": "slider",
    input: () => {
      const value = toValue(Number(slider.value));
      field.value = formatNumber(value, 5);
      set(value);
    },
  });
  const field = element("input", {
    class: "value",
    inputmode: "decimal",
    placeholder: "value",
    "aria-label": "Value in the units of the data",
    "data-key": "value",
    value: given === undefined ? "" : formatNumber(given, 6),
    keydown: (event) => {
      if (event.key === "Enter") field.blur();
    },
    change: () => {
      const value = parseNumber(field.value);
      if (field.value.trim() === "") set(undefined);
      else if (!isPossible(model, v, value)) field.setAttribute("aria-invalid", "true");
      else set(value);
    },
  });
  const quick = [-2, -1, 1, 2].map((sigma) =>
    element(
      "button",
      { type: "button", "data-key": `sigma${sigma}`, click: () => set(beyond(sigma)) },
      `${formatSigned(sigma, 0)} σ`,
    ),
  );
  const clear = element(
    "button",
    {
      type: "button",
      "data-key": "clear",
      hidden: given === undefined,
      click: () => set(undefined),
    },
    "Clear",
  );
  return element(
    "div",
    { class: "ask" },
    element("div", { class: "row" }, element("span", { class: "quiet" }, "Suppose it is"), field),
    farWarning(state, v),
    slider,
    element("div", { class: "buttons" }, quick, clear),
  );
}

function stateRows(state, v) {
  return stateButtons(state, v, [...state.model.labels(v).keys()]);
}

/**
 * One row for each of some states: its probability, before and now, and a caption, if there are any;
 * pressing a row supposes that state.
 */
export function stateButtons(state, v, which, captions = []) {
  const { model, prior, posterior, evidence } = state;
  const at = model.stateStart[v];
  const rows = which.map((k) => {
    const now = posterior.probability[at + k];
    const before = prior.probability[at + k];
    const given = evidence.get(v) === k;
    return element(
      "button",
      {
        class: "state",
        type: "button",
        "aria-pressed": String(given),
        "data-key": `state${k}`,
        title: given ? "Forget this" : "Suppose this",
        click: () => setEvidence(state, v, given ? undefined : k),
      },
      element("span", { class: "named" }, ...stateName(state, v, k, captions[k])),
      shareBar(now, evidence.size > 0 ? before : null),
      element("span", { class: "figures" }, formatPercent(now)),
    );
  });
  return element(
    "div",
    { class: "states", role: "group", "aria-label": "States" },
    rows,
    element("p", { class: "quiet" }, "Press a state to suppose it."),
  );
}

/** What people call a state, or for want of a name what sets it apart; the other is below. */
function stateName({ model }, v, k, caption) {
  const label = model.labels(v)[k];
  if (!caption) return [nameOf(label)];
  const below = (text) => element("span", { class: "quiet" }, nameOf(text));
  return v in model.stateNames
    ? [nameOf(label), below(caption)]
    : [nameOf(caption), below(`state ${label}`)];
}

/** What the data says, where it came with the page. */
function dataNote(state, v) {
  const { model } = state;
  const { data } = model;
  if (!data || v >= model.observed) return null;
  const missing = data.missing[v];
  const gaps = missing > 0 ? `, ${missing.toLocaleString("en")} missing` : "";
  const rows = `${counted(data.rows, "row")}${gaps}`;
  if (model.numeric[v]) {
    const spread = `mean ${formatNumber(data.mean[v])}, deviation ${formatNumber(data.deviation[v])}`;
    return element("p", { class: "quiet" }, `Data: ${rows}; ${spread}.`);
  }
  const counts = data.counts.subarray(data.countStart[v], data.countStart[v + 1]);
  const total = counts.reduce((a, b) => a + b, 0) || 1;
  const parts = model
    .labels(v)
    .flatMap((label, k) => [
      k > 0 ? ", " : "",
      nameOf(label),
      ` ${formatPercent(counts[k] / total)}`,
    ]);
  return element("p", { class: "quiet" }, `Data: ${rows}; `, ...parts.slice(0, 36), ".");
}
