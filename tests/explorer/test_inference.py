"""The page's inference against the Python models, under node without a browser."""

from __future__ import annotations

import json
import shutil
import subprocess

import numpy as np
import pytest
from tests.explorer.pages import (
    dense_copula,
    discrete_mixture,
    gaussian_mixture,
    grid_copula,
    mixed_mixture,
    random_tree,
    zero_inflated,
)

from latentree import (
    CopulaTreeModel,
    CountEmission,
    DiscreteTreeModel,
    GaussianEmission,
    GaussianTreeModel,
    MixedTreeModel,
    Tree,
    simulate,
)
from latentree.explorer._bundle import joined
from latentree.explorer._mixture_content import mixture_content
from latentree.explorer._payload import payload
from latentree.inference import (
    Odds,
    Thresholds,
    recorded,
)
from latentree.models import Names, Normal, TreeMixture

pytestmark = pytest.mark.skipif(
    shutil.which("node") is None, reason="node is not installed: it runs the page's inference"
)

CORE = ("mixture.js", "influence.js")


def in_node(code: str, given: object) -> object:
    """Run code after the page's scripts; ``given`` is what it finds, and it returns a value."""
    scripts = joined(*CORE).rstrip().removesuffix("})();")
    program = (
        'const given = JSON.parse(require("node:fs").readFileSync(0, "utf8"));\n'
        f"{scripts}\nObject.assign(globalThis, ...Object.values(modules));\n"
        f"const answer = (() => {{ {code} }})();\n"
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
    const plain = Object.entries(found).map(([key, value]) =>
      [key, ArrayBuffer.isView(value) ? Array.from(value) : value]);
    return Object.fromEntries(plain);
  });
});
"""


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


def random_mixed(rng, m: int) -> MixedTreeModel:
    """Half of the leaves emit numbers: coarse and fine reals, Poisson and overdispersed counts."""
    drawn = random_discrete(rng, m)
    tree = drawn.tree
    parameters = list(drawn.tables)
    for v in np.flatnonzero(tree.degrees[:m] <= 1)[::2].tolist():
        above = int(tree.parent[v])
        if above < 0 and tree.degrees[v]:  # an emission cannot be the root
            continue
        if above in range(m) and not isinstance(parameters[above], np.ndarray):
            continue
        k = 1 if above < 0 else int(drawn.n_states[above])
        mean, kind = rng.uniform(1, 40, k), v % 4
        if kind == 0:
            parameters[v] = GaussianEmission(mean, rng.uniform(0.1, 4, k), resolution=1.0)
        elif kind == 1:
            parameters[v] = GaussianEmission(mean, rng.uniform(2, 9, k), resolution=0.01)
        else:
            size = rng.uniform(0.2, 9, k) if kind == 2 else None
            parameters[v] = CountEmission(mean, size)
    kinds = [("ordered", "category")[v // 2 % 2] for v in range(m)]
    return MixedTreeModel(tree, parameters, kinds=kinds)


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


def drawn_value(model, node, rng):
    """A value to be given, as the page takes it: a number, or the number of a state."""
    if model.layout.emits[node]:
        emission = model.emissions[node]
        return float(emission.sample(np.array([int(rng.integers(emission.n_states))]), rng)[0])
    return int(rng.integers(model.n_states[node]))


def test_mixed_posteriors_agree_with_python():
    rng = np.random.default_rng(5)
    given, wanted = [], []
    for m in (1, 2, 3, 10, 30, 30):
        model = random_mixed(rng, m)
        cases = [
            {v: drawn_value(model, v, rng) for v in chosen}
            for chosen in subsets(rng, model.tree.n_nodes, 6)
        ]
        packed = [list(map(list, case.items())) for case in cases]
        given.append({"payload": payload(model, ""), "cases": packed})
        wanted.append((model, cases))
    worst, n_numbers = 0.0, 0
    for (model, cases), answers in zip(wanted, in_node(INFER, given), strict=True):
        starts, emits = model.layout.state_starts, model.layout.emits
        for case, answer in zip(cases, answers, strict=True):
            evidence = {v: x if emits[v] else labeled(model, v, x) for v, x in case.items()}
            n_numbers += sum(bool(emits[v]) for v in case)
            for v in range(model.tree.n_nodes):
                right = model.conditional(v, evidence)
                if emits[v]:
                    scale = np.sqrt(model.marginal(v).variance)
                    found = np.array([answer["mean"][v], answer["variance"][v] / scale]) / scale
                    right = np.array([right.mean, right.variance / scale]) / scale
                else:
                    found = np.array(answer["probability"][starts[v] : starts[v + 1]])
                worst = max(worst, np.abs(found - right).max())
    print(f"largest difference, numbers in units of their spread: {worst:.1e}")  # noqa: T201
    assert n_numbers > 20
    assert worst < 1e-9


def test_zero_inflated_counts_agree_with_python():
    rng = np.random.default_rng(9)
    model = zero_inflated(rng)
    values = [0.0, 0.0, 1.0, 7.0]
    cases = [
        dict.fromkeys(chosen.tolist(), value)
        for value in values
        for chosen in (rng.choice(6, 2, replace=False) for _ in range(4))
    ]
    packed = [list(map(list, case.items())) for case in cases]
    [answers] = in_node(INFER, [{"payload": payload(model, ""), "cases": packed}])
    starts, emits = model.layout.state_starts, model.layout.emits
    for case, answer in zip(cases, answers, strict=True):
        row = [case.get(v, np.nan) for v in range(6)] + [None, None]
        assert answer["logLikelihood"] == pytest.approx(model.log_likelihood([row])[0], rel=1e-11)
        for v in range(model.tree.n_nodes):
            right = model.conditional(v, case)
            if emits[v]:
                assert answer["mean"][v] == pytest.approx(right.mean, rel=1e-10)
                assert answer["variance"][v] == pytest.approx(right.variance, rel=1e-9, abs=1e-12)
            else:
                found = answer["probability"][starts[v] : starts[v + 1]]
                assert found == pytest.approx(list(right), abs=1e-11)


def copula_value(model: CopulaTreeModel, node: int, rng) -> float:
    """A value to be given, also in the tails and between the points of a grid."""
    if node >= model.tree.n_observed:
        return float(rng.uniform(-4, 4))
    margin = model.margins[node]
    if isinstance(margin, Thresholds | Odds):
        return int(rng.integers(margin.n_levels))
    return float(recorded(margin.value(rng.normal(scale=2, size=1)), margin.resolution)[0])


@pytest.mark.parametrize("make", [grid_copula, dense_copula])
def test_normal_variables_behind_margins_agree_with_python(make):
    rng = np.random.default_rng(9)
    model = make(rng)
    cases = [
        {v: copula_value(model, v, rng) for v in chosen}
        for chosen in subsets(rng, model.tree.n_nodes, 6)
    ]
    packed = [list(map(list, case.items())) for case in cases]
    [answers] = in_node(INFER, [{"payload": payload(model, ""), "cases": packed}])
    worst, n_numbers = 0.0, 0
    starts = np.cumsum([0, *model.schema.cardinalities])
    for case, answer in zip(cases, answers, strict=True):
        n_numbers += sum(v < len(starts) - 1 and not model.schema.labels[v] for v in case)
        for v in set(range(model.tree.n_nodes)) - set(case):
            right = model.conditional(v, case)
            if v < model.tree.n_observed and model.schema.labels[v]:
                found = np.array(answer["probability"][starts[v] : starts[v + 1]])
            else:
                scale = np.sqrt(model.marginal(v).variance)
                found = np.array([answer["mean"][v], answer["variance"][v] / scale]) / scale
                right = np.array([right.mean, right.variance / scale]) / scale
            worst = max(worst, np.abs(found - right).max())
    print(f"largest difference, numbers in units of their spread: {worst:.1e}")  # noqa: T201
    assert n_numbers >= 5
    assert worst < 1e-9


MIXTURE = """
const { weights, components, shared, cases } = given;
const trees = components.map((own) => ({ model: readModel({ ...shared, ...own }) }));
return cases.map(([number, evidence]) => {
  const mixture = { trees, number, weights: unpack(weights, Float64Array) };
  const { share, mean, variance, probability } = inferMixture(mixture, new Map(evidence));
  return [mean, variance, probability ?? []].map((found) => Array.from(found)).concat([share]);
});
"""


def mixture_value(mixture, node, rng):
    """A value as the page takes it: one that a component draws, or the number of a state."""
    if mixture.schema.labels[node]:
        return int(rng.integers(len(mixture.schema.labels[node])))
    part = mixture.components[int(rng.integers(mixture.n_trees))]
    return float(part.sample(1, rng)[0][node])


def rank_mixture() -> TreeMixture:
    rng = np.random.default_rng(83)
    return TreeMixture([dense_copula(rng), dense_copula(rng)], [0.4, 0.6])


@pytest.mark.parametrize("make", [gaussian_mixture, discrete_mixture, mixed_mixture, rank_mixture])
def test_mixtures_agree_with_python(make):
    mixture, rng = make(), np.random.default_rng(7)
    m, labels = mixture.tree.n_observed, mixture.schema.labels
    cases = [
        (k % mixture.n_trees, {v: mixture_value(mixture, v, rng) for v in chosen})
        for k, chosen in enumerate(subsets(rng, m, 12))
    ]
    cases.append((0, {-1: mixture.n_trees - 1, 1: mixture_value(mixture, 1, rng)}))
    content = mixture_content(mixture, "", None, [Names()] * mixture.n_trees, {}, None)
    content["cases"] = [(k, list(map(list, case.items()))) for k, case in cases]
    starts = np.cumsum([0, *map(len, labels)])
    worst, spread = 0.0, 0
    for (number, case), answer in zip(cases, in_node(MIXTURE, content), strict=True):
        mean, variance, probability, share = (np.array(found, float) for found in answer)
        evidence = {
            m if v < 0 else v: labels[v][x] if v >= 0 and labels[v] else x for v, x in case.items()
        }
        right = mixture.conditional(m, evidence)
        spread += int((right > 0.01).sum() > 1 and len(case) > 0)
        worst = max(worst, np.abs(share - right).max())
        for v in set(range(m)) - set(case):
            right = mixture.conditional(v, evidence)
            if labels[v]:
                worst = max(worst, np.abs(probability[starts[v] : starts[v + 1]] - right).max())
            else:
                scale = np.sqrt(mixture.marginal(v).variance)
                worst = max(worst, abs(mean[v] - right.mean) / scale)
                worst = max(worst, abs(variance[v] - right.variance) / scale**2)
        part, own = mixture.components[number], {v: x for v, x in evidence.items() if v < m}
        last = part.tree.n_nodes - 1
        if last < m:  # without hidden variables
            continue
        within = part.conditional(last, own)
        if isinstance(within, Normal):
            assert mean[last] == pytest.approx(within.mean, abs=1e-9, nan_ok=True)
        else:
            assert probability[-within.size :] == pytest.approx(within, abs=1e-9)
    print(f"largest difference: {worst:.1e}; trees in doubt in {spread} cases")  # noqa: T201
    assert spread >= 4
    assert worst < 1e-9


def test_a_hidden_variable_that_is_supposed_supposes_its_tree():
    mixture = discrete_mixture()
    content = mixture_content(mixture, "", None, [Names()] * 3, {}, None)
    content["cases"] = [(1, [[12, 0], [3, 1]]), (1, [[12, 0], [-1, 2]])]
    found, impossible = in_node(MIXTURE, content)
    assert found[3] == [0, 1, 0]
    right = mixture.components[1].conditional(5, {12: 0, 3: "s1"})
    starts = np.cumsum([0, *map(len, mixture.schema.labels)])
    assert found[2][starts[5] : starts[6]] == pytest.approx(right, abs=1e-9)
    assert impossible[3] == [None] * 3  # NaN


def test_counts_and_reals_far_from_all_means_are_safe():
    star = Tree([3, 3, 3, -1], n_observed=3)
    real = GaussianEmission([0.0, 1.0], [1.0, 1.0], resolution=0.5)
    count = CountEmission([2.0, 3.0], [1.5, np.inf])
    model = MixedTreeModel(star, [real, count, np.eye(2), [0.5, 0.5]])
    cases = [{0: 1e6}, {0: -1e6}, {1: 1e6}, {1: 0.0}]
    packed = [list(map(list, case.items())) for case in cases]
    given = [{"payload": payload(model, ""), "cases": packed}]
    for case, answer in zip(cases, in_node(INFER, given)[0], strict=True):
        hidden = answer["probability"][2:]
        assert hidden == pytest.approx(model.conditional("h1", case), abs=1e-9)


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
    models = [random_gaussian(rng, 20), random_discrete(rng, 20), random_mixed(rng, 20)]
    found = in_node(INFLUENCE, [payload(model, "") for model in models])
    for model, answer in zip(models, found, strict=True):
        strength = np.array(answer["strength"])
        for v, above in enumerate(model.tree.parent.tolist()):
            wanted = 0.0 if above < 0 else strength[above, v]
            assert answer["signed"][v] == pytest.approx(wanted, abs=1e-9)


def covariance_of_numbers(model, a, b) -> float:
    """Σ P(i, j)·μ_i·ν_j − E[x]·E[y] over the states i, j of the neighbors of two numbers."""
    above = [int(model.tree.parent[v]) for v in (a, b)]
    means = [model.emissions[v].mean for v in (a, b)]
    product = means[0] @ model.joint(*above) @ means[1]
    return product - model.marginal(a).mean * model.marginal(b).mean


def test_strengths_of_numbers_agree_with_their_definitions():
    rng = np.random.default_rng(7)
    model = random_mixed(rng, 24)
    [found] = in_node(INFLUENCE, [payload(model, "")])
    strength = np.array(found["strength"])
    emits, tree = model.layout.emits, model.tree
    numbers = [int(v) for v in np.flatnonzero(emits) if tree.parent[v] >= 0]
    assert len(numbers) > 5
    for a in numbers:
        for b in numbers:
            spread = np.sqrt(model.marginal(a).variance * model.marginal(b).variance)
            wanted = 1.0 if a == b else covariance_of_numbers(model, a, b) / spread
            assert strength[a, b] == pytest.approx(wanted, abs=1e-9)
        for b in np.flatnonzero(~emits).tolist():
            joint = model.joint(int(tree.parent[a]), b)
            weights = joint.sum(axis=0)
            means = model.emissions[a].mean @ joint / weights
            between = weights @ (means - weights @ means) ** 2
            ratio = np.sqrt(between / model.marginal(a).variance)
            is_ordered = b < tree.n_observed and model.schema.kinds[b] == "ordered"
            falls = weights @ ((np.arange(means.size) - weights @ np.arange(means.size)) * means)
            wanted = -ratio if (means.size == 2 or is_ordered) and falls < 0 else ratio
            assert strength[a, b] == pytest.approx(wanted, abs=1e-9)
            assert strength[b, a] == pytest.approx(wanted, abs=1e-9)


def test_information_of_numbers_is_that_of_fine_cells():
    rng = np.random.default_rng(8)
    model = random_mixed(rng, 24)
    [found] = in_node(INFLUENCE, [payload(model, "")])
    for v in np.flatnonzero(model.layout.emits).tolist():
        above = int(model.tree.parent[v])
        weights, table = model.edge_cells(v)
        fine = information(weights[:, None] * table)
        assert found["bits"][above][v] == pytest.approx(fine, rel=0.05, abs=1e-3)
        assert found["bits"][v][above] == pytest.approx(found["bits"][above][v], abs=1e-5)
