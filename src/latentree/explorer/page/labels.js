// Names beside the nodes: which are written, and where.

import { cutNames } from "./cutting.js";
import { shownName } from "./dom.js";
import { edgeSupport, isHidden, titleOf } from "./model.js";
import { clamp } from "./numbers.js";
import { Occupancy } from "./occupancy.js";

const MOST_LABELS = 320;
const CROWD = 1500; // nodes in sight beyond which few labels are better than many
const MOST_CROSSED = 0.2; // share of a label that edges may run through
const MOST_TOUCHED = 0.02; // the same of an automatic name, which can be shorter: a corner of it
const BOLD = 1.1; // width of bold letters to that of others
const SMALL = 9.5; // pixels of the letters of support
const WORDS = " · "; // between the words of automatic names
const LONGEST = 30; // characters of a label
const WIDE = 44; // the same of a line beside a row
const FEWEST = 12; // the same however narrow the window is
const FOR_LABELS = 0.35; // share of the window's width that labels may take
const LETTER = 0.58; // width of most letters in units of the font's size
const LINE = 1.2; // height of a line in units of the font's size
const TWO_LINES = 2.6; // the same of a row from which labels may have two lines
const ROOMY = 9.2; // pixels a row at which all labels fit by construction

/** How far in pixels the largest disc reaches beyond its node. */
export function haloReach(scale) {
  return clamp(0.55 * scale, 3, 9);
}

/** A name as short as a list has room for. */
export function shortName(state, v, most) {
  return shortNames(state, most)[v];
}

export const FONT = 'system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif';

/** Size in pixels of a label's letters. */
export function fontSize(scale) {
  return clamp(scale * 0.74, 9, scale > 26 ? 14.5 : 13);
}

/** Width of a node's label at a scale, in units of the font's size. */
export function labelWidth(ctx, state, v, scale) {
  return linesWidth(ctx, state, linesOf(state, v, scale));
}

function linesWidth(ctx, state, lines) {
  return Math.max(...lines.map((line) => textWidth(ctx, state, line)));
}

/**
 * The lines of a node's own label. Beside rows there is width for long names; where rows are far
 * apart longer ones are wrapped, and the longest lose what they have in common with others.
 */
function linesOf(state, v, scale) {
  const isRow = state.layout.kind !== "radial" && hasStrip(state, v);
  const most = Math.min(isRow ? WIDE : LONGEST, lettersBeside(state, scale));
  const name = flat(titleOf(state.model, v));
  if (Array.from(name).length <= most) return [name];
  const isUpright = isRow && scale >= TWO_LINES * fontSize(scale);
  if (!isUpright) return [shortNames(state, most)[v]];
  return wrapped(shortNames(state, 2 * most - 2)[v], most);
}

/** Letters of a label for which there is room beside the tree; beside a disc there are two sides. */
function lettersBeside({ layout, room }, scale) {
  const share = layout.kind === "radial" ? FOR_LABELS / 2 : FOR_LABELS;
  return Math.max(Math.floor((share * (room ?? Infinity)) / (LETTER * fontSize(scale))), FEWEST);
}

/** Two lines of a text, broken at a blank if there is one. */
function wrapped(text, most) {
  const blank = text.lastIndexOf(" ", most);
  const at = blank > most / 3 ? blank : most;
  return [text.slice(0, at).trim(), text.slice(at).trim()].filter(Boolean);
}

/** A name on one line. */
function flat(name) {
  return shownName(name.replace(/\s+/gu, " "));
}

/** Width of a text in units of the font's size; measured once. */
function textWidth(ctx, state, text) {
  state.widths ??= new Map();
  let width = state.widths.get(text);
  if (width === undefined) {
    ctx.font = `100px ${FONT}`;
    width = ctx.measureText(text).width / 100;
    state.widths.set(text, width);
  }
  return width;
}

/** What is taken before any label is written: nodes and edges, unless they are too many. */
function roomFor(state, frame, size, crowded) {
  const grid = new Occupancy(frame.width, frame.height, size * 0.5);
  if (crowded) return grid;
  grid.addNodes(state.layout, frame, frame.dot);
  grid.addEdges(state.layout, frame);
  return grid;
}

/** Write the labels that have room, the most important first. */
export function drawLabels(ctx, state, frame, colors) {
  const size = fontSize(frame.scale);
  const roomy = frame.scale >= ROOMY;
  const crowded = frame.nodes.length > CROWD;
  const most = roomy ? MOST_LABELS : crowded ? 60 : 160;
  const grid = roomFor(state, frame, size, crowded);
  ctx.textBaseline = "middle";
  ctx.lineJoin = "round";
  let written = 0;
  for (const { v, urgent } of labelQueue(state, frame.nodes, frame)) {
    if (written >= most) break;
    const hidden = isHidden(state.model, v);
    const font = letterSize(size, hidden, urgent);
    const certain = urgent || (roomy && hasStrip(state, v));
    const wide = font * (urgent ? BOLD : 1);
    const place = (lines) =>
      spotsFor(state, frame, v, linesWidth(ctx, state, lines) * wide, font, lines.length);
    const crossed = isAutomatic(state.model, v) ? MOST_TOUCHED : MOST_CROSSED;
    const texts = wordings(state, v, frame.scale);
    const found = firstThatFits(grid, texts, place, certain ? Infinity : crossed);
    if (!found) continue;
    grid.fill(found.spot);
    write(ctx, state, v, found, hidden, urgent, colors);
    written++;
  }
  if (!crowded && roomy) drawSupport(ctx, state, frame, grid, colors);
}

/** The middle of the parabola in the middle of an edge. */
function halfway(points, starts, v) {
  const from = 2 * (starts[v] + 2 * Math.floor((starts[v + 1] - starts[v]) / 4));
  const start = Math.min(from, 2 * starts[v + 1] - 6);
  const [ax, ay, cx, cy, bx, by] = points.subarray(start, start + 6);
  return [(ax + 2 * cx + bx) / 4, (ay + 2 * cy + by) / 4];
}

/** How sure the edges are, in percent halfway along them, where there is room. */
function drawSupport(ctx, state, frame, grid, colors) {
  const { layout, model } = state;
  if (!model.support) return;
  const { points, starts } = layout;
  for (const v of layout.edges) {
    const sure = edgeSupport(state, v);
    if (Number.isNaN(sure)) continue;
    const text = `${Math.round(100 * sure)}`;
    const [x, y] = halfway(points, starts, v).map(
      (at, axis) => at * frame.scale + [frame.dx, frame.dy][axis],
    );
    const width = textWidth(ctx, state, text) * SMALL;
    const spot = { node: -1, x: x - width / 2, y, angle: 0, flipped: false, width, font: SMALL };
    if (!grid.isFree(spot)) continue;
    grid.fill(spot);
    ctx.save();
    ctx.translate(spot.x, spot.y);
    ctx.direction = "ltr";
    ctx.textAlign = "left";
    ctx.font = `${SMALL}px ${FONT}`;
    ctx.lineWidth = 3;
    ctx.strokeStyle = colors.paper;
    ctx.strokeText(text, 0, 0);
    ctx.fillStyle = colors.hiddenInk;
    ctx.fillText(text, 0, 0);
    ctx.restore();
  }
}

function letterSize(size, hidden, urgent) {
  if (urgent) return Math.max(size, 12);
  return hidden ? size * 0.86 : size;
}

/** The first of some wordings that has a place. */
function firstThatFits(grid, texts, place, most) {
  for (const lines of texts) {
    const spot = bestSpot(grid, place(lines), most);
    if (spot) return { lines, spot };
  }
  return null;
}

function isAutomatic(model, v) {
  return titleOf(model, v) === model.captions[v];
}

/** Lines of a label, and of automatic names what is left when their last words are left out. */
function wordings(state, v, scale) {
  const { model } = state;
  if (!isAutomatic(model, v)) return [linesOf(state, v, scale)];
  const whole = flat(titleOf(model, v));
  const words = whole.split(WORDS);
  const shorter = words.slice(1).map((_, i) => `${words.slice(0, -1 - i).join(WORDS)} …`);
  const all = [whole, ...shorter];
  const short = all.filter((text) => Array.from(text).length <= LONGEST);
  return (short.length > 0 ? short : [shortNames(state, LONGEST)[v]]).map((text) => [text]);
}

/** Names of all nodes, cut to a length; made again when one is renamed. */
function shortNames(state, most) {
  const { model } = state;
  const titles = Array.from(model.names, (_, v) => flat(titleOf(model, v)));
  const key = titles.join("\n");
  if (state.shortened?.key !== key) state.shortened = { key, lists: new Map() };
  const { lists } = state.shortened;
  if (!lists.has(most)) {
    // Apart, as names of hidden variables are made of those of others.
    const parts = [titles.slice(0, model.observed), titles.slice(model.observed)];
    lists.set(
      most,
      parts.flatMap((part) => cutNames(part, most)),
    );
  }
  return lists.get(most);
}

/** Nodes in the order in which labels find their places; the urgent ones always have one. */
function labelQueue(state, nodes, frame) {
  const { model, selection, hover, evidence, folded } = state;
  const urgent = new Set();
  for (const one of [selection, hover]) {
    if (one && "node" in one) urgent.add(one.node);
    if (one && "path" in one) for (const v of one.path) urgent.add(v);
    if (one && "edge" in one) urgent.add(one.edge).add(state.tree.parent[one.edge]);
  }
  if (state.echo >= 0) urgent.add(state.echo);
  const among = new Set(nodes);
  const front = [...urgent].filter((v) => among.has(v)).map((v) => ({ v, urgent: true }));
  const showHidden = frame.scale >= 13;
  const importance = labelImportance(state);
  const wanted = nodes.filter(
    (v) =>
      !urgent.has(v) &&
      isNamed(state, v) &&
      (!isHidden(model, v) || showHidden || folded[v] || model.names[v] !== model.ownNames[v]),
  );
  const early = (v) => importance[v] + (evidence.has(v) && !hasStrip(state, v) ? 1e6 : 0);
  const ranked = wanted.map((v) => ({ v, urgent: false, rank: early(v) }));
  ranked.sort((a, b) => b.rank - a.rank);
  return front.concat(ranked.slice(0, 3 * MOST_LABELS));
}

/** Whether the label of a node is wanted where the legend lets some nodes stand out. */
function isNamed({ highlight, coloring }, v) {
  return highlight.size === 0 || highlight.has(coloring.number[v]);
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

/** The free place that fewest edges run through, less than `most`; anywhere if that is infinite. */
function bestSpot(grid, spots, most) {
  let best = null;
  let fewest = most;
  for (const spot of spots) {
    const free = grid.isFree(spot);
    if (!free && most < Infinity) continue;
    const crossed = spots.length === 1 ? 0 : grid.crossed(spot) + (free ? 0 : 1);
    if (crossed < fewest) [best, fewest] = [spot, crossed];
    if (fewest === 0) break;
  }
  return best;
}

/** Where a label can go: along its strip, or else around its node, the best places first. */
function spotsFor(state, frame, v, width, font, lines) {
  const { layout } = state;
  const x = layout.x[v] * frame.scale + frame.dx;
  const y = layout.y[v] * frame.scale + frame.dy;
  const gap = frame.dot + 0.32 * font;
  if (!hasStrip(state, v)) {
    const inside = (left) => Math.max(Math.min(left, frame.width - width - 4), 4);
    const [right, left, middle] = [x + 0.5 * gap, x - 0.5 * gap - width, x - width / 2];
    const [above, below] = [y - gap - 0.4 * font, y + gap + 0.4 * font];
    const places = [
      [right, above],
      [left, above],
      [right, below],
      [left, below],
    ];
    const beside = [
      [middle, above],
      [middle, below],
      [x - gap - width, y],
      [x + gap, y],
    ];
    return [...places, ...beside].map(([start, height]) => ({
      node: v,
      x: inside(start),
      y: height,
      angle: 0,
      flipped: false,
      width,
      font,
      lines,
    }));
  }
  let angle = layout.angle[v];
  const flipped = Math.cos(angle) < -1e-9;
  const start = { x: x + gap * Math.cos(angle), y: y + gap * Math.sin(angle) };
  if (flipped) angle += Math.PI;
  return [{ node: v, ...start, angle, flipped, width, font, lines }];
}

function write(ctx, state, v, { lines, spot }, hidden, urgent, colors) {
  const more = state.folded[v] ? ` +${state.tree.size[v] - 1}` : "";
  ctx.save();
  ctx.translate(spot.x, spot.y);
  ctx.rotate(spot.angle);
  ctx.direction = "ltr";
  ctx.textAlign = spot.flipped ? "right" : "left";
  ctx.font = `${hidden ? "italic " : ""}${urgent ? "600 " : ""}${spot.font.toFixed(1)}px ${FONT}`;
  ctx.translate(0, (-(lines.length - 1) / 2) * LINE * spot.font);
  lines.forEach((line, i) => {
    const text = i === lines.length - 1 ? line + more : line;
    if (urgent || !hasStrip(state, v)) {
      ctx.lineWidth = 3; // a rim, where edges may run below the text
      ctx.strokeStyle = colors.paper;
      ctx.strokeText(text, 0, 0);
    }
    ctx.fillStyle = hidden ? colors.hiddenInk : colors.ink;
    ctx.fillText(text, 0, 0);
    ctx.translate(0, LINE * spot.font);
  });
  ctx.restore();
}
