// The path between two nodes: what lies on it, how strong it is, and what blocks it.

import { element, nameOf } from "./dom.js";
import { cellProbabilities, influence, pathTable } from "./influence.js";
import { edgesAlong, pathBetween } from "./layout.js";
import { counted, goButton, section } from "./lists.js";
import { modelEdge, shownStrength, titleOf } from "./model.js";
import { directionText, formatStrength, strengthName, strengthRow } from "./nodes.js";
import { formatBits, formatPercent, strengthWord } from "./numbers.js";
import { paneName } from "./pair.js";
import { setHover } from "./state.js";

export function pathParts(state, view, [a, b]) {
  const { model } = state;
  const path = pathBetween(state, a, b);
  const heading = [
    paneName(state),
    element("p", { class: "kind" }, "Path"),
    element("h2", {}, goButton(state, view, a), " to ", goButton(state, view, b)),
  ];
  if (path.length === 0) {
    return [...heading, element("p", {}, "They are in different trees, and independent.")];
  }
  const { strength, bits } = influence(model, a);
  const name = strengthName(model, a, b);
  const shown = shownStrength(model, a, b, strength[b]);
  const way = directionText(model, a, b, shown);
  const tables =
    model.isGaussian || model.numeric[a] || model.numeric[b] ? [] : [joint(state, path)];
  return [
    ...heading,
    element(
      "dl",
      { class: "facts" },
      element("dt", {}, "Dependence"),
      element("dd", {}, strengthWord(shown)),
      element("dt", {}, name[0].toUpperCase() + name.slice(1)),
      element("dd", { class: "figures" }, formatStrength(model, a, b, shown, 4)),
      way ? [element("dt", {}, "Direction"), element("dd", {}, way)] : null,
      element("dt", {}, "Information"),
      element("dd", { class: "figures" }, formatBits(bits[b])),
    ),
    blocking(state, view, path),
    section(`The way: ${counted(path.length - 1, "edge")}`, stepList(state, view, path)),
    ...tables,
  ];
}

/** What is known on the way cuts it; otherwise what would. */
function blocking(state, view, path) {
  const inner = path.slice(1, -1);
  const known = inner.filter((v) => state.evidence.has(v));
  if (known.length > 0) {
    return element(
      "p",
      { class: "warning" },
      "Blocked: ",
      ...known.flatMap((v, i) => [i > 0 ? ", " : "", goButton(state, view, v)]),
      " is supposed, so that the ends say nothing about each other.",
    );
  }
  const text =
    inner.length === 0
      ? "They are neighbors: nothing else that is known makes them independent."
      : "Once any node between them is known, they say nothing about each other.";
  return element("p", { class: "quiet" }, text);
}

function stepList(state, view, path) {
  const edges = edgesAlong(state, path);
  const strength = (edge) => state.strengths.drawn[modelEdge(state, edge)];
  const weakest = Math.min(...edges.map((edge) => Math.abs(strength(edge))));
  const rows = path.map((v, i) => {
    if (i === 0) return element("li", {}, goButton(state, view, v));
    const own = strength(edges[i - 1]);
    const isWeakest = path.length > 2 && Math.abs(own) === weakest;
    const note = isWeakest ? `${strengthWord(own)}, the weakest` : strengthWord(own);
    const row = strengthRow(state, view, path[i - 1], v, own, note);
    row.addEventListener("mouseenter", () => setHover(state, { edge: edges[i - 1] }));
    row.addEventListener("mouseleave", () => setHover(state, null));
    return row;
  });
  return element("ol", { class: "list" }, rows);
}

/** The table of P(a, b), one row a state of a. */
function joint({ model }, path) {
  const [a, b] = [path[0], path.at(-1)];
  const given = pathTable(model, path);
  const own = cellProbabilities(model, a);
  const columns = model.labels(b);
  const head = columns.map((label) => element("th", { scope: "col" }, nameOf(label)));
  const rows = model.labels(a).map((label, i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, nameOf(label)),
      columns.map((_, j) => {
        const p = own[i] * given[i * columns.length + j];
        const cell = element("td", { class: "figures" }, formatPercent(p));
        cell.style.setProperty("--share", p.toFixed(4));
        return cell;
      }),
    ),
  );
  return element(
    "figure",
    {},
    element("figcaption", {}, nameOf(titleOf(model, a)), " and ", nameOf(titleOf(model, b))),
    element(
      "div",
      { class: "scroll", tabindex: 0 },
      element(
        "table",
        {},
        element("thead", {}, element("tr", {}, element("td", {}), head)),
        element("tbody", {}, rows),
      ),
    ),
  );
}
