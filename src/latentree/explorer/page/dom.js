// Elements from plain values. Text is only ever text: nothing here reads markup.

/**
 * Make an element. Attributes that are functions become listeners, true and false set or leave
 * out an attribute; children that are no nodes become text.
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") {
      made.addEventListener(key, value);
    } else if (value === true) {
      made.setAttribute(key, "");
    } else if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(key, value);
    }
  }
  made.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return made;
}

/** A name from the data, kept apart from the direction of the text around it. */
export function nameOf(text, attributes = {}) {
  return element("bdi", { class: "name", dir: "auto", ...attributes }, shownName(text));
}

const SHOWN = 4000; // milliseconds

/** What is shown of a name: a name of nothing but blanks would be no more than a gap. */
export function shownName(text) {
  return text.trim() === "" ? `“${text}”` : text;
}

export function byId(id) {
  return document.getElementById(id);
}

let telling = 0;

/** Show a sentence for a while, to all; one that matters stays until it is pressed. */
export function tell(text, stays = false) {
  const toast = byId("toast");
  clearTimeout(telling);
  const dismiss = element("button", { type: "button", "aria-label": "Dismiss" }, "×");
  const hide = () => {
    toast.hidden = true;
  };
  dismiss.addEventListener("click", hide);
  toast.replaceChildren(text, stays ? dismiss : "");
  toast.hidden = false;
  if (!stays) telling = setTimeout(hide, SHOWN);
}

/** Change the contents of a box; a focus in it that keys have brought there goes to another. */
export function replaced(box, change, next) {
  const had = box.contains(document.activeElement) && box.querySelector(":focus-visible");
  change();
  if (had && !box.contains(document.activeElement)) next()?.focus({ preventScroll: true });
}

const SVG = "http://www.w3.org/2000/svg";

/** An element of a picture inside the page. */
export function svgElement(tag, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** Offer some content as a download. */
export function download(content, name, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const url = URL.createObjectURL(blob);
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
