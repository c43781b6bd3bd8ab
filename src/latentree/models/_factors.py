"""Reports of factor analysis on Gaussian trees: loadings, thresholds, factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from latentree.data import Schema, as_table
from latentree.inference import DiscretePosterior, Margin, Normal, Thresholds
from latentree.tree import Tree, leaf_edges
from latentree.typing import AnyArray, Cells, FloatArray, RandomState, TableLike

if TYPE_CHECKING:
    from latentree.models._gaussian import GaussianTreeModel  # which has these reports

N_RELIABLE = 2_000
"""Rows that are drawn to measure the reliability of hidden variables. They give a mean of numbers
from 0 to 1, whose standard error is at most 0.011."""


class FactorReports:
    """The reports of factor analysis, of models with Gaussian hidden variables."""

    if TYPE_CHECKING:  # fields and methods of the model

        @property
        def tree(self) -> Tree:
            """The tree of the model."""

        @property
        def schema(self) -> Schema:
            """The columns of the observed variables."""

        @property
        def latent(self) -> GaussianTreeModel:
            """The Gaussian tree behind the columns."""

        def sample(self, n_samples: int, random_state: RandomState = None) -> AnyArray:
            """Draw rows from the model."""

        def posterior(self, X: TableLike) -> Normal[FloatArray] | DiscretePosterior:
            """Return the distributions of the hidden variables given each row."""

    def loadings(self) -> dict[str, Cells]:
        """Return what each column shows of the hidden variable next to it.

        Returns
        -------
        dict
            Columns of equal length, as pandas and polars take them for a frame: "variable",
            "factor" (its neighbor in the tree), "loading" (their correlation, with the signs of
            :func:`latentree.models.orientation`), "communality" (its square, the share of the
            variance behind the variable that the factor explains) and "uniqueness" (the rest).

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> model = lt.CopulaTreeModel(star, [0.8, 0.6, -0.5, 0], [Thresholds([0.0])] * 3)
        >>> for column, cells in model.loadings().items():
        ...     print(column, cells)
        variable ['x0', 'x1', 'x2']
        factor ['h1', 'h1', 'h1']
        loading [0.8, 0.6, -0.5]
        communality [0.64, 0.36, 0.25]
        uniqueness [0.36, 0.64, 0.75]
        """
        from latentree.models._strength import edge_strengths  # which knows the models

        tree, strength = self.tree, edge_strengths(self)  # type: ignore[arg-type]
        found: dict[str, Cells] = {
            name: [] for name in ("variable", "factor", "loading", "communality", "uniqueness")
        }
        for column, (joined, edge) in enumerate(zip(*leaf_edges(tree), strict=True)):
            loading = float(strength[edge]) if joined >= 0 else 0.0
            row = (
                tree.names[column], tree.names[joined] if joined >= 0 else None,
                round(loading, 6), round(loading**2, 6), round(1.0 - loading**2, 6),
            )  # fmt: skip
            for cells, cell in zip(found.values(), row, strict=True):
                cells.append(cell)
        return found

    def factors(self) -> dict[str, Cells]:
        """Return the hidden variables: how reliably they are known, and their correlations.

        Returns
        -------
        dict
            Columns of equal length: "factor", "reliability" (the share of its variance that the
            scores of complete rows have, by 2,000 rows drawn from the model), "omega" (that of the
            sum of the variables next to it, McDonald's ω; 0 where there is none), "n_variables"
            (their number), and a column for every factor with the correlations along the tree.

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> star = lt.Tree([3, 3, 3, -1], n_observed=3)
        >>> model = lt.CopulaTreeModel(star, [0.9, 0.9, 0.9, 0], [Thresholds([-1, 0, 1])] * 3)
        >>> factors = model.factors()
        >>> round(factors["reliability"][0], 2), round(factors["omega"][0], 2)
        (0.87, 0.93)
        >>> factors["n_variables"], factors["h1"]
        ([3], [1.0])
        """
        from latentree.models._strength import orientation  # which knows the models

        tree, hidden = self.tree, self.tree.hidden
        sign = orientation(self)[hidden]  # type: ignore[arg-type]
        between = self.latent.correlation(hidden, hidden) * sign[:, None] * sign
        names = [tree.names[h] for h in hidden]
        loadings = self.loadings()
        pairs = list(zip(loadings["factor"], loadings["loading"], strict=True))
        own = [np.array([x for factor, x in pairs if factor == name]) for name in names]
        return {
            "factor": names,
            "reliability": self.reliability().tolist(),
            "omega": [round(_omega(each), 6) for each in own],
            "n_variables": [each.size for each in own],
            **{name: row.round(6).tolist() for name, row in zip(names, between, strict=True)},
        }

    def reliability(self) -> FloatArray:
        """Return the share of each hidden variable's variance that scores of complete rows have.

        Returns
        -------
        array of float, one per hidden variable

        Notes
        -----
        Marginal reliability, 1 − E[V[z | row]], over rows that are drawn from the model.

        References
        ----------
        B. F. Green, R. D. Bock, L. G. Humphreys, R. L. Linn and M. D. Reckase, "Technical
        guidelines for assessing computerized adaptive tests", Journal of Educational Measurement 21
        (1984).
        """
        drawn = as_table(self.sample(N_RELIABLE, 0), schema=self.schema)
        posterior = self.posterior(drawn)
        assert isinstance(posterior, Normal)
        variance = posterior.variance
        return np.asarray(np.clip(1.0 - variance.mean(axis=0), 0.0, 1.0))


class AnswerReports(FactorReports):
    """The reports of a :class:`latentree.CopulaTreeModel`, whose columns may be answers."""

    margins: Sequence[Margin]

    def thresholds(self) -> dict[str, Cells]:
        """Return the thresholds of ordered answers.

        Returns
        -------
        dict
            Columns of equal length: "variable", "from" and "to" (labels), and "threshold": where
            on the standard normal scale the answer changes from the one to the other.

        Examples
        --------
        >>> import latentree as lt
        >>> from latentree.inference import Thresholds
        >>> pair = lt.CopulaTreeModel(lt.Tree([-1, 0]), [0, 0.9], [Thresholds([-0.5, 1.0])] * 2)
        >>> pair.thresholds()["threshold"]
        [-0.5, 1.0, -0.5, 1.0]
        """
        found: dict[str, Cells] = {"variable": [], "from": [], "to": [], "threshold": []}
        for name, labels, margin in zip(
            self.schema.names, self.schema.labels, self.margins, strict=True
        ):
            if isinstance(margin, Thresholds):
                found["variable"] += [name] * margin.thresholds.size
                found["from"] += labels[:-1]
                found["to"] += labels[1:]
                found["threshold"] += margin.thresholds.tolist()
        return found


def _omega(loadings: FloatArray) -> float:
    """Return ω = (Σ|λ|)² / ((Σ|λ|)² + Σ(1 − λ²)): columns that fall with the factor are turned."""
    common = float(np.abs(loadings).sum()) ** 2
    return common / (common + float((1.0 - loadings**2).sum())) if loadings.size else 0.0
