"""Refinement of Gaussian trees, on the covariance of the data.

With all cells present the covariance says everything; with missing ones changes are judged by the
covariance that is expected under the current model, and fits run on the table itself.
"""

from __future__ import annotations

import numpy as np

from latentree._kernels.inference import gaussian as row_kernels
from latentree._kernels.search import beliefs as kernels
from latentree.distances import Sample
from latentree.em import Budget, RowProblem, maximize
from latentree.inference import chunks
from latentree.models import GaussianTreeModel, in_order
from latentree.search._refinement._draft import Draft, GaussianDraft
from latentree.search._refinement._gaussian_moves import Moves
from latentree.search._refinement._proposal import Proposal, Request
from latentree.search._refinement._space import Space, compressed
from latentree.typing import FloatArray

CONVERGED = 1e-6
"""Rise of the log-likelihood in a cycle of EM below which a fit does not go on."""


class GaussianEngine:
    """Changes of Gaussian trees on one table.

    A gain is exact when no cell is missing. Otherwise it is a lower bound: the rise of the
    log-likelihood that is expected if missing cells follow the current model.
    """

    # Hidden nodes that were let in for less are hard to get rid of again.
    stages: tuple[float, ...] = (0.7, 1.0)

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.n_samples = sample.total_weight
        self.moments = sample.statistics.moments
        self._data: FloatArray | None = None
        if sample.is_summed:
            self._data = sample.statistics.correlation_root

    def draft(self, model: GaussianTreeModel) -> GaussianDraft:
        """Return a model as a draft."""
        return GaussianDraft.of(model)

    def model(self, draft: Draft) -> GaussianTreeModel:
        """Return a draft as a model."""
        assert isinstance(draft, GaussianDraft)
        return draft.model(self.sample.names, *(draft.moments or self.moments))

    def settle(self, draft: Draft, n_steps: int) -> tuple[Draft, float]:
        """Run accelerated EM on all parameters; return the draft and its log-likelihood."""
        if self._data is None:
            return self._settle_rows(draft, n_steps)
        space = Space(draft, self._data)
        value = space.fit(n_steps, CONVERGED / self.n_samples)
        new = draft.copy()
        for node, rho in zip(space.nodes, space.rho.tolist(), strict=True):
            if new.parent[node] >= 0:
                new.above[node] = rho
        return new, self.n_samples * (value + self._alone())

    def structures(self, request: Request) -> list[Proposal]:
        """Return changes of the edges that may be worth it."""
        data = self._data
        if data is None:
            data = compressed(self._expected(self.model(request.draft)))
        return list(Moves(request, data, self.n_samples))

    def states(self, request: Request) -> list[Proposal]:
        """Return nothing: Gaussian nodes have no states."""
        return []

    def _alone(self) -> float:
        """Log-likelihood per sample of the columns as independent ones."""
        each = np.log(self.moments[1]) + 0.5 * (1.0 + np.log(2.0 * np.pi))
        return -float(each.sum())

    # With missing cells -------------------------------------------------------------------------

    def _settle_rows(self, draft: Draft, n_steps: int) -> tuple[Draft, float]:
        model = self.model(draft)
        problem = RowProblem(model.tree, self.sample)
        budget = Budget(max_steps=3 * n_steps, tolerance=1e-7)
        fitted, report = maximize(problem, [problem.point(model)], budget)
        new = GaussianDraft.of(fitted, sorted(draft.parent))
        new.next_number = draft.next_number
        new.moments = (fitted.means, fitted.scales)
        return new, report.log_likelihood

    def _expected(self, model: GaussianTreeModel) -> FloatArray:
        """Expected covariance of the columns under a model, in its units."""
        table, tree = self.sample.table, model.tree
        m = table.n_columns
        parent, place = in_order(tree)
        units = np.append(model.means, np.zeros(tree.n_hidden))
        scales = np.append(model.scales, np.ones(tree.n_hidden))
        total = np.zeros((m, m))
        weights = table.weight_array()
        for start, stop in chunks(table.n_rows, 3 * tree.n_nodes):
            rows, w = table.values[start:stop], weights[start:stop]
            shape = (stop - start, tree.n_nodes)
            states, variances, covariances = np.zeros(shape), np.empty(shape), np.empty(shape)
            row_kernels.run_rows(
                rows, 0, stop - start, place, parent, model.correlations[tree.order], units,
                1.0 / scales, np.empty(stop - start), states, variances, covariances,
            )  # fmt: skip
            seen = states[:, :m]
            total += seen.T @ (seen * w[:, None])
            kernels.add_spread(parent, m, tree.order, variances, covariances, w, total)
        return total / self.n_samples
