"""Draw the way of the data and the tree of the Big Five, into ``docs/images``."""

import os
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl

import latentree as lt

FOLDER = Path(__file__).parent / "images"


TRAITS = {
    "A": "agreeableness",
    "C": "conscientiousness",
    "E": "extraversion",
    "N": "neuroticism",
    "O": "openness",
}


def draw_big_five(folder: str, *files: str) -> None:
    """Draw the tree of the Big Five as the page on questionnaires learns it."""
    import pandas as pd

    items = pd.read_csv(Path(folder, "tables", "bfi.csv.gz")).filter(regex="^[ACENO][1-5]$")
    learned = lt.LatentTree("refined", "gaussian", random_state=0).fit(items)
    save(lt.plot_tree(learned, groups=[TRAITS[name[0]] for name in items]), *files)


def save(picture: lt.plot.TreePlot, *files: str) -> None:
    """Write a picture."""
    for file in files:  # without the date and the version, the same picture has the same bytes
        kind = {"Date": None} if file.endswith(".svg") else {"Software": None}
        picture.ax.figure.savefig(
            FOLDER / file, bbox_inches="tight", pad_inches=0.12, dpi=150, metadata=kind
        )


BOXES = (
    (
        0,
        0,
        "data",
        "Data",
        ("checked and coded:", "names, kinds, labels,", "missing cells, weights"),
    ),
    (
        1,
        0,
        "distances",
        "Statistics",
        ("sums over rows:", "moments, pair counts,", "distinct rows"),
    ),
    (2, 0, "distances", "Distances", ("of any two columns:", "a matrix, or blocks", "on demand")),
    (2, 1, "structure, search", "Tree", ("parents and lengths;", "observed and hidden", "nodes")),
    (1, 1, "models", "Model", ("a tree with its", "parameters: Gaussian", "or discrete")),
)
"""The way of the data: column and row of the picture, package, type, and what it holds."""
GIVEN = ("frame, array,", "sparse matrix,", "file, chunks,", "dask")
TAKEN = ("posterior, samples,", "score, imputed table,", "picture, page, file")
BOX, HEIGHT, GAP, SIDE, ROW = 148, 108, 94, 104, 214


def draw_way(file: str) -> None:
    """Draw the way of the data, from a table to what a model says, as SVG."""
    left = [SIDE + GAP + (BOX + GAP) * column for column in range(3)]
    center = [x + BOX / 2 for x in left]
    top = [16, 16 + ROW]
    middle = [y + HEIGHT / 2 for y in top]
    width, height = left[2] + BOX + 16, top[1] + HEIGHT + 40
    bend = top[0] + HEIGHT + 56
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="13" fill="#222">',
        '<defs><marker id="tip" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z" fill="#555"/></marker></defs>',
        f'<rect width="{width}" height="{height}" rx="8" fill="#fff"/>',
        _lines(SIDE / 2 + 4, middle[0] - 20, GIVEN),
        _lines(center[0], middle[1] - 12, TAKEN),
    ]
    for column, row, package, name, held in BOXES:
        parts += [
            f'<rect x="{left[column]}" y="{top[row]}" width="{BOX}" height="{HEIGHT}" rx="6" '
            'fill="#eef3fa" stroke="#4a6fa5"/>',
            _lines(center[column], top[row] + 26, [name], 'font-weight="bold" font-size="15"'),
            _lines(center[column], top[row] + 50, held),
            _lines(center[column], top[row] + HEIGHT + 20, [package], MONO),
        ]
    small = MONO + ' font-size="11"'
    parts += [
        _path(f"M{SIDE + 4},{middle[0]} H{left[0] - 3}"),
        _lines(left[0] - GAP / 2, middle[0] - 9, ["as_table"], small),
        _path(f"M{left[0] + BOX + 3},{middle[0]} H{left[1] - 3}"),
        _lines(left[1] - GAP / 2, middle[0] - 9, ["Statistics.of"], small),
        _path(f"M{left[1] + BOX + 3},{middle[0]} H{left[2] - 3}"),
        _lines(left[2] - GAP / 2, middle[0] - 23, ["information_", "distances"], small, 14),
        _path(f"M{center[2]},{top[0] + HEIGHT + 28} V{top[1] - 3}"),
        _lines(center[2] - 58, bend + 12, ["cl_grouping, …"], small),
        _path(f"M{left[2] - 3},{middle[1]} H{left[1] + BOX + 3}"),
        _lines(left[2] - GAP / 2, middle[1] - 9, ["fit_", "parameters"], small, 24),
        _path(f"M{left[1] - 3},{middle[1]} H{left[0] + BOX + 3}"),
        _lines(left[1] - GAP / 2, middle[1] - 9, ["posterior, …"], small),
        _path(f"M{center[0]},{top[0] + HEIGHT + 28} V{bend} H{center[1]} V{top[1] - 3}", "4 3"),
        _lines(
            (center[0] + center[1]) / 2, bend + 18, ["rows, for EM where", "sums do not suffice"]
        ),
        "</svg>",
    ]
    (FOLDER / file).write_text("\n".join(parts) + "\n", "utf-8")


MONO = 'font-family="Menlo, Consolas, monospace" fill="#555"'


def _lines(x: float, y: float, lines: Sequence[str], style: str = "", leading: float = 17) -> str:
    """Lines of text, centered at x, the first one at height y."""
    spans = [
        f'<tspan x="{x}" y="{y + leading * place}">{line}</tspan>'
        for place, line in enumerate(lines)
    ]
    return f'<text text-anchor="middle" {style}>{"".join(spans)}</text>'


def _path(steps: str, dashes: str = "none") -> str:
    """A line that ends in an arrow."""
    style = f'fill="none" stroke="#555" stroke-dasharray="{dashes}" marker-end="url(#tip)"'
    return f'<path d="{steps}" {style}/>'


def main() -> None:
    """Draw all."""
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "latentree"
    FOLDER.mkdir(exist_ok=True)
    draw_way("way.svg")
    if os.environ.get("LATENTREE_DATA"):  # its license does not let it be bundled
        draw_big_five(os.environ["LATENTREE_DATA"], "bfi.png")


if __name__ == "__main__":
    main()
