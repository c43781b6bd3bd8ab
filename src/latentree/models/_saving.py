"""``model.save(path)`` for every model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from latentree.typing import PathLike


class Savable:
    """Gives models a method ``save``."""

    def save(self, path: PathLike, report: Mapping[str, Any] | None = None) -> None:
        """Write the model to a JSON file, with a report beside it if given.

        :func:`latentree.load` reads it back, equal to the last bit.
        """
        from latentree.models import _file  # which knows the models

        _file.save(self, path, report)  # type: ignore[arg-type]
