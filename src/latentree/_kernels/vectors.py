"""Operations on four neighboring numbers at once.

The compiler turns long loops into vector instructions, but not a few operations that stand side by
side. These are such operations: loads of four numbers, a product, a sum or an exchange of places,
and stores. Kernels call them by name, as they call each other; where nothing is compiled they are
slices of arrays.

>>> import numpy as np
>>> out, a, b = np.zeros(4), np.arange(8.0), np.full(4, 2.0)
>>> multiply_four(out, 0, a, 4, b, 0)
>>> add_four(out, 0, b, 0)
>>> out
array([10., 12., 14., 16.])
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


class Operation:
    """A function that reads and writes four neighboring numbers of its arguments, arrays of float.

    Parameters
    ----------
    instructions : callable
        Given the builder of instructions and the arguments, addresses in place of arrays, it writes
        the instructions.
    function : callable
        The same in slices of arrays, for where nothing is compiled.
    """

    def __init__(self, instructions: Callable[..., None], function: Callable[..., None]) -> None:
        functools.update_wrapper(self, function)
        self._instructions = instructions
        self._function = function

    def __call__(self, *arguments: object) -> None:
        """Run it without the compiler."""
        self._function(*arguments)

    @functools.cached_property
    def _numba_type_(self) -> Any:
        """What the compiler takes this object for where a kernel calls it."""
        from numba.core import types
        from numba.core.registry import cpu_target
        from numba.extending import intrinsic

        def of_four(typing, a, b, c, d):
            return types.void(a, b, c, d), self._code

        def of_six(typing, a, b, c, d, e, f):
            return types.void(a, b, c, d, e, f), self._code

        n_arguments = self._function.__code__.co_argcount
        known = intrinsic(of_four if n_arguments == 4 else of_six)
        cpu_target.typing_context.refresh()
        return cpu_target.typing_context.resolve_value_type(known)

    def _code(self, context: Any, builder: Any, signature: Any, values: Any) -> Any:
        arguments = [
            context.make_array(kind)(context, builder, value).data
            if hasattr(kind, "ndim")
            else value
            for kind, value in zip(signature.args, values, strict=True)
        ]
        self._instructions(builder, *arguments)
        return context.get_dummy_value()


def operation(instructions: Callable[..., None]) -> Callable[[Callable[..., None]], Operation]:
    """Make an operation of a function on slices of arrays."""
    return functools.partial(Operation, instructions)


def _address(builder, array, place):
    from llvmlite import ir

    four = ir.VectorType(ir.DoubleType(), 4)
    return builder.bitcast(builder.gep(array, [place]), four.as_pointer())


def _load(builder, array, place):
    return builder.load(_address(builder, array, place), align=8)  # four may begin anywhere


def _store(builder, numbers, array, place):
    builder.store(numbers, _address(builder, array, place), align=8)


def _build_copy(builder, out, i, a, j):
    _store(builder, _load(builder, a, j), out, i)


@operation(_build_copy)
def copy_four(out, i, a, j):
    """Set four numbers to those of another array."""
    out[i : i + 4] = a[j : j + 4]


def _build_sum(builder, out, i, a, j):
    _store(builder, builder.fadd(_load(builder, out, i), _load(builder, a, j)), out, i)


@operation(_build_sum)
def add_four(out, i, a, j):
    """Add four numbers of another array."""
    out[i : i + 4] += a[j : j + 4]


def _build_product(builder, out, i, a, j, b, k):
    _store(builder, builder.fmul(_load(builder, a, j), _load(builder, b, k)), out, i)


@operation(_build_product)
def multiply_four(out, i, a, j, b, k):
    """Set four numbers to products of those of two arrays."""
    out[i : i + 4] = a[j : j + 4] * b[k : k + 4]


def _build_turn(builder, out, i, out_step, a, j, a_step):
    from llvmlite import ir

    def chosen(x, y, places):
        """Four of the eight numbers of two fours."""
        mask = ir.Constant(ir.VectorType(ir.IntType(32), 4), places)
        return builder.shuffle_vector(x, y, mask)

    rows = []
    for row in range(4):
        rows.append(_load(builder, a, j))
        j = builder.add(j, a_step) if row < 3 else j
    even = [chosen(rows[r], rows[r + 1], [0, 4, 2, 6]) for r in (0, 2)]
    odd = [chosen(rows[r], rows[r + 1], [1, 5, 3, 7]) for r in (0, 2)]
    for half in ([0, 1, 4, 5], [2, 3, 6, 7]):
        for pair in (even, odd):
            _store(builder, chosen(pair[0], pair[1], half), out, i)
            i = builder.add(i, out_step)


@operation(_build_turn)
def turn_four(out, i, out_step, a, j, a_step):
    """Turn four rows of four numbers into columns; rows begin a step after each other."""
    rows = [a[j + r * a_step : j + r * a_step + 4] for r in range(4)]
    for column in range(4):
        start = i + column * out_step
        out[start : start + 4] = [row[column] for row in rows]
