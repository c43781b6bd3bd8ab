// How sure the tree is, and how it was learned.

import { element } from "./dom.js";
import { counted, section } from "./lists.js";
import { edgeSupport, isDoubtful, isHidden } from "./model.js";
import { formatPercent } from "./numbers.js";
import { setDoubt } from "./state.js";

const FAMILIES = {
  gaussian: "numbers",
  discrete: "categories",
  symmetric: "categories that are alike",
  mixed: "numbers and categories",
  copula: "ordered answers and numbers",
};
const MEASURES = {
  "transfer support":
    "100 % if learning again from resampled rows always divides the variables as this edge does; less, the more of them would have to change sides.",
  probability: "The share of the trees that have the split of this edge.",
};

/** What is known of how the model was learned. */
export function learnedCard({ model, mixture }) {
  const facts = learnedFacts(model, mixture?.weights.length);
  return section("How it was learned", ...facts);
}

export function learnedFacts({ about, family }, trees) {
  const whole = (value) => Math.round(value).toLocaleString("en");
  const fixed = (value) =>
    value.toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  const plain = [
    ["Method", about.method],
    ["Kind of data", FAMILIES[family] ?? family],
    ["Trees", trees],
    ["Rows", about.n_samples, whole],
    ["Learned on", about.date],
  ];
  const details = [
    ["Parameters", about.n_parameters, whole],
    ["Log-likelihood", about.log_likelihood, fixed],
    ["BIC score", about.bic_score, fixed],
    ["latentree", about.version],
  ];
  return [
    factList(plain),
    element(
      "details",
      { class: "naming" },
      element("summary", { "data-key": "details" }, "Details"),
      factList(details),
    ),
  ];
}

function factList(facts) {
  const known = facts.filter(([, value]) => value !== undefined);
  const rows = known.flatMap(([name, value, format]) => [
    element("dt", {}, name),
    element(
      "dd",
      { class: "figures" },
      typeof value === "number" && format ? format(value).replace("-", "\u2212") : String(value),
    ),
  ]);
  return element("dl", { class: "facts" }, rows);
}

/** Where the tree has support: what it is, and what is done with edges in doubt. */
export function sureness(state) {
  const { model } = state;
  if (!model.support) return null;
  const { origin, hidden } = model.support;
  const doubtful = hidden.filter((share) => share < 0.5).length;
  const found = doubtful === 0 ? "all hidden variables" : `${counted(doubtful, "hidden variable")}`;
  const verdict =
    doubtful === 0
      ? `${found} are found again in half of them or more.`
      : `${found}, dashed, ${doubtful === 1 ? "is" : "are"} found again in fewer than half of them.`;
  return section("How sure it is", element("p", {}, `By ${origin}: ${verdict}`), doubtTools(state));
}

function doubtTools(state) {
  const { doubt } = state;
  const said = element("p", { class: "quiet", role: "status" });
  const value = element("output", { class: "figures" });
  const say = () => {
    value.textContent = formatPercent(doubt.below);
    said.textContent = doubtText(state);
  };
  const slider = element("input", {
    type: "range",
    min: 0,
    max: 100,
    step: 5,
    value: Math.round(100 * doubt.below),
    "aria-label": "Support in percent under which edges are in doubt",
    "data-key": "doubt",
    input: () => {
      setDoubt(state, { below: Number(slider.value) / 100 });
      say();
    },
  });
  const buttons = [
    ["Fade", false],
    ["Contract", true],
  ].map(([text, contract]) =>
    element(
      "button",
      {
        type: "button",
        "data-key": text,
        "aria-pressed": String(doubt.contract === contract),
        click: () => {
          setDoubt(state, { contract });
          for (const button of buttons) {
            button.setAttribute("aria-pressed", String(button.dataset.key === text));
          }
          say();
        },
      },
      text,
    ),
  );
  say();
  return element(
    "div",
    { class: "ask" },
    element("div", { class: "row" }, element("span", {}, "Edges with support under"), value),
    slider,
    element(
      "div",
      { class: "buttons filters", role: "group", "aria-label": "Edges in doubt" },
      buttons,
    ),
    said,
  );
}

function doubtText(state) {
  const { tree, doubt, clusters } = state;
  const values = Array.from(tree.order, (v) => edgeSupport(state, v));
  const said = values.filter((value) => !Number.isNaN(value)).length;
  const under = values.filter((value) => value < doubt.below).length;
  const gone = clusters ? clusters.top.filter((top, v) => top !== v).length : 0;
  const done = doubt.contract ? `, ${gone.toLocaleString("en")} contracted` : "";
  return `${under.toLocaleString("en")} of ${counted(said, "edge")} that split groups${done}.`;
}

/** Facts about an edge, as names and values. */
export function edgeSupportFacts(state, v, edge) {
  const { support } = state.model;
  const value = edgeSupport(state, v);
  if (!support || Number.isNaN(value)) return [];
  const title = MEASURES[support.measure];
  return [
    element("dt", { title }, support.measure[0].toUpperCase() + support.measure.slice(1)),
    element("dd", { class: "figures", title }, formatPercent(value)),
    element("dt", {}, "Divides the variables in the same way"),
    element(
      "dd",
      { class: "figures" },
      `${formatPercent(support.splits[edge])} of ${support.replicates.toLocaleString("en")} trees`,
    ),
  ];
}

/** How sure a node is, in a sentence; nothing where the model does not say. */
export function nodeSupport({ model }, v) {
  const { support } = model;
  if (!support) return null;
  const trees = support.origin;
  if (!isHidden(model, v)) {
    const kept = support.variables[v];
    if (Number.isNaN(kept)) return null;
    return element(
      "p",
      { class: "quiet" },
      `It stands beside ${formatPercent(kept)} of the same neighbors in ${trees}.`,
    );
  }
  const share = support.hidden[v - model.observed];
  const text = `Found again in ${formatPercent(share)} of ${trees}`;
  return isDoubtful(model, v)
    ? element("p", { class: "warning" }, `${text}: doubtful.`)
    : element("p", { class: "quiet" }, `${text}.`);
}
