// What colors and lines mean.

import { colorChoices } from "./coloring.js";
import { byId, element, nameOf } from "./dom.js";
import { hasDirection } from "./inference.js";
import { formatPercent } from "./numbers.js";
import { groupColor, traceMarker } from "./scene.js";
import { on, setColorBy, toggleHighlight } from "./state.js";

export function createLegend(state, view) {
  const box = byId("legend");
  const chooser = colorChooser(state);
  const show = () => {
    const active = document.activeElement?.dataset?.style;
    chooser.querySelector("select").value = state.colorBy;
    const items = [
      ...styleItems(state, view),
      ...[...nodeEntries(state), ...evidenceEntries(state)].map(([what, text]) =>
        element("li", {}, swatch(view, what), element("span", {}, text)),
      ),
    ];
    // The chooser stays where it is, so that it keeps the focus.
    for (const old of [...box.children]) if (old !== chooser) old.remove();
    if (!chooser.isConnected) box.append(chooser);
    box.append(...items);
    if (active !== undefined) box.querySelector(`[data-style="${active}"]`)?.focus();
    view.inset = box.offsetHeight;
    // What scrolls must be reached by keys.
    box.toggleAttribute("tabindex", false);
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  };
  for (const event of ["evidence", "layout", "theme", "resize", "doubt", "color"])
    on(state, event, show);
  show();
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

/** One entry a style; pressing it lets its nodes stand out. */
function styleItems(state, view) {
  const { coloring, highlight } = state;
  return coloring.styles.map((style, number) => {
    const text = element("span", {}, nameOf(style.label ?? "variable"));
    if (coloring.styles.length === 1) return element("li", {}, swatch(view, style), text);
    return element(
      "li",
      {},
      element(
        "button",
        {
          type: "button",
          "data-style": number,
          "aria-pressed": String(highlight.has(number)),
          title: "Let these stand out",
          click: () => toggleHighlight(state, number),
        },
        swatch(view, style),
        text,
      ),
    );
  });
}

function nodeEntries({ model, strengths, doubt }) {
  const entries = [];
  if (model.size > model.observed) entries.push(["hidden", "hidden variable"]);
  if (model.support?.hidden.some((share) => share < 0.5)) entries.push(["doubtful", "doubtful"]);
  if (strengths.anyNegative) entries.push(["negative", "negative"]);
  if (doubt.below > 0 && !doubt.contract) {
    entries.push(["faded", `support under ${formatPercent(doubt.below)}`]);
  }
  return entries;
}

function evidenceEntries({ model, evidence }) {
  if (evidence.size === 0) return [];
  const entries = [["given", "supposed"]];
  const nodes = Array.from(model.numeric.keys());
  const directed = nodes.filter((v) => hasDirection(model, v)).length;
  if (directed > 0) entries.push(["up", "more"], ["down", "less"]);
  if (directed < nodes.length) entries.push(["moved", "changed"]);
  return entries;
}

/** A small picture of what an entry is about. */
function swatch(view, what) {
  const canvas = element("canvas", { width: 36, height: 28, "aria-hidden": "true" });
  const ctx = canvas.getContext("2d");
  ctx.scale(2, 2);
  ctx.beginPath();
  if (what === "negative") drawDashes(ctx, [4, 2.5], 1.8, view.colors.negative[4]);
  else if (what === "faded") drawDashes(ctx, [0.1, 3], 1.4, view.colors.edge[3]);
  else if (what === "doubtful") drawRing(ctx, 3.6, 1.3, view.colors.hidden, [2, 2.1]);
  else if (what === "hidden") drawRing(ctx, 3.6, 1.3, view.colors.hidden);
  else if (what === "given") drawRing(ctx, 5, 2.4, view.colors.accent);
  else drawDot(ctx, what, view.colors);
  return canvas;
}

function drawDashes(ctx, dash, width, color) {
  ctx.lineCap = "round";
  ctx.setLineDash(dash);
  ctx.moveTo(1, 7);
  ctx.lineTo(17, 7);
  ctx.lineWidth = width;
  ctx.strokeStyle = color;
  ctx.stroke();
}

function drawRing(ctx, radius, width, color, dash = []) {
  ctx.setLineDash(dash);
  traceMarker(ctx, "o", 9, 7, radius);
  ctx.lineWidth = width;
  ctx.strokeStyle = color;
  ctx.stroke();
}

function drawDot(ctx, what, colors) {
  const isGroup = typeof what === "object";
  traceMarker(ctx, isGroup ? what.marker : "o", 9, 7, isGroup ? 4.5 : 6);
  ctx.fillStyle = isGroup ? groupColor(what, colors) : colors[what];
  ctx.fill();
}
