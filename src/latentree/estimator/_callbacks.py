"""Callbacks of scikit-learn 1.9 and later; nothing happens with older ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

__all__ = ["CallbackSupportMixin", "typed_callbacks"]

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in for a scikit-learn that has no callbacks."""

    def with_callbacks(method: Callable[..., object]) -> Callable[..., object]:
        """Stand-in for a scikit-learn that has no callbacks."""
        return method


_Method = TypeVar("_Method", bound=Callable[..., object])


def typed_callbacks(method: _Method) -> _Method:
    """Return ``with_callbacks(method)`` with the method's own type, for editors and checkers."""
    return cast(_Method, with_callbacks(method))
