"""Write the tables of methods and options into ``docs/reference/options.md``, from the registry."""

from collections.abc import Sequence
from pathlib import Path

from latentree.methods import BY_DISTANCES, METHODS, OPTIONS, taken_by

PAGE = Path(__file__).parent / "reference" / "options.md"
BEGIN, END = "<!-- options: begin -->\n", "<!-- options: end -->\n"


def tables() -> str:
    """Return both tables in Markdown: methods and what they take, options and what they mean."""
    methods = [
        (f"`{name}`", method.summary, _families(method.families), _kind(method.from_distances))
        for name, method in METHODS.items()
    ]
    options = [
        (f"`{name}`", option.type, f"`{option.default!r}`", option.meaning, _takers(name))
        for name, option in OPTIONS.items()
    ]
    return (
        _table(("method", "what it does", "families", "tree learned by"), methods)
        + "\n"
        + _table(("option", "type", "default", "meaning", "methods"), options)
    )


def between_markers(page: str) -> str:
    """Return what a page holds between the two markers."""
    return page.partition(BEGIN)[2].partition(END)[0]


def with_tables(page: str) -> str:
    """Return a page with the tables between its markers."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n{tables()}\n{END}{rest.partition(END)[2]}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def _families(families: Sequence[str]) -> str:
    everything = max((method.families for method in METHODS.values()), key=len)
    return "all" if families == everything else ", ".join(families)


def _kind(from_distances: bool) -> str:
    return "distances" if from_distances else "scores"


def _takers(option: str) -> str:
    """Methods that take an option; those that learn the tree from distances as a group."""
    takers = taken_by(option)
    if len(takers) == len(METHODS):
        return "all"
    if set(BY_DISTANCES) <= set(takers):
        takers = ["by distances", *takers[len(BY_DISTANCES) :]]
    return ", ".join(name if name == "by distances" else f"`{name}`" for name in takers)


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text("utf-8")), "utf-8")
