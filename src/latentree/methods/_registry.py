"""The registry of methods and their options.

To add a method, add an entry to :data:`METHODS`; to add an option, an entry to :data:`OPTIONS` and
its name to the methods that take it.
"""

from __future__ import annotations

import importlib
import math
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

from latentree.errors import ModelError

if TYPE_CHECKING:  # the help of the command line reads the registry, and nothing heavy
    from latentree.distances import Sample
    from latentree.em import Fitted
    from latentree.tree import Tree


OptionValues = dict[str, Any]
"""Values of options by their names; :data:`OPTIONS` says what each may be."""


@dataclass(frozen=True)
class Values:
    """What an option may be. ``Values | Values`` is either.

    Parameters
    ----------
    text : str
        In words.
    allows : callable
        Whether a value is one of them.
    are_many : bool
        Whether a value may be several, in a list.

    Examples
    --------
    >>> values = whole_numbers(2) | words("auto")
    >>> values.text
    'int ≥ 2 or "auto"'
    >>> [values.allows(value) for value in (3, "auto", 1, 2.5, True)]
    [True, True, False, False, False]
    """

    text: str
    allows: Callable[[object], bool]
    are_many: bool = False

    def __or__(self, other: Values) -> Values:
        return Values(f"{self.text} or {other.text}", lambda v: self.allows(v) or other.allows(v))


def words(*known: str, unlisted: tuple[str, ...] = ()) -> Values:
    """Return some texts as values; ``unlisted`` ones are for the library itself."""
    quoted = [f'"{word}"' for word in known]
    text = " or ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))
    return Values(text, lambda value: isinstance(value, str) and value in (*known, *unlisted))


def _number(value: object, kind: type) -> float:
    """Return a number of a kind, those of numpy included; NaN of anything else."""
    is_number = isinstance(value, kind) and not isinstance(value, bool)
    return float(value) if is_number else math.nan  # type: ignore[arg-type]


def whole_numbers(low: int) -> Values:
    """Return the whole numbers from ``low`` on as values."""
    return Values(f"int ≥ {low}", lambda value: _number(value, Integral) >= low)


def real_numbers(low: float, infinite: bool = False) -> Values:
    """Return the numbers from ``low`` on as values, with infinity or without."""

    def allows(value: object) -> bool:
        number = _number(value, Real)
        return number >= low and (infinite or number != math.inf)  # NaN is not ≥ low

    return Values(f"float ≥ {low:g}", allows)


_NAMES = Values(
    "str or list of str",
    lambda value: (
        isinstance(value, str)
        or (isinstance(value, list | tuple) and all(isinstance(name, str) for name in value))
    ),
    are_many=True,
)


@dataclass(frozen=True)
class Option:
    """An option of one or more methods.

    Parameters
    ----------
    values : Values
        What it may be; None too where that is the default.
    default : object
        Its value where nothing is said.
    meaning : str
        A sentence or two without a final stop.
    flags : tuple of str
        How the command line calls it; empty if it does not.
    metavar : str
        What stands for the value in the help of the command line.

    Examples
    --------
    >>> OPTIONS["max_steps"].type, OPTIONS["max_steps"].default
    ('int ≥ 0', 5000)
    >>> OPTIONS["max_steps"].allows(-1), OPTIONS["max_steps"].allows(None)
    (False, False)
    """

    values: Values
    default: object
    meaning: str
    flags: tuple[str, ...] = ()
    metavar: str = ""

    @property
    def type(self) -> str:
        """What it may be, in words."""
        return self.values.text

    def allows(self, value: object) -> bool:
        """Whether the option may have a value.

        Parameters
        ----------
        value : object

        Returns
        -------
        bool
        """
        return self.default is None if value is None else self.values.allows(value)


HIDDEN = ("states", "gaussian", "ranks", "normal")
"""What hidden variables can be: states, or Gaussian, with BIC's choice of scales or a given one."""


OPTIONS: Mapping[str, Option] = {
    "hidden": Option(
        words(*HIDDEN, unlisted=("cells",)), None,
        "what hidden variables are: states, or gaussian. normal and ranks are Gaussian, too: "
        "normal uses the values of real columns, ranks their ranks, which limits the influence of "
        "outliers; with gaussian, BIC chooses between them. Default: gaussian if all columns are "
        "real, the one with the higher BIC if all are ordered or real, and states otherwise",
        ("--hidden",), "WHAT",
    ),
    "n_states": Option(
        whole_numbers(2) | words("auto"), None,
        "number of states of each hidden variable. Default: the most common number among the "
        "columns; lcm and mixed tables choose it by criterion. auto, the default of hclt: the "
        "number that predicts held-out rows best",
        ("--states",), "K",
    ),
    "n_trees": Option(
        whole_numbers(1) | words("auto"), None,
        "number of trees of a mixture, each with its own structure and parameters. Default: one; "
        "for hclt on discrete columns 4 to 32, unless n_states is given. auto: the number that "
        "predicts held-out rows best",
        ("--trees",), "N",
    ),
    "n_hidden": Option(
        whole_numbers(0), None,
        "number of hidden variables: at most so many for reg_clrg and reg_clnj, exactly so many "
        "for refined (fewer if columns are independent)",
        ("--n-hidden",), "N",
    ),
    "start": Option(
        _NAMES, None,
        "the method, or several methods, whose tree is refined. Default: the best of nj, clnj and "
        "clrg",
        ("--start",), "A,B,…",
    ),
    "criterion": Option(
        words("bic", "ebic", "aic", "cv") | real_numbers(0.0), "bic",
        "what refined maximizes: bic, ebic, aic, cv (a penalty chosen by held-out rows), or a "
        "multiple of the penalty of BIC, such as 0.5. On mixed tables, bic, aic or cv also "
        "chooses the numbers of states, whatever the method",
        ("--criterion", "--score"), "NAME",
    ),
    "max_states": Option(
        whole_numbers(2), None, "largest number of states of a hidden variable. Default: no limit",
        ("--max-states",), "K",
    ),
    "prior_weight": Option(
        real_numbers(0.0), 0.0,
        "weight of a uniform prior on discrete tables, as a number of rows",
    ),
    "max_steps": Option(
        whole_numbers(0), 5_000,
        "largest number of steps of EM; with 0, parameters are computed from the distances "
        "(Gaussian and symmetric families)",
    ),
    "time_limit": Option(
        real_numbers(0.0, infinite=True), None,
        "limit in seconds for EM and for the search of refined", ("--time-limit",), "SECONDS",
    ),
}  # fmt: skip
"""Every option by its name."""

_EM = ("max_steps", "time_limit")
OF_MIXED = ("criterion", "max_states")  # choose numbers of states of mixed data
_FROM_DISTANCES = ("hidden", "n_states", "n_trees", *OF_MIXED, "prior_weight", *_EM)
OF_SEARCH = ("start", "criterion", "n_hidden", "max_states", "prior_weight")
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
    settings: Mapping[str, object] = field(default_factory=dict)

    def function(self) -> Callable[..., Fitted | Tree]:
        """Import the learner.

        Returns
        -------
        callable
            The learner with its settings. It returns a tree if it needs distances alone, else a
            fitted model.
        """
        module, name = self.learner.split(":")
        return partial(getattr(importlib.import_module(module), name), **self.settings)


def _structure(name: str, summary: str, function: str, **settings: object) -> Method:
    learner = f"latentree.structure:{function}"
    return Method(name, summary, learner, _FROM_DISTANCES, _ALL, True, settings)


def _search(name: str, summary: str, function: str, *options: str, **settings: object) -> Method:
    families = ("gaussian", "discrete", "mixed", "copula") if name == "refined" else _ALL
    learner = f"latentree.search:{function}"
    return Method(name, summary, learner, (*options, "hidden", *_EM), families, False, settings)


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
            ("hidden", "n_states", "n_trees", *_EM),
            _ALL[:-1], from_distances=True,
        ),
        _search(
            "reg_clnj", "clnj, adding hidden variables only if they raise the BIC",
            "regularized_cl_grouping", "n_hidden", subroutine="nj",
        ),
        _search(
            "reg_clrg", "clrg, adding hidden variables only if they raise the BIC",
            "regularized_cl_grouping", "n_hidden", subroutine="rg",
        ),
        _search("independent", "no edges; every other method has to beat it", "independent"),
        _search("lcm", "one hidden variable: a latent class or one-factor model", "latent_class",
                "n_states", *OF_MIXED),
        _search("bin", "a binary tree, joined greedily from the bottom up", "binary_tree"),
        _search("refined", "a tree from distances, improved by local changes", "refined",
        *OF_SEARCH),
        Method(
            "consensus", "the splits that are probably true; the rest is left open",
            "latentree.support:consensus", ("hidden", "n_states", "prior_weight", *_EM),
        ),
    )
}  # fmt: skip
"""Every method by its name."""


BY_DISTANCES = tuple(name for name, method in METHODS.items() if method.options == _FROM_DISTANCES)
"""Methods that learn the tree from distances, and whose parameters may follow from them too."""

AUTO = "auto"
"""The default: :func:`choose_method` takes one of two methods, by the size of the table."""

CHOSEN = f"{AUTO}: learned by "
"""How the note begins that says which method was taken."""

SMALL_COLUMNS = 50
"""Up to so many columns a table is small. On 700 rows of up to 30 columns refinement took some
seconds and mostly predicted better, on 100 to 180 columns 10 s and more
(docs/evidence/defaults.md)."""

SMALL_CELLS = 200_000
"""Up to so many cells, too, unless sums take the place of rows: 2,800 × 25 answers took 23 s."""


def choose_method(method: str, sample: Sample, options: OptionValues) -> str:
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

    Raises
    ------
    ModelError
        If hidden variables are to have more states than there are rows.

    Examples
    --------
    >>> import numpy as np
    >>> from latentree.distances import as_sample
    >>> x = np.random.default_rng(0).normal(size=(100, 60))
    >>> [choose_method("auto", as_sample(x[:, :m]), {}) for m in (10, 60)]
    ['refined', 'clnj']
    """
    _check_numbers(sample, options)
    if method != AUTO:
        return method_named(method).name
    searching, quick = METHODS["refined"], METHODS["clnj"]
    is_fitted = options.get("max_steps") != 0  # without EM parameters follow from distances
    takes = (
        is_fitted and sample.family in searching.families and set(options) <= set(searching.options)
    )
    if not takes or not set(options) <= set(quick.options):
        return searching.name if takes else quick.name
    is_quick = sample.n_columns <= SMALL_COLUMNS and sample.is_summed
    return searching.name if is_quick or is_small(sample) else quick.name


def is_small(sample: Sample) -> bool:
    """Whether a table is so small that several fits take some seconds."""
    n_cells = sample.statistics.n_rows * sample.n_columns
    return sample.n_columns <= SMALL_COLUMNS and n_cells <= SMALL_CELLS


def _check_numbers(sample: Sample, options: OptionValues) -> None:
    """Refuse more states, or more trees, than rows: as many already tell all rows apart."""
    n_rows = sample.statistics.n_rows
    for name, what in (
        ("n_states", 'a hidden variable has no more states than that; give fewer, or "auto"'),
        ("n_trees", 'a mixture has no more trees than that; give fewer, or "auto"'),
    ):
        number = options.get(name)
        if isinstance(number, int) and number > n_rows:
            raise ModelError(f"{name} is {number}, but there are {n_rows} rows: {what}")


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
    if isinstance(method, str) and method == AUTO:
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
    if not isinstance(name, str) or name not in METHODS:
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


def chosen_options(method: str, given: OptionValues) -> OptionValues:
    """Return the options that a method takes; refuse others, and values that they cannot have.

    Parameters
    ----------
    method : str
        Name of the method.
    given : mapping
        Values of options; one with its default counts as not given.

    Returns
    -------
    dict
        Values of options that were given; numbers of numpy as those of Python.

    Raises
    ------
    ModelError
        If there is no such option, the method does not take it, or it cannot have this value.

    Examples
    --------
    >>> chosen_options("reg_clrg", {"n_hidden": 4, "prior_weight": 0.0})
    {'n_hidden': 4}
    """
    known = options_of(method)
    chosen = {}
    for name, value in given.items():
        if name not in OPTIONS:
            raise ModelError(f"there is no option {name!r}: known are {', '.join(OPTIONS)}")
        option, default = OPTIONS[name], OPTIONS[name].default
        value = _plain(value)
        if not option.allows(value):
            raise ModelError(f"{name} is {value!r}, but must be {option.type}")
        if value is default or (type(value) is type(default) and value == default):
            continue
        if name not in known:
            raise ModelError(
                f"{name}={value!r} was given, but {method} does not take {name}: it is for "
                f"{', '.join(taken_by(name))}"
            )
        chosen[name] = value
    return chosen


def _plain(value: object) -> object:
    """Return a scalar of numpy as Python has it, so that numbers and flags are what they seem."""
    import numpy as np

    return value.item() if isinstance(value, np.generic) else value


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
        meaning = option.meaning if whose else option.meaning[0].upper() + option.meaning[1:]
        lines.append(f"{indent}{name} : {option.type}, default {option.default!r}")
        text = f"{whose}{meaning}."
        lines += textwrap.wrap(text, 96, initial_indent=indent * 2, subsequent_indent=indent * 2)
    return "\n".join(lines)


def _listed(methods: list[str]) -> str:
    distances = list(BY_DISTANCES)
    if methods == distances:
        return "methods that learn the tree from distances"
    if methods[: len(distances)] == distances:
        return " and ".join(
            ["methods that learn the tree from distances", *methods[len(distances) :]]
        )
    return ", ".join(methods)
