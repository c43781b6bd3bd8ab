"""``model.save(path)``: the one thing that models ask of a layer above them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from typing import Any


class Savable:
    """Gives models a method ``save``; files know models, models know files only by name."""

    def save(self, path: str | os.PathLike[str], report: Mapping[str, Any] | None = None) -> None:
        """Write the model to a JSON file, with a report beside it if given.

        :func:`latentree.load` reads it back, equal to the last bit.
        """
        # By name, as the package itself does: an import here would turn the layers upside down.
        importlib.import_module("latentree.files").save(self, path, report)
