"""``model.save(path)`` for every model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from latentree.typing import PathLike


class Savable:
    """Gives models a method ``save``."""

    def save(self, path: PathLike, report: Mapping[str, Any] | None = None) -> None:
        """Write the model to a JSON file, which appears complete or not at all.

        :func:`latentree.load` reads it back, equal to the last bit.

        Parameters
        ----------
        path : path of the file
        report : mapping, optional
            What to remember beside the model: plain values, lists and dicts.
            :func:`latentree.models.load_report` reads it back.

        Raises
        ------
        FileError
            When the model or the report holds what no file can, with the name of the part.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import latentree as lt
        >>> model = lt.GaussianTreeModel(lt.Tree([-1, 0]), [0, 0.5])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(Path(folder) / "model.json", {"method": "by hand"})
        ...     lt.models.load_report(Path(folder) / "model.json")
        {'method': 'by hand'}
        """
        from latentree.models import _file  # which knows the models

        _file.save(self, path, report)  # type: ignore[arg-type]
