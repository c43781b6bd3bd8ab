"""Inference on trees: patterns of rows, messages, expected counts, and results row by row.

Arrays in, arrays out: what a model asks about data is computed here. :func:`write_scores`,
:func:`write_posteriors`, :func:`write_imputed` and :func:`write_predictions` write what a model
says of data of any size.
"""

from latentree.inference._emissions import (
    POISSON,
    CountEmission,
    Emission,
    GaussianEmission,
    Leaves,
)
from latentree.inference._expectation import Expectation, ExpectedCounts, PassMemory
from latentree.inference._frozen import set_fields
from latentree.inference._margins import (
    Margin,
    NormalMargin,
    NumberMargin,
    Odds,
    RankMargin,
    ScoreEmission,
    Thresholds,
    counts_of,
    recorded,
    score_logs,
    score_moments,
    values_of,
)
from latentree.inference._nodes import (
    child_of_edge,
    chunks,
    given_number,
    node_number,
    node_numbers,
    numbered_evidence,
    weighted_total,
)
from latentree.inference._patterns import (
    ColumnEntropies,
    Emissions,
    Skeleton,
    cheapest_rooting,
    compile_components,
    compile_part,
    compile_patterns,
)
from latentree.inference._posteriors import DiscretePosterior, Normal, NormalPair
from latentree.inference._queries import RowInference
from latentree.inference._results import (
    Written,
    blocks_of,
    errors_part,
    impute_part,
    infer_part,
    posterior_names,
    predict_part,
    probability_part,
    score_part,
    state_names,
    write_imputed,
    write_posteriors,
    write_predictions,
    write_scores,
)
from latentree.inference._table_layout import Layout

__all__ = [
    "POISSON",
    "ColumnEntropies",
    "CountEmission",
    "DiscretePosterior",
    "Emission",
    "Emissions",
    "Expectation",
    "ExpectedCounts",
    "GaussianEmission",
    "Layout",
    "Leaves",
    "Margin",
    "Normal",
    "NormalMargin",
    "NormalPair",
    "NumberMargin",
    "Odds",
    "PassMemory",
    "RankMargin",
    "RowInference",
    "ScoreEmission",
    "Skeleton",
    "Thresholds",
    "Written",
    "blocks_of",
    "cheapest_rooting",
    "child_of_edge",
    "chunks",
    "compile_components",
    "compile_part",
    "compile_patterns",
    "counts_of",
    "errors_part",
    "given_number",
    "impute_part",
    "infer_part",
    "node_number",
    "node_numbers",
    "numbered_evidence",
    "posterior_names",
    "predict_part",
    "probability_part",
    "recorded",
    "score_logs",
    "score_moments",
    "score_part",
    "set_fields",
    "state_names",
    "values_of",
    "weighted_total",
    "write_imputed",
    "write_posteriors",
    "write_predictions",
    "write_scores",
]
