"""Settings of the documentation; ``sphinx-build -W docs build/docs`` makes it."""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

import latentree

sys.path.insert(0, str(Path(__file__).parent))
from make_inventories import WORDS, write_inventories

project = "latentree"
author = "The latentree developers"
copyright = "The latentree developers"
release = version = latentree.__version__
REPOSITORY = os.environ.get("LATENTREE_REPOSITORY", "https://github.com/latentree/latentree")
"""Where *Edit this page* leads."""

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinxext.opengraph",
]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_pages"]

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say the types
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False

# Names of other libraries that our pages link to, without asking the network for their lists.
intersphinx_mapping = write_inventories(Path(tempfile.mkdtemp(prefix="inventories")))

html_theme = "furo"
html_theme_options = {
    "source_repository": REPOSITORY,
    "source_branch": "main",
    "source_directory": "docs/",
}
html_static_path = ["_static"]
PAGES = Path(__file__).parent / "_pages"  # pages to explore, which make_gallery.py writes
PAGES.mkdir(exist_ok=True)
html_extra_path = [PAGES.name]
html_css_files = ["site.css"]
html_title = f"latentree {release}"
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

ogp_site_url = os.environ.get("LATENTREE_SITE", "https://latentree.github.io/latentree/")
ogp_site_name = "latentree"
ogp_image = "_images/explorer.png"
ogp_image_alt = "A tree of twenty companies, and what follows if one of them falls"
ogp_social_cards = {"enable": False}  # one picture for all pages, so that builds need no fonts

_BARS = re.compile(r"\|(?=\S)([^|`\n]*?\S)\|")


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let |ρ| be an absolute value: between bars reStructuredText looks for a substitution."""
    lines[:] = [_BARS.sub(r"\\|\1\\|", line) for line in lines]


_WORD = re.compile(rf"(?<![\w.`:/=]){'(' + '|'.join(map(re.escape, WORDS)) + ')'}(?![\w`(])")


def link_words(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let the names of other libraries' classes be links, except in code."""
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            lines[place] = _WORD.sub(lambda m: f":class:`~{WORDS[m[0]]}`", line)


def setup(app: Any) -> None:
    """Hook into reading docstrings."""
    app.connect("autodoc-process-docstring", escape_bars)
    app.connect("autodoc-process-docstring", link_words)
