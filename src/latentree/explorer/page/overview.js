// The panel when nothing is selected: what the tree is, and its hidden variables.

import { element, nameOf } from "./dom.js";
import { counted, cutList, goButton, section } from "./lists.js";
import { isHidden, neighbors } from "./model.js";

export function overview(state, view) {
  const { model } = state;
  const hidden = model.size - model.observed;
  const counts = `${counted(model.observed, "variable")}, ${hidden.toLocaleString("en")} hidden`;
  return [
    element("p", { class: "kind" }, "The tree"),
    element(
      "p",
      {},
      `${counts}. Filled dots are variables of the data; hollow ones are hidden variables that tie them together. Wider, darker edges are stronger.`,
    ),
    element(
      "p",
      { class: "quiet" },
      "Click a node or an edge to understand it; set a value to see what follows from it. Double-click folds a branch. Arrow keys walk the tree, / searches, Esc clears.",
    ),
    hidden > 0 ? section("Hidden variables", hiddenList(state, view)) : null,
  ];
}

function hiddenList(state, view) {
  const { model, tree } = state;
  const nodes = Array.from({ length: model.size - model.observed }, (_, i) => model.observed + i);
  const weight = (v) => tree.childStart[v + 1] - tree.childStart[v] + tree.size[v] / model.size;
  nodes.sort((a, b) => weight(b) - weight(a) || a - b);
  return cutList(nodes, (v) =>
    element(
      "li",
      {},
      goButton(state, view, v),
      element("span", { class: "quiet speaks" }, ...spokenFor(state, v)),
    ),
  );
}

/** The variables next to a hidden node, the strongest first, as a few words. */
export function spokenFor(state, v) {
  const { model, strengths } = state;
  const edge = (u) => (model.parent[u] === v ? u : v);
  const strength = (u) => Math.abs(strengths.signed[edge(u)]);
  const around = neighbors(model, v).sort((a, b) => strength(b) - strength(a));
  const variables = around.filter((u) => !isHidden(model, u));
  const chosen = variables.length > 0 ? variables : around;
  const words = chosen.slice(0, 4).flatMap((u, i) => [i > 0 ? ", " : "", nameOf(model.names[u])]);
  return chosen.length > 4 ? [...words, ` +${chosen.length - 4}`] : words;
}
