"""latentree finds the hidden variables that tie your variables together.

Nothing heavy is imported until it is used: names below are looked up on first access.
"""

from __future__ import annotations

import importlib

from latentree._display import show_by
from latentree._version import __version__ as __version__

TYPE_CHECKING = False  # that of typing, whose import takes longer than all that is here
if TYPE_CHECKING:
    from typing import Any

    from latentree import (
        data,
        datasets,
        distances,
        em,
        errors,
        formats,
        inference,
        methods,
        metrics,
        models,
        plot,
        search,
        simulate,
        structure,
        support,
        topics,
    )
    from latentree.data import Schema, Table, as_parts, as_table
    from latentree.distances import Distances, information_distances
    from latentree.em import fit_parameters
    from latentree.estimator import (
        LatentTree,
        LatentTreeClassifier,
        LatentTreeCovariance,
        LatentTreeImputer,
        LatentTreeRegressor,
    )
    from latentree.explorer import write_explorer, write_topics
    from latentree.inference import CountEmission, GaussianEmission
    from latentree.models import (
        CopulaTreeModel,
        DiscreteTreeModel,
        GaussianTreeModel,
        MixedTreeModel,
        load,
    )
    from latentree.plot import plot_tree
    from latentree.support import bootstrap_support
    from latentree.tree import Tree

_HOME = {
    "CountEmission": "latentree.inference",
    "DiscreteTreeModel": "latentree.models",
    "Distances": "latentree.distances",
    "GaussianEmission": "latentree.inference",
    "GaussianTreeModel": "latentree.models",
    "LatentTree": "latentree.estimator",
    "LatentTreeClassifier": "latentree.estimator",
    "LatentTreeCovariance": "latentree.estimator",
    "LatentTreeImputer": "latentree.estimator",
    "LatentTreeRegressor": "latentree.estimator",
    "CopulaTreeModel": "latentree.models",
    "MixedTreeModel": "latentree.models",
    "Schema": "latentree.data",
    "Table": "latentree.data",
    "Tree": "latentree.tree",
    "as_parts": "latentree.data",
    "as_table": "latentree.data",
    "bootstrap_support": "latentree.support",
    "fit_parameters": "latentree.em",
    "information_distances": "latentree.distances",
    "load": "latentree.models",
    "plot_tree": "latentree.plot",
    "write_explorer": "latentree.explorer",
    "write_topics": "latentree.explorer",
}
_MODULES = (
    "data",
    "datasets",
    "distances",
    "em",
    "errors",
    "formats",
    "inference",
    "methods",
    "metrics",
    "models",
    "plot",
    "search",
    "simulate",
    "structure",
    "support",
    "topics",
)

__all__ = [
    "CopulaTreeModel",
    "CountEmission",
    "DiscreteTreeModel",
    "Distances",
    "GaussianEmission",
    "GaussianTreeModel",
    "LatentTree",
    "LatentTreeClassifier",
    "LatentTreeCovariance",
    "LatentTreeImputer",
    "LatentTreeRegressor",
    "MixedTreeModel",
    "Schema",
    "Table",
    "Tree",
    "as_parts",
    "as_table",
    "bootstrap_support",
    "data",
    "datasets",
    "distances",
    "em",
    "errors",
    "fit_parameters",
    "formats",
    "inference",
    "information_distances",
    "load",
    "methods",
    "metrics",
    "models",
    "plot",
    "plot_tree",
    "search",
    "simulate",
    "structure",
    "support",
    "topics",
    "write_explorer",
    "write_topics",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(_HOME[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"latentree.{name}")
    raise AttributeError(f"module 'latentree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))


def _tree_html(shown: Any) -> str:
    from latentree.plot import tree_html

    return tree_html(shown)


def _estimator_html(shown: Any) -> str:
    from latentree.plot import fitted_html

    return fitted_html(shown)


def _page(model: Any, data: Any, height: int, **options: Any) -> Any:
    from latentree.explorer import ExplorerPage, explorer_html

    return ExplorerPage(explorer_html(model, data, **options), height)


show_by(tree=_tree_html, estimator=_estimator_html, report=_estimator_html, page=_page)
