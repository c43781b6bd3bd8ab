// Rows that came with the page: who is typical of a hidden state, who is between, shares by group.

import { shareBar } from "./charts.js";
import { element, nameOf } from "./dom.js";
import { highState, sigmasOf } from "./inference.js";
import { counted, cutList, section } from "./lists.js";
import { isHidden, rowCell, titleOf } from "./model.js";
import { formatNumber, formatPercent, formatSigned } from "./numbers.js";
import { supposeRow } from "./state.js";

const TITLE = 90; // characters of a text that stand for it
const NOTABLE = { words: 5, numbers: 3 }; // cells that stand for a row without text

/** What a row is called: by its text, its label, or its number and its most unusual cells. */
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
  return cutList(places, (i) => rowItem(state, rows[i], figure(values[i])), "list rows");
}

function rowItem(state, row, figure) {
  const { rows } = state.model;
  const box = element(
    "details",
    { class: "row-box" },
    element(
      "summary",
      {},
      element("span", { class: "row-name" }, rowTitle(state, row)),
      element("span", { class: "figures" }, figure),
    ),
  );
  box.addEventListener("toggle", () => {
    if (!box.open || box.children.length > 1) return;
    const whole = rows.texts?.[row];
    box.append(
      element("p", { class: "buttons" }, supposeButton(state, row)),
      whole
        ? element("p", { class: "text", dir: "auto", tabindex: 0 }, whole)
        : cellList(state, row),
    );
  });
  return element("li", { class: "last" }, box);
}

function rowTitle(state, row) {
  const text = state.model.rows.texts?.[row];
  if (text) return nameOf(text.length > TITLE ? `${text.slice(0, TITLE)}…` : text);
  const most = state.model.isGaussian ? NOTABLE.numbers : NOTABLE.words;
  const cells = notableCells(state, row).slice(0, most);
  const parts = cells.map((v) => cellText(state, row, v)).join(", ");
  return nameOf(parts ? `${rowName(state, row)}: ${parts}` : rowName(state, row));
}

function supposeButton(state, row) {
  return element(
    "button",
    { type: "button", click: () => supposeRow(state, row) },
    "Suppose this row",
  );
}

function cellList(state, row) {
  const cells = notableCells(state, row);
  if (cells.length === 0) return element("p", { class: "quiet" }, "No cell is unusual.");
  return cutList(cells, (v) =>
    element(
      "li",
      { class: "cell" },
      nameOf(titleOf(state.model, v)),
      element("span", { class: "figures" }, nameOf(valueText(state, row, v))),
    ),
  );
}

/** Cells that are not the most common ones, the most unusual first. */
function notableCells(state, row) {
  const { model, prior } = state;
  const found = [];
  for (let v = 0; v < model.observed; v++) {
    const value = rowCell(model, row, v);
    if (value === undefined) continue;
    const surprise = model.numeric[v]
      ? Math.abs(sigmasOf(state, v, value))
      : stateSurprise(model, prior, v, value);
    if (surprise > 0) found.push([v, surprise]);
  }
  return found.sort((a, b) => b[1] - a[1] || a[0] - b[0]).map(([v]) => v);
}

/** How much rarer a state is than the most common one, in bits; 0 for that itself. */
function stateSurprise({ stateStart }, { probability }, v, k) {
  const own = probability.subarray(stateStart[v], stateStart[v + 1]);
  return Math.log2(Math.max(...own) / Math.max(own[k], 1e-12));
}

function cellText(state, row, v) {
  const { model } = state;
  const name = titleOf(model, v);
  const isWord = !model.numeric[v] && model.states[v] === 2 && rowCell(model, row, v) === 1;
  return isWord ? name : `${name} ${valueText(state, row, v)}`;
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
      element(
        "li",
        {},
        nameOf(groups.names[g]),
        shareBar(
          model.numeric[v] ? Math.abs(value(g)) / most : value(g),
          null,
          value(g) < 0 ? "negative" : "",
        ),
        element(
          "span",
          { class: "figures" },
          model.numeric[v] ? formatSigned(value(g)) : formatPercent(value(g)),
        ),
        element(
          "span",
          { class: "figures quiet" },
          `${Math.round(groups.counts[g]).toLocaleString("en")} rows`,
        ),
      );
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
