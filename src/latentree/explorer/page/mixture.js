// A mixture of trees: every row comes from one of several trees, drawn by weight. One of them is
// shown at a time, and all of them answer: what is said of a variable is the mean of what the trees
// say, each counted by its probability given the evidence. Hidden variables are of one tree only.

import { mixtureOf } from "./emissions.js";
import { infer, logLikelihoodOf } from "./inference.js";
import { mixedQuantile, rankMoments } from "./margins.js";
import { isHidden, rankMargin } from "./model.js";

/** The key of evidence that says which tree a row comes from. */
export const TREE = -1;

/** Distributions given evidence, with the `share` of every tree and what each says (`parts`). */
export function inferMixture({ trees, weights, number }, evidence) {
  const found = trees.map(({ model }, k) =>
    infer(model, k === number ? evidence : ofVariables(model, evidence)),
  );
  const logs = trees.map(({ model }, k) => {
    if (isRuledOut(model, k, number, evidence)) return Number.NEGATIVE_INFINITY;
    return Math.log(weights[k]) + logLikelihoodOf(model, evidence, found[k]);
  });
  const most = Math.max(...logs);
  const possible = most > Number.NEGATIVE_INFINITY;
  const raw = logs.map((log) => (possible ? Math.exp(log - most) : Number.NaN));
  const sum = raw.reduce((a, b) => a + b, 0);
  const share = raw.map((value) => value / sum);
  const parts = trees.map(({ model }, k) => ({ model, share: share[k], found: found[k] }));
  return { ...blend(parts, number, evidence), possible, share, parts };
}

/** What is supposed of variables, which all trees have. */
function ofVariables(model, evidence) {
  return new Map([...evidence].filter(([v]) => !isHidden(model, v)));
}

/** A tree is ruled out when another is supposed, or a hidden variable of the one that is shown. */
function isRuledOut(model, k, number, evidence) {
  if (evidence.has(TREE) && evidence.get(TREE) !== k) return true;
  return k !== number && [...evidence.keys()].some((v) => isHidden(model, v));
}

/** Of variables the mean over all trees, of hidden ones what the tree says that is shown. */
function blend(parts, number, evidence) {
  const { model, found } = parts[number];
  const counted = parts.filter(({ share }) => share !== 0);
  const probability = found.probability?.slice();
  const [mean, variance] = [found.mean.slice(), found.variance.slice()];
  const ends = model.isGaussian ? 0 : model.stateStart[model.observed];
  const total = (value) => counted.reduce((sum, part) => sum + part.share * value(part.found), 0);
  for (let i = 0; i < ends; i++) probability[i] = total((one) => one.probability[i]);
  for (let v = 0; v < model.observed; v++) {
    if (!model.numeric[v] || evidence.has(v)) continue;
    if (counted.some((part) => rankMargin(part.model, v))) {
      [mean[v], variance[v]] = rankMoments((share) => mixedQuantile(saidOf(counted, v), share));
      continue;
    }
    const center = total((one) => one.mean[v]);
    mean[v] = center;
    variance[v] = total((one) => one.variance[v] + (one.mean[v] - center) ** 2);
  }
  return { probability, mean, variance };
}

/** What the trees say of a number: a mixture, its weights, and the share of the tree. */
function saidOf(parts, v) {
  return parts.map(({ model, share, found }) => {
    const [emission, weights] = mixtureOf(model, v, found);
    const { mean, spread } = emission;
    const normal = { margin: { mean: mean?.[0], sd: spread[0] }, centers: [0], spread: 1 };
    return { emission: emission.margin ? emission : normal, weights, part: share };
  });
}

/** People count trees from 1. */
export function treeLabel(number) {
  return `Tree ${number + 1}`;
}

/** "Tree 1, one of 3": which tree of a mixture is shown; nothing where there is but one. */
export function treeName({ mixture }) {
  return mixture ? `${treeLabel(mixture.number)}, one of ${mixture.weights.length}` : "";
}
