"""What a fit did."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from latentree._display import displayed
from latentree._version import __version__
from latentree.data import ColumnKind


@dataclass(frozen=True)
class FitReport:
    """What learning did, step by step.

    Parameters
    ----------
    method : str
        How the parameters were found: "closed form", "distances" or "em".
    log_likelihood : float
        Of the data under the fitted model, weighted.
    n_parameters : int
        Number of free parameters of the model, κ.
    n_samples : float
        Sum of the weights of the rows.
    converged : bool
        Whether the stopping rule was met; False when a limit or an interrupt came first.
    log_likelihoods : tuple of float
        At each step of the start that was continued to the end; it never goes down.
    n_steps : int
        Expectation passes over the data, all starts together.
    held_out_log_likelihoods : tuple of float
        Mean log-likelihood of the held-out rows whenever they were looked at, where they decide on
        states, smoothing and stopping.
    starts : tuple of float
        Log-likelihood of each start after its short run.
    seconds : float
        Time that learning took.
    notes : tuple of str
        What deserves a look, for instance why EM stopped before it converged.
    columns : tuple of ColumnKind
        How every column of the table was taken: name, kind and reason, of those set aside too.
    date : str
        The day on which it was learned, as in 2026-01-31 (UTC).
    version : str
        Of latentree.

    Examples
    --------
    >>> report = FitReport("em", log_likelihood=-100.0, n_parameters=4, n_samples=50.0)
    >>> round(report.bic_score, 2)
    -107.82
    >>> report.aic_score
    -104.0
    """

    method: str
    log_likelihood: float
    n_parameters: int
    n_samples: float
    converged: bool = True
    log_likelihoods: tuple[float, ...] = ()
    n_steps: int = 0
    held_out_log_likelihoods: tuple[float, ...] = ()
    starts: tuple[float, ...] = ()
    seconds: float = 0.0
    notes: tuple[str, ...] = field(default=())
    columns: tuple[ColumnKind, ...] = ()
    date: str = field(default="", compare=False)
    version: str = field(default="", compare=False)

    @property
    def bic_score(self) -> float:
        """LL − κ/2·log n: higher is better."""
        return float(self.log_likelihood - 0.5 * self.n_parameters * np.log(self.n_samples))

    @property
    def aic_score(self) -> float:
        """LL − κ: higher is better."""
        return self.log_likelihood - self.n_parameters

    def __repr__(self) -> str:
        steps = f"{self.n_steps} steps, {'' if self.converged else 'not '}converged, "
        return (
            f"{type(self).__name__}({self.method}: log-likelihood {self.log_likelihood:,.1f}, "
            f"BIC score {self.bic_score:,.1f}, {self.n_parameters} parameters, "
            f"{steps if self.n_steps else ''}{self.seconds:.2g} s)"
        )

    def _repr_html_(self) -> str:
        return str(displayed("report", self))

    def timed(self, seconds: float) -> FitReport:
        """Return the same report with the time that it took, today's date and the version."""
        today = datetime.now(UTC).date().isoformat()
        return replace(self, seconds=seconds, date=today, version=__version__)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for files and tables.

        Returns
        -------
        dict
            Values by their names, the BIC score included; without the log-likelihoods of the
            steps.
        """
        return {
            "method": self.method,
            "log_likelihood": self.log_likelihood,
            "bic_score": self.bic_score,
            "n_parameters": self.n_parameters,
            "n_samples": self.n_samples,
            "converged": self.converged,
            "n_steps": self.n_steps,
            "seconds": self.seconds,
            "date": self.date,
            "version": self.version,
            "notes": list(self.notes),
            "columns": [column._asdict() for column in self.columns],
        }


class Fitted(NamedTuple):
    """A model and the report of how it was found."""

    model: Any
    report: FitReport
