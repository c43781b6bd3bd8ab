"""What is deprecated warns, says what to write, and goes when it was said to go."""

import importlib
import inspect
import pkgutil
import warnings

import pytest

import latentree
from latentree import _deprecation as deprecation
from latentree._deprecation import deprecated

CURRENT = tuple(int(part) for part in latentree.__version__.split(".")[:2])


@pytest.fixture(autouse=True)
def _nothing_stays(monkeypatch):
    monkeypatch.setattr(deprecation, "gone_in", {})


def test_a_function_warns_where_it_is_called():
    @deprecated((1, 3), "new(x)")
    def old(x: int) -> int:
        """Say it."""
        return x + 1

    with pytest.warns(FutureWarning, match=r"old is deprecated since 1\.3 .* 1\.5: write new") as w:
        assert old(1) == 2
    assert w[0].filename == __file__
    assert old.__doc__ == "Say it."
    assert list(inspect.signature(old).parameters) == ["x"]
    assert deprecation.gone_in == {"old": (1, 5)}


def test_an_argument_warns_only_where_it_is_given():
    class Thing:
        @deprecated((2, 0), "other({})", argument="b")
        def method(self, a: int, b: int | None = None) -> int:
            return a + (b or 0)

    thing = Thing()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert thing.method(1) == thing.method(a=1, b=None) == 1
    for call in (lambda: thing.method(1, 2), lambda: thing.method(1, b=2)):
        with pytest.warns(FutureWarning, match=r"'b' of Thing\.method .*: write other\(2\)"):
            assert call() == 3
    with pytest.raises(TypeError, match="unexpected keyword"):
        thing.method(1, c=2)


def test_nothing_stays_longer_than_was_said(monkeypatch):
    monkeypatch.undo()
    for module in pkgutil.walk_packages(latentree.__path__, "latentree."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    overdue = [what for what, version in deprecation.gone_in.items() if version <= CURRENT]
    assert not overdue, f"delete what was to go by now: {overdue}"
