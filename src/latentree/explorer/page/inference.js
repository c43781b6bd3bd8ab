// Exact inference on the tree: messages from the leaves to the roots, then distributions from the
// roots to the leaves. Evidence is a Map from nodes to values: for numbers in the units of the data,
// for others the number of a state. Any node may be given, hidden ones included.

import { emissionLogs, emissionVariance } from "./emissions.js";
import { movedGrids, nearestPoint } from "./grid.js";
import { logSlope, quantileOf, rankMoments, scoreOf, valueAt } from "./margins.js";
import { isOnGrid, rankMargin } from "./model.js";

/** Distributions of all nodes given evidence. */
export function infer(model, evidence) {
  if (model.isGaussian) return inferGaussian(model, evidence);
  return inferStates(movedGrids(model, evidence), evidence);
}

// Gaussian: in standard units, x_v given x_p is N(ρ x_p, q) with q = 1 − ρ². What lies below a node
// says exp(−J x²/2 + h x) about it.

function inferGaussian(model, evidence) {
  const { size, order, parent, rho } = model;
  const given = new Float64Array(size).fill(Number.NaN);
  for (const [v, value] of evidence) given[v] = scoreOf(scaleOf(model, v), value);
  const J = new Float64Array(size);
  const h = new Float64Array(size);
  for (let i = size - 1; i >= 0; i--) {
    const v = order[i];
    const above = parent[v];
    if (above < 0) continue;
    const q = (1 - rho[v]) * (1 + rho[v]);
    if (Number.isNaN(given[v])) {
      const share = 1 + q * J[v];
      J[above] += (rho[v] * rho[v] * J[v]) / share;
      h[above] += (rho[v] * h[v]) / share;
    } else {
      J[above] += (rho[v] * rho[v]) / q;
      h[above] += (rho[v] * given[v]) / q;
    }
  }
  const m = new Float64Array(size);
  const variance = new Float64Array(size);
  for (const v of order) {
    const above = parent[v];
    if (!Number.isNaN(given[v])) {
      m[v] = given[v];
    } else if (above < 0) {
      m[v] = h[v] / (1 + J[v]);
      variance[v] = 1 / (1 + J[v]);
    } else {
      // x_v given x_p and all below v is N((ρ x_p + q h) / (1 + q J), q / (1 + q J)).
      const q = (1 - rho[v]) * (1 + rho[v]);
      const share = 1 + q * J[v];
      m[v] = (rho[v] * m[above] + q * h[v]) / share;
      variance[v] = q / share + (rho[v] / share) ** 2 * variance[above];
    }
  }
  return {
    possible: true,
    scores: m,
    scoreVariance: variance,
    ...onScales(model, m, variance, evidence),
  };
}

/** How the values of a Gaussian node follow from its standard units. */
function scaleOf({ margins, mean, scale }, v) {
  return margins[v] ?? { mean: mean[v], sd: scale[v] };
}

/** Means and variances in the units of the data; of ranks medians, and half the distances of quantiles. */
function onScales(model, scores, variances, evidence) {
  const at = (sides) =>
    scores.map((y, v) => valueAt(scaleOf(model, v), y + sides * Math.sqrt(variances[v])));
  const [low, mean, high] = [-1, 0, 1].map(at);
  const variance = low.map((value, v) => ((high[v] - value) / 2) ** 2);
  for (const [v, value] of evidence) mean[v] = value;
  return { mean, variance };
}

/** Log-density or log-probability of what is supposed of a tree's nodes. */
export function logLikelihoodOf(model, evidence, found) {
  return model.isGaussian ? gaussianLog(model, evidence) : found.logLikelihood;
}

// What lies below a node says exp(c − J (x − μ)²/2) about it: in this form nothing cancels.

function gaussianLog(model, evidence) {
  const { size, order, parent, rho } = model;
  const J = new Float64Array(size);
  const mu = new Float64Array(size);
  let log = 0; // the sum of all c
  /** What another source says, with precision K around nu. */
  const join = (v, K, nu) => {
    if (K === 0) return;
    const both = J[v] + K;
    log -= (0.5 * J[v] * K * (mu[v] - nu) ** 2) / both;
    mu[v] += (K / both) * (nu - mu[v]);
    J[v] = both;
  };
  for (let i = size - 1; i >= 0; i--) {
    const v = order[i];
    const above = parent[v];
    const r = above < 0 ? 0 : rho[v];
    const q = (1 - r) * (1 + r);
    // The integral over x of N(x; r·y, q) exp(−J (x − μ)²/2) with y above; of a given x its value.
    const given = evidence.has(v);
    const z = given ? scoreOf(scaleOf(model, v), evidence.get(v)) : mu[v];
    if (given)
      log +=
        logSlope(scaleOf(model, v), evidence.get(v)) -
        0.5 * (J[v] * (z - mu[v]) ** 2 + Math.log(2 * Math.PI * q));
    else log -= 0.5 * Math.log1p(q * J[v]);
    const K = given ? 1 / q : J[v] / (1 + q * J[v]); // of r·y around z
    if (r * r === 0) log -= 0.5 * K * z * z;
    else join(above, r * r * K, z / r);
  }
  return log;
}

// States: all in logarithms, so that thousands of children, probabilities near 0 and exact zeros
// are safe.

/** log Σ exp of the entries of an array; −∞ for nothing. */
function logSum(values, from, to) {
  let most = Number.NEGATIVE_INFINITY;
  for (let i = from; i < to; i++) if (values[i] > most) most = values[i];
  if (most === Number.NEGATIVE_INFINITY) return most;
  let sum = 0;
  for (let i = from; i < to; i++) sum += Math.exp(values[i] - most);
  return most + Math.log(sum);
}

/** Logarithms of the tables, computed once. */
function logTables(model) {
  if (!model.logTheta) model.logTheta = model.theta.map(Math.log);
  return model.logTheta;
}

function inferStates(model, evidence) {
  const { size, order, parent, stateStart } = model;
  const messages = collect(model, evidence);
  let logLikelihood = 0;
  for (let v = 0; v < size; v++) {
    if (parent[v] < 0) logLikelihood += messages.toParent[messages.rowStart[v]];
  }
  const probability = new Float64Array(stateStart[size]);
  const possible = logLikelihood > Number.NEGATIVE_INFINITY;
  if (possible) {
    for (const v of order) descend(model, v, messages, probability);
  } else {
    probability.fill(Number.NaN);
  }
  return { possible, logLikelihood, probability, ...numberMoments(model, evidence, probability) };
}

/** Mean and variance of the nodes that hold numbers: those of mixtures over their neighbor's states. */
function numberMoments(model, evidence, probability) {
  const { size, parent, stateStart } = model;
  const mean = new Float64Array(size).fill(Number.NaN);
  const variance = new Float64Array(size).fill(Number.NaN);
  model.emissions.forEach((emission, v) => {
    if (evidence.has(v)) {
      mean[v] = evidence.get(v);
      variance[v] = 0;
      return;
    }
    const above = parent[v];
    const weights =
      above < 0 ? [1] : probability.subarray(stateStart[above], stateStart[above + 1]);
    [mean[v], variance[v]] = mixtureMoments(emission, weights);
  });
  if (model.points) gridMoments(model, evidence, probability, { mean, variance });
  return { mean, variance };
}

/** About a center: E[x²] − E[x]² has no digits left where means are large beside the spread. */
function mixtureMoments(emission, weights) {
  const isRank = emission.margin?.values;
  if (isRank) return rankMoments((share) => quantileOf(emission, weights, share));
  const center = emission.mean[0];
  const sum = (value) => weights.reduce((total, w, k) => total + w * value(k), 0);
  const away = sum((k) => emission.mean[k] - center);
  const square = (k) => (emission.mean[k] - center - away) ** 2;
  return [center + away, sum((k) => emissionVariance(emission, k) + square(k))];
}

function gridMoments({ observed, size, points, stateStart }, evidence, probability, found) {
  const { mean, variance } = found;
  for (let v = observed; v < size; v++) {
    if (evidence.has(v)) {
      [mean[v], variance[v]] = [evidence.get(v), 0];
      continue;
    }
    const share = probability.subarray(stateStart[v], stateStart[v + 1]);
    const center = share.reduce((sum, p, k) => sum + p * points[k], 0);
    mean[v] = Math.abs(center) < 1e-12 ? 0 : center;
    variance[v] = share.reduce((sum, p, k) => sum + p * (points[k] - center) ** 2, 0);
  }
}

/**
 * Messages from the leaves to the roots. `below[v, j]` is the log-probability of the evidence in
 * the subtree of v when v is in state j; `toParent[v, k]` the same when v's parent is in state k.
 */
function collect(model, evidence) {
  const { size, order, parent, states, stateStart } = model;
  const rowStart = rowStarts(model);
  const messages = {
    logTheta: logTables(model),
    below: statesRuledOut(model, evidence),
    toParent: new Float64Array(rowStart[size]),
    rowStart,
  };
  const terms = new Float64Array(states.reduce((a, b) => Math.max(a, b), 1));
  for (let i = size - 1; i >= 0; i--) {
    const v = order[i];
    if (model.emissions[v]) emitted(model, v, evidence, messages);
    else summed(model, v, messages, terms);
    if (parent[v] < 0) continue;
    const rows = rowStart[v + 1] - rowStart[v];
    for (let k = 0; k < rows; k++)
      messages.below[stateStart[parent[v]] + k] += messages.toParent[rowStart[v] + k];
  }
  return messages;
}

/** 0 for the states that the evidence allows, −∞ for those that it rules out. */
function statesRuledOut(model, evidence) {
  const { size, states, stateStart } = model;
  const below = new Float64Array(stateStart[size]);
  for (const [v, value] of evidence) {
    if (model.emissions[v]) continue;
    const state = isOnGrid(model, v) ? nearestPoint(model, value) : value;
    for (let j = 0; j < states[v]; j++) {
      if (j !== state) below[stateStart[v] + j] = Number.NEGATIVE_INFINITY;
    }
  }
  return below;
}

/** A given number says how likely it is in each state of the parent; others say nothing. */
function emitted(model, v, evidence, { toParent, rowStart }) {
  if (!evidence.has(v)) return;
  toParent.set(emissionLogs(model.emissions[v], evidence.get(v)), rowStart[v]);
}

/** toParent[v, k] = log Σ_j P(v = j | k) · exp below[v, j] */
function summed(model, v, { logTheta, below, toParent, rowStart }, terms) {
  const { states, stateStart, tableStart } = model;
  const K = states[v];
  const rows = rowStart[v + 1] - rowStart[v];
  for (let k = 0; k < rows; k++) {
    const at = tableStart[v] + k * K;
    for (let j = 0; j < K; j++) terms[j] = logTheta[at + j] + below[stateStart[v] + j];
    toParent[rowStart[v] + k] = logSum(terms, 0, K);
  }
}

/** P(v) = Σ_k P(parent = k) · P(v | parent = k, evidence below v). */
function descend(model, v, { logTheta, below, toParent, rowStart }, probability) {
  const { parent, states, stateStart, tableStart } = model;
  const above = parent[v];
  const K = states[v];
  const at = stateStart[v];
  const rows = above < 0 ? 1 : states[above];
  for (let k = 0; k < rows; k++) {
    const weight = above < 0 ? 1 : probability[stateStart[above] + k];
    if (weight === 0) continue;
    const norm = toParent[rowStart[v] + k];
    for (let j = 0; j < K; j++) {
      const term = logTheta[tableStart[v] + k * K + j] + below[at + j];
      probability[at + j] += weight * Math.exp(term - norm);
    }
  }
  let sum = 0;
  for (let j = 0; j < K; j++) sum += probability[at + j];
  for (let j = 0; j < K; j++) probability[at + j] /= sum;
}

function rowStarts(model) {
  const { size, parent, states } = model;
  const starts = new Int32Array(size + 1);
  for (let v = 0; v < size; v++)
    starts[v + 1] = starts[v] + (parent[v] < 0 ? 1 : states[parent[v]]);
  return starts;
}

/** How far a value is from the usual one: in standard deviations, of ranks those of normal scores. */
export function sigmasOf({ model, prior }, v, value) {
  const margin = rankMargin(model, v);
  if (margin) return scoreOf(margin, value);
  return (value - prior.mean[v]) / Math.sqrt(prior.variance[v]);
}

/** The value so many standard deviations from the usual one. */
export function atSigmas({ model, prior }, v, sigmas) {
  const margin = rankMargin(model, v);
  return margin ? valueAt(margin, sigmas) : prior.mean[v] + sigmas * Math.sqrt(prior.variance[v]);
}

/**
 * How far every node has moved from `before` to `after`: for numbers the change of the mean in
 * standard deviations (of ranks, of their normal scores); for states the total change of probability, signed by the last state when
 * there are two, and by the mean place when they are ordered.
 */
export function changes(model, before, after) {
  const out = new Float64Array(model.size);
  if (!after.possible) return out;
  for (let v = 0; v < model.size; v++) {
    const sigmas = ({ mean }) => sigmasOf({ model, prior: before }, v, mean[v]);
    out[v] = model.numeric[v]
      ? sigmas(after) - sigmas(before)
      : totalChange(model, v, before.probability, after.probability);
  }
  return out;
}

function totalChange(model, v, before, after) {
  const from = model.stateStart[v];
  const to = model.stateStart[v + 1];
  if (to - from === 2) return after[to - 1] - before[to - 1];
  let sum = 0;
  let rise = 0; // of the mean place among ordered states
  for (let i = from; i < to; i++) {
    sum += Math.abs(after[i] - before[i]);
    rise += (i - from) * (after[i] - before[i]);
  }
  return (isOrdered(model, v) && rise < 0 ? -sum : sum) / 2;
}

/** A change from 0 to 1 and beyond, to compare nodes of all kinds: 1 is a great change. */
export function greatness(model, change, v) {
  return Math.abs(change[v]) / (model.numeric[v] ? 2 : 0.6);
}

/**
 * What of a change is told: of a number the change of its mean in standard deviations, of states
 * the change in probability of one, the high one of two or else the one that changed most.
 */
export function movedBy(state, v) {
  const { model, prior, posterior, change } = state;
  if (model.numeric[v]) return change[v];
  const i = model.stateStart[v] + mostMoved(state, v);
  return posterior.probability[i] - prior.probability[i];
}

/** The state that counts as more when there are two, else the one whose probability changed most. */
export function mostMoved({ model, prior, posterior }, v) {
  const from = model.stateStart[v];
  const count = model.states[v];
  if (count === 2) return highState(model, v);
  let best = 0;
  const moved = (k) => Math.abs(posterior.probability[from + k] - prior.probability[from + k]);
  for (let k = 1; k < count; k++) if (moved(k) > moved(best)) best = k;
  return best;
}

/**
 * The round numbers that bars and colors of changes go up to, of numbers and of states: the
 * greatest change of a node that is not supposed itself fits.
 */
export function changeLimits(state) {
  const { model, evidence } = state;
  const most = [0, 0];
  for (let v = 0; v < model.size; v++) {
    const kind = model.numeric[v] ? 0 : 1;
    if (!evidence.has(v)) most[kind] = Math.max(most[kind], Math.abs(movedBy(state, v)) || 0);
  }
  return { numbers: roundLimit(most[0], 0.1), states: Math.min(roundLimit(most[1], 0.02), 1) };
}

/** The next of 1, 2, 3, 5, 10, 20, … times a power of ten. */
function roundLimit(value, least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, least)));
  return power * [1, 2, 3, 5, 10].find((step) => step * power >= value * (1 - 1e-9));
}

function isOrdered(model, v) {
  return model.kinds[v] === "ordered";
}

/** The state of two that counts as more: the second, or the first if the node is drawn turned. */
export function highState(model, v) {
  return model.strengths.turned[v] < 0 ? 0 : 1;
}

/** What a change of a node means in words and colors: more (1), less (−1), or other states (0). */
export function directionOf(model, change, v) {
  if (!model.directed[v]) return 0;
  const upward = model.states?.[v] !== 2 || model.numeric[v] || highState(model, v) === 1;
  return Math.sign(change[v]) * (upward ? 1 : -1);
}
