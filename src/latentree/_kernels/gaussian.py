"""Exact inference in Gaussian trees: one pass up, one pass down, O(rows × nodes).

Every node has mean 0 and variance 1; node v given its parent p is N(ρ_v·x_p, q_v) with
q_v = 1 − ρ_v² (ρ = 0, q = 1 at a root). What is known below node v is the likelihood
exp(−½·J_v·x² + h_v·x): the precision J depends only on which cells are present, h on the values.
Rows are therefore taken in groups with the same cells present: the gains are computed once a
group, and the rows of a group run through the tree ``LANES`` at a time.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.compiling import kernel

LANES = 8


@kernel()
def group_gains(present, order, parent, rho, message, quadratic, gain, offset, inner):
    """Gains of one group of rows; returns the constant of the log-likelihood.

    With s = 1/(1 + q·J) the node sends upward, as a function of x_p,
      present: h = ρ/q·x,   J = ρ²/q,    log-likelihood h_v·x − ½(J_v + 1/q)·x² − ½·log 2πq
      absent:  h = ρ·s·h_v, J = ρ²·J_v·s, log-likelihood ½·q·s·h_v² − ½·log(1 + q·J_v)
    and downward, absent nodes only, x_v = ρ·s·x_p + q·s·h_v ± sqrt(q·s).
    ``message``, ``quadratic``, ``gain`` and ``offset`` hold these factors; ``inner`` marks nodes
    that have received a message (h = 0 at the others).
    """
    n = parent.size
    precision = np.zeros(n)
    inner[:] = False
    constant = 0.0
    for position in range(n - 1, -1, -1):
        v = order[position]
        r = rho[v]
        q = (1.0 - r) * (1.0 + r)
        J = precision[v]
        if present[v]:
            message[v] = r / q
            quadratic[v] = 0.5 * (J + 1.0 / q)
            gain[v] = 0.0
            offset[v] = 0.0
            constant -= 0.5 * np.log(2.0 * np.pi * q)
            up = r * r / q
        else:
            s = 1.0 / (1.0 + q * J)
            message[v] = r * s
            quadratic[v] = 0.5 * q * s
            gain[v] = r * s
            offset[v] = q * s
            constant -= 0.5 * np.log1p(q * J)
            up = r * r * J * s
        p = parent[v]
        if p >= 0 and up > 0.0:
            precision[p] += up
            inner[p] = True
    return constant


@kernel()
def _load(values, rows, lanes, column, center, scale, out):
    for b in range(LANES):
        row = rows[b] if b < lanes else rows[lanes - 1]
        out[b] = (values[row, column] - center) / scale


@kernel()
def _up(
    values,
    rows,
    lanes,
    column,
    center,
    scale,
    order,
    parent,
    message,
    quadratic,
    present,
    inner,
    h,
    x,
    total,
):
    for position in range(order.size - 1, -1, -1):
        v = order[position]
        p = parent[v]
        if present[v]:
            _load(values, rows, lanes, column[v], center[v], scale[v], x)
            if inner[v]:
                for b in range(LANES):
                    total[b] += x[b] * (h[v, b] - quadratic[v] * x[b])
            else:
                for b in range(LANES):
                    total[b] -= quadratic[v] * x[b] * x[b]
            if p >= 0:
                for b in range(LANES):
                    h[p, b] += message[v] * x[b]
        elif inner[v]:
            for b in range(LANES):
                total[b] += quadratic[v] * h[v, b] * h[v, b]
            if p >= 0:
                for b in range(LANES):
                    h[p, b] += message[v] * h[v, b]


@kernel()
def _down(
    values,
    rows,
    lanes,
    column,
    center,
    scale,
    order,
    parent,
    gain,
    offset,
    present,
    inner,
    h,
    x,
    states,
):
    for v in order:
        p = parent[v]
        if present[v]:
            _load(values, rows, lanes, column[v], center[v], scale[v], x)
        else:
            spread = np.sqrt(offset[v])
            for b in range(lanes):
                x[b] = spread * states[rows[b], v]
            if inner[v]:
                for b in range(lanes):
                    x[b] += offset[v] * h[v, b]
            if p >= 0:
                for b in range(lanes):
                    x[b] += gain[v] * states[rows[b], p]
        for b in range(lanes):
            states[rows[b], v] = x[b]


@kernel()
def run_groups(
    values,
    column,
    center,
    scale,
    first,
    last,
    starts,
    members,
    order,
    parent,
    rho,
    log_likelihood,
    states,
    variances,
    covariances,
):
    """Run groups ``first`` to ``last`` of rows through the tree.

    Node v reads column ``column[v]`` of ``values`` (−1: none); NaN is an absent cell, the same
    in all rows of a group (``members[starts[g]:starts[g + 1]]``). ``log_likelihood`` is filled in
    standard units. If ``states`` has rows, it comes in as noise (zeros give posterior means,
    normal draws give draws) and leaves as the values of all nodes. If ``variances`` has rows, row g
    receives the posterior variances of the group, and ``covariances`` those with the parents.
    """
    n = parent.size
    message, quadratic, gain, offset = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    inner = np.empty(n, np.bool_)
    present = np.empty(n, np.bool_)
    h = np.empty((n, LANES))
    x = np.empty(LANES)
    total = np.empty(LANES)
    for g in range(first, last):
        sample = members[starts[g]]
        for v in range(n):
            present[v] = column[v] >= 0 and not np.isnan(values[sample, column[v]])
        constant = group_gains(present, order, parent, rho, message, quadratic, gain, offset, inner)
        for v in range(n):
            if present[v]:
                constant -= np.log(scale[v])
        if variances.shape[0] > 0:
            for v in order:
                above = variances[g, parent[v]] if parent[v] >= 0 else 0.0
                variances[g, v] = offset[v] + gain[v] * gain[v] * above
                covariances[g, v] = gain[v] * above
        for block in range(starts[g], starts[g + 1], LANES):
            lanes = min(LANES, starts[g + 1] - block)
            rows = members[block : block + lanes]
            h[:] = 0.0
            total[:] = constant
            _up(
                values,
                rows,
                lanes,
                column,
                center,
                scale,
                order,
                parent,
                message,
                quadratic,
                present,
                inner,
                h,
                x,
                total,
            )
            for b in range(lanes):
                log_likelihood[rows[b]] = total[b]
            if states.shape[0] > 0:
                _down(
                    values,
                    rows,
                    lanes,
                    column,
                    center,
                    scale,
                    order,
                    parent,
                    gain,
                    offset,
                    present,
                    inner,
                    h,
                    x,
                    states,
                )
