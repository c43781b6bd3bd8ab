// Names cut to a length so that they stay apart: what they share goes before what they differ in.

/** Names of at most so many characters: of longer ones the middle is left out. */
export function cutNames(names, most) {
  const cut = names.map((name) => withoutMiddle(Array.from(name), most));
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
