"""How kernels run: compiled, or, where the work is tiny, as the Python functions that they are.

Compiled kernels run without the interpreter lock and are cached on disk where that is possible. But
to compile those of one learner takes seconds, to import the compiler and load them from the cache
takes tenths of a second, and on a table of nine columns plain Python is done before that. Which way
is taken depends on sizes alone, never on what happens to be compiled already: sums may be ordered
otherwise in compiled code, and the same input must give the same result.

>>> @kernel()
... def total(values):
...     result = 0.0
...     for value in values:
...         result += value
...     return result
>>> with tiny(True):
...     total([1.0, 2.0])
3.0
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

import numpy as np

Function = TypeVar("Function", bound=Callable[..., object])

_INTERPRETED, _COMPILED = "interpreted", "compiled"
_ALWAYS = {True: "always interpreted", False: "always compiled"}
_way: ContextVar[str | None] = ContextVar("latentree_kernels", default=None)
_lock = threading.RLock()

on_first_compile: list[Callable[[], None]] = []
"""Called, without arguments, when a kernel is compiled that is in no cache; once a process."""


class tiny:
    """Run the kernels within as plain Python if the work is tiny, and compiled if it is not.

    The innermost decision counts, except within :func:`repeated` and :func:`announced`. A class,
    as a generator would take a good part of the time of a small step of EM.
    """

    def __init__(self, is_tiny: bool) -> None:
        self._is_tiny = is_tiny

    def __enter__(self) -> None:
        way = _way.get()
        self._token = self._errors = None
        if way in _ALWAYS.values():
            return
        wanted = _INTERPRETED if self._is_tiny else _COMPILED
        if way != wanted:
            self._token = _way.set(wanted)
        if self._is_tiny:
            # As in compiled code, a division by 0 gives an infinity without a warning.
            self._errors = np.seterr(all="ignore")

    def __exit__(self, *problem: object) -> None:
        if self._token is not None:
            _way.reset(self._token)
        if self._errors is not None:
            np.seterr(**self._errors)


@contextmanager
def repeated() -> Iterator[None]:
    """Run the kernels within compiled, whatever the size: for tiny work that is done many times."""
    with announced(False):
        yield


@contextmanager
def announced(is_tiny: bool) -> Iterator[None]:
    """Run all kernels within in one way, by the work that they do together.

    An outer announcement counts: it knows of more work.
    """
    if _way.get() in _ALWAYS.values():
        yield
        return
    token = _way.set(_ALWAYS[is_tiny])
    try:
        with np.errstate(all="ignore" if is_tiny else None):
            yield
    finally:
        _way.reset(token)


def is_interpreted() -> bool:
    """Whether kernels run as plain Python here."""
    return _way.get() in (_INTERPRETED, _ALWAYS[True])


def kernel(
    fastmath: bool | set[str] = False,
    small: int | None = None,
    plain: Callable[..., object] | None = None,
    views: bool = False,
) -> Callable[[Function], Function]:
    """Make a kernel of a function: compiled when it is first called, or called as it is.

    Parameters
    ----------
    fastmath : bool or set of str
        Which rules of floating-point arithmetic the compiler may break. True lets it reorder sums:
        only for kernels whose input holds no NaN.
    small : int, optional
        Outside :func:`tiny` and :func:`repeated`, calls in which no array is larger than this
        run as plain Python. By default all calls there are compiled.
    plain : callable, optional
        The same in whole arrays, to be called in place of the function where that is not compiled:
        for loops over many numbers.
    views : bool
        Whether the function makes views of its arguments only, and no array of its own. The
        compiler then does not count who uses the arrays: in a function that is called for every
        few rows this takes longer than the rows.
    """

    def decorate(function: Function) -> Function:
        return cast(Function, Kernel(function, fastmath, small, plain, views))

    return decorate


class Kernel:
    """A function over arrays that runs compiled or as plain Python.

    Kernels call each other by name, in either way: what a compiled one calls is compiled with it.
    """

    def __init__(
        self,
        function: Callable[..., object],
        fastmath: bool | set[str],
        small: int | None,
        plain: Callable[..., object] | None = None,
        views: bool = False,
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._fastmath = fastmath
        self._small = small
        self._plain = plain or function
        self._views = views

    def __call__(self, *arguments: object) -> object:
        """Run the kernel."""
        way = _way.get()
        if way in (_INTERPRETED, _ALWAYS[True]):
            return self._plain(*arguments)
        if way is None and self._small is not None and _largest(arguments) <= self._small:
            with tiny(True):
                return self._plain(*arguments)
        return self.compiled(*arguments)

    @functools.cached_property
    def compiled(self) -> Any:
        """The same function as the compiler's dispatcher.

        ``error_model="numpy"`` keeps loops with divisions free of branches, so that they vectorize.
        Nobody passes kernels as arguments, so that the wrapper for that, a tenth of the time to
        compile, is left out.
        """
        with _lock:
            if "compiled" in self.__dict__:  # another thread was first
                return self.__dict__["compiled"]
            numba = _compiler()
            options: dict[str, object] = {
                "nogil": True,
                "error_model": "numpy",
                "fastmath": self._fastmath,
                "no_cfunc_wrapper": True,
                "_nrt": not self._views,
            }
            dispatcher = numba.njit(**options)(self.py_func)
            with contextlib.suppress(RuntimeError):  # no folder in which a cache could be written
                dispatcher._cache = _cache()(self.py_func)
            return dispatcher

    @property
    def _numba_type_(self) -> Any:
        """What the compiler takes this object for where another kernel calls it."""
        return self.compiled._numba_type_


def _largest(arguments: tuple[object, ...]) -> int:
    """Size of the largest array."""
    return max((array.size for array in arguments if isinstance(array, np.ndarray)), default=0)


@functools.cache
def _cache() -> type:
    """Return the compiler's cache of functions; with a full or damaged disk nothing is cached."""
    from numba.core.caching import FunctionCache

    class Cache(FunctionCache):
        def __init__(self, function: Callable[..., object]) -> None:
            super().__init__(function)
            # What a kernel calls is compiled into it, and may be in another file than its own.
            self._cache_file._source_stamp = newest_source(Path(__file__).parent)

        # What is in the files may be anything, and reading it raise anything.
        def save_overload(self, signature: object, data: object) -> None:
            with contextlib.suppress(Exception):
                super().save_overload(signature, data)

        def load_overload(self, signature: object, target_context: object) -> object:
            with contextlib.suppress(Exception):
                return super().load_overload(signature, target_context)
            with contextlib.suppress(Exception):
                self.flush()  # a damaged index would keep new entries out, too
            return None

    return Cache


@functools.cache
def newest_source(folder: Path) -> tuple[int, int]:
    """Return when the newest of the modules of a folder was written, and how many there are."""
    written = [path.stat().st_mtime_ns for path in folder.rglob("*.py")]
    return max(written, default=0), len(written)


@functools.cache
def _compiler() -> ModuleType:
    """Import the compiler, and listen to it."""
    import numba
    from numba.core import event

    class Listener(event.Listener):
        """Tells of the first compilation, and sums up the time of the outermost ones."""

        def on_start(self, event: object) -> None:
            while on_first_compile:
                on_first_compile.pop(0)()

        def on_end(self, event: object) -> None:
            pass

    event.register("numba:compile", Listener())
    return numba
