"""Files of every version so far are read, and mean what they meant.

``data/0.1`` holds one file of every family, written by 0.1.0. Each has in its report a few rows and
the log-likelihood that the model gave them when it was written. Where a version changes the format,
files that it wrote are added in a folder of their own; none is ever changed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import latentree as lt
from latentree.data import FAMILIES

FOLDER = Path(__file__).parent / "data"
TOPICS = "topics.json"
MODELS = sorted(path for path in FOLDER.glob("*/*.json") if path.name != TOPICS)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_model_gives_rows_the_likelihood_that_it_gave_them(path, tmp_path):
    model, report = lt.load(path), lt.models.load_report(path)
    assert report["version"].startswith(path.parent.name)
    rows = lt.as_table(report["rows"], schema=model.schema)
    np.testing.assert_allclose(model.log_likelihood(rows), report["log_likelihood"], rtol=1e-9)
    again = tmp_path / "again.json"
    lt.models.save(model, again, report=report)
    assert lt.load(again).log_likelihood(rows).tolist() == model.log_likelihood(rows).tolist()


def test_there_is_a_file_of_every_family():
    families = {lt.load(path).schema.family for path in MODELS}
    assert families == set(FAMILIES)
    assert any(isinstance(lt.load(path), lt.models.TreeMixture) for path in MODELS)


@pytest.mark.parametrize("path", sorted(FOLDER.glob(f"*/{TOPICS}")), ids=lambda p: p.parent.name)
def test_topics_of_a_text_are_what_they_were(path):
    topics = lt.topics.TopicTree.load(path)
    shares = topics.transform(["rain wind storm cloud", "goal ball team match"]).toarray()
    np.testing.assert_allclose(shares, [[0, 0.999991, 0, 0], [0.999983, 0, 0, 0]], atol=1e-6)
