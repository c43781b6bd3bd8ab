"""Model files: what is saved is loaded, to the last bit; what is wrong is refused by name."""

import contextlib
import importlib.resources
import json
import os
import stat
import tracemalloc
from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from made import discrete_models, identical
from made import models as any_model

from latentree import (
    CopulaTreeModel,
    CountEmission,
    DiscreteTreeModel,
    GaussianEmission,
    GaussianTreeModel,
    MixedTreeModel,
    Tree,
    models,
)
from latentree import _disk as disk
from latentree.data import NumberFormat, SetAside
from latentree.errors import FileError, LatentTreeError
from latentree.inference import NormalMargin, Odds, RankMargin, Thresholds
from latentree.models import _decode as decode
from latentree.models import _encode as encode
from latentree.models import with_schema
from latentree.models._format import json_schema

REPLACING = disk.replacing
STAR = Tree([3, 3, 3, -1], [0.1, 0.2, 0.3, 0], n_observed=3, names=["a", "b", "c", "h"])
NOISY = [[0.9, 0.1], [0.2, 0.8]]


def gaussian() -> GaussianTreeModel:
    return GaussianTreeModel(STAR, [0.8, 0.5, -0.5, 0], [1, 2, 3], [1, 0.5, 2])


def discrete(labels=None) -> DiscreteTreeModel:
    return DiscreteTreeModel(STAR, [NOISY, NOISY, NOISY, [0.5, 0.5]], labels)


# Round trips --------------------------------------------------------------------------------


@given(any_model)
def test_round_trip_to_the_last_bit(model):
    data = encode.encode(model)
    again = decode.decode(data).model
    assert identical(model, again)
    assert encode.encode(again) == data


def test_columns_set_aside_and_formats_of_numbers_survive(tmp_path):
    formats, aside = (
        (None, NumberFormat(",", "EUR"), None),
        (SetAside("unit", 1, "constant", "cm"),),
    )
    model = gaussian()
    model = with_schema(model, replace(model.schema, formats=formats, aside=aside))
    models.save(model, tmp_path / "m.json")
    again = models.load(tmp_path / "m.json").schema
    assert (again.formats, again.aside) == (formats, aside)


@pytest.mark.parametrize("n_states", [2, 5])
def test_symmetric_models(tmp_path, n_states):
    crossover = np.random.default_rng(0).uniform(0, 1 / n_states, 4)
    model = DiscreteTreeModel.symmetric(STAR, n_states, crossover)
    models.save(model, tmp_path / "m.json")
    assert identical(model, models.load(tmp_path / "m.json"))
    assert models.load(tmp_path / "m.json").n_parameters == model.n_parameters


def test_what_could_not_be_read_back_is_not_written(tmp_path):
    skew = discrete()
    lie = DiscreteTreeModel.from_theta(STAR, skew.n_states, skew.theta, family="symmetric")
    with pytest.raises(FileError, match="symmetric"):
        models.save(lie, tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_awkward_floats_survive(tmp_path):
    numbers = [5e-324, 1.7976931348623157e308, 0.1 + 0.2]
    scales = [1e-150, 1e150, 0.1 + 0.2]
    model = GaussianTreeModel(STAR, [1 - 2**-53, -1 + 2**-53, 5e-324, 0], numbers, scales)
    models.save(model, tmp_path / "m.json")
    assert identical(model, models.load(tmp_path / "m.json"))


def test_tables_are_not_scaled_again():
    # 1/3 + 1/3 + 1/3 is 1, but many rows miss 1 by a bit, and dividing by that changes them.
    rng = np.random.default_rng(0)
    tables = [rng.dirichlet(np.ones(7), 7) for _ in range(3)] + [rng.dirichlet(np.ones(7))]
    model = DiscreteTreeModel(STAR, tables)
    assert identical(model, decode.decode(encode.encode(model)).model)


def test_labels_keep_their_types(tmp_path):
    labels = [[True, False], [1, 0], [1.0, "1"]]
    path = tmp_path / "m.json"
    models.save(discrete(labels), path)
    loaded = models.load(path).schema.labels
    assert [[type(label) for label in states] for states in loaded] == [
        [bool, bool], [int, int], [float, str],
    ]  # fmt: skip
    models.save(discrete([[None, "x"], [np.int64(3), np.str_("y")], [np.bool_(True), -5]]), path)
    assert models.load(path).schema.labels == ((None, "x"), (3, "y"), (True, -5))


@pytest.mark.parametrize(
    "bad",
    [np.nan, np.inf, b"x", (1, 2), 2**64, -(2**63) - 1, "\ud800", np.datetime64("2020")],
)
def test_labels_that_no_file_can_hold_are_refused_by_name(tmp_path, bad):
    with pytest.raises(FileError, match=r"m\.json: the labels of 'b'\[1\]"):
        models.save(discrete([[0, 1], [0, bad], [0, 1]]), tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


def test_equal_labels_are_refused(tmp_path):
    with pytest.raises(FileError, match="not all different"):
        models.save(discrete([[0, 1], [1, True], [0, 1]]), tmp_path / "m.json")


def test_half_surrogates_in_names_are_refused(tmp_path):
    model = GaussianTreeModel(STAR.renamed(["a", "\udc80", "c"]), np.zeros(4))
    with pytest.raises(FileError, match=r"names\[1\]"):
        models.save(model, tmp_path / "m.json")


def test_report_beside_the_model(tmp_path):
    path = tmp_path / "m.json"
    report = {"z": np.float64(0.1), "a": {"y": (1, None, True), "x": np.arange(2)}, "n": []}
    models.save(gaussian(), path, report)
    assert models.load_report(path) == {"z": 0.1, "a": {"y": [1, None, True], "x": [0, 1]}, "n": []}
    turned = dict(reversed(report.items())) | {"a": dict(reversed(report["a"].items()))}
    assert encode.encode(gaussian(), turned) == path.read_bytes()
    assert identical(gaussian(), models.load(path))
    models.save(gaussian(), path)
    assert models.load_report(path) is None


@pytest.mark.parametrize("bad", [float("nan"), {1: 2}, {2}, b"x", 10**30, object(), "\ud800"])
def test_reports_of_other_values_are_refused(tmp_path, bad):
    with pytest.raises(FileError, match="report"):
        models.save(gaussian(), tmp_path / "m.json", {"part": [bad]})


def test_reports_that_hold_themselves_are_refused(tmp_path):
    report: dict = {}
    report["me"] = report
    with pytest.raises(FileError, match="nests"):
        models.save(gaussian(), tmp_path / "m.json", report)


def test_models_save_themselves(tmp_path):
    for model in (gaussian(), discrete()):
        model.save(tmp_path / "m.json", {"method": "by hand"})
        assert identical(model, models.load(tmp_path / "m.json"))
        assert models.load_report(tmp_path / "m.json") == {"method": "by hand"}


def test_only_models_are_saved(tmp_path):
    with pytest.raises(FileError, match="not a Tree"):
        models.save(STAR, tmp_path / "m.json")


def test_layout_is_stable():
    """Files of version 1 look like this for ever."""
    assert encode.encode(discrete([["no", "yes"], [0, 1], [False, True]]), {"k": 1}) == (
        b'{\n  "format": "latentree model",\n  "version": 1,\n  "family": "discrete",\n'
        b'  "n_observed": 3,\n  "names": ["a", "b", "c", "h"],\n  "parent": [3, 3, 3, -1],\n'
        b'  "length": [0.1, 0.2, 0.3, 0.0],\n  "parameters": {\n    "tables": [\n'
        b"      [[0.9, 0.1], [0.2, 0.8]],\n      [[0.9, 0.1], [0.2, 0.8]],\n"
        b"      [[0.9, 0.1], [0.2, 0.8]],\n      [0.5, 0.5]\n    ]\n  },\n"
        b'  "labels": [\n    ["no", "yes"],\n    [0, 1],\n    [false, true]\n  ],\n'
        b'  "report": {\n    "k": 1\n  }\n}\n'
    )


def test_a_file_by_hand_may_use_integers_and_a_byte_order_mark():
    fields = json.loads(encode.encode(gaussian()))
    fields["parameters"]["means"] = [1, 2, 10**30]
    model = decode.decode(b"\xef\xbb\xbf" + json.dumps(fields, indent=3).encode()).model
    assert model.means.tolist() == [1.0, 2.0, 1e30]


def test_rows_by_hand_are_scaled_to_sum_one():
    fields = json.loads(encode.encode(discrete()))
    fields["parameters"]["tables"][0] = [[0.3333333, 0.6666666], [0.5, 0.5]]
    model = decode.decode(json.dumps(fields).encode()).model
    assert model.tables[0].sum(axis=1) == pytest.approx([1, 1], abs=1e-15)


@settings(max_examples=30)
@given(st.one_of(any_model, discrete_models(labels=st.integers(0, 9))))
def test_what_is_written_fits_the_published_schema(model):
    jsonschema = pytest.importorskip("jsonschema")
    folder = importlib.resources.files("latentree.models")
    schema = json.loads((folder / "model.schema.json").read_text())
    check = jsonschema.Draft202012Validator(schema)
    check.check_schema(schema)
    assert schema == json_schema()  # docs/make_schema.py writes it
    fields = json.loads(encode.encode(model, {"any": [1, {"thing": None}]}))
    check.validate(fields)
    for key in sorted(fields):
        assert check.is_valid({k: v for k, v in fields.items() if k != key}) == (key == "report")
    assert not check.is_valid(fields | {"extra": 1})
    assert not check.is_valid(fields | {"parameters": {}})


# Bad files ----------------------------------------------------------------------------------


def changed(**changes) -> bytes:
    """The file of a Gaussian model with some fields replaced (or dropped, by ...)."""
    return _with(gaussian(), changes)


def changed_discrete(**changes) -> bytes:
    return _with(discrete(), changes)


def _with(model, changes: dict) -> bytes:
    fields = json.loads(encode.encode(model)) | changes
    return json.dumps({k: v for k, v in fields.items() if v is not ...}).encode()


def parameters(**changes) -> bytes:
    own = json.loads(encode.encode(gaussian()))["parameters"] | changes
    return changed(parameters={k: v for k, v in own.items() if v is not ...})


def tables(*tables) -> bytes:
    return changed_discrete(parameters={"tables": list(tables)})


GOOD = encode.encode(gaussian())
BAD = {
    "empty": (b"", "empty"),
    "blank": (b" \n\t ", "empty"),
    "not JSON": (b"hello", "not JSON"),
    "truncated": (GOOD[:200], "not JSON, or was cut off"),
    "more after the end": (GOOD + b"{}", "not JSON"),
    "junk": (bytes(range(256)), "not text in UTF-8"),
    "UTF-16": (GOOD.decode().encode("utf-16"), "not text in UTF-8"),
    "zeros": (b"\0" * 1000, "not JSON"),
    "a pickle": (b"\x80\x04\x95", "not text in UTF-8"),
    "NaN": (GOOD.replace(b"0.8", b"NaN"), "NaN"),
    "Infinity": (GOOD.replace(b"0.8", b"-Infinity"), "-Infinity"),
    "overflow": (GOOD.replace(b"0.8", b"1e999"), r"correlations\[0\] is too large"),
    "key twice": (b'{"format": 1,' + GOOD[1:], "'format' stands twice"),
    "inner key twice": (GOOD.replace(b'"means"', b'"scales"'), "'scales' stands twice"),
    "a list": (b"[1, 2]", "must be a dict"),
    "a number": (b"17", "must be a dict"),
    "other JSON": (b'{"nodes": []}', "is not a latentree model"),
    "newer": (changed(version=2), "newer latentree.*upgrade"),
    "version 0": (changed(version=0), "version"),
    "version true": (changed(version=True), "version"),
    "version text": (changed(version="1"), "version"),
    "no version": (changed(version=...), "version"),
    "family": (changed(family="poisson"), "family is 'poisson'"),
    "family list": (changed(family=["gaussian"]), "family"),
    "symmetric": (changed_discrete(family="symmetric"), r"symmetric, but .*tables\[0\]"),
    "symmetric reals": (changed(family="symmetric"), "lacks 'labels'"),
    "unknown key": (changed(code="import os"), "unknown key 'code'"),
    "labels of reals": (changed(labels=[]), "unknown key 'labels'"),
    "no labels": (changed_discrete(labels=...), "lacks 'labels'"),
    "no names": (changed(names=...), "lacks 'names'"),
    "names empty": (changed(names=[]), "names is empty"),
    "names dict": (changed(names={}), "names is a dict"),
    "a name not text": (changed(names=["a", 1, "c", "h"]), r"names\[1\] is 1"),
    "a name null": (changed(names=["a", None, "c", "h"]), r"names\[1\]"),
    "names alike": (changed(names=["a", "a", "c", "h"]), "two nodes are called 'a'"),
    "surrogate": (changed(names=["a", "\ud800", "c", "h"]), r"names\[1\].*Unicode"),
    "few names": (changed(names=["a", "b", "c"]), "parent has 4 entries, but needs 3"),
    "n_observed 0": (changed(n_observed=0), "n_observed is 0"),
    "n_observed 5": (changed(n_observed=5), "n_observed is 5"),
    "n_observed float": (changed(n_observed=3.0), "n_observed is 3.0"),
    "n_observed true": (changed(n_observed=True), "n_observed"),
    "n_observed huge": (changed(n_observed=10**300), "n_observed is an integer of more"),
    "digits": (GOOD.replace(b'"n_observed": 3', b'"n_observed": ' + b"3" * 5000), "5000 digits"),
    "cycle": (changed(parent=[1, 0, 3, -1]), "cycle"),
    "own parent": (changed(parent=[0, 3, 3, -1]), "cycle"),
    "parent outside": (changed(parent=[4, 3, 3, -1]), r"parent\[0\] is 4"),
    "parent −2": (changed(parent=[-2, 3, 3, -1]), r"parent\[0\] is -2"),
    "parent float": (changed(parent=[3.0, 3, 3, -1]), r"parent\[0\] is 3.0"),
    "parent bool": (changed(parent=[True, 3, 3, -1]), r"parent\[0\] is True"),
    "parent text": (changed(parent=["3", 3, 3, -1]), r"parent\[0\] is '3'"),
    "parent huge": (changed(parent=[10**100, 3, 3, -1]), r"parent\[0\]"),
    "parent nested": (changed(parent=[[3], 3, 3, -1]), r"parent\[0\] is a list"),
    "parent short": (changed(parent=[3, 3, -1]), "parent has 3 entries"),
    "hidden leaf": (changed(n_observed=2), "hidden node 2"),
    "length negative": (changed(length=[-1, 1, 1, 0]), r"length\[0\] is -1"),
    "length text": (changed(length=["1", 1, 1, 0]), r"length\[0\] is '1'"),
    "length null": (changed(length=[1, 1, None, 0]), r"length\[2\] is None"),
    "length bool": (changed(length=[1, 1, True, 0]), r"length\[2\] is True"),
    "length huge": (changed(length=[10**399, 1, 1, 0]), "length holds an integer"),
    "length of root": (changed(length=[1, 1, 1, 1]), "root"),
    "length short": (changed(length=[]), "length has 0 entries"),
    "parameters": (changed(parameters=[]), "parameters is a list"),
    "no means": (parameters(means=...), "parameters lacks 'means'"),
    "more": (parameters(tables=[]), "parameters has the unknown key 'tables'"),
    "correlation 1": (parameters(correlations=[1, 0, 0, 0]), "correlation"),
    "correlations short": (parameters(correlations=[0] * 3), "correlations has 3 entries"),
    "scale 0": (parameters(scales=[1, 0, 1]), "scale"),
    "means of hidden": (parameters(means=[0] * 4), "means has 4 entries"),
    "means nested": (parameters(means=[[0], 0, 0]), r"means\[0\] is a list"),
    "tables short": (tables(NOISY), "tables has 1 entries"),
    "table text": (tables("x", NOISY, NOISY, [1]), r"tables\[0\] is 'x'"),
    "table flat": (tables([0.5, 0.5], NOISY, NOISY, [0.5, 0.5]), r"row of .*tables\[0\] is 0.5"),
    "table ragged": (tables([[1], [0.5, 0.5]], NOISY, NOISY, [0.5, 0.5]), r"tables\[0\]"),
    "table empty": (tables([], NOISY, NOISY, [0.5, 0.5]), r"tables\[0\] is empty"),
    "row empty": (tables([[], []], NOISY, NOISY, [0.5, 0.5]), r"tables\[0\] is empty"),
    "root empty": (tables(NOISY, NOISY, NOISY, []), r"tables\[3\] is empty"),
    "root square": (tables(NOISY, NOISY, NOISY, NOISY), r"tables\[3\]"),
    "few rows": (tables([[0.5, 0.5]], NOISY, NOISY, [0.5, 0.5]), r"tables\[0\] has 1 rows"),
    "table sums": (tables(NOISY, [[0.5, 0.6], [0, 1]], NOISY, [0.5, 0.5]), r"tables\[1\] sums"),
    "negative": (tables(NOISY, NOISY, NOISY, [1.5, -0.5]), r"tables\[3\] holds -0.5"),
    "table entry": (tables(NOISY, NOISY, [[0, "1"], [0, 1]], [0, 1]), r"tables\[2\], row 0"),
    "labels short": (changed_discrete(labels=[]), "labels has 0 entries"),
    "labels few": (changed_discrete(labels=[[0], [0, 1], [0, 1]]), r"labels\[0\] has 1"),
    "labels equal": (changed_discrete(labels=[[0, 0], [0, 1], [0, 1]]), r"labels\[0\] are not"),
    "labels nested": (changed_discrete(labels=[[[0], 1], [0, 1], [0, 1]]), r"labels\[0\]\[0\]"),
    "labels text": (changed_discrete(labels=["01", [0, 1], [0, 1]]), r"labels\[0\] is '01'"),
    "label huge": (changed_discrete(labels=[[0, 2**64], [0, 1], [0, 1]]), r"labels\[0\]\[1\]"),
    "report list": (changed(report=[]), "report is a list"),
    "report surrogate": (changed(report={"\udfff": 1}), "report"),
    "report overflow": (changed(report={"x": 7})[:-2] + b"1e999}}", "report.x is inf"),
    "deep report": (changed(report={"x": json.loads("[" * 50 + "]" * 50)}), "nests"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_files_are_refused_by_file_and_part(tmp_path, case):
    data, message = BAD[case]
    path = tmp_path / "broken.json"
    path.write_bytes(data)
    with pytest.raises(FileError, match=f"(?s)^{path}: .*{message}"):
        models.load(path)


def test_errors_are_latentree_errors_and_value_errors():
    assert issubclass(FileError, LatentTreeError)
    assert issubclass(FileError, ValueError)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no\.json"):
        models.load(tmp_path / "no.json")
    with pytest.raises(OSError, match="directory"):
        models.load(tmp_path)


@pytest.mark.parametrize(
    "bomb",
    [
        b"[" * 5_000_000,
        b'{"a":' * 2_000_000,
        b"[" * 3_000_000 + b"]" * 3_000_000,
        b'{"report": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b"[" + b"[]," * 4_000_001 + b"[]]",
        b'"' + b"\\u0041" * 1_000_000,
        b"1" * 20_000_000,
        b"0." + b"1" * 5_000_000,
        b"1e" + b"9" * 5_000_000,
    ],
    ids=["open", "dicts", "nested", "inside", "wide", "text", "integer", "fraction", "exponent"],
)
def test_bombs_are_refused_in_little_memory(bomb):
    with traced() as peak, pytest.raises(FileError):
        decode.decode(bomb)
    assert peak() < 20 * len(bomb) + 2**20


@contextlib.contextmanager
def traced():
    """Give the most memory, in bytes, that was used since."""
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_file_of_a_gigabyte_is_refused_before_it_is_parsed(tmp_path):
    path = tmp_path / "bomb.json"
    with path.open("wb") as file:
        file.truncate(2**30)  # a hole: takes no space
    with traced() as peak, pytest.raises(FileError, match=r"bomb\.json: is larger than 128 MB"):
        models.load(path)
    assert peak() < 3 * 128 * 2**20


LONG = "k" * 100_000


@pytest.mark.parametrize(
    "fields",
    [
        {"report": {LONG: [0] * 100_000}},
        {"report": {LONG: {str(j): None for j in range(20_000)}}},
        {"report": {LONG: [[0]] * 20_000}},
    ],
    ids=["list", "dict", "lists"],
)
def test_checking_takes_memory_in_proportion_to_the_file(fields):
    """A path for every value under a long name took gigabytes for a third of a megabyte."""
    data = changed_discrete(**fields)
    with traced() as peak, contextlib.suppress(FileError):
        decode.decode(data)
    assert peak() < 40 * len(data) + 2**20


def test_long_paths_are_cut_in_messages():
    data = changed(report={LONG: [1.5, "\ud800"]})
    with pytest.raises(FileError, match=r"^report\.k{57}…\[1\] is .*no valid Unicode text$"):
        decode.decode(data)


def test_too_large_a_file_is_neither_written_nor_read(tmp_path):
    with pytest.raises(FileError, match="larger"):
        disk.write_bytes(tmp_path / "m.json", bytes(101), max_bytes=100)
    assert list(tmp_path.iterdir()) == []
    disk.write_bytes(tmp_path / "m.json", bytes(100), max_bytes=100)
    assert disk.read_bytes(tmp_path / "m.json", max_bytes=100) == bytes(100)
    with pytest.raises(FileError, match="larger"):
        disk.read_bytes(tmp_path / "m.json", max_bytes=99)


# The disk -----------------------------------------------------------------------------------


@pytest.mark.parametrize("fails", ["fsync", "replace", "write"])
def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, fails):
    path = tmp_path / "m.json"
    models.save(gaussian(), path)
    before = path.read_bytes()

    def fail(*args):
        raise OSError("disk full")

    if fails == "write":
        monkeypatch.setattr(disk, "replacing", _full_after_half)
    else:
        monkeypatch.setattr(os, fails, fail)
    with pytest.raises(OSError, match="disk full"):
        models.save(discrete(), path)
    assert [each.name for each in tmp_path.iterdir()] == ["m.json"]
    assert path.read_bytes() == before


@contextlib.contextmanager
def _full_after_half(path):
    class Half:
        def write(self, data):
            file.write(data[: len(data) // 2])
            raise OSError("disk full")

    with REPLACING(path) as file:
        yield Half()


def test_an_interrupt_leaves_nothing(tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        models.save(gaussian(), tmp_path / "m.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "m.json", tmp_path / "link.json"
    old = os.umask(0o027)
    try:
        models.save(gaussian(), path)
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    path.chmod(0o604)
    link.symlink_to(path)
    models.save(discrete(), link)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o604
    assert identical(models.load(path), discrete())


@pytest.mark.skipif(os.name != "posix", reason="devices of POSIX")
def test_devices_are_written_not_replaced():
    models.save(gaussian(), "/dev/null")
    assert not os.path.isfile("/dev/null")


# Size ---------------------------------------------------------------------------------------


def test_ten_thousand_nodes_survive(tmp_path):
    rng = np.random.default_rng(0)
    parent = [-1, *(int(rng.integers(0, v)) for v in range(1, 10_000))]
    tree = Tree(parent)
    table = np.round(rng.dirichlet(np.ones(3), 3), 17)
    for model in (
        DiscreteTreeModel(tree, [table[0], *[table] * 9_999]),
        GaussianTreeModel(tree, rng.uniform(-1, 1, 10_000)),
    ):
        models.save(model, tmp_path / "m.json")
        assert identical(model, models.load(tmp_path / "m.json"))


def of_all_kinds() -> list:
    star = Tree([4, 4, 4, 4, -1], n_observed=4)
    table = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]
    numbers = [GaussianEmission([1.5, 3.5], [1.0, 1.0], 0.1), CountEmission([1.0, 4.0])]
    kinds = ["real", "count", "ordered", "category"]
    mixed = MixedTreeModel(star, [*numbers, table, table, [0.5, 0.5]], kinds=kinds)
    ranks = RankMargin([0.5, 1.5, 3.5], [-0.5, 0.5, 1.0], resolution=1.0, kind="count")
    answers = [Thresholds([-0.5, 0.5]), Odds([0.0, 1.0, 1.0], [0.0, 1.0, -1.0])]
    margins = [NormalMargin(1.0, 2.0, 0.1), ranks, *answers]
    return [mixed, CopulaTreeModel(star, [0.5, 0.5, 0.5, 0.0, 0.0], margins)]


@pytest.mark.parametrize("model", of_all_kinds(), ids=["mixed", "copula"])
def test_kinds_that_contradict_the_parameters_are_refused(model, tmp_path):
    path = tmp_path / "model.json"
    model.save(path)
    content = json.loads(path.read_text())
    own = content["kinds"]
    for column in range(4):
        for kind in ("real", "count", "ordered", "category", "nothing", ["real"]):
            content["kinds"] = [*own[:column], kind, *own[column + 1 :]]
            path.write_text(json.dumps(content))
            try:
                loaded = models.load(path)
            except FileError as error:
                assert f"x{column}" in str(error) or f"kinds[{column}]" in str(error)  # noqa: PT017
                continue
            loaded.log_likelihood(loaded.sample(50, 0))  # takes what it draws
