// The panel of a node: its name, distribution, relatives and neighbors.

import { distribution } from "./asking.js";
import { shareBar, sideBar } from "./charts.js";
import { element, nameOf } from "./dom.js";
import { influence } from "./influence.js";
import { barRow, cutList, goButton, section } from "./lists.js";
import {
  groupText,
  haveSign,
  isCorrelation,
  isHidden,
  modelEdge,
  shownStrength,
  titleOf,
} from "./model.js";
import { nameField, nameTools } from "./naming.js";
import { formatPercent, formatSigned, strengthWord } from "./numbers.js";
import { aboutHidden } from "./overview.js";
import { paneName } from "./pair.js";
import { profileSection } from "./profile.js";
import { rowSections } from "./rows.js";
import { select, showNear, toggleFold } from "./state.js";
import { nodeSupport } from "./sureness.js";

const TURNED =
  "The picture takes state 0 of this variable as the high one: which of two hidden states counts " +
  "as high is a matter of convention, and so fewer edges are negative.";
const FEW_NODES = 40; // that are seen at a glance without a view of a neighborhood
const LEAST = 0.005; // strengths below are 0.00
const MOST_ROWS = 12; // of a table before more are asked for
const KINDS = { real: "real number", count: "count", ordered: "ordered", category: "category" };

export function nodeParts(state, view, v) {
  const { model } = state;
  const hidden = isHidden(model, v);
  return [
    paneName(state),
    element(
      "p",
      { class: "kind" },
      hidden
        ? `Hidden variable · ${aboutHidden(state, v)}`
        : `Variable${kindText(model, v)}${groupText(model, v, " · ")}`,
    ),
    hidden ? nameField(state, v) : element("h2", {}, nameOf(titleOf(model, v))),
    nodeSupport(state, v),
    state.strengths.turned[v] < 0 ? element("p", { class: "quiet" }, TURNED) : null,
    hidden ? nameTools(state, v) : null,
    buttons(state, view, v),
    hidden && !model.numeric[v]
      ? profileSection(state, v)
      : section("Distribution", ...distribution(state, v)),
    hidden && model.numeric[v] ? loadings(state, view, v) : relatives(state, view, v),
    ...rowSections(state, v),
    section("Neighbors", neighborList(state, view, v)),
  ];
}

function kindText({ kinds }, v) {
  return new Set(kinds).size > 1 ? ` · ${KINDS[kinds[v]]}` : "";
}

function buttons(state, view, v) {
  const { tree, folded } = state;
  const inner = tree.childStart[v + 1] > tree.childStart[v];
  const count = (tree.size[v] - 1).toLocaleString("en");
  const fold = folded[v] ? `Unfold branch (${count})` : `Fold branch (${count})`;
  return element(
    "p",
    { class: "buttons" },
    element("button", { type: "button", click: () => view.flyToNode(v) }, "Go there"),
    pathButton(state, v),
    inner
      ? element(
          "button",
          { type: "button", "data-key": "fold", click: () => toggleFold(state, v) },
          fold,
        )
      : null,
    state.model.size > FEW_NODES
      ? element(
          "button",
          {
            type: "button",
            "data-key": "near",
            "aria-pressed": String(state.near === v),
            click: () => showNear(state, state.near === v ? -1 : v),
          },
          "Neighborhood",
        )
      : null,
  );
}

/** Waits for the other end of a path: the next node that is chosen, by whatever means. */
function pathButton(state, v) {
  const button = element(
    "button",
    {
      type: "button",
      "data-key": "path",
      "aria-pressed": String(state.pathFrom === v),
      title: "Or click the other node with Shift",
      click: () => {
        state.pathFrom = state.pathFrom === v ? -1 : v;
        button.setAttribute("aria-pressed", String(state.pathFrom === v));
        button.textContent = state.pathFrom === v ? "Choose the other end" : "Path to…";
      },
    },
    state.pathFrom === v ? "Choose the other end" : "Path to…",
  );
  return button;
}

/** Other variables by how strongly they depend on this one, and their strengths. */
function dependents({ model }, v) {
  const { strength } = influence(model, v);
  const nodes = Array.from({ length: model.observed }, (_, u) => u).filter(
    (u) => u !== v && Math.abs(strength[u]) >= LEAST,
  );
  nodes.sort((a, b) => Math.abs(strength[b]) - Math.abs(strength[a]) || a - b);
  return { nodes, strength };
}

/** A hidden number by its correlations with variables: a table, with bars from a middle line. */
function loadings(state, view, v) {
  const { model } = state;
  const { nodes, strength } = dependents(state, v);
  if (nodes.length === 0) {
    return section("Loadings", element("p", { class: "quiet" }, "No variable depends on it."));
  }
  const row = (u) => {
    const value = shownStrength(model, v, u, strength[u]);
    return element(
      "tr",
      {},
      element("th", { scope: "row" }, goButton(state, view, u)),
      element("td", { class: "loading" }, sideBar(value)),
      element("td", { class: "figures" }, formatSigned(value, 2)),
      element("td", { class: "figures" }, formatPercent(value * value)),
    );
  };
  const head = ["Variable", "", "Loading", "Shared"].map((text) =>
    text ? element("th", { scope: "col" }, text) : element("td", {}),
  );
  const body = element("tbody", {}, nodes.slice(0, MOST_ROWS).map(row));
  const more = element("button", { type: "button", class: "more" });
  more.textContent = `Show more (${(nodes.length - MOST_ROWS).toLocaleString("en")})`;
  more.addEventListener("click", () => {
    body.append(...nodes.slice(MOST_ROWS).map(row));
    more.remove();
  });
  return section(
    "Loadings",
    element(
      "p",
      { class: "quiet" },
      "Correlations with it, from −1 to +1, and the share of each variable’s variance that they share.",
    ),
    element("table", { class: "loadings" }, element("thead", {}, element("tr", {}, head)), body),
    nodes.length > MOST_ROWS ? more : null,
  );
}

/** Other variables by how strongly they depend on this one. */
function relatives(state, view, v) {
  const { model } = state;
  const { nodes, strength } = dependents(state, v);
  const row = (u) => strengthRow(state, view, v, u, shownStrength(model, v, u, strength[u]));
  const title = isHidden(model, v) ? "Tied to" : "Nearest relatives";
  const kinds = new Set(nodes.map((u) => strengthName(model, v, u)));
  const what = kinds.size === 1 ? [...kinds][0] : "strength of dependence";
  const about = nodes.length > 0 ? `By ${what}, from 0 to 1.` : "No variable depends on it.";
  return section(title, element("p", { class: "quiet" }, about), cutList(nodes, row));
}

/** A neighbor or relative of a node: the strength of their dependence as bar, number and word. */
export function strengthRow(state, view, v, u, strength, note = strengthWord(strength)) {
  const { model } = state;
  const opposite = strength < 0 && !isCorrelation(model, v, u) ? ", opposite" : "";
  return barRow({
    name: goButton(state, view, u),
    note: note + opposite,
    bar: shareBar(Math.abs(strength), null, strength < 0 ? "negative" : ""),
    figure: formatStrength(model, v, u, strength),
    title: strengthName(model, v, u),
  });
}

/** What the strength of two nodes is: by whether they hold numbers or states. */
export function strengthName(model, a, b) {
  if (model.points || isCorrelation(model, a, b)) return "correlation";
  const numbers = model.numeric[a] + model.numeric[b];
  return numbers === 1 ? "correlation ratio" : "association (Cramér’s V)";
}

/** The strength of two nodes; a correlation has its sign, other measures none. */
export function formatStrength(model, a, b, value, digits = 2) {
  return isCorrelation(model, a, b) ? formatSigned(value, digits) : Math.abs(value).toFixed(digits);
}

/** Whether two nodes rise together, where the measure of their strength does not say so. */
export function directionText(model, a, b, value) {
  if (!haveSign(model, a, b) || isCorrelation(model, a, b)) return "";
  return value < 0 ? "opposite: one is high where the other is low" : "both are high together";
}

function neighborList(state, view, v) {
  const { tree, strengths } = state;
  const around = Array.from(tree.child.subarray(tree.childStart[v], tree.childStart[v + 1]));
  if (tree.parent[v] >= 0) around.push(tree.parent[v]);
  const outer = (u) => (tree.parent[u] === v ? u : v);
  const strength = (u) => strengths.drawn[modelEdge(state, outer(u))];
  around.sort((a, b) => Math.abs(strength(b)) - Math.abs(strength(a)));
  const edgeButton = (u) =>
    element(
      "button",
      { class: "edge", type: "button", click: () => select(state, { edge: outer(u) }) },
      "edge",
    );
  return cutList(around, (u) => {
    const row = strengthRow(state, view, v, u, strength(u));
    row.querySelector(".about").append(edgeButton(u));
    return row;
  });
}
