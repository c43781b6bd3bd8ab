// What is known of the selected node or edge.

import { summaryOf } from "./asking.js";
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
    toTop(body);
  });
  for (const event of ["evidence", "names", "fold"]) {
    on(state, event, () => {
      refresh(state, body, show);
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

/** Show what was chosen from its beginning, whatever was read of the last. */
function toTop(body) {
  const scroller = getComputedStyle(body).overflowY === "auto" ? body : body.parentElement;
  scroller.scrollTop = scroller === body ? 0 : body.offsetTop - scroller.offsetTop;
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
