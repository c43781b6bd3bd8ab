"""Write the page of the command line, ``docs/reference/command-line.md``, from the commands."""

from pathlib import Path
from typing import Any

import typer
from typer.main import get_command

from latentree.cli._app import app

PAGE = Path(__file__).parent / "reference" / "command-line.md"

HEAD = """\
# Command line

`latentree COMMAND --help` prints the same in a terminal. This page is made from the commands by
`python docs/make_commands.py`.

- A table is a file: `.csv`, `.tsv`, `.txt` (also `.gz`), `.xlsx`, `.parquet`, `.arrow`, `.feather`,
  `.npz`, `.mtx`; `-` is CSV from standard input.
- Results go to standard output or to the files that you name; messages go to standard error.
- A command ends with 0 if all went well, 1 if something is wrong with the data or a file, and 2 if
  with the command itself.
"""

BRACES = str.maketrans("", "", "{}")


def page() -> str:
    """Return the page."""
    command = get_command(app)
    entries = command.commands.items()
    with command.make_context("latentree", [], resilient_parsing=True) as context:
        parts = [section(name, entry, context) for name, entry in entries]
        index = [f"| [`{name}`](#{name}) | {summary(entry)} |" for name, entry in entries]
    table = "\n".join(["| command | what it does |", "| --- | --- |", *index])
    return "\n".join([HEAD, table, "", *parts])


def summary(entry: Any) -> str:
    """What a command does, in its first paragraph."""
    return " ".join((entry.help or "").split("\n\n")[0].split())


def section(name: str, entry: Any, context: Any) -> str:
    """A heading, the usage, what the command does, and a table of arguments and options."""
    with typer.Context(entry, info_name=name, parent=context) as own:
        usage = " ".join(entry.collect_usage_pieces(own)).translate(BRACES).replace("......", "...")
        rows = [row(parameter) for parameter in entry.params if parameter.name != "help"]
    table = "\n".join(["| argument or option | default | meaning |", "| --- | --- | --- |", *rows])
    return f"## {name}\n\n`latentree {name} {usage}`\n\n{summary(entry)}\n\n{table}\n"


def row(parameter: Any) -> str:
    """A row of the table for an argument or an option."""
    metavar = parameter.metavar or (parameter.name or "").upper()
    if parameter.param_type_name == "argument":
        call = f"`{metavar}`"
    else:
        names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
        call = names if parameter.is_flag else f"{names} `{metavar}`"
    default = parameter.default
    shown = "" if default is None or default is False or default == "" else f"`{default}`"
    if parameter.required:
        shown = "required"
    meaning = " ".join((parameter.help or "").split()).replace("|", r"\|")
    return f"| {call} | {shown} | {meaning} |"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
