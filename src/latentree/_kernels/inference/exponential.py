"""An exponential and a logarithm that compilers turn into vector instructions; libm's they call.

With n = x/log 2 to the nearest integer and r = x − n·log 2, eˣ = 2ⁿ·eʳ. The series of eʳ to r¹³ is
exact to rounding for |r| ≤ log(2)/2, and 2ⁿ is made from its bits: n + 1023 stands in the exponent.

A number is 2ⁿ·m by its bits, with m from √½ to √2. With s = (m − 1)/(m + 1), at most 0.172,
log m = 2·(s + s³/3 + s⁵/5 + …), exact to rounding with s²¹.
"""

from __future__ import annotations

import math

import numpy as np

from latentree._kernels.compiling import kernel

LOWEST = -700.0
"""Arguments below are taken as this one, whose exponential, 1e-304, is practically 0."""

_PER_LOG_2 = 1.0 / math.log(2.0)
# log 2 in two parts, so that r keeps all its digits (Cody and Waite).
_LOG_2_HIGH = 0.6931471803691238  # the last bits are zero: n times it is exact
_LOG_2_LOW = 1.9082149292705877e-10
# Coefficients of the series of eʳ.
_C2, _C3, _C4, _C5, _C6, _C7, _C8, _C9, _C10, _C11, _C12, _C13 = (
    1.0 / math.factorial(i) for i in range(2, 14)
)


@kernel(fastmath=True)
def exp(x):
    """Return eˣ to rounding, for x up to 700."""
    x = max(x, LOWEST)
    n = np.floor(x * _PER_LOG_2 + 0.5)
    r = (x - n * _LOG_2_HIGH) - n * _LOG_2_LOW
    # Horner's scheme.
    y = _C9 + r * (_C10 + r * (_C11 + r * (_C12 + r * _C13)))
    y = _C4 + r * (_C5 + r * (_C6 + r * (_C7 + r * (_C8 + r * y))))
    y = 1.0 + r * (1.0 + r * (_C2 + r * (_C3 + r * y)))
    bits = (np.int64(np.int32(n)) + np.int64(1023)) << np.int64(52)
    return y * np.int64(bits).view(np.float64)


_ROOT_HALF = 0x3FE6A09E667F3BCD  # the bits of √½
# Coefficients of the series of log m in s.
_D1, _D2, _D3, _D4, _D5, _D6, _D7, _D8, _D9, _D10 = (2.0 / (2 * i + 1) for i in range(1, 11))


@kernel(fastmath=True)
def log(x):
    """Return log x to rounding, for x from 2⁻¹⁰²² on."""
    bits = np.float64(x).view(np.int64)
    n = (bits - np.int64(_ROOT_HALF)) >> np.int64(52)
    m = np.int64(bits - (n << np.int64(52))).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    y = _D5 + z * (_D6 + z * (_D7 + z * (_D8 + z * (_D9 + z * _D10))))
    y = z * (_D1 + z * (_D2 + z * (_D3 + z * (_D4 + z * y))))
    power = np.float64(np.int32(n))
    return power * _LOG_2_HIGH + (s * (2.0 + y) + power * _LOG_2_LOW)
