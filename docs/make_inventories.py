"""Names of other libraries that the reference links to, as inventories for intersphinx.

Sphinx usually downloads the whole list of a library. These few names are kept here, so that the
documentation builds the same without a network.
"""

import zlib
from pathlib import Path

NAMES = {
    "numpy": (
        "https://numpy.org/doc/stable/",
        {
            "numpy.ndarray": "reference/generated/numpy.ndarray.html",
            "numpy.random.Generator": "reference/random/generator.html",
        },
    ),
    "scipy": (
        "https://docs.scipy.org/doc/scipy/",
        {"scipy.sparse.csr_array": "reference/generated/scipy.sparse.csr_array.html"},
    ),
    "pandas": (
        "https://pandas.pydata.org/docs/",
        {"pandas.DataFrame": "reference/api/pandas.DataFrame.html"},
    ),
    "sklearn": (
        "https://scikit-learn.org/stable/",
        {
            "sklearn.model_selection.GridSearchCV": (
                "modules/generated/sklearn.model_selection.GridSearchCV.html"
            ),
            "sklearn.pipeline.Pipeline": "modules/generated/sklearn.pipeline.Pipeline.html",
            "sklearn.impute.IterativeImputer": (
                "modules/generated/sklearn.impute.IterativeImputer.html"
            ),
        },
    ),
    "networkx": (
        "https://networkx.org/documentation/stable/",
        {"networkx.Graph": "reference/classes/graph.html"},
    ),
    "matplotlib": (
        "https://matplotlib.org/stable/",
        {"matplotlib.axes.Axes": "api/_as_gen/matplotlib.axes.Axes.html"},
    ),
}
"""Address of a library's documentation, and pages of its classes."""

WORDS = {
    "ndarray": "numpy.ndarray",
    "Generator": "numpy.random.Generator",
    "csr_array": "scipy.sparse.csr_array",
    "DataFrame": "pandas.DataFrame",
    "GridSearchCV": "sklearn.model_selection.GridSearchCV",
    "Axes": "matplotlib.axes.Axes",
    "networkx.Graph": "networkx.Graph",
}
"""What docstrings call these classes."""


def write_inventories(folder: Path) -> dict[str, tuple[str, str]]:
    """Write an inventory for each library, and return the setting of intersphinx."""
    mapping = {}
    for library, (address, pages) in NAMES.items():
        lines = [f"{name} py:class 1 {page} -\n" for name, page in pages.items()]
        head = f"# Sphinx inventory version 2\n# Project: {library}\n# Version: \n"
        head += "# The remainder of this file is compressed using zlib.\n"
        file = folder / f"{library}.inv"
        file.write_bytes(head.encode() + zlib.compress("".join(lines).encode()))
        mapping[library] = (address, str(file))
    return mapping
