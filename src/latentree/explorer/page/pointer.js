// Pointer and wheel on a canvas: they move what is seen, point at nodes and edges, and choose them.

import { tell } from "./dom.js";
import { hitAt } from "./hitting.js";
import { clamp } from "./numbers.js";
import { choose, select, setHover, toggleFold } from "./state.js";
import { LARGEST } from "./view.js";

const CLICK = 5; // pixels that a click may move
const FINGER = 16; // pixels that a finger may miss a node by
const MOUSE = 6; // the same of a pointer

export function createPointer(view) {
  const { canvas, state } = view;
  const fingers = new Map(); // by pointer: where each is
  let pressed = null; // where the first went down, and whether any has moved since
  const point = (hover) => {
    canvas.classList.toggle("pointing", hover !== null);
    setHover(state, hover);
  };
  const place = (event) => ({ x: event.offsetX, y: event.offsetY });
  const listen = (event, handler, options) => canvas.addEventListener(event, handler, options);

  listen("wheel", (event) => onWheel(view, event), { passive: false });
  listen("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    fingers.set(event.pointerId, place(event));
    if (fingers.size === 1) pressed = { ...place(event), moved: false };
    else if (pressed) pressed.moved = true;
  });
  listen("pointermove", (event) => {
    const at = place(event);
    const last = fingers.get(event.pointerId);
    if (!last) {
      point(hitAt(view, at.x, at.y, MOUSE));
      return;
    }
    if (fingers.size === 2) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, p]) => p);
      pinch(view, last, at, other);
    } else if (pressed) {
      if (Math.hypot(at.x - pressed.x, at.y - pressed.y) > CLICK) pressed.moved = true;
      if (pressed.moved) view.pan(at.x - last.x, at.y - last.y);
    }
    fingers.set(event.pointerId, at);
  });
  listen("pointerup", (event) => {
    const alone = fingers.size === 1;
    fingers.delete(event.pointerId);
    if (!alone || !pressed || pressed.moved) return;
    const slack = event.pointerType === "touch" ? FINGER : MOUSE;
    const hit = hitAt(view, event.offsetX, event.offsetY, slack);
    if (hit && "node" in hit) choose(state, hit.node, event.shiftKey);
    else select(state, hit);
  });
  listen("pointercancel", (event) => fingers.delete(event.pointerId));
  listen("pointerleave", () => point(null));
  listen("dblclick", (event) => onDouble(view, event));
}

/** Inside a notebook or a frame the wheel scrolls the page around, and zooms with Ctrl only. */
function onWheel(view, event) {
  if (window.self !== window.top && !event.ctrlKey && !event.metaKey) {
    tell("Hold Ctrl to zoom with the wheel.");
    return;
  }
  event.preventDefault();
  const lines = event.deltaMode === 1 ? 16 : 1;
  const factor = Math.exp(
    -clamp(event.deltaY * lines, -240, 240) * (event.ctrlKey ? 0.01 : 0.0022),
  );
  view.zoom(factor, event.offsetX, event.offsetY);
}

/** One of two fingers moves: the picture follows both. */
function pinch(view, last, at, other) {
  const before = Math.hypot(last.x - other.x, last.y - other.y);
  const after = Math.hypot(at.x - other.x, at.y - other.y);
  view.pan((at.x - last.x) / 2, (at.y - last.y) / 2);
  if (before > 1) view.zoom(after / before, (at.x + other.x) / 2, (at.y + other.y) / 2);
}

function onDouble(view, event) {
  const hit = hitAt(view, event.offsetX, event.offsetY, MOUSE);
  if (hit && "node" in hit) {
    toggleFold(view.state, hit.node);
  } else {
    const { x, y } = view.toWorld(event.offsetX, event.offsetY);
    view.flyTo({ x, y, scale: Math.min(view.scale * 2, LARGEST) });
  }
}
