"""Support beside a model, in its file."""

from __future__ import annotations

from latentree.errors import FileError
from latentree.models import load, load_report
from latentree.support._support import Support
from latentree.typing import PathLike


def load_support(path: PathLike) -> Support | None:
    """Read the support that a model file holds in its report.

    Parameters
    ----------
    path : path of the model file
        Written by ``model.save(path, {"support": support.as_dict()})``, or by the command line.

    Returns
    -------
    Support or None
        Without the replicates; None if the file holds no support.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.double_star(6), 0)
    >>> support = lt.support.support_from(model.tree, [model.tree, lt.simulate.latent_class(6)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "model.json"
    ...     model.save(path, {"support": support.as_dict()})
    ...     load_support(path).edges["share"]
    [0.5]
    """
    facts = (load_report(path) or {}).get("support")
    if facts is None:
        return None
    try:
        return Support.from_dict(load(path).tree, facts)
    except FileError as error:
        what = "the support in the report does not fit the tree"
        raise FileError(f"{path}: {what}: {error}") from error
