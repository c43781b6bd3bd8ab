// Which parts of the picture are taken, so that labels do not lie over each other or over edges.

import { edgeMeets } from "./layout.js";

const RIM = [
  [0, 0],
  [1, 0],
  [-1, 0],
  [0, 1],
  [0, -1],
];
const MOST_STEPS = 400; // cells along a parabola: farther ones are far out of sight

/** Cells of the picture that hold a label or a node already, or that an edge runs through. */
export class Occupancy {
  constructor(width, height, cell) {
    this.cell = cell;
    this.columns = Math.ceil(width / cell) + 1;
    this.rows = Math.ceil(height / cell) + 1;
    this.taken = new Uint8Array(this.columns * this.rows);
    this.edges = new Uint8Array(this.columns * this.rows);
    this.owner = new Int32Array(this.columns * this.rows); // 1 + the node in a cell, 0 for none
  }

  index(x, y) {
    const column = Math.floor(x / this.cell);
    const row = Math.floor(y / this.cell);
    const inside = column >= 0 && row >= 0 && column < this.columns && row < this.rows;
    return inside ? row * this.columns + column : -1;
  }

  /** Cells at the middle and the rim of every node. */
  addNodes(layout, { nodes, scale, dx, dy }, radius) {
    for (const v of nodes) {
      const [x, y] = [layout.x[v] * scale + dx, layout.y[v] * scale + dy];
      for (const [ex, ey] of RIM) {
        const i = this.index(x + ex * radius, y + ey * radius);
        if (i >= 0) this.owner[i] = v + 1;
      }
    }
  }

  /** Cells along the curves in sight. */
  addEdges({ edges, points, starts, boxes }, frame) {
    const { scale, dx, dy } = frame;
    for (const v of edges) {
      if (!edgeMeets({ boxes }, v, frame)) continue;
      for (let i = 2 * starts[v]; i + 5 < 2 * starts[v + 1]; i += 4) {
        const [ax, ay, cx, cy, bx, by] = points.subarray(i, i + 6);
        const length = (Math.hypot(cx - ax, cy - ay) + Math.hypot(bx - cx, by - cy)) * scale;
        const count = Math.min(Math.ceil(length / this.cell), MOST_STEPS);
        for (let k = 0; k <= count; k++) {
          const t = count === 0 ? 0 : k / count;
          const [a, c, b] = [(1 - t) * (1 - t), 2 * t * (1 - t), t * t];
          const x = (a * ax + c * cx + b * bx) * scale + dx;
          const y = (a * ay + c * cy + b * by) * scale + dy;
          const place = this.index(x, y);
          if (place >= 0) this.edges[place] = 1;
        }
      }
    }
  }

  /** Share of a spot that edges run through. */
  crossed(spot) {
    let [count, edges] = [0, 0];
    this.some(spot, (i) => {
      count++;
      edges += this.edges[i];
      return false;
    });
    return count === 0 ? 0 : edges / count;
  }

  /** Whether there is no other label and no other node. */
  isFree(spot) {
    const own = spot.node + 1;
    return !this.some(
      spot,
      (i) => this.taken[i] === 1 || (this.owner[i] > 0 && this.owner[i] !== own),
    );
  }

  /** Take a spot, and a blank before and after it. */
  fill(spot) {
    const take = (i) => {
      this.taken[i] = 1;
      return false;
    };
    this.some(spot, take, 0.5 * spot.font);
  }

  /** Whether a test holds for a cell under the spot's three lines of points. */
  some(spot, test, beyond = 0) {
    const { x, y, angle, width, font, lines = 1 } = spot;
    // Three lines of points along each line of the text.
    const rows = Array.from({ length: 2 * lines + 1 }, (_, i) => 0.45 * font * (i - lines));
    const cos = Math.cos(angle);
    const sin = Math.sin(angle);
    const sign = spot.flipped ? -1 : 1;
    for (let along = -beyond; along <= width + beyond; along += this.cell * 0.8) {
      for (const across of rows) {
        const i = this.index(
          x + sign * along * cos - across * sin,
          y + sign * along * sin + across * cos,
        );
        if (i >= 0 && test(i)) return true;
      }
    }
    return false;
  }
}
