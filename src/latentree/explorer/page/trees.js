// The trees of a mixture: how probable each is, and which of them is shown.

import { shareBar } from "./charts.js";
import { byId, element, nameOf } from "./dom.js";
import { cutList } from "./lists.js";
import { TREE, treeLabel, treeName } from "./mixture.js";
import { isHidden } from "./model.js";
import { formatPercent } from "./numbers.js";
import { HEAD } from "./pair.js";
import { on, setEvidence, showTree } from "./state.js";

export function createTrees(state, view) {
  const { mixture } = state;
  if (!mixture) return;
  view.head = HEAD;
  const box = byId("trees");
  const tag = byId("pane-a");
  const order = Array.from(mixture.weights.keys());
  order.sort((a, b) => mixture.weights[b] - mixture.weights[a]);
  const choice = {};
  const show = () => {
    const key = box.contains(document.activeElement) ? document.activeElement.dataset.key : "";
    const parts = [
      element("summary", { "data-key": "trees" }, summaryText(state)),
      cutList(order, (k) => element("li", {}, treeButton(state, k)), "list trees"),
      element("p", { class: "buttons" }, supposeTreeButton(state)),
    ];
    // Open until there is something else to read, or as people leave it.
    const open = choice.open ?? (state.evidence.size === 0 && state.selection === null);
    const list = element("details", { class: "naming", open }, ...parts);
    list.firstChild.addEventListener("click", () => {
      choice.open = !list.open;
    });
    const head = element("h2", { class: "head" }, "Trees of the mixture");
    box.replaceChildren(...[head, list, aboutTrees(state)].filter(Boolean));
    if (key) box.querySelector(`[data-key="${key}"]`)?.focus({ preventScroll: true });
    tag.textContent = treeName(state);
  };
  for (const event of ["tree", "evidence", "selection"]) on(state, event, show);
  on(state, "tree", () => {
    byId("announce").textContent = summaryText(state);
  });
  box.hidden = false;
  tag.hidden = false;
  show();
}

function summaryText(state) {
  const { mixture, posterior } = state;
  return `${treeName(state)}, probability ${formatPercent(posterior.share[mixture.number])}`;
}

/** A row with the probability of a tree, before and now; pressing it shows that tree. */
function treeButton(state, k) {
  const { mixture, posterior, evidence } = state;
  const asked = evidence.size > 0;
  const [before, now] = [mixture.weights[k], posterior.share[k]].map(formatPercent);
  return element(
    "button",
    {
      class: "state",
      type: "button",
      "aria-pressed": String(k === mixture.number),
      "data-key": `tree${k}`,
      title: "Show this tree",
      click: () => showTree(state, k),
    },
    nameOf(treeLabel(k)),
    shareBar(posterior.share[k], asked ? mixture.weights[k] : null),
    element("span", { class: "figures" }, asked ? `${before} → ${now}` : before),
  );
}

function supposeTreeButton(state) {
  const { mixture, evidence } = state;
  const given = evidence.get(TREE) === mixture.number;
  return element(
    "button",
    {
      type: "button",
      "data-key": "suppose-tree",
      "aria-pressed": String(given),
      click: () => setEvidence(state, TREE, given ? undefined : mixture.number),
    },
    `Suppose ${treeLabel(mixture.number).toLowerCase()}`,
  );
}

/** What the answers are of, where there are none yet or it is not plain to see. */
function aboutTrees({ model, evidence }) {
  const owns = [...evidence.keys()].some((v) => isHidden(model, v));
  if (evidence.size > 0 && !owns) return null;
  const text = owns
    ? "A hidden variable is supposed, and with it the tree that it is in."
    : "Answers about variables count all trees by their probability. Hidden variables are of the tree that is shown.";
  return element("p", { class: "quiet" }, text);
}
