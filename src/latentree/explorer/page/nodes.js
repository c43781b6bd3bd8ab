// The panel of a node: its name, distribution, relatives and neighbors.

import { distribution } from "./asking.js";
import { shareBar } from "./charts.js";
import { element, nameOf } from "./dom.js";
import { influence } from "./influence.js";
import { cutList, goButton, section } from "./lists.js";
import { groupText, haveSign, isHidden, titleOf } from "./model.js";
import { nameField, nameTools } from "./naming.js";
import { formatBits, formatSigned } from "./numbers.js";
import { aboutHidden } from "./overview.js";
import { paneName } from "./pair.js";
import { rowSections } from "./rows.js";
import { modelEdge } from "./scene.js";
import { select, toggleFold } from "./state.js";
import { nodeSupport } from "./sureness.js";

const TURNED =
  "The picture takes state 0 of this variable as the high one: which of two hidden states counts " +
  "as high is a matter of convention, and so fewer edges are negative.";
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
    section("Distribution", ...distribution(state, v)),
    ...relatives(state, view, v),
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

/** Other variables by what they tell about this one. */
function relatives(state, view, v) {
  const { model } = state;
  const found = influence(model, v);
  const nodes = Array.from({ length: model.observed }, (_, u) => u).filter(
    (u) => u !== v && found.bits[u] > 1e-6,
  );
  nodes.sort((a, b) => found.bits[b] - found.bits[a] || a - b);
  const most = nodes.length > 0 ? found.bits[nodes[0]] : 1;
  const row = (u) =>
    element(
      "li",
      {},
      goButton(state, view, u),
      shareBar(found.bits[u] / most, null, found.strength[u] < 0 ? "negative" : ""),
      element(
        "span",
        { class: "figures", title: strengthName(model, v, u) },
        formatStrength(model, v, u, found.strength[u]),
      ),
      element("span", { class: "figures quiet" }, formatBits(found.bits[u])),
    );
  const title = isHidden(model, v) ? "Tied to" : "Nearest relatives";
  const kinds = new Set(nodes.map((u) => strengthName(model, v, u)));
  const what = kinds.size === 1 ? [...kinds][0] : "strength";
  return [
    section(
      title,
      element("p", { class: "quiet" }, `By ${what}, and the information each gives about it.`),
      cutList(nodes, row),
    ),
  ];
}

/** What the strength of two nodes is: by whether they hold numbers or states. */
export function strengthName({ numeric, points }, a, b) {
  if (points) return "correlation";
  const numbers = numeric[a] + numeric[b];
  return ["association (Cramér’s V)", "correlation ratio", "correlation"][numbers];
}

/** The strength of two nodes, with its sign if there is one. */
export function formatStrength(model, a, b, value, digits = 2) {
  return haveSign(model, a, b) ? formatSigned(value, digits) : value.toFixed(digits);
}

function neighborList(state, view, v) {
  const { model, tree, strengths } = state;
  const around = Array.from(tree.child.subarray(tree.childStart[v], tree.childStart[v + 1]));
  if (tree.parent[v] >= 0) around.push(tree.parent[v]);
  const outer = (u) => (tree.parent[u] === v ? u : v);
  const strength = (u) => strengths.signed[modelEdge(state, outer(u))];
  around.sort((a, b) => Math.abs(strength(b)) - Math.abs(strength(a)));
  return cutList(around, (u) =>
    element(
      "li",
      {},
      goButton(state, view, u),
      shareBar(Math.abs(strength(u)), null, strength(u) < 0 ? "negative" : ""),
      element("span", { class: "figures" }, formatStrength(model, v, u, strength(u))),
      element(
        "button",
        { class: "edge", type: "button", click: () => select(state, { edge: outer(u) }) },
        "edge",
      ),
    ),
  );
}
