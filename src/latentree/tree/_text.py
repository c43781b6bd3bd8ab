"""A tree drawn in characters, for terminals and test failures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latentree.typing import FloatArray, IntArray


def draw(
    parent: IntArray,
    length: FloatArray,
    order: IntArray,
    names: Sequence[str],
    n_observed: int,
    max_nodes: int,
    support: FloatArray | None = None,
) -> str:
    """Draw one line per node, in traversal order; hidden nodes stand in parentheses."""
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
        sure = ""
        if support is not None and not np.isnan(support[node]):
            sure = f"  {100.0 * support[node]:.0f} %"
        branch = "└─" if is_last else "├─"
        lines.append(f"{indent[above]}{branch} {label}  {length[node]:.3g}{sure}")
        indent[node] = indent[above] + ("   " if is_last else "│  ")
    if len(order) > max_nodes:
        lines.append(f"… and {len(order) - max_nodes} more nodes")
    return "\n".join(lines)
