// Words marked in texts.

import { element } from "./dom.js";

const AROUND = 150; // characters around the first mark of an excerpt
const EXCERPT = 360;

/** An expression that finds words and phrases; null without any. */
export function finderOf(words) {
  const found = words.filter(Boolean).map(pattern);
  return found.length > 0 ? new RegExp(found.join("|"), "giu") : null;
}

/** A word stands alone where words are written apart; phrases may be broken by blanks or hyphens. */
function pattern(word) {
  const plain = word
    .split(/\s+/u)
    .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
    .join("[\\s\\-]+");
  const apart = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u.test(
    word,
  );
  return apart ? plain : `(?<![\\p{L}\\p{N}])${plain}(?![\\p{L}\\p{N}])`;
}

/** A text as nodes, with what the expression finds marked. */
export function marked(text, finder) {
  if (!finder) return [text];
  const nodes = [];
  let last = 0;
  for (const hit of text.matchAll(finder)) {
    if (hit[0] === "") continue;
    nodes.push(text.slice(last, hit.index), element("mark", {}, hit[0]));
    last = hit.index + hit[0].length;
  }
  return [...nodes, text.slice(last)];
}

/** The part of a text around the place with the most marks close together. */
export function excerpt(text, finder) {
  const hits = finder ? Array.from(text.matchAll(finder), (hit) => hit.index) : [];
  let best = 0;
  let most = 0;
  for (let i = 0, j = 0; i < hits.length; i += 1) {
    while (hits[i] - hits[j] > EXCERPT - AROUND) j += 1;
    if (i - j + 1 > most) {
      most = i - j + 1;
      best = hits[j];
    }
  }
  let start = Math.max(best - AROUND / 2, 0);
  if (start > 0) start = text.indexOf(" ", start) + 1 || start;
  let end = start + EXCERPT;
  if (end < text.length) end = Math.max(text.lastIndexOf(" ", end), start + 1);
  const cut = text.slice(start, end);
  return `${start > 0 ? "… " : ""}${cut}${end < text.length ? " …" : ""}`;
}
