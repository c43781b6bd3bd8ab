// Puts the page of topics together. What is seen stands in the address after #:
//   t  topic   q  search   v  view (tree)   c  colors (dark or light)   n  names of topics as JSON

import { byId } from "./dom.js";
import { labelOf, readData } from "./topics_data.js";
import { createExports, takeSource, titlesOf, toCsv, toPage } from "./topics_export.js";
import { createOutline } from "./topics_outline.js";
import { overview, topicView } from "./topics_reading.js";
import { searchView } from "./topics_search.js";
import { createTree } from "./topics_tree.js";

const WAIT = 150; // milliseconds after the last key before documents are searched

function main() {
  const source = takeSource();
  const data = readData(source.payload);
  const preferred = matchMedia("(prefers-color-scheme: dark)");
  const state = { topic: -1, query: "", tree: false, theme: "" };
  const choose = (topic) => show({ topic, query: "" }, true);
  const marks = {};

  /** Lists are made anew when a topic has another name. */
  function build() {
    for (const box of ["outline", "tree"]) byId(box).replaceChildren();
    marks.outline = createOutline(byId("outline"), data, choose);
    marks.tree = null;
  }

  function show(change, isNew) {
    Object.assign(state, change);
    if (state.tree) marks.tree ??= createTree(byId("tree"), data, choose);
    byId("outline").hidden = state.tree;
    byId("tree").hidden = !state.tree;
    byId("as-outline").setAttribute("aria-pressed", String(!state.tree));
    byId("as-tree").setAttribute("aria-pressed", String(state.tree));
    if (byId("search").value.trim() !== state.query) byId("search").value = state.query;
    document.documentElement.dataset.theme = state.theme || (preferred.matches ? "dark" : "light");
    const now = state.query === "" ? state.topic : -1;
    marks[state.tree ? "tree" : "outline"](now);
    if ("topic" in change || "query" in change) read(isNew);
    if (isNew) write();
  }

  function read(isNew) {
    const box = byId("reading");
    const nodes = contents();
    box.replaceChildren(...nodes.flat().filter(Boolean));
    box.scrollTop = 0;
    byId("back").hidden = state.topic < 0 && state.query === "";
    if (isNew && state.query === "" && isNarrow()) box.scrollIntoView();
    byId("announce").textContent = state.topic < 0 ? "" : labelOf(data.topics[state.topic]);
  }

  function contents() {
    if (state.query !== "") return searchView(data, state.query, choose);
    return state.topic < 0 ? overview(data, choose) : topicView(data, state.topic, choose, renamed);
  }

  function renamed() {
    build();
    show({}, true);
  }

  function write() {
    if (location.protocol === "about:") return; // a frame in a notebook has no address
    const parts = new URLSearchParams();
    if (state.query !== "") parts.set("q", state.query);
    else if (state.topic >= 0) parts.set("t", data.topics[state.topic].name);
    if (state.tree) parts.set("v", "tree");
    if (state.theme) parts.set("c", state.theme);
    const titles = JSON.stringify(titlesOf(data));
    if (titles !== JSON.stringify(source.payload.titles ?? {})) parts.set("n", titles);
    const text = parts.toString();
    const plain = location.href.split("#")[0];
    history.replaceState(null, "", text ? `${plain}#${text}` : plain);
  }

  function restore() {
    const parts = new URLSearchParams(location.hash.slice(1));
    const topic = data.topics.findIndex((each) => each.name === parts.get("t"));
    const theme = ["dark", "light"].includes(parts.get("c")) ? parts.get("c") : "";
    if (parts.has("n")) restoreTitles(parts.get("n"));
    show(
      { topic, query: (parts.get("q") ?? "").trim(), tree: parts.get("v") === "tree", theme },
      false,
    );
  }

  /** Names that fit no topic are passed over. */
  function restoreTitles(text) {
    let titles = {};
    try {
      titles = JSON.parse(text) ?? {};
    } catch {
      return;
    }
    for (const each of data.topics) {
      if (typeof titles[each.name] === "string") each.title = titles[each.name];
    }
    build();
  }

  build();
  createControls(state, show);
  createExports(data, source);
  createPrinting();
  preferred.addEventListener("change", () => show({}, false));
  addEventListener("hashchange", restore);
  restore();
  window.latentreeTopics = {
    data,
    state,
    choose,
    toCsv: () => toCsv(data),
    toPage: () => toPage(data, source),
  };
}

/** On paper colors are light ones. */
function createPrinting() {
  const { dataset } = document.documentElement;
  let { theme } = dataset;
  addEventListener("beforeprint", () => {
    theme = dataset.theme;
    dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    dataset.theme = theme;
  });
}

function isNarrow() {
  return matchMedia("(max-width: 760px)").matches;
}

function createControls(state, show) {
  const field = byId("search");
  let timer = 0;
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => show({ query: field.value.trim() }, true), WAIT);
  });
  byId("as-outline").addEventListener("click", () => show({ tree: false }, true));
  byId("as-tree").addEventListener("click", () => show({ tree: true }, true));
  byId("theme").addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme === "dark";
    show({ theme: dark ? "light" : "dark" }, true);
  });
  byId("back").addEventListener("click", () => {
    show({ topic: -1, query: "" }, true);
    scrollTo({ top: 0 });
  });
  byId("copy-link").hidden = location.protocol === "about:";
  byId("copy-link").addEventListener("click", copyLink);
  addEventListener("keydown", (event) => {
    const typing = document.activeElement === field;
    if (event.key === "/" && !typing) {
      event.preventDefault();
      field.focus();
    } else if (event.key === "Escape") {
      show(typing && state.query !== "" ? { query: "" } : { topic: -1, query: "" }, true);
    }
  });
}

async function copyLink() {
  try {
    await navigator.clipboard.writeText(location.href);
    byId("announce").textContent = "The link is copied.";
    byId("copy-link").textContent = "Copied";
    setTimeout(() => {
      byId("copy-link").textContent = "Copy link";
    }, 1500);
  } catch {
    prompt("Copy this link:", location.href);
  }
}

main();
