"""An exponential function that compilers turn into vector instructions; that of libm they call.

With n = x/log 2 to the nearest integer and r = x − n·log 2, eˣ = 2ⁿ·eʳ. The series of eʳ to r¹³ is
exact to rounding for |r| ≤ log(2)/2, and 2ⁿ is made from its bits: n + 1023 stands in the exponent.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel

LOWEST = -700.0
"""Arguments below are taken as this one, whose exponential, 1e-304, is practically 0."""

_PER_LOG_2 = 1.0 / math.log(2.0)
_LOG_2_HIGH = 0.6931471803691238  # the last bits are zero: n times it is exact
_LOG_2_LOW = 1.9082149292705877e-10
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1.0 / math.factorial(i) for i in range(2, 14)
)


@kernel(fastmath=True)
def exp(x):
    """Return eˣ to rounding, for x up to 700."""
    x = max(x, LOWEST)
    n = np.floor(x * _PER_LOG_2 + 0.5)
    r = (x - n * _LOG_2_HIGH) - n * _LOG_2_LOW
    y = _C9 + r * (_C10 + r * (_C11 + r * (_C12 + r * _C13)))
    y = _C4 + r * (_C5 + r * (_C6 + r * (_C7 + r * (_C8 + r * y))))
    y = 1.0 + r * (1.0 + r * (_C2 + r * (_C3 + r * y)))
    bits = (np.int64(np.int32(n)) + np.int64(1023)) << np.int64(52)
    return y * np.int64(bits).view(np.float64)
