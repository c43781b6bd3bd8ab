"""Make the pictures and live pages of the gallery, by running the code that it shows."""

import os
import re
from pathlib import Path

import matplotlib as mpl

PAGE = Path(__file__).parent / "gallery.md"


def main() -> None:
    """Run all Python of the page in the folder of the documentation."""
    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "latentree"
    os.environ["SOURCE_DATE_EPOCH"] = "0"  # the same code writes the same bytes on any day
    os.chdir(PAGE.parent)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    exec(compile("\n".join(blocks), str(PAGE), "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
