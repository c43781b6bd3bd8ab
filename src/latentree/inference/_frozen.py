"""Fields of frozen dataclasses."""

from __future__ import annotations

import numpy as np


def set_fields(target: object, **fields: object) -> None:
    """Set fields of a frozen dataclass from within its constructor; arrays become read-only."""
    for name, value in fields.items():
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        object.__setattr__(target, name, value)
