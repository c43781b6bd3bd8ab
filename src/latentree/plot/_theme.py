"""Colors of a picture on light and on dark paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

from latentree.errors import DataError, import_extra
from latentree.plot._group_styles import GroupStyle
from latentree.typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

DASHES = (0, (2.5, 1.5))
"""Lines of negative edges."""

ThemeName = Literal["auto", "light", "dark"]

Width = TypeVar("Width", float, FloatArray)


class Theme(NamedTuple):
    """Colors by what they are for; ``paper`` is what weak edges fade into."""

    is_dark: bool
    paper: str
    ink: str
    edge: str
    negative: str
    hidden: str

    def of_group(self, style: GroupStyle) -> str:
        """The color of a group."""
        return style.dark_color if self.is_dark else style.color


LIGHT = Theme(False, "#FFFFFF", "#2B2F36", "#566779", "#C0392B", "#66727E")
DARK = Theme(True, "#12171D", "#E6E3DA", "#A9BCCD", "#EE7B68", "#A4AFBA")


def theme_of(name: ThemeName, ax: Axes | None) -> Theme:
    """Return a theme by its name, with the paper that there is.

    ``auto`` goes by the background of the figure; where that is transparent, by the color of text.
    """
    if name not in ("auto", "light", "dark"):
        raise DataError(f"theme is {name!r}, but must be 'auto', 'light' or 'dark'")
    colors = import_extra("matplotlib.colors", "plot")
    face = _background(ax)
    visible = colors.to_rgba(face)[3] > 0.5
    if name == "auto":
        text = import_extra("matplotlib", "plot").rcParams["text.color"]
        dark = _luminance(face) < 0.4 if visible else _luminance(text) > 0.6
    else:
        dark = name == "dark"
    theme = DARK if dark else LIGHT
    fits = visible and (_luminance(face) < 0.4) == dark
    return theme._replace(paper=colors.to_hex(face)) if fits else theme


def _background(ax: Axes | None) -> ColorType:
    if ax is None:
        face: ColorType = import_extra("matplotlib", "plot").rcParams["figure.facecolor"]
        return face
    return ax.get_figure(root=False).get_facecolor()  # type: ignore[union-attr]


def _luminance(color: ColorType) -> float:
    rgb = np.array(import_extra("matplotlib.colors", "plot").to_rgb(color))
    return float(rgb @ (0.299, 0.587, 0.114))  # luma of ITU-R BT.601


def edge_width(power: Width) -> Width:
    """Return the width in points of edges of a strength from 0 to 1."""
    return 0.45 + 2.0 * power


def edge_shades(color: str, power: FloatArray, paper: str) -> FloatArray:
    """The color mixed with the paper's, the weaker the paler; no transparency: print is safe."""
    to_rgb = import_extra("matplotlib.colors", "plot").to_rgb
    full = 0.35 + 0.65 * np.clip(power, 0.0, 1.0)[:, None]
    shades: FloatArray = full * np.array(to_rgb(color)) + (1.0 - full) * np.array(to_rgb(paper))
    return shades
