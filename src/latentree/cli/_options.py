"""Options that several commands share: each declared once, in groups that commands take whole.

A command is a function; a parameter whose type is a group stands for all options of the group
(:func:`command`). Nothing heavy is imported before a command runs.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import typer

from latentree.cli._method_options import OptionValue, names, option_parameters

if TYPE_CHECKING:
    from latentree.cli._screen import Screen

Command = Callable[..., int | None]
"""What runs a command; it may return an exit code."""

FAMILIES = ("auto", "gaussian", "discrete", "symmetric", "mixed")


def command(app: typer.Typer, name: str | None = None) -> Callable[[Command], Command]:
    """Register a function as a command; groups of options are its parameters too."""

    def register(function: Command) -> Command:
        app.command(name)(expanded(function))
        return function

    return register


def expanded(function: Command) -> Command:
    """Return a function whose parameters are those of ``function``, with groups spread out.

    A parameter ``**fitting`` stands for the options of methods, as the registry has them.

    Examples
    --------
    >>> def show(name: str, shown: Output) -> None:
    ...     print(name, shown)
    >>> list(inspect.signature(expanded(show)).parameters)
    ['name', 'quiet', 'json']
    """
    hints = get_type_hints(function, include_extras=True)
    groups: dict[str, Any] = {}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(function).parameters.values():
        annotation = hints[parameter.name]
        if parameter.kind is parameter.VAR_KEYWORD:
            parameters += option_parameters()
        elif hasattr(annotation, "_fields"):
            groups[parameter.name] = annotation
            parameters += _fields(annotation)
        else:
            parameters.append(_keyword(parameter.name, annotation, parameter.default))

    @functools.wraps(function)
    def run(**given: OptionValue) -> int | None:
        whole = {
            name: group(**{field: given.pop(field) for field in group._fields})
            for name, group in groups.items()
        }
        return function(**given, **whole)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _fields(group: Any) -> list[inspect.Parameter]:
    """Return the fields of a group as parameters."""
    hints = get_type_hints(group, include_extras=True)
    defaults = group._field_defaults
    return [
        _keyword(name, hints[name], defaults.get(name, inspect.Parameter.empty))
        for name in group._fields
    ]


def _keyword(name: str, annotation: Any, default: object) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)


# What options are taken for -----------------------------------------------------------------------


def one_of(flag: str, known: tuple[str, ...]) -> Callable[[str], str]:
    """Return a check that a text is one of those known."""

    def check(text: str) -> str:
        if text not in known:
            raise typer.BadParameter(f"{flag} {text}: use {', '.join(known)}")
        return text

    return check


# Single options -----------------------------------------------------------------------------------

_TABLE = (
    "A table: .csv, .tsv, .txt (also .gz), .xlsx, .parquet, .arrow, .feather, .npz, .mtx; - for "
    "CSV from standard input."
)
Data = Annotated[str, typer.Argument(metavar="DATA", help=_TABLE)]
AllData = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help=f"{_TABLE} Several files, a folder and very large files are read in parts.",
    ),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file, as learn writes it.")]
Out = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="FILE",
        help="Write the table here, in the format of the suffix; - for CSV to standard output.",
    ),
]  # fmt: skip
Seed = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same result.")
]
Fraction = Annotated[
    float,
    typer.Option(
        "--test-fraction", min=0.0, max=1.0, metavar="SHARE",
        help="Share of the rows held out for a score.",
    ),
]  # fmt: skip
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS",
        help="Let the workers of this dask scheduler read and compute, e.g. tcp://host:8786.",
    ),
]  # fmt: skip
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups", metavar="FILE.csv",
        help="Groups of variables: a name and a group on each line.",
    ),
]  # fmt: skip
Cut = Annotated[
    int | None,
    typer.Option(
        "--cut", metavar="K", min=1,
        help="Color the K tightest groups of variables, such as scales.",
    ),
]  # fmt: skip
Names = Annotated[
    str | None,
    typer.Option(
        "--names", metavar="FILE.json", help="Names of hidden variables, as the page saves them."
    ),
]
Component = Annotated[
    int | None,
    typer.Option(
        "--component", metavar="K", min=0, help="The tree of a mixture. Default: the largest."
    ),
]
OneTree = Annotated[
    int | None,
    typer.Option("--component", metavar="K", min=0, help="Only this tree of a mixture."),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="A title.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No messages and no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header", show_default=False,
        help="Whether the first line holds names; needed if it looks like data.",
    ),
]  # fmt: skip
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--na", metavar="VALUE",
        help="A text or number that means a missing cell, in addition to NA, N/A, ., ?, - and "
        "empty cells; may be repeated.",
    ),
]  # fmt: skip
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding", metavar="NAME", help="Encoding of text, such as latin-1; detected by default."
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet", metavar="NAME",
        help="Sheet of a workbook, by name or number. Default: the first that is not empty.",
    ),
]  # fmt: skip


# Groups of options --------------------------------------------------------------------------------


class Messages(NamedTuple):
    """Whether there are messages."""

    quiet: Quiet = False

    def screen(self) -> Screen:
        """Return where results and messages go."""
        from latentree.cli._screen import Screen

        return Screen(self.quiet)


class Output(NamedTuple):
    """Whether there are messages, and whether results are for people or machines."""

    quiet: Quiet = False
    json: Json = False

    def screen(self) -> Screen:
        """Return where results and messages go."""
        from latentree.cli._screen import Screen

        return Screen(self.quiet, self.json)


class ReadOptions(NamedTuple):
    """What of a table is read to learn from, and how."""

    family: Annotated[
        str,
        typer.Option(
            "--family", metavar="NAME", callback=one_of("--family", FAMILIES),
            help=f"One of {', '.join(FAMILIES)}; auto goes by the kinds of the columns.",
        ),
    ] = "auto"  # fmt: skip
    columns: Annotated[
        str | None,
        typer.Option("--columns", metavar="A,B,…", callback=names, help="Use these columns only."),
    ] = None
    drop: Annotated[
        str | None,
        typer.Option("--drop", metavar="A,B,…", callback=names, help="Leave out these columns."),
    ] = None
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--kind", metavar="NAME=KIND",
            help="Read a column as real, count, ordered, category or ignore; may be repeated. "
            "NAME may be a pattern: 'q_*=ordered', '*=count'.",
        ),
    ] = None  # fmt: skip
    na: Missing = None
    header: Header = None
    encoding: Encoding = None
    sheet: Sheet = None

    @property
    def kinds(self) -> dict[str, str]:
        """Kinds by the names of columns; a name may hold the sign = itself."""
        kinds = {}
        for text in self.kind or ():
            name, sign, kind = text.rpartition("=")
            if not (name and sign):
                raise typer.BadParameter(f"--kind {text}: say NAME=KIND, as in --kind age=real")
            kinds[name] = kind
        return kinds


class QueryOptions(NamedTuple):
    """How a table is read that a model is asked about."""

    header: Header = None
    unseen: Annotated[
        str,
        typer.Option(
            "--unseen", metavar="WHAT", callback=one_of("--unseen", ("error", "missing")),
            help="What to do with labels that the model does not know: error, or missing to treat "
            "them as missing cells.",
        ),
    ] = "error"  # fmt: skip
    na: Missing = None
    encoding: Encoding = None
    sheet: Sheet = None
    scheduler: Scheduler = None
