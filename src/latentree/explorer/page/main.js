// Puts the parts together.

import { createAddress } from "./address.js";
import { changeNote, createAnswers, evidenceText } from "./answers.js";
import { createDivider } from "./divider.js";
import { byId } from "./dom.js";
import { createExports, takeSource, toCsv, toModelFile, toNewick, toPage } from "./export.js";
import { toSvg } from "./figure.js";
import { createKeyboard } from "./keyboard.js";
import { createLegend } from "./legend.js";
import { createMinimap } from "./minimap.js";
import { isHidden, titleOf } from "./model.js";
import { formatStrength, strengthName } from "./nodes.js";
import { formatPercent, formatSigned, formatWithin, strengthWord } from "./numbers.js";
import { createOutline } from "./outline.js";
import { createPair } from "./pair.js";
import { createPanel, createTabs } from "./panel.js";
import { createPointer } from "./pointer.js";
import { createPrinting } from "./printing.js";
import { edgeStrengthOf } from "./scene.js";
import { createSearch } from "./search.js";
import { createState, emit, on, setKind, showNear, unfoldAll } from "./state.js";
import { createTrees } from "./trees.js";
import { readColors, View } from "./view.js";

function main() {
  const source = takeSource();
  const { payload } = source;
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = preferred.matches ? "dark" : "light";
  const panes = (payload.models ?? [payload]).map(createState).map((state, i) => ({
    state,
    view: new View(state, byId(i === 0 ? "tree" : "tree-b")),
  }));
  const [{ state, view }] = panes;
  const setDark = (dark) => setTheme(panes, dark);
  if (panes.length > 1) createPair(panes, payload);
  else createMinimap(state, view);
  for (const pane of panes) createPanel(pane.state, pane.view);
  createTrees(state, view);
  createAnswers(panes);
  createTabs(panes);
  createHelp();
  createSearch(state, view);
  createExports(panes, source);
  createKeyboard(panes);
  createToolbar(panes, setDark);
  createLegend(panes);
  createOutline(state, view);
  for (const pane of panes) createTips(pane.state, pane.view);
  createPrinting(
    panes.map((pane) => pane.view),
    setDark,
  );
  for (const pane of panes) createPointer(pane.view);
  createSkipLink();
  createDivider();
  preferred.addEventListener("change", () => setDark(preferred.matches));
  for (const pane of panes) pane.view.resize();
  createAddress(panes, setDark, payload.view);
  exposeForTests(panes, source);
}

function setTheme(panes, dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  for (const { state, view } of panes) {
    view.colors = readColors();
    emit(state, "theme");
    view.draw();
  }
}

function createToolbar(panes, setDark) {
  const [{ state }] = panes;
  const kinds = ["radial", "layered", "lengths"];
  const press = () => {
    for (const kind of kinds) byId(kind).setAttribute("aria-pressed", String(kind === state.kind));
    byId("unfold").hidden = !state.folded.some((folded) => folded);
    byId("whole-tree").hidden = state.near < 0;
  };
  for (const kind of kinds) byId(kind).addEventListener("click", () => setKind(state, kind));
  for (const event of ["layout", "fold", "near"]) on(state, event, press);
  press();
  const actions = {
    fit: (view) => view.fit(),
    closer: (view) => view.zoom(1.4),
    farther: (view) => view.zoom(1 / 1.4),
  };
  for (const [id, action] of Object.entries(actions)) {
    byId(id).addEventListener("click", () => {
      for (const { view } of panes) action(view);
    });
  }
  panes.at(-1).view.side = byId("fit").offsetWidth;
  byId("whole-tree").addEventListener("click", () => showNear(state, -1));
  byId("unfold").addEventListener("click", () => unfoldAll(state));
  byId("theme").addEventListener("click", () => {
    setDark(document.documentElement.dataset.theme !== "dark");
  });
}

function createHelp() {
  const box = byId("help");
  byId("show-help").addEventListener("click", () => box.showModal());
  byId("close-help").addEventListener("click", () => box.close());
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
    view.canvas.title = tipOf(state, state.hover);
  });
  on(state, "selection", () => {
    const { model, selection } = state;
    const names = namesOf(state, selection).join(" to ");
    byId("announce").textContent =
      selection === null ? "" : `${names}, ${kindOf(model, selection)}`;
  });
}

/** Names of what is pointed at, with its number: what a node is usually, or how it has changed. */
function tipOf(state, what) {
  const names = namesOf(state, what).join(" — ");
  if (!what || "path" in what) return names;
  if ("edge" in what) {
    const { model, tree } = state;
    const [a, b] = [tree.parent[what.edge], what.edge];
    const strength = edgeStrengthOf(state, b);
    return `${names}\n${strengthWord(strength)}, ${strengthName(model, a, b)} ${formatStrength(model, a, b, strength)}`;
  }
  return `${names}\n${nodeTip(state, what.node)}`;
}

function nodeTip(state, v) {
  const { model, evidence, prior } = state;
  if (evidence.has(v)) return `supposed: ${evidenceText(state, v)}`;
  if (evidence.size > 0 && state.posterior.possible) {
    const note = changeNote(state, v);
    const unit = model.numeric[v] ? ` (${formatSigned(state.change[v])} σ)` : "";
    return `${note.textContent ?? note}${unit}`;
  }
  if (model.numeric[v]) {
    const spread = Math.sqrt(prior.variance[v]);
    return `${formatWithin(prior.mean[v], spread)} ± ${formatWithin(spread, spread)}`;
  }
  const own = prior.probability.subarray(model.stateStart[v], model.stateStart[v + 1]);
  const order = [...own.keys()].sort((a, b) => own[b] - own[a]).slice(0, 4);
  return order.map((k) => `${model.labels(v)[k]} ${formatPercent(own[k])}`).join(", ");
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
function exposeForTests(panes, source) {
  const [{ state, view }] = panes;
  window.latentreeExplorer = {
    state,
    view,
    panes,
    toCsv: () => toCsv(state),
    toModelFile: () => toModelFile(state),
    toNewick: () => toNewick(state.model),
    toPage: () => toPage(panes, source),
    toSvg: (options) => toSvg(panes, options),
  };
}

main();
