// Lists and headings of the panel, and buttons that lead to nodes.

import { element, nameOf } from "./dom.js";
import { isHidden, titleOf } from "./model.js";
import { choose, setHover } from "./state.js";

const LISTED = 12;

export function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), ...children);
}

/**
 * A row of a list: a name, and below it a bar and the number that the bar shows, in fixed columns.
 * A note may follow the name.
 */
export function barRow({ name, bar, figure, note = null, title = null }) {
  return element(
    "li",
    { class: "bars", title },
    element("span", { class: "about" }, name, note && element("span", { class: "quiet" }, note)),
    bar,
    element("span", { class: "figures" }, figure),
  );
}

/** A list that shows its first entries, and the rest on demand. */
export function cutList(items, make, kind = "list", count = LISTED) {
  const list = element("ol", { class: kind }, items.slice(0, count).map(make));
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

/** A button with a node's name that selects it and brings it into sight; hovering shows it. */
export function goButton(state, view, v) {
  const kind = isHidden(state.model, v) ? "go hidden" : "go";
  const press = () => {
    setHover(state, null);
    choose(state, v);
    view.bringIntoSight(v);
  };
  const leave = () => setHover(state, null);
  const enter = () => setHover(state, { node: v });
  return element(
    "button",
    {
      class: kind,
      type: "button",
      click: press,
      mouseenter: enter,
      mouseleave: leave,
      focus: enter,
      blur: leave,
    },
    nameOf(titleOf(state.model, v)),
  );
}

/** "1 variable", "2 variables". */
export function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}
