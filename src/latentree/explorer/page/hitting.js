// What is under a point of the screen.

import { edgeMeets } from "./layout.js";
import { isHidden } from "./model.js";
import { clamp } from "./numbers.js";

const CHORDS = 6; // of a parabola, when its distance is measured

/** The node ({ node }) or edge ({ edge }) at a point of the screen, or null. */
export function hitAt(view, x, y, slack) {
  const node = nodeAt(view, x, y, (view.state.dot ?? 2) + slack);
  if (node >= 0) return { node };
  const edge = edgeAt(view, x, y, 5);
  return edge >= 0 ? { edge } : null;
}

function nodeAt(view, x, y, reach) {
  const { layout, model } = view.state;
  let best = -1;
  let nearest = reach * reach;
  for (const v of layout.shown) {
    const at = view.toScreen(v);
    const distance = (at.x - x) ** 2 + (at.y - y) ** 2;
    if (distance < nearest || (distance === nearest && !isHidden(model, v))) {
      best = v;
      nearest = distance;
    }
  }
  return best;
}

function edgeAt(view, x, y, reach) {
  const { layout } = view.state;
  if (layout.shown.length > 3000 && view.scale < 4) return -1; // too dense to be meant
  const point = view.toWorld(x, y);
  const limit = reach / view.scale;
  let best = -1;
  let nearest = limit;
  for (const v of layout.edges) {
    const distance = edgeDistance(layout, v, point.x, point.y, nearest);
    if (distance < nearest) {
      best = v;
      nearest = distance;
    }
  }
  return best;
}

/** Distance in units from a point to an edge's curve, or more than `limit`. */
function edgeDistance(layout, v, x, y, limit) {
  const near = { left: x - limit, right: x + limit, top: y - limit, bottom: y + limit };
  if (!edgeMeets(layout, v, near)) return Number.POSITIVE_INFINITY;
  const { starts, points } = layout;
  let best = Number.POSITIVE_INFINITY;
  for (let i = starts[v]; i + 2 < starts[v + 1]; i += 2) {
    const curve = points.subarray(2 * i, 2 * i + 6);
    for (let k = 0; k < CHORDS; k++) {
      const [a, b] = [parabola(curve, k / CHORDS), parabola(curve, (k + 1) / CHORDS)];
      best = Math.min(best, segmentDistance(a, b, x, y));
    }
  }
  return best;
}

/** The point at t from 0 to 1 of a parabola by its start, control point and end. */
function parabola([ax, ay, cx, cy, bx, by], t) {
  const w = [(1 - t) ** 2, 2 * t * (1 - t), t * t];
  return { x: w[0] * ax + w[1] * cx + w[2] * bx, y: w[0] * ay + w[1] * cy + w[2] * by };
}

function segmentDistance(a, b, x, y) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const length = dx * dx + dy * dy;
  const t = length === 0 ? 0 : clamp(((x - a.x) * dx + (y - a.y) * dy) / length, 0, 1);
  return Math.hypot(a.x + t * dx - x, a.y + t * dy - y);
}
