// Drawing the tree on anything that has the methods of a canvas. A view says which part of the
// plane is seen: the point in its middle, and the pixels of one unit.

import { shownName } from "./dom.js";
import { directionOf, greatness } from "./inference.js";
import { edgeMeets } from "./layout.js";
import { isHidden } from "./model.js";
import { clamp } from "./numbers.js";

const LEVELS = 6; // of strength, each drawn at once
const MOST_LABELS = 320;
const CROWD = 1500; // nodes in sight beyond which few labels are better than many
const LONGEST = 30; // characters of a label
const ROOMY = 9.2; // pixels a row at which all labels fit by construction

/** Edges by sign and strength, so that each kind is one stroke. */
export function edgeBuckets(state) {
  const { layout, strengths, tree } = state;
  const lists = Array.from({ length: 2 * LEVELS }, () => []);
  for (const v of layout.shown) {
    if (tree.parent[v] < 0) continue;
    const strength = edgeStrengthOf(state, v);
    const level = Math.min(Math.floor(Math.abs(strength) * LEVELS), LEVELS - 1);
    lists[level + (strength < 0 ? LEVELS : 0)].push(v);
  }
  strengths.anyNegative = lists.slice(LEVELS).some((list) => list.length > 0);
  return lists.map((list) => Int32Array.from(list));
}

/** An edge of the drawn tree is known by its outer end; in the model its lower end may differ. */
export function modelEdge(state, v) {
  const above = state.tree.parent[v];
  return state.model.parent[v] === above ? v : above;
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
  if (!state.unlabeled) drawLabels(ctx, state, frame, colors);
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
  ctx.lineCap = "round";
  state.buckets.forEach((edges, bucket) => {
    if (edges.length === 0) return;
    const negative = bucket >= LEVELS;
    const power = ((bucket % LEVELS) + 0.5) / LEVELS;
    ctx.strokeStyle = (negative ? colors.negative : colors.edge)[bucket % LEVELS];
    ctx.lineWidth = weight * (0.55 + 2.4 * power);
    ctx.setLineDash(negative ? [4.5 * weight + 1, 3 * weight + 1.5] : []);
    ctx.beginPath();
    for (let i = 0; i < edges.length; i++) traceEdge(ctx, state.layout, frame, edges[i]);
    ctx.stroke();
  });
  ctx.setLineDash([]);
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
  if (wide + tall < 9 || Math.min(wide, tall) < 1) {
    ctx.lineTo(points[last] * scale + dx, points[last + 1] * scale + dy); // no bend is seen
    return;
  }
  for (i += 2; i < last; i += 4) {
    ctx.quadraticCurveTo(
      points[i] * scale + dx,
      points[i + 1] * scale + dy,
      points[i + 2] * scale + dx,
      points[i + 3] * scale + dy,
    );
  }
}

/** A glow along the edge that is selected or pointed at. */
function drawChosenEdges(ctx, state, frame, colors) {
  const { layout, hover, selection } = state;
  for (const one of [hover, selection]) {
    if (!one || !("edge" in one) || !layout.visible[one.edge]) continue;
    ctx.beginPath();
    traceEdge(ctx, layout, frame, one.edge);
    ctx.lineWidth = one === selection ? 5 : 4;
    ctx.strokeStyle = colors.glow;
    ctx.stroke();
  }
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

/** How far in pixels the largest disc reaches beyond its node. */
function haloReach(scale) {
  return clamp(0.55 * scale, 3, 9);
}

/** Discs behind the nodes that evidence has moved: the farther, the larger. */
function drawHalos(ctx, state, frame, colors) {
  if (state.evidence.size === 0) return;
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
  const { layout, model } = state;
  const { nodes } = frame;
  const hidden = nodes.filter((v) => isHidden(model, v));
  const byGroup = model.groups.map(() => []);
  for (const v of nodes) if (!isHidden(model, v)) byGroup[model.group[v]].push(v);
  const at = (v) => [layout.x[v] * frame.scale + frame.dx, layout.y[v] * frame.scale + frame.dy];
  const small = 0.78 * frame.dot;
  ctx.beginPath();
  for (const v of hidden) traceMarker(ctx, "o", ...at(v), small);
  ctx.fillStyle = colors.paper;
  ctx.fill();
  ctx.lineWidth = clamp(0.36 * small, 0.5, 1.4);
  ctx.strokeStyle = colors.hidden;
  ctx.stroke();
  byGroup.forEach((members, group) => {
    const style = model.groups[group];
    ctx.beginPath();
    for (const v of members) traceMarker(ctx, style.marker, ...at(v), frame.dot);
    ctx.fillStyle = groupColor(style, colors);
    ctx.fill();
  });
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
    if (!layout.visible[v]) return;
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
  for (const v of evidence.keys()) ring(v, dot + 2.5, 2.4, colors.accent);
  if (hover && "node" in hover) ring(hover.node, dot + 3, 1, colors.ink);
  if (selection && "node" in selection) ring(selection.node, dot + 4, 1.6, colors.ink);
}

// Labels --------------------------------------------------------------------------------------

export const FONT = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';

/** Size in pixels of a label's letters. */
export function fontSize(scale) {
  return clamp(scale * 0.74, 9, scale > 26 ? 14.5 : 13);
}

/** A name as it is drawn: cut to a length, line breaks as blanks. */
export function labelOf(name) {
  const letters = Array.from(shownName(name.replace(/\s+/gu, " ")));
  return letters.length > LONGEST ? `${letters.slice(0, LONGEST - 1).join("")}…` : letters.join("");
}

/** Width of a node's label, in units of the font's size; measured once. */
export function labelWidth(ctx, state, v) {
  state.widths ??= new Map();
  const text = labelOf(state.model.names[v]);
  let width = state.widths.get(text);
  if (width === undefined) {
    ctx.font = `100px ${FONT}`;
    width = ctx.measureText(text).width / 100;
    state.widths.set(text, width);
  }
  return width;
}

/** Write the labels that have room, the most important first. */
function drawLabels(ctx, state, frame, colors) {
  const size = fontSize(frame.scale);
  const roomy = frame.scale >= ROOMY;
  const crowded = frame.nodes.length > CROWD;
  const most = roomy ? MOST_LABELS : crowded ? 60 : 160;
  const grid = new Occupancy(frame.width, frame.height, size * 0.5);
  if (!crowded) grid.addNodes(state.layout, frame);
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  let written = 0;
  for (const { v, urgent } of labelQueue(state, frame.nodes, frame)) {
    if (written >= most) break;
    const hidden = isHidden(state.model, v);
    const font = urgent ? Math.max(size, 12) : hidden ? size * 0.86 : size;
    const spot = spotFor(state, frame, v, labelWidth(ctx, state, v) * font, font);
    const certain = urgent || (roomy && hasStrip(state, v));
    if (!certain && !grid.isFree(spot)) continue;
    grid.fill(spot);
    write(ctx, state, v, spot, hidden, urgent, colors);
    written++;
  }
}

/** Nodes in the order in which labels find their places; the urgent ones always have one. */
function labelQueue(state, nodes, frame) {
  const { model, selection, hover, evidence, originalNames, folded } = state;
  const urgent = new Set();
  for (const one of [selection, hover]) {
    if (one && "node" in one) urgent.add(one.node);
    if (one && "edge" in one) urgent.add(one.edge).add(state.tree.parent[one.edge]);
  }
  const among = new Set(nodes);
  const front = [...urgent].filter((v) => among.has(v)).map((v) => ({ v, urgent: true }));
  const showHidden = frame.scale >= 13;
  const importance = labelImportance(state);
  const wanted = nodes.filter(
    (v) =>
      !urgent.has(v) &&
      (!isHidden(model, v) || showHidden || folded[v] || model.names[v] !== originalNames[v]),
  );
  const early = (v) => importance[v] + (evidence.has(v) ? 1e6 : 0);
  const ranked = wanted.map((v) => ({ v, urgent: false, rank: early(v) }));
  ranked.sort((a, b) => b.rank - a.rank);
  return front.concat(ranked.slice(0, 3 * MOST_LABELS));
}

/** Renamed hidden nodes, then inner variables, then those with the strongest edges. */
function labelImportance(state) {
  if (state.importance) return state.importance;
  const { model, strengths } = state;
  const out = new Float64Array(model.size);
  for (let v = 0; v < model.size; v++) {
    const degree = model.childStart[v + 1] - model.childStart[v] + (model.parent[v] >= 0 ? 1 : 0);
    out[v] += Math.abs(strengths.signed[v]) + 2 * Math.min(degree - 1, 50);
    if (isHidden(model, v)) out[v] -= 1000;
  }
  state.importance = out;
  return out;
}

/** Whether a node's label has a strip of its own, in the direction of its angle. */
export function hasStrip({ layout, folded }, v) {
  return layout.slot[v] === 1 || folded[v] === 1;
}

/** Where a label goes: along its strip, or else above and right of its node. */
function spotFor(state, frame, v, width, font) {
  const { layout } = state;
  const x = layout.x[v] * frame.scale + frame.dx;
  const y = layout.y[v] * frame.scale + frame.dy;
  const gap =
    frame.dot + 0.32 * font + (state.evidence.size > 0 ? haloReach(frame.scale) * 0.5 : 0);
  if (!hasStrip(state, v)) {
    return { x: x + 0.5 * gap, y: y - gap - 0.4 * font, angle: 0, flipped: false, width, font };
  }
  let angle = layout.angle[v];
  const flipped = Math.cos(angle) < -1e-9;
  const start = { x: x + gap * Math.cos(angle), y: y + gap * Math.sin(angle) };
  if (flipped) angle += Math.PI;
  return { ...start, angle, flipped, width, font };
}

function write(ctx, state, v, spot, hidden, urgent, colors) {
  const more = state.folded[v] ? ` +${state.tree.size[v] - 1}` : "";
  const text = labelOf(state.model.names[v]) + more;
  ctx.save();
  ctx.translate(spot.x, spot.y);
  ctx.rotate(spot.angle);
  ctx.direction = "ltr";
  ctx.textAlign = spot.flipped ? "right" : "left";
  ctx.font = `${hidden ? "italic " : ""}${urgent ? "600 " : ""}${spot.font.toFixed(1)}px ${FONT}`;
  if (urgent || !hasStrip(state, v)) {
    ctx.lineWidth = 3; // a rim, where edges may run below the text
    ctx.strokeStyle = colors.paper;
    ctx.strokeText(text, 0, 0);
  }
  ctx.fillStyle = hidden ? colors.hiddenInk : colors.ink;
  ctx.fillText(text, 0, 0);
  ctx.restore();
}

/** Cells of the picture that hold a label or a node already. */
class Occupancy {
  constructor(width, height, cell) {
    this.cell = cell;
    this.columns = Math.ceil(width / cell) + 1;
    this.rows = Math.ceil(height / cell) + 1;
    this.taken = new Uint8Array(this.columns * this.rows);
  }

  index(x, y) {
    const column = Math.floor(x / this.cell);
    const row = Math.floor(y / this.cell);
    const inside = column >= 0 && row >= 0 && column < this.columns && row < this.rows;
    return inside ? row * this.columns + column : -1;
  }

  addNodes(layout, { nodes, scale, dx, dy }) {
    for (const v of nodes) {
      const i = this.index(layout.x[v] * scale + dx, layout.y[v] * scale + dy);
      if (i >= 0) this.taken[i] = 1;
    }
  }

  isFree(spot) {
    return !this.some(spot, (i) => this.taken[i] === 1);
  }

  fill(spot) {
    this.some(spot, (i) => {
      this.taken[i] = 1;
      return false;
    });
  }

  /** Whether a test holds for a cell under the spot's three lines of points. */
  some(spot, test) {
    const { x, y, angle, width, font } = spot;
    const cos = Math.cos(angle);
    const sin = Math.sin(angle);
    const sign = spot.flipped ? -1 : 1;
    for (let along = 0; along <= width; along += this.cell * 0.8) {
      for (const across of [-0.45 * font, 0, 0.45 * font]) {
        const i = this.index(
          x + sign * along * cos - across * sin,
          y + sign * along * sin + across * cos,
        );
        if (i >= 0 && test(i)) return true;
      }
    }
    return false;
  }
}
