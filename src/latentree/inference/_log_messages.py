"""Messages as logarithms: slower than plain products, and safe for any table."""

from __future__ import annotations

import numpy as np

from latentree._kernels.inference import messages as kernels
from latentree.inference._patterns import Patterns
from latentree.typing import FloatArray


class LogMessages:
    """Log-messages of a compiled table, upward, and the posteriors of the components' roots."""

    def __init__(
        self,
        patterns: Patterns,
        theta: FloatArray,
        maximize: bool = False,
        log_emissions: FloatArray | None = None,
    ) -> None:
        with np.errstate(divide="ignore"):
            log_theta = np.log(theta)
        if log_emissions is not None:
            log_theta = np.concatenate([log_theta, log_emissions])
        self.theta, self.log_theta, self.maximize = theta, log_theta, maximize
        self.values = values = np.empty(patterns.n_values)
        self.patterns = patterns
        self.posterior = np.empty(patterns.n_posteriors)
        self.log_z = np.empty(patterns.weights.size)
        kernels.up_messages(patterns.slots, patterns.gather, theta, log_theta, maximize, values)
        for component in patterns.components:
            root = patterns.slots[component["root"]]
            n_states, prior = int(root["n_states"]), int(component["prior"])
            log_prior = np.zeros(n_states) if prior < 0 else log_theta[prior : prior + n_states]
            kernels.close_messages(
                root, log_prior, maximize, values, self.log_z[component["weights"] :],
                self.posterior[component["posterior"] :],
            )  # fmt: skip
