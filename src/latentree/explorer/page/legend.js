// What colors and lines mean.

import { colorChoices } from "./coloring.js";
import { byId, element, nameOf } from "./dom.js";
import { FONT } from "./labels.js";
import { formatPercent } from "./numbers.js";
import { groupColor, traceMarker } from "./scene.js";
import { on, setColorBy, toggleHighlight } from "./state.js";

export function createLegend(panes) {
  const [{ state, view }] = panes;
  const box = byId("legend");
  const chooser = colorChooser(state);
  const show = () => {
    const active = document.activeElement?.dataset?.style;
    chooser.querySelector("select").value = state.colorBy;
    const items = legendEntries(state).map((entry) => legendItem(state, view, entry));
    // The chooser stays where it is, so that it keeps the focus.
    for (const old of [...box.children]) if (old !== chooser) old.remove();
    if (!chooser.isConnected) box.append(chooser);
    box.append(...items);
    if (active !== undefined) box.querySelector(`[data-style="${active}"]`)?.focus();
    const top = box.getBoundingClientRect().top;
    for (const pane of panes) {
      const below = pane.view.canvas.getBoundingClientRect().bottom - top;
      pane.view.inset = Math.min(Math.max(below, 0), box.offsetHeight);
    }
    // What scrolls must be reached by keys.
    box.toggleAttribute("tabindex", false);
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  };
  for (const event of ["evidence", "layout", "near", "theme", "resize", "doubt", "color"]) {
    on(state, event, show);
  }
  show();
}

/** All entries: what is shown, and its words. A style of nodes is shown by itself. */
export function legendEntries(state) {
  const { styles: all, number, isChange } = state.coloring;
  const met = new Set(isChange ? state.layout.shown.map((v) => number[v]) : all.keys());
  const styles = all
    .filter((_, i) => met.has(i))
    .map((style) => [style, style.label ?? "variable"]);
  return [...styles, ...nodeEntries(state), ...evidenceEntries(state)];
}

/** A menu of what nodes can be colored by. */
function colorChooser(state) {
  const options = colorChoices(state).map(([key, text]) => element("option", { value: key }, text));
  const menu = element(
    "select",
    { id: "color-by", change: () => setColorBy(state, menu.value) },
    options,
  );
  return element(
    "li",
    { class: "chooser" },
    element("label", { for: "color-by" }, "Color by"),
    menu,
  );
}

/** An entry of the list; pressing that of a style lets its nodes stand out. */
function legendItem(state, view, [what, text]) {
  const { coloring, highlight } = state;
  const parts = [swatch(view, what), element("span", {}, nameOf(text))];
  const number = coloring.styles.indexOf(what);
  if (number < 0 || coloring.styles.length === 1) return element("li", {}, parts);
  const button = element(
    "button",
    {
      type: "button",
      "data-style": number,
      "aria-pressed": String(highlight.has(number)),
      title: "Let these stand out",
      click: () => toggleHighlight(state, number),
    },
    parts,
  );
  return element("li", {}, button);
}

function nodeEntries({ model, strengths, doubt, pair }) {
  const entries = [];
  if (pair) entries.push(["differs", "in this tree only"], ["place", "moved"]);
  if (model.size > model.observed) entries.push(["hidden", "hidden variable"]);
  if (model.support?.hidden.some((share) => share < 0.5)) entries.push(["doubtful", "doubtful"]);
  if (model.support) entries.push(["percent", "support of an edge, %"]);
  if (strengths.anyNegative) entries.push(["negative", "negative"]);
  if (doubt.below > 0 && !doubt.contract) {
    entries.push(["faded", `support under ${formatPercent(doubt.below)}`]);
  }
  return entries;
}

function evidenceEntries({ model, evidence, coloring }) {
  if (evidence.size === 0) return [];
  const entries = [["given", "supposed"]];
  if (coloring.isChange) return entries;
  const nodes = Array.from(model.numeric.keys());
  const directed = nodes.filter((v) => model.directed[v]).length;
  if (directed > 0) entries.push(["up", "more"], ["down", "less"]);
  if (directed < nodes.length) entries.push(["moved", "changed"]);
  return entries;
}

/** A small picture of what an entry is about. */
function swatch(view, what) {
  const canvas = element("canvas", { width: 36, height: 28, "aria-hidden": "true" });
  const ctx = canvas.getContext("2d");
  ctx.scale(2, 2);
  drawSwatch(ctx, what, view.colors, 9, 7);
  return canvas;
}

/** The same around a point of any picture: a line, a ring or a disc. */
export function drawSwatch(ctx, what, colors, x, y) {
  const lines = {
    negative: [[4, 2.5], 1.8, colors.negative[4]],
    faded: [[0.1, 3], 1.4, colors.edge[3]],
    differs: [[], 2, colors.differs],
  };
  const rings = {
    hidden: [3.6, 1.3, colors.hidden],
    doubtful: [3.6, 1.3, colors.hidden, [2, 2.1]],
    given: [5, 2.4, colors.accent],
    place: [4.4, 1.5, colors.differs],
  };
  if (what === "percent") {
    ctx.save();
    ctx.translate(x - 6, y);
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    ctx.font = `9.5px ${FONT}`;
    ctx.fillStyle = colors.hiddenInk;
    ctx.fillText("87", 0, 0);
    ctx.restore();
    return;
  }
  ctx.beginPath();
  if (what in lines) drawLine(ctx, x, y, ...lines[what]);
  else if (what in rings) drawRing(ctx, x, y, ...rings[what]);
  else drawDot(ctx, x, y, what, colors);
  ctx.setLineDash([]);
}

function drawLine(ctx, x, y, dash, width, color) {
  ctx.lineCap = "round";
  ctx.setLineDash(dash);
  ctx.moveTo(x - 8, y);
  ctx.lineTo(x + 8, y);
  ctx.lineWidth = width;
  ctx.strokeStyle = color;
  ctx.stroke();
}

function drawRing(ctx, x, y, radius, width, color, dash = []) {
  ctx.setLineDash(dash);
  traceMarker(ctx, "o", x, y, radius);
  ctx.lineWidth = width;
  ctx.strokeStyle = color;
  ctx.stroke();
}

function drawDot(ctx, x, y, what, colors) {
  const isStyle = typeof what === "object";
  traceMarker(ctx, isStyle ? what.marker : "o", x, y, isStyle ? 4.5 : 6);
  ctx.fillStyle = isStyle ? groupColor(what, colors) : colors[what];
  ctx.fill();
}
