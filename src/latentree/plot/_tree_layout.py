"""Where the nodes of a tree go: linear time, no recursion, no drawing library.

Both layouts map one arrangement to the plane. Every observed node owns a strip for its
label that no edge and no other label enters; a leaf stands where its strip begins. The slot of a
node and its level (0 in the middle of the tree, 1 at the farthest leaf) become a row and a column
in the layered layout, an angle and a radius in the radial one. There the branches are turned
toward each other until they touch, so that shallow ones nest beside deep ones, and the disc is
the smallest in which they fit.

Edges never cross. All edges from a node to its children turn within the band between the level of
the node and that of its nearest child, along curves of one shape, and run straight from there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latentree._kernels import plot as packing
from latentree._kernels import tree as kernels
from latentree.tree import Tree, traversal
from latentree.typing import BoolArray, FloatArray, IntArray

FEW_VARIABLES = 30
"""Up to so many variables are drawn in layers, which then fit on a page, and more in a disc."""

FAMILY_GAP = 0.6
"""Slots left free around the children of one node, so that families are seen."""

HEAVY = 0.4
"""A branch with this share of the variables makes the middle of the tree an edge, not a node."""

CURVE_POINTS = 48
"""Points on the curved part of an edge; the last segment of its path is straight."""

SHORTEST_STEP = 1.2
"""Between a node and its child in a disc, in units."""

CHAIN_STEP = 0.06
"""The same along a chain of observed nodes, as a share of other steps."""

MOST_RINGS = 2000
"""A disc is packed in rings of half a unit, or in so many."""

UNCOMPILED = 1000
"""Up to so many nodes a disc is packed without compiling: 0.5 s, where compiling takes 6 s."""

CENTER = 0.1
"""Share of a disc's radius that is kept free around its center."""

STRETCH_IN_ROWS = 0.3
"""How far a shallow branch stretches toward the last column: 0 not at all, 1 all the way."""

OPENING = 0.7
"""Below 1, steps are longer near the center of a disc, where room is scarce."""


@dataclass(frozen=True, eq=False)
class TreeLayout:
    """Positions of all nodes and paths of all edges.

    Attributes
    ----------
    kind : {"radial", "layered"}
    position : array of shape (n_nodes, 2)
        Radial: the unit is the width of a label's strip. Layered: x is the level from 0 to 1,
        y counts rows downward from 0 (so it is negative).
    angle : array of shape (n_nodes,)
        The direction in which a label leaves its node, in radians.
    has_slot : array of bool
        The nodes whose label has a strip of its own, one unit wide, that no edge and no other label
        enters. Hidden nodes have none, nor has a node in the center of a disc.
    paths : array of shape (n_edges, n_points, 2)
        The edges of ``tree.edges`` as polylines.
    parent : array of int, shape (n_nodes,)
        The neighbor of each node on the way to the middle of the tree, −1 in the middle. Where the
        middle is on an edge, one end of it counts as the middle.
    longest : float
        Where edges are as long as their distances: the distance of level 1 from level 0.
    halves : array of int, shape (n, 2)
        The ends of the edges with the middle of a component on them; the first counts as middle.

    Examples
    --------
    >>> from latentree import simulate
    >>> layered_layout(simulate.latent_class(3)).parent.tolist()
    [3, 3, 3, -1]
    """

    kind: Literal["radial", "layered"]
    position: FloatArray
    angle: FloatArray
    has_slot: BoolArray
    paths: FloatArray
    parent: IntArray
    longest: float = 0.0
    halves: IntArray = field(default_factory=lambda: np.empty((0, 2), np.int64))


class _Arrangement(NamedTuple):
    """Slot and level of every node. Nodes beyond the tree's stand in the middle of an edge."""

    parent: IntArray
    component: IntArray
    slot: FloatArray
    level: FloatArray
    has_slot: BoolArray
    width: FloatArray
    """Slots of each component."""


def radial_layout(
    tree: Tree,
    order_by: ArrayLike | None = None,
    reach: ArrayLike = 6.0,
    aspect: float = 1.0,
) -> TreeLayout:
    """Lay a tree out in a disc: its middle in the center, its branches all around.

    Parameters
    ----------
    tree : Tree
    order_by : array of shape (n_nodes,), optional
        Leaves with the same neighbor are sorted by this, then by number.
    reach : float or array of shape (n_observed,)
        How far the label of an observed node reaches from the node, in units.
    aspect : float
        Width to height of the picture that discs are turned for, and packed in if they are several.

    Returns
    -------
    TreeLayout
        In units of the width of a label's strip, y upward.

    Examples
    --------
    >>> from latentree import simulate
    >>> placed = radial_layout(simulate.latent_class(3))
    >>> placed.position[3].tolist()
    [0.0, 0.0]
    >>> placed.position[:3].round(2).tolist()
    [[-1.06, 1.06], [-0.39, -1.45], [1.45, 0.39]]
    """
    labels = np.broadcast_to(np.asarray(reach, np.float64), tree.n_observed)
    placed, radius = _arrange_in_discs(tree, order_by, labels)
    turn = 1.0 / np.maximum(radius, 1e-9)
    ahead, n = _ahead(placed), tree.n_nodes

    def to_angle(slot: FloatArray, component: IntArray) -> FloatArray:
        return (slot - ahead[component]) * turn[component]

    def to_plane(level: FloatArray, slot: FloatArray, component: IntArray) -> FloatArray:
        angle, r = to_angle(slot, component), radius[component] * level
        return np.stack([r * np.cos(angle), r * np.sin(angle)], axis=-1)

    ends = np.where(placed.has_slot[:n], np.pad(labels, (0, tree.n_hidden)), 0.0)
    ahead = ahead - radius * _turns(
        (radius[placed.component] * placed.level)[:n] + ends,
        to_angle(placed.slot, placed.component)[:n],
        placed.component[:n],
        aspect,
    )
    position = to_plane(placed.level, placed.slot, placed.component)[:n]
    level, slot, component = _edge_curves(tree, placed, radius)
    paths = to_plane(level, slot, component)
    _smooth_through_center(paths, _split_edges(tree, placed))
    margin = float(labels.max()) + 0.5
    shift = _pack(*_boxes(position, placed.component[:n]), margin, aspect)
    angle = np.where(placed.parent < 0, 0.0, to_angle(placed.slot, placed.component))
    return TreeLayout(
        "radial",
        position + shift[placed.component[:n]],
        angle[:n],
        placed.has_slot[:n],
        paths + shift[component],
        _toward_the_middle(placed.parent, n),
        halves=_halves(placed.parent, n),
    )


def layered_layout(
    tree: Tree, order_by: ArrayLike | None = None, lengths: bool = False
) -> TreeLayout:
    """Lay a tree out from left to right: its middle at the left, a row for every variable.

    Parameters
    ----------
    tree : Tree
    order_by : array of shape (n_nodes,), optional
        Leaves with the same neighbor are sorted by this, then by number.
    lengths : bool
        Whether every edge reaches as far to the right as it is long.

    Returns
    -------
    TreeLayout
        x is the level from 0 in the middle to 1 at the farthest leaf, y counts rows downward.

    Examples
    --------
    >>> from latentree import simulate
    >>> layered_layout(simulate.latent_class(3)).position.tolist()
    [[1.0, -0.5], [1.0, -1.5], [1.0, -2.5], [0.0, -1.5]]
    """
    placed, longest = _arrange_in_rows(tree, order_by, lengths)
    top = np.cumsum(placed.width + 1.0) - placed.width - 1.0

    def to_plane(level: FloatArray, slot: FloatArray, component: IntArray) -> FloatArray:
        return np.stack([level, -(top[component] + slot)], axis=-1)

    n = tree.n_nodes
    return TreeLayout(
        "layered",
        to_plane(placed.level, placed.slot, placed.component)[:n],
        np.zeros(n),
        placed.has_slot[:n],
        to_plane(*_edge_curves(tree, placed, None)),
        _toward_the_middle(placed.parent, n),
        longest,
        _halves(placed.parent, n),
    )


# Arranging --------------------------------------------------------------------------------------


class _CenteredTree(NamedTuple):
    """A tree hung by its middle: parents, an order from the top, and sorted children."""

    parent: IntArray
    order: IntArray
    starts: IntArray
    children: IntArray
    component: IntArray

    @classmethod
    def of(cls, tree: Tree, order_by: ArrayLike | None) -> _CenteredTree:
        parent = _rooted_in_the_middle(tree)
        key = np.zeros(parent.size)
        if order_by is not None:
            key[: tree.n_nodes] = np.asarray(order_by, np.float64)
        order = traversal(parent)
        starts, children = _sorted_children(parent, _sizes(order.tolist(), parent.tolist()), key)
        return cls(parent, order, starts, children, kernels.component_numbers(order, parent))


def _arrange_in_rows(
    tree: Tree, order_by: ArrayLike | None, lengths: bool
) -> tuple[_Arrangement, float]:
    """Deal out a row to every observed node; return the distance of level 1 too, if it has one."""
    hung = _CenteredTree.of(tree, order_by)
    parent, order = hung.parent, hung.order.tolist()
    longest = 0.0
    if lengths:
        away = _distances_from_the_middle(tree, hung)
        longest = float(away.max(initial=0.0))
        level = away / (longest or 1.0)
    else:
        # Both halves of an edge with the middle on it begin at the left: it is a straight line.
        steps = np.where(parent < tree.n_nodes, 1.0, 0.0).tolist()
        level = _levels(order, parent.tolist(), steps, STRETCH_IN_ROWS)
    own = (np.arange(parent.size) < tree.n_observed).astype(np.float64)
    slot, extent = _deal_slots(order, parent, hung.starts.tolist(), hung.children.tolist(), own)
    # Components are numbered in the order of their roots.
    width = extent[np.flatnonzero(parent < 0)]
    return _Arrangement(parent, hung.component, slot, level, own > 0, width), longest


def _distances_from_the_middle(tree: Tree, hung: _CenteredTree) -> FloatArray:
    """Path lengths from the middle of each component to its nodes; an edge is halved by it."""
    above = hung.parent[: tree.n_nodes]
    node = np.arange(tree.n_nodes)
    halves = above >= tree.n_nodes
    # An edge has its length at its lower end in the tree, which may be the upper one here.
    lower = np.where(tree.parent == np.where(halves, -2, above), node, above)
    length = tree.length[np.where(halves | (above < 0), node, lower)]
    length = np.where(above < 0, 0.0, length)
    for new in range(tree.n_nodes, hung.parent.size):
        ends = np.flatnonzero(above == new)
        child = ends[np.isin(tree.parent[ends], ends)]
        length[ends] = tree.length[child] / 2
    away = np.zeros(hung.parent.size)
    for v in hung.order.tolist():
        if hung.parent[v] >= 0:
            away[v] = away[hung.parent[v]] + length[v]
    return away


def _arrange_in_discs(
    tree: Tree, order_by: ArrayLike | None, labels: FloatArray
) -> tuple[_Arrangement, FloatArray]:
    """Turn the branches of every component together until its disc is as small as can be.

    Slots are angles times the radius of the disc; the radii are returned too.
    """
    hung = _CenteredTree.of(tree, order_by)
    order, parent, n = hung.order.tolist(), hung.parent, hung.parent.size
    inner, is_root = np.diff(hung.starts) > 0, parent < 0
    own = (np.arange(n) < tree.n_observed) & ~(is_root & inner)
    steps = _steps_in_disc(tree, hung).tolist()
    level = _levels(order, parent.tolist(), steps, 0.0) ** OPENING
    level = np.where(is_root, 0.0, (level + CENTER) / (1.0 + CENTER))
    height = _heights(order, parent.tolist(), steps)
    length = np.zeros(n)
    length[: tree.n_observed] = labels
    disc = _Disc(hung, level, _nearest_child(parent, level), np.where(own, length, 0.0))
    roots = np.flatnonzero(is_root)
    radius, slot = np.zeros(roots.size), np.zeros(n)
    for i in np.flatnonzero(inner[roots]).tolist():
        least = max(1.5, SHORTEST_STEP * float(height[roots[i]]))
        radius[i] = disc.pack(int(roots[i]), least, slot)
    return _Arrangement(parent, hung.component, slot, level, own, 2 * np.pi * radius), radius


def _steps_in_disc(tree: Tree, hung: _CenteredTree) -> FloatArray:
    """How much of the way outward the edge above each node asks for.

    Along a chain of observed nodes next to nothing: each stands beside the label of the one before.
    """
    above = hung.parent
    alone = np.diff(hung.starts)[above] == 1
    return np.where(alone & (above < tree.n_observed) & (above[above] >= 0), CHAIN_STEP, 1.0)


class _Disc(NamedTuple):
    """What is placed around a center: nodes by level, and the lengths of their labels."""

    hung: _CenteredTree
    level: FloatArray
    nearest: FloatArray
    label: FloatArray

    def pack(self, root: int, least: float, slot: FloatArray) -> float:
        """Return the smallest radius, but no less than asked, and write the component's slots."""
        hung, full = self.hung, 2 * np.pi
        visits: Callable[..., IntArray] = packing.visits
        pack: Callable[..., float] = packing.pack
        if hung.parent.size > UNCOMPILED:
            visits, pack = packing.compiled_visits, packing.compiled_pack
        visited = visits(root, hung.starts, hung.children)
        place, middle = np.empty(self.level.size), np.empty(self.level.size)
        longest = float(self.label[visited].max())

        def filled(radius: float) -> float:
            ring = max(0.5, (radius + longest) / MOST_RINGS)
            return pack(
                visited, hung.parent, hung.starts, hung.children, self.level, self.nearest,
                self.label, radius, ring, place, middle,
            )  # fmt: skip

        # The angle that is filled falls with the radius: bracket the smallest radius that suffices,
        # then halve the bracket (on a logarithmic scale) to within 3 %.
        radius = least
        while filled(radius) > full:
            least, radius = radius, radius * 1.3
        while radius > 1.03 * least:
            between = (least * radius) ** 0.5
            if filled(between) > full:
                least = between
            else:
                radius = between
        spare = full - filled(radius)
        around = hung.children[hung.starts[root] : hung.starts[root + 1]]
        if around.size == 2:  # as straight an edge through the center as can be
            place[around[1]] += np.clip(np.pi - np.diff(place[around])[0], 0.0, spare)
        else:
            place[around] += spare / around.size * np.arange(around.size)
        outward = visited[-2::-1]
        turn = (place[outward] - middle[hung.parent[outward]]) * radius
        for v, above, step in zip(
            outward.tolist(), hung.parent[outward].tolist(), turn.tolist(), strict=True
        ):
            slot[v] = slot[above] + step
        return radius


def _rooted_in_the_middle(tree: Tree) -> IntArray:
    """Parents when every component hangs by its middle: a node, or a new node on an edge."""
    parent, length = tree.parent.copy(), tree.length.copy()
    below, total = _observed_below(tree)
    largest = np.maximum(total - below, 0.0)
    inner = np.flatnonzero(tree.parent >= 0)
    np.maximum.at(largest, tree.parent[inner], below[inner])
    ranked = np.lexsort((largest, tree.components))
    firsts = ranked[np.unique(tree.components[ranked], return_index=True)[1]]
    added: list[tuple[int, int]] = []
    for middle in firsts.tolist():
        kernels.flip_path(parent, length, middle)
        if total[middle] >= 3 and largest[middle] >= HEAVY * total[middle]:
            added.append((middle, _heaviest_neighbor(tree, middle, below, total)))
    if not added:
        return parent
    ends = np.array(added, np.int64)
    new = parent.size + np.arange(len(ends))
    parent[ends[:, 0]] = parent[ends[:, 1]] = new
    return np.concatenate([parent, np.full(len(ends), -1, np.int64)])


def _toward_the_middle(parent: IntArray, n_nodes: int) -> IntArray:
    """Parents among the tree's own nodes: of two halves one hangs from the other."""
    own = parent[:n_nodes].copy()
    first, second = _halves(parent, n_nodes).T
    own[first], own[second] = -1, first
    return own


def _halves(parent: IntArray, n_nodes: int) -> IntArray:
    """Return the two ends of every edge with a new node in its middle."""
    ends = np.flatnonzero(parent[:n_nodes] >= n_nodes)
    halves: IntArray = ends[np.argsort(parent[ends], kind="stable")].reshape(-1, 2)
    return halves


def _observed_below(tree: Tree) -> tuple[FloatArray, FloatArray]:
    """Observed nodes in the subtree of every node, and in its component."""
    below = (np.arange(tree.n_nodes) < tree.n_observed).astype(float).tolist()
    parent = tree.parent.tolist()
    for v in reversed(tree.order.tolist()):
        if parent[v] >= 0:
            below[parent[v]] += below[v]
    counts = np.array(below)
    return counts, counts[tree.roots][tree.components]


def _heaviest_neighbor(tree: Tree, node: int, below: FloatArray, total: FloatArray) -> int:
    around = tree.neighbors(node)
    weight = np.where(tree.parent[around] == node, below[around], total[node] - below[node])
    return int(around[weight.argmax()])


def _sorted_children(
    parent: IntArray, size: FloatArray, key: FloatArray
) -> tuple[IntArray, IntArray]:
    """Children of all nodes end to end, the small before the large.

    The long way down is thus always at the same side, and winds round the middle in a spiral next
    to what hangs from it, instead of being flanked by it at a distance.
    """
    below = np.flatnonzero(parent >= 0)
    children = below[np.lexsort((below, key[below], size[below], parent[below]))]
    return np.searchsorted(parent[children], np.arange(parent.size + 1)), children


def _deal_slots(
    order: Sequence[int],
    parent: IntArray,
    starts: Sequence[int],
    children: Sequence[int],
    own_width: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Middle of every node's own slot (or of its children), and slots that its subtree takes."""
    up = parent.tolist()
    own = own_width.tolist()
    extent = own.copy()
    for v in reversed(order):
        if starts[v + 1] > starts[v] and up[v] >= 0:
            extent[v] += FAMILY_GAP
        if up[v] >= 0:
            extent[up[v]] += extent[v]
    begin, slot = [0.0] * len(up), [0.0] * len(up)
    # Children are laid side by side; the node's own slot goes between them, nearest to the middle.
    for v in order:
        inside = children[starts[v] : starts[v + 1]]
        at = begin[v] + (FAMILY_GAP / 2 if inside and up[v] >= 0 else 0.0)
        half = at + (sum(extent[c] for c in inside) / 2 if inside else 0.0)
        waiting = own[v] > 0
        for c in inside:
            if waiting and at + extent[c] / 2 >= half - 1e-9 * half:
                slot[v], at, waiting = at + own[v] / 2, at + own[v], False
            begin[c] = at
            at += extent[c]
        if waiting:
            slot[v] = at + own[v] / 2
    for v in reversed(order):
        if not own[v] and starts[v + 1] > starts[v]:
            first, last = children[starts[v]], children[starts[v + 1] - 1]
            slot[v] = (slot[first] + slot[last]) / 2
    return np.array(slot), np.array(extent)


def _heights(order: Sequence[int], parent: Sequence[int], steps: Sequence[float]) -> FloatArray:
    """Steps of the longest way down from every node."""
    height = [0.0] * len(parent)
    for v in reversed(order):
        if parent[v] >= 0:
            height[parent[v]] = max(height[parent[v]], height[v] + steps[v])
    return np.array(height)


def _levels(
    order: Sequence[int], parent: Sequence[int], steps: Sequence[float], stretch: float
) -> FloatArray:
    """From 0 in the middle to 1 at the farthest leaf, by even steps along the longest way down.

    A shallow branch takes longer steps than its neighbors, but not so long that it would end
    where they do: leaves stay near the nodes that they belong to.
    """
    height = _heights(order, parent, steps).tolist()
    level, rate = [0.0] * len(parent), [0.0] * len(parent)
    for v in order:
        above = parent[v]
        if above >= 0:
            level[v] = level[above] + rate[above] * steps[v]
        if height[v]:
            # The rate at which the longest way down from here would end at level 1, and a mean
            # (geometric) of it and of the rate above.
            own = (1.0 - level[v]) / height[v]
            rate[v] = own if above < 0 else rate[above] ** (1 - stretch) * own**stretch
    levels: FloatArray = np.minimum(np.array(level), 1.0)
    return levels


def _sizes(order: Sequence[int], parent: Sequence[int]) -> FloatArray:
    """Nodes in the subtree of each."""
    size = [1.0] * len(parent)
    for v in reversed(order):
        if parent[v] >= 0:
            size[parent[v]] += size[v]
    return np.array(size)


# Edges ------------------------------------------------------------------------------------------


def _edge_curves(
    tree: Tree, placed: _Arrangement, radius: FloatArray | None
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Level, slot and component of the points of every edge; ``radius`` of the discs, if any."""
    upper, lower = tree.edges[:, 0], tree.edges[:, 1]
    down = np.where(placed.parent[lower] == upper, lower, upper)
    level, slot = _descents(tree, placed, down, radius)
    split = _split_edges(tree, placed)
    other = _descents(tree, placed, lower[split], radius)
    # Up one half and down the other; every second point keeps their number the same.
    for points, half in zip((level, slot), other, strict=True):
        points[split] = np.concatenate([points[split][:, ::-2], half[:, 1::2]], axis=1)
    component = np.broadcast_to(placed.component[down][:, None], level.shape)
    return level, slot, component


def _split_edges(tree: Tree, placed: _Arrangement) -> BoolArray:
    """The edges that have a new node in their middle."""
    above = placed.parent[tree.edges]
    split: BoolArray = (above[:, 0] == above[:, 1]) & (above[:, 0] >= tree.n_nodes)
    return split


def _smooth_through_center(paths: FloatArray, split: BoolArray) -> None:
    """Draw the edges through the center of their discs as parabolas that aim at it.

    Nothing else is nearer to the center than the ends of such an edge.
    """
    u = np.linspace(0.0, 1.0, paths.shape[1])[:, None]
    paths[split] = (1 - u) ** 2 * paths[split, :1] + u**2 * paths[split, -1:]


def _descents(
    tree: Tree, placed: _Arrangement, down: IntArray, radius: FloatArray | None
) -> tuple[FloatArray, FloatArray]:
    """Points from the parents of some nodes to them: a curve within the band, then straight."""
    above = placed.parent[down]
    band = _bands(tree, placed, radius)
    u = np.linspace(0.0, 1.0, CURVE_POINTS + 1)
    start, end = placed.level[above][:, None], band.end[above][:, None]
    level = start + (end - start) * u ** band.delay[above][:, None]
    from_slot, to_slot = placed.slot[above][:, None], placed.slot[down][:, None]
    slot = to_slot + (from_slot - to_slot) * (1.0 - u) ** band.bend[above][:, None]
    if radius is not None:  # all slots meet at the center
        slot = np.where(start == 0.0, to_slot, slot)
    return (
        np.concatenate([level, placed.level[down][:, None]], axis=1),
        np.concatenate([slot, to_slot], axis=1),
    )


class _Bands(NamedTuple):
    """How edges leave every node: the level by which they have turned, and their two exponents.

    From u = 0 to 1 the level rises like u^delay and the slot still to go falls like (1 − u)^bend.
    """

    end: FloatArray
    delay: FloatArray
    bend: FloatArray


def _nearest_child(parent: IntArray, level: FloatArray) -> FloatArray:
    """Level of the child nearest to the middle; a node's own level if it has none."""
    nearest = np.full(parent.size, np.inf)
    below = np.flatnonzero(parent >= 0)
    np.minimum.at(nearest, parent[below], level[below])
    return np.where(np.isinf(nearest), level, nearest)


def _bands(tree: Tree, placed: _Arrangement, radius: FloatArray | None) -> _Bands:
    """Return how edges leave every node."""
    n = placed.parent.size
    below = np.flatnonzero(placed.parent >= 0)
    above = placed.parent[below]
    nearest, farthest = _nearest_child(placed.parent, placed.level), np.zeros(n)
    np.maximum.at(farthest, above, placed.level[below])
    # From a labeled node edges leave sideways, out of the way of its label.
    node = np.arange(n)
    sideways = (node < tree.n_observed) | (node >= tree.n_nodes)
    delay = np.where(node < tree.n_observed, 2.6, np.where(sideways, 2.0, 1.0))
    bend = np.full(n, 2.0)
    if radius is not None:
        # Where no edge goes on after the band none need be turned: a fan of nearly straight lines.
        fan = ~sideways & (farthest == nearest)
        delay[fan], bend[fan] = 2.0, 1.0
        along = np.abs(placed.slot[below] - placed.slot[above]) * placed.level[above]
        across = (nearest - placed.level) * radius[placed.component]
        closest = np.full(n, np.inf)
        np.minimum.at(closest, above, along)
        delay[sideways] = _out_of_the_way(closest[sideways], across[sideways])
        # A chain runs along its circle without waves.
        chain = np.bincount(above, minlength=n)[above] == 1
        smooth = above[chain & (along > across[above])]
        delay[smooth] = bend[smooth] = 1.0
    return _Bands(nearest, delay, bend)


def _out_of_the_way(aside: FloatArray, ahead: FloatArray) -> FloatArray:
    """Exponents by which edges are past half a label's height before they reach the label.

    The nearest child is so many units ``aside`` of its parent, and edges have turned so many units
    ``ahead`` of it. At u = 1 − √(1 − 0.45/aside) the nearest edge is 0.45 units aside, and must
    not have come 0.5 units ahead yet.
    """
    past = 1.0 - np.sqrt(1.0 - 0.45 / np.maximum(aside, 0.5))
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.log(0.5 / np.maximum(ahead, 0.5)) / np.log(past)
    exponents: FloatArray = np.clip(needed, 1.35, 5.0)
    return exponents


# Discs ------------------------------------------------------------------------------------------


def _ahead(placed: _Arrangement) -> FloatArray:
    """The slot of every component that points to the right: its widest branch."""
    at_top = np.flatnonzero(placed.parent >= 0)
    at_top = at_top[placed.parent[placed.parent[at_top]] < 0]
    ahead = np.zeros(placed.width.size)
    # The last branch, so that two halves lie left and right.
    ahead[placed.component[at_top]] = placed.slot[at_top]
    return ahead


def _turns(away: FloatArray, angle: FloatArray, component: IntArray, aspect: float) -> FloatArray:
    """How far to turn every disc, so that it fills a picture of some shape as well as can be.

    Points are so far ``away`` from the centers of their discs. Zero unless a turn gains something.
    """
    best = np.zeros(component.max() + 1)
    least = np.full(best.size, np.inf)
    for turn in np.linspace(0.0, np.pi, 36, endpoint=False).tolist():
        place = np.stack([np.cos(angle + turn), np.sin(angle + turn)], axis=1) * away[:, None]
        low, high = _boxes(place, component)
        needed = np.maximum((high - low)[:, 0] / aspect, (high - low)[:, 1])
        better = needed < 0.98 * least
        best[better], least[better] = turn, needed[better]
    return best


def _boxes(position: FloatArray, component: IntArray) -> tuple[FloatArray, FloatArray]:
    """Lower left and upper right corner of every component."""
    low = np.full((component.max() + 1, 2), np.inf)
    high = -low
    np.minimum.at(low, component, position)
    np.maximum.at(high, component, position)
    return low, high


def _pack(low: FloatArray, high: FloatArray, margin: float, aspect: float) -> FloatArray:
    """Where to move boxes so that they stand in rows of falling height, about as wide as asked."""
    if len(low) == 1:
        return np.zeros((1, 2))
    alone = (low == high).all(axis=1)  # its label goes to the right
    before = np.where(alone[:, None], (0.5, 0.65), margin)
    after = np.where(alone[:, None], (margin, 0.65), margin)
    wide, tall = (high - low + before + after).T
    limit = max(np.sqrt((wide * tall).sum() * aspect), wide.max())
    corner = np.empty((len(low), 2))
    row: list[int] = []
    x = y = 0.0
    for box in [*np.argsort(-tall, kind="stable").tolist(), -1]:
        if row and (box < 0 or x + wide[box] > limit):
            corner[row, 0] -= x / 2  # rows are centered
            corner[row, 1] = y - (tall[row].max() + tall[row]) / 2
            y -= tall[row].max()
            x, row = 0.0, []
        if box >= 0:
            corner[box, 0] = x
            x += wide[box]
            row.append(box)
    return corner + before - low
