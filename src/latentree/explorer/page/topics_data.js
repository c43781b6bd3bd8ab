// What the page shows: topics, their documents, and what is selected.

const SERIES = 8; // colors of broad topics
const SURE = 50; // percent

/** Topics with their children, branch and documents; documents with their places. */
export function readData(payload) {
  const topics = payload.topics.map((topic, number) => ({ ...topic, number, children: [] }));
  for (const topic of topics) {
    if (topic.parent >= 0) topics[topic.parent].children.push(topic.number);
  }
  const roots = topics.filter((topic) => topic.parent < 0).map((topic) => topic.number);
  for (const topic of topics) {
    const above = topic.parent < 0 ? null : topics[topic.parent];
    topic.title = payload.titles?.[topic.name] ?? "";
    topic.series = above ? above.series : roots.indexOf(topic.number) % SERIES;
    topic.documents = [];
  }
  const documents = payload.documents.map((each, number) => ({ ...each, number, lower: null }));
  for (const each of documents) {
    for (const [topic, percent, typical] of each.on) {
      topics[topic].documents.push({ number: each.number, percent, typical });
    }
  }
  for (const topic of topics) topic.documents.sort(moreTypical);
  const levels = Math.max(...topics.map((topic) => topic.level));
  return { ...payload, topics, roots, documents, levels };
}

function moreTypical(a, b) {
  return b.typical - a.typical || b.percent - a.percent || a.number - b.number;
}

/** The documents of a topic: those that are likely on it. */
export function documentsOn(topic) {
  return topic.documents.filter((each) => each.percent >= SURE);
}

/** A topic by the name that people gave it, or in a few words. */
export function labelOf(topic, count = 3) {
  if (topic.title) return topic.title;
  return topic.words.slice(0, count).join("\u00a0· ") || `topic ${topic.name}`;
}

/** A topic and those above it, the broadest first. */
export function pathTo(data, number) {
  const path = [];
  for (let at = number; at >= 0; at = data.topics[at].parent) path.unshift(at);
  return path;
}

export function isDoubtful(topic) {
  return topic.support !== null && 100 * topic.support < SURE;
}

/** The text of a document in small letters, made when it is first needed. */
export function lowerText(each) {
  each.lower ??= `${each.name}\n${each.text}`.toLowerCase();
  return each.lower;
}

export function plural(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}
