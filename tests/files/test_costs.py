"""What reading files costs: memory and work grow with their size, and no faster."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

import latentree as lt
from latentree.errors import LatentTreeError


def peak_of(function, *arguments) -> int:
    """Most bytes that a call holds at a time; errors of ours are an answer too."""
    tracemalloc.start()
    try:
        function(*arguments)
    except LatentTreeError:
        pass
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    return peak


def calls_of(function, *arguments) -> int:
    """Number of functions that a call enters, Python's and others."""
    count = 0

    def watch(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return count


HOSTILE = {
    "numbers": '{"format": "latentree", "x": [' + "0," * 100_000 + "0]}",
    "objects": '{"format": "latentree", "x": [' + "{}," * 100_000 + "{}]}",
    "keys": "{" + ",".join(f'"{i}": 0' for i in range(40_000)) + "}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_memory_of_a_model_file_is_a_multiple_of_its_size(tmp_path, name):
    path = tmp_path / "m.json"
    path.write_text(HOSTILE[name])
    peak_of(lt.load, path)  # everything is imported before memory is watched
    assert peak_of(lt.load, path) < 100 * len(HOSTILE[name])


def test_memory_of_a_graphml_text_is_a_multiple_of_its_size():
    text = lt.formats.to_graphml(lt.Tree([-1] + [0] * 3_999))
    lt.formats.from_graphml(text)  # everything is imported before memory is watched
    assert peak_of(lt.formats.from_graphml, text) < 100 * len(text)


def test_work_on_many_columns_is_linear(tmp_path):
    def written(m: int):
        path = tmp_path / f"{m}.csv"
        rows = np.random.default_rng(0).normal(size=(5, m))
        np.savetxt(path, rows, "%.3f", ",", header=",".join(f"c{j}" for j in range(m)), comments="")
        return path

    paths = written(1_000), written(4_000)
    lt.as_parts(paths[0])  # everything is imported
    few, many = (calls_of(lt.as_parts, path) for path in paths)
    assert many < 5 * few
