// The search: topics by their words, documents by their texts.

import { element, nameOf } from "./dom.js";
import { labelOf, lowerText, plural } from "./topics_data.js";
import { finderOf } from "./topics_marks.js";
import { documentList, topicLink } from "./topics_reading.js";

/** What a query finds, as nodes. */
export function searchView(data, query, choose) {
  const terms = termsOf(query);
  const topics = topicsWith(data, terms);
  const documents = data.documents
    .filter((each) => terms.every((term) => lowerText(each).includes(term)))
    .map((each) => each.number);
  const head =
    documents.length < data.documents.length || documents.length === 0
      ? plural(documents.length, "document")
      : `All ${plural(documents.length, "document")}`;
  return [
    element("p", { class: "kind" }, "Search"),
    element("h2", {}, nameOf(query)),
    element("h3", {}, topics.length > 0 ? "Topics with these words" : "No topic has these words"),
    element(
      "p",
      { class: "chips" },
      topics.map((number) => topicLink(data, number, choose, true)),
    ),
    element("h3", {}, head),
    documents.length > 0
      ? documentList(data, documents, finderOf(terms), choose)
      : element("p", { class: "quiet" }, "No document in this page has all of these words."),
  ];
}

/** Words of a query; what stands in quotes stays together. */
export function termsOf(query) {
  const found = query.toLowerCase().match(/"[^"]+"|\S+/gu) ?? [];
  return found.map((term) => term.replaceAll('"', "").trim()).filter(Boolean);
}

function topicsWith(data, terms) {
  const fits = (topic) =>
    terms.some((term) => topic.words.some((word) => word.toLowerCase().includes(term)));
  return data.topics
    .filter(fits)
    .sort((a, b) => b.level - a.level || b.size - a.size || labelOf(a).localeCompare(labelOf(b)))
    .map((topic) => topic.number);
}
