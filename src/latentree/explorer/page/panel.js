// What is known of the selected node or edge.

import { bellChart, shareBar } from "./charts.js";
import { byId, element, nameOf } from "./dom.js";
import { emissionVariance } from "./emissions.js";
import { edgeTable, influence } from "./influence.js";
import { groupText, isCount, isHidden, isPossible, nearestValue, neighbors } from "./model.js";
import { formatBits, formatNumber, formatPercent, formatSigned, parseNumber } from "./numbers.js";
import { modelEdge } from "./scene.js";
import { on, rename, select, setEvidence, toggleFold } from "./state.js";

const LISTED = 12;
const TURNED =
  "The picture takes state 0 of this variable as the high one: which of two hidden states counts " +
  "as high is a matter of convention, and so fewer edges are negative.";
const KINDS = { real: "real number", count: "count", ordered: "ordered", category: "category" };

export function createPanel(state, view) {
  const body = byId("details");
  const show = () => {
    const { selection } = state;
    const parts = selection === null ? overview(state, view) : partsOf(state, view, selection);
    body.replaceChildren(...parts.filter(Boolean));
  };
  on(state, "selection", show);
  on(state, "evidence", () => refresh(state, body, show));
  on(state, "names", show);
  on(state, "fold", show);
  show();
}

/** Draw again what depends on the evidence, but leave a slider that is being moved where it is. */
function refresh(state, body, show) {
  const active = document.activeElement;
  if (active && body.contains(active) && active.matches("input[type=range]")) {
    const node = state.selection?.node;
    body.querySelector(".bell")?.replaceWith(bellChart(state, node));
    body.querySelector(".summary")?.replaceWith(summaryOf(state, node));
    body.querySelector("[data-key=clear]").hidden = !state.evidence.has(node);
    return;
  }
  const key = active && body.contains(active) ? active.dataset.key : undefined;
  show();
  if (key) body.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

function partsOf(state, view, selection) {
  return "node" in selection
    ? nodeParts(state, view, selection.node)
    : edgeParts(state, view, selection.edge);
}

function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), ...children);
}

// Nothing selected ------------------------------------------------------------------------------

function overview(state, view) {
  const { model } = state;
  const hidden = model.size - model.observed;
  const counts = `${model.observed.toLocaleString("en")} variables, ${hidden.toLocaleString("en")} hidden`;
  return [
    element("p", { class: "kind" }, "The tree"),
    element(
      "p",
      {},
      `${counts}. Filled dots are variables of the data; hollow ones are hidden variables that tie them together. Wider, darker edges are stronger.`,
    ),
    element(
      "p",
      { class: "quiet" },
      "Click a node or an edge to understand it; set a value to see what follows from it. Double-click folds a branch. Arrow keys walk the tree, / searches, Esc clears.",
    ),
    hidden > 0 ? section("Hidden variables", hiddenList(state, view)) : null,
  ];
}

function hiddenList(state, view) {
  const { model, tree } = state;
  const nodes = Array.from({ length: model.size - model.observed }, (_, i) => model.observed + i);
  const weight = (v) => tree.childStart[v + 1] - tree.childStart[v] + tree.size[v] / model.size;
  nodes.sort((a, b) => weight(b) - weight(a) || a - b);
  return cutList(nodes, (v) =>
    element(
      "li",
      {},
      goButton(state, view, v),
      element("span", { class: "quiet speaks" }, ...spokenFor(state, v)),
    ),
  );
}

/** The variables next to a hidden node, the strongest first, as a few words. */
export function spokenFor(state, v) {
  const { model, strengths } = state;
  const edge = (u) => (model.parent[u] === v ? u : v);
  const strength = (u) => Math.abs(strengths.signed[edge(u)]);
  const around = neighbors(model, v).sort((a, b) => strength(b) - strength(a));
  const variables = around.filter((u) => !isHidden(model, u));
  const chosen = variables.length > 0 ? variables : around;
  const words = chosen.slice(0, 4).flatMap((u, i) => [i > 0 ? ", " : "", nameOf(model.names[u])]);
  return chosen.length > 4 ? [...words, ` +${chosen.length - 4}`] : words;
}

/** A list that shows its first entries, and the rest on demand. */
function cutList(items, make, count = LISTED) {
  const list = element("ol", { class: "list" }, items.slice(0, count).map(make));
  if (items.length > count) {
    let shown = count;
    const more = element("button", { class: "more", type: "button" });
    const say = () => {
      more.textContent = `Show more (${(items.length - shown).toLocaleString("en")})`;
    };
    more.addEventListener("click", () => {
      last.before(...items.slice(shown, shown + 200).map(make));
      shown = Math.min(shown + 200, items.length);
      if (shown === items.length) last.remove();
      else say();
    });
    say();
    const last = element("li", { class: "last" }, more);
    list.append(last);
  }
  return list;
}

/** A button with a node's name that selects it and flies to it. */
export function goButton(state, view, v) {
  const kind = isHidden(state.model, v) ? "go hidden" : "go";
  const press = () => {
    select(state, { node: v });
    view.flyToNode(v);
  };
  return element(
    "button",
    { class: kind, type: "button", click: press },
    nameOf(state.model.names[v]),
  );
}

// A node ----------------------------------------------------------------------------------------

function nodeParts(state, view, v) {
  const { model } = state;
  const hidden = isHidden(model, v);
  return [
    element(
      "p",
      { class: "kind" },
      hidden ? "Hidden variable" : `Variable${kindText(model, v)}${groupText(model, v, " · ")}`,
    ),
    hidden ? nameField(state, v) : element("h2", {}, nameOf(model.names[v])),
    state.strengths.turned[v] < 0 ? element("p", { class: "quiet" }, TURNED) : null,
    buttons(state, view, v),
    section("Distribution", ...distribution(state, v)),
    ...relatives(state, view, v),
    section("Neighbors", neighborList(state, view, v)),
  ];
}

function kindText({ kinds }, v) {
  return kinds ? ` · ${KINDS[kinds[v]]}` : "";
}

function nameField(state, v) {
  const { model } = state;
  const note = element("p", { class: "quiet", role: "status" });
  const said = () => {
    const changed = model.names.some((name, u) => name !== state.originalNames[u]);
    return changed ? "Names are kept when you save this page (Take away ▸ This page)." : "";
  };
  note.textContent = said();
  const keep = () => {
    if (field.value === model.names[v]) return;
    if (!rename(state, v, field.value)) {
      field.value = model.names[v];
      note.textContent = "That name is empty or taken.";
    }
  };
  const field = element("input", {
    class: "rename",
    value: model.names[v],
    dir: "auto",
    spellcheck: "false",
    "aria-label": "Name of this hidden variable",
    change: keep,
    keydown: (event) => {
      if (event.key === "Enter") field.blur();
    },
  });
  return element("div", {}, field, note);
}

function buttons(state, view, v) {
  const { tree, folded } = state;
  const inner = tree.childStart[v + 1] > tree.childStart[v];
  const count = (tree.size[v] - 1).toLocaleString("en");
  const fold = folded[v] ? `Unfold branch (${count})` : `Fold branch (${count})`;
  return element(
    "p",
    { class: "buttons" },
    element("button", { type: "button", click: () => view.flyToNode(v) }, "Go there"),
    inner
      ? element(
          "button",
          { type: "button", "data-key": "fold", click: () => toggleFold(state, v) },
          fold,
        )
      : null,
  );
}

function distribution(state, v) {
  return state.model.numeric[v]
    ? [bellChart(state, v), summaryOf(state, v), numberControl(state, v), dataNote(state, v)]
    : [stateRows(state, v), dataNote(state, v)];
}

function summaryOf(state, v) {
  const { prior, posterior, evidence } = state;
  const say = (from) =>
    `${formatNumber(from.mean[v], 4)} ± ${formatNumber(Math.sqrt(from.variance[v]))}`;
  const moved = formatSigned(state.change[v]);
  if (evidence.has(v)) {
    return element(
      "p",
      { class: "summary figures" },
      `Supposed: ${formatNumber(posterior.mean[v], 5)} (${moved} σ)`,
    );
  }
  const text =
    evidence.size === 0 ? say(prior) : `${say(prior)}  →  ${say(posterior)}  (${moved} σ)`;
  return element("p", { class: "summary figures" }, text);
}

/** A slider in standard deviations, of counts in counts, and a field in the units of the data. */
function numberControl(state, v) {
  const { model, prior, evidence } = state;
  const mean = prior.mean[v];
  const deviation = Math.sqrt(prior.variance[v]);
  const given = evidence.get(v);
  const set = (value) => setEvidence(state, v, value);
  const beyond = (sigma) => nearestValue(model, v, mean + sigma * deviation);
  const scale = isCount(model, v)
    ? { min: 0, max: Math.ceil(mean + 4 * deviation), step: 1, label: "Value" }
    : { min: -4, max: 4, step: 0.05, label: "Value in standard deviations" };
  const toValue = (at) => (isCount(model, v) ? at : beyond(at));
  const fromValue = (value) => (isCount(model, v) ? value : (value - mean) / deviation);
  const slider = element("input", {
    type: "range",
    min: scale.min,
    max: scale.max,
    step: scale.step,
    value: fromValue(given === undefined ? mean : given),
    "aria-label": scale.label,
    "data-key": "slider",
    input: () => {
      const value = toValue(Number(slider.value));
      field.value = formatNumber(value, 5);
      set(value);
    },
  });
  const field = element("input", {
    class: "value",
    inputmode: "decimal",
    placeholder: "value",
    "aria-label": "Value in the units of the data",
    "data-key": "value",
    value: given === undefined ? "" : formatNumber(given, 6),
    keydown: (event) => {
      if (event.key === "Enter") field.blur();
    },
    change: () => {
      const value = parseNumber(field.value);
      if (field.value.trim() === "") set(undefined);
      else if (!isPossible(model, v, value)) field.setAttribute("aria-invalid", "true");
      else set(value);
    },
  });
  const quick = [-2, -1, 1, 2].map((sigma) =>
    element(
      "button",
      { type: "button", "data-key": `sigma${sigma}`, click: () => set(beyond(sigma)) },
      `${formatSigned(sigma, 0)} σ`,
    ),
  );
  const clear = element(
    "button",
    {
      type: "button",
      "data-key": "clear",
      hidden: given === undefined,
      click: () => set(undefined),
    },
    "Clear",
  );
  return element(
    "div",
    { class: "ask" },
    element("div", { class: "row" }, element("span", { class: "quiet" }, "Suppose it is"), field),
    slider,
    element("div", { class: "buttons" }, quick, clear),
  );
}

/** One row a state: its probability, before and now; pressing a row supposes that state. */
function stateRows(state, v) {
  const { model, prior, posterior, evidence } = state;
  const at = model.stateStart[v];
  const rows = model.labels(v).map((label, k) => {
    const now = posterior.probability[at + k];
    const before = prior.probability[at + k];
    const given = evidence.get(v) === k;
    return element(
      "button",
      {
        class: "state",
        type: "button",
        "aria-pressed": String(given),
        "data-key": `state${k}`,
        title: given ? "Forget this" : "Suppose this",
        click: () => setEvidence(state, v, given ? undefined : k),
      },
      nameOf(label),
      shareBar(now, evidence.size > 0 ? before : null),
      element("span", { class: "figures" }, formatPercent(now)),
    );
  });
  return element(
    "div",
    { class: "states", role: "group", "aria-label": "States" },
    rows,
    element("p", { class: "quiet" }, "Press a state to suppose it."),
  );
}

/** What the data says, where it came with the page. */
function dataNote(state, v) {
  const { model } = state;
  const { data } = model;
  if (!data || v >= model.observed) return null;
  const missing = data.missing[v];
  const gaps = missing > 0 ? `, ${missing.toLocaleString("en")} missing` : "";
  const rows = `${data.rows.toLocaleString("en")} rows${gaps}`;
  if (model.numeric[v]) {
    const spread = `mean ${formatNumber(data.mean[v])}, deviation ${formatNumber(data.deviation[v])}`;
    return element("p", { class: "quiet" }, `Data: ${rows}; ${spread}.`);
  }
  const counts = data.counts.subarray(data.countStart[v], data.countStart[v + 1]);
  const total = counts.reduce((a, b) => a + b, 0) || 1;
  const parts = model
    .labels(v)
    .flatMap((label, k) => [
      k > 0 ? ", " : "",
      nameOf(label),
      ` ${formatPercent(counts[k] / total)}`,
    ]);
  return element("p", { class: "quiet" }, `Data: ${rows}; `, ...parts.slice(0, 36), ".");
}

/** Other variables by what they tell about this one. */
function relatives(state, view, v) {
  const { model } = state;
  const found = influence(model, v);
  const nodes = Array.from({ length: model.observed }, (_, u) => u).filter(
    (u) => u !== v && found.bits[u] > 1e-6,
  );
  nodes.sort((a, b) => found.bits[b] - found.bits[a] || a - b);
  const most = nodes.length > 0 ? found.bits[nodes[0]] : 1;
  const row = (u) =>
    element(
      "li",
      {},
      goButton(state, view, u),
      shareBar(found.bits[u] / most, null, found.strength[u] < 0 ? "negative" : ""),
      element(
        "span",
        { class: "figures", title: strengthName(model, v, u) },
        formatSigned(found.strength[u]),
      ),
      element("span", { class: "figures quiet" }, formatBits(found.bits[u])),
    );
  const title = isHidden(model, v) ? "Tied to" : "Nearest relatives";
  const kinds = new Set(nodes.map((u) => strengthName(model, v, u)));
  const what = kinds.size === 1 ? [...kinds][0] : "strength";
  return [
    section(
      title,
      element("p", { class: "quiet" }, `By ${what}, and the information each gives about it.`),
      cutList(nodes, row),
    ),
  ];
}

/** What the strength of two nodes is: by whether they hold numbers or states. */
function strengthName({ numeric }, a, b) {
  const numbers = numeric[a] + numeric[b];
  return ["association (Cramér’s V)", "correlation ratio", "correlation"][numbers];
}

function neighborList(state, view, v) {
  const { tree, strengths } = state;
  const around = Array.from(tree.child.subarray(tree.childStart[v], tree.childStart[v + 1]));
  if (tree.parent[v] >= 0) around.push(tree.parent[v]);
  const outer = (u) => (tree.parent[u] === v ? u : v);
  const strength = (u) => strengths.signed[modelEdge(state, outer(u))];
  around.sort((a, b) => Math.abs(strength(b)) - Math.abs(strength(a)));
  return cutList(around, (u) =>
    element(
      "li",
      {},
      goButton(state, view, u),
      shareBar(Math.abs(strength(u)), null, strength(u) < 0 ? "negative" : ""),
      element("span", { class: "figures" }, formatSigned(strength(u))),
      element(
        "button",
        { class: "edge", type: "button", click: () => select(state, { edge: outer(u) }) },
        "edge",
      ),
    ),
  );
}

// An edge ---------------------------------------------------------------------------------------

function edgeParts(state, view, v) {
  const { model, tree, strengths } = state;
  const above = tree.parent[v];
  const strength = strengths.signed[modelEdge(state, v)];
  const facts = model.isGaussian
    ? correlationFacts(model, above, v, strength)
    : stateFacts(state, above, v);
  const drawn = strengths.drawn[modelEdge(state, v)];
  const turned =
    Math.sign(drawn) !== Math.sign(strength) && strength !== 0
      ? element(
          "p",
          { class: "quiet" },
          "Drawn with the other sign: which end of a hidden variable counts as high is a matter of convention, and the picture takes the one with the fewest negative edges.",
        )
      : null;
  return [
    element("p", { class: "kind" }, "Edge"),
    element("h2", {}, goButton(state, view, above), " — ", goButton(state, view, v)),
    ...facts,
    turned,
  ];
}

function correlationFacts(model, a, b, rho) {
  const bits = -0.5 * Math.log2((1 - rho) * (1 + rho));
  const row = (what, value) => [
    element("dt", {}, what),
    element("dd", { class: "figures" }, value),
  ];
  const way = rho < 0 ? "lower" : "higher";
  return [
    element(
      "dl",
      { class: "facts" },
      row("Correlation", formatSigned(rho, 4)),
      row("Shared variance", formatPercent(rho * rho)),
      row("Information", formatBits(bits)),
    ),
    element(
      "p",
      {},
      "When ",
      nameOf(model.names[a]),
      " is 1 σ higher, ",
      nameOf(model.names[b]),
      ` is on average ${formatNumber(Math.abs(rho))} σ ${way}.`,
    ),
  ];
}

function stateFacts(state, a, b) {
  const { model } = state;
  const found = influence(model, a);
  const name = strengthName(model, a, b);
  const tables =
    model.numeric[a] + model.numeric[b]
      ? [momentTable(model, ...(model.numeric[b] ? [a, b] : [b, a]))]
      : [conditionalTable(model, a, b), conditionalTable(model, b, a)];
  return [
    element(
      "dl",
      { class: "facts" },
      element("dt", {}, name[0].toUpperCase() + name.slice(1)),
      element("dd", { class: "figures" }, formatSigned(found.strength[b], 4)),
      element("dt", {}, "Information"),
      element("dd", { class: "figures" }, formatBits(found.bits[b])),
    ),
    ...tables,
  ];
}

/** Mean and standard deviation of a number for every state of its neighbor. */
function momentTable(model, from, to) {
  const emission = model.emissions[to];
  const cells = (values) =>
    values.map((value) => element("td", { class: "figures" }, formatNumber(value)));
  const rows = model
    .labels(from)
    .map((label, k) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, nameOf(label)),
        cells([emission.mean[k], Math.sqrt(emissionVariance(emission, k))]),
      ),
    );
  const head = ["mean", "deviation"].map((text) => element("th", { scope: "col" }, text));
  return tableFigure(model, from, to, element("tr", {}, element("td", {}), head), rows);
}

/** The table of P(to | from), one row a state of `from`. */
function conditionalTable(model, from, to) {
  const table = edgeTable(model, from, to);
  const columns = model.labels(to);
  const head = element(
    "tr",
    {},
    element("td", {}),
    columns.map((label) => element("th", { scope: "col" }, nameOf(label))),
  );
  const rows = model.labels(from).map((label, i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, nameOf(label)),
      columns.map((_, j) => {
        const p = table[i * columns.length + j];
        const cell = element("td", { class: "figures" }, formatPercent(p));
        cell.style.setProperty("--share", p.toFixed(4));
        return cell;
      }),
    ),
  );
  return tableFigure(model, from, to, head, rows);
}

function tableFigure(model, from, to, head, rows) {
  return element(
    "figure",
    {},
    element("figcaption", {}, nameOf(model.names[to]), " given ", nameOf(model.names[from])),
    element(
      "div",
      { class: "scroll" },
      element("table", {}, element("thead", {}, head), element("tbody", {}, rows)),
    ),
  );
}
