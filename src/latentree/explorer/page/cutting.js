// Names cut to a length so that they stay apart: what they share goes before what they differ in.

/** Names of at most so many characters: of longer ones the middle is left out. */
export function cutNames(names, most) {
  const own = ownParts(names);
  const cut = names.map((name, i) => shortened(Array.from(name), own[i], most));
  const alike = new Map(); // cut names that stand for several
  cut.forEach((text, i) => {
    alike.set(text, [...(alike.get(text) ?? []), i]);
  });
  for (const group of alike.values()) {
    if (new Set(group.map((i) => names[i])).size === 1) continue;
    const first = firstDifference(group.map((i) => Array.from(names[i])));
    for (const i of group) cut[i] = around(Array.from(names[i]), first, most);
  }
  return cut;
}

/** Of every name where the part begins and ends that it shares with no other: whole words. */
function ownParts(names) {
  const shared = (texts) => {
    const order = [...texts.keys()].sort((a, b) => (texts[a] < texts[b] ? -1 : 1));
    const out = new Array(texts.length).fill(0);
    order.slice(1).forEach((i, k) => {
      const before = order[k];
      const same = firstDifference([texts[i], texts[before]].map((text) => Array.from(text)));
      out[i] = Math.max(out[i], same);
      out[before] = Math.max(out[before], same);
    });
    return out;
  };
  const different = [...new Set(names)];
  const starts = shared(different);
  const ends = shared(different.map((name) => Array.from(name).reverse().join("")));
  const place = new Map(different.map((name, i) => [name, i]));
  return names.map((name) => {
    const letters = Array.from(name);
    const i = place.get(name);
    let [from, to] = [starts[i], Math.max(letters.length - ends[i], starts[i] + 1)];
    while (from > 0 && letters[from - 1] !== " ") from--;
    while (to < letters.length && letters[to] !== " ") to++;
    return [from, to];
  });
}

/** A name without its middle, or without what is around its own part where that would be lost. */
function shortened(letters, [from, to], most) {
  const { length } = letters;
  const tail = Math.floor((most - 1) / 3);
  const isSafe = to <= most - 1 - tail || from >= length - tail;
  if (length <= most || isSafe || to - from > most - 2) return withoutMiddle(letters, most);
  const room = most - (to - from);
  const after = Math.min(length - to, Math.floor(room / 3));
  const before = Math.min(from, room - after);
  const head =
    before < from ? [...letters.slice(0, Math.max(before - 1, 0)), "…"] : letters.slice(0, from);
  const rest = Math.min(length - to, room - before);
  const end =
    rest < length - to
      ? [...letters.slice(to, to + Math.max(rest - 1, 0)), "…"]
      : letters.slice(to);
  return [...head, ...letters.slice(from, to), ...end].join("");
}

function withoutMiddle(letters, most) {
  if (letters.length <= most) return letters.join("");
  const tail = Math.floor((most - 1) / 3);
  return `${letters.slice(0, most - 1 - tail).join("")}…${letters.slice(letters.length - tail).join("")}`;
}

/** The place of the first letter in which some names are not all the same. */
function firstDifference(names) {
  const shortest = Math.min(...names.map((letters) => letters.length));
  for (let i = 0; i < shortest; i++) {
    if (names.some((letters) => letters[i] !== names[0][i])) return i;
  }
  return shortest;
}

/** The beginning of a name, and what follows from shortly before some place. */
function around(letters, place, most) {
  const head = Math.floor(most / 3);
  const room = most - head - 2;
  const from = Math.max(place - Math.floor(room / 3), 0);
  if (from <= head + 1) return `${letters.slice(0, most - 1).join("")}…`;
  const end = from + room >= letters.length ? "" : "…";
  return `${letters.slice(0, head).join("")}…${letters.slice(from, from + room).join("")}${end}`;
}
