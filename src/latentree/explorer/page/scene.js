// Drawing the tree on anything that has the methods of a canvas. A view says which part of the
// plane is seen: the point in its middle, and the pixels of one unit.

import { directionOf, greatness } from "./inference.js";
import { drawLabels, FONT, haloReach } from "./labels.js";
import { edgeMeets, edgesAlong, pathBetween } from "./layout.js";
import { edgeSupport, isDoubtful, isHidden, modelEdge } from "./model.js";
import { clamp } from "./numbers.js";

const LEVELS = 6; // of strength, each drawn at once
const UNKNOWN = { color: "#83898f", dark_color: "#7c848d", marker: "o" };
const FAINT = 0.25; // share of a node's own color when others stand out
const FADED = 2 * LEVELS; // the bucket of edges with too little support
const DIFFERENT = 2 * LEVELS + 1; // the bucket of edges that the other of two trees has not
const MOST_DASHED = 60000; // pixels of dashed lines: far more take seconds and are a haze anyway
const STROKED = 400; // edges a stroke: browsers draw one path of thousands very slowly

/** Edges by sign and strength, so that each kind is one stroke. */
export function edgeBuckets(state) {
  const { layout, strengths } = state;
  const lists = Array.from({ length: 2 * LEVELS + 2 }, () => []);
  for (const v of layout.edges) {
    const strength = edgeStrengthOf(state, v);
    const level = Math.min(Math.floor(Math.abs(strength) * LEVELS), LEVELS - 1);
    const usual = level + (strength < 0 ? LEVELS : 0);
    const differs = state.pair?.differs[modelEdge(state, v)] === 1;
    lists[differs ? DIFFERENT : isDoubted(state, v) ? FADED : usual].push(v);
  }
  strengths.anyNegative = lists.slice(LEVELS, FADED).some((list) => list.length > 0);
  return lists.map((list) => Int32Array.from(list));
}

/** Whether an edge has less support than is asked for. */
export function isDoubted(state, v) {
  return edgeSupport(state, v) < state.doubt.below;
}

export function edgeStrengthOf(state, v) {
  return state.strengths.drawn[modelEdge(state, v)];
}

export function drawScene(ctx, state, view, colors) {
  const frame = frameOf(state, view);
  state.dot = frame.dot;
  ctx.fillStyle = colors.paper;
  ctx.fillRect(0, 0, view.width + 1, view.height + 1);
  drawEdges(ctx, state, frame, colors);
  drawChosenEdges(ctx, state, frame, colors);
  drawHalos(ctx, state, frame, colors);
  drawNodes(ctx, state, frame, colors);
  drawMarks(ctx, state, frame, colors);
  if (state.unlabeled) return;
  drawLabels(ctx, state, frame, colors);
  drawScale(ctx, state.layout, frame, colors);
}

/** A line as long as a round distance, where edges are as long as theirs. */
function drawScale(ctx, { longest, wide }, frame, colors) {
  if (!longest) return;
  const pixels = (wide / longest) * frame.scale; // of a distance of 1
  const rough = Math.min(longest / 5, 0.4 * (frame.width / pixels));
  const power = 10 ** Math.floor(Math.log10(rough));
  const size = power * [5, 2, 1].find((step) => step * power <= rough);
  const [x, y] = [14, frame.height - (frame.inset ?? 0) - 12];
  ctx.beginPath();
  ctx.moveTo(x, y - 3);
  ctx.lineTo(x, y);
  ctx.lineTo(x + size * pixels, y);
  ctx.lineTo(x + size * pixels, y - 3);
  ctx.lineWidth = 1.2;
  ctx.strokeStyle = colors.ink;
  ctx.stroke();
  ctx.save();
  ctx.translate(x + 4, y - 9);
  ctx.textAlign = "left";
  ctx.font = `11px ${FONT}`;
  ctx.fillStyle = colors.hiddenInk;
  ctx.fillText(`distance ${Number(size.toPrecision(2))}`, 0, 0);
  ctx.restore();
}

/** A view with what follows from it: its borders in units, the nodes in sight, their size. */
function frameOf(state, view) {
  const { x, y, scale, width, height } = view;
  const margin = 40 / scale;
  const frame = {
    ...view,
    left: x - width / 2 / scale - margin,
    right: x + width / 2 / scale + margin,
    top: y - height / 2 / scale - margin,
    bottom: y + height / 2 / scale + margin,
    dx: width / 2 - x * scale,
    dy: height / 2 - y * scale,
  };
  frame.nodes = seen(state, frame);
  // Dots grow with the scale, and where few are in sight, but not into those of the next row.
  const room = Math.sqrt((width * height) / Math.max(frame.nodes.length, 1));
  frame.dot = clamp(
    Math.max(0.3 * scale, Math.min(0.055 * room, Math.max(0.46 * scale, 1.9))),
    0.9,
    clamp(0.18 * scale, 4.5, 6.5),
  );
  return frame;
}

// Edges ---------------------------------------------------------------------------------------

function drawEdges(ctx, state, frame, colors) {
  const weight = clamp(frame.dot / 3.4, 0.35, 1.4);
  const dashed = dashedLength(state, frame) < MOST_DASHED;
  ctx.lineCap = "round";
  state.buckets.forEach((edges, bucket) => {
    if (edges.length === 0) return;
    const { power, color, dash } = edgeStyle(bucket, weight, colors);
    ctx.strokeStyle = color;
    ctx.lineWidth = weight * (0.55 + 2.4 * power);
    ctx.setLineDash(dashed ? dash : []);
    const stroked = ctx.mark ? 1 : STROKED; // pictures to edit have an element an edge
    for (let from = 0; from < edges.length; from += stroked) {
      const to = Math.min(from + stroked, edges.length);
      ctx.beginPath();
      for (let i = from; i < to; i++) traceEdge(ctx, state.layout, frame, edges[i]);
      ctx.mark?.("edge", edgeName(state, edges[from]));
      ctx.stroke();
    }
  });
  ctx.setLineDash([]);
}

function edgeName({ model, tree }, v) {
  return `${model.names[tree.parent[v]]}--${model.names[v]}`;
}

/** Fill or stroke some nodes: together, or in pictures to edit each by itself. */
function paintNodes(ctx, { model }, members, trace, paint) {
  const groups = ctx.mark ? members.map((v) => [v]) : [members];
  for (const own of groups) {
    ctx.beginPath();
    for (const v of own) trace(v);
    ctx.mark?.("node", model.names[own[0]]);
    paint();
  }
}

function fillAndStroke(ctx) {
  if (ctx.fillAndStroke) {
    ctx.fillAndStroke(); // one element
    return;
  }
  ctx.fill();
  ctx.stroke();
}

/** How the edges of a bucket are drawn: by strength and sign, dotted in doubt, or as different. */
function edgeStyle(bucket, weight, colors) {
  if (bucket === DIFFERENT) return { power: 0.35, color: colors.differs, dash: [] };
  if (bucket === FADED)
    return { power: 0.35, color: colors.edge[4], dash: [0.1, 3.2 * weight + 1] };
  const level = bucket % LEVELS;
  const power = (level + 0.5) / LEVELS;
  if (bucket < LEVELS) return { power, color: colors.edge[level], dash: [] };
  return { power, color: colors.negative[level], dash: [4.5 * weight + 1, 3 * weight + 1.5] };
}

/** Pixels that the dashed and dotted edges in sight are long, about. */
function dashedLength({ layout, buckets }, frame) {
  let sum = 0;
  for (const v of buckets.slice(LEVELS, DIFFERENT).flatMap((edges) => Array.from(edges))) {
    if (!edgeMeets(layout, v, frame)) continue;
    const [left, top, right, bottom] = layout.boxes.subarray(4 * v, 4 * v + 4);
    const wide = Math.min(right, frame.right) - Math.max(left, frame.left);
    const tall = Math.min(bottom, frame.bottom) - Math.max(top, frame.top);
    sum += Math.hypot(wide, tall) * frame.scale;
  }
  return sum;
}

function traceEdge(ctx, layout, frame, v) {
  if (!edgeMeets(layout, v, frame)) return;
  const { points, starts, boxes } = layout;
  const { scale, dx, dy } = frame;
  const wide = (boxes[4 * v + 2] - boxes[4 * v]) * scale;
  const tall = (boxes[4 * v + 3] - boxes[4 * v + 1]) * scale;
  const last = 2 * starts[v + 1] - 2;
  let i = 2 * starts[v];
  ctx.moveTo(points[i] * scale + dx, points[i + 1] * scale + dy);
  if (wide + tall < 9 || (Math.min(wide, tall) < 1 && wide + tall < 4000)) {
    ctx.lineTo(points[last] * scale + dx, points[last + 1] * scale + dy); // no bend is seen
    return;
  }
  const reach = frame.width + frame.height;
  for (i += 2; i < last; i += 4) {
    const [bx, by] = [points[i + 2] * scale + dx, points[i + 3] * scale + dy];
    const [cx, cy] = [points[i] * scale + dx, points[i + 1] * scale + dy];
    if (wide + tall < 2 * reach) {
      ctx.quadraticCurveTo(cx, cy, bx, by);
    } else {
      const [ax, ay] = [points[i - 2] * scale + dx, points[i - 1] * scale + dy];
      traceSeen(ctx, frame, [ax, ay, cx, cy, bx, by], 7);
    }
  }
}

/** Trace what is in sight of a parabola that goes far beyond the picture, by halving it. */
function traceSeen(ctx, frame, [ax, ay, cx, cy, bx, by], depth) {
  const { width, height } = frame;
  const [low, high] = [Math.min(ax, cx, bx), Math.max(ax, cx, bx)];
  const [top, bottom] = [Math.min(ay, cy, by), Math.max(ay, cy, by)];
  if (high < -40 || low > width + 40 || bottom < -40 || top > height + 40) {
    ctx.moveTo(bx, by);
  } else if (depth === 0 || high - low + bottom - top < width + height) {
    ctx.quadraticCurveTo(cx, cy, bx, by);
  } else {
    const [px, py, qx, qy] = [(ax + cx) / 2, (ay + cy) / 2, (cx + bx) / 2, (cy + by) / 2];
    const [mx, my] = [(px + qx) / 2, (py + qy) / 2];
    traceSeen(ctx, frame, [ax, ay, px, py, mx, my], depth - 1);
    traceSeen(ctx, frame, [mx, my, qx, qy, bx, by], depth - 1);
  }
}

/** A glow along the edge that is selected or pointed at. */
function drawChosenEdges(ctx, state, frame, colors) {
  const { layout, hover, selection } = state;
  for (const one of [hover, selection]) {
    const edges = chosenEdges(state, one).filter((v) => isDrawn(layout, v));
    if (edges.length === 0) continue;
    ctx.beginPath();
    for (const v of edges) traceEdge(ctx, layout, frame, v);
    ctx.lineWidth = one === selection ? 5 : 4;
    ctx.strokeStyle = colors.glow;
    ctx.stroke();
  }
}

function isDrawn({ visible, top }, v) {
  return visible[v] === 1 && (!top || top[v] === v);
}

function chosenEdges(state, one) {
  if (!one) return [];
  if ("path" in one) return edgesAlong(state, pathBetween(state, ...one.path));
  return "edge" in one ? [one.edge] : [];
}

// Nodes ---------------------------------------------------------------------------------------

/** Nodes within the frame. */
function seen(state, frame) {
  const { layout } = state;
  const out = [];
  for (const v of layout.shown) {
    const x = layout.x[v];
    const y = layout.y[v];
    if (x >= frame.left && x <= frame.right && y >= frame.top && y <= frame.bottom) out.push(v);
  }
  return out;
}

/** Discs behind the nodes that evidence has moved: the farther, the larger. */
function drawHalos(ctx, state, frame, colors) {
  if (state.evidence.size === 0 || state.coloring.isChange) return; // colors say it then
  const { layout, change, model } = state;
  for (const [sign, color] of [
    [1, colors.up],
    [-1, colors.down],
    [0, colors.moved],
  ]) {
    ctx.fillStyle = color;
    ctx.beginPath();
    for (const v of frame.nodes) {
      const power = Math.min(greatness(model, change, v), 1);
      if (power < 0.015 || directionOf(model, change, v) !== sign || state.evidence.has(v))
        continue;
      const x = layout.x[v] * frame.scale + frame.dx;
      const y = layout.y[v] * frame.scale + frame.dy;
      const radius = frame.dot * 0.8 + Math.sqrt(power) * haloReach(frame.scale);
      ctx.moveTo(x + radius, y);
      ctx.arc(x, y, radius, 0, 2 * Math.PI);
    }
    ctx.fill();
  }
}

function drawNodes(ctx, state, frame, colors) {
  const { layout, model, coloring } = state;
  const at = (v) => [layout.x[v] * frame.scale + frame.dx, layout.y[v] * frame.scale + frame.dy];
  const [plain, faint] = [0, 1].map(() => Array.from([...coloring.styles, null], () => []));
  const last = coloring.styles.length; // variables that have no style
  const hidden = [];
  for (const v of frame.nodes) {
    const number = coloring.number[v];
    if (isHidden(model, v)) hidden.push(v);
    else (standsOut(state, v) ? plain : faint)[number < 0 ? last : number].push(v);
  }
  drawHidden(ctx, state, frame, colors, hidden, at);
  const styleOf = (number) => coloring.styles[number] ?? UNKNOWN;
  for (const [lists, share] of [
    [faint, FAINT],
    [plain, 1],
  ]) {
    lists.forEach((members, number) => {
      if (members.length === 0) return;
      ctx.fillStyle = mixed(groupColor(styleOf(number), colors), colors.paper, share);
      const trace = (v) => traceMarker(ctx, styleOf(number).marker, ...at(v), frame.dot);
      paintNodes(ctx, state, members, trace, () => ctx.fill());
    });
  }
}

/** Rings, dashed where they are doubtful, and filled where hidden nodes have a color. */
function drawHidden(ctx, state, frame, colors, hidden, at) {
  const { model, coloring } = state;
  const small = 0.78 * frame.dot;
  ctx.lineWidth = clamp(0.36 * small, 0.5, 1.4);
  const kinds = new Map();
  for (const v of hidden) {
    const key = `${coloring.number[v]} ${isDoubtful(model, v)} ${standsOut(state, v)}`;
    if (!kinds.has(key)) kinds.set(key, []);
    kinds.get(key).push(v);
  }
  for (const members of kinds.values()) {
    const style = coloring.styles[coloring.number[members[0]]];
    const share = standsOut(state, members[0]) ? 1 : FAINT;
    ctx.fillStyle = style ? mixed(groupColor(style, colors), colors.paper, share) : colors.paper;
    ctx.setLineDash(isDoubtful(model, members[0]) ? [0.55 * small, 0.62 * small] : []);
    ctx.strokeStyle = mixed(colors.hidden, colors.paper, share);
    const trace = (v) => traceMarker(ctx, "o", ...at(v), small);
    paintNodes(ctx, state, members, trace, () => fillAndStroke(ctx));
  }
  ctx.setLineDash([]);
}

/** Whether a node is among those that the legend lets stand out; all are, if it names none. */
export function standsOut({ highlight, coloring }, v) {
  return highlight.size === 0 || highlight.has(coloring.number[v]);
}

/** A color nearer to the paper's; no transparency, so that print is safe. */
export function mixed(color, paper, share) {
  if (share === 1) return color;
  const parts = (text) => [1, 3, 5].map((i) => Number.parseInt(text.slice(i, i + 2), 16));
  const [a, b] = [parts(color), parts(paper)];
  return `rgb(${a.map((value, i) => Math.round(share * value + (1 - share) * b[i])).join(", ")})`;
}

/** Color of a group on the paper of the theme in use. */
export function groupColor(style, colors) {
  return colors.dark ? style.dark_color : style.color;
}

const CORNERS = {
  s: [-135, -45, 45, 135],
  "^": [-90, 30, 150],
  D: [-90, 0, 90, 180],
  v: [90, 210, 330],
};

/** A node, or the folded branch that it is in. */
function seenAs({ tree, layout }, v) {
  let seen = v;
  while (seen >= 0 && !layout.visible[seen]) seen = tree.parent[seen];
  return seen;
}

/** The shape of a group by matplotlib's letter: a disc or a polygon. */
export function traceMarker(ctx, marker, x, y, radius) {
  if (radius < 1.3) {
    ctx.rect(x - radius, y - radius, 2 * radius, 2 * radius);
  } else if (marker === "o") {
    ctx.moveTo(x + radius, y);
    ctx.arc(x, y, radius, 0, 2 * Math.PI);
  } else {
    CORNERS[marker].forEach((degrees, i) => {
      const a = (degrees * Math.PI) / 180;
      const to = [x + 1.23 * radius * Math.cos(a), y + 1.23 * radius * Math.sin(a)];
      if (i === 0) ctx.moveTo(...to);
      else ctx.lineTo(...to);
    });
    ctx.closePath();
  }
}

// Marks: folded branches, evidence, selection ---------------------------------------------------

function drawMarks(ctx, state, frame, colors) {
  const { layout, folded, evidence, selection, hover } = state;
  const dot = Math.max(frame.dot, 2.5);
  const ring = (v, radius, width, color) => {
    if (v < 0 || !layout.visible[v]) return;
    const x = layout.x[v] * frame.scale + frame.dx;
    const y = layout.y[v] * frame.scale + frame.dy;
    ctx.beginPath();
    ctx.moveTo(x + radius, y);
    ctx.arc(x, y, radius, 0, 2 * Math.PI);
    ctx.lineWidth = width;
    ctx.strokeStyle = color;
    ctx.stroke();
  };
  for (const v of frame.nodes) if (folded[v]) ring(v, dot + 2, 2, colors.hidden);
  for (const v of state.pair?.moved ?? []) ring(v, dot + 2, 1.4, colors.differs);
  for (const v of evidence.keys()) ring(seenAs(state, v), dot + 2.5, 2.4, colors.accent);
  if (state.echo >= 0) ring(state.echo, dot + 4, 1.6, colors.accent);
  if (hover && "node" in hover) ring(hover.node, dot + 3, 1, colors.ink);
  const chosen = selection?.path ?? (selection && "node" in selection ? [selection.node] : []);
  for (const v of chosen) ring(v, dot + 4, 1.6, colors.ink);
}
