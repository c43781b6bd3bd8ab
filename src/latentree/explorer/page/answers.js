// What is supposed, and what follows from it.

import { extrapolation } from "./asking.js";
import { shareBar } from "./charts.js";
import { byId, element, nameOf, replaced } from "./dom.js";
import { directionOf, greatness, mostMoved, movedBy, sigmasOf } from "./inference.js";
import { barRow, counted, cutList, goButton } from "./lists.js";
import { TREE, treeLabel } from "./mixture.js";
import { isHidden, rankMargin, titleOf } from "./model.js";
import {
  formatNumber,
  formatPercent,
  formatPoints,
  formatSigned,
  formatWithin,
} from "./numbers.js";
import { rowName } from "./rows.js";
import { clearEvidence, on, setEvidence } from "./state.js";

const MOST_CHIPS = 8; // beyond which they are folded away
const LISTED = 12; // changes, where nothing is selected
const LISTED_BESIDE = 3; // the same above the details of what is selected
const FILTERS = { all: "All", variables: "Variables", hidden: "Hidden" };

/** The answers of the tree that the panel is about. */
export function createAnswers(panes) {
  const box = byId("answers");
  const active = () => panes.find(({ state }) => !state.inactive) ?? panes[0];
  const show = () => {
    const { state, view } = active();
    box.hidden = state.evidence.size === 0;
    replaced(
      box,
      () => box.replaceChildren(...(box.hidden ? [] : answers(state, view))),
      () => box.querySelector(".remove") ?? box.parentElement,
    );
  };
  for (const { state } of panes) {
    for (const event of ["evidence", "names", "selection"]) on(state, event, show);
    on(state, "evidence", () => {
      if (!state.inactive && state.evidence.size > 0) byId("announce").textContent = spoken(state);
    });
  }
  show();
}

/** A value of a node in words: "+2.00 σ (0.153)", in mixed models "52 (+1.31 σ)", or a label. */
export function evidenceText(state, v) {
  const { model, evidence } = state;
  const value = evidence.get(v);
  if (v === TREE) return treeLabel(value);
  if (!model.numeric[v]) return model.labels(v)[value];
  const sigma = sigmasOf(state, v, value);
  return model.isGaussian && !rankMargin(model, v)
    ? `${formatSigned(sigma)} σ (${formatNumber(value)})`
    : `${formatNumber(value, 5)} (${formatSigned(sigma)} σ)`;
}

function answers(state, view) {
  const clear = element(
    "button",
    { type: "button", class: "clear", click: () => clearEvidence(state) },
    "Clear all",
  );
  const which = () => (state.pair ? [" in ", nameOf(state.pair.name)] : []);
  return [
    element("h2", { class: "head" }, "Suppose", ...which()),
    element("div", { class: "supposed" }, chipList(state, view), clear),
    farNote(state),
    element("h2", { class: "head" }, "Most changed", ...which()),
    state.posterior.possible ? mostChanged(state, view) : impossible(),
  ].filter(Boolean);
}

/** What is supposed, one by one; of a row, or of very much, only when it is asked for. */
function chipList(state, view) {
  const { evidence, row } = state;
  const list = element("ul", { class: "chips" });
  const fill = () =>
    list.replaceChildren(...Array.from(evidence.keys(), (v) => chip(state, view, v)));
  if (evidence.size <= MOST_CHIPS) {
    fill();
    return [list];
  }
  const what = counted(evidence.size, "value");
  const box = element(
    "details",
    { class: "naming" },
    element("summary", {}, row < 0 ? what : nameOf(`${rowName(state, row)}: ${what}`)),
    list,
  );
  box.addEventListener("toggle", fill, { once: true });
  return [box];
}

/** A warning where something is supposed that the model has never seen. */
function farNote(state) {
  const far = [...state.evidence.keys()].filter((v) => extrapolation(state, v) !== "");
  if (far.length === 0 || state.row >= 0) return null;
  const names = far.map((v) => titleOf(state.model, v)).join(", ");
  return element(
    "p",
    { class: "warning far" },
    `${names}: far from all that the model was learned from. What follows is extrapolated.`,
  );
}

function impossible() {
  return element(
    "p",
    { class: "warning" },
    "The model gives this combination probability 0: nothing follows from it.",
  );
}

/** What is supposed of is called by its name, the class variable of a mixture too. */
export function evidenceName({ model, mixture }, v) {
  return v === TREE ? mixture.name : titleOf(model, v);
}

function chip(state, view, v) {
  const name = evidenceName(state, v);
  const remove = element(
    "button",
    {
      type: "button",
      class: "remove",
      "aria-label": `Forget ${name} = ${evidenceText(state, v)}`,
      click: () => setEvidence(state, v, undefined),
    },
    "×",
  );
  const what = v === TREE ? nameOf(name) : goButton(state, view, v);
  return element("li", {}, what, " = ", nameOf(evidenceText(state, v)), remove);
}

/** Nodes without evidence by how far they moved. */
export function ranking(state) {
  const { model, change, evidence } = state;
  const nodes = [];
  for (let v = 0; v < model.size; v++) {
    if (!evidence.has(v) && Math.abs(change[v]) > 1e-9) nodes.push(v);
  }
  const power = (v) => greatness(model, change, v);
  return nodes.sort((a, b) => power(b) - power(a) || a - b);
}

function mostChanged(state, view) {
  const { model } = state;
  const lists = element("div", {});
  const fill = () => {
    const isListed = (v) =>
      state.filter === "all" || isHidden(model, v) === (state.filter === "hidden");
    const nodes = ranking(state).filter(isListed);
    const kinds = [1, 0].map((numeric) => nodes.filter((v) => model.numeric[v] === numeric));
    const parts = kinds.flatMap((own, i) =>
      own.length === 0 ? [] : changeList(state, view, own, i === 0),
    );
    const none = element("p", { class: "quiet" }, "Nothing else changes.");
    lists.replaceChildren(...(parts.length > 0 ? parts : [none]));
  };
  fill();
  return element("div", {}, model.size > model.observed ? filters(state, fill) : null, lists);
}

/** Numbers, or nodes with states: bar, number and order are the same, which stands above them. */
function changeList(state, view, nodes, isNumbers) {
  const { limits } = state;
  const full = isNumbers ? limits.numbers : limits.states;
  const unit = isNumbers
    ? `Change in standard deviations (σ); a full bar is ${formatNumber(full)} σ.`
    : `Change in percentage points (pp); a full bar is ${formatNumber(100 * full)} pp.`;
  const size = (v) => Math.abs(movedBy(state, v));
  const order = nodes.toSorted((a, b) => size(b) - size(a) || a - b);
  const count = state.selection === null ? LISTED : LISTED_BESIDE;
  return [
    element("p", { class: "quiet" }, unit),
    cutList(order, (v) => changeRow(state, view, v, full), "list changes", count),
  ];
}

/** Buttons that choose whether variables, hidden ones or all are listed. */
function filters(state, fill) {
  const buttons = Object.entries(FILTERS).map(([key, text]) => {
    const press = () => {
      state.filter = key;
      for (const other of buttons) {
        other.setAttribute("aria-pressed", String(other.dataset.filter === key));
      }
      fill();
    };
    return element(
      "button",
      {
        type: "button",
        "data-filter": key,
        "aria-pressed": String(state.filter === key),
        click: press,
      },
      text,
    );
  });
  return element("p", { class: "buttons filters", role: "group", "aria-label": "Listed" }, buttons);
}

function changeRow(state, view, v, full) {
  const { model, change } = state;
  const moved = movedBy(state, v);
  const way = { 1: "up", [-1]: "down", 0: "moved" }[directionOf(model, change, v)];
  return barRow({
    name: goButton(state, view, v),
    note: changeNote(state, v),
    bar: shareBar(Math.abs(moved) / full, null, way),
    figure: model.numeric[v] ? `${formatSigned(moved)} σ` : formatPoints(moved),
  });
}

/** Before and after: means (of ranks medians) "38 → 52", or of a state "yes 4 % → 61 %". */
export function changeNote(state, v) {
  const { model, change, prior, posterior } = state;
  if (model.numeric[v]) {
    if (isHidden(model, v)) return change[v] < 0 ? "less than usual" : "more than usual";
    const usual = Math.sqrt(prior.variance[v]);
    return [prior, posterior].map(({ mean }) => formatWithin(mean[v], usual)).join(" → ");
  }
  const k = mostMoved(state, v);
  const i = model.stateStart[v] + k;
  const [before, after] = [prior.probability[i], posterior.probability[i]].map(formatPercent);
  return element("span", {}, nameOf(model.labels(v)[k]), `: ${before} → ${after}`);
}

function plainText(part) {
  return part.textContent ?? part;
}

/** The same for those who listen. */
function spoken(state) {
  const { model, evidence } = state;
  const given = Array.from(
    evidence.keys(),
    (v) => `${evidenceName(state, v)} = ${evidenceText(state, v)}`,
  );
  if (given.length > MOST_CHIPS) given.splice(MOST_CHIPS, Infinity, "…");
  if (!state.posterior.possible) return `Impossible: ${given.join(", ")}`;
  const first = ranking(state).slice(0, 3);
  const moved = first.map((v) => `${titleOf(model, v)} ${plainText(changeNote(state, v))}`);
  return `Suppose ${given.join(", ")}. Most changed: ${moved.join(", ")}.`;
}
