// What can be taken away: pictures, the tree, the posterior table, the page itself.

import { modelsOf, viewText } from "./address.js";
import { byId, download, tell } from "./dom.js";
import { toPng, toSvg } from "./figure.js";
import { TREE, treeLabel } from "./mixture.js";
import { isHidden } from "./model.js";
import { fromNames, toNames } from "./naming.js";
import { csvCell } from "./numbers.js";

export function createExports(panes, source) {
  const [{ state: first }] = panes;
  const title = fileName(first.model.title);
  const options = () => ({ whole: byId("whole").checked });
  const chosen = () => panes[Number(byId("which").value)].state;
  const save = (make, ending, type) => () => {
    const state = chosen();
    const name = state.pair ? `${title}-${fileName(state.pair.name)}` : title;
    download(make(state), `${name}${ending}`, type);
  };
  const actions = {
    "save-svg": () => download(toSvg(panes, options()), `${title}.svg`, "image/svg+xml"),
    "save-png": () => toPng(panes, options(), (blob) => download(blob, `${title}.png`)),
    "save-newick": save(({ model }) => toNewick(model), ".nwk", "text/plain"),
    "save-json": save(toModelFile, ".json", "application/json"),
    "save-csv": save(toCsv, "-posterior.csv", "text/csv"),
    "save-names": () => saveNames(chosen(), title),
    "save-page": () => download(toPage(panes, source), `${title}.html`, "text/html"),
    "save-view": () => download(toPage(panes, source, true), `${title}.html`, "text/html"),
    "load-names": () => byId("names-file").click(),
  };
  createNamesLoader(panes);
  for (const [id, action] of Object.entries(actions)) {
    byId(id).addEventListener("click", () => {
      byId("take").open = false;
      action();
    });
  }
}

/** The tree that the panel is about. */
function activeOf(panes) {
  return panes.find(({ state }) => !state.inactive).state;
}

/** Names are of one tree: of several, that which the panel is about, and the file says which. */
function saveNames({ model, mixture, pair }, name) {
  const which = pair?.name ?? (mixture ? treeLabel(mixture.number) : "");
  const file = which ? `${name}-${fileName(which)}` : name;
  download(toNames(model), `${file}-names.json`, "application/json");
}

function createNamesLoader(panes) {
  const input = byId("names-file");
  input.addEventListener("change", async () => {
    const [file] = input.files;
    if (!file) return;
    tell(fromNames(activeOf(panes), await file.text()) || "Names are taken over.");
    input.value = "";
  });
}

function fileName(title) {
  const plain = title
    .normalize("NFKD")
    .replace(/[^\w-]+/g, "-")
    .replace(/^-+|-+$/g, "");
  return plain.slice(0, 60) || "latent-tree";
}

// The tree --------------------------------------------------------------------------------------

/**
 * Newick as latentree writes it, one tree a line. Hidden nodes have the names that people gave
 * them; inner nodes without a name have the support of the edge above them in percent, as
 * phylogenetic programs do, and those with one have it in a comment.
 */
export function toNewick(model) {
  const parts = [];
  for (let root = 0; root < model.size; root++) {
    if (model.parent[root] >= 0) continue;
    for (const part of newickParts(model, root)) parts.push(part);
    parts.push(";\n");
  }
  return parts.join("");
}

/** Parts of one tree's text, by a stack of nodes still to be opened or closed. */
function* newickParts(model, root) {
  const { childStart, child } = model;
  const waiting = [{ v: root, closing: false, first: true }];
  while (waiting.length > 0) {
    const { v, closing, first } = waiting.pop();
    if (!closing && !first) yield ",";
    if (!closing && childStart[v + 1] > childStart[v]) {
      yield "(";
      waiting.push({ v, closing: true });
      for (let j = childStart[v + 1] - 1; j >= childStart[v]; j--) {
        waiting.push({ v: child[j], closing: false, first: j === childStart[v] });
      }
      continue;
    }
    yield closing ? ")" : "";
    yield newickLabel(model, v, closing);
    yield v === root ? "" : `:${model.length[v]}`;
  }
}

function newickLabel(model, v, isInner) {
  const isNamed = !isHidden(model, v) || model.names[v] !== model.ownNames[v];
  const name = isNamed ? newickName(model.names[v], isInner) : "";
  const sure = model.support?.edges[v] ?? Number.NaN;
  if (!isInner || Number.isNaN(sure)) return name;
  const percent = String(Math.round(100 * sure));
  return name ? `${name}[&support=${percent}]` : percent;
}

/** In quotes where it needs them; also an inner name that could be taken for a number. */
function newickName(name, isInner) {
  if (isInner && Number.isFinite(Number(name))) return `'${name}'`;
  return /^[A-Za-z0-9.+-]+$/.test(name) ? name : `'${name.replaceAll("'", "''")}'`;
}

/** The model in the format of latentree's model files, which lt.load reads. */
export function toModelFile({ model, mixture }) {
  const head = { format: '"latentree model"', version: "1" };
  const { aside, formats } = model.beside;
  if (aside) head.aside = aside;
  if (formats) head.formats = JSON.stringify(JSON.parse(formats).map((one) => renamed(model, one)));
  if (!mixture) return `${jsonObject({ ...head, ...modelFields(model) })}\n`;
  const parts = mixture.trees.map((tree) => jsonObject(modelFields(tree.model)));
  const components = `[\n${parts.join(",\n")}\n]`;
  return `${jsonObject({ ...head, weights: floats(mixture.weights), components })}\n`;
}

/** What is known of a column, under the name that it has now. */
function renamed({ names, ownNames }, one) {
  return { ...one, name: names[ownNames.indexOf(one.name)] };
}

function jsonObject(fields) {
  const lines = Object.entries(fields).map(([key, text]) => `  "${key}": ${text}`);
  return `{\n${lines.join(",\n")}\n}`;
}

function modelFields(model) {
  const fields = {
    family: JSON.stringify(model.family),
    n_observed: String(model.observed),
    names: JSON.stringify(model.names),
    parent: JSON.stringify(Array.from(model.parent)),
    length: floats(model.length),
    parameters: parametersOf(model),
  };
  if (model.family !== "gaussian") {
    fields.labels = `[${model.labelSets.map((set) => `[${set.join(", ")}]`).join(", ")}]`;
  }
  if (["mixed", "copula"].includes(model.family)) fields.kinds = JSON.stringify(model.kinds);
  for (const [key, given] of [
    ["states", model.stateNames],
    ["notes", model.notes],
  ]) {
    const named = Object.entries(given).map(([v, value]) => [model.names[v], value]);
    if (named.length > 0) fields[key] = JSON.stringify(Object.fromEntries(named));
  }
  return fields;
}

function parametersOf(model) {
  if (model.margins.length > 0) return copulaParameters(model);
  return model.isGaussian ? gaussianParameters(model) : tableParameters(model);
}

/** Numbers as Python writes floats: whole ones keep their point, and there is no infinity. */
function floats(values) {
  return `[${Array.from(values, float).join(", ")}]`;
}

function float(x) {
  if (x === Number.POSITIVE_INFINITY) return "null";
  if (Object.is(x, -0)) return "-0.0";
  return Number.isInteger(x) && Math.abs(x) < 1e16 ? `${x}.0` : `${x}`;
}

function copulaParameters({ rho, margins }) {
  const own = margins.map(marginFields).join(",\n");
  return `{"correlations": ${floats(rho)}, "margins": [\n${own}\n]}`;
}

/** A margin; where its steps start is written where that is not 0. */
function marginFields({ isCount, origin, tails, ...fields }) {
  const parts = Object.entries(fields).map(([key, value]) => {
    return `"${key}": ${typeof value === "number" ? float(value) : floats(value)}`;
  });
  if (tails) parts.push(`"tails": [${tails.map(floats).join(", ")}]`);
  if (origin) parts.push(`"origin": ${float(origin)}`);
  return `{${parts.join(", ")}}`;
}

/** What a leaf emits, a number a state. */
function emissionFields({ isCount, mean, rate, spread, zeros, resolution, origin }) {
  const inflated = zeros.some((share) => share > 0) ? `, "zeros": ${floats(zeros)}` : "";
  if (isCount) return `{"mean": ${floats(rate)}, "size": ${floats(spread)}${inflated}}`;
  const steps = `"resolution": ${float(resolution)}${origin ? `, "origin": ${float(origin)}` : ""}`;
  return `{"mean": ${floats(mean)}, "sd": ${floats(spread)}, ${steps}}`;
}

function gaussianParameters(model) {
  const observed = (values) => floats(values.subarray(0, model.observed));
  return (
    `{"correlations": ${floats(model.rho)}, "means": ${observed(model.mean)}, ` +
    `"scales": ${observed(model.scale)}}`
  );
}

function tableParameters(model) {
  const { parent, states, theta, tableStart, emissions } = model;
  const tables = Array.from(parent, (above, v) => {
    if (emissions[v]) return emissionFields(emissions[v]);
    const table = theta.subarray(tableStart[v], tableStart[v + 1]);
    if (above < 0) return floats(table);
    const row = (i) => floats(table.subarray(i * states[v], (i + 1) * states[v]));
    return `[${Array.from({ length: states[above] }, (_, i) => row(i)).join(", ")}]`;
  });
  return `{"tables": [\n${tables.join(",\n")}\n]}`;
}

// The posterior table ---------------------------------------------------------------------------

/** One line a node, or a state of it: before and after the evidence, to the last digit. */
export function toCsv(state) {
  const { model, mixture, prior, posterior, evidence } = state;
  const lines = [];
  const kind = (v) => (isHidden(model, v) ? "hidden" : "observed");
  const given = (v) => (evidence.has(v) ? "yes" : "no");
  const moments = "prior_mean,prior_sd,posterior_mean,posterior_sd";
  const states = "state,prior,posterior";
  const numbers = model.numeric.filter((numeric) => numeric).length;
  const mixed = numbers > 0 && (numbers < model.size || mixture !== null);
  const columns = numbers > 0 ? [moments] : [];
  if (mixed || numbers === 0) columns.unshift(states);
  lines.push(["node,kind,given", ...columns].join(","));
  for (let v = 0; v < model.size; v++) {
    const front = [csvCell(model.names[v]), kind(v), given(v)];
    if (model.numeric[v]) {
      const parts = [prior, posterior].flatMap((d) => [d.mean[v], Math.sqrt(d.variance[v])]);
      lines.push([...front, ...(mixed ? ["", "", ""] : []), ...parts].join(","));
      continue;
    }
    model.labels(v).forEach((label, k) => {
      const i = model.stateStart[v] + k;
      const parts = [csvCell(label), prior.probability[i], posterior.probability[i]];
      lines.push([...front, ...parts, ...(mixed ? ["", "", "", ""] : [])].join(","));
    });
  }
  mixture?.weights.forEach((weight, k) => {
    const front = [csvCell(mixture.name), "hidden", given(TREE), k, weight, posterior.share[k]];
    lines.push([...front, ...(mixed ? ["", "", "", ""] : [])].join(","));
  });
  return `${lines.join("\r\n")}\r\n`;
}

// The page --------------------------------------------------------------------------------------

/** The page as it was written, with the names as they are now, and what is seen if that is asked. */
export function toPage(panes, { payload, html, mark }, withView = false) {
  const named = modelsOf(panes).map((model) => {
    const changed = model.names.flatMap((name, v) =>
      name === model.ownNames[v] ? [] : [[v, name]],
    );
    const { stateNames, notes } = model;
    return { renamed: Object.fromEntries(changed), stateNames, notes };
  });
  const list = ["models", "components"].find((key) => key in payload);
  const content = list
    ? { ...payload, [list]: payload[list].map((own, i) => ({ ...own, ...named[i] })) }
    : { ...payload, ...named[0] };
  if (withView) content.view = viewText(panes);
  const json = JSON.stringify(content).replaceAll("<", "\\u003c");
  const place = html.indexOf(mark) + mark.length;
  return html.slice(0, place) + json + html.slice(place);
}

/** Take the data out of the page, and keep the rest as it was written. */
export function takeSource() {
  const data = byId("payload");
  const payload = JSON.parse(data.textContent);
  data.textContent = "";
  const mark = 'id="payload">';
  return { payload, mark, html: `<!doctype html>\n${document.documentElement.outerHTML}\n` };
}
