"""Check that a tag, the version, the changelog and the citation agree; ``check_tag.py v1.0.0``.

Without a tag the others are compared with each other, as the tests do.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def disagreements(tag: str | None = None, root: Path = ROOT) -> list[str]:
    """Say what does not agree with the version of the package."""
    version = _found(r'__version__ = "(.*)"', root / "src" / "latentree" / "_version.py")
    released = _found(r"^## (\d.*)$", root / "CHANGELOG.md")
    cited = (
        _found(r"^version: (.*)$", root / "CITATION.cff"),
        _found(r"^date-released: (.*)$", root / "CITATION.cff"),
    )
    stated = {
        "the tag": (tag, f"v{version}"),
        "the newest version in CHANGELOG.md": (released, f"{version} - {cited[1]}"),
        "the version in CITATION.cff": (cited[0], version),
        "the version in recipe.yaml": (
            _found(r'^  version: "(.*)"$', root / "recipe" / "recipe.yaml"),
            version,
        ),
    }
    return [
        f"{what} is {found!r}, but should be {expected!r}"
        for what, (found, expected) in stated.items()
        if found not in (None, expected)
    ]


def _found(pattern: str, path: Path) -> str:
    """Return what the first match of a pattern in a file holds."""
    match = re.search(pattern, path.read_text("utf-8"), re.MULTILINE)
    return "" if match is None else match[1].strip()


if __name__ == "__main__":
    sys.exit("\n".join(disagreements(*sys.argv[1:])) or None)
