"""Data of a page: plain values, and arrays as text."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import ArrayLike

PageData = dict[str, object]
"""What a page reads as JSON: texts, numbers, None, and lists and dicts of these."""

_LARGEST = 2**31 - 1
"""Whole numbers up to this fit into four bytes."""


def packed(values: ArrayLike, kind: str) -> str:
    """Return an array as base64 of its little-endian bytes, after their type, such as ``f8``.

    Whole numbers are written in as few bytes as hold them all.
    """
    array = np.ascontiguousarray(values, kind)
    if (np.abs(array) <= _LARGEST).all() and (array == np.rint(array)).all():
        largest = int(np.abs(array).max(initial=0))
        array = array.astype("i1" if largest < 2**7 else "<i2" if largest < 2**15 else "<i4")
    return array.dtype.str[1:] + base64.b64encode(array.tobytes()).decode()
