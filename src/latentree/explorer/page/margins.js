// What a column shows of the standard normal variable y behind it, by the same formulas as in
// Python: answers the interval between two thresholds that holds y, labels without an order odds
// that depend on the neighbor, numbers a value on a scale of their own.

export const HALF_LOG_2PI = 0.5 * Math.log(2 * Math.PI);
const BEYOND = 9; // the score of what lies beyond an end that bounds
const HALVINGS = 60; // of an interval, which is then as narrow as numbers allow
const SIDES = [-1, 0, 1]; // y of the 16 % quantile, the median and the 84 % quantile
const NEAR = 2; // up to here the series is precise, beyond it the fraction
const LEAST = Math.log(1e-300);

/** log P(y > x), precise in both tails. */
function logTail(x) {
  if (x < -NEAR) return Math.log1p(-Math.exp(logTail(-x)));
  if (x > NEAR) {
    // φ(x) / (x + 1/(x + 2/(x + 3/(x + …))))
    let fraction = x;
    for (let k = 200; k > 0; k--) fraction = x + k / fraction;
    return logDensity(x) - Math.log(fraction);
  }
  // ½ − φ(x) (x + x³/3 + x⁵/(3·5) + …)
  let sum = x;
  for (let k = 3, term = x; Math.abs(term) > 1e-18; k += 2) {
    term *= (x * x) / k;
    sum += term;
  }
  return Math.log(0.5 - Math.exp(logDensity(x)) * sum);
}

function logDensity(x) {
  return -0.5 * x * x - HALF_LOG_2PI;
}

/** The y with log P(> y) = log: Newton's steps on a concave function, which end on one side. */
function tailScore(log) {
  const wanted = Math.max(log, LEAST);
  let y = 0;
  for (let i = 0; i < 200; i++) {
    const now = logTail(y);
    const step = (now - wanted) / Math.exp(logDensity(y) - now);
    y += step;
    if (Math.abs(step) < 1e-15 * Math.max(Math.abs(y), 1)) break;
  }
  return y;
}

/** log P(low < y < high); of narrow intervals by the density at the middle. */
function logInterval(low, high) {
  const [a, b] = low + high > 0 ? [low, high] : [-high, -low];
  const middle = (a + b) / 2;
  if (b - a < 1e-3 && Number.isFinite(middle)) return Math.log(b - a) + logDensity(middle);
  const most = logTail(a);
  return most + Math.log1p(-Math.exp(Math.min(logTail(b) - most, 0)));
}

/** P(low < y < high), a difference in the nearer tail. */
function interval(low, high) {
  const [a, b] = low > 0 ? [low, high] : [-high, -low];
  return Math.exp(logTail(a)) - Math.exp(logTail(b));
}

/** P(level | z) of answers or labels whose neighbor is at z, with correlation rho. */
export function levelsAt({ thresholds, intercepts, slopes }, z, rho) {
  if (thresholds) {
    const spread = Math.sqrt(1 - rho * rho);
    const ends = [-Infinity, ...thresholds, Infinity].map((end) => (end - rho * z) / spread);
    return ends.slice(1).map((end, k) => interval(ends[k], end));
  }
  const logs = intercepts.map((a, c) => a + slopes[c] * z);
  const most = Math.max(...logs);
  const odds = Array.from(logs, (log) => Math.exp(log - most));
  const sum = odds.reduce((a, b) => a + b, 0);
  return odds.map((each) => each / sum);
}

// Numbers: normal (a mean and an sd), or linear between quantiles with Pareto tails.

/** Straight from one list of ascending numbers to another; beyond them their ends. */
function between(x, from, to) {
  if (x <= from[0]) return to[0];
  const k = placeOf(x, from);
  if (k + 1 >= from.length) return to.at(-1);
  return ((to[k + 1] - to[k]) / (from[k + 1] - from[k])) * (x - from[k]) + to[k];
}

/** The number of the last of ascending numbers that is at most x. */
function placeOf(x, ascending) {
  let [low, high] = [0, ascending.length];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (ascending[middle] <= x) low = middle;
    else high = middle;
  }
  return low;
}

/** The end of a list beyond which x lies: which side, its place and its tail; or nothing. */
function beyond(x, list, tails) {
  if (x < list[0]) return { side: -1, end: 0, scale: tails[0][0], shape: tails[0][1] };
  const end = list.length - 1;
  return x > list[end] ? { side: 1, end, scale: tails[1][0], shape: tails[1][1] } : null;
}

/** log (1 + ξd)^(−1/ξ), the share of a tail beyond the distance d; with 1/ξ + 1 its density. */
function tailLog(d, shape, more = 0) {
  if (shape === 0) return -d;
  return -Math.log1p(Math.max(shape * d, -1 + 1e-12)) * (more + 1 / shape);
}

/** The normal variable behind a value. */
export function scoreOf({ mean, sd, values, scores, tails }, x) {
  if (!values) return (x - mean) / sd;
  const out = beyond(x, values, tails);
  if (!out) return between(x, values, scores);
  const { side, end, scale, shape } = out;
  if (scale === 0) return side * BEYOND;
  const d = (side * (x - values[end])) / scale;
  return side * tailScore(logTail(side * scores[end]) + tailLog(d, shape));
}

/** The value of the normal variable y; counts are whole numbers. */
export function valueAt({ mean, sd, values, scores, tails, isCount }, y) {
  if (!values) return mean + sd * y;
  const out = beyond(y, scores, tails);
  let x = between(y, scores, values);
  if (out && out.scale > 0) {
    const { side, end, scale, shape } = out;
    const logs = logTail(side * y) - logTail(side * scores[end]);
    const d = shape === 0 ? -logs : Math.expm1(-shape * logs) / shape;
    x = values[end] + side * scale * d;
  }
  return isCount ? Math.max(wholeOf(x), 0) : x;
}

/** The nearest whole number, of two the even one. */
function wholeOf(x) {
  const near = Math.round(x);
  return near - x === 0.5 && near % 2 !== 0 ? near - 1 : near;
}

/** log dy/dx at a value. */
export function logSlope(margin, x) {
  const { sd, values, scores, tails } = margin;
  if (!values) return -Math.log(sd);
  const out = beyond(x, values, tails);
  if (out && out.scale > 0) {
    const { side, end, scale, shape } = out;
    const d = (side * (x - values[end])) / scale;
    const own = logTail(side * scores[end]) - Math.log(scale) + tailLog(d, shape, 1);
    return own - logDensity(scoreOf(margin, x));
  }
  if (values.length < 2) return 0;
  // Where two pieces meet, the lower one counts.
  let k = Math.min(placeOf(x, values), values.length - 2);
  if (x === values[k] && k > 0) k--;
  return Math.log((scores[k + 1] - scores[k]) / (values[k + 1] - values[k]));
}

// A number whose normal variable is a mixture of normal ones, with some centers and one spread: so
// it is given its neighbor on a grid, and given anything else.

/** Log-probabilities of a value as it was recorded, one a center. */
export function scoreLogs({ margin, resolution, centers, spread }, value) {
  const [low, high] = [-0.5, 0.5].map((side) => scoreOf(margin, value + side * resolution));
  return centers.map((y) => logInterval((low - y) / spread, (high - y) / spread));
}

/** Mean density within some width around a value; for counts 1. */
export function scoreDensity(emission, weights, width) {
  const wide = { ...emission, resolution: width };
  return (x) =>
    scoreLogs(wide, x).reduce((sum, log, k) => sum + weights[k] * Math.exp(log), 0) / width;
}

/** The value that is exceeded with some probability. */
export function quantileOf(emission, weights, share) {
  return valueAt(emission.margin, exceededScore(emission, weights, share));
}

/** The y that is exceeded: Newton's steps, and half the way where they leave what holds the y. */
function exceededScore({ centers, spread }, weights, share) {
  const away = spread * tailScore(Math.log(share));
  let low = Math.min(...centers) + away;
  let high = Math.max(...centers) + away;
  let y = weights.reduce((sum, w, k) => sum + w * (centers[k] + away), 0);
  for (let i = 0; i < HALVINGS; i++) {
    const excess = exceeding(centers, spread, weights, y) - share;
    if (Number.isNaN(excess)) return excess; // of what is impossible
    if (excess > 0) low = y;
    else high = y;
    let slope = 0;
    weights.forEach((w, k) => {
      slope += (w * Math.exp(logDensity((y - centers[k]) / spread))) / spread;
    });
    const tried = y + excess / slope;
    const following = low <= tried && tried <= high ? tried : (low + high) / 2;
    const moved = Math.abs(following - y);
    y = following;
    if (moved < 1e-12) break;
  }
  return y;
}

function exceeding(centers, spread, weights, y) {
  return weights.reduce(
    (sum, w, k) => (w === 0 ? sum : sum + w * Math.exp(logTail((y - centers[k]) / spread))),
    0,
  );
}

/** Median, and the square of half the distance between the 16 % and 84 % quantiles. */
export function rankMoments(quantile) {
  const [low, middle, high] = SIDES.map((side) => quantile(Math.exp(logTail(side))));
  return [middle, ((high - low) / 2) ** 2];
}

/** The value that is exceeded in a mixture of numbers, which lies between those of its parts. */
export function mixedQuantile(parts, share) {
  const { isCount } = parts[0].emission.margin;
  const ends = parts.map(({ emission, weights }) =>
    valueAt({ ...emission.margin, isCount: false }, exceededScore(emission, weights, share)),
  );
  let [low, high] = [Math.min(...ends), Math.max(...ends)];
  for (let i = 0; i < HALVINGS; i++) {
    const middle = (low + high) / 2;
    const above = parts.reduce((sum, { emission, weights, part }) => {
      const y = scoreOf(emission.margin, middle);
      return sum + part * exceeding(emission.centers, emission.spread, weights, y);
    }, 0);
    if (above > share) low = middle;
    else high = middle;
  }
  const found = (low + high) / 2;
  return isCount ? Math.max(wholeOf(found), 0) : found;
}

const CELLS = 32; // intervals by which information is measured

/** A number for neighbors at some points: medians, half the distances of 16 % and 84 % quantiles. */
export function scoreEmission(margin, points, rho) {
  const spread = Math.sqrt(1 - rho * rho);
  const centers = Float64Array.from(points, (z) => rho * z);
  const at = (sides) => centers.map((y) => valueAt(margin, y + sides * spread));
  const [low, mean, high] = [-1, 0, 1].map(at);
  const { isCount, resolution, origin } = margin;
  const made = { margin, isCount, resolution, origin, width: CELLS };
  let cells = null;
  return {
    ...made,
    centers,
    spread,
    mean,
    variance: low.map((value, k) => ((high[k] - value) / 2) ** 2),
    /** P(interval | state), row by row; the intervals have equal probabilities. */
    get cells() {
      cells ??= intervalTable(centers, spread);
      return cells;
    },
  };
}

function intervalTable(centers, spread) {
  const ends = Array.from({ length: CELLS + 1 }, (_, k) => {
    const share = 1 - k / CELLS;
    return share === 1 ? -Infinity : share === 0 ? Infinity : tailScore(Math.log(share));
  });
  const row = (y) =>
    ends.slice(1).map((end, k) => interval((ends[k] - y) / spread, (end - y) / spread));
  return Float64Array.from([...centers].flatMap(row));
}
