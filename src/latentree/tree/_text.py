"""A tree drawn in characters, for terminals and test failures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def draw(
    parent: NDArray[np.int64],
    length: NDArray[np.float64],
    order: NDArray[np.int64],
    names: Sequence[str],
    n_observed: int,
    max_nodes: int,
) -> str:
    """Draw one line a node, in traversal order; hidden nodes stand in parentheses."""
    shown = order[:max_nodes]
    last_child: dict[int, int] = {}
    for node in shown:
        last_child[int(parent[node])] = int(node)
    indent: dict[int, str] = {}
    lines = []
    for node in map(int, shown):
        above = int(parent[node])
        label = names[node] if node < n_observed else f"({names[node]})"
        if above < 0:
            indent[node] = ""
            lines.append(label)
            continue
        is_last = last_child[above] == node
        lines.append(f"{indent[above]}{'└─' if is_last else '├─'} {label}  {length[node]:.3g}")
        indent[node] = indent[above] + ("   " if is_last else "│  ")
    if len(order) > max_nodes:
        lines.append(f"… and {len(order) - max_nodes} more nodes")
    return "\n".join(lines)
