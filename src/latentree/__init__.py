"""latentree finds the hidden variables that tie your variables together.

Nothing heavy is imported until it is used: names below are looked up on first access.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latentree.tree import Tree

__version__ = "0.1.0"

_HOME = {
    "Tree": "latentree.tree",
}
_MODULES = ("errors",)

__all__ = ["Tree", "errors"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"latentree.{name}")
    raise AttributeError(f"module 'latentree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
