// The search field: completes names, shows them, and reads "name = value" as evidence.

import { byId, element, nameOf } from "./dom.js";
import { atSigmas } from "./inference.js";
import { isCount, isHidden, isPossible, nearestValue, titleOf } from "./model.js";
import { parseNumber } from "./numbers.js";
import { choose, setEvidence } from "./state.js";

const MOST_OPTIONS = 10;

export function createSearch(state, view) {
  const field = byId("search");
  const list = byId("completions");
  const search = { options: [], active: -1 };

  const close = () => {
    list.replaceChildren();
    list.hidden = true;
    search.options = [];
    search.active = -1;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
  };

  const take = (option) => {
    field.value = "";
    close();
    choose(state, option.node);
    if ("value" in option) setEvidence(state, option.node, option.value);
    view.bringIntoSight(option.node); // no closer: what follows is all around
    view.canvas.focus({ preventScroll: true });
  };

  const mark = (active) => {
    search.active = active;
    [...list.children].forEach((item, i) => {
      item.setAttribute("aria-selected", String(i === active));
    });
    if (active >= 0) field.setAttribute("aria-activedescendant", `option-${active}`);
  };

  const show = () => {
    close();
    const query = field.value.trim();
    if (query === "") return;
    const { options, hint } = complete(state, query);
    search.options = options;
    const items = search.options.map((option, i) =>
      element(
        "li",
        {
          id: `option-${i}`,
          role: "option",
          mousedown: (event) => event.preventDefault(),
          click: () => take(option),
        },
        nameOf(titleOf(state.model, option.node)),
        "text" in option ? [" = ", nameOf(option.text)] : null,
        element(
          "span",
          { class: "quiet" },
          isHidden(state.model, option.node) ? `hidden ${state.model.ownNames[option.node]}` : "",
        ),
      ),
    );
    if (items.length === 0) {
      items.push(
        element("li", { class: "quiet none", role: "option", "aria-disabled": "true" }, hint),
      );
    }
    list.replaceChildren(...items);
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    if (search.options.length > 0) mark(0);
  };

  field.addEventListener("input", show);
  field.addEventListener("focus", show);
  field.addEventListener("blur", close);
  field.addEventListener("keydown", (event) => {
    const count = search.options.length;
    if (event.key === "ArrowDown" && count > 0) mark((search.active + 1) % count);
    else if (event.key === "ArrowUp" && count > 0) mark((search.active + count - 1) % count);
    else if (event.key === "Enter" && search.active >= 0) take(search.options[search.active]);
    else if (event.key === "Escape") {
      field.value = "";
      close();
      view.canvas.focus({ preventScroll: true });
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
}

/** What a query may mean: nodes whose names hold it, or a node and a value; a hint if nothing. */
export function complete(state, query) {
  const unknown = { options: [], hint: "No node is called so" };
  const found = matches(state.model, query);
  const equals = query.lastIndexOf("=");
  if (equals < 1 || found.length > 0) {
    return { ...unknown, options: found.slice(0, MOST_OPTIONS).map((node) => ({ node })) };
  }
  const name = query.slice(0, equals).trim();
  const wanted = query.slice(equals + 1).trim();
  const node = matches(state.model, name)[0];
  if (node === undefined) return unknown;
  return {
    options: state.model.numeric[node]
      ? numberOptions(state, node, wanted)
      : stateOptions(state, node, wanted),
    hint: valueHint(state.model, node),
  };
}

/** What can be said of a node, for those who said something else. */
function valueHint(model, v) {
  if (model.numeric[v]) {
    const example = isCount(model, v) ? "a count, such as 3" : "a number, such as 0.5 or +2 σ";
    return `${titleOf(model, v)} takes ${example}`;
  }
  const labels = model.labels(v);
  const more = labels.length > MOST_OPTIONS ? ", …" : "";
  return `${titleOf(model, v)} is one of: ${labels.slice(0, MOST_OPTIONS).join(", ")}${more}`;
}

/** Nodes by name: the name itself, then names that begin with the query, then that hold it. */
function matches(model, query) {
  const ranked = [];
  for (let v = 0; v < model.size; v++) {
    const names = isHidden(model, v)
      ? [model.names[v], titleOf(model, v), model.ownNames[v]]
      : [model.names[v]];
    // Automatic names of hidden variables repeat those of variables, which come first.
    const rank = Math.min(...names.map((name, i) => nameRank(name, query) + (i > 0 ? 0.5 : 0)));
    if (rank < 4) ranked.push({ v, rank, length: names[0].length });
  }
  ranked.sort((a, b) => a.rank - b.rank || a.length - b.length || a.v - b.v);
  return ranked.map(({ v }) => v);
}

function nameRank(name, query) {
  const at = name.toLowerCase().indexOf(query.toLowerCase());
  if (at < 0) return Infinity;
  if (name === query) return 0;
  return name.length === query.length ? 1 : at === 0 ? 2 : 3;
}

function stateOptions(state, node, wanted) {
  const labels = state.model.labels(node).map((text, value) => ({ node, value, text }));
  const begins = ({ text }) => text.toLowerCase().startsWith(wanted.toLowerCase());
  const fitting = labels.filter(begins);
  fitting.sort((a, b) => a.text.length - b.text.length);
  return fitting.slice(0, MOST_OPTIONS);
}

/** "+2 σ" (or "2 sd", "2s") counts in standard deviations, a bare number in units of the data. */
function numberOptions(state, node, wanted) {
  const { model } = state;
  const sigma = /\s*(σ|sd|s|sigma)$/i;
  const number = parseNumber(wanted.replace(sigma, ""));
  if (Number.isNaN(number)) return [];
  const value = sigma.test(wanted)
    ? nearestValue(model, node, atSigmas(state, node, number))
    : number;
  if (!isPossible(model, node, value)) return [];
  return [{ node, value, text: wanted }];
}
