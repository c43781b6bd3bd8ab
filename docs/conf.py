"""Settings of the documentation; ``sphinx-build -W docs build/docs`` makes it."""

import re
from typing import Any

import latentree

project = "latentree"
author = "The latentree developers"
copyright = "The latentree developers"
release = version = latentree.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say the types
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_title = f"latentree {release}"
html_copy_source = False
html_show_sourcelink = False
pygments_style = "friendly"
pygments_dark_style = "monokai"

_BARS = re.compile(r"\|(?=\S)([^|`\n]*?\S)\|")


def escape_bars(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Let |ρ| be an absolute value: between bars reStructuredText looks for a substitution."""
    lines[:] = [_BARS.sub(r"\\|\1\\|", line) for line in lines]


def setup(app: Any) -> None:
    """Hook into reading docstrings."""
    app.connect("autodoc-process-docstring", escape_bars)
