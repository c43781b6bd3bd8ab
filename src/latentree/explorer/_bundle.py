"""One HTML file of the page's template, style, scripts and data.

The scripts are ES modules in files of their own. A page opened from disk may not load modules. A
wheel therefore holds each page's script and style bundled by esbuild (see ``hatch_build.py``). An
install from source without node has none: there the modules are joined into one script, each as a
function in the order of what they import. The hash of the script, and that of the style, are all
that the page's content security policy lets run.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib import resources

from latentree.explorer._packed import PageData

_IMPORT = re.compile(r'^import (\{[^;]*?\}) from "\./([\w.]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ((?:async )?(?:function\*?|const|let|class) (\w+))", re.MULTILINE)


def page(content: PageData, title: str) -> str:
    """Return the page that shows a model."""
    return _filled("page.html", "main.js", ("base.css", "style.css"), content, title)


def topics_page(content: PageData, title: str) -> str:
    """Return the page that shows topics."""
    return _filled("topics.html", "topics_main.js", ("base.css", "topics.css"), content, title)


def _filled(
    template: str, entry: str, styles: tuple[str, ...], content: PageData, title: str
) -> str:
    """Fill a template."""
    style = "".join(_bundled(name) or _asset(name) for name in styles)
    script = _bundled(entry) or joined(entry)
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


def joined(*entries: str) -> str:
    """Return scripts and all that they import as one: every module in a scope of its own.

    What a module exports becomes an object, from which the modules after it take what they import.
    """
    found: dict[str, str] = {}

    def add(name: str) -> None:
        text = _asset(name)
        for _, other in _IMPORT.findall(text):
            if other not in found:
                add(other)
        exported = ", ".join(own for _, own in _EXPORT.findall(text))
        body = _EXPORT.sub(r"\1", _IMPORT.sub(r'const \1 = modules["\2"];\n', text))
        found[name] = f'modules["{name}"] = (() => {{\n{body}return {{ {exported} }};\n}})();\n'

    for entry in entries:
        if entry not in found:
            add(entry)
    return f'\n(() => {{\n"use strict";\nconst modules = {{}};\n{"".join(found.values())}}})();\n'


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


def _bundled(name: str) -> str:
    """Return what esbuild made of a file when the package was built; empty if nothing."""
    path = resources.files("latentree.explorer") / "page" / "bundled" / name
    return path.read_text("utf-8") if path.is_file() else ""
