"""A model that leaves predicts the same elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    AtomicRegressorCV,
    AtomicSurvival,
    FeatureGenerator,
    interop,
)

RNG = np.random.default_rng(0)
X = RNG.standard_normal((80, 12))
NUMBER = X[:, 0] - 2 * X[:, 3] + 0.3 * RNG.standard_normal(80)
SIDE = np.where(NUMBER > 0, "yes", "no")
CLASS = np.digitize(NUMBER, [-1.0, 1.0]) + 5

PRODUCT = X[:, 5] * X[:, 7]
TIMES = np.array(
    [(seen, time) for seen, time in zip(RNG.random(80) < 0.7, np.exp(-NUMBER), strict=True)],
    dtype=[("event", bool), ("time", float)],
)

MODELS = {
    "regression": AtomicRegressor(alpha=0.1).fit(X, NUMBER),
    "several targets": AtomicRegressor("rows", alpha=0.1).fit(X, np.stack([NUMBER, X[:, 1]], 1)),
    "cross-validated": AtomicRegressorCV(cv=3, n_alphas=5).fit(X, NUMBER),
    "counts": AtomicRegressor(alpha=0.1, loss="poisson").fit(X, np.floor(np.exp(0.3 * NUMBER))),
    "two classes": AtomicClassifier(alpha=0.02).fit(X, SIDE),
    "one against rest": AtomicClassifier(alpha=0.02).fit(X, CLASS),
    "together": AtomicClassifier("rows", alpha=0.02, multi_class="multinomial").fit(X, CLASS),
    "margins": AtomicClassifier(alpha=0.02, loss="squared_hinge").fit(X, SIDE),
    "survival": AtomicSurvival(alpha=0.05).fit(X, TIMES),
    "interactions": AtomicRegressor(alpha=0.1, features="interactions").fit(X, NUMBER + PRODUCT),
    "classes of products": AtomicClassifier(alpha=0.02, features="polynomial").fit(X, CLASS),
    "generated products": FeatureGenerator(
        n_features=4, features="polynomial", standardize=True
    ).fit(X, SIDE),
    "generated": FeatureGenerator(n_features=4, standardize=True).fit(X, SIDE),
    "nothing selected": AtomicRegressor(alpha=100.0).fit(X, NUMBER),
}


@pytest.mark.parametrize("name", MODELS)
def test_scikit_learns_own_estimator_predicts_the_same(name: str) -> None:
    model = MODELS[name]
    if name == "counts" or "product" in name or name == "interactions":
        with pytest.raises(ValueError, match="has a link" if name == "counts" else "features="):
            interop.to_sklearn(model)
        return
    plain = interop.to_sklearn(model)
    assert type(plain).__module__.startswith("sklearn.")
    np.testing.assert_array_equal(plain.predict(X), model.predict(X)) if hasattr(
        model, "classes_"
    ) else np.testing.assert_allclose(plain.predict(X), model.predict(X), rtol=1e-12, atol=1e-12)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(plain.predict_proba(X), model.predict_proba(X), atol=1e-12)


def test_what_is_not_linear_in_columns_is_refused() -> None:
    curves = AtomicRegressor("groups", alpha=0.1, features="splines").fit(X, NUMBER)
    with pytest.raises(ValueError, match="features='splines'"):
        interop.to_sklearn(curves)
