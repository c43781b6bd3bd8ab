"""Pictures measured as they are drawn, on the Agg renderer."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ElementTree

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")
import matplotlib.pyplot as plt

from latentree import (
    CountEmission,
    GaussianEmission,
    GaussianTreeModel,
    MixedTreeModel,
    Tree,
    simulate,
)
from latentree.errors import DataError, DataWarning, MissingExtraError, ModelError
from latentree.models import TreeMixture
from latentree.plot import group_observed, plot_tree, radial_layout
from latentree.plot._group_styles import DARK_PALETTE, PALETTE

STAR = Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


# Labels -----------------------------------------------------------------------------------------


def corners(text, renderer):
    """Corners of the ink box of a text, turned as the text is."""
    angle = np.radians(text.get_rotation())
    x, y = text.get_transform().transform(text.get_position())
    text.set_rotation(0)
    box = text.get_window_extent(renderer)
    text.set_rotation(np.degrees(angle))
    points = np.array([(box.x0, box.y0), (box.x1, box.y0), (box.x1, box.y1), (box.x0, box.y1)])
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    return (points - (x, y)) @ turn + (x, y)


def overlap(a, b):
    """Whether two rectangles share more than a hair: some axis of a side must part them."""
    for p, q in zip([*a, *b], [*a[1:], a[0], *b[1:], b[0]], strict=True):
        normal = np.array([p[1] - q[1], q[0] - p[0]])
        normal /= np.hypot(*normal)
        first, second = a @ normal, b @ normal
        if first.max() <= second.min() + 0.3 or second.max() <= first.min() + 0.3:
            return False
    return True


def collisions(plot):
    figure = plot.ax.figure
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    names = list(plot.labels)
    boxes = np.array([corners(text, renderer) for text in plot.labels.values()])
    centers = boxes.mean(axis=1)
    reach = np.hypot(*(boxes[:, 0] - centers).T)
    apart = np.hypot(*(centers[:, None] - centers).transpose(2, 0, 1))
    near = np.argwhere(np.triu(apart < reach[:, None] + reach, 1)).tolist()
    return [(names[i], names[j]) for i, j in near if overlap(boxes[i], boxes[j])]


def inside(plot):
    """Whether all text, and the legend, is within the figure."""
    figure = plot.ax.figure
    renderer = figure.canvas.get_renderer()
    artists = [*plot.labels.values()] + ([plot.legend] if plot.legend else [])
    page = figure.bbox
    boxes = [artist.get_window_extent(renderer) for artist in artists]
    return all(
        box.x0 >= page.x0 - 1 and box.y0 >= page.y0 - 1
        and box.x1 <= page.x1 + 1 and box.y1 <= page.y1 + 1
        for box in boxes
    )  # fmt: skip


def worded(tree):
    """Names of one to twelve letters."""
    rng = np.random.default_rng(1)
    letters = list("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    names: dict[str, None] = {}
    while len(names) < tree.n_observed:
        names["".join(rng.choice(letters, rng.integers(1, 13)))] = None
    return tree.renamed(list(names))


SHAPES = {
    "20": simulate.random_latent_tree(20, 1),
    "100": simulate.random_latent_tree(100, 2),
    "100 observed inside": simulate.random_latent_tree(100, 3, inner_share=0.6),
    **{f"300 of seed {seed}": simulate.random_latent_tree(300, seed) for seed in range(4)},
    "300 observed inside": simulate.random_latent_tree(300, 5, inner_share=0.9),
    "hubs": simulate.random_latent_tree(300, 6, merge_share=0.9),
    "star of 300": simulate.latent_class(300),
    "chain of 300": Tree(np.arange(-1, 299)),
    "double star": simulate.double_star(80),
    "complete": simulate.complete_tree(5, 3),
    "forest": Tree([-1, 0, 0, -1, 3, -1, -1, -1, -1, *([8] * 30)]),
}


def test_one_tree_of_a_mixture_is_drawn():
    trees = [simulate.double_star(6), simulate.latent_class(6)]
    mixture = TreeMixture([simulate.random_gaussian_model(tree, 0) for tree in trees], [0.7, 0.3])
    assert len(plot_tree(mixture).hidden.get_offsets()) == 2
    assert len(plot_tree(mixture, component=1).hidden.get_offsets()) == 1
    with pytest.raises(ModelError, match="no component 2"):
        plot_tree(mixture, component=2)
    with pytest.raises(ModelError, match="one tree"):
        plot_tree(mixture.components[0], component=0)


@pytest.mark.parametrize("layout", ["radial", "layered"])
@pytest.mark.parametrize("tree", SHAPES.values(), ids=SHAPES.keys())
def test_labels_are_complete_and_do_not_collide(tree, layout):
    tree = worded(tree)
    plot = plot_tree(tree, layout=layout)
    assert set(plot.labels) == set(tree.names[: tree.n_observed])
    assert collisions(plot) == []
    assert inside(plot)
    smallest = min(text.get_fontsize() for text in plot.labels.values())
    assert smallest >= (6.0 if layout == "radial" else 5.0)


@pytest.mark.parametrize("layout", ["radial", "layered"])
def test_long_names(layout):
    tree = simulate.random_latent_tree(300, 7)
    names = [f"{v:03d} and a name that is long" for v in range(300)]
    plot = plot_tree(tree.renamed(names), layout=layout)
    assert set(plot.labels) == set(names)
    assert collisions(plot) == []
    assert inside(plot)


def test_a_thousand_names():
    tree = worded(simulate.random_latent_tree(1000, 8))
    plot = plot_tree(tree)
    assert set(plot.labels) == set(tree.names[:1000])
    assert min(text.get_fontsize() for text in plot.labels.values()) >= 4.5
    assert max(plot.ax.figure.get_size_inches()) <= 33


def test_the_check_itself_finds_collisions():
    plot = plot_tree(STAR)
    plot.labels["a"].set_position(plot.labels["b"].get_position())
    assert collisions(plot) == [("a", "b")]


@pytest.mark.parametrize("layout", ["radial", "layered"])
@pytest.mark.parametrize("size", [(3.3, 3.3), (7.0, 3.0), (3.0, 7.0)])
def test_given_axes_are_kept_to(layout, size):
    figure, axes = plt.subplots(1, 2, figsize=size)
    tree = worded(simulate.random_latent_tree(40, 5))
    groups = [f"group {v % 3}" for v in range(40)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plot = plot_tree(tree, axes[1], layout=layout, groups=groups)
    assert plot.ax is axes[1]
    said = " ".join(str(warning.message) for warning in caught)
    assert ("labels" in said) == bool(plot.left_out)
    assert ("legend" in said) == (plot.legend is None)
    drawn = np.concatenate([plot.hidden.get_offsets(), *(g.get_offsets() for g in plot.observed)])
    share = np.ptp(drawn, axis=0) / (axes[1].get_window_extent().size * 72 / figure.dpi)
    assert share.max() > 0.3  # the legend leaves the tree its room
    assert collisions(plot) == []
    renderer = figure.canvas.get_renderer()
    page = axes[1].get_window_extent()
    for artist in [*plot.labels.values(), *filter(None, [plot.legend])]:
        box = artist.get_window_extent(renderer)
        assert box.x0 >= page.x0 - 2
        assert box.x1 <= page.x1 + 2


def test_impossible_labels_are_left_out_the_unimportant_first():
    tree = Tree([-1] + [0] * 600)
    _, ax = plt.subplots(figsize=(2, 2))
    with pytest.warns(DataWarning, match="of 601 labels have no room"):
        plot = plot_tree(tree, ax)
    assert 0 < len(plot.labels) < 300
    assert len(plot.labels) + len(plot.left_out) == 601
    assert collisions(plot) == []


def test_captions_keep_off_edges_and_give_up_words():
    tree = simulate.random_latent_tree(24, 3)
    names = [f"variable {v}" for v in range(24)] + list(tree.names[24:])
    model = simulate.random_gaussian_model(tree.renamed(names), 0)
    plot = plot_tree(model, hidden_labels=True)
    plot.ax.figure.draw_without_rendering()
    renderer = plot.ax.figure.canvas.get_renderer()
    lines = plot.ax.transData.transform(
        np.concatenate([*plot.edges.get_segments(), *plot.negative_edges.get_segments()])
    )
    captions = [plot.labels[name] for name in model.tree.names[24:] if name in plot.labels]
    assert len(captions) > 4
    for caption in captions:
        box = caption.get_window_extent(renderer).padded(-1.5)  # its letters
        assert box.count_contains(lines) == 0, caption.get_text()
    assert any("…" in caption.get_text() for caption in captions)


def test_all_text_of_an_svg_is_text(tmp_path):
    tree = simulate.random_latent_tree(40, np.random.default_rng(0), inner_share=0.5)
    names = [f"I feel that item number {i} says something long" for i in range(40)]
    plot = plot_tree(tree.renamed([*names, *tree.names[40:]]), layout="radial", hidden_labels=True)
    plot.save(tmp_path / "tree.svg")
    assert not set(names) & set(plot.left_out)
    assert (tmp_path / "tree.svg").read_text("utf-8").count("<text") == len(plot.labels)


def test_labels_on_request():
    tree = simulate.random_latent_tree(40, 1)
    assert plot_tree(tree, labels=False).labels == {}
    both = plot_tree(tree, hidden_labels=True)
    assert set(both.labels) > set(tree.names[:40])
    assert collisions(both) == []


def test_names_of_all_kinds():
    names = ["$x^2$", "two\nlines", "a_b{", "n" * 80, ""]
    plot = plot_tree(Tree([-1, 0, 0, 0, 0], names=names))
    plot.ax.figure.canvas.draw()
    shown = {name: text.get_text() for name, text in plot.labels.items()}
    assert shown["$x^2$"] == "$x^2$"
    assert shown["two\nlines"] == "two lines"
    assert len(shown["n" * 80]) == 48
    assert collisions(plot) == []


def test_names_that_begin_alike_stay_apart():
    names = [f"I feel that the following statement describes me well: {v}" for v in range(4)]
    texts = [
        text.get_text() for text in plot_tree(Tree([-1, 0, 0, 0], names=names)).labels.values()
    ]
    assert len(set(texts)) == 4
    assert max(map(len, texts)) <= 48


@pytest.mark.parametrize("layout", ["radial", "layered"])
def test_wrapped_names(layout):
    names = [f"statement number {v} of a questionnaire with long items" for v in range(40)]
    tree = simulate.random_latent_tree(40, 3).renamed(names)
    plot = plot_tree(tree, layout=layout, wrap=16)
    assert set(plot.labels) == set(names)
    assert max(len(line) for t in plot.labels.values() for line in t.get_text().split("\n")) <= 16
    assert collisions(plot) == []
    assert inside(plot)
    with pytest.raises(DataError, match="wrap is 2"):
        plot_tree(tree, wrap=2)


def test_hidden_variables_are_called_by_what_they_inform_about():
    star = Tree([3, 3, 3, -1], n_observed=3, names=["a", "b", "c"])
    model = GaussianTreeModel(star, [0.9, 0.5, 0.8, 0])
    assert plot_tree(model, hidden_labels=True).labels["h1"].get_text() == "a · c · b"


# Themes, lengths, files ---------------------------------------------------------------------------


def luminance(color):
    rgb = np.array(mpl.colors.to_rgb(color))
    linear = np.where(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ (0.2126, 0.7152, 0.0722)


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_colors_of_groups_are_seen_on_their_paper():
    assert min(contrast(color, "white") for color in PALETTE) >= 3
    assert min(contrast(color, "#12171D") for color in DARK_PALETTE) >= 3
    styles = group_observed(Tree([-1] + [0] * 9), list(range(10))).styles
    assert len({style.marker for style in styles[:5]}) == 5  # not by color alone


@pytest.mark.parametrize("paper", ["white", "black", "#222222", "#fdf6e3"])
def test_text_is_read_on_any_background(paper):
    _, ax = plt.subplots(facecolor=paper)
    model = GaussianTreeModel(STAR, [0.9, -0.5, 0.2, 0])
    plot = plot_tree(model, ax, hidden_labels=True, groups=["u", "v", "u"])
    for name, text in plot.labels.items():
        assert contrast(text.get_color(), paper) >= (7 if name in "abc" else 4.5), name
    for text in plot.legend.get_texts():
        assert contrast(text.get_color(), paper) >= 7
    for group in plot.observed:
        assert contrast(group.get_facecolor()[0][:3], paper) >= 2.8
    assert mpl.colors.to_hex(plot.hidden.get_facecolor()[0]) == mpl.colors.to_hex(paper)


def test_a_theme_brings_its_paper():
    dark = plot_tree(STAR, theme="dark")
    assert luminance(dark.ax.figure.get_facecolor()[:3]) < 0.02
    assert contrast(dark.labels["a"].get_color(), dark.ax.figure.get_facecolor()[:3]) > 7
    with pytest.raises(DataError, match="theme is 'sepia'"):
        plot_tree(STAR, theme="sepia")


def test_two_nodes_make_a_straight_line():
    plot = plot_tree(Tree([-1, 0], names=["a", "b"]))
    [path] = plot.edges.get_segments()
    assert np.ptp(path[:, 0]) > 50
    assert np.all(np.diff(path[:, 0]) >= 0) or np.all(np.diff(path[:, 0]) <= 0)


def test_edges_are_as_long_as_their_distances():
    model = simulate.random_gaussian_model(simulate.random_latent_tree(20, 2), 2)
    plot = plot_tree(model, lengths=True, strength_legend=True, title="By distance")
    across = [np.abs(np.diff(path[:, 0])).sum() for path in plot.edges.get_segments()]
    tree = model.distance_tree()
    lengths = tree.length[tree.edges[:, 1]]
    ratio = np.array(across) / lengths
    # An edge through the middle has every second point of its curve.
    assert ratio == pytest.approx(np.full(ratio.size, ratio[0]), rel=2e-3)
    texts = [text.get_text() for text in plot.ax.texts]
    [scale] = [text for text in texts if text.startswith("distance")]
    bar = plot.ax.lines[0].get_xdata()
    assert bar[1] - bar[0] == pytest.approx(float(scale.split()[1]) * ratio[0])
    assert "By distance" in texts
    assert legend_of(plot)[-3:] == ["correlation 0.2", "correlation 0.5", "correlation 0.9"]
    states = simulate.random_discrete_model(simulate.double_star(6), 2, 0)
    for item, word in ((states, "Cramér's V"), (states.tree, "strength")):
        plot = plot_tree(item, strength_legend=True)
        assert legend_of(plot)[-3:] == [f"{word} {power}" for power in (0.2, 0.5, 0.9)]


def test_saved_text_is_text(tmp_path):
    plot = plot_tree(STAR, groups=["u", "v", "u"])
    for suffix in (".pdf", ".svg", ".png"):
        plot.save(tmp_path / f"tree{suffix}")
    pdf = (tmp_path / "tree.pdf").read_bytes()
    assert b"/Type3" not in pdf
    assert b"/TrueType" in pdf or b"/CIDFontType2" in pdf
    assert re.search(r"<text[^>]*>a<", (tmp_path / "tree.svg").read_text("utf-8"))


# Groups -----------------------------------------------------------------------------------------


def legend_of(plot):
    return [entry.get_text() for entry in plot.legend.get_texts()]


def test_groups_by_name_and_by_position():
    tree = simulate.double_star(6)
    by_name = plot_tree(tree, groups={"x0": "even", "x1": "odd", "x2": "even", "x3": "odd"})
    assert legend_of(by_name) == ["even", "odd", "no group"]
    assert [len(part.get_offsets()) for part in by_name.observed] == [2, 2, 2]
    by_position = plot_tree(tree, groups=[1, 2, 1, 2, 1, 2])
    assert legend_of(by_position) == ["1", "2"]
    colors = [part.get_facecolor()[0, :3] for part in by_position.observed]
    assert colors == [pytest.approx(mpl.colors.to_rgb(color)) for color in PALETTE[:2]]


def test_no_legend_without_need():
    assert plot_tree(simulate.double_star(6)).legend is None
    assert plot_tree(STAR, groups=["u", "v", "v"], legend=False).legend is None


def test_many_groups_are_told_apart():
    tree = simulate.latent_class(40)
    plot = plot_tree(tree, groups=[f"g{v}" for v in range(40)])
    looks = {(handle.get_color(), handle.get_marker()) for handle in plot.legend.legend_handles}
    assert len(looks) == 40
    plot.ax.figure.canvas.draw()
    assert inside(plot)


def test_wrong_groups_are_named():
    with pytest.raises(DataError, match="groups names 'd', but no observed variable"):
        plot_tree(STAR, groups={"a": 1, "d": 2})
    with pytest.raises(DataError, match="3 observed variables need as many groups, not 2"):
        plot_tree(STAR, groups=["u", "v"])


# Strengths and signs ----------------------------------------------------------------------------


def test_signs_of_a_gaussian_model():
    model = GaussianTreeModel(STAR, [0.8, 0.5, -0.5, 0])
    plot = plot_tree(model)
    assert len(plot.edges.get_paths()) == 2
    assert len(plot.negative_edges.get_paths()) == 1
    assert legend_of(plot) == ["negative"]
    assert plot.edges.get_linewidths()[0] > plot.edges.get_linewidths()[1]


def test_signs_of_a_mixed_model():
    age = GaussianEmission([30.0, 60.0], [10.0, 10.0], resolution=1.0)
    visits = CountEmission([6.0, 5.0])
    model = MixedTreeModel(STAR, [age, visits, [[0.5, 0.5], [0.1, 0.9]], [0.7, 0.3]])
    plot = plot_tree(model)
    assert len(plot.edges.get_paths()) == 2
    assert len(plot.negative_edges.get_paths()) == 1
    assert set(plot.labels) == {"a", "b", "c"}


# Everything else --------------------------------------------------------------------------------


def test_nodes_and_few_artists():
    tree = simulate.random_latent_tree(600, 0)
    plot = plot_tree(simulate.random_gaussian_model(tree, 0, negative_share=0.3), labels=False)
    assert len(plot.hidden.get_offsets()) == tree.n_hidden
    assert len(plot.observed[0].get_offsets()) == 600
    assert len(plot.ax.collections) == 4
    drawn = len(plot.edges.get_paths()) + len(plot.negative_edges.get_paths())
    assert drawn == tree.n_edges


def test_layouts_by_size():
    few, many = plot_tree(simulate.double_star(20)), plot_tree(simulate.double_star(60))
    assert {text.get_rotation() for text in few.labels.values()} == {0.0}
    assert len({text.get_rotation() for text in many.labels.values()}) > 10
    with pytest.raises(DataError, match="layout is 'spiral'"):
        plot_tree(STAR, layout="spiral")


def test_only_trees_and_models_are_drawn():
    with pytest.raises(ModelError, match="expected a tree or a tree model, got list"):
        plot_tree([1, 2])


@pytest.mark.parametrize("format", ["pdf", "svg"])
def test_vector_output(tmp_path, format):
    model = simulate.random_gaussian_model(simulate.double_star(40), 0, negative_share=0.3)
    file = tmp_path / f"tree.{format}"
    plot_tree(model).ax.figure.savefig(file)
    assert 5_000 < file.stat().st_size < 1_000_000


def test_without_matplotlib_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'latentree\[plot\]'"):
        plot_tree(STAR)


def test_matplotlib_is_loaded_only_to_draw():
    code = (
        "import sys; from latentree.plot import radial_layout; from latentree import Tree;"
        "radial_layout(Tree([-1, 0])); print('matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# Columns of journals, and files to edit ----------------------------------------------------------


@pytest.mark.parametrize(("size", "width"), [("single-column", 89), ("double-column", 183)])
def test_columns_have_their_width_and_letters_of_five_points(size, width):
    model = simulate.random_gaussian_model(simulate.random_latent_tree(24, 0), 0)
    groups = [f"group {v % 6} of several" for v in range(24)]
    plot = plot_tree(model, size=size, groups=groups, edge_labels="strength", hidden_labels=True)
    figure = plot.ax.figure
    assert figure.get_size_inches()[0] * 25.4 == pytest.approx(width)
    assert figure.get_size_inches()[1] * 25.4 <= 247.01
    sizes = [text.get_fontsize() for text in (*plot.ax.texts, *plot.legend.get_texts())]
    assert 5.0 <= min(sizes) <= max(sizes) <= 7.0
    assert not plot.left_out or all(name.startswith("h") for name in plot.left_out)


@pytest.mark.parametrize("inner_share", [0.0, 0.4])
def test_three_hundred_names_fill_two_columns(inner_share):
    tree = simulate.random_latent_tree(300, 11, inner_share=inner_share)
    model = simulate.random_gaussian_model(tree, 11)
    plot = plot_tree(model, size="double-column", groups=["a", "b", "c"] * 100)
    assert plot.left_out == ()
    assert {text.get_fontsize() >= 5.0 for text in plot.labels.values()} == {True}
    nodes = np.concatenate([dots.get_offsets() for dots in (*plot.observed, plot.hidden)])
    reached = np.ptp(nodes, axis=0) / (72 * plot.ax.figure.get_size_inches())
    assert reached[0] > 0.85
    assert reached[1] > 0.8


def test_discs_are_turned_to_fit_their_page():
    tree = simulate.random_latent_tree(120, 12)
    wide, tall = (
        np.ptp(radial_layout(tree, reach=4.0, aspect=aspect).position, axis=0)
        for aspect in (2.0, 0.5)
    )
    assert wide[0] > 1.1 * wide[1]
    assert tall[1] > 1.1 * tall[0]


def test_long_names_are_wrapped_and_grow_the_figure():
    star = simulate.latent_class(16)
    model = simulate.random_gaussian_model(star, 0)
    long = model.rename(
        {f"x{v}": f"How often in the past week did you feel {v}?" for v in range(16)}
    )
    short, tall = (plot_tree(each, size="single-column").ax.figure for each in (model, long))
    assert tall.get_size_inches()[1] > 1.3 * short.get_size_inches()[1]


def test_a_strip_has_the_color_of_every_leaf():
    plot = plot_tree(simulate.latent_class(6), groups=list("aabbcc"), group_strip=True)
    colors = [patch.get_facecolor() for patch in plot.ax.patches]
    assert len(colors) == 6
    assert len(set(colors)) == 3


@pytest.mark.parametrize(
    "wrong", [{"size": "A4"}, {"edge_labels": "length"}, {"size": "single-column", "ax": "given"}]
)
def test_wrong_sizes_are_refused(wrong):
    if "ax" in wrong:
        wrong = wrong | {"ax": plt.subplots()[1]}
    with pytest.raises(DataError):
        plot_tree(simulate.latent_class(4), **wrong)


def test_whoever_saves_gets_real_text_and_ids():
    model = simulate.random_gaussian_model(simulate.double_star(8), 0)
    figure = plot_tree(model, groups=[0, 1] * 4).ax.figure
    pdf, svg = io.BytesIO(), io.BytesIO()
    figure.savefig(pdf, format="pdf")
    figure.savefig(svg, format="svg")
    assert b"/FontFile2" in pdf.getvalue()
    assert b"/Type3" not in pdf.getvalue()
    root = ElementTree.fromstring(svg.getvalue())
    ids = [e.get("id") for e in root.iter()]
    assert {f"node-{name}" for name in model.tree.names[:8]} <= set(ids)
    assert sum(str(name).startswith(("edge-h", "negative-edge-h")) for name in ids) == 9
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    assert {"x0", "x7"} <= {e.text for e in texts}
    assert "Arial" in svg.getvalue().decode()
