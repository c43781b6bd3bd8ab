// The view in the address: after # stand the parts that differ from how the page opens, so that a
// link shows others what one sees.
//
//   e  evidence        12:3,40:-0.25         s  selection  n12, e12 (an edge) or p12-40 (a path)
//   l  layout          f  folded nodes       v  view       x,y,scale
//   c  what nodes are colored by, then the styles that stand out (group,2,5)
//   u  support under which edges are faded (50f) or contracted (50c)
//   t  theme           n  names, states and notes as JSON; n1, n2, … those of further trees
//   s1, f1, v1         the same of the second of two trees side by side
//   k  the tree of a mixture that is shown; in the evidence, −1 stands for the class variable

import { colorChoices } from "./coloring.js";
import { byId } from "./dom.js";
import { modelsOf } from "./export.js";
import { TREE } from "./mixture.js";
import { isPossible } from "./model.js";
import {
  emit,
  on,
  relayOut,
  select,
  setAllEvidence,
  setColorBy,
  showTree,
  toggleHighlight,
} from "./state.js";

const WAIT = 150; // milliseconds that changes are gathered: browsers refuse too many

export function createAddress(panes, setDark) {
  const [{ state }] = panes;
  const opened = {
    kind: state.kind,
    theme: document.documentElement.dataset.theme,
    number: state.mixture?.number,
    names: modelsOf(panes).map(namesText),
  };
  let timer = 0;
  let written = "";
  const write = () => {
    written = encodeView(panes, opened);
    if (location.protocol === "about:") return; // a frame in a notebook has no address
    const plain = location.href.split("#")[0];
    history.replaceState(null, "", written ? `${plain}#${written}` : plain);
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(write, WAIT);
  };
  const read = () => {
    const text = location.hash.slice(1);
    if (text === written || text === "") return;
    restore(panes, new URLSearchParams(text), opened, setDark);
  };
  read();
  for (const event of ["evidence", "layout", "theme", "doubt", "color", "tree"]) {
    on(state, event, later);
  }
  for (const pane of panes) {
    for (const event of ["names", "selection", "fold", "view"]) on(pane.state, event, later);
  }
  addEventListener("hashchange", read);
  byId("copy-link").hidden = location.protocol === "about:";
  byId("copy-link").addEventListener("click", () => {
    clearTimeout(timer);
    write();
    byId("take").open = false;
    copy(location.href);
  });
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    byId("announce").textContent = "The link is copied.";
  } catch {
    prompt("Copy this link:", text);
  }
}

/** The address of what is seen; empty when all is as the page opens. */
function encodeView(panes, opened) {
  const [{ state }] = panes;
  const { evidence, mixture } = state;
  const parts = new URLSearchParams();
  const put = (key, text) => text && parts.set(key, text);
  put("k", mixture && mixture.number !== opened.number ? String(mixture.number) : "");
  put("e", Array.from(evidence, ([v, value]) => `${v}:${value}`).join(","));
  put("l", state.kind === opened.kind ? "" : state.kind);
  panes.forEach((pane, i) => {
    const { selection, folded } = pane.state;
    put(keyOf("s", i), selectionText(selection));
    put(keyOf("f", i), [...folded.keys()].filter((v) => folded[v]).join(","));
    put(keyOf("v", i), viewText(pane.view));
  });
  const { theme } = document.documentElement.dataset;
  const { below, contract } = state.doubt;
  put("u", below > 0 ? `${Math.round(100 * below)}${contract ? "c" : "f"}` : "");
  const colors = [state.colorBy, ...state.highlight].join(",");
  put("c", colors === "group" ? "" : colors);
  put("t", theme === opened.theme ? "" : theme);
  modelsOf(panes).forEach((model, i) => {
    const text = namesText(model);
    put(keyOf("n", i), text === opened.names[i] ? "" : text);
  });
  return parts.toString().replaceAll("%2C", ",").replaceAll("%3A", ":");
}

/** The key of a part of some tree: the first has no number. */
function keyOf(letter, i) {
  return i === 0 ? letter : `${letter}${i}`;
}

function viewText({ fitted, x, y, scale }) {
  return fitted ? "" : [x, y, scale].map((value) => Number(value.toPrecision(6))).join(",");
}

function selectionText(selection) {
  if (!selection) return "";
  if ("path" in selection) return `p${selection.path.join("-")}`;
  return "node" in selection ? `n${selection.node}` : `e${selection.edge}`;
}

function namesText({ names, ownNames, stateNames, notes }) {
  const changed = {};
  names.forEach((name, v) => {
    if (name !== ownNames[v]) changed[v] = name;
  });
  const all = [changed, stateNames, notes];
  return all.some((part) => Object.keys(part).length > 0) ? JSON.stringify(all) : "";
}

/** Show what an address says; parts that fit no node of this model are passed over. */
function restore(panes, parts, opened, setDark) {
  const [{ state }] = panes;
  const list = (key) => (parts.get(key) ?? "").split(",").filter(Boolean);
  modelsOf(panes).forEach((own, i) => {
    restoreNames(own, parts.get(keyOf("n", i)));
  });
  restoreTree(state, Number(parts.get("k") ?? opened.number));
  if (parts.has("t")) setDark(parts.get("t") === "dark");
  if (Object.hasOwn(state.layouts, parts.get("l"))) state.kind = parts.get("l");
  restoreDoubt(state, parts.get("u") ?? "");
  const [colorBy, ...styles] = list("c");
  setColorBy(state, colorChoices(state).some(([key]) => key === colorBy) ? colorBy : "group");
  for (const number of styles.map(Number)) {
    if (number in state.coloring.styles) toggleHighlight(state, number);
  }
  relayOut(state);
  emit(state, "layout");
  panes.forEach((pane, i) => {
    restoreFolds(pane.state, list(keyOf("f", i)).map(Number));
  });
  for (const pane of panes) emit(pane.state, "names");
  const given = list("e").map((text) => text.split(":").map(Number));
  setAllEvidence(state, new Map(given.filter(([v, x]) => isValue(state, v, x))));
  panes.forEach((pane, i) => {
    const text = parts.get(keyOf("s", i)) ?? "";
    if (i === 0 || text) select(pane.state, readSelection(text, pane.state));
    const [x, y, scale] = list(keyOf("v", i)).map(Number);
    const known = [x, y, scale].every(Number.isFinite) && scale > 0;
    if (known) pane.view.flyTo({ x, y, scale }, false);
  });
}

function restoreFolds(state, nodes) {
  state.folded.fill(0);
  for (const v of nodes) if (isNodeOf(state.model, v)) state.folded[v] = 1;
  relayOut(state);
  emit(state, "fold");
}

function isNodeOf(model, v) {
  return Number.isInteger(v) && v >= 0 && v < model.size;
}

function restoreTree(state, number) {
  const { mixture } = state;
  if (mixture && number in mixture.trees && number !== mixture.number) showTree(state, number);
}

function restoreDoubt(state, text) {
  const found = /^(\d{1,3})([cf])$/.exec(text);
  const below = found && state.model.support ? Math.min(Number(found[1]), 100) / 100 : 0;
  state.doubt = { below, contract: found?.[2] === "c" };
  emit(state, "doubt");
}

function isValue({ model, mixture }, v, value) {
  if (v === TREE) return mixture !== null && value in mixture.trees;
  if (!isNodeOf(model, v)) return false;
  if (model.numeric[v]) return isPossible(model, v, value);
  return Number.isInteger(value) && value >= 0 && value < model.states[v];
}

function readSelection(text, { model, tree }) {
  const nodes = text.slice(1).split("-").map(Number);
  if (text === "" || !nodes.every((v) => isNodeOf(model, v))) return null;
  const [kind] = text;
  if (kind === "p" && nodes.length === 2 && nodes[0] !== nodes[1]) return { path: nodes };
  if (kind === "n") return { node: nodes[0] };
  return kind === "e" && tree.parent[nodes[0]] >= 0 ? { edge: nodes[0] } : null;
}

function restoreNames(model, text) {
  let all;
  try {
    all = JSON.parse(text);
  } catch {
    return;
  }
  if (!Array.isArray(all)) return;
  const fits = { names: isText, stateNames: isTexts, notes: isText };
  Object.entries(fits).forEach(([key, fit], i) => {
    for (const [v, value] of Object.entries(all[i] ?? {})) {
      if (isNodeOf(model, Number(v)) && fit(value, model, v)) model[key][v] = value;
    }
  });
}

function isText(value) {
  return typeof value === "string" && value.trim() !== "";
}

function isTexts(value, model, v) {
  return Array.isArray(value) && value.every(isText) && value.length === model.states?.[v];
}
