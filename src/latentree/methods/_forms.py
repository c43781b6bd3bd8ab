"""Forms of a model that the columns leave open: states or Gaussian variables, and their scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from latentree.errors import ModelError
from latentree.methods._registry import Method, OptionValues, is_small

if TYPE_CHECKING:  # the help of the command line loads nothing heavy
    from latentree.distances import Sample

_ASKED_FOR = {"n_states", "max_states", "n_trees", "criterion"}
"""Options that settle the form."""
_ONE_FORM = ("chow_liu", "independent", "hclt")
"""Methods without hidden variables, and one whose states are for prediction."""


class ModelForm(NamedTuple):
    """A form of the model, and the sample that it is learned from."""

    name: str
    """In the report."""
    sample: Sample
    fitting: Mapping[str, Any] = {}
    """What the fit takes besides."""
    note: str = ""
    """What the report says of it."""


def model_forms(
    sample: Sample, method: Method, options: OptionValues, is_open: bool
) -> list[ModelForm]:
    """Return the forms among which BIC chooses; the option ``hidden`` is taken.

    Hidden variables are states or Gaussian. Behind ordered and real columns both are possible, and
    the likelihoods are of the same cells, so that BIC can choose. In the same way real columns have
    a normal scale or one from their ranks. Everything else has one form.

    Parameters
    ----------
    sample : Sample
    method : Method
    options : dict
        Options of the method that were given; ``hidden`` is removed.
    is_open : bool
        Whether nothing else that was asked for settles the form.

    Returns
    -------
    list of ModelForm
        The quickest to learn first.
    """
    hidden = options.pop("hidden", None)
    _check(hidden, sample)
    kinds = set(sample.schema.kinds)
    is_free = (
        is_open
        and sample.known_parts is not None
        and method.name not in _ONE_FORM
        and not _ASKED_FOR & set(options)
    )
    if hidden is None and sample.family != "copula":
        if not is_free or not kinds <= {"ordered", "real"}:
            return [ModelForm("as given", sample)]
        states = [ModelForm("states", sample)] if "ordered" in kinds else []
        return _gaussian_forms(sample, None, is_free) + states
    if hidden == "states":
        return [ModelForm("states", sample)]
    scale = hidden if hidden in ("ranks", "normal", "cells") else None
    return _gaussian_forms(sample, scale, is_free)


def _check(hidden: str | None, sample: Sample) -> None:
    """Refuse what contradicts the table; the registry has checked the values."""
    if hidden == "cells" and sample.family != "copula":
        raise ModelError("hidden is 'cells', which only tables of the family copula have")
    if hidden == "states" and sample.family == "copula":
        raise ModelError('a table of the family copula needs hidden="gaussian"')


def _gaussian_forms(sample: Sample, scale: str | None, is_free: bool) -> list[ModelForm]:
    """Return the forms with Gaussian hidden variables; None leaves scales to BIC."""
    from latentree.distances import as_copula

    scales, note = [scale or "normal"], ""
    if scale is None and is_free and "real" in sample.schema.kinds:
        if not is_small(sample):
            note = 'normal scales: ranks were not tried on so large a table (hidden="ranks" does)'
        elif _ranks_pay(sample):
            scales.append("ranks")
    is_plain = sample.family != "copula" and set(sample.schema.kinds) == {"real"}
    behind = sample if sample.family == "copula" else None
    forms = []
    for scale in scales:
        if scale == "normal" and is_plain:  # a Gaussian tree
            forms.append(ModelForm("Gaussian", sample, note=note))
            continue
        behind = as_copula(sample) if behind is None else behind
        name = "Gaussian with scales from ranks" if scale == "ranks" else "Gaussian"
        forms.append(ModelForm(name, behind, {"marginals": scale}, note))
    return forms


def _ranks_pay(sample: Sample) -> bool:
    """Whether scales from ranks have a higher BIC than normal ones, all columns together.

    Where they have not, the tree behind them would have to make up for what they cost.
    """
    import numpy as np

    from latentree.inference import RankMargin

    table = sample.parts.to_table()
    weights, gain = table.weight_array(), 0.0
    for column in np.flatnonzero([kind == "real" for kind in table.schema.kinds]).tolist():
        x = table.column(column)
        there = ~np.isnan(x) & (weights > 0)
        x, w = x[there], weights[there]
        if np.unique(x).size < 2:
            continue
        margin, n = RankMargin.of(x, w), w.sum()
        center = w @ x / n
        spread = np.sqrt(w @ (x - center) ** 2 / n)
        # Logarithms of both densities, φ(y)·dy/dx and φ(z)/σ with z = (x − μ)/σ.
        y, z = margin.score(x), (x - center) / spread
        ahead = margin.log_slope(x) + np.log(spread) + 0.5 * (z * z - y * y)
        gain += float(w @ ahead) - 0.5 * (margin.n_parameters - 2) * float(np.log(n))
    return gain > 0.0
