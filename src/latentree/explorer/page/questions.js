// Questions about this very model, for those who see such a page for the first time.

import { element, nameOf } from "./dom.js";
import { atSigmas, highState } from "./inference.js";
import { influence } from "./influence.js";
import { section } from "./lists.js";
import { isHidden, nearestValue, neighbors, titleOf } from "./model.js";
import { select, setEvidence } from "./state.js";

const CANDIDATES = 8; // variables among which the most telling one is looked for
const FALL = -2; // standard deviations
const TOLD = 0.1; // correlation from which two variables are worth a question

export function questionSection(state, view) {
  const { model } = state;
  const first = mostTelling(model);
  if (!first) return null;
  const asked = [suppose(state, first), common(model), related(state, first)].filter(Boolean);
  const buttons = asked.map(({ text, ask }, i) => {
    const press = () => {
      ask(state);
      const node = state.selection?.node ?? -1;
      if (node >= 0) view.bringIntoSight(node);
    };
    return element(
      "li",
      {},
      element("button", { type: "button", "data-key": `question${i}`, click: press }, text),
    );
  });
  return section("Try", element("ul", { class: "questions" }, buttons));
}

/** The variable that tells most about others, among those with the strongest edges. */
function mostTelling(model) {
  const { drawn } = model.strengths;
  const edge = (v) =>
    Math.max(...neighbors(model, v).map((u) => Math.abs(drawn[model.parent[u] === v ? u : v])));
  const tied = Array.from({ length: model.observed }, (_, v) => v).filter(
    (v) => neighbors(model, v).length > 0,
  );
  const power = new Map(tied.map((v) => [v, edge(v)]));
  tied.sort((a, b) => power.get(b) - power.get(a) || a - b);
  const found = tied.slice(0, CANDIDATES).map((v) => ({ v, ...influence(model, v) }));
  const told = ({ strength }) => strength.reduce((sum, value) => sum + Math.abs(value), 0);
  const best = found.sort((a, b) => told(b) - told(a) || a.v - b.v)[0];
  return best && told(best) > 1 + TOLD ? best : null;
}

function suppose(state, { v }) {
  const { model } = state;
  const name = nameOf(titleOf(model, v));
  if (model.numeric[v]) {
    const value = nearestValue(model, v, atSigmas(state, v, FALL));
    const text = ["If ", name, " falls by 2 σ, what happens to the others?"];
    return { text, ask: () => supposeAt(state, v, value) };
  }
  const k = model.states[v] === 2 ? highState(model, v) : model.states[v] - 1;
  const text = ["If ", name, " is ", nameOf(model.labels(v)[k]), ", what else changes?"];
  return { text, ask: () => supposeAt(state, v, k) };
}

function supposeAt(state, v, value) {
  select(state, { node: v });
  setEvidence(state, v, value);
}

/** The hidden variable with most neighbors. */
function common(model) {
  let best = -1;
  const count = (v) => neighbors(model, v).filter((u) => !isHidden(model, u)).length;
  for (let v = model.observed; v < model.size; v++) {
    if (best < 0 || count(v) > count(best)) best = v;
  }
  const words = best < 0 ? [] : neighbors(model, best).filter((u) => !isHidden(model, u));
  if (words.length < 2) return null;
  const names = words
    .slice(0, 3)
    .flatMap((u, i, all) => [
      i === 0 ? "" : i === all.length - 1 ? " and " : ", ",
      nameOf(titleOf(model, u)),
    ]);
  const text = ["What do ", ...names, " have in common?"];
  return { text, ask: (state) => select(state, { node: best }) };
}

/** A variable that is no neighbor of a neighbor, but depends on the first. */
function related({ model }, { v, strength }) {
  const near = new Set(neighbors(model, v).flatMap((u) => [u, ...neighbors(model, u)]));
  let best = -1;
  for (let u = 0; u < model.observed; u++) {
    if (u === v || near.has(u) || Math.abs(strength[u]) < TOLD) continue;
    if (best < 0 || Math.abs(strength[u]) > Math.abs(strength[best])) best = u;
  }
  if (best < 0) return null;
  const text = [
    "How are ",
    nameOf(titleOf(model, v)),
    " and ",
    nameOf(titleOf(model, best)),
    " related?",
  ];
  return { text, ask: (state) => select(state, { path: [v, best] }) };
}
