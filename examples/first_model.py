"""Build a latent tree model, draw data from it, hide some of it, and infer what is hidden."""

# ruff: noqa: T201
import numpy as np

from latentree import metrics, simulate

rng = np.random.default_rng(0)
tree = simulate.random_latent_tree(12, rng)
model = simulate.random_gaussian_model(tree, rng, negative_share=0.3)
print(tree.draw())

X = model.sample(2000, rng)
hidden = np.where(rng.random(X.shape) < 0.1, np.nan, X)
print(f"\nlog-likelihood of {len(X)} rows: {metrics.log_likelihood(model, X):,.1f}")
print(f"with a tenth of the cells missing: {metrics.log_likelihood(model, hidden):,.1f}")

missing = np.isnan(hidden)
error = model.impute(hidden)[missing] - X[missing]
print(f"error of imputed cells: {error.std():.3f} (of their means: {X[missing].std():.3f})")

h1 = model.posterior(X[:3]).mean[:, 0]
print(f"posterior means of {tree.names[tree.n_observed]} in the first rows: {h1.round(2)}")

star = simulate.latent_class(12)
print(f"Robinson-Foulds distance to a star: {metrics.robinson_foulds(tree, star)}")
