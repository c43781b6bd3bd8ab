// Hidden numbers on a grid: every hidden node has a state a point, and the tables are those of
// normal variables with some correlations, as in Python. A hidden number that is supposed takes its
// grid along, so that it is one of the points.

import { levelsAt, scoreEmission } from "./margins.js";

/** Make tables and emissions of correlations and margins; `pairs` are of columns that are neighbors. */
export function readGrid(model, pairs) {
  const { size, observed, tableStart, points } = model;
  model.numeric.fill(1, observed);
  model.theta = new Float64Array(tableStart[size]);
  model.emissions = [];
  for (let v = 0; v < size; v++) {
    if (model.kinds[v] === "real" || model.kinds[v] === "count") model.numeric[v] = 1;
    if (v in pairs) model.theta.set(pairs[v], tableStart[v]);
    else place(model, v, () => points);
  }
}

/** Make the table, or the emission, of a node; `pointsOf` has the grid of every hidden node. */
function place(model, v, pointsOf) {
  const { parent, observed, numeric, rho, margins } = model;
  const above = parent[v];
  const rows = above < 0 ? [0] : pointsOf(above);
  const r = above < 0 ? 0 : rho[v];
  if (v < observed && numeric[v]) {
    model.emissions[v] = scoreEmission(margins[v], rows, r);
    return;
  }
  const row = (z) => (v < observed ? levelsAt(margins[v], z, r) : steps(pointsOf(v), r * z, r));
  const lonely = above < 0 && v < observed && margins[v].slopes;
  const table = lonely ? averaged(margins[v], pointsOf(v)) : [...rows].flatMap(row);
  const safe = table.map((share) => Math.max(share, 1e-300));
  model.theta.set(safe, model.tableStart[v]);
}

/** Shares of the points of a hidden number whose mean is known. */
function steps(points, mean, rho) {
  const density = Array.from(points, (x) => Math.exp((-0.5 * (x - mean) ** 2) / (1 - rho * rho)));
  const sum = density.reduce((a, b) => a + b, 0);
  return density.map((each) => each / sum);
}

/** Shares of labels that depend on a normal variable of their own. */
function averaged(margin, points) {
  const weights = steps(points, 0, 0);
  const tables = Array.from(points, (z) => levelsAt(margin, z, 1));
  return tables[0].map((_, c) => weights.reduce((sum, w, k) => sum + w * tables[k][c], 0));
}

/** The number of the point nearest to a value. */
export function nearestPoint({ points }, value) {
  const place = Math.ceil((value - points[0]) / (points[1] - points[0]) - 0.5);
  return Math.min(Math.max(place, 0), points.length - 1);
}

/** The model with the grids of hidden numbers that are supposed moved onto their values. */
export function movedGrids(model, evidence) {
  const moved = new Map();
  for (const [v, value] of evidence) {
    if (!model.points || v < model.observed) continue;
    const off = value - model.points[nearestPoint(model, value)];
    if (off !== 0)
      moved.set(
        v,
        model.points.map((x) => x + off),
      );
  }
  if (moved.size === 0) return model;
  const { theta, emissions, parent } = model;
  const made = { ...model, theta: theta.slice(), emissions: emissions.slice(), logTheta: null };
  for (let v = 0; v < model.size; v++) {
    if (moved.has(v) || moved.has(parent[v])) place(made, v, (u) => moved.get(u) ?? model.points);
  }
  return made;
}
