// Puts the parts together.

import { createAddress } from "./address.js";
import { createAnswers } from "./answers.js";
import { createDivider } from "./divider.js";
import { byId } from "./dom.js";
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
import { createLegend } from "./legend.js";
import { createMinimap } from "./minimap.js";
import { isHidden, titleOf } from "./model.js";
import { createOutline } from "./outline.js";
import { createPanel } from "./panel.js";
import { createPrinting } from "./printing.js";
import { createSearch } from "./search.js";
import { createState, emit, on, setKind, unfoldAll } from "./state.js";
import { readColors, View } from "./view.js";

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
  createTips(state, view);
  createPrinting(view, (dark) => setTheme(state, view, dark));
  createSkipLink();
  createDivider();
  preferred.addEventListener("change", () => setTheme(state, view, preferred.matches));
  view.resize();
  createAddress(state, view, (dark) => setTheme(state, view, dark));
  exposeForTests(state, view, source);
}

function setTheme(state, view, dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  view.colors = readColors();
  emit(state, "theme");
  view.draw();
}

function createToolbar(state, view) {
  const buttons = { radial: byId("radial"), layered: byId("layered"), lengths: byId("lengths") };
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
}

/** From the top of the page straight to the panel; the address stays as it is. */
function createSkipLink() {
  byId("skip").addEventListener("click", (event) => {
    event.preventDefault();
    byId("panel").focus();
  });
}

/** The whole name of what is pointed at, where labels are cut; what is selected, said aloud. */
function createTips(state, view) {
  on(state, "hover", () => {
    view.canvas.title = namesOf(state, state.hover).join(" — ");
  });
  on(state, "selection", () => {
    const { model, selection } = state;
    const names = namesOf(state, selection).join(" to ");
    byId("announce").textContent =
      selection === null ? "" : `${names}, ${kindOf(model, selection)}`;
  });
}

function kindOf(model, selection) {
  if ("path" in selection) return "path";
  if ("edge" in selection) return "edge";
  return isHidden(model, selection.node) ? "hidden variable" : "variable";
}

function namesOf({ model, tree }, what) {
  if (!what) return [];
  const nodes = what.path ?? ("node" in what ? [what.node] : [tree.parent[what.edge], what.edge]);
  return nodes.map((v) => titleOf(model, v));
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
