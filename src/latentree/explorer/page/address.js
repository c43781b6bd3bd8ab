// The view in the address: after # stand the parts that differ from how the page opens, so that a
// link shows others what one sees, and the back button undoes. Nodes and states go by their names in
// the model, so that a page learned anew shows the same or says what it lacks.
//
//   m  fingerprint of the models
//   e  evidence        CVX:-0.25,rain:yes    s  selection  nCVX, eCVX (an edge) or pCVX,GE (a path)
//   l  layout          f  folded nodes       v  view       x,y,scale
//   b  the node whose neighborhood is all that is shown
//   c  what nodes are colored by, then the styles that stand out (group,2,5)
//   u  support under which edges are faded (50f) or contracted (50c)
//   t  theme           n  names, states and notes as JSON; n1, n2, … those of further trees
//   s1, f1, v1, b1     the same of the second of two trees side by side
//   k  the tree of a mixture that is shown; in the evidence, the class variable has no name

import { colorChoices } from "./coloring.js";
import { byId, tell } from "./dom.js";
import { TREE } from "./mixture.js";
import { isHidden, isPossible } from "./model.js";
import {
  emit,
  on,
  relayOut,
  select,
  setAllEvidence,
  setColorBy,
  showNear,
  showTree,
  toggleHighlight,
} from "./state.js";

const WAIT = 150; // milliseconds that changes are gathered: browsers refuse too many
const STEPS = [
  "evidence",
  "selection",
  "layout",
  "fold",
  "names",
  "tree",
  "color",
  "doubt",
  "near",
];

/** Keep the address; `saved` is a view that came with the page. */
export function createAddress(panes, setDark, saved = "") {
  const [{ state }] = panes;
  state.opened = {
    kind: state.kind,
    theme: document.documentElement.dataset.theme,
    number: state.mixture?.number,
    folded: panes.map((pane) => pane.state.folded.slice()),
    names: modelsOf(panes).map(namesText),
    fingerprint: fingerprint(modelsOf(panes)),
  };
  const pending = { timer: 0, isStep: false, wasSlider: false };
  let written = "";
  const write = () => {
    written = viewText(panes);
    if (location.protocol === "about:") return; // a frame in a notebook has no address
    const address = `${location.href.split("#")[0]}${written ? `#${written}` : ""}`;
    const isSlider = document.activeElement?.matches("input[type=range]") ?? false;
    // What a slider passes by is one step.
    const isStep = pending.isStep && !(isSlider && pending.wasSlider);
    if (pending.isStep) pending.wasSlider = isSlider;
    pending.isStep = false;
    if (address === location.href) return;
    if (isStep) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  };
  const later = (isStep) => () => {
    clearTimeout(pending.timer);
    pending.isStep ||= isStep;
    pending.timer = setTimeout(write, WAIT);
  };
  const read = () => {
    const text = location.hash.slice(1);
    if (text === written) return;
    restore(panes, partsOf(text), setDark);
    clearTimeout(pending.timer); // what this has changed is no step of its own
    pending.isStep = false;
    written = text;
  };
  if (location.hash === "" && saved) restore(panes, partsOf(saved), setDark);
  else read();
  for (const pane of panes) {
    for (const event of STEPS) on(pane.state, event, later(true));
    for (const event of ["view", "theme"]) on(pane.state, event, later(false));
  }
  for (const event of ["hashchange", "popstate"]) addEventListener(event, read);
  createCopying(() => {
    clearTimeout(pending.timer);
    write();
  });
}

/** All trees that the page has, in the order of its data. */
export function modelsOf(panes) {
  return panes.flatMap(({ state }) =>
    state.mixture ? state.mixture.trees.map(({ model }) => model) : [state.model],
  );
}

function createCopying(write) {
  const isFile = location.protocol === "file:";
  for (const id of ["from-disk", "save-view"]) byId(id).hidden = !isFile;
  byId("copy-link").hidden = location.protocol === "about:";
  if (isFile) byId("copy-link").textContent = "Copy link for this computer";
  byId("copy-link").addEventListener("click", () => {
    write();
    byId("take").open = false;
    copy(location.href, isFile);
  });
}

async function copy(text, isFile) {
  try {
    await navigator.clipboard.writeText(text);
    tell(isFile ? "The link is copied; it works on this computer only." : "The link is copied.");
  } catch {
    prompt("Copy this link:", text);
  }
}

// Writing ---------------------------------------------------------------------------------------

/** The address of what is seen; empty when all is as the page opens. */
export function viewText(panes) {
  const [{ state }] = panes;
  const { evidence, mixture, opened } = state;
  const parts = [];
  const put = (key, text) => text && parts.push(`${key}=${text}`);
  put("k", mixture && mixture.number !== opened.number ? String(mixture.number) : "");
  put("e", Array.from(evidence, ([v, value]) => evidenceToken(state, v, value)).join(","));
  put("l", state.kind === opened.kind ? "" : state.kind);
  panes.forEach((pane, i) => {
    const { model, selection, folded, near } = pane.state;
    put(keyOf("s", i), selectionText(model, selection));
    put(keyOf("f", i), foldsText(model, folded, opened.folded[i]));
    put(keyOf("b", i), near < 0 ? "" : token(model, near));
    put(keyOf("v", i), placeText(pane.view));
  });
  const { theme } = document.documentElement.dataset;
  const { below, contract } = state.doubt;
  put("u", below > 0 ? `${Math.round(100 * below)}${contract ? "c" : "f"}` : "");
  const colors = [state.colorBy, ...state.highlight].join(",");
  put("c", colors === "auto" ? "" : colors);
  put("t", theme === opened.theme ? "" : theme);
  modelsOf(panes).forEach((model, i) => {
    const text = namesText(model);
    put(keyOf("n", i), text === opened.names[i] ? "" : encodeURIComponent(text));
  });
  return parts.length > 0 ? [`m=${opened.fingerprint}`, ...parts].join("&") : "";
}

/** The key of a part of some tree: the first has no number. */
function keyOf(letter, i) {
  return i === 0 ? letter : `${letter}${i}`;
}

/** A node by its name in the model. */
function token({ ownNames }, v) {
  return v === TREE ? "" : encodeURIComponent(ownNames[v]);
}

function evidenceToken({ model }, v, value) {
  const isLabel = v !== TREE && !model.numeric[v] && !isHidden(model, v);
  return `${token(model, v)}:${isLabel ? encodeURIComponent(model.labels(v)[value]) : value}`;
}

function foldsText(model, folded, before) {
  if (folded.every((fold, v) => fold === before[v])) return "";
  const nodes = [...folded.keys()].filter((v) => folded[v]);
  return nodes.map((v) => token(model, v)).join(",") || ",";
}

function placeText({ fitted, x, y, scale }) {
  return fitted ? "" : [x, y, scale].map((value) => Number(value.toPrecision(6))).join(",");
}

function selectionText(model, selection) {
  if (!selection) return "";
  if ("path" in selection) return `p${selection.path.map((v) => token(model, v)).join(",")}`;
  return "node" in selection
    ? `n${token(model, selection.node)}`
    : `e${token(model, selection.edge)}`;
}

function namesText({ names, ownNames, stateNames, notes }) {
  const byName = (given) =>
    Object.fromEntries(Object.entries(given).map(([v, value]) => [ownNames[v], value]));
  const changed = Object.fromEntries(
    names.flatMap((name, v) => (name === ownNames[v] ? [] : [[ownNames[v], name]])),
  );
  const all = [changed, byName(stateNames), byName(notes)];
  return all.some((part) => Object.keys(part).length > 0) ? JSON.stringify(all) : "";
}

/** A few letters that differ where names, trees or strengths do (FNV-1a). */
function fingerprint(models) {
  let hash = 0x811c9dc5;
  const add = (text) => {
    for (let i = 0; i < text.length; i++) {
      hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
    }
  };
  for (const { ownNames, parent, strengths } of models) {
    add(ownNames.join("\n"));
    add(parent.join(","));
    add(Array.from(strengths.drawn, (strength) => strength.toFixed(6)).join(","));
  }
  return hash.toString(36);
}

// Reading ---------------------------------------------------------------------------------------

function partsOf(text) {
  const parts = new Map();
  for (const part of text.split("&").filter(Boolean)) {
    const at = part.indexOf("=");
    if (at > 0) parts.set(part.slice(0, at), part.slice(at + 1));
  }
  return parts;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Show what an address says; what this model does not have is passed over, and said. */
function restore(panes, parts, setDark) {
  const [{ state }] = panes;
  const { opened } = state;
  const missing = new Set();
  const list = (key) => (parts.get(key) ?? "").split(",").filter(Boolean);
  const nodeOf = ({ model }, text) => {
    const name = decoded(text);
    const v = model.ownNames.indexOf(name);
    if (v < 0) missing.add(name);
    return v;
  };
  modelsOf(panes).forEach((own, i) => {
    restoreNames(own, decoded(parts.get(keyOf("n", i)) ?? ""));
  });
  restoreTree(state, Number(parts.get("k") ?? opened.number));
  if (parts.has("t")) setDark(parts.get("t") === "dark");
  const kind = parts.get("l");
  state.kind = Object.hasOwn(state.layouts, kind) ? kind : opened.kind;
  restoreDoubt(state, parts.get("u") ?? "");
  const [colorBy, ...styles] = list("c");
  setColorBy(state, colorChoices(state).some(([key]) => key === colorBy) ? colorBy : "auto");
  for (const number of styles.map(Number)) {
    if (number in state.coloring.styles) toggleHighlight(state, number);
  }
  relayOut(state);
  emit(state, "layout");
  panes.forEach((pane, i) => {
    const nodes = parts.has(keyOf("f", i))
      ? list(keyOf("f", i)).map((text) => nodeOf(pane.state, text))
      : [...opened.folded[i].keys()].filter((v) => opened.folded[i][v]);
    restoreFolds(pane.state, nodes);
    const near = parts.has(keyOf("b", i)) ? nodeOf(pane.state, parts.get(keyOf("b", i))) : -1;
    if (near !== pane.state.near) showNear(pane.state, near);
  });
  for (const pane of panes) emit(pane.state, "names");
  setAllEvidence(state, new Map(list("e").flatMap((text) => readEvidence(state, text, nodeOf))));
  panes.forEach((pane, i) => {
    const text = parts.get(keyOf("s", i)) ?? "";
    if (i === 0 || text) select(pane.state, readSelection(text, pane.state, nodeOf));
    const [x, y, scale] = list(keyOf("v", i)).map(Number);
    const known = [x, y, scale].every(Number.isFinite) && scale > 0;
    if (known) pane.view.flyTo({ x, y, scale }, false);
    else if (!pane.view.fitted) pane.view.fit(false);
  });
  sayWhatDiffers(parts.get("m"), opened.fingerprint, missing);
}

function sayWhatDiffers(given, own, missing) {
  if (missing.size > 0) {
    const names = [...missing].slice(0, 5).join(", ");
    tell(`This link is of another model. Here there is no ${names}: the rest is shown.`, true);
  } else if (given !== undefined && given !== own) {
    tell("This link is of another version of this model: numbers may differ.", true);
  }
}

function readEvidence(state, text, nodeOf) {
  const { model } = state;
  const at = text.indexOf(":");
  const v = at === 0 ? TREE : nodeOf(state, text.slice(0, Math.max(at, 0)));
  if (v === TREE && at !== 0) return [];
  const given = decoded(text.slice(at + 1));
  const isLabel = v !== TREE && !model.numeric[v] && !isHidden(model, v);
  const value = isLabel ? model.labels(v).indexOf(given) : Number(given);
  return given !== "" && isValue(state, v, value) ? [[v, value]] : [];
}

function restoreFolds(state, nodes) {
  state.folded.fill(0);
  for (const v of nodes) if (v >= 0) state.folded[v] = 1;
  relayOut(state);
  emit(state, "fold");
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
  if (model.numeric[v]) return Number.isFinite(value) && isPossible(model, v, value);
  return Number.isInteger(value) && value >= 0 && value < model.states[v];
}

function readSelection(text, state, nodeOf) {
  if (text === "") return null;
  const [kind] = text;
  const nodes = text
    .slice(1)
    .split(",")
    .map((part) => nodeOf(state, part));
  if (nodes.includes(-1)) return null;
  if (kind === "p" && nodes.length === 2 && nodes[0] !== nodes[1]) return { path: nodes };
  if (kind === "n") return { node: nodes[0] };
  return kind === "e" && state.tree.parent[nodes[0]] >= 0 ? { edge: nodes[0] } : null;
}

function restoreNames(model, text) {
  let all;
  try {
    all = JSON.parse(text);
  } catch {
    return;
  }
  if (!Array.isArray(all)) return;
  const number = new Map(model.ownNames.map((name, v) => [name, v]));
  const fits = { names: isText, stateNames: isTexts, notes: isText };
  Object.entries(fits).forEach(([key, fit], i) => {
    for (const [name, value] of Object.entries(all[i] ?? {})) {
      const v = number.get(name);
      if (v !== undefined && fit(value, model, v)) model[key][v] = value;
    }
  });
}

function isText(value) {
  return typeof value === "string" && value.trim() !== "";
}

function isTexts(value, model, v) {
  return Array.isArray(value) && value.every(isText) && value.length === model.states?.[v];
}
