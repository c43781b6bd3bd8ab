"""Packing the branches of a tree around a center, without overlap.

The disc is cut into rings of one thickness, and of a subtree only its outline is kept: the smallest
and the largest angle that it fills in every ring. Subtrees are turned toward each other until
their outlines meet in some ring.

Children come in order of growing subtrees and are added from the last. The largest hands its
outline over to its parent and the others are merged into it, each before those already there: so no
more than log₂(n) + 2 outlines are alive, and a merge costs the rings of the smaller subtree.

:func:`visits` and :func:`pack` are plain functions, as are their helpers, and have compiled twins:
for a small tree it is faster to run them uncompiled than to wait for the compiler.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from latentree._kernels.compiling import kernel

LABEL, EDGE, DOT, GAP = 0.5, 0.25, 0.4, 0.4
"""Half the width of a label's strip, of an edge and of a dot; room between subtrees. In units."""


def visits(root, starts, children):
    """Nodes of a component, each after its descendants, and larger subtrees first."""
    out = np.empty(starts.size, np.int64)
    waiting = np.empty(starts.size, np.int64)
    waiting[0] = root
    count, top = 0, 1
    while top > 0:  # parents first and small children first: the reverse of what is asked for
        top -= 1
        v = waiting[top]
        out[count] = v
        count += 1
        for i in range(starts[v + 1] - 1, starts[v] - 1, -1):
            waiting[top] = children[i]
            top += 1
    return out[:count][::-1].copy()


# Outlines: low and high angles by ring, and the span of rings in which they are known. -----------


@register_jitable(error_model="numpy")
def _extend(low, high, span, first, last):
    """Let an outline know the rings from first to last."""
    if span[0] > span[1]:
        span[0], span[1] = first, first - 1
    while span[0] > first:
        span[0] -= 1
        low[span[0]], high[span[0]] = np.inf, -np.inf
    while span[1] < last:
        span[1] += 1
        low[span[1]], high[span[1]] = np.inf, -np.inf


@register_jitable(error_model="numpy")
def _cover(low, high, span, first, last, angle, half, ring):
    """Add a strip along a ray, of so many units half the width."""
    _extend(low, high, span, first, last)
    for b in range(first, last + 1):
        aside = half / (max(b, 0.5) * ring)  # at the inner side of the ring, where it is widest
        low[b] = min(low[b], angle - aside)
        high[b] = max(high[b], angle + aside)


@register_jitable(error_model="numpy")
def _merge(low, high, span, other_low, other_high, other_span, turn):
    """Add another outline, turned."""
    _extend(low, high, span, other_span[0], other_span[1])
    for b in range(other_span[0], other_span[1] + 1):
        low[b] = min(low[b], other_low[b] + turn)
        high[b] = max(high[b], other_high[b] + turn)


@register_jitable(error_model="numpy")
def _before(low, span, first, last, half, ring):
    """Return the largest angle of a strip that ends before an outline begins."""
    angle = np.inf
    for b in range(max(first, span[0]), min(last, span[1]) + 1):
        angle = min(angle, low[b] - half / (max(b, 0.5) * ring))
    return angle


@register_jitable(error_model="numpy")
def _turn_before(low, span, other_high, other_span, ring):
    """Return the largest turn by which another outline ends before this one begins."""
    turn = np.inf
    for b in range(max(other_span[0], span[0]), min(other_span[1], span[1]) + 1):
        turn = min(turn, low[b] - other_high[b] - GAP / (max(b, 0.5) * ring))
    return turn


# Parts of a tree ---------------------------------------------------------------------------------


@register_jitable(error_model="numpy")
def _add_leaf(low, high, span, at, end, turned, is_first, ring):
    """Add a leaf and the straight part of its edge, before what is there; return its angle."""
    inner, middle, outer = int(turned / ring), int(at / ring), int(end / ring)
    angle = 0.0
    if not is_first:
        angle = min(
            _before(low, span, middle, outer, LABEL, ring),
            _before(low, span, inner, middle, EDGE, ring),
        )
    _cover(low, high, span, middle, outer, angle, LABEL, ring)
    _cover(low, high, span, inner, middle, angle, EDGE, ring)
    return angle


@register_jitable(error_model="numpy")
def _add_node(low, high, span, at, turned, angle, left, right, ring):
    """Add an inner node and the band in which its edges turn toward its children."""
    inner, outer = int(at / ring), int(turned / ring)
    _cover(low, high, span, inner, outer, min(left, angle), EDGE, ring)
    _cover(low, high, span, inner, outer, max(right, angle), EDGE, ring)
    _cover(
        low, high, span, int(max(at - DOT, 0.0) / ring), int((at + DOT) / ring), angle, DOT, ring
    )


def pack(visited, parent, starts, children, level, nearest, label, radius, ring, place, middle):
    """Turn the branches of one component together; return the largest angle it fills of any ring.

    Parameters
    ----------
    visited : its nodes, as :func:`visits` lists them
    level, nearest : how far out a node and its nearest child are, as shares of the radius
    label : length of every node's label in units, 0 for none
    radius, ring : of the disc, and the thickness of a ring, in units
    place, middle : arrays to write to
        Angles of every node in the outline of its parent and in its own: less the parent's
        ``middle``, ``place`` is the turn from the parent.
    """
    longest, n_outlines = 1.0, 4
    for v in visited:
        longest = max(longest, label[v])
    while 1 << (n_outlines - 3) < visited.size:
        n_outlines += 1
    n_rings = int((radius + longest) / ring) + 3
    low, high = np.empty((n_outlines, n_rings)), np.empty((n_outlines, n_rings))
    span = np.empty((n_outlines, 2), np.int64)
    top = -1  # the outline at work
    for v in visited:
        p, at = parent[v], radius * level[v]
        is_leaf = starts[v] == starts[v + 1]
        if not is_leaf:
            left, right = place[children[starts[v]]], place[children[starts[v + 1] - 1]]
            if label[v] == 0.0:
                middle[v] = (left + right) / 2
        if p < 0:
            break
        siblings = children[starts[p] : starts[p + 1]]
        turned = radius * nearest[p]  # here all edges from the parent run straight outward
        is_first = v == siblings[-1]
        if is_leaf:
            if is_first:
                top += 1
                span[top] = (1, 0)
            middle[v] = 0.0
            end = at + max(label[v], LABEL)
            place[v] = _add_leaf(low[top], high[top], span[top], at, end, turned, is_first, ring)
        else:
            _add_node(low[top], high[top], span[top], at, radius * nearest[v],
                      middle[v], left, right, ring)  # fmt: skip
            _cover(low[top], high[top], span[top], int(turned / ring), int(at / ring),
                   middle[v], EDGE, ring)  # fmt: skip
            place[v] = middle[v]
            if not is_first:
                top -= 1
                turn = _turn_before(low[top], span[top], high[top + 1], span[top + 1], ring)
                _merge(low[top], high[top], span[top],
                       low[top + 1], high[top + 1], span[top + 1], turn)  # fmt: skip
                place[v] += turn
        if label[p] > 0.0 and v == siblings[siblings.size // 2]:  # amid them the parent's label
            inner = int(radius * level[p] / ring)
            outer = int(max(radius * level[p] + label[p], turned) / ring)
            middle[p] = _before(low[top], span[top], inner, outer, LABEL, ring)
            _cover(low[top], high[top], span[top], inner, outer, middle[p], LABEL, ring)
    filled = high[top, span[top, 0] : span[top, 1] + 1] - low[top, span[top, 0] : span[top, 1] + 1]
    return filled.max()


compiled_visits, compiled_pack = kernel()(visits), kernel()(pack)
