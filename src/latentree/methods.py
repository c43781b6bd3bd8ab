"""The registry of methods: what each is, which options it takes, and one door to all of them.

Estimator, command line, their help and the documentation read it. To add a method, add an entry to
:data:`METHODS`; to add an option, an entry to :data:`OPTIONS` and its name to the methods that
take it.
"""

from __future__ import annotations

import importlib
import math
import textwrap
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from latentree.errors import DataWarning, ModelError

if TYPE_CHECKING:  # the help of the command line reads the registry, and nothing heavy
    from numpy.typing import ArrayLike

    from latentree.distances import Sample
    from latentree.em import Budget, Fitted, HeldOutFit
    from latentree.models import TreeModel
    from latentree.support import Support
    from latentree.tree import Tree
    from latentree.typing import Progress


@dataclass(frozen=True)
class Option:
    """An option of one or more methods.

    Parameters
    ----------
    type : str
        What it may be, in words.
    default : object
        Its value where nothing is said.
    meaning : str
        A sentence or two without a final stop.
    flag : str
        How the command line calls it; empty if it does not.

    Examples
    --------
    >>> OPTIONS["n_starts"].type, OPTIONS["n_starts"].default
    ('int', 3)
    """

    type: str
    default: Any
    meaning: str
    flag: str = ""


OPTIONS: Mapping[str, Option] = {
    "refit": Option(
        "bool", True,
        "whether parameters are fitted by maximum likelihood. If not, they follow from the "
        "distances (Gaussian and symmetric families)",
    ),
    "hidden": Option(
        '"states" or "gaussian"', None,
        "what hidden variables are: states, or Gaussian variables, of which an ordered column "
        "shows the interval between two thresholds. By default Gaussian if all columns are real, "
        "and states otherwise. On the command line a number here is n_hidden",
        "--hidden",
    ),
    "marginals": Option(
        '"normal" or "ranks"', "normal",
        "scales of real columns: normal, or estimated from their ranks, so that tails and outliers "
        "do not make the tree; hidden variables are Gaussian then",
        "--marginals",
    ),
    "n_states": Option(
        'int or "auto"', None,
        "number of states of every hidden variable of a discrete or mixed model. By default that "
        "of most columns; for lcm the one with the highest BIC, and for mixed data each variable "
        "its own, see criterion. "
        "auto, which is hclt's default: as many as predict held-out rows best",
        "--states",
    ),
    "n_trees": Option(
        'int or "auto"', None,
        "number of trees of a mixture, each with its own structure and parameters; by default one "
        "tree, for hclt on discrete columns four unless n_states is given. "
        "auto: a committee of mixtures, as many trees as predict held-out rows best",
        "--trees",
    ),
    "validation_fraction": Option(
        "float", None,
        "share of the rows that is held out, where these decide on states, smoothing and stopping; "
        "by default a tenth, of fewer than 5,000 rows up to a quarter",
        "--validation-fraction",
    ),
    "n_hidden": Option(
        "int", None,
        "most hidden variables for reg_clrg and reg_clnj; their number for refined",
        "--hidden",
    ),
    "start": Option(
        "str or list of str", None,
        "the method, or several, whose tree is refined; by default the best of nj, clnj and clrg",
        "--start",
    ),
    "criterion": Option(
        '"bic", "ebic", "aic", "cv" or float', "bic",
        "what is maximized: bic, ebic, aic, cv (chosen by held-out rows), or a multiple of BIC's "
        "penalty, such as 0.5. Beside refined it is for mixed data: bic, aic or cv chooses the "
        "number of states of hidden variables",
        "--criterion",
    ),
    "max_states": Option(
        "int", None, "most states of a hidden variable; by default free", "--max-states"
    ),
    "caution": Option(
        "float", 1.0,
        "how much more than chance a subtree's new place must gain; more keeps more of the start, "
        "with 0 the criterion alone decides",
        "--caution",
    ),
    "prior_weight": Option(
        "float", 0.0, "weight of a uniform prior on discrete tables, as a number of rows"
    ),
    "n_starts": Option(
        "int", 3, "starts of EM, the first from the distances and the others random"
    ),
    "max_steps": Option("int", 5_000, "most steps of EM"),
    "time_limit": Option(
        "float", None, "most seconds for EM, and for the search of refined", "--time-limit"
    ),
    "stepwise": Option(
        "bool", False,
        "whether EM begins with stepwise passes over parts of the rows: quicker for millions",
        "--stepwise",
    ),
    "checkpoint": Option(
        "path", None,
        "a file that keeps EM while it is under way, so that a fit that was broken off goes on",
        "--checkpoint",
    ),
}  # fmt: skip
"""Every option by its name."""

_EM = ("max_steps", "time_limit")
_MIXED = ("criterion", "max_states")  # choose numbers of states of mixed data
_BEHIND = ("hidden", "marginals")
_FROM_DISTANCES = (
    "refit", *_BEHIND, "n_states", "n_trees", "validation_fraction", *_MIXED, "n_starts",
    "prior_weight", *_EM, "stepwise", "checkpoint",
)  # fmt: skip
_REFINED = ("start", "criterion", "n_hidden", "max_states", "caution", "prior_weight")
_HELD_OUT = ("validation_fraction", "X_valid")
_ALL = ("gaussian", "discrete", "symmetric", "mixed", "copula")


@dataclass(frozen=True)
class Method:
    """A way from data to a model.

    Parameters
    ----------
    name : str
        How users call it.
    summary : str
        What it does, in a line.
    learner : str
        Where its function is, as ``module:name``; it is imported when it is used.
    options : tuple of str
        Names of the options that it takes.
    families : tuple of str
        Families of data that it learns from.
    from_distances : bool
        Whether it needs nothing but distances for the tree.
    settings : mapping
        What the function is called with besides.

    Examples
    --------
    >>> METHODS["clnj"].summary
    'neighbor joining in the neighborhoods of the Chow-Liu tree'
    >>> METHODS["refined"].families
    ('gaussian', 'discrete', 'mixed', 'copula')
    """

    name: str
    summary: str
    learner: str
    options: tuple[str, ...]
    families: tuple[str, ...] = _ALL
    from_distances: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def function(self) -> Callable[..., Any]:
        """Import the learner.

        Returns
        -------
        callable
            The learner with its settings.
        """
        module, name = self.learner.split(":")
        return partial(getattr(importlib.import_module(module), name), **self.settings)


def _structure(name: str, summary: str, function: str, **settings: Any) -> Method:
    learner = f"latentree.structure:{function}"
    return Method(name, summary, learner, _FROM_DISTANCES, _ALL, True, settings)


def _search(name: str, summary: str, function: str, *options: str, **settings: Any) -> Method:
    families = ("gaussian", "discrete", "mixed", "copula") if name == "refined" else _ALL
    learner = f"latentree.search:{function}"
    return Method(name, summary, learner, (*options, *_BEHIND, *_EM), families, False, settings)


METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        _structure("chow_liu", "the best tree without hidden variables", "chow_liu"),
        _structure("nj", "neighbor joining", "neighbor_joining"),
        _structure("snj", "spectral neighbor joining", "spectral_neighbor_joining"),
        _structure("rg", "recursive grouping", "recursive_grouping"),
        _structure("cl_blind", "a blind transformation of the Chow-Liu tree", "cl_blind"),
        _structure(
            "clnj", "neighbor joining in the neighborhoods of the Chow-Liu tree", "cl_grouping",
            subroutine="nj",
        ),
        _structure(
            "clrg", "recursive grouping in the neighborhoods of the Chow-Liu tree", "cl_grouping",
            subroutine="rg",
        ),
        Method(
            "hclt", "the Chow-Liu tree with a hidden variable for each inner one, for prediction",
            "latentree.structure:hidden_chow_liu",
            (*_BEHIND, "n_states", "n_trees", "validation_fraction", *_EM),
            _ALL[:-1], from_distances=True,
        ),
        _search(
            "reg_clnj", "clnj, where hidden variables enter only if they raise the BIC",
            "regularized_cl_grouping", "n_hidden", subroutine="nj",
        ),
        _search(
            "reg_clrg", "clrg, where hidden variables enter only if they raise the BIC",
            "regularized_cl_grouping", "n_hidden", subroutine="rg",
        ),
        _search("independent", "no edges: what any other model has to beat", "independent"),
        _search("lcm", "one hidden variable: a latent class or one-factor model", "latent_class",
                "n_states", *_MIXED),
        _search("bin", "a binary tree, joined greedily from the bottom up", "binary_tree"),
        _search("refined", "a tree from distances, improved by local changes", "refined",
        *_REFINED),
        Method(
            "consensus", "what rg, clnj and snj agree on, over resampled rows",
            "latentree.support:consensus", (*_BEHIND, "n_states", "n_starts", "prior_weight", *_EM),
        ),
    )
}  # fmt: skip
"""Every method by its name."""


AUTO = "auto"
"""The default: :func:`choose_method` takes one of two methods, by the size of the table."""

CHOSEN = f"{AUTO}: learned by "
"""How the note begins that says which method was taken."""

SMALL_COLUMNS = 50
"""Up to so many columns a table is small. On 700 rows of up to 30 columns refinement took some
seconds and mostly predicted better, on 100 to 180 columns 10 s and more; docs/which-method.md."""

SMALL_CELLS = 200_000
"""Up to so many cells, too, unless sums take the place of rows: 2,800 × 25 answers took 23 s."""


def choose_method(method: str, sample: Sample, options: Mapping[str, Any]) -> str:
    """Return the method itself, or for "auto" the one that suits the table.

    That is ``refined`` for small tables: up to 50 columns and, unless all columns are real and
    complete, 200,000 cells. For others, and where an option is asked for that ``refined`` does not
    take, it is ``clnj``.

    Parameters
    ----------
    method : str
        "auto" or one of ``METHODS``.
    sample : Sample
        What is learned from.
    options : mapping
        Options that were given, see :func:`chosen_options`.

    Returns
    -------
    str
        One of ``METHODS``.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.distances import as_sample
    >>> x = np.random.default_rng(0).normal(size=(100, 60))
    >>> [choose_method("auto", as_sample(x[:, :m]), {}) for m in (10, 60)]
    ['refined', 'clnj']
    """
    if method != AUTO:
        return method_named(method).name
    searching, quick = METHODS["refined"], METHODS["clnj"]
    takes = sample.family in searching.families and set(options) <= set(searching.options)
    if not takes or not set(options) <= set(quick.options):
        return searching.name if takes else quick.name
    n_cells = sample.statistics.n_rows * sample.n_columns
    is_small = sample.n_columns <= SMALL_COLUMNS and (sample.is_summed or n_cells <= SMALL_CELLS)
    return searching.name if is_small else quick.name


def options_of(method: str) -> tuple[str, ...]:
    """Return the names of the options that a method takes, "auto" included.

    Parameters
    ----------
    method : str
        "auto" or one of ``METHODS``.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> "n_hidden" in options_of("clnj"), "n_hidden" in options_of("auto")
    (False, True)
    """
    if method == AUTO:
        return tuple(dict.fromkeys(METHODS["refined"].options + METHODS["clnj"].options))
    return method_named(method).options


def method_named(name: str) -> Method:
    """Return a method.

    Parameters
    ----------
    name : str
        One of ``METHODS``.

    Returns
    -------
    Method

    Examples
    --------
    >>> method_named("clnj").from_distances
    True
    """
    if name not in METHODS:
        raise ModelError(f"method is {name!r}, but must be one of {AUTO}, {', '.join(METHODS)}")
    return METHODS[name]


def taken_by(option: str) -> list[str]:
    """Return the names of the methods that take an option.

    Parameters
    ----------
    option : str
        One of ``OPTIONS``.

    Returns
    -------
    list of str

    Examples
    --------
    >>> taken_by("n_hidden")
    ['reg_clnj', 'reg_clrg', 'refined']
    """
    return [method.name for method in METHODS.values() if option in method.options]


def chosen_options(method: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that a method takes; refuse those that it does not take.

    Parameters
    ----------
    method : str
        Name of the method.
    given : mapping
        Values of options; one with its default counts as not given.

    Returns
    -------
    dict
        Values of options that were given.

    Examples
    --------
    >>> chosen_options("reg_clrg", {"n_hidden": 4, "stepwise": False})
    {'n_hidden': 4}
    """
    known = options_of(method)
    chosen = {}
    for name, value in given.items():
        if name not in OPTIONS:
            raise ModelError(f"there is no option {name!r}: known are {', '.join(OPTIONS)}")
        default = OPTIONS[name].default
        if value is default or (type(value) is type(default) and value == default):
            continue
        if name not in known:
            raise ModelError(
                f"{name}={value!r} was given, but {method} does not take {name}: it is for "
                f"{', '.join(taken_by(name))}"
            )
        chosen[name] = value
    return chosen


class ProgressText:
    """Says how far learning by a method is: steps, and the best value so far, which never falls.

    Starts of EM and of searches begin anew from lower values, which nobody need wonder about.

    Parameters
    ----------
    method : str
        Name of the method.
    n_states, n_trees : int or "auto", optional
        Its options.

    Examples
    --------
    >>> progress = ProgressText("refined")
    >>> progress(1, -20.0), progress(2, -30.0)
    ('change 1, best score -20.0', 'change 2, best score -20.0')
    """

    def __init__(self, method: str, n_states: Any = None, n_trees: Any = None) -> None:
        searching = method == "refined"
        self.unit, self.value = ("change", "score") if searching else ("step", "log-likelihood")
        self.digits = 1
        if method == "hclt" or n_states == "auto":
            self.unit, self.value, self.digits = "pass", "held-out log-likelihood a row", 4
        if n_trees is not None:
            self.unit, self.value, self.digits = "setting", "held-out log-likelihood a row", 4
        self.best = -math.inf

    def __call__(self, steps: int, reached: float) -> str:
        """Return the text."""
        self.best = max(self.best, reached)
        known = (
            f", best {self.value} {self.best:,.{self.digits}f}" if math.isfinite(self.best) else ""
        )
        return f"{self.unit} {steps:,}{known}"


def learn_model(
    X: Any,
    method: str = AUTO,
    family: str = "auto",
    *,
    weights: ArrayLike | None = None,
    budget: Budget | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
    X_valid: Any = None,
    **options: Any,
) -> Fitted:
    """Learn a tree by the method of that name, and its parameters by maximum likelihood.

    Parameters
    ----------
    X : table or Parts
        Anything :func:`latentree.as_table` takes, or data in parts (:func:`latentree.as_parts`).
    method : str
        One of ``METHODS``; "auto" leaves it to :func:`choose_method`.
    family : {"auto", "gaussian", "discrete", "symmetric", "mixed", "copula"}
        How the columns are modeled; "auto" goes by their kinds and by ``hidden``.
    weights : array, optional
        How much each row counts.
    budget : Budget, optional
        When EM stops, in place of ``max_steps`` and ``time_limit``.
    random_state : int or Generator, optional
        For random starts.
    progress : callable, optional
        Called with the number of steps so far and the log-likelihood.
    X_valid : table, optional
        Rows that decide on states, smoothing and stopping, for hclt and for ``n_states="auto"``;
        by default ``validation_fraction`` of the rows.
    **options
        Options of the method, see ``OPTIONS``; one that it does not take is refused.

    Returns
    -------
    Fitted
        ``model, report``.

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> learned, report = learn_model(model.sample(2_000, 1), "rg")
    >>> learned
    GaussianTreeModel(Tree(8 observed, 2 hidden, 9 edges))
    """
    from latentree._kernels import compiling
    from latentree.distances import as_sample
    from latentree.em import Budget, Fitted
    from latentree.models import with_fitted_lengths, with_schema

    clock, compiled = time.perf_counter(), compiling.seconds()
    chosen = chosen_options(method, options)
    sample = as_sample(X, family, weights)
    method, asked = choose_method(method, sample, chosen), method
    entry = METHODS[method]
    marginals = chosen.pop("marginals", OPTIONS["marginals"].default)
    sample = _behind(sample, chosen.pop("hidden", None), marginals, chosen)
    if sample.family not in entry.families:
        raise ModelError(f"{method} learns from {' and '.join(entry.families)} data only")
    if sample.family not in ("mixed", "copula") and method != "refined":
        for name in set(_MIXED) & set(chosen):
            raise ModelError(
                f"{name}={chosen[name]!r} chooses numbers of states, of mixed data only: give "
                f"n_states, or use refined"
            )
    limit = chosen.get("time_limit", math.inf)
    steps = chosen.pop("max_steps", OPTIONS["max_steps"].default)
    common = {
        "budget": budget or Budget(max_steps=steps, time_limit=limit),
        "random_state": random_state,
        "progress": progress,
    }
    if sample.family == "copula":
        common["marginals"] = marginals
    if method != "refined":  # whose search has a limit of its own
        chosen.pop("time_limit", None)
    if X_valid is not None:
        if not entry.from_distances:
            raise ModelError(f"X_valid was given, but {method} does not hold out rows")
        common["X_valid"] = X_valid
    learn: Callable[..., Fitted] = _from_distances if entry.from_distances else _by_scores
    if _is_committee(entry, sample, chosen):
        chosen["n_trees"], learn = AUTO, _mixture
        model, report = _beside_independence(learn, entry, sample, chosen, common)
    elif chosen.get("n_trees") == 1 and _decides(entry, chosen):
        del chosen["n_trees"]
        model, report = learn(entry, sample, **chosen, **common)
    elif chosen.get("n_trees") is not None:
        model, report = _mixture(entry, sample, **chosen, **common)
    elif method == "independent" or _is_asked_for(method, chosen):
        model, report = learn(entry, sample, **chosen, **common)
    else:
        model, report = _beside_independence(learn, entry, sample, chosen, common)
    model = with_fitted_lengths(with_schema(model, sample.schema))
    report = replace(report, columns=sample.schema.columns)
    if asked == AUTO:
        report = replace(report, notes=(f"{CHOSEN}{method}", *report.notes))
    seconds = time.perf_counter() - clock - (compiling.seconds() - compiled)
    return Fitted(model, report.timed(seconds))


def _behind(
    sample: Sample, hidden: str | None, marginals: str, chosen: Mapping[str, Any]
) -> Sample:
    """Return the sample with the family that hidden variables and scales ask for."""
    if hidden not in (None, "states", "gaussian"):
        raise ModelError(f'hidden is {hidden!r}, but must be "states" or "gaussian"')
    if marginals not in ("normal", "ranks") and (marginals, sample.family) != ("cells", "copula"):
        raise ModelError(f'marginals is {marginals!r}, but must be "normal" or "ranks"')
    kinds = set(sample.schema.kinds)
    if hidden == "states":
        if marginals == "ranks" or sample.family == "copula":
            raise ModelError('marginals="ranks" and the family copula need hidden="gaussian"')
        return sample
    if sample.family == "copula" or (kinds == {"real"} and marginals == "normal"):
        return sample
    if hidden is None and marginals == "normal":  # states predict better, see docs/ordered.md
        return sample
    from latentree.distances import as_copula

    return as_copula(sample)


def _is_committee(entry: Method, sample: Sample, chosen: Mapping[str, Any]) -> bool:
    """Whether hclt learns several trees: where nothing is said of trees, states or EM."""
    alone = {"n_trees", "n_states", "validation_fraction", "checkpoint", "stepwise", "refit"}
    is_enough = sample.statistics.n_rows >= LEAST_ROWS_OF_A_COMMITTEE
    return bool(
        entry.name == "hclt"
        and sample.family == "discrete"
        and is_enough
        and not alone & set(chosen)
    )


def _is_asked_for(method: str, chosen: Mapping[str, Any]) -> bool:
    """Whether hidden variables were asked for by their number, or another criterion than BIC."""
    asked = {"refined": ("n_hidden", "criterion"), "lcm": ("n_states",)}
    return any(name in chosen for name in asked.get(method, ()))


def _beside_independence(
    learn: Callable[..., Fitted],
    entry: Method,
    sample: Sample,
    chosen: Mapping[str, Any],
    common: Mapping[str, Any],
) -> Fitted:
    """Learn a model that is no worse, by BIC, than that of independent variables.

    Where the test of independence finds nothing, nothing is learned.
    """
    from latentree.em import fit_parameters
    from latentree.search import NOTHING, fit_mixed, independent, noted, without_losses
    from latentree.structure import independent_groups

    alone = independent(sample, **common)
    groups = independent_groups(sample.distances)
    if len(set(groups.tolist())) == sample.n_columns > 1:
        return noted(alone, NOTHING)
    way = "ml" if chosen.get("refit", True) else "distances"

    def fit(tree: Tree) -> Fitted:
        if sample.family == "mixed":
            return fit_mixed(tree, sample, n_starts=1, **common)
        return fit_parameters(tree, sample, method=way, n_starts=1, **common)

    fitted = learn(entry, sample, **chosen, **common)
    if entry.name == "hclt" or {"n_states", "criterion"} & set(chosen):
        return fitted  # states for prediction, or as they were asked for, need not pay by BIC
    return without_losses(fitted, alone, fit)


def _mixture(
    entry: Method,
    sample: Sample,
    *,
    n_trees: Any,
    budget: Budget,
    random_state: Any,
    progress: Progress | None,
    X_valid: Any = None,
    validation_fraction: float | None = None,
    **options: Any,
) -> Fitted:
    """Learn a mixture whose components are learned by a method from weighted rows."""
    import numpy as np

    from latentree.data import as_table
    from latentree.em import held_out_fit
    from latentree.search import fold_mixture, tree_mixture
    from latentree.structure import learn_tree

    for name in ("checkpoint", "stepwise"):
        if name in options:
            raise ModelError(f"{name} is for one tree: leave it out with n_trees")
    held_out = None
    if X_valid is not None:
        held_out = as_table(X_valid, schema=sample.schema, unseen="missing")
    rng = np.random.default_rng(random_state)
    if sample.family == "discrete" and _decides(entry, options):
        wanted = options.get("n_states")

        def prepare(rows: Sample, fold: Any) -> HeldOutFit:
            tree, states = learn_tree(rows, entry.name), None if wanted == AUTO else wanted
            return held_out_fit(tree, rows, states, budget, rng, progress, None, fold)

        return fold_mixture(sample, prepare, n_trees, held_out=held_out, random_state=rng)

    def learn(rows: Sample) -> Fitted:
        with warnings.catch_warnings():  # what is said of a few rows' weights helps nobody
            warnings.simplefilter("ignore", DataWarning)
            return _component(entry, rows, random_state=rng, **options)

    return tree_mixture(
        sample, learn, n_trees, held_out=held_out, validation_fraction=validation_fraction,
        budget=budget, random_state=rng, progress=progress,
    )  # fmt: skip


LEAST_ROWS_OF_A_COMMITTEE = 100
"""With fewer rows than that, hclt learns one tree: a fourth of them decides nothing."""

_STEPS_A_ROUND = 30  # of EM inside a component: rounds of the mixture follow


def _component(entry: Method, sample: Sample, **options: Any) -> Fitted:
    """Learn one component of a mixture, from weighted rows, in a few steps of EM."""
    from latentree.em import Budget, fit_parameters
    from latentree.structure import learn_tree

    if sample.family == "discrete":
        options.setdefault("prior_weight", 1.0)  # combinations that no row has stay possible
    options = {"n_starts": 1, "budget": Budget(max_steps=_STEPS_A_ROUND), **options}
    if sample.family == "mixed":
        return _mixed_from_distances(entry, sample, True, False, **options)
    options.pop("refit", None)
    if sample.family == "gaussian":
        options.pop("n_states", None)
    return fit_parameters(learn_tree(sample, entry.name), sample, **options)


def _by_scores(entry: Method, sample: Sample, **options: Any) -> Fitted:
    if sample.family == "mixed":
        return _mixed_by_scores(entry, sample, **options)
    if sample.family == "copula":
        return _behind_by_scores(entry, sample, **options)
    fitted: Fitted = entry.function()(sample, **options)
    return fitted


def _mixed_by_scores(entry: Method, sample: Sample, **options: Any) -> Fitted:
    from latentree.search import fit_mixed, learned_in_bins, star

    if entry.name == "independent":
        alone: Fitted = entry.function()(sample, **options)
        return alone
    if entry.name == "lcm":
        return fit_mixed(star(sample), sample, **options)
    if entry.name == "consensus":
        fitted: Fitted = entry.function()(sample, **options)
        return fitted
    rivals = []
    if entry.name == "refined" and "n_hidden" not in options:
        from latentree.structure import learn_tree

        rivals.append(learn_tree(sample, "clnj"))
    return learned_in_bins(entry.function(), sample, rivals=rivals, **options)


def _behind_by_scores(entry: Method, sample: Sample, **options: Any) -> Fitted:
    from latentree.em import fit_parameters
    from latentree.search import learned_behind, star

    _refuse_states(options)
    if entry.name == "lcm":
        return fit_parameters(star(sample), sample, **options)
    if entry.name in ("independent", "consensus"):
        fitted: Fitted = entry.function()(sample, **options)
        return fitted
    simplify = entry.name == "refined" and "n_hidden" not in options
    return learned_behind(entry.function(), sample, simplify=simplify, **options)


def _refuse_states(options: Mapping[str, Any]) -> None:
    """Refuse options about states where hidden variables are Gaussian."""
    for name in ("n_states", "max_states", "validation_fraction"):
        if name in options:
            raise ModelError(f'{name}={options[name]!r} is about states: use hidden="states"')


def _from_distances(
    entry: Method, sample: Sample, refit: bool = True, stepwise: bool = False, **options: Any
) -> Fitted:
    from latentree.em import fit_parameters
    from latentree.structure import learn_tree

    if sample.family == "mixed":
        return _mixed_from_distances(entry, sample, refit, stepwise, **options)
    if sample.family == "copula":
        _refuse_states(options)
        dense = set(sample.schema.kinds) == {"real"}
        if stepwise or (entry.name == "chow_liu" and not dense):
            what = "stepwise=True" if stepwise else "chow_liu"
            raise ModelError(f"{what} is not for Gaussian variables behind columns: leave it out")
    tree = learn_tree(sample, entry.name)
    if not refit and sample.family == "copula":
        return fit_parameters(tree, sample, method="distances", marginals=options["marginals"])
    if not refit:
        return fit_parameters(tree, sample, method="distances")
    held_out = _pop_held_out(entry, sample, options)
    if held_out is not None and sample.family == "discrete":
        return fit_parameters(tree, sample, method="held_out", **options, **held_out)
    return fit_parameters(tree, sample, method="stepwise" if stepwise else "ml", **options)


def _decides(entry: Method, options: Mapping[str, Any]) -> bool:
    """Whether held-out rows decide on states, smoothing and stopping of a tree."""
    return entry.name == "hclt" or options.get("n_states") == "auto"


def _pop_held_out(entry: Method, sample: Sample, options: dict[str, Any]) -> dict[str, Any] | None:
    """Take what is about held-out rows out of the options; None if these decide nothing."""
    held_out = {name: options.pop(name) for name in _HELD_OUT if name in options}
    decide = _decides(entry, options)
    if options.get("n_states") == "auto":
        del options["n_states"]
    if "X_valid" in held_out and not (decide and sample.family == "discrete"):
        raise ModelError('X_valid is for hclt and n_states="auto" with discrete columns')
    return held_out if decide else None


def _mixed_from_distances(
    entry: Method, sample: Sample, refit: bool, stepwise: bool, **options: Any
) -> Fitted:
    from latentree.search import fit_mixed
    from latentree.structure import learn_tree

    if not refit or stepwise:
        what = "stepwise=True" if stepwise else "refit=False"
        raise ModelError(f"{what} is not for mixed data, whose parameters are fitted by EM")
    if entry.name == "chow_liu" and not sample.cardinalities.all():
        raise ModelError(
            "chow_liu has no hidden variables, but columns of numbers hang from states: use "
            "another method, or family='gaussian' or 'discrete'"
        )
    if _pop_held_out(entry, sample, options) is not None:
        options["criterion"] = "cv"
    return fit_mixed(learn_tree(sample, entry.name), sample, **options)


def learned_support(
    model: TreeModel, X: Any, method: str, n_replicates: int, given: Mapping[str, Any], **how: Any
) -> Support:
    """Measure how sure a model is that a method learned, with the same options.

    Parameters
    ----------
    model : model
        What was learned.
    X : table, Parts, Statistics or Sample
        The rows that it was learned from.
    method : str
        One of ``METHODS``.
    n_replicates : int
        Number of replicates.
    given : mapping
        Options of the method. Those of EM do not matter for the tree.
    **how
        As in :func:`latentree.bootstrap_support`.

    Returns
    -------
    Support

    Examples
    --------
    >>> import latentree as lt
    >>> model = lt.simulate.random_gaussian_model(lt.simulate.double_star(8), 0, (0.6, 0.8))
    >>> learned_support(model, model.sample(2_000, 1), "rg", 5, {}, random_state=0).n_replicates
    5
    """
    from latentree.support import bootstrap_support

    of_search = _REFINED if method in ("refined", "reg_clnj", "reg_clrg") else ()
    options = {name: value for name, value in given.items() if name in of_search}
    return bootstrap_support(model, X, method, n_replicates, **how, **options)


def describe_options(indent: str = "    ") -> str:
    """Return all options as the Parameters of a docstring.

    Parameters
    ----------
    indent : str
        What every line begins with.

    Returns
    -------
    str
    """
    lines = []
    for name, option in OPTIONS.items():
        methods = taken_by(name)
        whose = "" if len(methods) == len(METHODS) else f"For {_listed(methods)}: "
        text = f"{whose}{option.meaning if whose else option.meaning.capitalize()}."
        lines.append(f"{indent}{name} : {option.type}, default {option.default!r}")
        lines += textwrap.wrap(text, 96, initial_indent=indent * 2, subsequent_indent=indent * 2)
    return "\n".join(lines)


def _listed(methods: list[str]) -> str:
    distances = taken_by("refit")
    if methods == distances:
        return "methods that learn the tree from distances"
    if methods[: len(distances)] == distances:
        return " and ".join(
            ["methods that learn the tree from distances", *methods[len(distances) :]]
        )
    return ", ".join(methods)
