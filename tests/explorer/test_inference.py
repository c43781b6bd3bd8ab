"""The page's inference against the Python models, under node without a browser."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest

from latentree import DiscreteTreeModel, GaussianTreeModel, Tree, simulate
from latentree.explorer._bundle import joined
from latentree.explorer._payload import payload

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not installed: it runs the page's inference"
)

CORE = ("model.js", "inference.js", "influence.js")


def in_node(code: str, given: object) -> object:
    """Run code after the page's scripts; ``given`` is what it finds, and it returns a value."""
    scripts = joined(CORE).rstrip().removesuffix("})();")
    program = (
        'const given = JSON.parse(require("node:fs").readFileSync(0, "utf8"));\n'
        f"{scripts}\nconst answer = (() => {{ {code} }})();\n"
        "process.stdout.write(JSON.stringify(answer));\n})();\n"
    )
    done = subprocess.run(
        ["node", "-e", program],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


INFER = """
return given.map(({ payload, cases }) => {
  const model = readModel(payload);
  return cases.map((evidence) => {
    const found = infer(model, new Map(evidence));
    return model.isGaussian
      ? { mean: Array.from(found.mean), variance: Array.from(found.variance) }
      : { probability: Array.from(found.probability), possible: found.possible };
  });
});
"""


def random_tree(rng, m: int) -> Tree:
    tree = simulate.random_latent_tree(m, rng, inner_share=0.4)
    return tree.rerooted(int(rng.integers(tree.n_nodes)))


def random_gaussian(rng, m: int) -> GaussianTreeModel:
    tree = random_tree(rng, m)
    return GaussianTreeModel(
        tree,
        rng.uniform(-0.98, 0.98, tree.n_nodes),
        rng.normal(scale=100, size=m),
        rng.uniform(0.01, 50, m),
    )


def random_discrete(rng, m: int) -> DiscreteTreeModel:
    tree = random_tree(rng, m)
    return simulate.random_discrete_model(tree, rng.integers(1, 6, tree.n_nodes), rng)


def subsets(rng, n: int, count: int) -> list[list[int]]:
    sizes = rng.integers(0, max(n // 2, 2), count)
    return [rng.choice(n, min(int(size), n), replace=False).tolist() for size in sizes]


def test_gaussian_posteriors_agree_with_python():
    rng = np.random.default_rng(1)
    given, wanted = [], []
    for m in (1, 2, 3, 12, 40):
        model = random_gaussian(rng, m)
        center, scale = model._units()
        cases = [
            {v: float(center[v] + scale[v] * rng.normal(scale=2)) for v in chosen}
            for chosen in subsets(rng, model.tree.n_nodes, 6)
        ]
        packed = [list(map(list, case.items())) for case in cases]
        given.append({"payload": payload(model, ""), "cases": packed})
        wanted.append((model, cases, scale))
    worst = 0.0
    for (model, cases, scale), answers in zip(wanted, in_node(INFER, given), strict=True):
        for case, answer in zip(cases, answers, strict=True):
            for v in range(model.tree.n_nodes):
                mean, variance = model.conditional(v, case)
                worst = max(worst, abs(answer["mean"][v] - mean) / scale[v])
                worst = max(worst, abs(answer["variance"][v] - variance) / scale[v] ** 2)
    print(f"largest difference, in units of the scale: {worst:.1e}")  # noqa: T201
    assert worst < 1e-9


def labeled(model, node, state):
    return model.schema.labels[node][state] if node < model.tree.n_observed else state


def test_discrete_posteriors_agree_with_python():
    rng = np.random.default_rng(2)
    given, wanted = [], []
    for m in (1, 2, 3, 10, 30):
        model = random_discrete(rng, m)
        cases = [
            {v: int(rng.integers(model.n_states[v])) for v in chosen}
            for chosen in subsets(rng, model.tree.n_nodes, 5)
        ]
        packed = [list(map(list, case.items())) for case in cases]
        given.append({"payload": payload(model, ""), "cases": packed})
        wanted.append((model, cases))
    worst = 0.0
    for (model, cases), answers in zip(wanted, in_node(INFER, given), strict=True):
        starts = model.layout.state_starts
        for case, answer in zip(cases, answers, strict=True):
            evidence = {v: labeled(model, v, state) for v, state in case.items()}
            for v in range(model.tree.n_nodes):
                found = answer["probability"][starts[v] : starts[v + 1]]
                worst = max(worst, np.abs(found - model.conditional(v, evidence)).max())
    print(f"largest difference of a probability: {worst:.1e}")  # noqa: T201
    assert worst < 1e-9


def test_thousands_of_children_and_zeros_are_safe():
    m = 3000
    star = Tree([m] * m + [-1], n_observed=m)
    # One half of the children speaks 10^600 to 1 for one state, the other half for the other.
    first, second = [[0.7, 0.3], [0.1, 0.9]], [[0.1, 0.9], [0.7, 0.3]]
    model = DiscreteTreeModel(star, [first] * (m // 2) + [second] * (m // 2) + [[0.25, 0.75]])
    case = [[v, 0] for v in range(m)]
    [[balanced, weighted]] = in_node(
        INFER, [{"payload": payload(model, ""), "cases": [case, case[1:]]}]
    )
    assert balanced["probability"][2 * m :] == pytest.approx([0.25, 0.75], abs=1e-9)
    odds = 0.25 / 0.75 / 7
    assert weighted["probability"][2 * m :] == pytest.approx(
        [odds / (1 + odds), 1 / (1 + odds)], abs=1e-9
    )


def test_impossible_evidence_is_said_to_be_so():
    tree = Tree([-1, 0, 0])
    model = DiscreteTreeModel(tree, [[0.5, 0.5], np.eye(2), np.eye(2)])
    cases = [[[1, 0], [2, 1]], [[1, 0]]]
    [[broken, fine]] = in_node(INFER, [{"payload": payload(model, ""), "cases": cases}])
    assert not broken["possible"]
    assert set(broken["probability"]) == {None}  # NaN, as in Python
    assert np.isnan(model.conditional(0, {1: 0, 2: 1})).all()
    assert fine["probability"] == [1, 0, 1, 0, 1, 0]


INFLUENCE = """
return given.map((payload) => {
  const model = readModel(payload);
  const nodes = Array.from({ length: model.size }, (_, v) => influence(model, v));
  return {
    bits: nodes.map(({ bits }) => Array.from(bits)),
    strength: nodes.map(({ strength }) => Array.from(strength)),
    signed: Array.from(model.strengths.signed),
  };
});
"""


def information(joint) -> float:
    outer = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    seen = joint > 0
    return float((joint[seen] * np.log2(joint[seen] / outer[seen])).sum())


def test_information_between_nodes_agrees_with_python():
    rng = np.random.default_rng(3)
    gaussian, discrete = random_gaussian(rng, 9), random_discrete(rng, 9)
    found = in_node(INFLUENCE, [payload(gaussian, ""), payload(discrete, "")])
    nodes = np.arange(gaussian.tree.n_nodes)
    rho = gaussian.correlation(nodes, nodes)
    np.fill_diagonal(rho, 0)
    bits = np.array(found[0]["bits"])
    assert np.allclose(bits, -0.5 * np.log2(1 - rho**2), atol=1e-9)
    strength = np.array(found[0]["strength"])
    np.fill_diagonal(strength, 0)
    assert np.allclose(strength, rho, atol=1e-9)
    n = discrete.tree.n_nodes
    for a in range(n):
        for b in range(n):
            if a != b:
                assert found[1]["bits"][a][b] == pytest.approx(
                    information(discrete.joint(a, b)), abs=1e-9
                )


def test_strengths_of_edges_agree_with_what_the_page_infers():
    rng = np.random.default_rng(4)
    models = [random_gaussian(rng, 20), random_discrete(rng, 20)]
    found = in_node(INFLUENCE, [payload(model, "") for model in models])
    for model, answer in zip(models, found, strict=True):
        strength = np.array(answer["strength"])
        for v, above in enumerate(model.tree.parent.tolist()):
            wanted = 0.0 if above < 0 else strength[above, v]
            assert answer["signed"][v] == pytest.approx(wanted, abs=1e-9)
