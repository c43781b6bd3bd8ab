"""The registry of methods and options, and the function that learns a model by any of them.

Estimator, command line, their help and the documentation read the registry. Each method has its
learner, its options with their meanings and defaults, and the families of data that it takes.
"""

from latentree.methods._learn_model import learn_model, learned_support, numpy_seed
from latentree.methods._progress import ProgressText
from latentree.methods._registry import (
    AUTO,
    BY_DISTANCES,
    CHOSEN,
    HIDDEN,
    METHODS,
    OPTIONS,
    Method,
    Option,
    OptionValues,
    choose_method,
    chosen_options,
    describe_options,
    method_named,
    options_of,
    taken_by,
)

__all__ = [
    "AUTO",
    "BY_DISTANCES",
    "CHOSEN",
    "HIDDEN",
    "METHODS",
    "OPTIONS",
    "Method",
    "Option",
    "OptionValues",
    "ProgressText",
    "choose_method",
    "chosen_options",
    "describe_options",
    "learn_model",
    "learned_support",
    "method_named",
    "numpy_seed",
    "options_of",
    "taken_by",
]
