// Arrows walk the tree, / searches, Esc clears.

import { byId } from "./dom.js";
import { clearEvidence, select, selectedNode, setKind, toggleFold } from "./state.js";

const DIRECTIONS = {
  ArrowRight: [1, 0],
  ArrowLeft: [-1, 0],
  ArrowDown: [0, 1],
  ArrowUp: [0, -1],
};

const NEXT = { radial: "layered", layered: "lengths", lengths: "radial" };

export function createKeyboard(panes) {
  // The pane with the focus, or the one that the panel is about.
  const current = () =>
    panes.find(({ view }) => view.canvas === document.activeElement) ??
    panes.find(({ state }) => !state.inactive);
  const keysOf = ({ state, view }) => ({
    "/": () => byId("search").focus(),
    "?": () => byId("help").showModal(),
    Escape: () => clear(state, view),
    f: () => selectedNode(state) >= 0 && toggleFold(state, selectedNode(state)),
    l: () => setKind(panes[0].state, NEXT[state.kind]),
    "+": () => view.zoom(1.3),
    "=": () => view.zoom(1.3),
    "-": () => view.zoom(1 / 1.3),
    0: () => view.fit(),
    Enter: () => selectedNode(state) >= 0 && view.flyToNode(selectedNode(state)),
  });
  document.addEventListener("keydown", (event) => {
    if (isForOthers(event)) return;
    const { state, view } = current();
    const keys = keysOf({ state, view });
    if (event.key in DIRECTIONS) walk(state, view, DIRECTIONS[event.key]);
    else if (event.key in keys) keys[event.key]();
    else return;
    event.preventDefault();
  });
}

/** Whether a key belongs to what has the focus: a field, a button, the panel's own scrolling. */
function isForOthers(event) {
  const { target, key } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return true;
  if (key === "Escape") return false;
  if (target.matches("input[type=range]")) return key !== "/";
  if (target.matches("input, textarea, select")) return true;
  if (key === "Enter") return target.matches("button, summary, a");
  return key in DIRECTIONS && target.closest("aside, header, #outline-box") !== null;
}

/** What is typed is taken back, an open menu or list closed; then the selection goes, then evidence. */
function clear(state, view) {
  const field = document.activeElement;
  if (field?.matches("input:not([type=range]), textarea")) {
    field.value = field.defaultValue;
    view.canvas.focus({ preventScroll: true });
    return;
  }
  if (byId("take").open) {
    byId("take").open = false;
    byId("take").querySelector("summary").focus();
    return;
  }
  if (byId("outline-box").classList.contains("open")) {
    byId("list").click();
    byId("list").focus();
    return;
  }
  if (state.selection !== null) select(state, null);
  else if (state.evidence.size > 0) clearEvidence(state);
}

function walk(state, view, direction) {
  const from = selectedNode(state);
  const to = from < 0 ? state.layout.shown[0] : stepFrom(state, from, direction);
  if (to < 0) return;
  select(state, { node: to });
  view.bringIntoSight(to);
}

/** The neighbor, or the sibling next to it, that lies nearest to a direction; −1 if none does. */
export function stepFrom(state, v, [dx, dy]) {
  const { layout } = state;
  let best = -1;
  let most = 0.25;
  for (const u of reachable(state, v)) {
    const x = layout.x[u] - layout.x[v];
    const y = layout.y[u] - layout.y[v];
    const score = (x * dx + y * dy) / (Math.hypot(x, y) || 1);
    if (score > most) {
      best = u;
      most = score;
    }
  }
  return best;
}

/** Neighbors and next siblings as they are drawn: nodes of one cluster are one. */
function reachable({ tree, layout }, v) {
  const { parent } = tree;
  const top = (u) => layout.top?.[u] ?? u;
  const face = (u) => layout.face?.[top(u)] ?? u;
  const below = (t) => layout.edges.filter((e) => top(parent[e]) === t);
  const own = top(v);
  const near = below(own);
  if (parent[own] >= 0) {
    const above = top(parent[own]);
    const siblings = below(above);
    const place = siblings.indexOf(own);
    near.push(above, ...[siblings[place - 1], siblings[place + 1]].filter((u) => u !== undefined));
  }
  return near.map(face);
}
