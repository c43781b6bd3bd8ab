// The panel when nothing is selected: what the tree is, and its hidden variables.

import { element } from "./dom.js";
import { counted, cutList, goButton, section } from "./lists.js";
import { treeName } from "./mixture.js";
import { formatPercent } from "./numbers.js";
import { rowOverview } from "./rows.js";
import { learnedCard, sureness } from "./sureness.js";

const MOST_SIZES = 4;

export function overview(state, view) {
  const { model } = state;
  const hidden = model.size - model.observed;
  const counts = `${counted(model.observed, "variable")}, ${hidden.toLocaleString("en")} hidden`;
  return [
    element("h2", { class: "kind" }, treeName(state) || "The tree"),
    element(
      "p",
      {},
      `${counts}. Filled dots are variables of the data; hollow ones are hidden variables that tie them together. Wider, darker edges are stronger.`,
    ),
    element(
      "p",
      { class: "quiet hint" },
      "Click a node or an edge to understand it; set a value to see what follows from it. Double-click folds a branch. Arrow keys walk the tree, / searches, Esc clears.",
    ),
    sureness(state),
    hidden > 0
      ? section(
          "Hidden variables",
          element(
            "p",
            { class: "quiet" },
            "Called by the variables that they tell most about, until you name them.",
          ),
          hiddenList(state, view),
        )
      : null,
    rowOverview(state),
    learnedCard(state),
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
      { class: "named" },
      goButton(state, view, v),
      element("span", { class: "quiet about" }, aboutHidden(state, v)),
    ),
  );
}

/** Which hidden variable it is, and how large its states are: "h14 · 91 %, 9 %". */
export function aboutHidden({ model, prior }, v) {
  const sure = model.support ? model.support.hidden[v - model.observed] : Number.NaN;
  const found = Number.isNaN(sure) ? "" : ` · found again in ${formatPercent(sure)}`;
  const id = model.ownNames[v];
  if (model.numeric[v]) return `${id}${found}`;
  const sizes = prior.probability.subarray(model.stateStart[v], model.stateStart[v + 1]);
  if (sizes.length > MOST_SIZES) return `${id} · ${counted(sizes.length, "state")}${found}`;
  const most = Array.from(sizes, formatPercent).join(", ");
  return `${id} · ${most}${found}`;
}
