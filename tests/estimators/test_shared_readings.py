"""Cross-validated estimators share readings of the data, and count them."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn import AtomicClassifierCV, AtomicRegressorCV
from atomlearn.core import Pool
from tests.core.paths.test_shared_readings import data


def test_estimators_count_all_their_readings() -> None:
    X, y = data("squared")
    model = AtomicRegressorCV(n_alphas=20, cv=5).fit(X, y)
    assert 3 <= model.n_passes_ <= 20
    assert model.gap_ <= 1e-6 * model.objective_
    X, y = data("logistic")
    many = np.digitize(X[:, 0], [-0.5, 0.5])
    classes = AtomicClassifierCV(n_alphas=10, cv=3).fit(X, many)
    assert classes.n_passes_ <= 40
    assert classes.coef_.shape == (3, 4000)


def test_folds_share_a_small_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where early columns may take all of it, levels go alone: 59 readings, not 9."""
    monkeypatch.setattr(Pool, "MOST_ENTRIES", 500 * 2000)
    rng = np.random.default_rng(0)
    X = np.asfortranarray(rng.standard_normal((500, 12_000)))
    y = X[:, :60] @ rng.choice([-1.0, 1.0], 60)
    y += 1.5 * y.std() * rng.standard_normal(500)
    model = AtomicRegressorCV(n_alphas=50, alpha_ratio=0.3, cv=5).fit(X, y)
    assert model.n_passes_ <= 12
    assert model.cv_results_["max_relative_gap"].max() <= 1e-6
