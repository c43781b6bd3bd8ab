"""Arrays as text."""

from __future__ import annotations

import base64

import numpy as np
from numpy.typing import ArrayLike


def packed(values: ArrayLike, kind: str) -> str:
    """Return an array as base64 of its little-endian bytes."""
    return base64.b64encode(np.ascontiguousarray(values, kind).tobytes()).decode()
