// What the page is about at this moment, in one place. Parts of the page change it through the
// functions here and hear of changes of others by name.

import { coloringOf } from "./coloring.js";
import { clustersOf } from "./curves.js";
import { changes, infer } from "./inference.js";
import { layOut, readPicture } from "./layout.js";
import { inferMixture } from "./mixture.js";
import { isHidden, readModel, rowCell, unpack } from "./model.js";
import { edgeBuckets, isDoubted } from "./scene.js";

const FEW = 30; // up to so many variables are drawn in layers rather than in a disc

export function createState(payload) {
  const mixture = payload.components ? readMixture(payload) : null;
  const shown = mixture ? mixture.trees[mixture.number] : readTree(payload);
  const { model } = shown;
  const state = {
    ...shown,
    mixture,
    kind: model.observed <= FEW ? "layered" : "radial",
    aspect: 1.4,
    selection: null,
    hover: null,
    doubt: { below: 0, contract: false }, // edges with less support are faded or contracted
    colorBy: "group",
    highlight: new Set(), // numbers of the styles that stand out
    pathFrom: -1, // the node from which a path is to be shown, once its other end is chosen
    echo: -1, // what is chosen or pointed at in another tree
    drift: { x: 0, y: 0 },
    evidence: new Map(),
    row: -1, // the row that the evidence is, if it is one
    filter: "all", // of the answers: all, variables or hidden
    listeners: new Map(),
  };
  answerAnew(state);
  recolor(state);
  relayOut(state);
  return state;
}

/** A tree with its parameters, and what is kept of how it is seen. */
function readTree(payload) {
  const model = readModel(payload);
  return {
    model,
    ...readPicture(payload.picture, model.observed),
    strengths: model.strengths,
    folded: new Uint8Array(model.size),
    importance: null, // of labels, once it is known
  };
}

function readMixture({ name, weights, shown, shared, components }) {
  return {
    name, // of the class variable
    weights: unpack(weights, Float64Array),
    number: shown,
    trees: components.map((own) => readTree({ ...shared, ...own })),
  };
}

function ask({ model, mixture }, evidence) {
  return mixture ? inferMixture(mixture, evidence) : infer(model, evidence);
}

/** Infer what is known without evidence, and with it. */
function answerAnew(state) {
  state.prior = ask(state, new Map());
  answer(state);
}

function answer(state) {
  const { model, evidence, prior } = state;
  state.posterior = evidence.size === 0 ? prior : ask(state, evidence);
  state.change = changes(model, prior, state.posterior);
}

/** Show another tree of a mixture. What is supposed of variables stays; hidden ones are its own. */
export function showTree(state, number) {
  const { mixture, evidence, selection } = state;
  mixture.number = number;
  Object.assign(state, mixture.trees[number]);
  const isOwn = (v) => isHidden(state.model, v);
  for (const v of [...evidence.keys()].filter(isOwn)) evidence.delete(v);
  const chosen = selection?.path ?? [selection?.node ?? state.model.size];
  if (chosen.some(isOwn)) state.selection = null;
  Object.assign(state, { hover: null, pathFrom: -1 });
  answerAnew(state);
  recolor(state);
  relayOut(state);
  for (const event of ["layout", "fold", "names", "evidence", "selection", "tree"]) {
    emit(state, event);
  }
}

function recolor(state) {
  state.coloring = coloringOf(state);
}

/** Color nodes by something else; all of them count again. */
export function setColorBy(state, key) {
  state.colorBy = key;
  state.highlight.clear();
  recolor(state);
  emit(state, "color");
}

/** Let the nodes of one style stand out, or no longer; without any, all do. */
export function toggleHighlight(state, number) {
  if (!state.highlight.delete(number)) state.highlight.add(number);
  emit(state, "color");
}

/** Call a function whenever something of that name happens. */
export function on(state, event, listener) {
  if (!state.listeners.has(event)) state.listeners.set(event, []);
  state.listeners.get(event).push(listener);
}

export function emit(state, event) {
  for (const listener of state.listeners.get(event) ?? []) listener();
}

export function relayOut(state) {
  state.clusters = state.doubt.contract ? clustersInDoubt(state) : null;
  state.layout = layOut(state.layouts[state.kind], state);
  state.buckets = edgeBuckets(state);
}

function clustersInDoubt(state) {
  return clustersOf(state.tree, state.model.observed, (v) => isDoubted(state, v));
}

/** Fade the edges with less support than some, or contract them. */
export function setDoubt(state, doubt) {
  Object.assign(state.doubt, doubt);
  relayOut(state);
  emit(state, "doubt");
}

export function setKind(state, kind) {
  state.kind = kind;
  relayOut(state);
  emit(state, "layout");
}

/** Select a node ({ node }), an edge ({ edge }: its lower end), a path ({ path: ends }) or nothing. */
export function select(state, selection) {
  if (selection && "node" in selection) reveal(state, selection.node);
  if (selection && "path" in selection) for (const v of selection.path) reveal(state, v);
  state.selection = selection;
  emit(state, "selection");
}

export function selectedNode(state) {
  return state.selection && "node" in state.selection ? state.selection.node : -1;
}

/** Select a node, or the path to it from the node that waits for its other end. */
export function choose(state, node, isSecond = false) {
  const from = isSecond ? selectedNode(state) : state.pathFrom;
  state.pathFrom = -1;
  select(state, from >= 0 && from !== node ? { path: [from, node] } : { node });
}

/** Point at a node, an edge or nothing, as the pointer or the focus does. */
export function setHover(state, hover) {
  const key = (one) => (one ? ("node" in one ? `n${one.node}` : `e${one.edge}`) : "");
  if (key(hover) === key(state.hover)) return;
  state.hover = hover;
  emit(state, "hover");
}

/** Set what is known of a node; undefined forgets it. */
export function setEvidence(state, node, value) {
  state.row = -1;
  if (value === undefined) {
    state.evidence.delete(node);
  } else {
    state.evidence.set(node, value);
  }
  updatePosterior(state);
}

export function setAllEvidence(state, evidence) {
  state.row = -1;
  state.evidence = new Map(evidence);
  updatePosterior(state);
}

export function clearEvidence(state) {
  state.row = -1;
  state.evidence.clear();
  updatePosterior(state);
}

/** Suppose all that is known of a row. */
export function supposeRow(state, row) {
  const { model } = state;
  const cells = Array.from({ length: model.observed }, (_, v) => [v, rowCell(model, row, v)]);
  state.row = row;
  state.evidence = new Map(cells.filter(([, value]) => value !== undefined));
  updatePosterior(state);
}

function updatePosterior(state) {
  answer(state);
  if (state.colorBy === "posterior") recolor(state);
  emit(state, "evidence");
}

/** Fold or unfold what lies beyond a node, seen from the middle of the tree. */
export function toggleFold(state, node) {
  if (state.tree.childStart[node + 1] === state.tree.childStart[node]) return;
  const { x, y } = state.layout;
  state.folded[node] = state.folded[node] ? 0 : 1;
  relayOut(state);
  // How far the node has moved, so that the view can move with it.
  state.drift = { x: state.layout.x[node] - x[node], y: state.layout.y[node] - y[node] };
  emit(state, "fold");
  state.drift = { x: 0, y: 0 };
}

export function unfoldAll(state) {
  state.folded.fill(0);
  relayOut(state);
  emit(state, "fold");
}

/** Unfold all that hides a node. */
export function reveal(state, node) {
  let changed = false;
  for (let v = state.tree.parent[node]; v >= 0; v = state.tree.parent[v]) {
    if (state.folded[v]) {
      state.folded[v] = 0;
      changed = true;
    }
  }
  if (!changed) return;
  relayOut(state);
  emit(state, "fold");
}

/** Call a hidden variable something else; refused (false) when the name is taken or empty. */
export function rename(state, node, name) {
  const clean = name.trim();
  const { names } = state.model;
  if (clean === "" || names.some((other, v) => v !== node && other === clean)) return false;
  names[node] = clean;
  emit(state, "names");
  return true;
}

/** Name the states of a hidden variable; refused when two would be alike or one empty. */
export function renameStates(state, node, labels) {
  const clean = labels.map((label) => label.trim());
  if (clean.includes("") || new Set(clean).size < clean.length) return false;
  const { stateNames } = state.model;
  if (clean.every((label, k) => label === `${k}`)) delete stateNames[node];
  else stateNames[node] = clean;
  emit(state, "names");
  return true;
}

export function setNote(state, node, text) {
  const { notes } = state.model;
  if (text.trim() === "") delete notes[node];
  else notes[node] = text.trim();
  emit(state, "names");
}
