"""Draw the pictures of the documentation from the bundled data, into ``docs/images``."""

from pathlib import Path

import matplotlib as mpl
from matplotlib.patheffects import withStroke

import latentree as lt
from latentree.datasets import Dataset, load_holzinger, load_stocks

FOLDER = Path(__file__).parent / "images"


def draw(dataset: Dataset, *files: str) -> None:
    """Learn a tree with default settings and draw it, coloured by the groups of the variables."""
    learned = lt.LatentTree(random_state=0).fit(dataset.table)
    picture = lt.plot_tree(learned, groups=dataset.groups, hidden_labels=True)
    for label in picture.labels.values():
        label.set_path_effects([withStroke(linewidth=2.5, foreground="white")])
    for file in files:  # without the date and the version, the same picture has the same bytes
        kind = {"Date": None} if file.endswith(".svg") else {"Software": None}
        picture.ax.figure.savefig(
            FOLDER / file, bbox_inches="tight", pad_inches=0.12, dpi=150, metadata=kind
        )


def main() -> None:
    """Draw all."""
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "latentree"
    FOLDER.mkdir(exist_ok=True)
    draw(load_stocks(), "stocks.svg", "stocks.png")  # README.md shows the second
    draw(load_holzinger(), "holzinger.svg")


if __name__ == "__main__":
    main()
