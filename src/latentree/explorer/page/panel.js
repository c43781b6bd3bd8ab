// What is known of the selected node or edge.

import { farWarning, summaryOf } from "./asking.js";
import { bellChart } from "./charts.js";
import { byId, replaced } from "./dom.js";
import { edgeParts } from "./edges.js";
import { nodeParts } from "./nodes.js";
import { overview } from "./overview.js";
import { pathParts } from "./paths.js";
import { on } from "./state.js";

export function createPanel(state, view) {
  const body = byId("details");
  const show = () => {
    const { selection } = state;
    if (state.inactive) return; // another tree is what the panel is about
    const about = state.overview ?? overview;
    const parts = selection === null ? about(state, view) : partsOf(state, view, selection);
    body.replaceChildren(...parts.filter(Boolean));
    for (const box of [body, body.parentElement]) box.tabIndex = isOutOfReach(box) ? 0 : -1;
  };
  on(state, "selection", () => {
    replaced(body, show, () => body.parentElement);
    toTop(state, body);
  });
  let wasAsked = state.evidence.size > 0;
  for (const event of ["evidence", "names", "fold", "near"]) {
    on(state, event, () => {
      refresh(state, body, show);
      const isAsked = state.evidence.size > 0;
      // Answers appear above, once all have heard of it.
      if (isAsked && !wasAsked && !state.inactive) requestAnimationFrame(() => toTop(state, body));
      wasAsked = isAsked;
      keepInSight(body);
    });
  }
  show();
}

/** Whether a box scrolls and has nothing in it that takes the focus: then it must do so itself. */
function isOutOfReach(box) {
  const stops = box.querySelector("button, input, textarea, summary, [tabindex='0']");
  return stops === null && box.scrollHeight > box.clientHeight;
}

/** Show what was chosen from its beginning, in the lower half where there are answers above it. */
function toTop({ evidence, selection }, body) {
  const panel = body.parentElement;
  if (selection === null) {
    panel.scrollTop = 0;
    return;
  }
  const above = evidence.size > 0 ? panel.clientHeight / 2 : panel.firstElementChild.offsetHeight;
  panel.scrollTop = body.offsetTop - above;
}

/** Tabs lead to the parts of the panel, which is one scroll; those without contents are gone. */
export function createTabs(panes) {
  const bar = byId("tabs");
  const tabs = [...bar.children];
  const show = () => {
    const open = tabs.filter((tab) => {
      tab.hidden = byId(tab.dataset.part).hidden;
      return !tab.hidden;
    });
    bar.hidden = open.length < 2;
  };
  for (const tab of tabs) {
    tab.addEventListener("click", () => {
      const part = byId(tab.dataset.part);
      const panel = bar.parentElement;
      panel.scrollTop = part.offsetTop - bar.offsetHeight;
    });
  }
  for (const { state } of panes) {
    for (const event of ["evidence", "selection", "tree"]) on(state, event, show);
  }
  show();
}

/** Draw again what depends on the evidence, but leave a slider that is being moved where it is. */
function refresh(state, body, show) {
  const active = document.activeElement;
  if (active && body.contains(active) && active.matches("input[type=range]")) {
    const node = state.selection?.node;
    body.querySelector(".bell")?.replaceWith(bellChart(state, node));
    body.querySelector(".summary")?.replaceWith(summaryOf(state, node));
    body.querySelector(".far")?.replaceWith(farWarning(state, node));
    body.querySelector("[data-key=clear]").hidden = !state.evidence.has(node);
    return;
  }
  const key = active && body.contains(active) ? active.dataset.key : undefined;
  show();
  if (key) body.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

/** Answers that appear take room from the panel: what has the focus must stay in sight. */
function keepInSight(body) {
  requestAnimationFrame(() => {
    const active = document.activeElement;
    if (body.contains(active)) active.scrollIntoView({ block: "nearest" });
  });
}

function partsOf(state, view, selection) {
  if ("path" in selection) return pathParts(state, view, selection.path);
  return "node" in selection
    ? nodeParts(state, view, selection.node)
    : edgeParts(state, view, selection.edge);
}
