// The line between picture and panel, which a pointer or arrow keys move.

import { byId } from "./dom.js";
import { clamp } from "./numbers.js";

const STEP = 24; // pixels an arrow key

export function createDivider() {
  const divider = byId("divider");
  const panel = byId("panel");
  const setWidth = (width) => {
    const most = Math.min(800, 0.7 * innerWidth);
    const chosen = Math.round(clamp(width, 240, most));
    panel.style.flexBasis = `${chosen}px`;
    panel.style.maxWidth = "none";
    divider.setAttribute("aria-valuenow", chosen);
  };
  divider.addEventListener("pointerdown", (event) => {
    divider.setPointerCapture(event.pointerId);
    event.preventDefault();
    divider.focus();
  });
  divider.addEventListener("pointermove", (event) => {
    if (divider.hasPointerCapture(event.pointerId)) setWidth(innerWidth - event.clientX);
  });
  divider.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: 1, ArrowRight: -1 }[event.key];
    if (!way) return;
    setWidth(panel.offsetWidth + way * STEP);
    event.preventDefault();
    event.stopPropagation();
  });
}
