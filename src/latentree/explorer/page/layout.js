// The picture as Python laid it out (latentree.plot), less what is folded, for a window of some
// shape. Nothing is placed here: coordinates are only stretched, and rows closed up.

import { contracted, redrawn, rowLens } from "./curves.js";
import { childLists, traversal, unpack } from "./model.js";

const NEAR = 40; // nodes of a neighborhood beyond which no further ring is added
const NARROWEST = 14; // units across in the layered layout
const FILLED = 0.78; // share of the window's width that is left beside labels

/** The tree as it is drawn, from the middle outward and from top to bottom, and its layouts. */
export function readPicture(payload, observed) {
  const layouts = {};
  const parent = unpack(payload.parent, Int32Array);
  for (const kind of ["radial", "layered"]) layouts[kind] = readLayout(kind, payload[kind], parent);
  const tree = { parent, ...childLists(parent), size: new Int32Array(parent.length).fill(1) };
  // Nodes whose edge has the middle of a component on it, each with the center of its disc.
  tree.halves = new Map(payload.halves.map(([, second, ...center]) => [second, center]));
  const { y } = layouts.layered;
  for (let v = 0; v < parent.length; v++) {
    tree.child.subarray(tree.childStart[v], tree.childStart[v + 1]).sort((a, b) => y[a] - y[b]);
  }
  tree.order = traversal(tree);
  for (const v of tree.order.toReversed()) if (parent[v] >= 0) tree.size[parent[v]] += tree.size[v];
  let far = null; // drawn when it is first asked for
  Object.defineProperty(layouts, "lengths", {
    get: () => {
      far ??= withLengths(layouts.layered, tree, payload.lengths, observed);
      return far;
    },
  });
  return { tree, layouts };
}

/** The rows of the layered layout, with edges that reach as far to the right as they are long. */
function withLengths(layered, tree, { x, longest }, observed) {
  const given = { ...layered, kind: "lengths", x: unpack(x, Float32Array), longest };
  const top = Int32Array.from(tree.parent.keys());
  return redrawn(given, tree, observed, { ...rowLens(given), top, anew: () => true });
}

function readLayout(kind, payload, parent) {
  const [x, y, angle, inner] = ["x", "y", "angle", "points"].map((key) =>
    unpack(payload[key], Float32Array),
  );
  const slot = unpack(payload.slot, Uint8Array);
  const starts = unpack(payload.starts, Int32Array);
  // Edges begin and end at nodes, whose places are not repeated.
  const points = new Float32Array(2 * starts.at(-1));
  let used = 0;
  parent.forEach((above, v) => {
    if (above < 0) return;
    const next = used + 2 * (starts[v + 1] - starts[v] - 2);
    points.set([x[above], y[above], ...inner.subarray(used, next), x[v], y[v]], 2 * starts[v]);
    used = next;
  });
  return { kind, x, y, angle, slot, starts, points };
}

/**
 * What is seen of a layout when the branches beyond the `folded` nodes are not, in units of one row
 * of text, and those of a cluster of nodes are drawn as one. All but the radial layout fill a window
 * with `aspect` as width to height.
 *
 * Beside what Python gave, the result has `visible` (1 for nodes that have a place), `shown` (those
 * that are drawn, in order), `edges` (those that are drawn, by their outer ends), the `boxes` around
 * the edges and the `bounds` of all.
 */
export function layOut(source, { tree, folded, aspect, clusters, model, near = -1 }) {
  if (near >= 0) return layOutNear(source, tree, near, aspect);
  const given = clusters ? contracted(source, tree, model.observed, clusters) : source;
  const visible = new Uint8Array(tree.parent.length);
  const layout = { ...given, visible, shown: [], edges: [] };
  for (const v of tree.order) {
    const above = tree.parent[v];
    visible[v] = above < 0 || (visible[above] && !folded[above]) ? 1 : 0;
    if (!visible[v] || (clusters && clusters.top[v] !== v)) continue;
    layout.shown.push(clusters ? clusters.face[v] : v);
    if (above >= 0) layout.edges.push(v);
  }
  if (given.kind === "layered") stretchLevels(layout);
  if (given.kind !== "radial") {
    fillWindow(layout, rowsLeft(layout, folded), aspect);
  }
  layout.boxes = boxesOf(layout);
  layout.bounds = boundsOf(layout);
  return layout;
}

/** Rows without those of folded branches: those that are left follow each other. */
function rowsLeft({ shown, slot, y }, folded) {
  if (!folded.includes(1)) return (row) => row;
  const rows = shown.filter((v) => slot[v] === 1 || folded[v]).map((v) => y[v]);
  return toRank([...new Set(rows)].sort((a, b) => a - b));
}

/** Let the levels that are left of a folded tree take the whole width. */
function stretchLevels(layout) {
  const most = layout.shown.reduce((level, v) => Math.max(level, layout.x[v]), 0);
  if (most === 0 || most === 1) return;
  layout.x = layout.x.map((level) => level / most);
  layout.points = layout.points.map((value, i) => (i % 2 === 0 ? value / most : value));
}

/**
 * The neighborhood of a node in rows: nodes by their distance from it, as many as can be read. Rows
 * and levels that nothing is left of are closed up.
 */
function layOutNear(given, tree, near, aspect) {
  const members = neighborhood(tree, near);
  const visible = new Uint8Array(tree.parent.length);
  for (const v of members) visible[v] = 1;
  const shown = tree.order.filter((v) => visible[v]);
  const edges = [...shown].filter((v) => tree.parent[v] >= 0 && visible[tree.parent[v]]);
  const levels = [...shown].map((v) => given.x[v]);
  const [first, last] = [Math.min(...levels), Math.max(...levels)];
  const toLevel = (x) => (x - first) / (last - first || 1);
  const layout = { ...given, visible, shown: [...shown], edges };
  layout.x = given.x.map(toLevel);
  layout.points = given.points.map((value, i) => (i % 2 === 0 ? toLevel(value) : value));
  const rows = [...new Set([...shown].map((v) => given.y[v]))].sort((a, b) => a - b);
  fillWindow(layout, toRank(rows), aspect);
  // Only what is shown is as tall as the picture.
  layout.boxes = boxesOf(layout);
  layout.bounds = boundsOf(layout);
  return layout;
}

/** A node and those around it, ring by ring, as long as they are few. */
function neighborhood({ parent, childStart, child }, start) {
  const found = new Set([start]);
  for (let ring = [start]; ring.length > 0 && found.size < NEAR; ) {
    const next = [];
    for (const v of ring) {
      for (const u of [parent[v], ...child.subarray(childStart[v], childStart[v + 1])]) {
        if (u >= 0 && !found.has(u)) {
          found.add(u);
          next.push(u);
        }
      }
    }
    ring = next;
  }
  return found;
}

/** The place of a number among ascending ones, straight between them. */
function toRank(ascending) {
  const end = ascending.length - 1;
  return (value) => {
    if (value <= ascending[0]) return 0;
    if (value >= ascending[end]) return end;
    const above = ascending.findIndex((one) => one >= value);
    const low = ascending[above - 1];
    return above - 1 + (value - low) / (ascending[above] - low);
  };
}

/** Stretch levels to the width of the window, and move rows; edges are stretched with their ends. */
function fillWindow(layout, toRow, aspect) {
  layout.y = layout.y.map(toRow);
  const rows = layout.y.reduce((a, b) => Math.max(a, b), 0) + 0.5;
  const wide = Math.max(rows * aspect * FILLED, NARROWEST);
  layout.x = layout.x.map((level) => level * wide);
  layout.wide = wide;
  const { starts } = layout;
  const points = layout.points.slice();
  for (let v = 0; v + 1 < starts.length; v++) {
    const [from, to] = [points[2 * starts[v] + 1], points[2 * starts[v + 1] - 1]];
    const start = toRow(from);
    const factor = from === to ? 1 : (toRow(to) - start) / (to - from);
    for (let i = 2 * starts[v]; i < 2 * starts[v + 1]; i += 2) {
      points[i] *= wide;
      points[i + 1] = start + (points[i + 1] - from) * factor;
    }
  }
  layout.points = points;
}

/** Left, top, right and bottom of every edge. */
function boxesOf({ starts, points }) {
  const boxes = new Float32Array(4 * (starts.length - 1));
  for (let v = 0; v + 1 < starts.length; v++) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 2 * starts[v]; i < 2 * starts[v + 1]; i += 2) {
      left = Math.min(left, points[i]);
      right = Math.max(right, points[i]);
      top = Math.min(top, points[i + 1]);
      bottom = Math.max(bottom, points[i + 1]);
    }
    boxes.set([left, top, right, bottom], 4 * v);
  }
  return boxes;
}

/** Whether the box around the edge from a node toward the middle meets another box. */
export function edgeMeets({ boxes }, v, { left, right, top, bottom }) {
  const i = 4 * v;
  const beside = boxes[i + 2] < left || boxes[i] > right;
  return !(beside || boxes[i + 3] < top || boxes[i + 1] > bottom);
}

/** Borders of all nodes and curves that are shown. */
function boundsOf({ shown, edges, x, y, starts, points }) {
  const bounds = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  const include = (px, py) => {
    bounds.left = Math.min(bounds.left, px);
    bounds.right = Math.max(bounds.right, px);
    bounds.top = Math.min(bounds.top, py);
    bounds.bottom = Math.max(bounds.bottom, py);
  };
  for (const v of shown) include(x[v], y[v]);
  for (const v of edges) {
    for (let i = 2 * starts[v]; i + 5 < 2 * starts[v + 1]; i += 4) {
      include(farthest(points, i), farthest(points, i + 1));
    }
  }
  return bounds;
}

/**
 * The coordinate at which a parabola turns: a(1 − t)² + 2c·t(1 − t) + b·t² does at
 * t = (a − c)/(a − 2c + b); its start if it does not turn on the way.
 */
function farthest(points, i) {
  const [a, c, b] = [points[i], points[i + 2], points[i + 4]];
  const t = (a - c) / (a - 2 * c + b);
  return t > 0 && t < 1 ? a + t * (c - a) : a;
}

/** Nodes from one to another, both included; empty when they are in different components. */
export function pathBetween({ tree }, a, b) {
  const depthOf = (v) => {
    let depth = 0;
    for (let u = tree.parent[v]; u >= 0; u = tree.parent[u]) depth++;
    return depth;
  };
  const [front, back] = [[a], [b]];
  let [left, right] = [depthOf(a), depthOf(b)];
  while (front.at(-1) !== back.at(-1)) {
    if (left === 0 && right === 0) return [];
    const [side, isLeft] = left >= right ? [front, true] : [back, false];
    side.push(tree.parent[side.at(-1)]);
    if (isLeft) left--;
    else right--;
  }
  return front.concat(back.reverse().slice(1));
}

/** Edges along a path, each by its outer end. */
export function edgesAlong({ tree }, path) {
  return path.slice(1).map((v, i) => (tree.parent[v] === path[i] ? v : path[i]));
}
