"""What memory is left, and errors before it runs out."""

from __future__ import annotations

import pytest

import latentree as lt
from latentree import _memory as memory
from latentree.errors import LatentTreeError, MemoryBudgetError


@pytest.mark.parametrize(
    ("text", "size"),
    [("1000", 1000), ("8GB", 8 * 10**9), (" 1.5 GiB", 3 * 2**29), ("20mb", 2 * 10**7), ("3 b", 3)],
)
def test_sizes_are_read(monkeypatch, text, size):
    monkeypatch.setenv(memory.VARIABLE, text)
    assert memory.available() == size


@pytest.mark.parametrize("text", ["lots", "8 GBB", "-1GB", "1e9"])
def test_what_is_no_size_is_refused(monkeypatch, text):
    monkeypatch.setenv(memory.VARIABLE, text)
    with pytest.raises(MemoryBudgetError, match="must be a size such as 8GB"):
        memory.available()


@pytest.mark.parametrize(
    ("size", "text"), [(12, "12 bytes"), (1e3, "1 kB"), (3.21e9, "3.21 GB"), (999.9e6, "1 GB")]
)
def test_sizes_are_written(size, text):
    assert memory.format_size(size) == text


def test_what_does_not_fit_is_said_with_what_does(monkeypatch):
    monkeypatch.setenv(memory.VARIABLE, "1GB")
    memory.require(1e9, "a matrix", "use less")
    assert memory.fits(5e8, share=0.5)
    assert not memory.fits(5.1e8, share=0.5)
    with pytest.raises(MemoryBudgetError) as caught:
        memory.require(2.5e9, "a matrix", "use less")
    assert "a matrix would need 2.5 GB, but 1 GB are available: use less" in str(caught.value)
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, LatentTreeError)


def make_system(folder, group, files):
    """A system of 8 GB with these files in its control groups."""
    (folder / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    8000000 kB\n")
    (folder / "own").write_text(group)
    for name, text in files.items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return memory.System(folder / "meminfo", folder / "own", folder / "groups")


@pytest.mark.parametrize(
    ("group", "files", "left"),
    [
        ("0::/\n", {}, 8_000_000 * 1024),
        ("0::/\n", {"memory.max": "max\n", "memory.current": "5\n"}, 8_000_000 * 1024),
        ("0::/\n", {"memory.max": "3000\n", "memory.current": "1000\n"}, 2000),
        ("0::/a/b\n", {"a/memory.max": "700", "a/memory.current": "200"}, 500),
        (
            "0::/\n",
            {
                "memory.max": "3000",
                "memory.current": "1000",
                "memory.stat": "anon 1\ninactive_file 300\nactive_file 200\n",
            },
            2500,
        ),
        (
            "3:cpu:/x\n2:memory:/y\n",
            {
                "memory/y/memory.limit_in_bytes": "900",
                "memory/y/memory.usage_in_bytes": "1000",
            },
            0,
        ),
        (
            "2:memory:/\n",
            {
                "memory/memory.limit_in_bytes": str(2**63 - 4096),
                "memory/memory.usage_in_bytes": "1000",
            },
            8_000_000 * 1024,
        ),
    ],
)
def test_limits_of_the_container_count(tmp_path, monkeypatch, group, files, left):
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    assert memory.available(make_system(tmp_path, group, files)) == left


def test_a_system_that_tells_nothing(tmp_path, monkeypatch):
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    system = make_system(tmp_path, "", {})
    (tmp_path / "meminfo").write_text("nothing")
    assert memory.available(system) > 0


@pytest.mark.parametrize("method", ["ml", "held_out"])
def test_states_whose_tables_do_not_fit_are_refused(monkeypatch, method):
    tree = lt.simulate.double_star(6)
    rows = lt.simulate.random_discrete_model(tree, 2, 0).sample(50, 1)
    monkeypatch.setenv("LATENTREE_MEMORY", "10MB")  # the inner edge has 900 × 900 cells
    with pytest.raises(MemoryBudgetError, match=r"up to 900 states would need .* give fewer"):
        lt.fit_parameters(tree, rows, "discrete", method=method, n_states=900)
