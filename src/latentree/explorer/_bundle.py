"""One HTML file of the page's template, style, scripts and data.

The scripts are ES modules in files of their own. A page opened from disk may not load modules, so
they are joined in the order of what they import, without their ``import`` and ``export``, into one
script. Its hash, and that of the style, are all that the page's content security policy lets run.
"""

# Two regular expressions instead of a bundler: a true one is a build step with node behind every
# installation; modules as data URLs in an import map need a policy that lets any data URL run; and
# scripts that share a namespace lose what the linter finds by their imports.

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources

from latentree.explorer._packed import PageData

SCRIPTS = (
    "dom.js",
    "numbers.js",
    "margins.js",
    "grid.js",
    "model.js",
    "emissions.js",
    "inference.js",
    "influence.js",
    "mixture.js",
    "coloring.js",
    "curves.js",
    "layout.js",
    "occupancy.js",
    "labels.js",
    "scene.js",
    "svg.js",
    "state.js",
    "hitting.js",
    "view.js",
    "pointer.js",
    "charts.js",
    "lists.js",
    "asking.js",
    "sureness.js",
    "rows.js",
    "overview.js",
    "pair.js",
    "naming.js",
    "trees.js",
    "nodes.js",
    "edges.js",
    "paths.js",
    "panel.js",
    "answers.js",
    "search.js",
    "outline.js",
    "minimap.js",
    "legend.js",
    "figure.js",
    "export.js",
    "keyboard.js",
    "printing.js",
    "divider.js",
    "address.js",
    "main.js",
)
"""In the order in which they are joined: each imports only from those before it."""

TOPIC_SCRIPTS = (
    "dom.js",
    "numbers.js",
    "topics_data.js",
    "topics_marks.js",
    "topics_outline.js",
    "topics_tree.js",
    "topics_chart.js",
    "topics_reading.js",
    "topics_search.js",
    "topics_main.js",
)
"""Those of the page of topics."""

_IMPORT = re.compile(r"^import\s[^;]*;\n", re.MULTILINE)
_TEXT = r"""(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`"""
_TEXT += r"|/(?![*/ ])(?:[^/\\\[\n]|\\.|\[(?:[^\]\\]|\\.)*\])+/\w*)"  # a regular expression
_COMMENT = re.compile(_TEXT + r"|[ \t]*//[^\n]*|/\*.*?\*/", re.DOTALL)
_BLANK = re.compile(
    _TEXT + r"|(?P<line>(?<=[;}])\n+(?=\w))"
    r"|(?P<needed>(?<=[\w$])\s+(?=[\w$])|(?<=(?P<sign>[+-]))\s+(?=(?P=sign)))|\s+"
)
_STYLE_BLANK = re.compile(r"\s*([{};,])\s*|(?<=:)\s+")
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|const|let|class)\b)", re.MULTILINE)


def page(content: PageData, title: str) -> str:
    """Return the page that shows a model."""
    return _filled("page.html", ("base.css", "style.css"), SCRIPTS, content, title)


def topics_page(content: PageData, title: str) -> str:
    """Return the page that shows topics."""
    return _filled("topics.html", ("base.css", "topics.css"), TOPIC_SCRIPTS, content, title)


def _filled(
    template: str,
    styles: tuple[str, ...],
    scripts: tuple[str, ...],
    content: PageData,
    title: str,
) -> str:
    """Fill a template."""
    style = "".join(_bare(_asset(name)) for name in styles)
    script = joined(scripts)
    parts = {
        # A lone half of a pair becomes a question mark; in the payload it can be escaped.
        "title": html.escape(title.encode(errors="replace").decode()),
        "policy": _policy(script, style),
        "style": style,
        "script": script,
        "payload": as_json(content),
    }
    # All places at once: what is filled in is never itself searched for places.
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], _asset(template))


def joined(names: tuple[str, ...]) -> str:
    """Return some of the scripts as one, in a scope of its own and in strict mode."""
    body = "\n".join(_tight(_EXPORT.sub("", _IMPORT.sub("", _asset(name)))) for name in names)
    return f'\n(() => {{\n"use strict";\n{body}}})();\n'


def _tight(text: str) -> str:
    """Return a script without comments and blanks; top-level declarations begin a line.

    Statements end with a semicolon, divisions have blanks around them, and no template stands in
    another, as the formatter and a test see to: so a regular expression tells texts from code.
    """

    def kept(found: re.Match[str]) -> str:
        return "\n" if found["line"] else " " if found["needed"] else found["text"] or ""

    return _BLANK.sub(kept, _COMMENT.sub(lambda found: found["text"] or "", text))


def _bare(text: str) -> str:
    """Return a style without comments and blanks."""
    return _STYLE_BLANK.sub(r"\1", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)).strip()


def as_json(content: object) -> str:
    """Return JSON that can stand in a script element: no ``<`` that could end or open one."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # A lone half of a pair cannot be written as UTF-8, but can be escaped.
    text = re.sub("[\ud800-\udfff\u2028\u2029]", lambda half: f"\\u{ord(half[0]):04x}", text)
    return text.replace("<", "\\u003c")


def _policy(script: str, style: str) -> str:
    return f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}"


def _hash(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"'sha256-{digest}'"


def _asset(name: str) -> str:
    return (resources.files("latentree.explorer") / "page" / name).read_text("utf-8")
