"""Models with awkward names and labels, and comparison to the last bit."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from latentree import DiscreteTreeModel, GaussianTreeModel, Tree
from strategies import trees

NASTY = [
    "", " ", "a", "A", "it's", "''", '"', 'say "hi"', "a,b", "a;b", "a:b", "(x)", "[y]", "{z}",
    "<script>alert(1)</script>", "&amp;", "R&D", "&#65;", "\\", "\\n", "a\\", "line\nfeed",
    "cr\rlf\r\n", "\ttab", "_", "under_score", "😀", "é", "日本語", "%", "%41", "null", "NaN",
    "-1", "1e5", "//", "/* */", "#", "|", "=", "$x", "`", "\u2028", "\ufeff", "table", "variable",
    "x" * 300,
]  # fmt: skip

texts = st.one_of(st.sampled_from(NASTY), st.text(st.characters(exclude_categories=["Cs"])))
xml_texts = texts.filter(lambda text: all(c in "\t\n\r" or c >= " " for c in text)).filter(
    lambda text: not {"\ufffe", "\uffff"} & set(text)
)
lengths = st.floats(0, 1e300, allow_subnormal=True)
labels = st.one_of(
    texts, st.integers(-(2**63), 2**64 - 1), st.booleans(), st.none(),
    st.floats(allow_nan=False, allow_infinity=False),
)  # fmt: skip


@st.composite
def named_trees(draw: st.DrawFn, names=texts, forest: bool = True) -> Tree:
    tree = draw(trees(forest=forest, lengths=lengths))
    size = tree.n_nodes
    return tree.renamed(draw(st.lists(names, min_size=size, max_size=size, unique=True)))


@st.composite
def gaussian_models(draw: st.DrawFn, names=texts) -> GaussianTreeModel:
    tree = draw(named_trees(names))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return GaussianTreeModel(
        tree,
        rng.uniform(-1, 1, tree.n_nodes),
        rng.normal(size=tree.n_observed) * 10.0 ** rng.integers(-200, 200),
        rng.exponential(size=tree.n_observed) + 1e-12,
    )


@st.composite
def discrete_models(draw: st.DrawFn, names=texts, labels=labels) -> DiscreteTreeModel:
    tree = draw(named_trees(names))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_states = rng.integers(1, 4, tree.n_nodes)
    tables = [
        rng.dirichlet(np.ones(n_states[v]), None if above < 0 else n_states[above])
        for v, above in enumerate(tree.parent.tolist())
    ]
    called = [
        draw(st.lists(labels, min_size=int(k), max_size=int(k), unique=True))
        for k in n_states[: tree.n_observed]
    ]
    return DiscreteTreeModel(tree, tables, called)


models = st.one_of(gaussian_models(), discrete_models())


def identical(a, b) -> bool:
    """Whether two models agree to the last bit, names, roots and types of labels included."""
    return type(a) is type(b) and _parts(a) == _parts(b)


def _parts(model) -> list:
    tree = model.tree
    arrays = (
        [model.correlations, model.means, model.scales]
        if isinstance(model, GaussianTreeModel)
        else [model.n_states, model.theta]
    )
    return [
        tree.names,
        tree.n_observed,
        [array.tobytes() for array in [tree.parent, tree.length, *arrays]],
        model.schema.family,
        [[(type(label), label) for label in states] for states in model.schema.labels],
    ]
