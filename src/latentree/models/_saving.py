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

        Parameters
        ----------
        path : str or path
            The file. It appears complete or not at all.
        report : mapping, optional
            What to keep beside the model (how it was learned, scores, notes): plain values, lists
            and dicts. :func:`latentree.models.load_report` reads it back.

        Examples
        --------
        >>> import latentree as lt, tempfile
        >>> model = lt.simulate.random_gaussian_model(lt.simulate.latent_class(3), 0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.json")
        ...     lt.load(f"{folder}/model.json")
        GaussianTreeModel(Tree(3 observed, 1 hidden, 3 edges))
        """
        from latentree.models import _file  # which knows the models

        _file.save(self, path, report)  # type: ignore[arg-type]
