"""[A] section 5: parameters chosen on rows set aside, and the fit of the training rows kept."""

import numpy as np

from atomlearn import AtomicRegressorCV, norms
from atomlearn.datasets import make_zou_hastie

data = make_zou_hastie(rng=0)
X, y = np.vstack([data.X, data.X_validation]), np.append(data.y, data.y_validation)
train, rest = np.arange(len(data.y)), np.arange(len(data.y), len(y))
for norm in ("l1", norms.KSupport(15)):
    form = "penalized" if norm == "l1" else "squared"
    model = AtomicRegressorCV(norm, form=form, cv=[(train, rest)], refit=False).fit(X, y)
    off = model.coef_ - data.coef
    print(norm, model.alpha_, off @ data.covariance @ off)
