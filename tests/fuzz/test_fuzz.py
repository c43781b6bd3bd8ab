"""Fuzzers of files, frames, weights, distances and options: errors of ours, no others.

An example is a batch of random cases by a seed, which a failure names. ``make fuzz SECONDS=600``
runs all of them with new seeds for that long; a case that ends the process is found there too.
"""

import contextlib
import copy
import datetime
import functools
import gzip
import io
import json
import math
import os
import random
import re
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import io as scipy_io
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from latentree import (
    DiscreteTreeModel,
    GaussianTreeModel,
    LatentTree,
    Tree,
    as_table,
    models,
    simulate,
    structure,
    write_topics,
)
from latentree.cli import main
from latentree.data import open_table
from latentree.errors import DataWarning, FileError, LatentTreeError
from latentree.models._decode import decode
from latentree.models._encode import encode
from latentree.support import load_support, support_from
from latentree.topics import TopicTree, read_documents

seeds = st.integers(0, 2**32)
IS_LONG = settings.default.max_examples > 100  # the profile of long runs
END = time.monotonic() + float(os.environ.get("LATENTREE_FUZZ_SECONDS", "inf"))


def examples(number: int) -> settings:
    """Return how many batches are tried: as many as time allows in long runs."""
    return settings() if IS_LONG else settings(max_examples=number)


def batch(number: int) -> range:
    """Return so many numbers of cases, none when the time of a long run is over."""
    return range(number if time.monotonic() < END else 0)


N_FILES = 400
N_TRACED = 20  # the last ones, with memory measured: this makes them slower

ODD = [
    None, True, False, 0, 1, -1, 3, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**63, 2**64, -(2**63) - 1,
    10**25, 10**350, "", "a", "0.5", "\ud800", "NaN", [], {}, [[]], [None], [[0.5, 0.5], [1]],
    {"": 0}, {"__class__": "os.system"}, [0] * 50,
]  # fmt: skip
TOKENS = [
    b"NaN", b"-Infinity", b"1e999", b"-", b"null", b"true", b"[", b"]", b"{", b"}", b",", b":",
    b'"', b"\\", b"\\ud800", b"\\u0000", b"\0", b"\xff", b"\xed\xa0\x80", b"9" * 30, b"9" * 5000,
    b"[" * 3000, b'{"a":' * 3000, b'"names": [],', b"\xef\xbb\xbf", b"//", b"1e", b"00", b"'",
]  # fmt: skip


def _models() -> list:
    tree = Tree([5, 5, 6, 6, 2, -1, 5], [1, 2, 0.5, 4, 0.25, 0, 1], 5, ["a", "b'", "c\n", "d", "é"])
    rng = np.random.default_rng(0)
    n_states = rng.integers(1, 4, tree.n_nodes)
    tables = [
        rng.dirichlet(np.ones(n_states[v]), None if above < 0 else n_states[above])
        for v, above in enumerate(tree.parent.tolist())
    ]
    labels = [["x", None, 1.5][:k] for k in n_states[:5]]
    return [
        GaussianTreeModel(tree, rng.uniform(-1, 1, 7), rng.normal(size=5), rng.exponential(size=5)),
        DiscreteTreeModel(tree, tables, labels),
        DiscreteTreeModel.symmetric(tree, 3, rng.uniform(0, 0.3, 7)),
    ]


def _paths(value, path=()):
    """All places in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        if isinstance(each, dict | list):
            yield from _paths(each, (*path, key))
        else:
            yield (*path, key)


def _odd(rng: random.Random):
    """An odd value of its own: one that is shared might come to hold itself."""
    return copy.deepcopy(rng.choice(ODD))


def _mutated_json(original: bytes, rng: random.Random) -> bytes:
    """Replace, delete, add, copy or swap parts of the JSON value."""
    value = json.loads(original)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice(list(_paths(value))[1:])
        above = value
        for key in path[:-1]:
            above = above[key]
        key = path[-1]
        kind = rng.randrange(5)
        if kind == 0:
            above[key] = _odd(rng)
        elif kind == 1:
            del above[key]
        elif kind == 2 and isinstance(above, list):
            above.insert(rng.randrange(len(above) + 1), rng.choice([_odd(rng), above[key]]))
        elif kind == 2:
            above[rng.choice(["", "code", "labels", "tables", "means"])] = _odd(rng)
        elif kind == 3:
            above[key] = [above[key]]
        elif isinstance(above, list):
            other = rng.randrange(len(above))
            above[key], above[other] = above[other], above[key]
        else:
            above[key] = str(above[key])
        if not isinstance(value, dict) or not value:
            break
    return json.dumps(value).encode()


def _mutated_bytes(original: bytes, rng: random.Random) -> bytes:
    """Flip, cut, repeat, insert or overwrite bytes."""
    data = bytearray(original)
    for _ in range(rng.choice([1, 1, 2, 5])):
        place = rng.randrange(len(data) + 1)
        end = min(len(data), place + rng.choice([1, 1, 2, 10, 100]))
        kind = rng.randrange(6)
        if kind == 0 and place < len(data):
            data[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[place:end]
        elif kind == 2:
            data[place:place] = data[place:end]
        elif kind == 3:
            data[place:place] = rng.choice(TOKENS)
        elif kind == 4:
            data[place:end] = rng.choice(TOKENS)
        else:
            del data[place:]
    return bytes(data)


@given(seeds)
@examples(20)
def test_mutated_models(tmp_path_factory, seed):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("models")
    originals = [encode(model, {"method": "clrg", "steps": [1, 2.5]}) for model in _models()]
    loaded = 0
    for number in batch(N_FILES):
        mutate = _mutated_json if number % 2 else _mutated_bytes
        data = mutate(originals[number % 3], rng)
        path = folder / f"{number}.json"  # a new one: some disks are slow to overwrite
        path.write_bytes(data)
        if number == N_FILES - N_TRACED:
            tracemalloc.start()
        loaded += _loads(path, data)
        path.unlink()
    if not tracemalloc.is_tracing():  # the time was over
        return
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Some mutations do no harm (another name, another number), most do.
    assert 0.02 * N_FILES < loaded < 0.5 * N_FILES
    assert peak < 10 * 2**20


def _check_message(error: LatentTreeError, path) -> None:
    """Errors are short and name the file, and the line if there is one."""
    assert len(str(error)) < 500
    named = str(error).startswith((f"{path}: ", f"{path}, "))
    assert named or not isinstance(error, FileError)


def _loads(path, data: bytes) -> bool:
    """Whether the file is a model; a broken one must say so in latentree's own words."""
    try:
        model = models.load(path)
    except FileError as error:
        _check_message(error, path)
        return False
    except BaseException as error:
        pytest.fail(f"{type(error).__name__}: {error} from {data!r}")
    # What is accepted is a whole model: it can be saved and loaded again.
    assert decode(encode(model)).model.tree == model.tree
    return True


# Tables in files --------------------------------------------------------------------------------

N_TABLES = 20
FRAME = pa.table(
    {
        "count": [1, 2, None] * 20,
        "word": ["x", "größer", None] * 20,
        "kind": pa.array(["p", "q", "r"] * 20).dictionary_encode(),
        "size": [0.5, math.nan, -1e9] * 20,
        "flag": [True, None, False] * 20,
        "day": [datetime.date(2020, 1, day) for day in (1, 2, 3)] * 20,
    }
)
MATRIX = np.arange(60).reshape(20, 3) % 4


def _written(suffix: str) -> bytes:
    """Return the bytes of a sound file."""
    file = io.BytesIO()
    if suffix.startswith((".csv", ".tsv")):
        options = pyarrow.csv.WriteOptions(delimiter="," if suffix[1] == "c" else "\t")
        pyarrow.csv.write_csv(FRAME, file, options)
    elif suffix == ".parquet":
        pyarrow.parquet.write_table(FRAME, file, row_group_size=25)
    elif suffix == ".feather":
        pyarrow.feather.write_feather(FRAME, file, chunksize=25, compression="uncompressed")
    elif suffix == ".packed.feather":
        pyarrow.feather.write_feather(FRAME, file, chunksize=25, compression="lz4")
    elif suffix == ".arrow":
        with pa.ipc.new_stream(file, FRAME.schema) as stream:
            stream.write_table(FRAME, max_chunksize=25)
    elif suffix == ".npz":
        np.savez(file, data=MATRIX, names=np.array(["a", "b", "c"]))
    elif suffix == ".sparse.npz":
        sparse.save_npz(file, sparse.csr_array(MATRIX == 1))
    elif suffix == ".xlsx":
        book = openpyxl.Workbook()
        rows = FRAME.drop_columns(["day"]).to_pylist()
        book.active.append(list(rows[0]))
        for row in rows:
            book.active.append([None if cell != cell else cell for cell in row.values()])
        book.save(file)
    else:
        scipy_io.mmwrite(file, sparse.coo_array((MATRIX == 1).astype(np.int8)))
    return gzip.compress(file.getvalue()) if suffix.endswith(".gz") else file.getvalue()


def _mutated_file(original: bytes, rng: random.Random) -> bytes:
    """Damage a file, or what is in it: checksums of archives would tell of anything else."""
    if rng.random() < 0.5:
        return _mutated_bytes(original, rng)
    if original.startswith(b"\x1f\x8b"):
        return gzip.compress(_mutated_bytes(gzip.decompress(original), rng))
    if not original.startswith(b"PK"):
        return _mutated_bytes(original, rng)
    with zipfile.ZipFile(io.BytesIO(original)) as packed:
        members = {name: packed.read(name) for name in packed.namelist()}
    name = rng.choice(sorted(members))
    if rng.random() < 0.1:
        del members[name]
    else:
        members[name] = rng.choice([_mutated_bytes, _mutated_numbers])(members[name], rng)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in members.items():
            packed.writestr(name, data)
    return file.getvalue()


def _mutated_numbers(data: bytes, rng: random.Random) -> bytes:
    """Replace a number in a text: sizes, references of cells, dimensions."""
    places = list(re.finditer(rb"\d+", data))
    if not places:
        return data
    place = rng.choice(places)
    number = rng.choice([b"0", b"-1", b"1", b"3", b"99", b"8000000000", b"1e9", b"9" * 25])
    return data[: place.start()] + number + data[place.end() :]


def _opens(path) -> bool:
    try:
        drop = ("size", "day") if "w" in path.name else ()
        open_table(path, "discrete", header=True, drop=drop[:1] if "x" in path.name else drop)
    except LatentTreeError as error:
        _check_message(error, path)
        return False
    except BaseException as error:
        pytest.fail(f"{type(error).__name__}: {error} from {path.name}: {path.read_bytes()!r}")
    return True


SUFFIXES = [
    ".csv", ".tsv", ".csv.gz", ".parquet", ".feather", ".packed.feather", ".arrow", ".npz",
    ".sparse.npz", ".mtx", ".mtx.gz", ".xlsx",
]  # fmt: skip


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(seeds)
@examples(12)
def test_mutated_tables(tmp_path_factory, suffix, seed):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("tables")
    original = _written(suffix)
    is_matrix = suffix.endswith((".npz", ".mtx", ".mtx.gz"))
    sound = folder / f"{'' if is_matrix else 'w'}sound{suffix}"
    sound.write_bytes(original)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        assert _opens(sound)
        for number in batch(N_TABLES):
            path = folder / f"{'' if is_matrix else 'w'}{number}{suffix}"
            path.write_bytes(_mutated_file(original, rng))
            _opens(path)
            path.unlink()


# Reports in model files -------------------------------------------------------------------------


def _report_file() -> bytes:
    model = simulate.random_gaussian_model(simulate.double_star(6), 0)
    others = [model.tree, model.tree, simulate.latent_class(6)]
    support = support_from(model.tree, others, ["nj"])
    return encode(model, {"method": "nj", "support": support.as_dict()})


@given(seeds)
@examples(2)
def test_mutated_support(tmp_path_factory, seed):
    rng = random.Random(seed)
    path = tmp_path_factory.mktemp("support") / "model.json"
    original = _report_file()
    for _ in batch(40):
        path.write_bytes(_mutated_part(original, ("report", "support"), rng))
        try:
            found = load_support(path)
        except FileError as error:
            _check_message(error, path)
            continue
        except BaseException as error:
            pytest.fail(f"{type(error).__name__}: {error} from {path.read_bytes()!r}")
        if found is not None:
            assert found.n_hidden_distribution is not None
            assert repr(found)
            assert main(["show", str(path)]) == 0


def _mutated_part(original: bytes, keys: tuple[str, ...], rng: random.Random) -> bytes:
    """Mutate the JSON value below some keys, by odd values and by large counts."""
    value = json.loads(original)
    above = value
    for key in keys[:-1]:
        above = above[key]
    part = json.dumps(above[keys[-1]]).encode()
    if rng.random() < 0.3:
        mutated = _mutated_numbers(part, rng)
        with contextlib.suppress(ValueError):
            above[keys[-1]] = json.loads(mutated)
    else:
        above[keys[-1]] = json.loads(_mutated_json(part, rng))
    return json.dumps(value).encode()


# Topics -----------------------------------------------------------------------------------------

ABOUT = ("ball goal team coach", "bank loan rate debt", "song band album chart")


@functools.cache
def _topics_file() -> bytes:
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(ABOUT[i % 3].split(), 3)) for i in range(300)]
    vectorizer = CountVectorizer()
    topics = TopicTree(n_topics=(2, 3), max_phrase=2, vectorizer=vectorizer).fit(texts)
    with tempfile.TemporaryDirectory() as folder:
        topics.save(f"{folder}/topics.json")
        return Path(folder, "topics.json").read_bytes()


@given(seeds)
@examples(3)
def test_mutated_topics(tmp_path_factory, seed):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("topics")
    original = _topics_file()
    path = folder / "topics.json"
    for number in batch(20):
        path.write_bytes(_mutated_part(original, ("report", "topics"), rng))
        try:
            found = TopicTree.load(path)
        except FileError as error:
            _check_message(error, path)
            continue
        except BaseException as error:
            pytest.fail(f"{type(error).__name__}: {error} from seed {seed}, number {number}")
        texts = ["the coach of the team", "debt", "", "goal loan song"]
        assert found.transform(texts).shape[0] == 4
        assert len(found.predict(texts)) == 4
        assert np.isfinite(found.score(texts))
        write_topics(found, folder / "topics.html", texts)


DOCUMENTS = [".txt", ".txt.gz", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz", ".parquet"]


def _document_file(suffix: str) -> bytes:
    texts = ["Rain and snow", 'A "quoted"\nline', "größer"] * 10
    kind = suffix.removesuffix(".gz")
    if kind == ".parquet":
        file = io.BytesIO()
        pyarrow.parquet.write_table(pa.table({"text": texts, "when": ["2020-01"] * 30}), file)
        return file.getvalue()
    if kind == ".csv":
        lines = ["text,when", *(f"{json.dumps(text)},2020-01-05" for text in texts)]
    elif kind == ".jsonl":
        lines = [json.dumps({"text": text, "when": 2020}) for text in texts]
    else:
        lines = texts
    data = "\n".join(lines).encode()
    return gzip.compress(data) if suffix.endswith(".gz") else data


@pytest.mark.parametrize("suffix", DOCUMENTS)
@given(seeds)
@examples(3)
def test_mutated_documents(tmp_path_factory, suffix, seed):
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("documents")
    original, is_text = _document_file(suffix), suffix.startswith(".txt")
    for number in batch(N_TABLES):
        path = folder / f"{number}{suffix}"
        path.write_bytes(_mutated_file(original, rng))
        try:
            for document in read_documents(path, None if is_text else "text"):
                assert isinstance(document.text, str)
        except FileError as error:
            _check_message(error, path)
        except BaseException as error:
            pytest.fail(f"{type(error).__name__}: {error} from {path.read_bytes()!r}")
        path.unlink()


# Frames -----------------------------------------------------------------------------------------

N_FRAMES = 10
CELLS = [
    lambda rng: rng.gauss(0, 1), lambda rng: rng.gauss(0, 1) * 10.0 ** rng.randint(-320, 308),
    lambda rng: rng.randrange(3), lambda rng: rng.choice([2**63, 2**64 - 1, -(2**63), 2**100, 7]),
    lambda rng: rng.choice([10**300, -(10**300), 10**400, 1]),
    lambda rng: rng.random() < 0.5,
    lambda rng: rng.choice(["a", "b", "", "nan", "\0", "é", "\ud800"]),
    lambda rng: None, lambda rng: math.nan, lambda rng: rng.choice([math.inf, -math.inf, 1.5]),
    lambda rng: datetime.date(2020, 1, rng.randint(1, 9)),
    lambda rng: pd.Period(str(2020 + rng.randrange(3))),
    lambda rng: pd.NaT, lambda rng: pd.NA, lambda rng: [rng.randrange(2)], lambda rng: {"x": 1},
    lambda rng: bytes([rng.randrange(256)]), lambda rng: Decimal(rng.randrange(9)) / 7,
    lambda rng: 1j, lambda rng: np.float32(rng.random()), lambda rng: np.datetime64("2020"),
    lambda rng: (1, 2), lambda rng: pd.Interval(0, rng.randint(1, 3)), lambda rng: object,
    lambda rng: rng.choice([10**300, 10**400, -(10**400), 3]), lambda rng: f"${rng.gauss(0, 9):,}",
    lambda rng: rng.choice(["1,234", "1.234", "0,5", "(7)", "70%", "1.5 kg", "-", "½", "\u0663"]),
    lambda rng: rng.choice(["31.01.2017", "2017-02-30", "01/02/17", "Jan 2017", "25:61"]),
    lambda rng: rng.choice([20170131, 20171231, 20170230, 1_700_000_000]),
]  # fmt: skip
NAMES = ["a", "b", "", None, 0, 1, "1", ("a", 1), "x0", "é\n", 1.5, "\ud800"]


def _cells(rng: random.Random, n: int) -> list:
    """Cells of one kind mostly; of a few kinds rarely."""
    kinds = rng.choices(CELLS, k=rng.choice([1, 1, 1, 2, 3]))
    gap = rng.choice([0.0, 0.0, 0.2])
    return [None if rng.random() < gap else rng.choice(kinds)(rng) for _ in range(n)]


def _arrow(cells: list) -> pa.Array:
    """Return an Arrow array; pyarrow itself crashes on a NumPy date before another NumPy scalar."""
    return pa.array([x.item() if isinstance(x, np.datetime64) else x for x in cells])


def _frame(rng: random.Random):
    """Return a table of a random kind, or None if its library refuses the cells itself."""
    n, m = rng.choice([0, 1, 2, 5, 12]), rng.choice([0, 1, 2, 3, 5])
    names = rng.choices(NAMES, k=m) if rng.random() < 0.3 else list("abcde")[:m]
    columns = [_cells(rng, n) for _ in range(m)]
    kind = rng.randrange(8)
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if kind == 0:
            frame = pd.DataFrame(dict(enumerate(columns)), index=rng.sample(range(99), n))
            frame.columns = names
            return frame
        if kind == 1:
            categories = {f"c{j}": pd.Categorical(cells) for j, cells in enumerate(columns)}
            return pd.DataFrame(categories)
        if kind == 2:
            return pl.DataFrame(
                {str(name): cells for name, cells in zip(names, columns, strict=True)}
            )
        if kind == 3:
            return pa.table([_arrow(cells) for cells in columns], names=list(map(str, names)))
        rows = [list(row) for row in zip(*columns, strict=True)]
        if kind == 4:
            return rows
        if kind == 5:
            return np.array(rows, object)
        if kind == 6:
            values = np.array(rows, np.float64)
            return np.ma.array(values, mask=np.isnan(values) | (values > 1))
        return dict(zip(names, columns, strict=True))
    return None


def _tries(frame, rng: random.Random) -> None:
    """Learn from a table and use the model; only errors of ours and of scikit-learn's checks."""
    family = rng.choice(["auto", "auto", "gaussian", "discrete", "symmetric", "mixed"])
    with contextlib.suppress(LatentTreeError):
        table = as_table(frame, family)
        assert table.values.shape == (table.n_rows, table.n_columns)
        if table.family == "gaussian":
            assert not np.isinf(table.values).any()
        elif table.schema.is_coded and not table.is_sparse:
            assert (table.values < table.schema.cardinalities).all()
    estimator = LatentTree(family=family, max_steps=20, random_state=0)
    try:
        estimator.fit(frame)
    except LatentTreeError:
        return
    except (TypeError, ValueError) as error:
        if type(error) is TypeError and "Feature names" in str(error):
            return
        if type(error) is ValueError and any(w in str(error) for w in SCIKIT_LEARN):
            return
        raise
    assert np.isfinite(estimator.score(frame))
    if estimator.n_hidden_:
        cells = next(iter(frame.values())) if isinstance(frame, dict) else frame
        assert len(estimator.transform(frame)) == len(cells)
    filled = estimator.impute(frame)
    assert type(filled) is type(frame) or isinstance(frame, list | np.ndarray)
    if isinstance(frame, pd.DataFrame):
        assert filled.index.equals(frame.index)
        assert filled.columns.equals(frame.columns)


SCIKIT_LEARN = (
    "Expected 2D array",
    "Found array with",
    "Complex data",
    "inhomogeneous",
    "minimum of",
)
"""What scikit-learn's own checks say."""


@given(seeds)
@examples(40)
def test_frames(seed):
    rng = random.Random(seed)
    for _ in batch(N_FRAMES):
        frame = _frame(rng)
        if frame is None:
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            try:
                _tries(frame, rng)
            except Exception as error:
                pytest.fail(f"{type(error).__name__}: {error} from {type(frame)} {frame!r}")


# Weights, distances and options -----------------------------------------------------------------


def _mixed_frame(rng: np.random.Generator, n: int) -> pd.DataFrame:
    hidden = rng.normal(size=(n, 1))
    numbers = hidden + 0.7 * rng.normal(size=(n, 5))
    frame = pd.DataFrame({"a": numbers[:, 0], "b": numbers[:, 1]})
    frame["c"] = np.where(numbers[:, 2] > 0, "x", "y")
    frame["d"] = np.clip(np.round(numbers[:, 3] + 1), 0, 3).astype(int)
    return frame[list(rng.permutation(list("abcd"))[: rng.integers(2, 5)])]


@given(seeds)
@examples(2)
def test_rows_of_weight_0(seed):
    for _ in batch(2):
        rng = np.random.default_rng(seed)
        frame = _mixed_frame(rng, 40)
        weights = rng.uniform(0.5, 2.0, 40) * (rng.random(40) < rng.choice([0.2, 0.6, 0.95]))
        known = weights > 0
        if known.sum() < 5:
            continue
        for name in ("a", "b"):
            if name in frame:
                odd = 10.0 ** rng.uniform(0, 305, 40) * rng.choice([-1, 1], 40)
                frame[name] = np.where(known, frame[name], odd)
        for name in ("c", "d"):  # kinds and labels are those of whole columns
            if name in frame:
                frame[name] = np.where(known, frame[name], frame[name][known].iloc[0])
        kinds = {"d": "ordered"} if "d" in frame else None
        options = {"method": str(rng.choice(["clrg", "nj"])), "kinds": kinds, "max_steps": 5}
        encoded = []
        for X, w in ((frame, weights), (frame[known], weights[known])):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                try:
                    fitted = LatentTree(random_state=0, **options).fit(X, sample_weight=w)
                    encoded.append(encode(fitted.model_))
                except LatentTreeError as error:
                    encoded.append(type(error).__name__)
        assert encoded[0] == encoded[1], (seed, options)


@pytest.mark.parametrize("method", ["rg", "nj", "snj", "clrg", "clnj"])
@given(seeds)
@examples(5)
def test_exact_distances(method, seed):
    for _ in batch(1):
        rng = np.random.default_rng(seed)
        tree = simulate.random_latent_tree(int(rng.integers(4, 30)), rng, *rng.uniform(0, 0.9, 2))
        length = np.where(tree.parent < 0, 0.0, 10.0 ** rng.uniform(-3, 1, tree.n_nodes))
        tree = tree.with_lengths(length)
        longest = 10.0 ** rng.uniform(0, 308)
        tree = tree.with_lengths(length / tree.path_lengths().max() * longest)
        learn = {
            "rg": structure.recursive_grouping,
            "nj": structure.neighbor_joining,
            "snj": structure.spectral_neighbor_joining,
            "clrg": structure.cl_grouping,
            "clnj": functools.partial(structure.cl_grouping, subroutine="nj"),
        }[method]
        assert learn(tree.path_lengths(), exact=True).equals(tree, 1e-7 * longest), seed


OPTIONS = [
    "criterion", "family", "hidden", "kinds", "max_states", "max_steps",
    "method", "n_bootstrap", "n_hidden", "n_states", "n_trees", "output",
    "prior_weight", "start", "time_limit", "unseen",
]  # fmt: skip
WRONG = [
    "x", "", b"auto", -1, 0, 1.5, -0.5, math.nan, math.inf, 10**30, [], {}, (1,), object(), 1j,
    np.array([1, 2]), "\ud800", {"a": "nonsense"}, {"z": "real"}, {"a": 1}, True, None,
]  # fmt: skip


@given(seeds)
@examples(4)
def test_wrong_options(seed):
    rng = random.Random(seed)
    frames = [_mixed_frame(np.random.default_rng(seed % 7), 30)]
    frames.append(frames[0].select_dtypes("number") * 1.5)
    frames.append((frames[0].map(lambda cell: cell == "x" or (cell != "y" and cell > 0))) * 1)
    for _ in batch(4):
        frame, name, value = rng.choice(frames), rng.choice(OPTIONS), rng.choice(WRONG)
        is_huge = isinstance(value, int) and value == 10**30
        if frame.shape[1] < 2 or (is_huge and name in ("n_bootstrap", "n_states")):
            continue
        options = {"max_steps": 3, "method": rng.choice(["auto", "clrg", "hclt", "lcm"])}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                LatentTree(random_state=0, **{**options, name: value}).fit(frame)
            except LatentTreeError:
                pass
            except BaseException as error:
                pytest.fail(
                    f"{type(error).__name__}: {error} from {name}={value!r}, {options}, {frame!r}"
                )
