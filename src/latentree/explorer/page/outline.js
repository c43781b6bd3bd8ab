// The tree as a list, for screen readers and for whoever likes lists better.

import { byId, element, nameOf } from "./dom.js";
import { groupText, isHidden, modelEdge, titleOf } from "./model.js";
import { formatStrength } from "./nodes.js";
import { choose, on, selectedNode } from "./state.js";

const OPEN = 600; // nodes up to which all branches are open from the start

export function createOutline(state, view) {
  const box = byId("outline");
  const build = () => {
    const { tree, model } = state;
    const roots = Array.from(tree.order).filter((v) => tree.parent[v] < 0);
    box.replaceChildren(branch(state, view, roots, model.size <= OPEN));
  };
  on(state, "names", build);
  byId("list").addEventListener("click", () => {
    const opened = byId("outline-box").classList.toggle("open");
    byId("list").setAttribute("aria-pressed", String(opened));
    if (opened && selectedNode(state) >= 0) openAt(box, state, selectedNode(state));
  });
  // After the picture, so that it does not wait for the list.
  setTimeout(build, 0);
}

/** Open all branches that a node is in, and bring it into sight. */
function openAt(box, { tree }, node) {
  const way = [];
  for (let v = node; v >= 0; v = tree.parent[v]) way.unshift(v);
  const itemOf = (v) => box.querySelector(`[data-node="${v}"]`);
  for (const v of way)
    itemOf(v)?.parentElement.querySelector(":scope > .open[aria-expanded=false]")?.click();
  for (const old of box.querySelectorAll("[aria-current]")) old.removeAttribute("aria-current");
  itemOf(node)?.setAttribute("aria-current", "true");
  itemOf(node)?.scrollIntoView({ block: "center" });
}

/** Items for some nodes; with `open`, for all below them too, without recursion. */
function branch(state, view, nodes, open) {
  const top = element("ul", {});
  const waiting = [[top, nodes]];
  while (waiting.length > 0) {
    const [list, members] = waiting.pop();
    for (const v of members) {
      const item = element("li", {}, itemButton(state, view, v));
      const below = childrenOf(state, v);
      if (below.length > 0 && open) {
        const inner = element("ul", {});
        item.append(inner);
        waiting.push([inner, below]);
      } else if (below.length > 0) {
        item.append(opener(state, view, item, below));
      }
      list.append(item);
    }
  }
  return top;
}

function childrenOf({ tree }, v) {
  return Array.from(tree.child.subarray(tree.childStart[v], tree.childStart[v + 1]));
}

function opener(state, view, item, below) {
  const toggle = element("button", { type: "button", class: "open", "aria-expanded": "false" });
  toggle.textContent = `${below.length} below`;
  toggle.addEventListener("click", () => {
    const opened = item.querySelector(":scope > ul");
    if (opened) opened.remove();
    else item.append(branch(state, view, below, false));
    toggle.setAttribute("aria-expanded", String(!opened));
  });
  return toggle;
}

function itemButton(state, view, v) {
  const { model, tree, strengths } = state;
  const kind = isHidden(model, v) ? "hidden variable" : "variable";
  const above = tree.parent[v];
  const strength = () => formatStrength(model, above, v, strengths.drawn[modelEdge(state, v)]);
  const tie = above < 0 ? "" : `, strength ${strength()}`;
  const press = () => {
    choose(state, v);
    view.bringIntoSight(v);
  };
  return element(
    "button",
    { type: "button", class: "item", "data-node": v, click: press },
    nameOf(titleOf(model, v)),
    element("span", { class: "quiet" }, `, ${kind}${groupText(model, v, ", ")}${tie}`),
  );
}
