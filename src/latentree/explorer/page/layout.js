// Where the nodes go: linear time, no recursion. As in latentree.plot both layouts are one
// arrangement: every variable owns a slot, every node has a level from 0 in the middle of the tree
// to 1 at the farthest leaf; slot and level become row and column, or angle and radius.

import { childLists, neighbors, traversal } from "./model.js";

const FAMILY_GAP = 0.6;
const WIDEST_SLOT = 9;
const CENTER = 0.1;
const STRETCH = 0.3;
const HEAVY = 0.4; // a branch with this share of the variables makes the middle an edge, not a node

/** The tree hung by its middle: parents, children (small branches first) and an order. */
export function hangByMiddle(model) {
  const up = rootedInTheMiddle(model);
  const lists = childLists(up);
  const tree = { parent: up, ...lists };
  tree.order = traversal(tree);
  const size = subtreeSizes(tree.order, up);
  const rank = (v) => (model.group[v] < 0 ? model.groups.length : model.group[v]);
  for (let v = 0; v < up.length; v++) {
    const part = Array.from(tree.child.subarray(tree.childStart[v], tree.childStart[v + 1]));
    part.sort((a, b) => size[a] - size[b] || rank(a) - rank(b) || a - b);
    tree.child.set(part, tree.childStart[v]);
  }
  tree.order = traversal(tree);
  return { ...tree, size: subtreeSizes(tree.order, up), partner: partners(model, tree) };
}

/** For roots with a heavy branch the node where it begins: the middle is the edge to it. */
function partners(model, { parent, childStart, child, order }) {
  const below = new Int32Array(parent.length).fill(1, 0, model.observed);
  for (let i = order.length - 1; i >= 0; i--) {
    if (parent[order[i]] >= 0) below[parent[order[i]]] += below[order[i]];
  }
  const partner = new Map();
  for (const root of order) {
    if (parent[root] >= 0 || below[root] < 2) continue;
    const branches = Array.from(child.subarray(childStart[root], childStart[root + 1]));
    const heaviest = branches.reduce((a, b) => (below[b] > below[a] ? b : a));
    if (below[heaviest] >= HEAVY * below[root]) partner.set(root, heaviest);
  }
  return partner;
}

/** The tree with a new node, beyond all others, in the middle of every edge that is a middle. */
function withMiddles(tree, folded) {
  const parent = Array.from(tree.parent);
  const lists = parent.map((_, v) =>
    Array.from(tree.child.subarray(tree.childStart[v], tree.childStart[v + 1])),
  );
  for (const [root, heavy] of tree.partner) {
    if (folded[root]) continue;
    const middle = parent.length;
    parent[root] = middle;
    parent[heavy] = middle;
    parent.push(-1);
    lists[root] = lists[root].filter((v) => v !== heavy);
    lists.push([root, heavy]);
  }
  const childStart = new Int32Array(parent.length + 1);
  lists.forEach((list, v) => {
    childStart[v + 1] = childStart[v] + list.length;
  });
  const hung = {
    parent: Int32Array.from(parent),
    childStart,
    child: Int32Array.from(lists.flat()),
  };
  return { ...hung, order: traversal(hung) };
}

function subtreeSizes(order, up) {
  const size = new Int32Array(up.length).fill(1);
  for (let i = order.length - 1; i >= 0; i--) {
    if (up[order[i]] >= 0) size[up[order[i]]] += size[order[i]];
  }
  return size;
}

/** Parents when each component hangs by the node whose heaviest branch is lightest. */
function rootedInTheMiddle(model) {
  const { size, order, parent } = model;
  const below = new Int32Array(size).fill(1, 0, model.observed);
  const heaviest = new Int32Array(size);
  const root = new Int32Array(size);
  for (let i = size - 1; i >= 0; i--) {
    const v = order[i];
    if (parent[v] < 0) continue;
    below[parent[v]] += below[v];
    heaviest[parent[v]] = Math.max(heaviest[parent[v]], below[v]);
  }
  const middle = new Map();
  for (const v of order) {
    root[v] = parent[v] < 0 ? v : root[parent[v]];
    heaviest[v] = Math.max(heaviest[v], below[root[v]] - below[v]);
    const best = middle.get(root[v]);
    if (best === undefined || heaviest[v] < heaviest[best]) middle.set(root[v], v);
  }
  const up = new Int32Array(size).fill(-1);
  const waiting = Array.from(middle.values());
  while (waiting.length > 0) {
    const v = waiting.pop();
    for (const next of neighbors(model, v)) {
      if (next === up[v]) continue;
      up[next] = v;
      waiting.push(next);
    }
  }
  return up;
}

/**
 * Positions of all nodes that are seen, in units of one row of text.
 *
 * `folded` marks the nodes whose branches are not shown. `aspect` is the width to height that the
 * picture is made for. The result has x, y and the angle in which a label leaves its node,
 * `shown` (the seen nodes in order), and the control points of every edge by its lower end.
 */
export function layOut(model, tree, kind, folded, aspect) {
  const radial = kind === "radial";
  const hung = withMiddles(tree, folded);
  const size = hung.parent.length;
  const placed = arrange(model, hung, folded, radial);
  const layout = {
    kind,
    visible: placed.visible,
    x: new Float32Array(size),
    y: new Float32Array(size),
    angle: new Float32Array(size),
    curve: new Float32Array(4 * size),
    spiral: new Map(),
  };
  if (radial) {
    placeInDiscs(hung, placed, layout, aspect, model.names);
  } else {
    placeInLayers(hung, placed, layout, aspect);
  }
  for (const [root, heavy] of tree.partner) {
    if (!folded[root]) bendRound(layout, hung.parent[root], root, heavy);
  }
  // The middles have done their work.
  layout.shown = placed.shown.filter((v) => v < model.size);
  layout.bounds = boundsOf(layout);
  return layout;
}

/** The edge between the two halves of a tree bends toward its middle, out of its ends' box. */
function bendRound(layout, middle, a, b) {
  const { x, y, kind } = layout;
  const turnA = kind === "radial" ? y[middle] : y[a];
  const turnB = kind === "radial" ? y[middle] : y[b];
  const steps = 32;
  const points = new Float32Array(2 * (steps + 1));
  for (let i = 0; i <= steps; i++) {
    const u = i / steps;
    const w = [(1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u * u * (1 - u), u ** 3];
    points[2 * i] = w[0] * x[a] + (w[1] + w[2]) * x[middle] + w[3] * x[b];
    points[2 * i + 1] = w[0] * y[a] + w[1] * turnA + w[2] * turnB + w[3] * y[b];
  }
  layout.spiral.set(b, points);
}

// Arranging -----------------------------------------------------------------------------------

function arrange(model, tree, folded, radial) {
  const { parent, order } = tree;
  const visible = new Uint8Array(parent.length);
  const shown = [];
  for (const v of order) {
    visible[v] = parent[v] < 0 || (visible[parent[v]] && !folded[parent[v]]) ? 1 : 0;
    if (visible[v]) shown.push(v);
  }
  const level = levels(shown, parent);
  const own = new Float64Array(parent.length);
  for (const v of shown) {
    const inner = !folded[v] && tree.childStart[v + 1] > tree.childStart[v];
    own[v] = v < model.observed || !inner ? 1 : 0;
    if (!radial) continue;
    if (parent[v] < 0) {
      own[v] = inner ? 0 : 1;
      level[v] = 0;
    } else {
      level[v] = (level[v] + CENTER) / (1 + CENTER);
      own[v] *= Math.min(1 / Math.max(level[v], 0.1), WIDEST_SLOT);
    }
  }
  return { visible, shown, level, own, ...dealSlots(tree, shown, folded, own) };
}

/** Even steps along the longest way down; shallow branches take somewhat longer ones. */
function levels(shown, parent) {
  const height = new Int32Array(parent.length);
  for (let i = shown.length - 1; i >= 0; i--) {
    const v = shown[i];
    if (parent[v] >= 0) height[parent[v]] = Math.max(height[parent[v]], height[v] + 1);
  }
  const level = new Float64Array(parent.length);
  const step = new Float64Array(parent.length);
  for (const v of shown) {
    const above = parent[v];
    if (above >= 0) level[v] = Math.min(level[above] + step[above], 1);
    if (height[v] > 0) {
      const even = (1 - level[v]) / height[v];
      step[v] = above < 0 ? even : step[above] ** (1 - STRETCH) * even ** STRETCH;
    }
  }
  return level;
}

/** The middle of every node's slot (or of its children's), and the slots of each component. */
function dealSlots(tree, shown, folded, own) {
  const { parent, childStart, child } = tree;
  const inside = (v) =>
    child.subarray(childStart[v], folded[v] ? childStart[v] : childStart[v + 1]);
  const extent = extents(parent, shown, own, inside);
  const begin = new Float64Array(parent.length);
  const slot = new Float64Array(parent.length);
  for (const v of shown) {
    const gap = inside(v).length > 0 && parent[v] >= 0 ? FAMILY_GAP / 2 : 0;
    dealChildren(v, inside(v), begin[v] + gap, own, extent, begin, slot);
  }
  for (let i = shown.length - 1; i >= 0; i--) {
    const below = inside(shown[i]);
    if (own[shown[i]] === 0 && below.length > 0) {
      slot[shown[i]] = (slot[below[0]] + slot[below[below.length - 1]]) / 2;
    }
  }
  return { slot, extent, roots: shown.filter((v) => parent[v] < 0) };
}

/** Slots that the subtree of each node takes. */
function extents(parent, shown, own, inside) {
  const extent = own.slice();
  for (let i = shown.length - 1; i >= 0; i--) {
    const v = shown[i];
    if (parent[v] < 0) continue;
    if (inside(v).length > 0) extent[v] += FAMILY_GAP;
    extent[parent[v]] += extent[v];
  }
  return extent;
}

/** Give the children of a node their slots one after the other, its own in the middle of them. */
function dealChildren(v, children, start, own, extent, begin, slot) {
  let at = start;
  let half = start;
  for (const c of children) half += extent[c] / 2;
  let waiting = own[v] > 0;
  for (const c of children) {
    if (waiting && at + extent[c] / 2 >= half - 1e-9 * half) {
      slot[v] = at + own[v] / 2;
      at += own[v];
      waiting = false;
    }
    begin[c] = at;
    at += extent[c];
  }
  if (waiting) slot[v] = at + own[v] / 2;
}

// Layers --------------------------------------------------------------------------------------

function placeInLayers(tree, placed, layout, aspect) {
  const { parent } = tree;
  let rows = 0;
  const top = new Float64Array(parent.length);
  for (const root of placed.roots) {
    top[root] = rows;
    rows += placed.extent[root] + 1;
  }
  const wide = Math.max(rows * aspect * 0.78, 14);
  for (const v of placed.shown) {
    const above = parent[v];
    if (above >= 0) top[v] = top[above];
    layout.x[v] = placed.level[v] * wide;
    layout.y[v] = top[v] + placed.slot[v];
    if (above < 0) continue;
    const middle = (layout.x[above] + layout.x[v]) / 2;
    layout.curve.set([middle, layout.y[above], middle, layout.y[v]], 4 * v);
  }
}

// Discs ---------------------------------------------------------------------------------------

function placeInDiscs(tree, placed, layout, aspect, names) {
  const { parent } = tree;
  const discs = placed.roots.map((root) => discOf(tree, placed, root));
  pack(discs, aspect, labelMargin(names));
  const disc = new Array(parent.length);
  const fans = fansOf(tree, placed);
  for (const one of discs) disc[one.root] = one;
  for (const v of placed.shown) {
    const above = parent[v];
    disc[v] = above < 0 ? disc[v] : disc[above];
    const { turn, ahead, radius, x, y } = disc[v];
    const angle = (placed.slot[v] - ahead) * turn;
    const r = radius * placed.level[v];
    layout.x[v] = x + r * Math.cos(angle);
    layout.y[v] = y + r * Math.sin(angle);
    layout.angle[v] = above < 0 ? 0 : angle;
    if (above >= 0) bend(placed, layout, fans, disc[v], above, v);
  }
}

function discOf(tree, placed, root) {
  const slots = placed.extent[root];
  const last = tree.child[tree.childStart[root + 1] - 1];
  const hasBranches = tree.childStart[root + 1] > tree.childStart[root];
  const open = hasBranches && placed.visible[last] === 1;
  const ahead = open ? placed.slot[last] : 0;
  const radius = open ? Math.max(slots / (2 * Math.PI), 2) : 0;
  return { root, turn: (2 * Math.PI) / slots, ahead, radius, x: 0, y: 0 };
}

/** Nodes all of whose branches end at one level: straight lines to them meet nothing. */
function fansOf({ parent, childStart }, { shown, visible, level }) {
  const fans = new Uint8Array(parent.length).fill(1);
  const end = new Float64Array(parent.length);
  for (const v of shown) {
    const above = parent[v];
    if (above < 0) continue;
    const inner = childStart[v + 1] > childStart[v] && visible[v];
    if (inner || (end[above] > 0 && Math.abs(end[above] - level[v]) > 1e-9)) fans[above] = 0;
    end[above] = level[v];
  }
  return fans;
}

function straight(layout, above, v) {
  const at = (share) => [
    layout.x[above] + share * (layout.x[v] - layout.x[above]),
    layout.y[above] + share * (layout.y[v] - layout.y[above]),
  ];
  layout.curve.set([...at(1 / 3), ...at(2 / 3)], 4 * v);
}

/** The curve from a node's parent to it: radial at both ends, or a spiral where it is long. */
function bend(placed, layout, fans, { turn, ahead, radius, x, y }, above, v) {
  const from = placed.level[above] * radius;
  const to = placed.level[v] * radius;
  const end = (placed.slot[v] - ahead) * turn;
  const start = from === 0 ? end : (placed.slot[above] - ahead) * turn;
  if (fans[above]) {
    straight(layout, above, v);
    return;
  }
  const middle = (from + to) / 2;
  const points = [middle * Math.cos(start) + x, middle * Math.sin(start) + y];
  points.push(middle * Math.cos(end) + x, middle * Math.sin(end) + y);
  layout.curve.set(points, 4 * v);
  const wide = Math.abs(end - start);
  if (wide < 0.7) return;
  const steps = Math.ceil(wide / 0.05);
  const spiral = new Float32Array(2 * (steps + 1));
  for (let i = 0; i <= steps; i++) {
    const u = i / steps;
    const r = from + (to - from) * u ** 1.35;
    const a = end + (start - end) * (1 - u) ** 1.6;
    spiral[2 * i] = r * Math.cos(a) + x;
    spiral[2 * i + 1] = r * Math.sin(a) + y;
  }
  layout.spiral.set(v, spiral);
}

/** Room for a label in units: about that of a name of middling length. */
function labelMargin(names) {
  const lengths = names.map((name) => name.length).sort((a, b) => a - b);
  return Math.min(Math.max(0.55 * lengths[lengths.length >> 1] + 1, 2.5), 9);
}

/** Discs in rows of falling size, in the width that fills the picture best. */
function pack(discs, aspect, margin) {
  if (discs.length === 1) return;
  const sorted = discs.slice().sort((a, b) => b.radius - a.radius);
  const boxes = sorted.map((disc) => ({
    disc,
    wide: disc.radius > 0 ? 2 * (disc.radius + margin) : 2 * margin,
    tall: disc.radius > 0 ? 2 * (disc.radius + margin) : 2,
  }));
  const area = boxes.reduce((sum, { wide, tall }) => sum + wide * tall, 0);
  let best = null;
  for (const factor of [0.7, 0.85, 1, 1.2, 1.4, 1.7, 2.1, 2.6]) {
    const size = fillRows(boxes, Math.max(Math.sqrt(area * aspect) * factor, boxes[0].wide));
    const needed = Math.max(size.wide / aspect, size.tall);
    if (best === null || needed < best.needed) best = { needed, limit: size.limit };
  }
  fillRows(boxes, best.limit);
}

/** Put boxes into rows no wider than a limit; returns the size of the whole. */
function fillRows(boxes, limit) {
  let [x, y, tall, widest] = [0, 0, 0, 0];
  for (const box of boxes) {
    if (x > 0 && x + box.wide > limit) {
      y += tall;
      x = 0;
      tall = 0;
    }
    box.disc.x = x + box.wide / 2;
    box.disc.y = y + box.tall / 2;
    tall = Math.max(tall, box.tall);
    x += box.wide;
    widest = Math.max(widest, x);
  }
  return { limit, wide: widest, tall: y + tall };
}

function boundsOf(layout) {
  const bounds = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (const v of layout.shown) {
    bounds.left = Math.min(bounds.left, layout.x[v]);
    bounds.right = Math.max(bounds.right, layout.x[v]);
    bounds.top = Math.min(bounds.top, layout.y[v]);
    bounds.bottom = Math.max(bounds.bottom, layout.y[v]);
  }
  return bounds;
}
