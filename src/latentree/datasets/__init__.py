"""Real data to learn from.

>>> from latentree.datasets import load_holzinger
>>> tests = load_holzinger()
>>> tests
Dataset(301 rows × 9 columns, 3 groups)
>>> tests.groups["x4"]
'verbal'

:func:`load_holzinger` and :func:`load_stocks` come with the package. :func:`load_newsgroups` and
:func:`load_sp100`, the data of the paper's experiments, are read from the folder that the
environment variable ``LATENTREE_DATA`` names; without it the newsgroups are downloaded.
"""

from latentree.datasets._bundled import load_holzinger, load_stocks
from latentree.datasets._dataset import Dataset
from latentree.datasets._paper import load_newsgroups, load_sp100

__all__ = ["Dataset", "load_holzinger", "load_newsgroups", "load_sp100", "load_stocks"]
