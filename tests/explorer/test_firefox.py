"""The page in Firefox: it is drawn, answers as Python does, and says no error."""

from __future__ import annotations

import numpy as np
import pytest
from tests.explorer.firefox import Firefox, missing
from tests.explorer.pages import discrete, gaussian, mixed, zero_inflated

from latentree.explorer import write_explorer

STATE = "window.latentreeExplorer.state"
INK = """
const { canvas } = window.latentreeExplorer.view;
const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
const pixels = new Uint32Array(data.buffer);
return [canvas.width, pixels.filter((color) => color !== pixels[0]).length];
"""


@pytest.fixture(scope="module")
def firefox(tmp_path_factory):
    if missing():
        pytest.skip(f"no second browser to test the page in: {missing()}")
    opened = Firefox(tmp_path_factory.mktemp("firefox"))
    yield opened
    opened.close()


def test_pages_answer_as_python_does(firefox, tmp_path):
    counts = zero_inflated(np.random.default_rng(70))
    for model, value in ((gaussian(70), 1.5), (discrete(70), 1), (mixed(), 52), (counts, 3)):
        path = tmp_path / f"{model.schema.family}-{value}.html"
        write_explorer(model, path, data=model.sample(50, 0), rows=True)
        names, labels = model.tree.names, model.schema.labels[0]
        label = labels[value] if labels else value
        evidence = {0: label}
        firefox.open(path, f"e={names[0]}:{label}&s=n{names[1]}")
        found = firefox.run(
            f"const {{ posterior, model }} = {STATE};"
            "return [posterior.mean && [...posterior.mean], posterior.probability"
            " && [...posterior.probability], model.stateStart && [...model.stateStart]]"
        )
        mean, probability, start = found
        last = model.tree.n_nodes - 1
        wanted = model.conditional(last, evidence)
        if model.schema.family == "gaussian":
            assert mean[last] == pytest.approx(wanted[0], abs=1e-9)
        else:
            own = probability[start[last] : start[last + 1]]
            assert own == pytest.approx(list(wanted), abs=1e-9)
    assert firefox.errors() == []


def test_all_sizes_and_views_are_drawn(firefox, tmp_path):
    path = tmp_path / "two.html"
    write_explorer([gaussian(71), gaussian(71)], path)
    write_explorer(gaussian(71), tmp_path / "one.html", groups=[f"g{v % 3}" for v in range(24)])
    for width, height in ((1440, 900), (1024, 700), (390, 844), (667, 375)):
        firefox.resize(width, height)
        for page, view in ((path, ""), (tmp_path / "one.html", "l=lengths&c=group,1&t=dark")):
            firefox.open(page, view)
            wide, inked = firefox.run(INK)
            assert 0 < wide <= width
            assert inked > 200
            assert firefox.run("return document.documentElement.scrollWidth <= innerWidth")
    assert "A title" not in firefox.run("return window.latentreeExplorer.toSvg()")
    assert firefox.errors() == []
