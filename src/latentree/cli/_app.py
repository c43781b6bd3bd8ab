"""The commands and their options. Nothing heavy is imported before a command runs."""

from __future__ import annotations

from typing import Annotated

import typer

from latentree import __version__
from latentree import methods as registry
from latentree.cli._method_options import OptionValue, names
from latentree.cli._options import (
    AllData,
    Component,
    Cut,
    Data,
    Fraction,
    Groups,
    Header,
    Messages,
    Model,
    Names,
    OneTree,
    Out,
    Output,
    QueryOptions,
    ReadOptions,
    Scheduler,
    Seed,
    Title,
    command,
)

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


@command(app)
def learn(
    *,
    data: AllData,
    method: Annotated[
        str, typer.Option("--method", "-m", metavar="NAME", help=f"One of {METHODS}; or auto.")
    ] = registry.AUTO,
    read: ReadOptions,
    out: Annotated[
        str | None,
        typer.Option("--out", "-o", metavar="FILE.json", help="Write the model to this file."),
    ] = None,
    html: Annotated[
        str | None,
        typer.Option("--html", metavar="FILE.html", help="Write an explorer page of the model."),
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
            help="Learn again from N sets of resampled rows, to say how sure the tree is.",
        ),
    ] = 0,
    test_fraction: Fraction = 0.0,
    seed: Seed = 0,
    scheduler: Scheduler = None,
    output: Output,
    **fitting: OptionValue,
) -> None:
    """Learn a model from a table, and show it."""
    from latentree.cli import _learning as learning

    learning.learn(
        output.screen(), data, read, method, learning.LearnOutputs(out, html, plot), test_fraction,
        seed, scheduler, support, **fitting,
    )  # fmt: skip


@command(app)
def compare(
    *,
    data: Data,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods", metavar="A,B,…", callback=names, help=f"By default all: {METHODS}."
        ),
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
    read: ReadOptions,
    test_fraction: Fraction = 0.0,
    seed: Seed = 0,
    output: Output,
) -> None:
    """Compare methods on a table, by BIC and on held-out rows."""
    from latentree.cli import _learning as learning

    learning.compare(output.screen(), data, read, methods or (), test_fraction, seed, hidden or ())


@command(app)
def infer(
    *,
    model: Model,
    data: AllData,
    out: Out = "-",
    errors: Annotated[
        bool, typer.Option("--errors", help="Add standard errors of Gaussian hidden variables.")
    ] = False,
    query: QueryOptions,
    messages: Messages,
) -> None:
    """Infer the hidden variables of each row."""
    from latentree.cli import _using as using

    using.infer(messages.screen(), model, data, query, out, errors)


@command(app)
def impute(
    *,
    model: Model,
    data: AllData,
    out: Out = "-",
    query: QueryOptions,
    messages: Messages,
) -> None:
    """Fill in the missing cells of a table, and columns that it lacks.

    All columns of the table are written, in their order; those that it lacks follow.
    """
    from latentree.cli import _using as using

    using.impute(messages.screen(), model, data, query, out)


@command(app)
def predict(
    *,
    model: Model,
    data: AllData,
    column: Annotated[
        str,
        typer.Option(
            "--column",
            "-c",
            metavar="NAME",
            help="The variable to predict, observed or hidden; the data need not have its column.",
        ),
    ],
    probabilities: Annotated[
        bool, typer.Option("--proba", help="Write probabilities, not the most probable value.")
    ] = False,
    out: Out = "-",
    query: QueryOptions,
    messages: Messages,
) -> None:
    """Predict a variable from the other cells of each row."""
    from latentree.cli import _using as using

    using.predict(messages.screen(), model, data, query, out, column, probabilities)


@command(app)
def score(
    *,
    model: Model,
    data: AllData,
    out: Out = "-",
    query: QueryOptions,
    output: Output,
) -> None:
    """Score each row of a table by its log-likelihood."""
    from latentree.cli import _using as using

    using.score(output.screen(), model, data, query, out)


@command(app)
def sample(
    *,
    model: Model,
    rows: Annotated[
        int, typer.Option("--rows", "-n", min=1, metavar="N", help="Number of rows.")
    ] = 100,
    seed: Annotated[
        int | None,
        typer.Option("--seed", min=0, metavar="N", help="The same seed gives the same rows."),
    ] = None,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Add columns for the hidden variables.")
    ] = False,
    out: Out = "-",
    messages: Messages,
) -> None:
    """Draw rows from a model."""
    from latentree.cli import _using as using

    using.sample(messages.screen(), model, rows, seed, hidden, out)


@command(app)
def support(
    *,
    model: Model,
    data: AllData,
    replicates: Annotated[
        int,
        typer.Option("--replicates", "-n", min=1, metavar="N", help="Number of trees."),
    ] = 100,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            "-m",
            metavar="NAME",
            help="Method that learns the replicates; by default that of the model. posterior "
            "draws trees from their posterior distribution.",
        ),
    ] = None,
    block_length: Annotated[
        int | None,
        typer.Option(
            "--block-length",
            min=1,
            metavar="ROWS",
            help="For time series: draw N consecutive rows at a time.",
        ),
    ] = None,
    time_limit: Annotated[
        float | None,
        typer.Option(
            "--time-limit", min=0.0, metavar="SECONDS", help="Start no more after this time."
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
    query: QueryOptions,
    output: Output,
) -> None:
    """Say how sure the tree of a model is: learn it again from resampled rows.

    Or by trees that are drawn from their posterior (--method posterior).
    """
    from latentree.cli import _support_command as running

    resampling = running.ResamplingOptions(replicates, method, block_length, time_limit, seed)
    running.support(output.screen(), model, data, query, resampling, out)


@command(app)
def plot(
    *,
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
        str, typer.Option("--theme", metavar="NAME", help="A light or a dark background.")
    ] = "light",
    lengths: Annotated[
        bool, typer.Option("--lengths", help="Draw edges as long as their distances.")
    ] = False,
    wrap: Annotated[
        int | None,
        typer.Option("--wrap", min=4, metavar="N", help="Characters per line of a label."),
    ] = None,
    hidden_labels: Annotated[
        bool, typer.Option("--hidden", help="Label hidden variables, too.")
    ] = False,
    component: Component = None,
    messages: Messages,
) -> None:
    """Draw the tree of a model as a picture."""
    from latentree.cli import _using as using

    options = {
        "layout": layout, "theme": theme, "lengths": lengths, "wrap": wrap, "title": title,
        "hidden_labels": hidden_labels, "strength_legend": lengths,
    }  # fmt: skip
    using.plot(messages.screen(), model, out, groups, size, names, component, cut, **options)


@command(app)
def explore(
    *,
    model: Model,
    out: Annotated[str, typer.Argument(metavar="PAGE", help="An .html file.")],
    data: Annotated[
        list[str] | None,
        typer.Option("--data", metavar="DATA", help="A table, to show its distributions."),
    ] = None,
    rows: Annotated[
        bool,
        typer.Option("--rows", help="Show typical and borderline rows of --data."),
    ] = False,
    text: Annotated[
        str | None,
        typer.Option("--text", metavar="COLUMN", help="Show rows by a column of texts."),
    ] = None,
    row_groups: Annotated[
        str | None,
        typer.Option("--row-groups", metavar="COLUMN", help="Shares of states by group of rows."),
    ] = None,
    groups: Groups = None,
    cut: Cut = None,
    annotations: Annotated[
        str | None,
        typer.Option(
            "--annotations",
            metavar="FILE.csv",
            help="More columns to color variables by; the first column holds their names, the "
            "first line titles.",
        ),
    ] = None,
    names: Names = None,
    title: Title = None,
    component: OneTree = None,
    header: Header = None,
    messages: Messages,
) -> None:
    """Write an explorer page of a model, one HTML file."""
    from latentree.cli import _using as using

    shown = using.RowDisplay(rows or text is not None, text, row_groups)
    tables = using.PageTables(data or (), header, groups, annotations, cut)
    using.explore(messages.screen(), model, out, tables, names, title, shown, component)


@command(app, "compare-trees")
def compare_trees(
    *,
    first: Annotated[str, typer.Argument(metavar="A", help="A model file, or a tree file (.nwk).")],
    second: Annotated[str, typer.Argument(metavar="B", help="Another of the same variables.")],
    html: Annotated[
        str | None,
        typer.Option(
            "--html", metavar="FILE.html", help="Write a page with two models side by side."
        ),
    ] = None,
    groups: Groups = None,
    title: Title = None,
    output: Output,
) -> None:
    """Say what two trees share, and which variables have moved."""
    from latentree.cli import _comparing_trees as comparing

    comparing.compare_trees(output.screen(), first, second, html, groups, title)


@command(app)
def topics(
    *,
    documents: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENTS...",
            help="A folder of texts (.txt, .md, .pdf), or a table with a column of texts: .csv, "
            ".tsv, .jsonl (also .gz), .parquet; a single .txt file has one document per line.",
        ),
    ],
    text: Annotated[
        str | None, typer.Option("--text", metavar="COLUMN", help="The column with the texts.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="COLUMN", help="A column with their names.")
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
            help="Largest number of narrow topics, or of broad and narrow ones: 5,30. Default: "
            "all coherent ones.",
        ),
    ] = None,
    n_words: Annotated[
        int, typer.Option("--words", min=3, metavar="N", help="Number of words to learn from.")
    ] = 2_000,
    stop_words: Annotated[
        str,
        typer.Option(
            "--stop-words", metavar="WHICH", help="Words to leave out: english, none, or a file."
        ),
    ] = "english",
    max_phrase: Annotated[
        int, typer.Option("--max-phrase", min=1, metavar="N", help="Most words in a phrase.")
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
            help="Leave out words in a larger share of the documents.",
        ),
    ] = 0.5,
    encoding: Annotated[
        str, typer.Option("--encoding", metavar="NAME", help="Encoding of text files.")
    ] = "utf-8",
    method: Annotated[
        str,
        typer.Option("--method", "-m", metavar="NAME", help="Method that learns the tree."),
    ] = "hclt",
    time_limit: Annotated[
        float | None,
        typer.Option("--time-limit", min=0.0, metavar="SECONDS", help="Limit in seconds for EM."),
    ] = None,
    support: Annotated[
        int,
        typer.Option(
            "--support",
            min=0,
            metavar="N",
            help="Learn again from N samples, to say which topics are doubtful.",
        ),
    ] = 0,
    title: Title = None,
    seed: Seed = 0,
    output: Output,
) -> None:
    """Find the topics of documents, and write a page to read them by topic."""
    from latentree.cli import _topics_command as running

    running.topics(
        output.screen(),
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


@command(app)
def export(
    *,
    model: Model,
    out: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="A .nwk, .graphml, .gexf, .dot, .cyjs, .bif or .json file."
        ),
    ],
    component: Component = None,
    messages: Messages,
) -> None:
    """Write a model for other programs."""
    from latentree.cli import _using as using

    using.export(messages.screen(), model, out, component)


@command(app)
def show(
    *,
    model: Model,
    all_nodes: Annotated[
        bool,
        typer.Option("--all", help="Draw every node, and list the states of all hidden variables."),
    ] = False,
    fit: Annotated[
        str | None,
        typer.Option(
            "--fit",
            metavar="DATA",
            help="Add indices of fit to this table: χ², CFI, TLI, RMSEA, SRMR (Gaussian hidden "
            "variables).",
        ),
    ] = None,
    cut: Cut = None,
    names: Names = None,
    component: Component = None,
    output: Output,
) -> None:
    """Draw the tree of a model in the terminal, with its tables."""
    from latentree.cli import _using as using

    using.show(output.screen(), model, all_nodes, names, component, cut, fit)


@command(app)
def demo(
    *,
    folder: Annotated[
        str, typer.Option("--folder", metavar="FOLDER", help="Folder for models and pictures.")
    ] = "demo",
    seed: Seed = 0,
    messages: Messages,
) -> None:
    """Learn the examples that come with latentree, and draw them."""
    from latentree.cli._demo import demo as run

    run(messages.screen(), folder, seed)


@command(app)
def doctor(*, output: Output) -> int:
    """Say what is installed and whether it works, for bug reports."""
    from latentree.cli._doctor import doctor as run

    return run(output.screen())
