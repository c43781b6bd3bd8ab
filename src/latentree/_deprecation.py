"""One way to take something back: a warning for two minor versions, then it goes."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

LASTS = 2
"""Minor versions in which what is deprecated still works."""

gone_in: dict[str, tuple[int, int]] = {}
"""What is deprecated, and the major and minor version that has it no longer."""


def deprecated(
    since: tuple[int, int], instead: str, argument: str | None = None
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Warn where a function, or one argument of it, is used, and say what to write instead.

    Parameters
    ----------
    since : tuple of int
        Major and minor version that warns for the first time.
    instead : str
        What to write; ``{}`` stands for the argument's value.
    argument : str, optional
        The argument that is deprecated, where its value is not None; else the whole function.

    Examples
    --------
    >>> @deprecated((1, 0), "double(x)")
    ... def twice(x):
    ...     return 2 * x
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     twice(3)
    6
    >>> print(caught[0].message)
    twice is deprecated since 1.0 and gone in 1.2: write double(x)
    >>> del gone_in["twice"]
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        name = function.__qualname__.rpartition(".<locals>.")[2]
        what = name if argument is None else f"the argument {argument!r} of {name}"
        names = list(inspect.signature(function).parameters)
        place = len(names) if argument is None else names.index(argument)
        gone = (since[0], since[1] + LASTS)
        gone_in[what] = gone

        @functools.wraps(function)
        def wrapper(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            value = None
            if argument is not None:
                value = kwargs.get(argument, args[place] if place < len(args) else None)
            if argument is None or value is not None:
                warnings.warn(
                    f"{what} is deprecated since {since[0]}.{since[1]} and gone in "
                    f"{gone[0]}.{gone[1]}: write {instead.format(repr(value))}",
                    FutureWarning,
                    stacklevel=2,
                )
            return function(*args, **kwargs)

        return wrapper

    return decorate
