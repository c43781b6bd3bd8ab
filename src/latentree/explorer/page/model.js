// The model as arrays, read from the page's data. A node is an integer, as in Python: the first
// `observed` ones are variables, the rest hidden. Nothing here recurses: chains are deep.

import { readGrid } from "./grid.js";

const FARTHEST = 1e100; // squares of values beyond it would not be finite

const TYPES = {
  i1: Int8Array,
  i2: Int16Array,
  i4: Int32Array,
  f4: Float32Array,
  f8: Float64Array,
};

/** Undo base64 into an array of numbers, which are written in the type that stands in front. */
export function unpack(text, Type = TYPES[text.slice(0, 2)]) {
  const bytes = Uint8Array.from(atob(text.slice(2)), (letter) => letter.charCodeAt(0));
  const found = new TYPES[text.slice(0, 2)](bytes.buffer);
  return found instanceof Type ? found : Type.from(found);
}

/** Make the model of what Python wrote into the page. */
export function readModel(payload) {
  const parent = unpack(payload.parent, Int32Array);
  const model = {
    title: payload.title,
    family: payload.family,
    isGaussian: "correlations" in payload,
    labelSets: payload.kinds.map(() => []), // JSON texts of the labels of every variable
    numeric: new Uint8Array(parent.length), // 1 for nodes that hold numbers instead of states
    points: null, // of hidden numbers on a grid, which have a state a point
    margins: (payload.margins ?? []).map(readMargin), // of variables with a normal one behind them
    size: parent.length,
    observed: payload.observed,
    kinds: payload.kinds, // real, count, ordered or category, of every variable
    names: payload.names.slice(), // as they are now; the model's own are in `ownNames`
    ownNames: payload.names,
    captions: payload.captions ?? {}, // automatic names of hidden nodes, by number
    stateNames: { ...payload.stateNames }, // what people call the states of hidden nodes
    notes: { ...payload.notes },
    parent,
    length: unpack(payload.length, Float64Array),
    directed: unpack(payload.directed, Uint8Array), // 1 for nodes of which there is more and less
    ...childLists(parent),
  };
  for (const [v, name] of Object.entries(payload.renamed ?? {})) model.names[v] = name;
  model.order = traversal(model);
  if (model.isGaussian) readGaussian(model, payload);
  else readStates(model, payload);
  readGroups(model, payload);
  readStrengths(model, payload);
  readData(model, payload);
  model.about = payload.about;
  model.beside = payload.beside; // of the model file: parts of it that the page has no use for
  model.annotations = payload.annotations.map(readAnnotation);
  model.rows = readRows(payload.rows, payload.rowLists);
  model.support = readSupport(payload.support);
  return model;
}

function readMargin(payload) {
  const number = (value) => (typeof value === "string" ? unpack(value, Float64Array) : value);
  return Object.fromEntries(Object.entries(payload).map(([key, value]) => [key, number(value)]));
}

/** The margin of a number whose scale comes from ranks, with quantiles instead of deviations. */
export function rankMargin({ margins }, v) {
  return margins[v]?.values ? margins[v] : undefined;
}

function readGaussian(model, payload) {
  const hidden = model.size - model.observed;
  model.numeric.fill(1);
  model.rho = unpack(payload.correlations, Float64Array);
  model.mean = withTail(unpack(payload.means, Float64Array), hidden, 0);
  model.scale = withTail(unpack(payload.scales, Float64Array), hidden, 1);
}

function withTail(values, count, filler) {
  const out = new Float64Array(values.length + count).fill(filler);
  out.set(values);
  return out;
}

function readStates(model, payload) {
  const { size, parent } = model;
  model.states = unpack(payload.states, Int32Array);
  model.stateStart = new Int32Array(size + 1);
  model.tableStart = new Int32Array(size + 1);
  for (let v = 0; v < size; v++) {
    const rows = parent[v] < 0 ? 1 : model.states[parent[v]];
    model.stateStart[v + 1] = model.stateStart[v] + model.states[v];
    model.tableStart[v + 1] = model.tableStart[v] + rows * model.states[v];
  }
  if (payload.grid) {
    const { points, rho, pairs } = payload.grid;
    model.points = unpack(points, Float64Array);
    model.rho = unpack(rho, Float64Array);
    const tables = Object.entries(pairs).map(([v, table]) => [v, unpack(table, Float64Array)]);
    readGrid(model, Object.fromEntries(tables));
  } else {
    model.theta = unpack(payload.theta, Float64Array);
    readEmissions(model, payload);
  }
  const which = unpack(payload.labels.which, Int32Array);
  model.labelSets = Array.from(which, (k) => payload.labels.sets[k]);
  const shown = payload.labels.sets.map((set) => set.map(labelText));
  model.labels = (v) =>
    v < model.observed
      ? shown[which[v]]
      : (model.stateNames[v] ?? Array.from({ length: model.states[v] }, (_, k) => `${k}`));
}

/** Whether a node is a hidden number on a grid. */
export function isOnGrid(model, v) {
  return model.points !== null && isHidden(model, v);
}

/**
 * Leaves that emit numbers: `model.emissions[v]` has a mean and a spread (the standard deviation of
 * a real, the size of a count) for every state of v's neighbor, and the resolution and origin of its
 * recorded values. Counts are 0 with the probability `zeros`, and else have the mean `rate`.
 */
function readEmissions(model, payload) {
  model.emissions = [];
  if (!payload.emissions) return;
  const keys = ["mean", "spread", "zeros", "resolution", "origin"];
  const [rate, spread, zeros, resolution, origin] = keys.map((key) =>
    unpack(payload.emissions[key], Float64Array),
  );
  const mean = rate.map((value, i) => (1 - zeros[i]) * value);
  const cells = unpack(payload.emissions.cells, Float32Array);
  const width = mean.length === 0 ? 0 : cells.length / mean.length;
  let at = 0;
  let place = 0;
  payload.kinds.forEach((kind, v) => {
    if (kind !== "real" && kind !== "count") return;
    const end = at + (model.parent[v] < 0 ? 1 : model.states[model.parent[v]]);
    model.numeric[v] = 1;
    model.emissions[v] = {
      isCount: kind === "count",
      mean: mean.subarray(at, end),
      spread: spread.subarray(at, end),
      rate: rate.subarray(at, end),
      zeros: zeros.subarray(at, end),
      resolution: resolution[place],
      origin: origin[place++],
      cells: cells.subarray(at * width, end * width), // P(interval | state), row by row
      width,
    };
    at = end;
  });
}

/** Whether the values of a node are counts 0, 1, 2, …. */
export function isCount(model, v) {
  return model.emissions?.[v]?.isCount ?? false;
}

/** Whether a node that holds numbers can have a value. */
export function isPossible(model, v, value) {
  const sensible = Math.abs(value) <= (isOnGrid(model, v) ? model.points.at(-1) : FARTHEST);
  return sensible && (!isCount(model, v) || (Number.isInteger(value) && value >= 0));
}

/** The value nearest to a number that the data could hold: a count, or as precise as recorded. */
export function nearestValue(model, v, value) {
  const emission = model.emissions?.[v];
  if (!emission) return value;
  const { resolution, origin = 0 } = emission;
  const rounded = origin + Math.round((value - origin) / resolution) * resolution;
  return emission.isCount ? Math.max(rounded, 0) : rounded;
}

/** A label comes as JSON, so that 1 and 1.0 and "1" stay apart; strings are shown bare. */
function labelText(json) {
  return json.startsWith('"') ? JSON.parse(json) : json;
}

function readGroups(model, payload) {
  model.groups = payload.groups.styles;
  model.group = unpack(payload.groups.numbers, Int32Array);
}

/** The group of a node in words, after a mark; nothing where there are no groups. */
export function groupText(model, v, mark) {
  const label = isHidden(model, v) ? null : model.groups[model.group[v]].label;
  return label === null ? "" : `${mark}${label}`;
}

/**
 * Strength of the edge above every node as it is drawn (`drawn`), which hidden variables are drawn
 * turned round (`turned`, ±1), and the strength as the model has it (`signed`).
 */
function readStrengths(model, payload) {
  const drawn = unpack(payload.strengths, Float64Array);
  const turned = unpack(payload.signs, Int8Array);
  const { parent } = model;
  const signed = drawn.map((strength, v) =>
    parent[v] >= 0 && haveSign(model, v, parent[v])
      ? strength * turned[v] * turned[parent[v]]
      : strength,
  );
  model.strengths = { drawn, turned, signed };
}

/** Whether dependence has a sign: there is more and less of both. */
export function haveSign({ directed }, a, b) {
  return directed[a] === 1 && directed[b] === 1;
}

/** Whether the strength of two nodes is a correlation: of numbers and nodes with two states. */
export function isCorrelation(model, a, b) {
  const counts = (v) => model.numeric[v] === 1 || model.states[v] === 2;
  return haveSign(model, a, b) && (model.points !== null || (counts(a) && counts(b)));
}

/** A strength with the sign that the picture gives it, where it turns hidden variables round. */
export function shownStrength(model, a, b, value) {
  const { turned } = model.strengths;
  return haveSign(model, a, b) ? value * turned[a] * turned[b] : value;
}

/** Something that people know of variables: numbers, or groups with their styles. */
function readAnnotation({ name, values, styles, numbers }) {
  return styles
    ? { name, styles, number: unpack(numbers, Int32Array) }
    : { name, values: unpack(values, Float64Array) };
}

/**
 * Rows that came with the page: the numbers that they have in the data, their cells row by row, and
 * for each hidden state two lists of them with their probabilities (or means).
 */
function readRows(payload, lists) {
  if (!payload) return null;
  const { groups } = lists;
  return {
    ...payload,
    kept: unpack(payload.kept, Int32Array),
    cells: unpack(payload.cells),
    lists: {
      starts: unpack(lists.starts, Int32Array),
      rows: unpack(lists.rows, Int32Array),
      values: unpack(lists.values, Float64Array),
    },
    groups: groups && { ...groups, means: unpack(groups.means, Float64Array) },
  };
}

/** The value of a variable in a row, as evidence has it; undefined where it is missing. */
export function rowCell(model, row, v) {
  const value = model.rows.cells[row * model.observed + v];
  return Number.isNaN(value) || (!model.numeric[v] && value < 0) ? undefined : value;
}

/**
 * How sure the tree is: what its edges show, and the share of the trees with their splits, by the
 * node below; shares of hidden variables and of the neighbors that variables keep; NaN where there is none.
 */
function readSupport(payload) {
  if (!payload) return null;
  const { replicates, origin, measure } = payload;
  const [edges, splits, hidden, variables] = ["edges", "splits", "hidden", "variables"].map((key) =>
    unpack(payload[key], Float32Array),
  );
  return { replicates, origin, measure, edges, splits, hidden, variables };
}

function readData(model, payload) {
  if (!payload.data) {
    model.data = null;
    return;
  }
  model.data = {};
  for (const [key, value] of Object.entries(payload.data)) {
    model.data[key] = typeof value === "string" ? unpack(value, Float64Array) : value;
  }
  // Counts of the columns end to end: of bins for numbers, of states for others.
  const width = (v) => (model.numeric[v] ? model.data.bins : model.states[v]);
  model.data.countStart = new Int32Array(model.observed + 1);
  for (let v = 0; v < model.observed; v++) {
    model.data.countStart[v + 1] = model.data.countStart[v] + width(v);
  }
}

/** Children of all nodes end to end: those of v are child[childStart[v]] to childStart[v + 1]. */
export function childLists(parent) {
  const childStart = new Int32Array(parent.length + 1);
  for (const above of parent) if (above >= 0) childStart[above + 1]++;
  for (let v = 0; v < parent.length; v++) childStart[v + 1] += childStart[v];
  const next = childStart.slice();
  const child = new Int32Array(childStart[parent.length]);
  for (let v = 0; v < parent.length; v++) if (parent[v] >= 0) child[next[parent[v]]++] = v;
  return { childStart, child };
}

/** Every node after its parent, depth first. */
export function traversal({ parent, childStart, child }) {
  const order = new Int32Array(parent.length);
  const waiting = [];
  for (let v = parent.length - 1; v >= 0; v--) if (parent[v] < 0) waiting.push(v);
  for (let i = 0; waiting.length > 0; i++) {
    const v = waiting.pop();
    order[i] = v;
    for (let j = childStart[v + 1] - 1; j >= childStart[v]; j--) waiting.push(child[j]);
  }
  return order;
}

/** All neighbors of a node. */
export function neighbors(model, v) {
  const around = Array.from(model.child.subarray(model.childStart[v], model.childStart[v + 1]));
  if (model.parent[v] >= 0) around.push(model.parent[v]);
  return around;
}

/** What a node is called on the page: its name, or for want of one what it informs about. */
export function titleOf(model, v) {
  const unnamed = model.names[v] === model.ownNames[v];
  return (unnamed && model.captions[v]) || model.names[v];
}

/** An edge of the drawn tree is known by its outer end; in the model its lower end may differ. */
export function modelEdge({ model, tree }, v) {
  const above = tree.parent[v];
  return model.parent[v] === above ? v : above;
}

/** Support of an edge, NaN where there is none: an edge with few variables on a side says nothing. */
export function edgeSupport(state, v) {
  return state.model.support?.edges[modelEdge(state, v)] ?? Number.NaN;
}

/** Whether a hidden variable is in fewer than half of the trees of the support. */
export function isDoubtful(model, v) {
  return isHidden(model, v) && model.support?.hidden[v - model.observed] < 0.5;
}

export function isHidden(model, v) {
  return v >= model.observed;
}
