// Names that people give to hidden variables and their states, with notes.

import { element } from "./dom.js";
import { titleOf } from "./model.js";
import { rename, renameStates, setNote } from "./state.js";

const KEPT =
  "Names are in the address of this page. Take away ▸ Model, Names or This page keeps them in a file.";

/** The name of a hidden variable, to be changed in place. */
export function nameField(state, v) {
  const { model } = state;
  const note = element("p", { class: "quiet", role: "status" });
  const changed = model.names.some((name, u) => name !== model.ownNames[u]);
  note.textContent = changed ? KEPT : "";
  const keep = () => {
    if (field.value === titleOf(model, v)) return;
    if (!rename(state, v, field.value)) {
      field.value = titleOf(model, v);
      note.textContent = "That name is empty or taken.";
    }
  };
  const field = element("input", {
    class: "rename",
    value: titleOf(model, v),
    dir: "auto",
    spellcheck: "false",
    "aria-label": "Name of this hidden variable",
    "data-key": "rename",
    change: keep,
    keydown: (event) => {
      if (event.key === "Enter") keep();
    },
  });
  return element("div", {}, element("h2", {}, field), note);
}

/** Names of the states and a note, folded away until they are wanted. */
export function nameTools(state, v) {
  const { model } = state;
  const open = state.namingOpen === true;
  const box = element(
    "details",
    { class: "naming", open },
    element(
      "summary",
      { "data-key": "naming" },
      model.numeric[v] ? "Add a note" : "Name its states, add a note",
    ),
    model.numeric[v] ? null : stateFields(state, v),
    noteField(state, v),
  );
  box.addEventListener("toggle", () => {
    state.namingOpen = box.open;
  });
  const note = model.notes[v];
  return element("div", {}, note ? element("p", { class: "note", dir: "auto" }, note) : null, box);
}

function stateFields(state, v) {
  const { model } = state;
  const said = element("p", { class: "quiet", role: "status" });
  const keep = () => {
    const labels = fields.map((field) => field.value);
    if (labels.join("\n") === model.labels(v).join("\n")) return;
    if (!renameStates(state, v, labels)) said.textContent = "States need different names.";
  };
  const fields = model.labels(v).map((label, k) =>
    element("input", {
      class: "value wide",
      value: label,
      dir: "auto",
      "aria-label": `Name of state ${k}`,
      "data-key": `name${k}`,
      change: keep,
      keydown: (event) => {
        if (event.key === "Enter") keep();
      },
    }),
  );
  return element("div", { class: "fields" }, fields, said);
}

function noteField(state, v) {
  const field = element("textarea", {
    class: "value wide",
    rows: 2,
    dir: "auto",
    placeholder: "A note",
    "aria-label": "Note on this hidden variable",
    "data-key": "note",
    change: () => setNote(state, v, field.value),
  });
  field.defaultValue = state.model.notes[v] ?? "";
  return field;
}

/** All names as latentree's file of names, which model.rename and --names read. */
export function toNames(model) {
  const ownNames = model.ownNames;
  const names = {};
  model.names.forEach((name, v) => {
    if (name !== ownNames[v]) names[ownNames[v]] = name;
  });
  const byName = (given) =>
    Object.fromEntries(Object.entries(given).map(([v, value]) => [ownNames[v], value]));
  const content = {
    format: "latentree names",
    version: 1,
    names,
    states: byName(model.stateNames),
    notes: byName(model.notes),
  };
  return `${JSON.stringify(content, null, 2)}\n`;
}

/** Take names from the text of such a file; a sentence says what is wrong with it, if anything. */
export function fromNames(state, text) {
  const { model } = state;
  let content;
  try {
    content = JSON.parse(text);
  } catch {
    return "That file is no JSON.";
  }
  if (content?.format !== "latentree names") return "That file holds no names.";
  const number = new Map(model.ownNames.map((name, v) => [name, v]));
  for (const [part, take] of Object.entries({
    names: (v, name) => rename(state, v, String(name)),
    states: (v, labels) => renameStates(state, v, Array.from(labels, String)),
    notes: (v, note) => setNote(state, v, String(note)) ?? true,
  })) {
    for (const [name, value] of Object.entries(content[part] ?? {})) {
      if (!number.has(name)) return `There is no node ${name}.`;
      if (!take(number.get(name), value)) return `${name} cannot be called so.`;
    }
  }
  return "";
}
