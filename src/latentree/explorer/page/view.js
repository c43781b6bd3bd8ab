// The canvas: which part of the tree is seen, and how pointer and wheel change that.

import { isHidden } from "./model.js";
import { clamp } from "./numbers.js";
import { drawScene, fontSize, isLeaf, labelWidth } from "./scene.js";
import { emit, on, relayOut, select, toggleFold } from "./state.js";

const LARGEST = 90; // pixels a unit
const LARGEST_WHOLE = 56; // the same when all is shown
const MARGIN = 22;
const MEASURED = 600; // nodes up to which labels count for the size of the whole
const CLICK = 5; // pixels that a click may move

/** Colors as the style sheet has them for the theme in use. */
export function readColors() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const shades = (name) =>
    Array.from({ length: 6 }, (_, i) => mixed(read(name), read("--paper"), i));
  return {
    paper: read("--paper"),
    ink: read("--ink"),
    hidden: read("--hidden"),
    hiddenInk: read("--hidden-ink"),
    plain: read("--plain"),
    ungrouped: read("--ungrouped"),
    accent: read("--accent"),
    glow: read("--glow"),
    up: read("--up"),
    down: read("--down"),
    moved: read("--moved"),
    edge: shades("--edge"),
    negative: shades("--negative"),
    groups: Array.from({ length: 9 }, (_, i) => read(`--group-${i}`)),
  };
}

/** The weaker an edge, the nearer its color to the paper's; no transparency, so print is safe. */
function mixed(color, paper, level) {
  const share = 0.36 + (0.64 * level) / 5;
  const parts = (text) => [1, 3, 5].map((i) => Number.parseInt(text.slice(i, i + 2), 16));
  const [a, b] = [parts(color), parts(paper)];
  return `rgb(${a.map((value, i) => Math.round(share * value + (1 - share) * b[i])).join(", ")})`;
}

export class View {
  constructor(state, canvas) {
    this.state = state;
    this.canvas = canvas;
    this.ctx = canvas.getContext("2d", { alpha: false });
    this.colors = readColors();
    this.x = 0;
    this.y = 0;
    this.scale = 10;
    this.width = 1;
    this.height = 1;
    this.inset = 0; // pixels at the bottom that the legend takes
    this.pending = 0;
    this.flight = 0;
    this.pointers = new Map();
    new ResizeObserver(() => this.resize()).observe(canvas);
    this.listen();
    for (const event of ["selection", "evidence", "names", "hover"]) {
      on(state, event, () => this.invalidate());
    }
    on(state, "layout", () => this.fit());
    on(state, "fold", () => this.onFold());
  }

  // Sizes and drawing -------------------------------------------------------------------------

  resize() {
    const box = this.canvas.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) return;
    const first = this.width === 1;
    const ratio = Math.min(window.devicePixelRatio || 1, 3);
    this.width = box.width;
    this.height = box.height;
    this.canvas.width = Math.round(box.width * ratio);
    this.canvas.height = Math.round(box.height * ratio);
    this.ratio = ratio;
    if (first || this.fitted) {
      this.state.aspect = this.width / this.height;
      relayOut(this.state);
      emit(this.state, "resize");
      this.fit(false);
    }
    this.draw();
  }

  invalidate() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  draw() {
    this.ctx.setTransform(this.ratio ?? 1, 0, 0, this.ratio ?? 1, 0, 0);
    drawScene(this.ctx, this.state, this, this.colors);
    emit(this.state, "view");
  }

  /** Keep a node that was folded where it is, or the whole in sight if it was. */
  onFold() {
    this.x += this.state.drift.x;
    this.y += this.state.drift.y;
    if (this.fitted) this.fit();
    else this.invalidate();
  }

  // Where to look -----------------------------------------------------------------------------

  toScreen(v) {
    const { x, y } = this.state.layout;
    return {
      x: (x[v] - this.x) * this.scale + this.width / 2,
      y: (y[v] - this.y) * this.scale + this.height / 2,
    };
  }

  toWorld(x, y) {
    return {
      x: this.x + (x - this.width / 2) / this.scale,
      y: this.y + (y - this.height / 2) / this.scale,
    };
  }

  /** The view that shows everything, labels too, as large as it can. */
  whole() {
    const wide = this.width - 2 * MARGIN;
    const tall = this.height - this.inset - 2 * MARGIN;
    let [low, high] = [0.001, LARGEST_WHOLE];
    for (let i = 0; i < 40 && high / low > 1.002; i++) {
      const scale = Math.sqrt(low * high);
      const box = this.extent(scale);
      if (box.right - box.left <= wide && box.bottom - box.top <= tall) low = scale;
      else high = scale;
    }
    const box = this.extent(low);
    return {
      x: (box.left + box.right) / 2 / low,
      y: ((box.top + box.bottom) / 2 + this.inset / 2) / low,
      scale: low,
    };
  }

  /** Borders in pixels, around the origin, of all that is drawn at a scale. */
  extent(scale) {
    const { layout } = this.state;
    const { bounds, shown } = layout;
    const box = {
      left: bounds.left * scale,
      right: bounds.right * scale,
      top: bounds.top * scale,
      bottom: bounds.bottom * scale,
    };
    if (shown.length > MEASURED) return box;
    const font = fontSize(scale);
    for (const v of shown) {
      if (!isLeaf(this.state, v)) continue;
      const reach = labelWidth(this.ctx, this.state, v) * font + 0.8 * font;
      const x = layout.x[v] * scale + reach * Math.cos(layout.angle[v]);
      const y = layout.y[v] * scale + reach * Math.sin(layout.angle[v]);
      box.left = Math.min(box.left, x);
      box.right = Math.max(box.right, x);
      box.top = Math.min(box.top, y);
      box.bottom = Math.max(box.bottom, y);
    }
    return box;
  }

  fit(smoothly = true) {
    this.smallest = this.whole().scale / 3;
    this.flyTo(this.whole(), smoothly);
    this.fitted = true; // and stays so when the window changes its size
  }

  /** Bring a node to the middle, near enough to be read. */
  flyToNode(v) {
    const { x, y } = this.state.layout;
    this.flyTo({ x: x[v], y: y[v], scale: Math.max(this.scale, 13) });
  }

  /** Move so that a node is seen, no more than needed. */
  bringIntoSight(v) {
    const at = this.toScreen(v);
    const margin = 60;
    const inside =
      at.x > margin && at.y > margin && at.x < this.width - margin && at.y < this.height - margin;
    if (!inside) {
      const { x, y } = this.state.layout;
      this.flyTo({ x: x[v], y: y[v], scale: this.scale });
    }
  }

  flyTo(target, smoothly = true) {
    cancelAnimationFrame(this.flight);
    this.fitted = false;
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!smoothly || still) {
      Object.assign(this, target);
      this.invalidate();
      return;
    }
    const from = { x: this.x, y: this.y, scale: this.scale };
    const start = performance.now();
    const step = (now) => {
      const t = clamp((now - start) / 420, 0, 1);
      const u = t * t * (3 - 2 * t);
      const scale = from.scale * (target.scale / from.scale) ** u;
      // Positions follow the scale, so that what is flown to stays in sight while zooming.
      const ratio = target.scale / from.scale;
      const share = Math.abs(ratio - 1) < 1e-3 ? u : (1 - from.scale / scale) / (1 - 1 / ratio);
      this.x = from.x + (target.x - from.x) * share;
      this.y = from.y + (target.y - from.y) * share;
      this.scale = scale;
      this.draw();
      if (t < 1) this.flight = requestAnimationFrame(step);
    };
    this.flight = requestAnimationFrame(step);
  }

  /** Zoom by a factor, keeping a point of the screen where it is. */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    cancelAnimationFrame(this.flight);
    this.fitted = false;
    const before = this.toWorld(x, y);
    this.scale = clamp(this.scale * factor, this.smallest ?? 0.01, LARGEST);
    const after = this.toWorld(x, y);
    this.x += before.x - after.x;
    this.y += before.y - after.y;
    this.invalidate();
  }

  pan(dx, dy) {
    cancelAnimationFrame(this.flight);
    this.fitted = false;
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.invalidate();
  }

  // What is under a point ---------------------------------------------------------------------

  /** The node ({ node }) or edge ({ edge }) at a point of the screen, or null. */
  hit(x, y, slack = 6) {
    const node = this.nodeAt(x, y, (this.state.dot ?? 2) + slack);
    if (node >= 0) return { node };
    const edge = this.edgeAt(x, y, 5);
    return edge >= 0 ? { edge } : null;
  }

  nodeAt(x, y, reach) {
    const { layout, model } = this.state;
    let best = -1;
    let nearest = reach * reach;
    for (const v of layout.shown) {
      const at = this.toScreen(v);
      const distance = (at.x - x) ** 2 + (at.y - y) ** 2;
      if (distance < nearest || (distance === nearest && !isHidden(model, v))) {
        best = v;
        nearest = distance;
      }
    }
    return best;
  }

  edgeAt(x, y, reach) {
    const { layout, tree } = this.state;
    if (layout.shown.length > 3000 && this.scale < 4) return -1; // too dense to be meant
    const point = this.toWorld(x, y);
    const limit = reach / this.scale;
    let best = -1;
    let nearest = limit;
    for (const v of layout.shown) {
      if (tree.parent[v] < 0) continue;
      const distance = edgeDistance(this.state, v, point.x, point.y, nearest);
      if (distance < nearest) {
        best = v;
        nearest = distance;
      }
    }
    return best;
  }

  // Pointer and wheel -------------------------------------------------------------------------

  listen() {
    const { canvas } = this;
    const listen = (event, handler, options) => canvas.addEventListener(event, handler, options);
    listen("wheel", (event) => this.onWheel(event), { passive: false });
    listen("pointerdown", (event) => this.onDown(event));
    listen("pointermove", (event) => this.onMove(event));
    listen("pointerup", (event) => this.onUp(event));
    listen("pointercancel", (event) => this.pointers.delete(event.pointerId));
    listen("pointerleave", () => this.setHover(null));
    listen("dblclick", (event) => this.onDouble(event));
  }

  onWheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 16 : 1;
    const factor = Math.exp(
      -clamp(event.deltaY * lines, -240, 240) * (event.ctrlKey ? 0.01 : 0.0022),
    );
    this.zoom(factor, event.offsetX, event.offsetY);
  }

  onDown(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.focus({ preventScroll: true });
    this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (this.pointers.size === 1)
      this.pressed = { x: event.offsetX, y: event.offsetY, moved: false };
    else if (this.pressed) this.pressed.moved = true;
  }

  onMove(event) {
    const at = { x: event.offsetX, y: event.offsetY };
    const last = this.pointers.get(event.pointerId);
    if (!last) {
      this.setHover(this.hit(at.x, at.y));
      return;
    }
    if (this.pointers.size === 2) {
      this.pinch(event.pointerId, last, at);
    } else if (this.pressed) {
      const far = Math.hypot(at.x - this.pressed.x, at.y - this.pressed.y) > CLICK;
      if (far) this.pressed.moved = true;
      if (this.pressed.moved) this.pan(at.x - last.x, at.y - last.y);
    }
    this.pointers.set(event.pointerId, at);
  }

  pinch(id, last, at) {
    const [other] = [...this.pointers].filter(([key]) => key !== id).map(([, point]) => point);
    const before = Math.hypot(last.x - other.x, last.y - other.y);
    const after = Math.hypot(at.x - other.x, at.y - other.y);
    this.pan((at.x - last.x) / 2, (at.y - last.y) / 2);
    if (before > 1) this.zoom(after / before, (at.x + other.x) / 2, (at.y + other.y) / 2);
  }

  onUp(event) {
    const alone = this.pointers.size === 1;
    this.pointers.delete(event.pointerId);
    if (!alone || !this.pressed || this.pressed.moved) return;
    const slack = event.pointerType === "touch" ? 16 : 6;
    select(this.state, this.hit(event.offsetX, event.offsetY, slack));
  }

  onDouble(event) {
    const hit = this.hit(event.offsetX, event.offsetY);
    if (hit && "node" in hit) {
      toggleFold(this.state, hit.node);
    } else {
      const { x, y } = this.toWorld(event.offsetX, event.offsetY);
      this.flyTo({ x, y, scale: Math.min(this.scale * 2, LARGEST) });
    }
  }

  setHover(hover) {
    const { state } = this;
    const key = (one) => (one ? ("node" in one ? `n${one.node}` : `e${one.edge}`) : "");
    if (key(hover) === key(state.hover)) return;
    state.hover = hover;
    this.canvas.classList.toggle("pointing", hover !== null);
    emit(state, "hover");
  }
}

/** Distance in units from a point to an edge's curve, or more than `limit`. */
function edgeDistance(state, v, x, y, limit) {
  if (!mayTouch(state, v, x, y, limit)) return Number.POSITIVE_INFINITY;
  const points = edgePoints(state, v);
  let best = Number.POSITIVE_INFINITY;
  for (let i = 2; i < points.length; i += 2) {
    const [ax, ay, bx, by] = points.slice(i - 2, i + 2);
    if (Math.min(ax, bx) - limit > x || Math.max(ax, bx) + limit < x) continue;
    if (Math.min(ay, by) - limit > y || Math.max(ay, by) + limit < y) continue;
    const length = (bx - ax) ** 2 + (by - ay) ** 2;
    const t =
      length === 0 ? 0 : clamp(((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length, 0, 1);
    best = Math.min(best, Math.hypot(ax + t * (bx - ax) - x, ay + t * (by - ay) - y));
  }
  return best;
}

/** Whether a point is within the box around an edge. */
function mayTouch({ layout, tree }, v, x, y, limit) {
  if (layout.spiral.has(v)) return true;
  const above = tree.parent[v];
  const c = layout.curve;
  const i = 4 * v;
  const outside = (at, a, b, p, q) =>
    at < Math.min(a, b, p, q) - limit || at > Math.max(a, b, p, q) + limit;
  return !(
    outside(x, layout.x[above], layout.x[v], c[i], c[i + 2]) ||
    outside(y, layout.y[above], layout.y[v], c[i + 1], c[i + 3])
  );
}

function edgePoints(state, v) {
  const { layout, tree } = state;
  if (layout.spiral.has(v)) return layout.spiral.get(v);
  const above = tree.parent[v];
  const c = layout.curve.subarray(4 * v, 4 * v + 4);
  const points = [];
  for (let i = 0; i <= 8; i++) {
    const u = i / 8;
    const w = [(1 - u) ** 3, 3 * u * (1 - u) ** 2, 3 * u * u * (1 - u), u ** 3];
    points.push(w[0] * layout.x[above] + w[1] * c[0] + w[2] * c[2] + w[3] * layout.x[v]);
    points.push(w[0] * layout.y[above] + w[1] * c[1] + w[2] * c[3] + w[3] * layout.y[v]);
  }
  return points;
}
