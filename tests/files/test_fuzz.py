"""Broken model files and tables: no exception but ours, in bounded memory."""

import json
import random
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

from latentree import DiscreteTreeModel, GaussianTreeModel, Tree, models
from latentree.data import open_table
from latentree.errors import FileError
from latentree.models._decode import decode
from latentree.models._encode import encode

N_FILES = 20_000
N_TRACED = 300  # the last ones, with memory measured: this makes them slower

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
            above[key] = rng.choice(ODD)
        elif kind == 1:
            del above[key]
        elif kind == 2 and isinstance(above, list):
            above.insert(rng.randrange(len(above) + 1), rng.choice([rng.choice(ODD), above[key]]))
        elif kind == 2:
            above[rng.choice(["", "code", "labels", "tables", "means"])] = rng.choice(ODD)
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


def test_mutated_files(tmp_path):
    rng = random.Random(0)
    originals = [encode(model, {"method": "clrg", "steps": [1, 2.5]}) for model in _models()]
    loaded = 0
    for number in range(N_FILES):
        mutate = _mutated_json if number % 2 else _mutated_bytes
        data = mutate(originals[number % 3], rng)
        path = tmp_path / f"{number}.json"  # a new one: some disks are slow to overwrite
        path.write_bytes(data)
        if number == N_FILES - N_TRACED:
            tracemalloc.start()
        loaded += _loads(path, data)
        path.unlink()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Some mutations do no harm (another name, another number), most do.
    assert 0.02 * N_FILES < loaded < 0.5 * N_FILES
    assert peak < 10 * 2**20


def _loads(path, data: bytes) -> bool:
    """Whether the file is a model; a broken one must say so in latentree's own words."""
    try:
        model = models.load(path)
    except FileError as error:
        message = str(error)
        assert message.startswith(f"{path}: ")
        assert len(message) < 400
        return False
    except BaseException as error:
        pytest.fail(f"{type(error).__name__}: {error} from {data!r}")
    # What is accepted is a whole model: it can be saved and loaded again.
    assert decode(encode(model)).model.tree == model.tree
    return True


# Tables -------------------------------------------------------------------------------------

N_TABLES = 300
FRAME = pa.table(
    {
        "count": [1, 2, None] * 20,
        "word": ["x", "größer", None] * 20,
        "kind": pa.array(["p", "q", "r"] * 20).dictionary_encode(),
    }
)


def _write(path) -> None:
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(FRAME, path)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(FRAME, path, row_group_size=25)
    elif path.suffix == ".feather":
        pyarrow.feather.write_feather(FRAME, path, chunksize=25, compression="uncompressed")
    elif path.suffix == ".arrow":
        with pa.ipc.new_stream(path, FRAME.schema) as stream:
            stream.write_table(FRAME, max_chunksize=25)
    else:
        np.savez(path, data=np.arange(60).reshape(20, 3) % 4, names=np.array(["a", "b", "c"]))


def _opens(path) -> bool:
    try:
        open_table(path, "discrete", header=True)
    except FileError as error:
        message = str(error)
        assert message.startswith(f"{path}: ")
        return False
    except BaseException as error:
        pytest.fail(f"{type(error).__name__}: {error} from {path.name}")
    return True


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".arrow", ".npz"])
def test_mutated_tables(tmp_path, suffix):
    rng = random.Random(1)
    original = tmp_path / f"original{suffix}"
    _write(original)
    read = 0
    for number in range(N_TABLES):
        path = tmp_path / f"{number}{suffix}"
        path.write_bytes(_mutated_bytes(original.read_bytes(), rng))
        read += _opens(path)
    assert 0 < read < N_TABLES  # some mutations do no harm
