"""The model file, declared: its parts with their types, from which its JSON schema is made.

``docs/reference/model-file.md`` describes it, and ``docs/make_schema.py`` writes
``model.schema.json``. A new kind of leaf or margin is one more entry here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from latentree._fields import (
    Choice,
    Field,
    ListOf,
    MapOf,
    Notes,
    Number,
    Numbers,
    OneOf,
    Record,
    Scalar,
    Schema,
    Text,
    Whole,
)
from latentree._plain import Fields, as_dict, as_list
from latentree.data import SetAside
from latentree.inference import (
    CountEmission,
    GaussianEmission,
    NormalMargin,
    Odds,
    RankMargin,
    Thresholds,
    ZeroInflatedEmission,
)

FORMAT = "latentree model"
VERSION = 1
"""Version of the format; a reader refuses newer ones."""

MAX_LISTS = 4_000_000
"""An empty list takes three bytes in the file and seventy in memory, so their number is bounded."""

TOLERANCE = 1e-6
"""Rows of tables with sums this close to 1 are scaled; others are refused."""

_MEANS = Numbers(above=0.0)
_SIZES = Numbers(above=0.0, null=float("inf"))
_ORIGIN = {
    "origin": Number(
        about="Recorded values are whole numbers of steps away from it; 0 if left out."
    )
}
_NO_ORIGIN = {"origin": 0.0}
_COUNTS = "negative binomial of this mean and size; a size of null is Poisson's distribution."

EMISSIONS = OneOf(
    {
        "sd": Record(
            {"mean": Numbers(), "sd": Numbers(above=0.0), "resolution": Number(above=0.0)},
            _ORIGIN, GaussianEmission, _NO_ORIGIN,
            about="Real values: normal, recorded in steps of the resolution.",
        ),
        "zeros": Record(
            {"mean": _MEANS, "size": _SIZES, "zeros": Numbers(least=0.0, below=1.0)},
            make=ZeroInflatedEmission,
            take=lambda leaf: {**vars(leaf.counts), "zeros": leaf.zeros},
            about=f"Counts that are 0 with some probability, and else {_COUNTS}",
        ),
        "size": Record(
            {"mean": _MEANS, "size": _SIZES}, make=CountEmission, about=f"Counts: {_COUNTS}"
        ),
    }
)  # fmt: skip
"""Distributions of a leaf, for each state of its neighbor."""

_RESOLUTION = Number(
    least=0.0, about="How precisely values are recorded; 0 if the likelihood is a density."
)
_TAIL = Numbers(
    size=2, about="Scale and shape (< 1) of the distances beyond the end; a scale of 0 is a bound."
)

MARGINS = OneOf(
    {
        "thresholds": Record(
            {"thresholds": Numbers()}, make=Thresholds,
            about="Ordered answers: where on the normal scale one level ends and the next begins, "
            "ascending.",
        ),
        "intercepts": Record(
            {"intercepts": Numbers(), "slopes": Numbers()}, make=Odds,
            about="Labels without an order: P(label | z) is proportional to "
            "exp(intercept + slope*z) of the neighbor's z.",
        ),
        "sd": Record(
            {"mean": Number(), "sd": Number(above=0.0), "resolution": _RESOLUTION},
            _ORIGIN, NormalMargin, _NO_ORIGIN, about="Normal numbers.",
        ),
        "values": Record(
            {
                "values": Numbers(), "scores": Numbers(),
                "tails": ListOf(item=_TAIL, size=2), "resolution": _RESOLUTION,
            },
            _ORIGIN, RankMargin, _NO_ORIGIN,
            about="Numbers on a scale of their own: quantiles with their normal scores, linear in "
            "between, and Pareto tails.",
        ),
    }
)  # fmt: skip
"""What an observed variable shows of the normal variable behind it."""


@dataclass(frozen=True, kw_only=True)
class Table(Field):
    """Probabilities, or rows of them: all tables of a model are checked together, which is fast."""

    def _shape(self) -> Schema:
        limits = {"minimum": 0, "maximum": 1.0 + TOLERANCE}
        row = {"type": "array", "items": {"type": "number"} | limits, "minItems": 1}
        return {"anyOf": [row, {"type": "array", "items": row, "minItems": 1}]}


@dataclass(frozen=True, kw_only=True)
class TableOrEmission(Table):
    """A table, or a leaf's distribution for every state of its neighbor."""

    def read(self, value: object, part: str) -> object:
        return EMISSIONS.read(value, part) if type(value) is dict else as_list(value, part)

    def plain(self, value: object, part: str) -> object:
        return value if type(value) is list else EMISSIONS.plain(value, part)

    def _shape(self) -> Schema:
        return {"anyOf": [*super()._shape()["anyOf"], EMISSIONS.schema()]}


_CORRELATIONS = Numbers(above=-1.0, below=1.0, about="Of each node with its parent, 0 for a root.")
_LABELS = ListOf(
    item=ListOf(item=Scalar()), on_lines=True,
    about="What the states of each observed variable are called in the data; empty for numbers.",
)  # fmt: skip
_KINDS = ListOf(
    item=Choice(among=("real", "count", "ordered", "category")), least=1,
    about="What each observed variable is.",
)  # fmt: skip
_NAMES = {
    "states": MapOf(
        item=ListOf(item=Text()),
        about="What people call the states of hidden variables, by their names.",
    ),
    "notes": MapOf(item=Text(), about="What people noted about nodes, by their names."),
}
_TABLES = "At a root its probabilities, elsewhere a row of probabilities per state of the parent."


def _component(families: tuple[str, ...], parameters: dict[str, Field]) -> Record:
    """Return the form of a tree with its parameters; normal numbers alone have no labels."""
    keys: dict[str, Field] = {
        "family": Choice(among=families),
        "n_observed": Whole(least=1, about="The first so many nodes are observed, others hidden."),
        "names": ListOf(item=Text(), least=1),
        "parent": ListOf(
            item=Whole(least=-1), about="Number of each node's parent, -1 for a root."
        ),
        "length": Numbers(least=0.0, about="Of the edge of each node to its parent, 0 for a root."),
        "parameters": Record(parameters, on_lines=True),
    }
    labels = {} if "gaussian" in families else {"labels": _LABELS}
    return Record(keys | labels, {"kinds": _KINDS, **_NAMES}, on_lines=True)


_GAUSSIAN = _component(
    ("gaussian",),
    {"correlations": _CORRELATIONS, "means": Numbers(), "scales": Numbers(above=0.0)},
)
_DISCRETE = _component(
    ("discrete", "symmetric"), {"tables": ListOf(item=Table(), on_lines=True, about=_TABLES)}
)
_MIXED = _component(
    ("mixed",), {"tables": ListOf(item=TableOrEmission(), on_lines=True, about=_TABLES)}
)
_COPULA = _component(
    ("copula",), {"correlations": _CORRELATIONS, "margins": ListOf(item=MARGINS, on_lines=True)}
)
COMPONENTS = {
    "gaussian": _GAUSSIAN,
    "discrete": _DISCRETE,
    "symmetric": _DISCRETE,
    "mixed": _MIXED,
    "copula": _COPULA,
}
"""What a tree with its parameters holds, by family."""


@dataclass(frozen=True, kw_only=True)
class Component(Field):
    """A tree with its parameters, of any family."""

    def read(self, value: object, part: str) -> Fields:
        component: Fields = form_of(as_dict(value, part)).read(value, part)
        return component

    def plain(self, value: Any, part: str) -> Fields:
        return COMPONENTS[value["family"]].plain(value, part)

    def _shape(self) -> Schema:
        return {"$ref": "#/$defs/component", "unevaluatedProperties": False}


_MIXTURE = Record(
    {
        "weights": Numbers(least=0.0, about="Probabilities of the components."),
        "components": ListOf(item=Component(), least=1, on_lines=True),
    }
)
_HEAD: dict[str, Field] = {
    "format": Choice(among=(FORMAT,)), "version": Choice(among=(VERSION,)),
}  # fmt: skip
_BESIDE: dict[str, Field] = {
    "aside": ListOf(
        item=Record(
            {"name": Text(), "place": Whole(most=MAX_LISTS), "why": Text()},
            {"value": Scalar()},
            SetAside,
        ),
        on_lines=True,
        about="Columns of the whole table that the model does not use, in the order of their "
        "places; constant ones with their value.",
    ),
    "formats": ListOf(
        item=Record({"name": Text(), "decimal": Choice(among=(".", ",")), "unit": Text()}),
        on_lines=True,
        about="How the numbers of columns are written that come as text, such as $7,440: what "
        "separates the fraction, and the unit.",
    ),
    "report": Notes(about="What to remember beside the model; plain values, nested at will."),
}


def form_of(fields: Fields) -> Record:
    """Return the form of a component by its family."""
    return COMPONENTS[Choice(among=tuple(COMPONENTS)).read(fields.get("family"), "family")]


def file_form(fields: Fields) -> Record:
    """Return the form of a whole file: of a mixture, or of a tree by its family."""
    return _whole(_MIXTURE if "components" in fields else form_of(fields))


def _whole(form: Record) -> Record:
    return Record(
        {**_HEAD, **form.required}, {**form.optional, **_BESIDE}, on_lines=True, is_top=True
    )


def json_schema() -> Schema:
    """Return the JSON schema of model files."""
    forms = (_GAUSSIAN, _DISCRETE, _MIXED, _COPULA)
    beside = Record(_HEAD, _BESIDE).schema() | {"unevaluatedProperties": False}
    del beside["additionalProperties"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:latentree:model:{VERSION}",
        "title": f"latentree model, version {VERSION}",
        "description": (
            "A latent tree with the parameters of a probability model on it, or a mixture of such "
            "trees of one family with the same observed variables. Also required, but beyond a "
            "schema: lists have one entry per node (means, scales, margins, labels, and kinds: per "
            "observed node), parents form no cycle, hidden nodes have at least three neighbors, "
            "names differ, lengths of roots are 0, tables have one row per state of the parent and "
            "rows sum to 1; in the family symmetric roots are uniform and the off-diagonal entries "
            "of a table equal; a mixture has a weight per component."
        ),
        **beside,
        "oneOf": [{"$ref": "#/$defs/component"}, _open(_MIXTURE)],
        "$defs": {"component": {"oneOf": list(map(_open, forms))}},
    }


def _open(form: Record) -> Schema:
    """Return the schema of a record beside whose keys others may stand."""
    return {key: part for key, part in form.schema().items() if key != "additionalProperties"}
