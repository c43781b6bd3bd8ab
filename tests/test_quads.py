"""Tables in quads, and operations on four numbers, against their definitions in whole arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latentree._kernels import vectors
from latentree._kernels.compiling import kernel, repeated, tiny
from latentree._kernels.inference import quads

seeds = st.integers(0, 10**6)
widths = st.integers(1, 40)
states = st.integers(1, 13)
quickly = settings(max_examples=40, deadline=None)


def filled(n_states):
    return n_states + -n_states % 4


def table(rng, n_states, width):
    """Return a table with a row a state, filled up to quads."""
    return rng.random((filled(n_states), width))


def in_quads(numbers):
    """Return the same numbers in quads: quad q of pattern p holds the states from 4·q on."""
    n_states, width = numbers.shape
    return numbers.reshape(n_states // 4, 4, width).transpose(0, 2, 1).ravel()


@given(seed=seeds, n_states=states, width=widths, more=st.integers(0, 5))
@quickly
def test_tables_are_copied_to_quads_and_back(seed, n_states, width, more):
    wide = table(np.random.default_rng(seed), n_states, width + more)
    numbers = wide[:, :width]
    found, back = np.empty(numbers.size), np.zeros_like(wide)
    with repeated():
        quads.fill_quads(wide.ravel(), width + more, n_states, width, found, width)
        quads.read_quads(found, width, n_states, width, back.ravel(), width + more)
    np.testing.assert_array_equal(found, in_quads(numbers))
    np.testing.assert_array_equal(back[:, :width], numbers)
    assert not back[:, width:].any()


@given(seed=seeds, n_states=states, n_a=widths, n_b=widths, width=widths)
@quickly
def test_patterns_are_looked_up_and_added_up(seed, n_states, n_a, n_b, width):
    rng = np.random.default_rng(seed)
    a, b, block = (table(rng, n_states, n) for n in (n_a, n_b, width))
    at_a, at_b = (rng.integers(0, n, width).astype(np.uint32) for n in (n_a, n_b))
    fetched, product = np.empty((2, block.size))
    sums = in_quads(a).copy()
    with repeated():
        quads.fetch_quads(in_quads(a), n_a, at_a, n_states, width, fetched, width)
        parts = (
            quads.JoinPart(in_quads(a), n_a, at_a, True),
            quads.JoinPart(in_quads(b), n_b, at_b, True),
        )
        quads.multiply_quads(*parts, n_states, width, product, width)
        quads.scatter_quads(in_quads(block), width, at_a, n_states, width, sums, n_a)
    np.testing.assert_array_equal(fetched, in_quads(a[:, at_a]))
    np.testing.assert_array_equal(product, in_quads(a[:, at_a] * b[:, at_b]))
    expected = a.copy()
    for p, pattern in enumerate(at_a):
        expected[:, pattern] += block[:, p]
    np.testing.assert_allclose(sums, in_quads(expected), rtol=1e-13)


@kernel()
def all_operations(out, a, b):
    vectors.copy_four(out, 1, a, 2)
    vectors.add_four(out, 2, b, 3)
    vectors.multiply_four(out, 6, a, 0, b, 5)
    vectors.turn_four(out, 10, 5, a, 1, 4)


@pytest.mark.parametrize("is_tiny", [False, True])
def test_operations_on_four_numbers(is_tiny):
    a, b = np.random.default_rng(0).random((2, 30))
    out = np.zeros(30)
    with tiny(is_tiny):
        all_operations(out, a, b)
    expected = np.zeros(30)
    expected[1:5] = a[2:6]
    expected[2:6] += b[3:7]
    expected[6:10] = a[:4] * b[5:9]
    rows = a[1:17].reshape(4, 4)
    for column in range(4):
        expected[10 + 5 * column : 14 + 5 * column] = rows[:, column]
    np.testing.assert_array_equal(out, expected)
