"""Rows in the page, when they are asked for: typical and borderline ones of every hidden state.

Posteriors of all rows are computed, in blocks. Of the rows themselves only some go into the page:
the typical and the borderline ones of every state, and others as far as there is room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import narwhals as nw
import numpy as np

from latentree.data import Table, as_table, row_chunks
from latentree.errors import DataError
from latentree.explorer._packed import PageData, packed
from latentree.inference import infer_part
from latentree.models import Model
from latentree.typing import AnyArray, FloatArray, IntArray, TableLike

LISTED = 12
"""Rows of a list, of those that are typical and of those that are borderline."""

LOOKED_AT = 8 * LISTED
"""Rows among which those of a list are chosen: rows that are all alike would say little."""

TYPICAL = 0.25
"""Probability of a state above which a row is typical of it; of many states none may reach ½."""

BETWEEN = 0.3
"""A row is borderline if the probability of a state is within this distance of ½."""

OWN = 0.5
"""A row belongs to the component of a mixture with a higher probability than this: at most one."""

MOST_BYTES = 2_000_000
"""Of cells and texts in the page, before they are written as text (a third more)."""

LONGEST_TEXT = 4_000
"""Characters of a row's text."""


class RowChoice(NamedTuple):
    """What a person asks for: texts to read, groups to count by, both one a row or None."""

    texts: Sequence[object] | None = None
    groups: Sequence[object] | None = None


RowValues = bool | str | Sequence[object] | None
"""What is to be shown of rows: the name of a column, or one value per row; or whether rows are."""


def split_off(
    data: TableLike, rows: RowValues, groups: RowValues, known: Sequence[str]
) -> tuple[TableLike, RowChoice]:
    """Return data without the columns that are only shown, and what these hold.

    Parameters
    ----------
    data : table in any form
    rows, groups : bool, name of a column, or one value per row
    known : sequence of str
        Columns of the model: they stay.
    """
    found = [_column(data, given) for given in (rows, groups)]
    names = [name for name in (rows, groups) if isinstance(name, str) and name not in known]
    return (_without(data, names) if names else data), RowChoice(*found)


def _column(data: TableLike, given: RowValues) -> Sequence[object] | None:
    """Return a column of the data by its name, or the values that were given."""
    if given is None or isinstance(given, bool):
        return None
    if not isinstance(given, str):
        return list(given)
    if isinstance(data, Mapping) and given in data:
        return list(data[given])
    frame = nw.from_native(data, pass_through=True, eager_only=True)
    if isinstance(frame, nw.DataFrame) and given in frame.columns:
        return list(frame[given].to_list())
    raise DataError(f"the data has no column {given!r} to show: give a frame that has it")


def _without(data: TableLike, names: list[str]) -> TableLike:
    if isinstance(data, Mapping):
        return {name: column for name, column in data.items() if name not in names}
    return nw.to_native(nw.from_native(data, eager_only=True).drop(names))


# What the page gets -----------------------------------------------------------------------------


def rows_contents(
    models: Sequence[Model],
    data: TableLike,
    choice: RowChoice,
    shares: Sequence[FloatArray | None] = (None,),
    room: int = MOST_BYTES,
) -> list[PageData]:
    """Return rows and lists of them as plain values, for each of some models of one table.

    ``rows`` are the same for all: ``kept`` are the numbers of the rows that are in the page,
    ``total`` how many there are; ``cells`` are theirs, row by row, NaN or −1 where missing.
    ``rowLists`` are a model's own. They have for every list of a hidden state (typical and
    borderline; highest and lowest of a Gaussian) the places of its rows among those kept, and their
    probabilities or means. ``groups`` has the mean of each in every group.

    Parameters
    ----------
    models : sequence of models
        One, or the components of a mixture.
    data : table in any form
    choice : RowChoice
    shares : sequence of arrays or None
        For each model the probability that a row comes from it: a state is as probable as it is
        together with its model, and only rows that probably come from a model are its highest and
        lowest.
    room : int
        Bytes of cells and texts.
    """
    table = as_table(data, schema=models[0].schema)
    for given in choice:
        if given is not None and len(given) != table.n_rows:
            raise DataError(
                f"{table.n_rows:,} rows need as many texts or groups, not {len(given):,}"
            )
    texts = None if choice.texts is None else [_text(text) for text in choice.texts]
    pairs = zip(models, shares, strict=True)
    found = [_rank_rows(model, table, choice.groups, share) for model, share in pairs]
    lists = [[_distinct(table, texts, each) for each in one.lists] for one in found]
    kept = _kept(table, texts, [rows for own in lists for rows, _ in own], room)
    rows = _shared_content(table, texts, kept)
    place = {row: i for i, row in enumerate(kept.tolist())}
    return [
        {"rows": rows, "rowLists": _list_content(own, place) | one.group_content()}
        for own, one in zip(lists, found, strict=True)
    ]


def _shared_content(table: Table, texts: list[str] | None, kept: IntArray) -> PageData:
    """Return the rows that are in the page."""
    out = {
        "total": table.n_rows,
        "kept": packed(kept, "<i4"),
        "cells": packed(_coded(table.take(kept)), _cell_type(table)),
    }
    if table.row_labels is not None:
        out["labels"] = [str(label) for label in np.asarray(table.row_labels)[kept]]
    if texts is not None:
        out["texts"] = [texts[row] for row in kept.tolist()]
    return out


def _list_content(lists: list[tuple[list[int], list[float]]], place: Mapping[int, int]) -> PageData:
    inside = [[(place[r], p) for r, p in zip(*each, strict=True) if r in place] for each in lists]
    return {
        "starts": packed(np.cumsum([0, *map(len, inside)]), "<i4"),
        "rows": packed([r for each in inside for r, _ in each], "<i4"),
        "values": packed([p for each in inside for _, p in each], "<f8"),
    }


def _cell_type(table: Table) -> str:
    if any(kind in ("real", "count") for kind in table.schema.kinds):
        return "<f8"
    return "i1" if table.cardinalities.max(initial=0) < 128 else "<i2"


def _coded(table: Table) -> AnyArray:
    """Return cells with −1 for missing states, whether the table holds floats or codes."""
    cells, numbers = _cells(table), [kind in ("real", "count") for kind in table.schema.kinds]
    return np.where(np.isnan(cells) & ~np.array(numbers), -1, cells)


def _cells(table: Table) -> AnyArray:
    cells: AnyArray = table.values.toarray() if table.is_sparse else table.values
    return cells


def _text(text: object) -> str:
    if text is None or text != text:  # NaN
        return ""
    whole = str(text)
    return whole if len(whole) <= LONGEST_TEXT else whole[: LONGEST_TEXT - 1] + "…"


class _RankedRows(NamedTuple):
    """Candidates for a list of rows, the best first.

    Attributes
    ----------
    rows : array of int
        Their numbers.
    values : array of float
        Probability of the state in each row, or mean of the hidden Gaussian.
    scores : array of float
        How well each fits into the list.
    """

    rows: IntArray
    values: FloatArray
    scores: FloatArray

    @classmethod
    def of(cls, values: FloatArray, scores: FloatArray, start: int) -> _RankedRows:
        rows = np.arange(start, start + len(values))
        return cls(rows, values, scores).best()

    def best(self) -> _RankedRows:
        order = np.lexsort((self.rows, -self.scores))[:LOOKED_AT]
        order = order[np.isfinite(self.scores[order])]
        return _RankedRows(self.rows[order], self.values[order], self.scores[order])

    def __or__(self, other: _RankedRows) -> _RankedRows:
        rows = np.append(self.rows, other.rows)
        values, scores = np.append(self.values, other.values), np.append(self.scores, other.scores)
        return _RankedRows(rows, values, scores).best()


class _RowLists(NamedTuple):
    """Rows for the lists of every state, and means of groups."""

    lists: list[_RankedRows]
    names: list[str]
    counts: FloatArray
    means: FloatArray

    def group_content(self) -> PageData:
        if not self.names:
            return {}
        means = packed(self.means, "<f8")
        return {"groups": {"names": self.names, "counts": self.counts.tolist(), "means": means}}


def _rank_rows(
    model: Model, table: Table, groups: Sequence[object] | None, share: FloatArray | None
) -> _RowLists:
    """Rank rows by the posteriors of every state, and average these over groups of rows."""
    names, numbers = _numbered(groups, table.n_rows)
    shares = np.ones(table.n_rows) if share is None else np.nan_to_num(share)
    weights = np.where(numbers >= 0, table.weight_array() * shares, 0.0)
    counts = np.bincount(np.maximum(numbers, 0), weights, minlength=len(names))[
        : len(names)
    ].astype(np.float64)
    gaussian = model.schema.family in ("gaussian", "copula")
    lists: list[_RankedRows] = []
    sums: FloatArray = np.zeros(())
    for start, stop in row_chunks(np.broadcast_to(0, (table.n_rows, model.tree.n_nodes))):
        values = np.asarray(infer_part(table.rows(start, stop), model)[0])
        members = numbers[start:stop] == np.arange(len(names))[:, None]
        sums = sums + (members * weights[start:stop]) @ np.nan_to_num(values)
        # P(state, component) of a mixture; a hidden Gaussian counts where its component does.
        own = shares[start:stop, None]
        values = np.where(own > OWN, values, np.nan) if gaussian else values * own
        more = [
            _RankedRows.of(column, score, start)
            for column in values.T
            for score in _scores(column, gaussian)
        ]
        lists = [old | new for old, new in zip(lists, more, strict=True)] if lists else more
    return _RowLists(lists, names, counts, sums / np.maximum(counts, 1e-300)[:, None])


def _scores(column: FloatArray, gaussian: bool) -> tuple[FloatArray, FloatArray]:
    """How well rows fit into the two lists of a state, −∞ where they do not; NaN is impossible."""
    known = np.where(np.isnan(column), -np.inf, column)
    if gaussian:
        return known, np.where(np.isnan(column), -np.inf, -column)
    apart = np.abs(known - 0.5)
    return np.where(known > TYPICAL, known, -np.inf), np.where(apart < BETWEEN, -apart, -np.inf)


def _numbered(groups: Sequence[object] | None, n_rows: int) -> tuple[list[str], IntArray]:
    """Names of groups as they appear, and the number of every row's; −1 for rows without one."""
    number: dict[str, int] = {}
    out = np.full(n_rows, -1)
    for row, group in enumerate(groups or ()):
        if group is not None and group == group:
            out[row] = number.setdefault(str(group), len(number))
    return list(number), out


def _distinct(
    table: Table, texts: list[str] | None, chosen: _RankedRows
) -> tuple[list[int], list[float]]:
    """The first rows of a list that are not alike."""
    seen: set[str | bytes] = set()
    rows: list[int] = []
    values: list[float] = []
    cells = [] if texts else [row.tobytes() for row in _cells(table.take(chosen.rows))]
    for i, (row, value) in enumerate(
        zip(chosen.rows.tolist(), chosen.values.tolist(), strict=True)
    ):
        what = texts[row] if texts else cells[i]
        if what not in seen and len(rows) < LISTED:
            seen.add(what)
            rows.append(row)
            values.append(value)
    return rows, values


def _kept(table: Table, texts: list[str] | None, lists: list[list[int]], room: int) -> IntArray:
    """Rows for the page: the first of every list, the second of every list, …, then any others."""
    turns = [row for turn in range(LISTED) for rows in lists for row in rows[turn : turn + 1]]
    others = np.random.default_rng(0).permutation(table.n_rows).tolist()
    order = np.array(list(dict.fromkeys(turns + others)), np.int64)
    width = table.n_columns * np.dtype(_cell_type(table)).itemsize
    sizes = np.full(order.size, float(width))
    if texts is not None:
        sizes += [len(texts[row].encode(errors="surrogatepass")) for row in order.tolist()]
    return np.sort(order[: np.searchsorted(np.cumsum(sizes), room, "right")])
