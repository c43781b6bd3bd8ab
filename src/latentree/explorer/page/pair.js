// Two models side by side: what their trees share, and which variables have moved.

import { byId, element, nameOf } from "./dom.js";
import { counted, cutList, goButton, section } from "./lists.js";
import { treeName } from "./mixture.js";
import { neighbors, titleOf, unpack } from "./model.js";
import { formatPercent } from "./numbers.js";
import { emit, on, setAllEvidence, setColorBy, setKind } from "./state.js";
import { learnedFacts } from "./sureness.js";

export const HEAD = 24; // pixels above each tree for its name

/** Tie two panes together, each a state and a view: what is done in one is seen in the other. */
export function createPair(panes, { comparison, labels }) {
  const facts = readComparison(comparison);
  const [first, second] = panes.map(({ state }) => state);
  panes.forEach(({ state, view }, i) => {
    view.head = HEAD;
    state.pair = {
      name: labels[i],
      differs: facts.shared[i].map((shared) => 1 - shared),
      moved: new Set(i === 0 ? facts.moved : facts.moved.map((v) => facts.match[v])),
    };
    state.overview = () => pairOverview(panes, facts);
    state.inactive = i > 0;
  });
  exportChoice(panes);
  byId("stage").classList.add("two");
  byId("tree-b").hidden = false;
  showNames(labels);
  tie(first, second, (v) => facts.match[v]);
  tie(second, first, (v) => facts.match.indexOf(v));
  on(first, "layout", () => second.kind !== first.kind && setKind(second, first.kind));
  on(first, "color", () => {
    if (second.colorBy !== first.colorBy) setColorBy(second, first.colorBy);
    second.highlight = new Set(first.highlight);
    emit(second, "hover"); // draws it
  });
}

function readComparison(payload) {
  return {
    ...payload,
    shared: payload.shared.map((text) => unpack(text, Uint8Array)),
    match: unpack(payload.match, Int32Array), // of nodes of the first tree in the second
  };
}

/** Of two trees either can be taken away: the one that the panel is about, until one is chosen. */
function exportChoice(panes) {
  const menu = byId("which");
  menu.append(
    ...panes.map(({ state }, i) => element("option", { value: i }, nameOf(state.pair.name))),
  );
  menu.parentElement.hidden = false;
  for (const [i, { state }] of panes.entries()) {
    on(state, "selection", () => {
      if (!state.inactive) menu.value = String(i);
    });
  }
}

function showNames(labels) {
  labels.forEach((label, i) => {
    const tag = byId(i === 0 ? "pane-a" : "pane-b");
    tag.replaceChildren(nameOf(label));
    tag.hidden = false;
  });
}

/** What is chosen, pointed at or supposed in one tree is marked, or supposed, in the other. */
function tie(from, to, match) {
  const mark = () => {
    const node = from.hover?.node ?? from.selection?.node;
    const echo = node === undefined ? -1 : match(node);
    if (echo === to.echo) return;
    to.echo = echo;
    emit(to, "hover");
  };
  on(from, "selection", () => {
    if (from.selection !== null) {
      to.selection = null;
      to.inactive = true;
      from.inactive = false;
    }
    mark();
  });
  on(from, "hover", mark);
  on(from, "evidence", () => {
    const wanted = new Map();
    for (const [v, value] of from.evidence) {
      if (v < from.model.observed && isSameKind(from.model, v, to.model, match(v))) {
        wanted.set(match(v), value);
      }
    }
    const same = wanted.size === to.evidence.size;
    if (same && [...wanted].every(([v, value]) => to.evidence.get(v) === value)) return;
    setAllEvidence(to, wanted);
  });
}

function isSameKind(a, v, b, u) {
  if (a.numeric[v] || b.numeric[u]) return a.numeric[v] === b.numeric[u];
  return a.labels(v).join("\n") === b.labels(u).join("\n");
}

// The panel -------------------------------------------------------------------------------------

function pairOverview(panes, facts) {
  const [first] = panes.map(({ state }) => state);
  const [groups, otherGroups] = facts.groups;
  const row = (name, value) => [
    element("dt", {}, name),
    element("dd", { class: "figures" }, value),
  ];
  const shares = `${facts.shared_groups} of ${groups} and ${otherGroups}`;
  return [
    element("h2", { class: "kind" }, "Two trees"),
    element(
      "p",
      {},
      `Over the same ${counted(first.model.observed, "variable")}. Orange edges split the variables as no edge of the other tree does; variables with an orange ring have moved. What you choose or suppose in one tree is marked in the other.`,
    ),
    element(
      "dl",
      { class: "facts" },
      row("Shared splits of groups", shares),
      row(
        "Differing splits, of those that can differ",
        `${facts.nontrivial_robinson_foulds} (${formatPercent(facts.normalized_nontrivial_robinson_foulds)})`,
      ),
      row(
        "Robinson-Foulds distance, of all splits",
        `${facts.robinson_foulds} (${formatPercent(facts.normalized_robinson_foulds)})`,
      ),
      row("Hidden variables", `${facts.hidden[0]} and ${facts.hidden[1]}`),
      row("Moved variables", String(facts.moved.length)),
    ),
    facts.moved.length > 0 ? section("Moved variables", movedList(panes, facts)) : null,
    ...panes.map(({ state }) => section(state.pair.name, ...learnedFacts(state.model))),
  ];
}

function movedList(panes, { moved, match }) {
  const [first, second] = panes;
  const around = ({ state: { model } }, v) =>
    neighbors(model, v)
      .map((u) => titleOf(model, u))
      .join("; ");
  return cutList(moved, (v) =>
    element(
      "li",
      { class: "named" },
      goButton(first.state, first.view, v),
      element("span", { class: "quiet about" }, "from ", nameOf(around(first, v))),
      element("span", { class: "quiet about" }, "to ", nameOf(around(second, match[v]))),
    ),
  );
}

/** Which tree a panel is about, where there are several. */
export function paneName(state) {
  const name = state.pair?.name ?? treeName(state);
  return name ? element("p", { class: "kind" }, nameOf(name)) : null;
}
