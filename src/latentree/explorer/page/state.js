// What the page is about at this moment, in one place. Parts of the page change it through the
// functions here and hear of changes of others by name.

import { coloringOf } from "./coloring.js";
import { clustersOf } from "./curves.js";
import { changeLimits, changes, infer } from "./inference.js";
import { layOut, readPicture } from "./layout.js";
import { inferMixture } from "./mixture.js";
import { isHidden, readModel, rowCell, unpack } from "./model.js";
import { edgeBuckets, isDoubted } from "./scene.js";

const LARGE = 1000; // nodes beyond which branches are folded at first
const BRANCHES = 50; // that are then seen
const SMALL = 3; // nodes of a branch that is not worth folding
const FEW = 30; // up to so many variables are drawn in layers rather than in a disc

export function createState(payload) {
  const mixture = payload.components ? readMixture(payload) : null;
  const shown = mixture ? mixture.trees[mixture.number] : readTree(payload);
  const { model } = shown;
  const state = {
    ...shown,
    mixture,
    kind: model.observed <= FEW || model.size > LARGE ? "layered" : "radial", // folded: in layers
    aspect: 1.4,
    selection: null,
    hover: null,
    doubt: { below: 0, contract: false }, // edges with less support are faded or contracted
    colorBy: "auto",
    highlight: new Set(), // numbers of the styles that stand out
    near: -1, // the node whose neighborhood is all that is shown
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
  const picture = readPicture(payload.picture, model.observed);
  return {
    model,
    ...picture,
    strengths: model.strengths,
    folded: foldedAtFirst(picture.tree),
    importance: null, // of labels, once it is known
  };
}

/** Of a large tree the largest branches are opened until there are enough to look at. */
function foldedAtFirst({ parent, childStart, child, size }) {
  const folded = new Uint8Array(parent.length);
  if (parent.length <= LARGE) return folded;
  const below = (v) => Array.from(child.subarray(childStart[v], childStart[v + 1]));
  const seen = Array.from(parent.keys()).filter((v) => parent[v] < 0);
  while (seen.length < BRANCHES) {
    const largest = seen.reduce((best, v) => (size[v] > size[best] ? v : best), seen[0]);
    if (size[largest] <= 1) break;
    seen.splice(seen.indexOf(largest), 1, ...below(largest));
  }
  for (const v of seen) if (size[v] > SMALL) folded[v] = 1;
  return folded;
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
  state.limits = changeLimits(state);
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
  Object.assign(state, { hover: null, pathFrom: -1, near: -1 });
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
  const kind = state.near >= 0 ? "layered" : state.kind;
  state.layout = layOut(state.layouts[kind], state);
  state.buckets = edgeBuckets(state);
  if (state.coloring.isChange) recolor(state); // folded branches show what is in them
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

/** Show the neighborhood of a node alone, or the whole tree again (−1). */
export function showNear(state, node) {
  state.near = node;
  relayOut(state);
  emit(state, "near");
}

/** Select a node ({ node }), an edge ({ edge }: its lower end), a path ({ path: ends }) or nothing. */
export function select(state, selection) {
  if (selection && "node" in selection) reveal(state, selection.node);
  const chosen = selection?.path ?? (selection && "node" in selection ? [selection.node] : []);
  if (state.near >= 0 && chosen.some((v) => !state.layout.visible[v])) showNear(state, -1);
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
  recolor(state);
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
