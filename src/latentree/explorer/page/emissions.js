// Leaves that emit numbers: how likely a value is for every state of their neighbor, by the same
// formulas as in Python, so that both agree to the last digits.

import { HALF_LOG_2PI, scoreDensity, scoreLogs } from "./margins.js";
import { rankMargin } from "./model.js";

const FINE = 0.04; // standard deviations below which a cell is taken at its middle

// Gauss-Legendre quadrature with nine nodes: one side of the nodes, and their weights.
const NODES = [0, 0.3242534234038089, 0.6133714327005904, 0.8360311073266358, 0.9681602395076261];
const WEIGHTS = [
  0.3302393550012598, 0.31234707704000286, 0.26061069640293544, 0.1806481606948574,
  0.08127438836157441,
];

/** Log-probabilities of a value as it was recorded, one a state. */
export function emissionLogs(emission, value) {
  const { isCount, mean, spread, resolution } = emission;
  if (emission.margin) return scoreLogs(emission, value);
  return mean.map((mu, k) =>
    isCount ? countLog(emission, value, k) : normalLog(value, mu, spread[k], resolution),
  );
}

export function emissionVariance({ isCount, mean, spread, variance, zeros, rate }, k) {
  if (variance) return variance[k];
  if (!isCount) return spread[k] ** 2;
  const second = rate[k] + rate[k] ** 2 / spread[k] + rate[k] ** 2;
  return zeros[k] === 0 ? second - rate[k] ** 2 : (1 - zeros[k]) * second - mean[k] ** 2;
}

/** log P(x − δ/2 < X < x + δ/2) of a normal variable, δ being the resolution. */
function normalLog(x, mean, sd, step) {
  const z = (x - mean) / sd;
  if (step / sd < FINE) return Math.log(step) - Math.log(sd) - HALF_LOG_2PI - 0.5 * z * z;
  const half = (0.5 * step) / sd;
  const terms = [];
  NODES.forEach((node, i) => {
    for (const side of i === 0 ? [1] : [1, -1]) {
      terms.push(Math.log(WEIGHTS[i] / 2) - 0.5 * (z + side * half * node) ** 2);
    }
  });
  const most = Math.max(...terms);
  const sum = terms.reduce((total, term) => total + Math.exp(term - most), 0);
  return most + Math.log(sum) + Math.log(2 * half) - HALF_LOG_2PI;
}

/** log P(x) of a count in a state, some of whose zeros are of their own. */
function countLog({ rate, spread, zeros }, x, k) {
  const log = binomialLog(x, rate[k], spread[k]) + Math.log1p(-zeros[k]);
  return x === 0 && zeros[k] > 0 ? Math.log(zeros[k] + Math.exp(log)) : log;
}

/** log P(x) of a negative binomial number with variance μ + μ²/r, Poisson for r = ∞. */
function binomialLog(x, mean, size) {
  if (x < 0) return Number.NEGATIVE_INFINITY;
  if (size === Number.POSITIVE_INFINITY) return x * Math.log(mean) - mean - logGamma(x + 1);
  return (
    logGamma(x + size) -
    logGamma(size) +
    x * Math.log(mean / (size + mean)) -
    size * Math.log1p(mean / size) -
    logGamma(x + 1)
  );
}

/** log Γ(x) for x > 0: Stirling's series from 12 on, and Γ(x) = Γ(x + 1)/x below. */
function logGamma(x) {
  let shift = 0;
  let at = x;
  for (; at < 12; at++) shift += Math.log(at);
  const inverse = 1 / (at * at);
  const series =
    (1 / 12 - inverse * (1 / 360 - inverse * (1 / 1260 - inverse * (1 / 1680 - inverse / 1188)))) /
    at;
  return (at - 0.5) * Math.log(at) - at + HALF_LOG_2PI + series - shift;
}

/** What a number is given what is known: an emission, and weights of its states. */
export function mixtureOf(model, v, { mean, variance, probability, scores, scoreVariance }) {
  if (!model.isGaussian) {
    const above = model.parent[v];
    const [from, to] = [model.stateStart[above], model.stateStart[above + 1]];
    return [model.emissions[v], above < 0 ? [1] : probability.subarray(from, to)];
  }
  const margin = rankMargin(model, v);
  const one = margin
    ? { margin, centers: [scores[v]], spread: Math.sqrt(scoreVariance[v]) }
    : { isCount: false, mean: mean.subarray(v, v + 1), spread: [Math.sqrt(variance[v])] };
  return [one, [1]];
}

/**
 * Density of a real, or probability of a count, when its neighbor's states have some weights; on a
 * scale from ranks, which has as many steps as quantiles, the mean within some width.
 */
export function mixtureDensity(emission, weights, width) {
  const { isCount, mean, spread } = emission;
  if (emission.margin) return scoreDensity(emission, weights, isCount ? 1 : width);
  const one = (value, k) => {
    if (isCount) return Math.exp(countLog(emission, Math.round(value), k));
    const z = (value - mean[k]) / spread[k];
    return Math.exp(-0.5 * z * z - HALF_LOG_2PI) / spread[k];
  };
  return (value) => mean.reduce((sum, _, k) => sum + weights[k] * one(value, k), 0);
}
