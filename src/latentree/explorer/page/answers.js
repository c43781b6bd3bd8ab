// What is supposed, and what follows from it.

import { shareBar } from "./charts.js";
import { byId, element, nameOf, replaced } from "./dom.js";
import { directionOf, greatness, highState, sigmasOf } from "./inference.js";
import { counted, cutList, goButton } from "./lists.js";
import { TREE } from "./mixture.js";
import { isHidden, isOnGrid, rankMargin, titleOf } from "./model.js";
import { formatNumber, formatPercent, formatSigned, formatWithin } from "./numbers.js";
import { rowName } from "./rows.js";
import { clearEvidence, on, setEvidence } from "./state.js";

const MOST_CHIPS = 8; // beyond which they are folded away
const FILTERS = { all: "All", variables: "Variables", hidden: "Hidden" };

export function createAnswers(state, view) {
  const box = byId("answers");
  const show = () => {
    box.hidden = state.evidence.size === 0;
    replaced(
      box,
      () => box.replaceChildren(...(box.hidden ? [] : answers(state, view))),
      () => box.querySelector(".remove") ?? box.parentElement,
    );
    byId("announce").textContent = box.hidden ? "" : spoken(state);
  };
  on(state, "evidence", show);
  on(state, "names", show);
  show();
}

/** A value of a node in words: "+2.00 σ (0.153)", in mixed models "52 (+1.31 σ)", or a label. */
export function evidenceText(state, v) {
  const { model, evidence } = state;
  const value = evidence.get(v);
  if (v === TREE) return String(value);
  if (!model.numeric[v]) return model.labels(v)[value];
  const sigma = sigmasOf(state, v, value);
  return model.isGaussian && !rankMargin(model, v)
    ? `${formatSigned(sigma)} σ (${formatNumber(value)})`
    : `${formatNumber(value, 5)} (${formatSigned(sigma)} σ)`;
}

function answers(state, view) {
  const clear = element(
    "button",
    { type: "button", class: "clear", click: () => clearEvidence(state) },
    "Clear all",
  );
  return [
    element("h2", { class: "head" }, "Suppose"),
    ...chipList(state, view),
    element("p", { class: "buttons" }, clear),
    element("h2", { class: "head" }, "Most changed"),
    state.posterior.possible ? mostChanged(state, view) : impossible(),
  ];
}

/** What is supposed, one by one; of a row, or of very much, only when it is asked for. */
function chipList(state, view) {
  const { evidence, row } = state;
  const list = element("ul", { class: "chips" });
  const fill = () =>
    list.replaceChildren(...Array.from(evidence.keys(), (v) => chip(state, view, v)));
  if (evidence.size <= MOST_CHIPS) {
    fill();
    return [list];
  }
  const what = counted(evidence.size, "value");
  const box = element(
    "details",
    { class: "naming" },
    element("summary", {}, row < 0 ? what : nameOf(`${rowName(state, row)}: ${what}`)),
    list,
  );
  box.addEventListener("toggle", fill, { once: true });
  return [box];
}

function impossible() {
  return element(
    "p",
    { class: "warning" },
    "The model gives this combination probability 0: nothing follows from it.",
  );
}

/** What is supposed of is called by its name, the class variable of a mixture too. */
export function evidenceName({ model, mixture }, v) {
  return v === TREE ? mixture.name : titleOf(model, v);
}

function chip(state, view, v) {
  const name = evidenceName(state, v);
  const remove = element(
    "button",
    {
      type: "button",
      class: "remove",
      "aria-label": `Forget ${name} = ${evidenceText(state, v)}`,
      click: () => setEvidence(state, v, undefined),
    },
    "×",
  );
  const what = v === TREE ? nameOf(name) : goButton(state, view, v);
  return element("li", {}, what, " = ", nameOf(evidenceText(state, v)), remove);
}

/** Nodes without evidence by how far they moved. */
export function ranking(state) {
  const { model, change, evidence } = state;
  const nodes = [];
  for (let v = 0; v < model.size; v++) {
    if (!evidence.has(v) && Math.abs(change[v]) > 1e-9) nodes.push(v);
  }
  const power = (v) => greatness(model, change, v);
  return nodes.sort((a, b) => power(b) - power(a) || a - b);
}

function mostChanged(state, view) {
  const list = element("div", {});
  const fill = () => {
    const hidden = (v) => isHidden(state.model, v);
    const nodes = ranking(state).filter(
      (v) => state.filter === "all" || hidden(v) === (state.filter === "hidden"),
    );
    const row = (v) => changeRow(state, view, v);
    list.replaceChildren(
      nodes.length === 0
        ? element("p", { class: "quiet" }, "Nothing else changes.")
        : cutList(nodes, row, "list changes"),
    );
  };
  fill();
  return element(
    "div",
    {},
    state.model.size > state.model.observed ? filters(state, fill) : null,
    list,
  );
}

/** Buttons that choose whether variables, hidden ones or all are listed. */
function filters(state, fill) {
  const buttons = Object.entries(FILTERS).map(([key, text]) => {
    const press = () => {
      state.filter = key;
      for (const other of buttons) {
        other.setAttribute("aria-pressed", String(other.dataset.filter === key));
      }
      fill();
    };
    return element(
      "button",
      {
        type: "button",
        "data-filter": key,
        "aria-pressed": String(state.filter === key),
        click: press,
      },
      text,
    );
  });
  return element("p", { class: "buttons filters", role: "group", "aria-label": "Listed" }, buttons);
}

function changeRow(state, view, v) {
  const { model, change } = state;
  const full = model.numeric[v] ? 3 : 1;
  const way = { 1: "up", [-1]: "down", 0: "moved" }[directionOf(model, change, v)];
  return element(
    "li",
    {},
    goButton(state, view, v),
    shareBar(Math.abs(change[v]) / full, null, way),
    element("span", { class: "figures" }, changeText(state, v)),
  );
}

/** "+1.32 σ", means (of ranks medians) "38 → 52", or the state that gained most: "yes 4 % → 61 %". */
function changeText(state, v) {
  const { model, change, prior, posterior } = state;
  const isNormal = model.isGaussian || isOnGrid(model, v);
  if (isNormal && !rankMargin(model, v)) return `${formatSigned(change[v])} σ`;
  if (model.numeric[v]) {
    const usual = Math.sqrt(prior.variance[v]);
    return [prior, posterior].map(({ mean }) => formatWithin(mean[v], usual)).join(" → ");
  }
  const k = mostMoved(state, v);
  const i = model.stateStart[v] + k;
  const [before, after] = [prior.probability[i], posterior.probability[i]].map(formatPercent);
  return [nameOf(model.labels(v)[k]), `: ${before} → ${after}`];
}

/** The state that counts as more when there are two, else the one whose probability changed most. */
function mostMoved({ model, prior, posterior }, v) {
  const from = model.stateStart[v];
  const count = model.states[v];
  if (count === 2) return highState(model, v);
  let best = 0;
  const moved = (k) => Math.abs(posterior.probability[from + k] - prior.probability[from + k]);
  for (let k = 1; k < count; k++) if (moved(k) > moved(best)) best = k;
  return best;
}

function plainText(parts) {
  return [parts]
    .flat()
    .map((part) => part.textContent ?? part)
    .join("");
}

/** The same for those who listen. */
function spoken(state) {
  const { model, evidence } = state;
  const given = Array.from(
    evidence.keys(),
    (v) => `${evidenceName(state, v)} = ${evidenceText(state, v)}`,
  );
  if (given.length > MOST_CHIPS) given.splice(MOST_CHIPS, Infinity, "…");
  if (!state.posterior.possible) return `Impossible: ${given.join(", ")}`;
  const first = ranking(state).slice(0, 3);
  const moved = first.map((v) => `${titleOf(model, v)} ${plainText(changeText(state, v))}`);
  return `Suppose ${given.join(", ")}. Most changed: ${moved.join(", ")}.`;
}
