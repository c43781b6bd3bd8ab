// How strongly, and with which sign, the two ends of every edge depend on each other; as the
// pictures of latentree.plot have it.

import { cramer, marginals } from "./influence.js";
import { isHidden } from "./model.js";

/**
 * Strength of the edge above every node as the model has it (`signed`), and which hidden variables
 * are drawn turned round (`turned`), so that the least weight lies on negative edges: the sign of a
 * hidden variable is a matter of convention.
 */
export function edgeStrengths(model) {
  const signed = model.isGaussian ? Float64Array.from(model.rho) : associations(model);
  const turned = fewestNegative(model, signed);
  const drawn = signed.map((value, v) => {
    const above = model.parent[v];
    return above < 0 ? 0 : value * turned[v] * turned[above];
  });
  return { signed, drawn, turned };
}

function associations(model) {
  const { size, parent, theta, tableStart, stateStart } = model;
  const marginal = marginals(model);
  const of = (v) => marginal.subarray(stateStart[v], stateStart[v + 1]);
  const out = new Float64Array(size);
  for (let v = 0; v < size; v++) {
    if (parent[v] < 0) continue;
    out[v] = cramer(of(parent[v]), theta.subarray(tableStart[v], tableStart[v + 1]), of(v));
  }
  return out;
}

/** From the leaves up the least cost of both choices, from the root down the choices: ±1. */
function fewestNegative(model, signed) {
  const { size, order, parent } = model;
  const price = (v, own, side) => Math.max(0, own === side ? -signed[v] : signed[v]);
  const cost = turningCosts(model, price);
  const chosen = new Int8Array(size);
  for (const v of order) {
    const side = parent[v] < 0 ? 0 : chosen[parent[v]];
    const edge = (own) => (parent[v] < 0 ? 0 : price(v, own, side));
    chosen[v] = cost[1][v] + edge(1) < cost[0][v] + edge(0) ? 1 : 0;
  }
  return chosen.map((turn) => 1 - 2 * turn);
}

/** The least weight on negative edges below every node, when it is not turned, and when it is. */
function turningCosts(model, price) {
  const { size, order, parent } = model;
  const mayTurn = (v) => isHidden(model, v) && (model.isGaussian || model.states[v] === 2);
  const cost = [new Float64Array(size), new Float64Array(size)];
  for (let v = 0; v < size; v++) if (!mayTurn(v)) cost[1][v] = Number.POSITIVE_INFINITY;
  for (let i = size - 1; i >= 0; i--) {
    const v = order[i];
    if (parent[v] < 0) continue;
    for (const side of [0, 1]) {
      const stay = cost[0][v] + price(v, 0, side);
      cost[side][parent[v]] += Math.min(stay, cost[1][v] + price(v, 1, side));
    }
  }
  return cost;
}
