"""The commands and their options. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from latentree import __version__
from latentree import methods as registry
from latentree.cli._method_options import option

FAMILIES = ("auto", "gaussian", "discrete", "symmetric", "mixed")
METHODS = ", ".join(registry.METHODS)

app = typer.Typer(
    name="latentree",
    help="Find the hidden variables that tie your variables together.",
    epilog="Start with: latentree learn data.csv",
    add_completion=True,
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _family(name: str) -> str:
    if name not in FAMILIES:
        raise typer.BadParameter(f"there is no family {name!r}: use {', '.join(FAMILIES)}")
    return name


def _unseen(what: str) -> str:
    if what not in ("error", "missing"):
        raise typer.BadParameter(f"--unseen {what}: use error or missing")
    return what


Family = Annotated[
    str,
    typer.Option(
        "--family",
        metavar="NAME",
        callback=_family,
        help=f"One of {', '.join(FAMILIES)}; auto goes by the kinds of the columns.",
    ),
]
Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A table: .csv, .tsv, .txt (also .gz), .xlsx, .parquet, .arrow, .feather, .npz, .mtx; "
        "- for CSV from standard input.",
    ),
]
AllData = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="A table: .csv, .tsv, .txt (also .gz), .xlsx, .parquet, .arrow, .feather, .npz, .mtx; "
        "- for CSV from standard input. Several files, a folder and very large files are read "
        "in parts.",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Let the workers of this dask scheduler read and compute, e.g. tcp://host:8786.",
    ),
]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model file, as learn writes it.")]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B,…", help="Use these columns only."),
]
Drop = Annotated[
    str | None, typer.Option("--drop", metavar="A,B,…", help="Leave these columns out.")
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        "--kind",
        metavar="NAME=KIND",
        help="Take a column as real, count, ordered, category or ignore; may be repeated. NAME may "
        "be a pattern: 'q_*=ordered', '*=count'.",
    ),
]
Errors = Annotated[
    bool, typer.Option("--errors", help="Add standard errors, of Gaussian hidden variables.")
]
Unseen = Annotated[
    str,
    typer.Option(
        "--unseen",
        metavar="WHAT",
        callback=_unseen,
        help="Labels that the model does not know: error, or missing to take them as missing.",
    ),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--na",
        metavar="VALUE",
        help="A text or number that stands for missing cells, beside NA, N/A, ., ?, - and empty "
        "ones; may be repeated.",
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of text holds names; must be said if it looks like data.",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        "--encoding",
        metavar="NAME",
        help="Encoding of text, such as latin-1; found out when left out.",
    ),
]
Sheet = Annotated[
    str | None,
    typer.Option(
        "--sheet",
        metavar="NAME",
        help="Sheet of a workbook, by name or number; else the first that holds anything.",
    ),
]
Fraction = Annotated[
    float,
    typer.Option(
        "--test-fraction",
        min=0.0,
        max=1.0,
        metavar="SHARE",
        help="Share of the rows held out for a score.",
    ),
]
Seed = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same result.")
]
Groups = Annotated[
    str | None,
    typer.Option(
        "--groups", metavar="FILE.csv", help="Groups of variables: a name and a group a line."
    ),
]
Cut = Annotated[
    int | None,
    typer.Option(
        "--cut",
        metavar="K",
        min=1,
        help="Cut the tree into the K tightest groups of variables, such as scales, in colors.",
    ),
]
Names = Annotated[
    str | None,
    typer.Option(
        "--names", metavar="FILE.json", help="Names of hidden variables, as the page saves them."
    ),
]
Component = Annotated[
    int | None,
    typer.Option(
        "--component", metavar="K", min=0, help="Of a mixture, the tree to take; else the largest."
    ),
]
OneTree = Annotated[
    int | None,
    typer.Option("--component", metavar="K", min=0, help="Of a mixture, only this tree; else all."),
]
Title = Annotated[str | None, typer.Option("--title", metavar="TEXT", help="What it is called.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No messages and no progress.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Out = Annotated[
    str,
    typer.Option(
        "--out", "-o", metavar="FILE",
        help="Where the table goes, in the format of the name; - for CSV to standard output.",
    ),
]  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"latentree {__version__}")
        raise typer.Exit


@app.callback()
def _latentree(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    pass


@app.command()
def learn(
    data: AllData,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help=f"One of {METHODS}; or auto.")
    ] = registry.AUTO,
    family: Family = "auto",
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE.json", help="Write the model to this file."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE.html", help="Write a page to explore the model in."),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE.png", help="Draw the tree: .png, .pdf, .svg, …"),
    ] = None,
    support: Annotated[
        int,
        typer.Option(
            "--support",
            min=0,
            metavar="N",
            help="Learn again from so many sets of resampled rows, to say how sure the tree is.",
        ),
    ] = 0,
    test_fraction: Fraction = 0.0,
    seed: Seed = 0,
    columns: Columns = None,
    drop: Drop = None,
    kind: Kinds = None,
    na: Missing = None,
    header: Header = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    start: Annotated[str | None, option("start", "A,B,…")] = None,
    criterion: Annotated[str | None, option("criterion", "NAME", "--score")] = None,
    n_states: Annotated[str | None, option("n_states", "K")] = None,
    n_trees: Annotated[str | None, option("n_trees", "N")] = None,
    max_states: Annotated[int | None, option("max_states", "K")] = None,
    time_limit: Annotated[float | None, option("time_limit", "SECONDS")] = None,
    hidden: Annotated[str | None, option("hidden", "WHAT")] = None,
    n_hidden: Annotated[int | None, option("n_hidden", "N")] = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Learn a model from a table, and show what it found."""
    from latentree.cli import _learning as learning
    from latentree.cli._data import ReadOptions
    from latentree.cli._screen import Screen

    learning.learn(
        Screen(quiet, json),
        data,
        ReadOptions(
            family,
            _names(columns),
            _names(drop) or (),
            header,
            _kinds(kind),
            na or (),
            encoding,
            sheet,
        ),
        method,
        learning.LearnOutputs(out, html, plot),
        test_fraction,
        seed,
        scheduler,
        support,
        start=_names(start),
        criterion=criterion,
        n_states=n_states,
        n_trees=n_trees,
        max_states=max_states,
        time_limit=time_limit,
        hidden=hidden,
        n_hidden=n_hidden,
    )


@app.command()
def compare(
    data: Data,
    methods: Annotated[
        str | None,
        typer.Option("--methods", metavar="A,B,…", help=f"By default all: {METHODS}."),
    ] = None,
    hidden: Annotated[
        list[str] | None,
        typer.Option(
            "--hidden",
            metavar="WHAT",
            help=f"What hidden variables are: {', '.join(registry.HIDDEN)}, or raw for a Gaussian "
            "tree on the raw numbers, whose likelihood is that of cells; may be repeated.",
        ),
    ] = None,
    family: Family = "auto",
    test_fraction: Fraction = 0.0,
    seed: Seed = 0,
    columns: Columns = None,
    drop: Drop = None,
    kind: Kinds = None,
    na: Missing = None,
    header: Header = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Compare what all methods are worth on a table."""
    from latentree.cli import _learning as learning
    from latentree.cli._data import ReadOptions
    from latentree.cli._screen import Screen

    choice = ReadOptions(
        family, _names(columns), _names(drop) or (), header, _kinds(kind), na or (),
        encoding, sheet,
    )  # fmt: skip
    learning.compare(
        Screen(quiet, json), data, choice, _names(methods) or (), test_fraction, seed, hidden or ()
    )


@app.command()
def infer(
    model: Model,
    data: AllData,
    out: Out = "-",
    errors: Errors = False,
    header: Header = None,
    unseen: Unseen = "error",
    na: Missing = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Infer the hidden variables of each row."""
    from latentree.cli import _using as using
    from latentree.cli._screen import Screen

    query = using.QueryData(data, header, unseen, na or (), scheduler, encoding, sheet)
    using.infer(Screen(quiet), model, query, out, errors)


@app.command()
def impute(
    model: Model,
    data: AllData,
    out: Out = "-",
    header: Header = None,
    unseen: Unseen = "error",
    na: Missing = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Fill in the missing cells of a table, and columns that it lacks.

    All columns of the table are written, in their order; those that it lacks follow.
    """
    from latentree.cli import _using as using
    from latentree.cli._screen import Screen

    query = using.QueryData(data, header, unseen, na or (), scheduler, encoding, sheet)
    using.impute(Screen(quiet), model, query, out)


@app.command()
def predict(
    model: Model,
    data: AllData,
    column: Annotated[
        str,
        typer.Option(
            "--column",
            "-c",
            metavar="NAME",
            help="The variable to predict, observed or hidden; the data may lack its column.",
        ),
    ],
    probabilities: Annotated[
        bool, typer.Option("--proba", help="Probabilities of its values, not the most probable.")
    ] = False,
    out: Out = "-",
    header: Header = None,
    unseen: Unseen = "error",
    na: Missing = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
) -> None:
    """Predict a variable from the other cells of each row."""
    from latentree.cli import _using as using
    from latentree.cli._screen import Screen

    query = using.QueryData(data, header, unseen, na or (), scheduler, encoding, sheet)
    using.predict(Screen(quiet), model, query, out, column, probabilities)


@app.command()
def score(
    model: Model,
    data: AllData,
    out: Out = "-",
    header: Header = None,
    unseen: Unseen = "error",
    na: Missing = None,
    encoding: Encoding = None,
    sheet: Sheet = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Score each row of a table by its log-likelihood."""
    from latentree.cli import _using as using
    from latentree.cli._screen import Screen

    query = using.QueryData(data, header, unseen, na or (), scheduler, encoding, sheet)
    using.score(Screen(quiet, json), model, query, out)


@app.command()
def sample(
    model: Model,
    rows: Annotated[
        int, typer.Option("--rows", "-n", min=1, metavar="N", help="How many rows.")
    ] = 100,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same rows."),
    ] = None,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Add columns for the hidden variables.")
    ] = False,
    out: Out = "-",
    quiet: Quiet = False,
) -> None:
    """Draw rows from a model."""
    from latentree.cli import _using as using
    from latentree.cli._screen import Screen

    using.sample(Screen(quiet), model, rows, seed, hidden, out)


@app.command()
def support(
    model: Model,
    data: AllData,
    replicates: Annotated[
        int,
        typer.Option("--replicates", "-n", min=1, metavar="N", help="How many trees."),
    ] = 100,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="How trees are learned again; by default as the model was. posterior draws trees "
            "that are as probable as they come.",
        ),
    ] = None,
    block_length: Annotated[
        int | None,
        typer.Option(
            "--block-length",
            min=1,
            metavar="ROWS",
            help="Time series: draw so many consecutive rows at a time.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit", min=0.0, metavar="SECONDS", help="Begin no more after this time."
        ),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE.json",
            help="Write the model with its support; may be the model file itself.",
        ),
    ] = None,
    seed: Seed = 0,
    header: Header = None,
    unseen: Unseen = "error",
    encoding: Encoding = None,
    sheet: Sheet = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Say how sure the tree of a model is, by learning it again from resampled rows.

    Or by trees that are drawn from their posterior (--method posterior).
    """
    from latentree.cli import _support_command as running
    from latentree.cli._screen import Screen

    resampling = running.ResamplingOptions(replicates, method, block_length, time_limit, seed)
    running.support(
        Screen(quiet, json), model, data, resampling, out, header, unseen, encoding, sheet
    )


@app.command()
def plot(
    model: Model,
    out: Annotated[str, typer.Argument(metavar="PICTURE", help="A .png, .pdf, .svg, … file.")],
    layout: Annotated[
        str, typer.Option("--layout", metavar="NAME", help="auto, radial or layered.")
    ] = "auto",
    groups: Groups = None,
    cut: Cut = None,
    names: Names = None,
    title: Title = None,
    size: Annotated[
        str | None, typer.Option("--size", metavar="WxH", help="Width and height in inches.")
    ] = None,
    theme: Annotated[
        str, typer.Option("--theme", metavar="NAME", help="Colors for light or dark paper.")
    ] = "light",
    lengths: Annotated[
        bool, typer.Option("--lengths", help="Draw edges as long as their distances.")
    ] = False,
    wrap: Annotated[
        int | None,
        typer.Option("--wrap", min=4, metavar="N", help="Characters of a line in labels."),
    ] = None,
    hidden_labels: Annotated[
        bool, typer.Option("--hidden", help="Name hidden variables too.")
    ] = False,
    component: Component = None,
    quiet: Quiet = False,
) -> None:
    """Draw a model into a picture."""
    from latentree.cli import _using as using
    from latentree.cli._screen import Screen

    options = {
        "layout": layout, "theme": theme, "lengths": lengths, "wrap": wrap, "title": title,
        "hidden_labels": hidden_labels, "strength_legend": lengths,
    }  # fmt: skip
    using.plot(Screen(quiet), model, out, groups, size, names, component, cut, **options)


@app.command()
def explore(
    model: Model,
    out: Annotated[str, typer.Argument(metavar="PAGE", help="An .html file.")],
    data: Annotated[
        list[str] | None,
        typer.Option("--data", metavar="DATA", help="A table, to show how variables are spread."),
    ] = None,
    rows: Annotated[
        bool,
        typer.Option("--rows", help="Show rows of --data: typical and borderline ones of states."),
    ] = False,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="COLUMN", help="Show rows by this column: documents, …"),
    ] = None,
    row_groups: Annotated[
        str | None,
        typer.Option("--row-groups", metavar="COLUMN", help="Shares of states in groups of rows."),
    ] = None,
    groups: Groups = None,
    cut: Cut = None,
    annotations: Annotated[
        str | None,
        typer.Option(
            "--annotations",
            metavar="FILE.csv",
            help="More to color variables by: their names in the first column, a title over each.",
        ),
    ] = None,
    names: Names = None,
    title: Title = None,
    component: OneTree = None,
    header: Header = None,
    quiet: Quiet = False,
) -> None:
    """Write a page to explore a model in."""
    from latentree.cli import _using as using
    from latentree.cli._screen import Screen

    shown = using.RowDisplay(rows or text is not None, text, row_groups)
    tables = using.PageTables(data or (), header, groups, annotations, cut)
    using.explore(Screen(quiet), model, out, tables, names, title, shown, component)


@app.command("compare-trees")
def compare_trees(
    first: Annotated[str, typer.Argument(metavar="A", help="A model file, or a tree file (.nwk).")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another, over the same variables.")],
    html: Annotated[
        str | None,
        typer.Option(
            "--html", metavar="FILE.html", help="Write a page with two models side by side."
        ),
    ] = None,
    groups: Groups = None,
    title: Title = None,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Say what two trees share, and which variables have moved."""
    from latentree.cli import _comparing_trees as comparing
    from latentree.cli._screen import Screen

    comparing.compare_trees(Screen(quiet, json), first, second, html, groups, title)


@app.command()
def topics(
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENTS...",
            help="A folder of texts (.txt, .md, .pdf), or a table with a column of texts: .csv, "
            ".tsv, .jsonl (also .gz), .parquet; a single .txt file has a document a line.",
        ),
    ],
    text: Annotated[
        str | None, typer.Option("--text", metavar="COLUMN", help="The column with the texts.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="COLUMN", help="A column that names them.")
    ] = None,
    date: Annotated[
        str | None,
        typer.Option("--date", metavar="COLUMN", help="A column of dates, for a time line."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE.html", help="Write a page to read them by topic."),
    ] = None,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE.json", help="Write topics and model here."),
    ] = None,
    n_topics: Annotated[
        str | None,
        typer.Option(
            "--topics",
            metavar="N",
            help="Most narrow topics, or topics a level: 5,30. By default all coherent ones.",
        ),
    ] = None,
    n_words: Annotated[
        int, typer.Option("--words", min=3, metavar="N", help="Words to learn from.")
    ] = 2_000,
    stop_words: Annotated[
        str,
        typer.Option(
            "--stop-words", metavar="WHICH", help="Words to leave out: english, none, or a file."
        ),
    ] = "english",
    max_phrase: Annotated[
        int, typer.Option("--max-phrase", min=1, metavar="N", help="Most words of a phrase.")
    ] = 2,
    min_df: Annotated[
        int, typer.Option("--min-df", min=1, metavar="N", help="Fewest documents with a word.")
    ] = 3,
    max_df: Annotated[
        float,
        typer.Option(
            "--max-df",
            min=0.0,
            max=1.0,
            metavar="SHARE",
            help="Largest share of documents with it.",
        ),
    ] = 0.5,
    encoding: Annotated[
        str, typer.Option("--encoding", metavar="NAME", help="Of text files.")
    ] = "utf-8",
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="NAME", help="How the tree is learned."),
    ] = "hclt",
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", min=0.0, metavar="SECONDS", help="Most seconds for EM."),
    ] = None,
    support: Annotated[
        int,
        typer.Option(
            "--support",
            min=0,
            metavar="N",
            help="Learn again from so many samples, to say which topics are doubtful.",
        ),
    ] = 0,
    title: Title = None,
    seed: Seed = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Find the topics of documents, and write a page to read them in."""
    from latentree.cli import _topics_command as running
    from latentree.cli._screen import Screen

    running.topics(
        Screen(quiet, json),
        running.DocumentSource(documents, text, name, date, encoding),
        running.TopicOutputs(out, html, title),
        stop_words,
        n_topics=running.level_sizes(n_topics),
        n_words=n_words,
        max_phrase=max_phrase,
        min_df=min_df,
        max_df=max_df,
        method=method,
        time_limit=time_limit,
        n_bootstrap=support,
        random_state=seed,
    )


@app.command()
def export(
    model: Model,
    out: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A .nwk, .graphml, .gexf, .dot, .cyjs, .bif or .json file."
        ),
    ],
    component: Component = None,
    quiet: Quiet = False,
) -> None:
    """Write a model for other programs."""
    from latentree.cli import _using as using
    from latentree.cli._screen import Screen

    using.export(Screen(quiet), model, out, component)


@app.command()
def show(
    model: Model,
    all_nodes: Annotated[
        bool,
        typer.Option("--all", help="Draw every node, and list the states of all hidden variables."),
    ] = False,
    cut: Cut = None,
    names: Names = None,
    component: Component = None,
    json: Json = False,
) -> None:
    """Draw the tree of a model in the terminal."""
    from latentree.cli import _using as using
    from latentree.cli._screen import Screen

    using.show(Screen(as_json=json), model, all_nodes, names, component, cut)


@app.command()
def demo(
    folder: Annotated[
        str, typer.Option("--folder", metavar="FOLDER", help="Where models and pictures go.")
    ] = "demo",
    seed: Seed = 0,
    quiet: Quiet = False,
) -> None:
    """Learn the examples that come with latentree, and draw them."""
    from latentree.cli._demo import demo as run
    from latentree.cli._screen import Screen

    run(Screen(quiet), folder, seed)


@app.command()
def doctor(json: Json = False) -> int:
    """Say what is installed and how it runs, with a short self-test: for reports of faults."""
    from latentree.cli._doctor import doctor as run
    from latentree.cli._screen import Screen

    return run(Screen(as_json=json))


def _kinds(given: list[str] | None) -> dict[str, str]:
    """Return kinds by the names of columns; a name may hold the sign = itself."""
    pairs = [text.rpartition("=") for text in given or ()]
    for text, (name, sign, _) in zip(given or (), pairs, strict=True):
        if not (name and sign):
            raise typer.BadParameter(f"--kind {text}: say NAME=KIND, as in --kind age=real")
    return {name: kind for name, _, kind in pairs}


def _names(text: str | None) -> list[str] | None:
    """Names separated by commas, as a CSV line: quotes hold names with commas."""
    import csv

    return None if text is None else next(csv.reader([text], skipinitialspace=True), [""])
