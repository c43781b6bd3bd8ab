"""Figures whose files can be edited: real text, and in SVG an id for every edge and node."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context, rcParams
from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"

SANS_SERIF = ["Arial", "Helvetica"]
"""Families that journals ask for; those of the machine follow."""


class TreeFigure(Figure):
    """A figure that is written with real text, whoever saves it and whatever the settings.

    In PDF fonts are embedded as TrueType (type 42), in SVG text is text. The parts of groups of
    artists (see :meth:`name_parts`) have ids in SVG.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._parts: dict[str, list[str]] = {}

    def name_parts(self, group: str, kind: str, names: Sequence[str]) -> None:
        """Name the parts of the artist whose gid is ``group``, in the order of drawing."""
        self._parts[group] = [f"{kind}-{re.sub(r'[^0-9A-Za-z_.-]', '_', name)}" for name in names]

    def savefig(self, fname: Any, **kwargs: Any) -> None:
        """Write the figure, with the parameters of :meth:`matplotlib.figure.Figure.savefig`."""
        suffix = "" if hasattr(fname, "write") else Path(fname).suffix[1:]
        kind = (kwargs.get("format") or suffix or rcParams["savefig.format"]).lower()
        with rc_context(real_text()):
            if kind != "svg":
                super().savefig(fname, **kwargs)
                return
            drawn = io.BytesIO()
            super().savefig(drawn, **{**kwargs, "format": "svg"})
        data = with_ids(drawn.getvalue(), self._parts)
        if hasattr(fname, "write"):
            fname.write(data)
        else:
            Path(fname).write_bytes(data)


def real_text() -> Any:
    """Settings under which fonts can be edited and searched, and journals take them."""
    families = [name for name in rcParams["font.sans-serif"] if name not in SANS_SERIF]
    return {
        "pdf.fonttype": 42,
        "ps.fonttype": 42,
        "svg.fonttype": "none",
        "font.sans-serif": SANS_SERIF + families,
    }


def with_ids(svg: bytes, parts: dict[str, list[str]]) -> bytes:
    """Give the parts of groups ids of their own; each is used once.

    Parameters
    ----------
    svg : bytes
    parts : dict
        From ids of groups to the ids of their parts, in the order of drawing.
    """
    for prefix, space in (("", SVG), ("xlink", "http://www.w3.org/1999/xlink")):
        ElementTree.register_namespace(prefix, space)
    root = ElementTree.fromstring(svg)
    taken: set[str] = set()
    for group in root.iter(f"{{{SVG}}}g"):
        names = parts.get(group.get("id", ""), [])
        for part, name in zip(_drawn(group), names, strict=False):
            number = 2
            unique = name
            while unique in taken:
                unique, number = f"{name}-{number}", number + 1
            taken.add(unique)
            part.set("id", unique)
    data: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return data


def _drawn(group: ElementTree.Element) -> list[ElementTree.Element]:
    """Return what a group draws: its paths and uses of markers, less their definitions."""
    defined = {id(part) for defs in group.iter(f"{{{SVG}}}defs") for part in defs.iter()}
    tags = (f"{{{SVG}}}path", f"{{{SVG}}}use")
    return [part for part in group.iter() if part.tag in tags and id(part) not in defined]
