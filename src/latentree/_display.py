"""How trees, models and estimators show themselves in a notebook.

Pictures and pages are layers above what they show. So the package itself, which knows all layers,
says here how they are made (:func:`show_by`), and lower layers ask.
"""

from __future__ import annotations

TYPE_CHECKING = False  # that of typing, whose import takes longer than all that is here
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_makers: dict[str, Callable[..., Any]] = {}


def show_by(**makers: Callable[..., Any]) -> None:
    """Say how a kind of display is made; nothing is imported before one is asked for."""
    _makers.update(makers)


def displayed(kind: str, *shown: object, **options: object) -> Any:
    """Return a display of objects: ``tree``, ``estimator`` (both HTML), or ``page``."""
    return _makers[kind](*shown, **options)
