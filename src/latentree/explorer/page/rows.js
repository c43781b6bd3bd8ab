// Rows that came with the page: who is typical of a hidden state, who is between, shares by group.

import { shareBar } from "./charts.js";
import { element, nameOf } from "./dom.js";
import { mixtureDensity, mixtureOf } from "./emissions.js";
import { highState, infer } from "./inference.js";
import { barRow, counted, cutList, section } from "./lists.js";
import { isHidden, rowCell, titleOf } from "./model.js";
import { formatNumber, formatPercent, formatSigned } from "./numbers.js";
import { supposeRow } from "./state.js";

const TITLE = 90; // characters of a text that are shown before it is opened
const DECISIVE = 3; // cells that stand for a row
const SIDE = 1.5; // standard deviations from the middle that stand for high and low
const LEAST = 1e-12; // probabilities below count as this

/** What a row is called: by its label, or its number. */
export function rowName(state, row) {
  const { rows } = state.model;
  return rows.labels?.[row] ?? `Row ${(rows.kept[row] + 1).toLocaleString("en")}`;
}

/** Typical and borderline rows of a hidden variable, and how common its states are in groups. */
export function rowSections(state, v) {
  const { model } = state;
  if (!model.rows || !isHidden(model, v)) return [];
  if (state.rowChoice?.node !== v) state.rowChoice = { node: v, k: firstState(model, v), side: 0 };
  const box = element("div", {});
  const fill = () => box.replaceChildren(choiceTools(state, v, fill), rowList(state, v));
  fill();
  return [section("Rows", box), groupSection(state, v)];
}

function firstState(model, v) {
  return !model.numeric[v] && model.states[v] === 2 ? highState(model, v) : 0;
}

/** The column of a hidden state among all that rows were ranked by. */
function columnOf(model, v, k) {
  return model.numeric[v]
    ? v - model.observed
    : model.stateStart[v] - model.stateStart[model.observed] + k;
}

function choiceTools(state, v, fill) {
  const { model, rowChoice } = state;
  const press = (change) => () => {
    Object.assign(rowChoice, change);
    fill();
  };
  const button = (text, change) =>
    element(
      "button",
      {
        type: "button",
        "aria-pressed": String(
          Object.entries(change).every(([key, value]) => rowChoice[key] === value),
        ),
        click: press(change),
      },
      text,
    );
  const sides = model.numeric[v] ? ["Highest", "Lowest"] : ["Typical", "Borderline"];
  const states = model.numeric[v] ? [] : model.labels(v);
  return element(
    "div",
    { class: "filters choices" },
    states.length > 0
      ? element(
          "p",
          { class: "buttons", role: "group", "aria-label": "State" },
          element("span", { class: "quiet" }, "State"),
          states.map((label, k) => button(nameOf(label), { k })),
        )
      : null,
    element(
      "p",
      { class: "buttons", role: "group", "aria-label": "Which rows" },
      sides.map((text, side) => button(text, { side })),
    ),
  );
}

function rowList(state, v) {
  const { model, rowChoice } = state;
  const { starts, rows, values } = model.rows.lists;
  const list = 2 * columnOf(model, v, rowChoice.k) + rowChoice.side;
  const places = Array.from(
    { length: starts[list + 1] - starts[list] },
    (_, i) => starts[list] + i,
  );
  if (places.length === 0) {
    const none = rowChoice.side === 0 ? "No row is in this state." : "No row is between states.";
    return element("p", { class: "quiet" }, none);
  }
  const figure = model.numeric[v] ? formatSigned : formatPercent;
  const speaks = cellWeights(state, v, rowChoice);
  return cutList(places, (i) => rowItem(state, rows[i], figure(values[i]), speaks), "list rows");
}

/**
 * How much a cell speaks for what is chosen of a hidden variable, in bits: its probability (or
 * density) where the state, or the side of a hidden number, is known, to that where it is not.
 */
function cellWeights(state, v, { k, side }) {
  const { model } = state;
  const value = model.numeric[v] ? (side === 0 ? SIDE : -SIDE) : k;
  const [usual, chosen] = [new Map(), new Map([[v, value]])].map((given) => infer(model, given));
  return (row, u) => {
    const cell = rowCell(model, row, u);
    if (cell === undefined) return 0;
    const [before, now] = [usual, chosen].map((found) => cellProbability(model, found, u, cell));
    return Math.log2(Math.max(now, LEAST) / Math.max(before, LEAST));
  };
}

function cellProbability(model, found, u, cell) {
  if (!model.numeric[u]) return found.probability[model.stateStart[u] + cell];
  const width = 0.2 * Math.sqrt(found.variance[u]);
  return mixtureDensity(...mixtureOf(model, u, found), width)(cell);
}

function rowItem(state, row, figure, speaks) {
  const { rows } = state.model;
  const cells = decisiveCells(state, row, speaks);
  const box = element(
    "details",
    { class: "row-box" },
    element(
      "summary",
      {},
      element("span", { class: "row-name" }, rowTitle(state, row, cells), preview(rows, row)),
      element("span", { class: "figures" }, figure),
    ),
  );
  box.addEventListener("toggle", () => {
    if (!box.open || box.children.length > 1) return;
    const whole = rows.texts?.[row];
    box.append(
      element("p", { class: "buttons" }, supposeButton(state, row)),
      ...(whole ? [element("p", { class: "text", dir: "auto", tabindex: 0 }, whole)] : []),
      ...[cellList(state, row, cells)].flat(),
    );
  });
  return element("li", { class: "last" }, box);
}

/** The beginning of a row's text, where rows have texts. */
function preview(rows, row) {
  const text = rows.texts?.[row];
  if (!text) return null;
  return nameOf(text.length > TITLE ? `${text.slice(0, TITLE)}…` : text, {
    class: "quiet preview",
  });
}

/** A row by the cells that decide the state of the variable, with their values. */
function rowTitle(state, row, decisive) {
  const cells = decisive.slice(0, DECISIVE);
  const parts = cells.map(({ u }) => cellText(state, row, u)).join(", ");
  return nameOf(parts ? `${rowName(state, row)}: ${parts}` : rowName(state, row));
}

function supposeButton(state, row) {
  return element(
    "button",
    { type: "button", click: () => supposeRow(state, row) },
    "Suppose this row",
  );
}

function cellList(state, row, cells) {
  if (cells.length === 0) return element("p", { class: "quiet" }, "No cell decides it.");
  const list = cutList(cells, ({ u, bits }) =>
    element(
      "li",
      { class: "cell" },
      nameOf(cellText(state, row, u)),
      element("span", { class: "figures" }, `${bits < 0 ? "against" : "for"} it`),
    ),
  );
  return [element("p", { class: "quiet" }, "Cells that decide it, the weightiest first."), list];
}

/** Cells of a row that speak for or against what is chosen, the weightiest first. */
function decisiveCells(state, row, speaks) {
  const found = [];
  for (let u = 0; u < state.model.observed; u++) {
    const bits = speaks(row, u);
    if (Math.abs(bits) > 0.01) found.push({ u, bits });
  }
  return found.sort((a, b) => Math.abs(b.bits) - Math.abs(a.bits) || a.u - b.u);
}

function cellText(state, row, v) {
  return `${titleOf(state.model, v)} = ${valueText(state, row, v)}`;
}

function valueText({ model }, row, v) {
  const value = rowCell(model, row, v);
  return model.numeric[v] ? formatNumber(value) : model.labels(v)[value];
}

/** How common a state is, or how high a mean, in every group of rows. */
function groupSection(state, v) {
  const { model, rowChoice } = state;
  const { groups } = model.rows;
  if (!groups) return null;
  const width = groups.means.length / groups.names.length;
  const box = element("div", {});
  const fill = (k) => {
    const value = (g) => groups.means[g * width + columnOf(model, v, k)];
    const order = Array.from(groups.names.keys()).sort((a, b) => value(b) - value(a));
    const most = Math.max(...order.map((g) => Math.abs(value(g)))) || 1;
    const row = (g) =>
      barRow({
        name: nameOf(groups.names[g]),
        note: counted(Math.round(groups.counts[g]), "row"),
        bar: shareBar(
          model.numeric[v] ? Math.abs(value(g)) / most : value(g),
          null,
          value(g) < 0 ? "negative" : "",
        ),
        figure: model.numeric[v] ? formatSigned(value(g)) : formatPercent(value(g)),
      });
    box.replaceChildren(cutList(order, row));
  };
  fill(rowChoice.k);
  if (model.numeric[v]) return section("Mean by group of rows", box);
  const tools = element(
    "p",
    { class: "buttons filters", role: "group", "aria-label": "Share of state" },
    element("span", { class: "quiet" }, "State"),
    model.labels(v).map((label, k) => {
      const button = element("button", {
        type: "button",
        "aria-pressed": String(k === rowChoice.k),
        click: () => {
          for (const other of tools.querySelectorAll("button")) {
            other.setAttribute("aria-pressed", String(other === button));
          }
          fill(k);
        },
      });
      button.append(nameOf(label));
      return button;
    }),
  );
  return section("Share by group of rows", tools, box);
}

/** What rows are in the page, and a field to suppose one by its number. */
export function rowOverview(state) {
  const { rows } = state.model;
  if (!rows) return null;
  const { kept, total } = rows;
  const all = kept.length === total;
  const text = all
    ? `All ${counted(total, "row")} of the data are in this page.`
    : `${kept.length.toLocaleString("en")} of ${counted(total, "row")} are in this page: the typical and the borderline ones of every hidden variable, and a sample of the others. Shares are of all rows.`;
  const said = element("p", { class: "quiet", role: "status" });
  const suppose = () => {
    if (field.value.trim() === "") return;
    const row = findRow(rows, field.value.trim());
    if (row < 0) said.textContent = "That row is not in this page.";
    else supposeRow(state, row);
  };
  const field = element("input", {
    class: "value",
    placeholder: rows.labels ? "row" : "number",
    "aria-label": rows.labels ? "Name of a row" : "Number of a row, from 1",
    "data-key": "row",
    keydown: (event) => {
      if (event.key === "Enter") suppose();
    },
  });
  return section(
    "Rows",
    element("p", {}, text),
    element(
      "div",
      { class: "ask" },
      element(
        "div",
        { class: "row" },
        element("span", { class: "quiet" }, "Suppose row"),
        field,
        element("button", { type: "button", click: suppose }, "Suppose"),
      ),
    ),
    said,
  );
}

function findRow({ labels, kept }, text) {
  if (labels) return labels.indexOf(text);
  return kept.indexOf(Number(text.replaceAll(",", "")) - 1);
}
