// Puts the parts together.

import { createAnswers } from "./answers.js";
import { byId, element, nameOf } from "./dom.js";
import {
  createExports,
  takeSource,
  toCsv,
  toModelFile,
  toNewick,
  toPage,
  toSvg,
} from "./export.js";
import { createKeyboard } from "./keyboard.js";
import { createMinimap } from "./minimap.js";
import { createOutline } from "./outline.js";
import { createPanel } from "./panel.js";
import { groupStyle, traceMarker } from "./scene.js";
import { createSearch } from "./search.js";
import { createState, emit, on, setKind, unfoldAll } from "./state.js";
import { readColours, View } from "./view.js";

function main() {
  const source = takeSource();
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = preferred.matches ? "dark" : "light";
  const state = createState(source.payload);
  const view = new View(state, byId("tree"));
  createMinimap(state, view);
  createPanel(state, view);
  createAnswers(state, view);
  createSearch(state, view);
  createExports(state, view, source);
  createKeyboard(state, view);
  createToolbar(state, view);
  createLegend(state, view);
  createOutline(state, view);
  createTip(state, view);
  preferred.addEventListener("change", () => setTheme(state, view, preferred.matches));
  view.resize();
  exposeForTests(state, view, source);
}

function setTheme(state, view, dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  view.colours = readColours();
  emit(state, "theme");
  view.draw();
}

function createToolbar(state, view) {
  const buttons = { radial: byId("radial"), layered: byId("layered") };
  const press = () => {
    for (const [kind, button] of Object.entries(buttons)) {
      button.setAttribute("aria-pressed", String(kind === state.kind));
    }
    byId("unfold").hidden = !state.folded.some((folded) => folded);
  };
  for (const [kind, button] of Object.entries(buttons)) {
    button.addEventListener("click", () => setKind(state, kind));
  }
  for (const event of ["layout", "fold"]) on(state, event, press);
  press();
  byId("fit").addEventListener("click", () => view.fit());
  byId("unfold").addEventListener("click", () => unfoldAll(state));
  byId("closer").addEventListener("click", () => view.zoom(1.4));
  byId("farther").addEventListener("click", () => view.zoom(1 / 1.4));
  byId("theme").addEventListener("click", () => {
    setTheme(state, view, document.documentElement.dataset.theme !== "dark");
  });
  byId("list").addEventListener("click", () => {
    const box = byId("outline-box");
    const open = box.classList.toggle("open");
    byId("list").setAttribute("aria-pressed", String(open));
  });
}

/** What colours and lines mean. */
function createLegend(state, view) {
  const box = byId("legend");
  const show = () => {
    const { model, strengths } = state;
    const items = model.groups.map((name, group) => legendItem(view, group, nameOf(name)));
    if (model.groups.length > 0 && model.group.subarray(0, model.observed).includes(-1)) {
      items.push(legendItem(view, -1, "no group"));
    }
    if (model.groups.length === 0) items.push(legendItem(view, -2, "variable"));
    if (model.size > model.observed) items.push(legendItem(view, "hidden", "hidden variable"));
    if (strengths.anyNegative) items.push(legendItem(view, "negative", "negative"));
    if (state.evidence.size > 0) {
      items.push(legendItem(view, "given", "supposed"));
      const two = model.isGaussian || model.states.some((count) => count === 2);
      if (two) items.push(legendItem(view, "up", "more"), legendItem(view, "down", "less"));
      if (!model.isGaussian && model.states.some((count) => count > 2)) {
        items.push(legendItem(view, "moved", "changed"));
      }
    }
    box.replaceChildren(...items);
    view.inset = box.offsetHeight;
  };
  for (const event of ["evidence", "layout", "theme"]) on(state, event, show);
  show();
}

function legendItem(view, what, ...text) {
  const canvas = element("canvas", { width: 36, height: 28, "aria-hidden": "true" });
  const ctx = canvas.getContext("2d");
  const { colours } = view;
  ctx.scale(2, 2);
  ctx.beginPath();
  if (what === "negative") {
    ctx.setLineDash([4, 2.5]);
    ctx.moveTo(1, 7);
    ctx.lineTo(17, 7);
    ctx.lineWidth = 1.8;
    ctx.strokeStyle = colours.negative[4];
    ctx.stroke();
  } else if (what === "hidden" || what === "given") {
    traceMarker(ctx, 0, 9, 7, what === "hidden" ? 3.6 : 5);
    ctx.lineWidth = what === "hidden" ? 1.3 : 2.4;
    ctx.strokeStyle = what === "hidden" ? colours.hidden : colours.accent;
    ctx.stroke();
  } else {
    const style =
      typeof what === "number" ? groupStyle(what, colours) : { colour: colours[what], marker: 0 };
    traceMarker(ctx, style.marker, 9, 7, typeof what === "number" ? 4.5 : 6);
    ctx.fillStyle = style.colour;
    ctx.fill();
  }
  return element("li", {}, canvas, element("span", {}, ...text));
}

/** The whole name of what is pointed at, where labels are cut or left out. */
function createTip(state, view) {
  on(state, "hover", () => {
    const { hover, model, tree } = state;
    const names = !hover
      ? []
      : "node" in hover
        ? [model.names[hover.node]]
        : [model.names[tree.parent[hover.edge]], model.names[hover.edge]];
    view.canvas.title = names.join(" — ");
  });
}

/** A handle for tests and for the curious: reads, and never needed by the page itself. */
function exposeForTests(state, view, source) {
  window.latentreeExplorer = {
    state,
    view,
    toCsv: () => toCsv(state),
    toModelFile: () => toModelFile(state.model),
    toNewick: () => toNewick(state.model),
    toPage: () => toPage(state.model, source),
    toSvg: () => toSvg(state, view),
  };
}

main();
