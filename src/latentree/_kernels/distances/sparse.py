"""Counts of rows in which two sparse columns are both 1.

A list of lists is ``starts``/``items``: by column its rows, by row its columns, both ascending.
"""

from __future__ import annotations

from latentree._kernels.compiling import kernel


@kernel()
def common_by_rows(chosen, starts, rows, weights, row_starts, columns, place, lowest, out):
    """Add to ``out[a, place[j]]`` the weight of the rows in which chosen[a] and j are both 1.

    Columns j with ``place[j]`` < 0 are not wanted; ``lowest`` is the first that is. As many steps
    as there are ones from that column on in the rows where chosen[a] is 1.
    """
    for a in range(chosen.size):
        line = out[a]
        for row in rows[starts[chosen[a]] : starts[chosen[a] + 1]]:
            w = weights[row] if weights.size else 1.0
            first = row_starts[row]
            at = row_starts[row + 1] - 1
            # Columns ascend: from the last one back to the first that is wanted.
            while at >= first and columns[at] >= lowest:
                p = place[columns[at]]
                if p >= 0:
                    line[p] += w
                at -= 1


@kernel()
def _overlap(x, y, weights):
    """Weight of the rows that two ascending lists have in common; x is the shorter one."""
    total = 0.0
    # Where one list is much longer, each row of the other is looked up by bisection,
    # |x|·log |y| steps; ``low`` never goes back, as both lists ascend.
    if 8 * x.size < y.size:
        low = 0
        for row in x:
            high = y.size
            while low < high:
                middle = (low + high) // 2
                if y[middle] < row:
                    low = middle + 1
                else:
                    high = middle
            if low == y.size:
                break
            if y[low] == row:
                total += weights[row] if weights.size else 1.0
        return total
    # Else both are walked through side by side, |x| + |y| steps.
    p, q = 0, 0
    while p < x.size and q < y.size:
        if x[p] == y[q]:
            total += weights[x[p]] if weights.size else 1.0
            p += 1
            q += 1
        elif x[p] < y[q]:
            p += 1
        else:
            q += 1
    return total


@kernel()
def common_of_pairs(first, second, starts, rows, weights, out):
    """Set ``out[p]`` to the weight of the rows in which first[p] and second[p] are both 1."""
    for p in range(first.size):
        x = rows[starts[first[p]] : starts[first[p] + 1]]
        y = rows[starts[second[p]] : starts[second[p] + 1]]
        out[p] = _overlap(x, y, weights) if x.size <= y.size else _overlap(y, x, weights)
