"""AtomicSurvival against scikit-survival and lifelines, whose numbers are kept where they miss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from atomlearn import AtomicSurvival, FeatureGenerator, losses, norms
from atomlearn.losses import survival_target
from atomlearn.survival.cox import concordance
from tests.oracles.sums import solve_sum

#: Coefficients of the data below, computed by scikit-survival 0.28.0 (CoxPHSurvivalAnalysis), and
#: with entries and strata by lifelines 0.30.3 (CoxPHFitter, Efron's ties).
STRATIFIED = [
    0.7983981824556545,
    -0.3116328526867543,
    -0.16152963585039434,
    -0.055080493044975566,
    0.03796662219449104,
]


def data() -> tuple[Any, Any, Any, Any, Any]:
    """Return X, event, time (with ties), entry and stratum of 120 samples."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5)).round(3)
    time = np.ceil(rng.exponential(np.exp(-X[:, 0] + 0.5 * X[:, 1])) * 4) / 2
    event = rng.random(120) < 0.7
    entry = np.maximum(0, time - rng.integers(1, 6, 120))
    return X, event, time, entry, rng.integers(0, 2, 120)


def structured(event: Any, time: Any) -> Any:
    """Return y as scikit-survival has it."""
    return np.array(list(zip(event, time, strict=True)), dtype=[("event", "?"), ("time", "f8")])


def unpenalized(ties: Any = "efron") -> AtomicSurvival:
    """Return a fit of all columns without penalty."""
    return AtomicSurvival(alpha=1e-9, ties=ties, unpenalized=list(range(5)), tol=1e-10)


def test_strata_and_entries_are_those_of_lifelines() -> None:
    X, event, time, entry, stratum = data()
    model = unpenalized().fit(X, survival_target(event, time, entry, stratum))
    assert_allclose(model.coef_, STRATIFIED, atol=1e-6)
    assert len(model.baselines_) == 2
    with pytest.raises(ValueError, match="several strata"):
        model.predict_survival_function(X)
    curves = model.predict_survival_function(X, return_array=True, stratum=stratum)
    assert np.all(np.diff(curves, axis=1) <= 0)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_coefficients_curves_and_scores_are_those_of_scikit_survival(ties: Any) -> None:
    linear_model = pytest.importorskip("sksurv.linear_model")
    X, event, time, _, _ = data()
    y = structured(event, time)
    model = unpenalized(ties).fit(X, y)
    other = linear_model.CoxPHSurvivalAnalysis(ties=ties, n_iter=200, tol=1e-14).fit(X, y)
    assert_allclose(model.coef_, other.coef_, atol=1e-6)
    assert model.score(X, y) == pytest.approx(other.score(X, y), abs=1e-12)
    times = other.unique_times_
    for name in ("predict_survival_function", "predict_cumulative_hazard_function"):
        mine = np.array([curve(times) for curve in getattr(model, name)(X[:4])])
        assert_allclose(mine, getattr(other, name)(X[:4], return_array=True), atol=1e-6)


def test_the_lasso_is_that_of_coxnet() -> None:
    linear_model = pytest.importorskip("sksurv.linear_model")
    X, event, time, _, _ = data()
    y = structured(event, time)
    model = AtomicSurvival(alpha=0.05, ties="breslow", tol=1e-10).fit(X, y)
    other = linear_model.CoxnetSurvivalAnalysis(
        alphas=[0.05], l1_ratio=1.0, tol=1e-12, max_iter=10**6
    ).fit(X, y)
    assert_allclose(model.coef_, other.coef_[:, 0], atol=1e-5)


def test_the_elastic_net_is_that_of_coxnet() -> None:
    linear_model = pytest.importorskip("sksurv.linear_model")
    X, event, time, _, _ = data()
    other = linear_model.CoxnetSurvivalAnalysis(
        alphas=[0.08], l1_ratio=0.4, tol=1e-12, max_iter=10**6
    ).fit(X, structured(event, time))
    found = solve_sum(
        X,
        survival_target(event, time),
        loss=losses.Cox(ties="breslow"),
        level=len(X) * 0.08 * 0.4,
        tau=len(X) * 0.08 * 0.6,
        tol=1e-10,
    )
    assert_allclose(found.coef, other.coef_[:, 0], atol=1e-5)


def test_concordance_by_hand() -> None:
    y = survival_target([True, True, False], [1.0, 2.0, 2.0])
    assert concordance(y, np.array([3.0, 2.0, 1.0])) == 1.0
    assert concordance(y, np.array([1.0, 2.0, 3.0])) == 0.0
    assert concordance(y, np.zeros(3)) == 0.5


def test_risks_by_a_time_are_one_less_the_survival() -> None:
    X, event, time, entry, stratum = data()
    model = unpenalized().fit(X, survival_target(event, time))
    risks = model.predict_risk(X[:3], [1.0, 2.0])
    curves = model.predict_survival_function(X[:3])
    assert_allclose(risks, [[1 - curve(1.0), 1 - curve(2.0)] for curve in curves])
    with pytest.raises(ValueError, match="the last one of y"):
        model.predict_risk(X[:3], [time.max() + 1.0])
    model = unpenalized().fit(X, survival_target(event, time, entry, stratum))
    assert model.predict_risk(X[:3], 1.0, stratum=[0, 1, 0]).shape == (3, 1)


def test_scikit_learn_searches_and_clones_it() -> None:
    X, event, time, _, _ = data()
    y = structured(event, time)
    search = GridSearchCV(AtomicSurvival("l1"), {"alpha": [0.3, 0.05, 0.01]}, cv=3).fit(X, y)
    assert search.best_score_ > 0.6
    model = clone(search.best_estimator_).set_params(norm=norms.KSupport(2), form="squared")
    assert model.fit(X, y).status_.is_converged


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_of_events_and_times_are_targets(library: str) -> None:
    tables = pytest.importorskip(library)
    X, event, time, entry, stratum = data()
    model = AtomicSurvival(alpha=0.05)
    expected = model.fit(X, structured(event, time)).coef_
    assert_allclose(model.fit(X, tables.DataFrame({"os": time, "dead": event})).coef_, expected)
    # Numbers 0 and 1, whatever they are called.
    table = tables.DataFrame({"weeks": time, "arrest": event.astype(int)})
    assert_allclose(model.fit(X, table).coef_, expected)
    assert model.score(X, table) == model.score(X, structured(event, time))
    labels = np.where(stratum > 0, "north", "south")
    table = tables.DataFrame({"time": time, "event": event, "start": entry, "stratum": labels})
    expected = model.fit(X, survival_target(event, time, entry, stratum)).coef_
    assert_allclose(model.fit(X, table).coef_, expected)
    with pytest.raises(ValueError, match=r"structured array .* received the fields \['a', 'b'\]"):
        model.fit(X, tables.DataFrame({"a": time, "b": entry}))


def test_bad_input_is_refused() -> None:
    X, event, time, _, _ = data()
    with pytest.raises(ValueError, match="structured array"):
        AtomicSurvival().fit(X, time)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        AtomicSurvival().fit(X[:5], structured(event, time))
    with pytest.raises(ValueError, match="no event"):
        AtomicSurvival().fit(X, survival_target(np.zeros(120, bool), time))
    with pytest.raises(ValueError, match="ties must be"):
        AtomicSurvival(ties="exact").fit(X, structured(event, time))  # type: ignore[arg-type]


def test_features_are_generated_for_times_and_for_counts() -> None:
    rng = np.random.default_rng(3)
    X = rng.standard_normal((150, 60))
    y = structured(rng.random(150) < 0.7, rng.exponential(np.exp(-X[:, 4])))
    model = FeatureGenerator(n_features=3, batch=2, C=0.1, loss="cox", standardize=True).fit(X, y)
    assert 4 in model.selected_
    assert model.score(X, y) > 0.7
    assert model.transform(X).shape == (150, 3)
    counts = rng.poisson(np.exp(X[:, 7]))
    model = FeatureGenerator(n_features=3, batch=2, C=0.1, loss="poisson", standardize=True).fit(
        X, counts
    )
    assert 7 in model.selected_
    assert np.all(model.predict(X) > 0)


def test_concordance_counts_ties_as_scikit_survival() -> None:
    metrics = pytest.importorskip("sksurv.metrics")
    _, event, time, _, _ = data()
    y, rng = survival_target(event, time), np.random.default_rng(1)
    for _ in range(5):
        risk = rng.integers(0, 6, 120).astype(float)
        expected = metrics.concordance_index_censored(event, time, risk)[0]
        assert concordance(y, risk) == pytest.approx(expected, abs=1e-12)
