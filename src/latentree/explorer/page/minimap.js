// A small picture of the whole tree, with a frame around what is seen. It goes away when all is.

import { byId } from "./dom.js";
import { drawScene } from "./scene.js";
import { on } from "./state.js";

export function createMinimap(state, view) {
  const canvas = byId("minimap");
  const width = canvas.width / 2;
  const height = canvas.height / 2;
  const ctx = canvas.getContext("2d");
  const picture = document.createElement("canvas");
  picture.width = canvas.width;
  picture.height = canvas.height;
  const map = { fresh: false, x: 0, y: 0, scale: 1 };

  const redraw = () => {
    const { bounds } = state.layout;
    const wide = Math.max(bounds.right - bounds.left, 1);
    const tall = Math.max(bounds.bottom - bounds.top, 1);
    map.scale = Math.min((width - 12) / wide, (height - 12) / tall);
    map.x = (bounds.left + bounds.right) / 2;
    map.y = (bounds.top + bounds.bottom) / 2;
    const pen = picture.getContext("2d");
    pen.setTransform(2, 0, 0, 2, 0, 0);
    drawScene(pen, bare(state), { ...map, width, height }, view.colors);
    map.fresh = true;
  };

  const show = () => {
    canvas.hidden = seesAll(state.layout.bounds, view);
    if (canvas.hidden) return;
    const seen = frame();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    ctx.drawImage(picture, 0, 0);
    ctx.setTransform(2, 0, 0, 2, 0, 0);
    ctx.lineWidth = 1.4;
    ctx.strokeStyle = view.colors.accent;
    const wide = Math.max(seen.right - seen.x, 7);
    const tall = Math.max(seen.bottom - seen.y, 5);
    ctx.strokeRect((seen.x + seen.right - wide) / 2, (seen.y + seen.bottom - tall) / 2, wide, tall);
  };

  /** What is seen, in pixels of the map. */
  const frame = () => {
    if (!map.fresh) redraw();
    const x = (view.x - map.x) * map.scale + width / 2;
    const y = (view.y - map.y) * map.scale + height / 2;
    const across = ((view.width / view.scale) * map.scale) / 2;
    const down = ((view.height / view.scale) * map.scale) / 2;
    return { x: x - across, y: y - down, right: x + across, bottom: y + down };
  };

  const move = (event) => {
    if (event.buttons === 0) return;
    const box = canvas.getBoundingClientRect();
    view.flyTo(
      {
        x: map.x + (((event.clientX - box.left) / box.width) * width - width / 2) / map.scale,
        y: map.y + (((event.clientY - box.top) / box.height) * height - height / 2) / map.scale,
        scale: view.scale,
      },
      false,
    );
  };
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    move(event);
  });
  canvas.addEventListener("pointermove", move);

  const stale = () => {
    map.fresh = false;
  };
  for (const event of ["layout", "fold", "near", "evidence", "theme", "resize", "doubt", "color"])
    on(state, event, stale);
  on(state, "view", show);
}

function seesAll({ left, right, top, bottom }, view) {
  const across = view.width / view.scale / 2;
  const down = view.height / view.scale / 2;
  const beside = left >= view.x - across && right <= view.x + across;
  return beside && top >= view.y - down && bottom <= view.y + down;
}

/** The state without what would clutter a small picture. */
function bare(state) {
  return { ...state, selection: null, hover: null, unlabeled: true };
}
