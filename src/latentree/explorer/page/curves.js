// Edges between other places than those that Python gave: of branch lengths, and of clusters of
// nodes that are drawn as one. They have the shape of Python's: all edges from a node turn within the
// band between its level and that of its nearest child, and run straight from there.

const PIECES = 4; // parabolas along the curved part of an edge
const BEND = 2; // the slot still to go falls like (1 − u)^BEND while the level rises like u^delay
const DELAY = { hidden: 1, middle: 2, observed: 2.6 }; // past the labels of observed nodes

/**
 * The same layout with some nodes elsewhere and the edges of `anew` drawn anew. Of every node there
 * are `level` and `slot`, which `toPlane` turns into a point; `top` is the node at whose place the
 * upper end of an edge is drawn.
 */
export function redrawn(given, tree, observed, { level, slot, toPlane, top, anew }) {
  const nearest = nearestChild(tree, level, top);
  const chains = Array.from(tree.parent, (above, v) => {
    if (above < 0 || top[v] !== v) return new Float32Array(0);
    if (!anew(v)) return given.points.subarray(2 * given.starts[v], 2 * given.starts[v + 1]);
    const from = top[above];
    const place = (at, to) => toPlane(at, to, v);
    const across = tree.halves.has(v) && level[from] > 0;
    if (across) return throughMiddle(tree, v, level, slot, place);
    if (tree.halves.has(v) && given.kind !== "radial" && level[v] === level[from]) {
      const [a, b] = [place(level[from], slot[from]), place(level[v], slot[v])];
      return Float32Array.from([...a, ...a.map((value, k) => (value + b[k]) / 2), ...b]);
    }
    // All slots meet at the center of a disc.
    const start = given.kind === "radial" && level[from] < 1e-6 ? slot[v] : slot[from];
    return chain({ level: level[from], slot: start }, [level[v], slot[v]], {
      end: Math.max(nearest[from], level[from]),
      delay: from < observed ? DELAY.observed : DELAY.hidden,
      toPlane: place,
    });
  });
  const starts = new Int32Array(chains.length + 1);
  chains.forEach((points, v) => {
    starts[v + 1] = starts[v] + points.length / 2;
  });
  const points = new Float32Array(2 * starts[chains.length]);
  chains.forEach((own, v) => {
    points.set(own, 2 * starts[v]);
  });
  return { ...given, starts, points };
}

/** Level of the child nearest to the middle, of every cluster of nodes. */
function nearestChild(tree, level, top) {
  const nearest = new Float64Array(level.length).fill(Infinity);
  tree.parent.forEach((above, v) => {
    // Across a middle there is no child, but the other side.
    if (above < 0 || top[v] !== v || tree.halves.has(v)) return;
    nearest[top[above]] = Math.min(nearest[top[above]], level[v]);
  });
  return nearest;
}

/** Points from one node to another: a start, then control point and end of every parabola. */
function chain(from, [level, slot], { end, delay, toPlane }) {
  const at = (u) =>
    toPlane(
      from.level + (end - from.level) * u ** delay,
      slot + (from.slot - slot) * (1 - u) ** BEND,
    );
  const points = [...at(0)];
  for (let i = 0; i < PIECES; i++) {
    const [a, m, b] = [i, i + 0.5, i + 1].map((step) => at(step / PIECES));
    // The parabola through a, the point m halfway and b has its control point at 2m − (a + b)/2.
    points.push(...m.map((value, k) => 2 * value - (a[k] + b[k]) / 2), ...b);
  }
  const [last, goal] = [at(1), toPlane(level, slot)];
  points.push(...goal.map((value, k) => (value + last[k]) / 2), ...goal);
  return Float32Array.from(points);
}

/** Up to the middle of a component, and down on the other side. */
function throughMiddle(tree, v, level, slot, toPlane) {
  const other = tree.parent[v];
  const middle = { level: 0, slot: (slot[v] + slot[other]) / 2 };
  const how = { end: Math.min(level[v], level[other]), delay: DELAY.middle, toPlane };
  const [up, down] = [other, v].map((u) => chain(middle, [level[u], slot[u]], how));
  const turned = Array.from({ length: up.length / 2 }, (_, i) => [up[2 * i], up[2 * i + 1]]);
  return Float32Array.from([...turned.reverse().flat(), ...down.subarray(2)]);
}

/**
 * Nodes that are drawn as one when edges are contracted: `top` of every node, the one nearest to
 * the middle, and `face` of every top, the observed one if there is any.
 */
export function clustersOf(tree, observed, isContracted) {
  const top = Int32Array.from(tree.parent.keys());
  const face = top.slice();
  for (const v of tree.order) {
    const above = tree.parent[v];
    if (above < 0 || !isContracted(v)) continue;
    const onto = top[above];
    if (v < observed && face[onto] < observed) continue; // two variables stay two nodes
    top[v] = onto;
    if (v < observed) face[onto] = v;
  }
  return { top, face };
}

/** A layout with every cluster of nodes at the place of its top; those across a middle, in it. */
export function contracted(given, tree, observed, { top, face }) {
  const lens = given.kind === "radial" ? discLens(given, tree) : rowLens(given);
  const { level, slot } = lens;
  const central = new Uint8Array(top.length);
  const large = new Uint8Array(top.length);
  for (const v of tree.order) {
    if (top[v] === v) continue;
    large[top[v]] = 1;
    if (tree.halves.has(v)) central[top[v]] = 1;
  }
  const [x, y, room] = [given.x.slice(), given.y.slice(), given.slot.slice()];
  for (const second of tree.halves.keys()) {
    const root = tree.parent[second];
    if (!central[root]) continue;
    slot[root] = (slot[root] + slot[second]) / 2;
    level[root] = 0;
  }
  for (const v of tree.order) {
    const t = top[v];
    if (!large[t]) continue;
    [x[v], y[v]] = lens.toPlane(level[t], slot[t], v);
    if (v !== t || central[t]) room[v] = 0; // its strip for a label is elsewhere
  }
  const anew = (v) => {
    const t = top[tree.parent[v]];
    return large[t] === 1 && (central[t] === 1 || !tree.halves.has(v));
  };
  const made = redrawn({ ...given, x, y, slot: room }, tree, observed, { ...lens, top, anew });
  return { ...made, top, face };
}

export function rowLens({ x, y }) {
  return { level: Float64Array.from(x), slot: Float64Array.from(y), toPlane: (l, s) => [l, s] };
}

/** Distance from the center and angle of every node of a disc. */
function discLens({ x, y, angle }, tree) {
  const [cx, cy] = [Float64Array.from(x), Float64Array.from(y)];
  for (const [second, center] of tree.halves)
    [cx[tree.parent[second]], cy[tree.parent[second]]] = center;
  for (const v of tree.order) {
    const above = tree.parent[v];
    if (above >= 0) [cx[v], cy[v]] = [cx[above], cy[above]];
  }
  const level = Float64Array.from(x, (value, v) => Math.hypot(value - cx[v], y[v] - cy[v]));
  const toPlane = (at, turn, v) => [cx[v] + at * Math.cos(turn), cy[v] + at * Math.sin(turn)];
  return { level, slot: Float64Array.from(angle), toPlane };
}
