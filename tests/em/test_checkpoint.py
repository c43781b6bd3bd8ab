"""A fit that was broken off goes on as if it had not been."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

import latentree as lt
from latentree.em import Budget
from latentree.errors import FileError

KINDS = {
    "gaussian": lambda tree: lt.simulate.random_gaussian_model(tree, 0),
    "discrete": lambda tree: lt.simulate.random_discrete_model(tree, 2, 0),
}


def example(kind: str, seed: int = 1):
    tree = lt.simulate.double_star(8)
    return tree, KINDS[kind](tree).sample(400, seed)


EAGER = Budget(checkpoint_seconds=0)  # a checkpoint after every cycle


class Broken(Exception):
    pass


def breaks_after(n_steps: int):
    def progress(step: int, _: float) -> None:
        if step >= n_steps:
            raise Broken

    return progress


def parameters(model) -> np.ndarray:
    if hasattr(model, "theta"):
        return model.theta
    return np.concatenate([model.correlations, model.means, model.scales])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("broken_at", [1, 2, 17, 40, 64, 93, 94, 110])
def test_going_on_ends_where_no_break_would_have(kind, broken_at, tmp_path):
    tree, X = example(kind)
    whole, report = lt.fit_parameters(tree, X, random_state=3)
    path = tmp_path / "fit.npz"
    options = {"random_state": 3, "checkpoint": path, "budget": EAGER}
    broken_at = min(broken_at, report.n_steps - 1)
    with pytest.raises(Broken):
        lt.fit_parameters(tree, X, progress=breaks_after(broken_at), **options)
    model, resumed = lt.fit_parameters(tree, X, **options)
    np.testing.assert_array_equal(parameters(model), parameters(whole))
    assert resumed.log_likelihoods == report.log_likelihoods
    assert resumed.n_steps == report.n_steps
    assert resumed.starts == report.starts
    again, _ = lt.fit_parameters(tree, X, **options)  # from the end: nothing is left to do
    np.testing.assert_array_equal(parameters(again), parameters(whole))


def test_more_steps_may_follow_later(tmp_path):
    tree, X = example("discrete")
    whole, _ = lt.fit_parameters(tree, X, random_state=0)
    path = tmp_path / "fit.npz"
    for max_steps in (40, 50, 70, 5_000):
        budget = replace(EAGER, max_steps=max_steps)
        model, _ = lt.fit_parameters(tree, X, random_state=0, budget=budget, checkpoint=path)
    np.testing.assert_array_equal(model.theta, whole.theta)


def test_starts_drawn_without_a_seed_are_kept_too(tmp_path):
    tree, X = example("gaussian")
    path = tmp_path / "fit.npz"
    with pytest.raises(Broken):
        lt.fit_parameters(tree, X, progress=breaks_after(50), budget=EAGER, checkpoint=path)
    first, _ = lt.fit_parameters(tree, X, checkpoint=path)
    second, _ = lt.fit_parameters(tree, X, checkpoint=path)
    np.testing.assert_array_equal(parameters(first), parameters(second))


def test_other_data_or_settings_are_refused_by_name(tmp_path):
    tree, X = example("discrete")
    path = tmp_path / "fit.npz"
    lt.fit_parameters(tree, X, random_state=0, checkpoint=path)
    others = {
        "data": {"X": example("discrete", seed=2)[1]},
        "prior_weight is 0.0, here it is 1.0": {"prior_weight": 1.0},
        "random_state is 0, here it is 5": {"random_state": 5},
        "n_starts is 3": {"n_starts": 2},
        "states": {"n_states": 3},
        "accelerate": {"budget": Budget(accelerate=False)},
        "start": {"start": lt.fit_parameters(tree, X, random_state=0).model},
        "family": {"family": "symmetric"},
        "tree": {"tree": lt.simulate.latent_class(8)},
    }
    for what, changed in others.items():
        options = {"tree": tree, "X": X, "random_state": 0, "checkpoint": path, **changed}
        with pytest.raises(FileError, match="another fit") as caught:
            lt.fit_parameters(**options)
        assert what in str(caught.value)
        assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"PK\3\4 not a zip", b"{}"])
def test_what_is_no_checkpoint_is_said_to_be_none(content, tmp_path):
    tree, X = example("gaussian")
    path = tmp_path / "fit.npz"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"fit\.npz: is no checkpoint"):
        lt.fit_parameters(tree, X, checkpoint=path)


def test_objects_in_a_checkpoint_are_never_loaded(tmp_path):
    tree, X = example("gaussian")
    path = tmp_path / "fit.npz"
    np.savez(path, about=np.array(json.dumps({})), point0=np.array([object()], object))
    with pytest.raises(FileError, match="is no checkpoint"):
        lt.fit_parameters(tree, X, checkpoint=path)


KILLED = """
import sys
import latentree as lt
from latentree.em import Budget

tree = lt.simulate.double_star(8)
X = lt.simulate.random_discrete_model(tree, 2, 0).sample(400, 1)

def progress(step, _):
    print(step, flush=True)

options = {"random_state": 3, "budget": Budget(checkpoint_seconds=0), "progress": progress}
lt.fit_parameters(tree, X, checkpoint=sys.argv[1], **options)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kills by signal")
def test_a_killed_process_leaves_a_checkpoint_that_goes_on(tmp_path):
    tree, X = example("discrete")
    whole, report = lt.fit_parameters(tree, X, random_state=3)
    path = tmp_path / "fit.npz"
    script = [sys.executable, "-c", KILLED, str(path)]
    process = subprocess.Popen(script, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) > report.n_steps // 2:
            break
    time.sleep(0.001)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert path.exists()
    model, resumed = lt.fit_parameters(tree, X, random_state=3, checkpoint=path)
    # Not bit for bit: the other process may have compiled the loops anew, and may round otherwise.
    np.testing.assert_allclose(model.theta, whole.theta, rtol=1e-6, atol=1e-9)
    assert resumed.log_likelihood == pytest.approx(report.log_likelihood, rel=1e-12)
