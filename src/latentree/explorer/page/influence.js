// What one node tells about every other: correlations or tables multiplied along the paths from
// it, outward, each edge once.

import { infer } from "./inference.js";
import { neighbors } from "./model.js";

/**
 * Information in bits between a node and every other, and, for Gaussian models, their correlation;
 * for discrete ones Cramér's V.
 */
export function influence(model, node) {
  return model.isGaussian ? gaussianInfluence(model, node) : discreteInfluence(model, node);
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
    const rho = model.parent[v] === from ? model.rho[v] : model.rho[from];
    strength[v] = strength[from] * rho;
    bits[v] = -0.5 * Math.log2((1 - strength[v]) * (1 + strength[v]));
  });
  return { strength, bits };
}

function discreteInfluence(model, node) {
  const { size, states, stateStart } = model;
  const rows = states[node];
  const marginal = marginals(model);
  const prior = marginal.subarray(stateStart[node], stateStart[node + 1]);
  const strength = new Float64Array(size);
  const bits = new Float64Array(size);
  // given[v]: rows × K table of P(v | node).
  const given = new Array(size);
  given[node] = identity(rows);
  strength[node] = 1;
  walkFrom(model, node, (v, from) => {
    given[v] = product(given[from], edgeTable(model, from, v), rows, states[from], states[v]);
    const own = marginal.subarray(stateStart[v], stateStart[v + 1]);
    bits[v] = mutualInformation(prior, given[v], own);
    strength[v] = cramer(prior, given[v], own);
  });
  return { strength, bits };
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

/** P(to | from) of two neighbors, row by row; turned round by Bayes' rule where need be. */
export function edgeTable(model, from, to) {
  const { parent, states, tableStart, theta, stateStart } = model;
  if (parent[to] === from) return theta.subarray(tableStart[to], tableStart[to + 1]);
  const marginal = marginals(model);
  const rows = states[from];
  const columns = states[to];
  const out = new Float64Array(rows * columns);
  for (let i = 0; i < rows; i++) {
    const total = marginal[stateStart[from] + i];
    for (let j = 0; j < columns; j++) {
      const joint = marginal[stateStart[to] + j] * theta[tableStart[from] + j * rows + i];
      out[i * columns + j] = total > 0 ? joint / total : 1 / columns;
    }
  }
  return out;
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

/** V = √(χ²/n / (min(K, L) − 1)), negative when two states of each go with each other crosswise. */
function cramer(prior, given, own) {
  const fewest = Math.min(prior.length, own.length);
  if (fewest < 2) return 0;
  let chi2 = -1;
  for (let i = 0; i < prior.length; i++) {
    for (let j = 0; j < own.length; j++) {
      if (own[j] > 0) chi2 += (prior[i] * given[i * own.length + j] ** 2) / own[j];
    }
  }
  const v = Math.sqrt(Math.min(Math.max(chi2, 0) / (fewest - 1), 1));
  return prior.length === 2 && own.length === 2 && given[3] < given[1] ? -v : v;
}
