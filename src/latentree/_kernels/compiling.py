"""How kernels are compiled: without the interpreter lock, cached on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(fastmath: bool | set[str] = False) -> Callable[[Function], Function]:
    """Compile a function lazily, without the interpreter lock.

    ``error_model="numpy"`` keeps loops with divisions free of branches, so that they vectorise.
    ``fastmath`` lets sums be reordered: only for kernels whose input holds no NaN. Nobody passes
    kernels as arguments, so that the wrapper for that, a tenth of the time to compile, is left out.
    """

    def decorate(function: Function) -> Function:
        options: dict[str, Any] = {
            "nogil": True,
            "error_model": "numpy",
            "fastmath": fastmath,
            "no_cfunc_wrapper": True,
        }
        try:
            compiled: Function = numba.njit(cache=True, **options)(function)
        except RuntimeError:  # no folder in which the cache could be written
            compiled = numba.njit(**options)(function)
        return compiled

    return decorate
