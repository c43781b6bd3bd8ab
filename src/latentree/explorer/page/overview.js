// The panel when nothing is selected: what the tree is, and its hidden variables.

import { element } from "./dom.js";
import { counted, cutList, goButton, section } from "./lists.js";
import { treeName } from "./mixture.js";
import { neighbors, titleOf } from "./model.js";
import { formatPercent } from "./numbers.js";
import { questionSection } from "./questions.js";
import { rowOverview } from "./rows.js";
import { learnedCard, sureness } from "./sureness.js";

const MOST_SIZES = 4;
const MOST_LONERS = 8;
const WEAKEST = 0.05; // strengths below count as none

export function overview(state, view) {
  const { model } = state;
  const hidden = model.size - model.observed;
  const counts = `${counted(model.observed, "variable")}, ${hidden.toLocaleString("en")} hidden`;
  return [
    element("h2", { class: "kind" }, treeName(state) || "The tree"),
    isNoise(model)
      ? element("p", { class: "noise" }, noiseText(model))
      : element(
          "p",
          {},
          `${counts}. Filled dots are variables of the data; hollow ones are hidden variables that tie them together. Wider, darker edges are stronger.`,
        ),
    loners(model),
    questionSection(state, view),
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

/** Whether nothing depends on anything else that could be seen. */
function isNoise({ strengths, observed }) {
  return observed > 1 && strengths.drawn.every((strength) => Math.abs(strength) < WEAKEST);
}

function noiseText({ observed }) {
  return `No dependence was found. As far as these data show, the ${counted(observed, "variable")} have nothing to do with each other: each dot stands for itself, and what is known of one says nothing about another.`;
}

/** Variables that depend on nothing else, where others do. */
function loners(model) {
  const alone = Array.from({ length: model.observed }, (_, v) => v).filter(
    (v) => neighbors(model, v).length === 0,
  );
  if (alone.length === 0 || isNoise(model)) return null;
  const names = alone.slice(0, MOST_LONERS).map((v) => titleOf(model, v));
  const more = alone.length > names.length ? ", …" : "";
  const are = alone.length === 1 ? "depends" : "depend";
  return element(
    "p",
    { class: "quiet" },
    `${counted(alone.length, "variable")} ${are} on no other: ${names.join(", ")}${more}.`,
  );
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
