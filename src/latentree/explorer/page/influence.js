// What one node tells about every other: correlations or tables multiplied along the paths from
// it, outward, each edge once.

import { emissionVariance } from "./emissions.js";
import { infer } from "./inference.js";
import { haveSign, neighbors } from "./model.js";

/**
 * Information in bits between a node and every other, and the strength of their dependence: the
 * correlation of two numbers, Cramér's V of two nodes with states, the correlation ratio of a
 * number and a node with states.
 */
export function influence(model, node) {
  return model.isGaussian ? gaussianInfluence(model, node) : statesInfluence(model, node);
}

/** Visit every node of the component of `start` but itself, nearer ones first, with the way to it. */
function walkFrom(model, start, visit) {
  const waiting = [[start, -1]];
  for (let i = 0; i < waiting.length; i++) {
    const [v, from] = waiting[i];
    for (const next of neighbors(model, v)) {
      if (next === from) continue;
      visit(next, v);
      waiting.push([next, v]);
    }
  }
}

function gaussianInfluence(model, node) {
  const strength = new Float64Array(model.size);
  const bits = new Float64Array(model.size);
  strength[node] = 1;
  walkFrom(model, node, (v, from) => {
    correlate(model, strength, v, from);
    bits[v] = -0.5 * Math.log2((1 - strength[v]) * (1 + strength[v]));
  });
  return { strength, bits };
}

// A number enters as the interval that it lies in, so that its information with others is that of
// two nodes with states; its strength follows from means.

function statesInfluence(model, node) {
  const { size } = model;
  const rows = cellCount(model, node);
  const prior = cellProbabilities(model, node);
  const strength = new Float64Array(size);
  const bits = new Float64Array(size);
  // given[v]: rows × cells table of P(v | node).
  const given = new Array(size);
  given[node] = identity(rows);
  walkFrom(model, node, (v, from) => {
    const table = cellTable(model, from, v);
    given[v] = product(given[from], table, rows, cellCount(model, from), cellCount(model, v));
    const own = cellProbabilities(model, v);
    bits[v] = mutualInformation(prior, given[v], own);
    if (emits(model, node)) return;
    const means = emits(model, v)
      ? meansGiven(model, v, given[from], rows)
      : product(
          given[v],
          own.map((_, j) => j),
          rows,
          own.length,
          1,
        );
    const size = emits(model, v)
      ? correlationRatio(model, v, prior, means)
      : cramer(prior, given[v], own);
    strength[v] = withSign(model, node, v, size, prior, means);
  });
  if (emits(model, node)) numberStrengths(model, node, strength);
  strength[node] = 1;
  if (model.points) {
    walkFrom(model, node, (v, from) => correlate(model, strength, v, from));
    strength.forEach((value, v) => {
      if (!haveSign(model, node, v)) strength[v] = Math.abs(value);
    });
  }
  return { strength, bits };
}

/** Between normal variables, and those behind answers, correlations multiply along a path. */
function correlate({ parent, rho }, strength, v, from) {
  strength[v] = strength[from] * (parent[v] === from ? rho[v] : rho[from]);
}

function emits(model, v) {
  return model.emissions[v] !== undefined;
}

/** Strengths of a number with all others, by way of its neighbor's states i. */
function numberStrengths(model, node, strength) {
  const { parent, states } = model;
  const start = parent[node];
  if (start < 0) return;
  const rows = states[start];
  const prior = cellProbabilities(model, start);
  const own = model.emissions[node].mean; // E[node | i]
  const given = new Array(model.size); // P(v | i) of nodes with states
  given[start] = identity(rows);
  const measure = (v) => {
    if (emits(model, v)) {
      const means = meansGiven(model, v, given[parent[v]], rows);
      const scale = Math.sqrt(varianceOf(model, node) * varianceOf(model, v));
      strength[v] = covariance(prior, own, means) / scale;
    } else {
      const means = meansBackward(prior, given[v], own, states[v]);
      const weights = cellProbabilities(model, v);
      const size = correlationRatio(model, node, weights, means);
      strength[v] = withSign(model, node, v, size, weights, means);
    }
  };
  measure(start);
  walkFrom(model, start, (v, from) => {
    if (v === node) return;
    if (!emits(model, v)) {
      given[v] = product(given[from], edgeTable(model, from, v), rows, states[from], states[v]);
    }
    measure(v);
  });
}

/** E[v | i] of a number, where a table has P(neighbor of v | i) in its rows. */
function meansGiven(model, v, table, rows) {
  const { mean } = model.emissions[v];
  return product(table, mean, rows, mean.length, 1);
}

/** E[x | j] = Σ_i P(i | j) E[x | i], with P(i | j) from P(i) and a table of P(j | i). */
function meansBackward(prior, table, means, columns) {
  return Float64Array.from({ length: columns }, (_, j) => {
    let weight = 0;
    let sum = 0;
    for (let i = 0; i < prior.length; i++) {
      weight += prior[i] * table[i * columns + j];
      sum += prior[i] * table[i * columns + j] * means[i];
    }
    return weight > 0 ? sum / weight : 0;
  });
}

/** A strength with the sign of the covariance of states 0, 1, … and the means of the other end. */
function withSign(model, a, b, size, weights, means) {
  const codes = means.map((_, i) => i);
  return haveSign(model, a, b) && covariance(weights, codes, means) < 0 ? -size : size;
}

/** η = √(Var E[v | i] / Var v). */
function correlationRatio(model, v, prior, means) {
  const total = varianceOf(model, v);
  if (!(total > 0)) return 0;
  return Math.sqrt(Math.min(Math.max(covariance(prior, means, means), 0) / total, 1));
}

function covariance(weights, a, b) {
  const mean = (values) => weights.reduce((sum, w, i) => sum + w * values[i], 0);
  const [centerA, centerB] = [mean(a), mean(b)];
  return weights.reduce((sum, w, i) => sum + w * (a[i] - centerA) * (b[i] - centerB), 0);
}

/** Variance of a number without evidence. */
function varianceOf(model, v) {
  const emission = model.emissions[v];
  const { mean } = emission;
  const above = model.parent[v];
  const weights = above < 0 ? Float64Array.of(1) : cellProbabilities(model, above);
  const within = weights.reduce((sum, w, k) => sum + w * emissionVariance(emission, k), 0);
  return within + covariance(weights, mean, mean);
}

// Cells: the states of a node, or the intervals of a number.

function cellCount(model, v) {
  return emits(model, v) ? model.emissions[v].width : model.states[v];
}

export function cellProbabilities(model, v) {
  const { parent, stateStart } = model;
  if (!emits(model, v)) return marginals(model).subarray(stateStart[v], stateStart[v + 1]);
  const { cells, width } = model.emissions[v];
  const above = parent[v];
  const weights = above < 0 ? Float64Array.of(1) : cellProbabilities(model, above);
  return product(weights, cells, 1, weights.length, width);
}

/** P(to | from) of two neighbors, numbers in intervals. */
function cellTable(model, from, to) {
  if (emits(model, to)) return model.emissions[to].cells;
  if (!emits(model, from)) return edgeTable(model, from, to);
  const { cells, width } = model.emissions[from];
  return reversed(cells, cellProbabilities(model, to), cellProbabilities(model, from), width);
}

/** P(to | from), row by row, from P(to), P(from) and a table of P(from | to), by Bayes' rule. */
function reversed(table, to, from, rows) {
  const out = new Float64Array(rows * to.length);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < to.length; j++) {
      out[i * to.length + j] =
        from[i] > 0 ? (to[j] * table[j * rows + i]) / from[i] : 1 / to.length;
    }
  }
  return out;
}

function identity(size) {
  const out = new Float64Array(size * size);
  for (let k = 0; k < size; k++) out[k * size + k] = 1;
  return out;
}

function product(a, b, rows, inner, columns) {
  const out = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    for (let k = 0; k < inner; k++) {
      const weight = a[i * inner + k];
      for (let j = 0; j < columns; j++) out[i * columns + j] += weight * b[k * columns + j];
    }
  }
  return out;
}

/** Probabilities of the states of all nodes without evidence, end to end; computed once. */
function marginals(model) {
  model.marginal ??= infer(model, new Map()).probability;
  return model.marginal;
}

/** P(to | from) of two neighbors with states, row by row; by Bayes' rule where need be. */
export function edgeTable(model, from, to) {
  const { parent, states, tableStart, theta } = model;
  if (parent[to] === from) return theta.subarray(tableStart[to], tableStart[to + 1]);
  const table = theta.subarray(tableStart[from], tableStart[from + 1]);
  const [outer, inner] = [cellProbabilities(model, to), cellProbabilities(model, from)];
  return reversed(table, outer, inner, states[from]);
}

/** P(last | first) of a path of nodes with states, row by row. */
export function pathTable(model, path) {
  const rows = model.states[path[0]];
  return path.slice(1).reduce((table, v, i) => {
    const from = path[i];
    return product(table, edgeTable(model, from, v), rows, model.states[from], model.states[v]);
  }, identity(rows));
}

/** Σ P(i) P(j | i) log₂ (P(j | i) / P(j)). */
function mutualInformation(prior, given, own) {
  let sum = 0;
  for (let i = 0; i < prior.length; i++) {
    for (let j = 0; j < own.length; j++) {
      const p = given[i * own.length + j];
      if (prior[i] > 0 && p > 0 && own[j] > 0) sum += prior[i] * p * Math.log2(p / own[j]);
    }
  }
  return Math.max(sum, 0);
}

/** V = √(χ²/n / (min(K, L) − 1)). */
function cramer(prior, given, own) {
  const fewest = Math.min(prior.length, own.length);
  if (fewest < 2) return 0;
  let chi2 = -1;
  for (let i = 0; i < prior.length; i++) {
    for (let j = 0; j < own.length; j++) {
      if (own[j] > 0) chi2 += (prior[i] * given[i * own.length + j] ** 2) / own[j];
    }
  }
  return Math.sqrt(Math.min(Math.max(chi2, 0) / (fewest - 1), 1));
}
