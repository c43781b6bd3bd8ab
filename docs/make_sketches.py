"""Draw the sketches of the pages that explain, into ``docs/images``: small trees, side by side."""

from collections.abc import Iterator, Mapping, Sequence
from math import exp
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent / "images" / "sketches"
STEP, RADIUS, MARGIN, GAP, CAPTION = 62, 13, 24, 54, 34
INK, OBSERVED, HIDDEN, MARKED, FAINT = "#333", "#3b6fb6", "#fff", "#c8442f", "#bbb"
FONT = 'font-family="Helvetica, Arial, sans-serif" text-anchor="middle"'

Point = tuple[float, float]
Edge = tuple[str, str] | tuple[str, str, str]
"""Two ends and, if there is one, a label; a label that begins with ! marks the edge."""


class Panel(NamedTuple):
    """One small tree: places of its nodes in steps, its edges, and what is said below."""

    places: Mapping[str, Point]
    edges: Sequence[Edge]
    caption: str
    marked: str = ""
    """Names of nodes that stand out, with spaces between."""


def is_hidden(name: str) -> bool:
    """Whether a node is drawn hollow: names of hidden ones begin with h."""
    return name[0] == "h"


def size(panel: Panel) -> Point:
    """Width and height of a panel in pixels."""
    columns, rows = zip(*panel.places.values(), strict=True)
    width = max(max(columns) * STEP + 2 * MARGIN, 6.4 * len(panel.caption))
    return width, max(rows) * STEP + 2 * MARGIN


def drawn(panel: Panel, left: float, height: float) -> Iterator[str]:
    """Parts of an SVG picture for one panel."""
    width = size(panel)[0]
    inner = max(x for x, _ in panel.places.values()) * STEP
    start = left + (width - inner) / 2
    at = {name: (start + x * STEP, MARGIN + y * STEP) for name, (x, y) in panel.places.items()}
    for a, b, *label in panel.edges:
        (x, y), (u, v) = at[a], at[b]
        text = label[0] if label else ""
        color, dashes = (MARKED, "5 4") if text.startswith("!") else ("#667", "none")
        yield (
            f'<path d="M{x:.0f},{y:.0f} L{u:.0f},{v:.0f}" stroke="{color}" stroke-width="2.5" '
            f'stroke-dasharray="{dashes}"/>'
        )
        if text.strip("!"):
            yield (
                f'<text x="{(x + u) / 2:.0f}" y="{(y + v) / 2 + 4:.0f}" {FONT} font-size="12" '
                f'fill="{INK}" stroke="#fff" stroke-width="5" paint-order="stroke">'
                f"{text.strip('!')}</text>"
            )
    for name, (x, y) in at.items():
        fill = HIDDEN if is_hidden(name) else OBSERVED
        line = MARKED if name in panel.marked.split() else "#445"
        ink = INK if is_hidden(name) else "#fff"
        yield (
            f'<circle cx="{x:.0f}" cy="{y:.0f}" r="{RADIUS}" fill="{fill}" stroke="{line}" '
            'stroke-width="2"/>'
        )
        yield (
            f'<text x="{x:.0f}" y="{y + 4:.0f}" {FONT} font-size="11" fill="{ink}">{name}</text>'
        )
    yield (
        f'<text x="{left + width / 2:.0f}" y="{height + 20:.0f}" {FONT} font-size="13" '
        f'fill="{INK}">{panel.caption}</text>'
    )


def picture(panels: Sequence[Panel], also: Sequence[str] = (), more_width: float = 0) -> str:
    """Panels from left to right with arrows between them, as SVG; ``also`` comes behind them."""
    height = max(size(panel)[1] for panel in panels)
    left, parts = float(MARGIN), list[str]()
    for place, panel in enumerate(panels):
        parts += drawn(panel, left, height)
        left += size(panel)[0]
        if place < len(panels) - 1:
            parts.append(
                f'<path d="M{left + 10:.0f},{height / 2:.0f} h{GAP - 26}" stroke="{INK}" '
                'stroke-width="2" marker-end="url(#tip)"/>'
            )
            left += GAP
    return svg(left + MARGIN + more_width, height + CAPTION, [*parts, *also])


def svg(width: float, height: float, parts: Sequence[str]) -> str:
    """A picture on white, so that it can be read on dark pages, too."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" fill="none">'
        '<defs><marker id="tip" markerWidth="6" markerHeight="6" refX="4" refY="3" orient="auto">'
        f'<path d="M0,0 L6,3 L0,6 z" fill="{INK}"/></marker></defs>'
        f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#fff"/>'
    )
    return "\n".join([head, *parts, "</svg>"]) + "\n"


# The sketches ----------------------------------------------------------------------------------

LEFT, RIGHT = ("a", "b", "c"), ("d", "e", "f")
TWO = {"a": (0, 0), "b": (0, 1.4), "c": (0, 2.8), "h1": (1.5, 1.4), "h2": (3, 1.4)}
TWO |= {"d": (4.5, 0), "e": (4.5, 1.4), "f": (4.5, 2.8)}
STRENGTH = {"a": 0.9, "b": 0.8, "c": 0.7, "d": 0.9, "e": 0.8, "f": 0.7}
BETWEEN = 0.6
"""Correlations of the edges of the tree with two hidden variables."""

LEAVES = [*((x, "h1") for x in LEFT), *((x, "h2") for x in RIGHT)]


def correlation(x: str, y: str) -> float:
    """Correlation of two leaves: the product of those along the path."""
    if x == y:
        return 1.0
    apart = (x in LEFT) != (y in LEFT)
    return STRENGTH[x] * STRENGTH[y] * (BETWEEN if apart else 1.0)


def correlations() -> str:
    """A table of correlations, and the tree behind it."""
    cell, names = 34, LEFT + RIGHT
    parts = []
    for i, row in enumerate(names):
        for j, column in enumerate(names):
            r = correlation(row, column)
            x, y = MARGIN + 20 + j * cell, MARGIN + 2 + i * cell
            ink = "#fff" if r > 0.6 else INK
            parts += [
                f'<rect x="{x}" y="{y}" width="{cell - 2}" height="{cell - 2}" fill="{OBSERVED}" '
                f'fill-opacity="{r:.2f}"/>',
                f'<text x="{x + cell / 2 - 1:.0f}" y="{y + 20}" {FONT} font-size="11" '
                f'fill="{ink}">{r:.2f}</text>',
            ]
        parts += [
            f'<text x="{MARGIN + 8}" y="{MARGIN + 22 + i * cell}" {FONT} font-size="12" '
            f'fill="{INK}">{row}</text>',
            f'<text x="{MARGIN + 36 + i * cell}" y="{MARGIN - 6}" {FONT} font-size="12" '
            f'fill="{INK}">{row}</text>',
        ]
    edges = [(x, h, f"{STRENGTH[x]:.1f}") for x, h in LEAVES] + [("h1", "h2", f"{BETWEEN:.1f}")]
    left = MARGIN + 40 + len(names) * cell + GAP
    panel = Panel(TWO, edges, "the tree: two hidden variables explain all 15 numbers")
    height = MARGIN + len(names) * cell + 12
    parts += [
        *drawn(panel, left, height),
        f'<path d="M{left - GAP + 4},{height / 2:.0f} h{GAP - 26}" stroke="{INK}" '
        'stroke-width="2" marker-end="url(#tip)"/>',
        f'<text x="{MARGIN + 20 + len(names) * cell / 2:.0f}" y="{height + 20}" {FONT} '
        f'font-size="13" fill="{INK}">correlations of six columns</text>',
    ]
    return svg(left + size(panel)[0] + MARGIN, height + CAPTION, parts)


def emissions() -> str:
    """A hidden variable with two states, and what three kinds of columns show of it."""
    columns = (0.5, 3.3, 6.1)
    names = {"h": (3.3, 0), "x": (0.5, 1.2), "n": (3.3, 1.2), "y": (6.1, 1.2)}
    panel = Panel(names, [("h", "x"), ("h", "n"), ("h", "y")], "")
    base, parts = MARGIN + 2.8 * STEP, list[str]()
    middle = [3 * MARGIN + x * STEP for x in columns]
    for color, shift in ((OBSERVED, -16), (MARKED, 16)):
        curve = [
            (middle[0] + t, base - 46 * exp(-(((t - shift) / 17) ** 2))) for t in range(-52, 53, 4)
        ]
        line = " L".join(f"{x:.0f},{y:.0f}" for x, y in curve)
        parts.append(f'<path d="M{line}" stroke="{color}" stroke-width="2"/>')
    counts = {OBSERVED: (40, 26, 10, 4, 1), MARKED: (8, 18, 28, 22, 14)}
    labels = {OBSERVED: (44, 12), MARKED: (14, 42)}
    for offset, color in enumerate((OBSERVED, MARKED)):
        for place, tall in enumerate(counts[color]):
            x = middle[1] - 50 + place * 21 + offset * 9
            parts.append(bar(x, base, 8, tall, color))
        for place, tall in enumerate(labels[color]):
            parts.append(bar(middle[2] - 34 + place * 44 + offset * 15, base, 13, tall, color))
    said = ("a number: a normal per state", "a count: a Poisson per state", "labels: a table")
    parts += [
        f'<text x="{x:.0f}" y="{base + 18:.0f}" {FONT} font-size="11" fill="{INK}">{text}</text>'
        for x, text in zip(middle, said, strict=True)
    ]
    inner = list(drawn(panel, 2 * MARGIN, 0))
    parts.append(
        f'<text x="{middle[1] + 24:.0f}" y="{MARGIN + 4}" font-size="12" fill="{INK}" '
        'font-family="Helvetica, Arial, sans-serif">two states: blue and red</text>'
    )
    return svg(middle[2] + 100, base + CAPTION, [*inner, *parts])


def bar(x: float, base: float, width: float, tall: float, color: str) -> str:
    """One bar that stands on a line."""
    return (
        f'<rect x="{x:.0f}" y="{base - tall:.0f}" width="{width}" height="{tall}" fill="{color}"/>'
    )


CHAIN = {"a": (0, 0), "b": (1, 1), "c": (2, 1), "d": (3, 0), "e": (0, 2), "f": (3, 2)}
CHAIN_EDGES = [("a", "b"), ("e", "b"), ("b", "c"), ("c", "d"), ("c", "f")]
SCATTERED = {name: CHAIN[name] for name in "abcdef"}
ROW = {"a": (0, 2), "b": (1, 2), "c": (2, 2), "d": (3, 2), "e": (4, 2)}
LOW = {name: (x, 1) for name, (x, _) in ROW.items()}
MOVED = {"a": (0, 0), "b": (0, 2), "h1": (1, 1), "c": (2, 0), "h2": (3, 1), "d": (4, 0)}
MOVED |= {"e": (4, 2)}

TRIPLE = {"a": (0, 0), "b": (0, 2), "c": (2, 1), "d": (3.4, 1)}

SKETCHES: dict[str, Sequence[Panel]] = {
    "distances": [
        Panel(
            {"a": (0, 0), "h1": (1, 1), "h2": (2.4, 1), "d": (3.4, 0), "b": (0, 2), "e": (3.4, 2)},
            [
                ("a", "h1", "!0.2"),
                ("h1", "h2", "!0.5"),
                ("h2", "d", "!0.3"),
                ("b", "h1", "0.4"),
                ("h2", "e", "0.1"),
            ],
            "distance of a and d: 0.2 + 0.5 + 0.3 = 1.0",
        )
    ],
    "chow-liu": [
        Panel(SCATTERED, [], "six columns"),
        Panel(CHAIN, CHAIN_EDGES, "the strongest edges without a loop"),
    ],
    "neighbor-joining": [
        Panel(ROW, [], "five columns"),
        Panel(ROW | {"h1": (0.5, 1)}, [("a", "h1"), ("b", "h1")], "join the closest pair", "h1"),
        Panel(
            ROW | {"h1": (0.5, 1), "h2": (1.25, 0), "h3": (3.5, 1)},
            [
                ("a", "h1"),
                ("b", "h1"),
                ("h1", "h2"),
                ("c", "h2"),
                ("h2", "h3"),
                ("d", "h3"),
                ("e", "h3"),
            ],
            "and so on, until all are joined",
        ),
    ],
    "recursive-grouping": [
        Panel(LOW, [], "five columns"),
        Panel(
            LOW | {"h1": (1, 0), "h2": (3.5, 0)},
            [("a", "h1"), ("b", "h1"), ("c", "h1"), ("d", "h2"), ("e", "h2")],
            "whole families at once",
            "h1 h2",
        ),
        Panel(
            LOW | {"h1": (1, 0), "h2": (3.5, 0)},
            [("a", "h1"), ("b", "h1"), ("c", "h1"), ("d", "h2"), ("e", "h2"), ("h1", "h2", "!")],
            "then the families of families",
        ),
    ],
    "clgrouping": [
        Panel(CHAIN, CHAIN_EDGES, "a Chow-Liu tree", "b"),
        Panel(
            CHAIN | {"h1": (1, 0), "b": (1, 2)},
            [("a", "h1"), ("e", "h1"), ("b", "h1"), ("h1", "c"), ("c", "d"), ("c", "f")],
            "one neighborhood learned again",
            "h1",
        ),
        Panel(
            CHAIN | {"h1": (1, 0), "b": (1, 2), "h2": (2, 0), "c": (2, 2)},
            [
                ("a", "h1"),
                ("e", "h1"),
                ("b", "h1"),
                ("h1", "h2"),
                ("c", "h2"),
                ("h2", "d"),
                ("h2", "f"),
            ],
            "and each of the others",
        ),
    ],
    "refinement": [
        Panel(
            MOVED,
            [("a", "h1"), ("b", "h1"), ("c", "h1", "!"), ("h1", "h2"), ("d", "h2"), ("e", "h2")],
            "c hangs at h1",
        ),
        Panel(
            MOVED,
            [("a", "h1"), ("b", "h1"), ("c", "h2", "!"), ("h1", "h2"), ("d", "h2"), ("e", "h2")],
            "moved, if the score rises",
        ),
    ],
    "support": [
        Panel(
            MOVED,
            [("a", "h1"), ("b", "h1"), ("c", "h1"), ("h1", "h2", "92 %"), ("d", "h2"), ("e", "h2")],
            "92 of 100 replicates part a, b, c from d, e",
        ),
    ],
    "hidden-chow-liu": [
        Panel(CHAIN, CHAIN_EDGES, "a Chow-Liu tree"),
        Panel(
            CHAIN | {"h1": (1, 1), "b": (1, 2), "h2": (2, 1), "c": (2, 2)},
            [
                ("a", "h1"),
                ("e", "h1"),
                ("h1", "b"),
                ("h1", "h2"),
                ("h2", "c"),
                ("h2", "d"),
                ("h2", "f"),
            ],
            "its inner nodes, hidden, with many states",
            "h1 h2",
        ),
    ],
    "no-edges": [
        Panel(
            TRIPLE | {"h1": (1, 1)},
            [("a", "h1"), ("b", "h1"), ("c", "h1"), ("c", "d", "!")],
            "is the weak link chance?",
        ),
        Panel(
            TRIPLE | {"h1": (1, 1)},
            [("a", "h1"), ("b", "h1"), ("c", "h1")],
            "then d stands alone",
        ),
    ],
    "no-tree": [
        Panel(
            {"a": (0, 0), "b": (1.4, 0), "c": (0, 1.4), "d": (1.4, 1.4)},
            [("a", "b"), ("b", "d"), ("d", "c"), ("c", "a")],
            "a loop is no tree",
        ),
    ],
}


def main() -> None:
    """Draw all."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    pictures = {name: picture(panels) for name, panels in SKETCHES.items()}
    pictures |= {"correlations": correlations(), "emissions": emissions()}
    for name, text in pictures.items():
        (FOLDER / f"{name}.svg").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
