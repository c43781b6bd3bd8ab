// The canvas: which part of the tree is seen.

import { fontSize, hasStrip, labelWidth } from "./labels.js";
import { clamp } from "./numbers.js";
import { drawScene, mixed } from "./scene.js";
import { emit, on, relayOut } from "./state.js";

export const LARGEST = 90; // pixels a unit
const READABLE = 4; // pixels a unit below which nodes are specks
const LARGEST_WHOLE = 56; // the same when all is shown
const MARGIN = 22;
const EDGE = 20; // pixels from the border within which a node is not in sight
const MEASURED = 600; // nodes up to which labels count for the size of the whole
const LEAST_SHARE = 0.6; // of the window that the tree keeps when labels want more
const HEAVY = 700; // nodes beyond which moving shows the last picture, and a sharp one at rest
const REST = 120; // milliseconds without movement that are rest

/** Colors as the style sheet has them for the theme in use. */
export function readColors() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(name).trim();
  const shades = (name) =>
    Array.from({ length: 6 }, (_, i) => mixed(read(name), read("--paper"), 0.36 + 0.128 * i));
  return {
    paper: read("--paper"),
    ink: read("--ink"),
    hidden: read("--hidden"),
    hiddenInk: read("--hidden-ink"),
    accent: read("--accent"),
    glow: read("--glow"),
    differs: read("--differs"),
    up: read("--up"),
    down: read("--down"),
    moved: read("--moved"),
    edge: shades("--edge"),
    negative: shades("--negative"),
    dark: document.documentElement.dataset.theme === "dark",
  };
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
    this.head = 0; // pixels at the top that a name takes
    this.side = 0; // pixels at the right that buttons take, where a row of the tree may end
    this.pending = 0;
    this.flight = 0;
    new ResizeObserver(() => this.resize()).observe(canvas);
    for (const event of ["selection", "evidence", "names", "hover", "color", "doubt"]) {
      on(state, event, () => this.invalidate());
    }
    for (const event of ["layout", "near"]) on(state, event, () => this.fit());
    on(state, "fold", () => this.onFold());
  }

  // Sizes and drawing -------------------------------------------------------------------------

  resize() {
    const box = this.canvas.getBoundingClientRect();
    if (this.printing || box.width < 2 || box.height < 2) return;
    const first = this.width === 1;
    this.width = box.width;
    this.height = box.height;
    this.setRatio(Math.min(window.devicePixelRatio || 1, 3));
    this.state.room = this.width - this.side - 2 * MARGIN; // of the tree and its labels
    if (first || this.fitted) {
      this.state.aspect = this.width / this.height;
      relayOut(this.state);
      emit(this.state, "resize");
      this.fit(false);
    }
    this.draw();
  }

  /** So many pixels of the canvas a pixel of the page. */
  setRatio(ratio) {
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.ratio = ratio;
  }

  invalidate() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      this.draw();
    });
  }

  draw() {
    clearTimeout(this.rest);
    this.ctx.setTransform(this.ratio ?? 1, 0, 0, this.ratio ?? 1, 0, 0);
    drawScene(this.ctx, this.state, this, this.colors);
    if (this.isHeavy()) this.keepPicture();
    emit(this.state, "view");
  }

  isHeavy() {
    return this.state.layout.shown.length > HEAVY;
  }

  /** Keep what was drawn, to be shown while moving. */
  keepPicture() {
    this.picture ??= document.createElement("canvas");
    this.picture.width = this.canvas.width;
    this.picture.height = this.canvas.height;
    this.picture.getContext("2d", { alpha: false }).drawImage(this.canvas, 0, 0);
    this.pictured = { x: this.x, y: this.y, scale: this.scale };
  }

  /** Draw after a movement: of large trees the picture that there is, and the tree at rest. */
  move() {
    if (!this.isHeavy() || !this.pictured) {
      this.invalidate();
      return;
    }
    clearTimeout(this.rest);
    this.rest = setTimeout(() => this.invalidate(), REST);
    if (this.moving) return;
    this.moving = requestAnimationFrame(() => {
      this.moving = 0;
      this.drawMoved();
    });
  }

  drawMoved() {
    const { ctx, canvas, pictured, ratio } = this;
    const factor = this.scale / pictured.scale;
    const shift = (from, to, size) => (from - to) * this.scale * ratio + ((1 - factor) * size) / 2;
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.fillStyle = this.colors.paper;
    ctx.fillRect(0, 0, canvas.width, canvas.height);
    ctx.imageSmoothingEnabled = false;
    ctx.drawImage(
      this.picture,
      shift(pictured.x, this.x, canvas.width),
      shift(pictured.y, this.y, canvas.height),
      canvas.width * factor,
      canvas.height * factor,
    );
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

  /**
   * The view that shows everything, labels too, as large as it can. Where labels would take more
   * than the tree they are left to their luck: in small windows the tree itself is what counts.
   */
  whole() {
    const bare = this.largest(false);
    const named = this.largest(true);
    const labeled = named > LEAST_SHARE * bare;
    const scale = labeled ? named : LEAST_SHARE * bare;
    const box = this.extent(scale, labeled);
    return {
      x: ((box.left + box.right) / 2 + this.beside() / 2) / scale,
      y: ((box.top + box.bottom) / 2 + (this.inset - this.head) / 2) / scale,
      scale,
    };
  }

  /** A disc leaves its corners free, rows do not. */
  beside() {
    return this.state.kind === "radial" ? 0 : this.side;
  }

  /** The largest scale at which all edges, or all labels too, are inside. */
  largest(labeled) {
    const margin = Math.min(MARGIN, 0.05 * Math.min(this.width, this.height));
    const wide = this.width - this.beside() - 2 * margin;
    const tall = this.height - this.inset - this.head - 2 * margin;
    let [low, high] = [0.001, LARGEST_WHOLE];
    for (let i = 0; i < 40 && high / low > 1.002; i++) {
      const scale = Math.sqrt(low * high);
      const box = this.extent(scale, labeled);
      if (box.right - box.left <= wide && box.bottom - box.top <= tall) low = scale;
      else high = scale;
    }
    return low;
  }

  /** Borders in pixels, around the origin, of all that is drawn at a scale. */
  extent(scale, labeled) {
    const { layout } = this.state;
    const { bounds, shown } = layout;
    const box = {
      left: bounds.left * scale,
      right: bounds.right * scale,
      top: bounds.top * scale,
      bottom: bounds.bottom * scale,
    };
    if (!labeled || shown.length > MEASURED) return box;
    const font = fontSize(scale);
    for (const v of shown) {
      if (!hasStrip(this.state, v)) continue;
      const reach = labelWidth(this.ctx, this.state, v, scale) * font + 0.8 * font;
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

  /** Move so that a node is seen, no more than needed; closer only where nodes are specks. */
  bringIntoSight(v) {
    const { x: left, y: top } = this.toScreen(v);
    const inside =
      left > EDGE &&
      left < this.width - 3 * EDGE && // its label is on the right
      top > this.head + EDGE / 2 &&
      top < this.height - this.inset - EDGE / 2;
    if (this.scale < READABLE) this.flyToNode(v);
    else if (!inside) {
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
      if (t === 1 || !this.isHeavy()) this.draw();
      else this.drawMoved();
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
    this.move();
  }

  pan(dx, dy) {
    cancelAnimationFrame(this.flight);
    this.fitted = false;
    this.x -= dx / this.scale;
    this.y -= dy / this.scale;
    this.move();
  }
}
