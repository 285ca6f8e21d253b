"""
From scikit-learn
=================

The same fit under the same conventions, what the proof adds, and what to do beyond the lasso.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LassoCV
from sklearn.preprocessing import StandardScaler

from atomlearn import AtomicRegressor, AtomicRegressorCV, norms
from atomlearn.reports import ValidationDisplay

X, y = load_diabetes(return_X_y=True)
X = StandardScaler().fit_transform(X)
theirs = LassoCV(cv=5, tol=1e-10, max_iter=100_000).fit(X, y)
ours = AtomicRegressor("l1", alpha=theirs.alpha_, tol=1e-10).fit(X, y)
print("largest difference of coefficients:", f"{np.abs(ours.coef_ - theirs.coef_).max():.0e}")
print(f"{ours.status_}: {ours.gap_ / ours.objective_:.0e}")

# %%
# Cross-validation is one object, over strengths *and* norms. All folds share their readings of the
# data.

search = AtomicRegressorCV(norms=[norms.L1(), norms.KSupport(5)], cv=5).fit(X, y)
print(f"{search.norm_}, alpha {search.alpha_:.3g}, {search.n_passes_:.0f} passes over the data")
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ValidationDisplay.from_estimator(search, ax=ax)

# %%
# Squares and products only beside their main effects, and never formed where they are not selected:
# scikit-learn has no estimator for this.

weak = AtomicRegressor(norms.Hierarchy("weak"), features="interactions", alpha=6.0, tol=1e-4)
weak.fit(X, y)
print([str(name) for name in weak.selected_names_])

# %%
# Next: :doc:`/coming_from` (glmnet, adelie, skglm too), :doc:`/converting` (C, alpha, lambda).
