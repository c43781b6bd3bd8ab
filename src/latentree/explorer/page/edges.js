// The panel of an edge: how strong it is, and its tables.

import { element, nameOf } from "./dom.js";
import { emissionVariance } from "./emissions.js";
import { nearestPoint } from "./grid.js";
import { edgeTable, influence } from "./influence.js";
import { goButton } from "./lists.js";
import { isOnGrid, modelEdge, rankMargin, titleOf } from "./model.js";
import { directionText, formatStrength, strengthName } from "./nodes.js";
import { formatBits, formatNumber, formatPercent, formatSigned, strengthWord } from "./numbers.js";
import { paneName } from "./pair.js";
import { edgeSupportFacts } from "./sureness.js";

export function edgeParts(state, view, v) {
  const { model, tree, strengths } = state;
  const above = tree.parent[v];
  const strength = strengths.drawn[modelEdge(state, v)];
  const differs = state.pair?.differs[modelEdge(state, v)] === 1;
  const sure = edgeSupportFacts(state, v, modelEdge(state, v));
  const facts = model.isGaussian
    ? correlationFacts(model, above, v, strength, sure)
    : stateFacts(state, above, v, strength, sure);
  return [
    paneName(state),
    element("p", { class: "kind" }, differs ? "Edge, in this tree only" : "Edge"),
    element("h2", {}, goButton(state, view, above), " — ", goButton(state, view, v)),
    ...facts,
  ];
}

function correlationFacts(model, a, b, rho, sure) {
  const bits = -0.5 * Math.log2((1 - rho) * (1 + rho));
  const row = (what, value) => [
    element("dt", {}, what),
    element("dd", { class: "figures" }, value),
  ];
  const way = rho < 0 ? "lower" : "higher";
  return [
    element(
      "dl",
      { class: "facts" },
      element("dt", {}, "Dependence"),
      element("dd", {}, strengthWord(rho)),
      row("Correlation", formatSigned(rho, 4)),
      row("Shared variance", formatPercent(rho * rho)),
      row("Information", formatBits(bits)),
      sure,
    ),
    element(
      "p",
      {},
      "When ",
      nameOf(titleOf(model, a)),
      " is 1 σ higher, ",
      nameOf(titleOf(model, b)),
      ` is on average ${formatNumber(Math.abs(rho))} σ ${way}.`,
    ),
  ];
}

function stateFacts(state, a, b, strength, sure) {
  const { model } = state;
  const found = influence(model, a);
  const way = directionText(model, a, b, strength);
  const name = strengthName(model, a, b);
  const tables = tablesOf(model, a, b);
  return [
    element(
      "dl",
      { class: "facts" },
      element("dt", {}, "Dependence"),
      element("dd", {}, strengthWord(strength)),
      element("dt", {}, name[0].toUpperCase() + name.slice(1)),
      element("dd", { class: "figures" }, formatStrength(model, a, b, strength, 4)),
      way ? [element("dt", {}, "Direction"), element("dd", {}, way)] : null,
      element("dt", {}, "Information"),
      element("dd", { class: "figures" }, formatBits(found.bits[b])),
      sure,
    ),
    ...tables,
  ];
}

function tablesOf(model, a, b) {
  const emits = (v) => model.emissions[v] !== undefined;
  if (emits(a) || emits(b)) return [momentTable(model, ...(emits(b) ? [a, b] : [b, a]))];
  if (isOnGrid(model, a) && isOnGrid(model, b)) return [];
  if (isOnGrid(model, a)) return [conditionalTable(model, a, b)];
  if (isOnGrid(model, b)) return [conditionalTable(model, b, a)];
  return [conditionalTable(model, a, b), conditionalTable(model, b, a)];
}

/** The states of a node that tables have rows for: of a hidden number, some points. */
function rowsOf(model, v) {
  if (!isOnGrid(model, v)) return model.labels(v).map((label, k) => [label, k]);
  return [-2, -1, 0, 1, 2].map((at) => {
    const k = nearestPoint(model, at);
    return [formatSigned(model.points[k], 1), k];
  });
}

/** Mean and standard deviation of a number for every state of its neighbor. */
function momentTable(model, from, to) {
  const emission = model.emissions[to];
  const cells = (values) =>
    values.map((value) => element("td", { class: "figures" }, formatNumber(value)));
  const rows = rowsOf(model, from).map(([label, k]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, nameOf(label)),
      cells([emission.mean[k], Math.sqrt(emissionVariance(emission, k))]),
    ),
  );
  const ranks = rankMargin(model, to);
  const head = (ranks ? ["median", "spread"] : ["mean", "deviation"]).map((text) =>
    element("th", { scope: "col" }, text),
  );
  return tableFigure(model, from, to, element("tr", {}, element("td", {}), head), rows);
}

/** The table of P(to | from), one row a state of `from`. */
function conditionalTable(model, from, to) {
  const table = edgeTable(model, from, to);
  const columns = model.labels(to);
  const head = element(
    "tr",
    {},
    element("td", {}),
    columns.map((label) => element("th", { scope: "col" }, nameOf(label))),
  );
  const rows = rowsOf(model, from).map(([label, i]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, nameOf(label)),
      columns.map((_, j) => {
        const p = table[i * columns.length + j];
        const cell = element("td", { class: "figures" }, formatPercent(p));
        cell.style.setProperty("--share", p.toFixed(4));
        return cell;
      }),
    ),
  );
  return tableFigure(model, from, to, head, rows);
}

function tableFigure(model, from, to, head, rows) {
  return element(
    "figure",
    {},
    element("figcaption", {}, nameOf(titleOf(model, to)), " given ", nameOf(titleOf(model, from))),
    element(
      "div",
      { class: "scroll", tabindex: 0 },
      element("table", {}, element("thead", {}, head), element("tbody", {}, rows)),
    ),
  );
}
