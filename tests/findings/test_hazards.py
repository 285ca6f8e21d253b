"""Hazard ratios with intervals, against published tables and other software."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicSurvival, AtomicSurvivalCV
from atomlearn.findings import estimates
from atomlearn.losses import Cox, survival_target
from tests.estimators.test_survival import STRATIFIED, data, unpenalized

#: Weeks of remission of 42 children with leukemia, + for those censored (E. J. Freireich et al.,
#: Blood 21, 1963; table 1.1 of D. R. Cox and D. Oakes, Analysis of Survival Data, 1984).
TREATED = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"
CONTROL = "1 1 2 2 3 4 4 5 5 8 8 8 8 11 11 12 12 15 17 22 23"
#: Coefficient of control, standard error, and hazard ratio with its 95% interval: the output of
#: R's ``coxph(Surv(time, cens) ~ treat, gehan)``, as in W. N. Venables and B. D. Ripley, Modern
#: Applied Statistics with S, 4th edition, 13.3 (data ``gehan``).
GEHAN = (1.572, 0.412, [4.82, 2.15, 10.81])
#: Standard errors by lifelines 0.30.3 (CoxPHFitter): those of the likelihood of ``data()`` with
#: entries and strata, and robust ones (cluster_col) for the groups ``arange(120) // 2``, of times
#: without ties, entries or strata, which lifelines leaves out of robust errors.
ERRORS = [0.1771659266, 0.1372065381, 0.1393808105, 0.1101404265, 0.1232807508]
CLUSTERED = [
    0.17620504201021828,
    0.09377932273768663,
    0.15665372993351503,
    0.0879539609153305,
    0.09576747768487094,
]


def remission() -> tuple[Any, Any]:
    """Return X (42, 1), 1 for control, and the times."""
    cells = [*TREATED.split(), *CONTROL.split()]
    y = survival_target(
        [not cell.endswith("+") for cell in cells], [float(c.strip("+")) for c in cells]
    )
    return np.repeat([0.0, 1.0], 21)[:, None], y


def test_the_table_of_the_remission_of_leukemia() -> None:
    X, y = remission()
    model = AtomicSurvival(alpha=1.0, unpenalized=[0]).fit(X, y)
    found = estimates(model, X, y, [0])
    coefficient, error, ratios = GEHAN
    assert found.how == "unpenalized"
    assert found.values[0] == pytest.approx(coefficient, abs=5e-4)
    assert np.ptp(found.intervals[0]) / (2 * 1.959964) == pytest.approx(error, abs=5e-4)
    assert_allclose(found.ratios[0], ratios, atol=6e-3)
    assert found.sentences()[0].startswith("hazard ratio of column 0: 4.817, with a 95% interval")
    assert "hazards are proportional" in found.condition
    assert found.p_values[0] == pytest.approx(1.38e-4, rel=0.01)
    breslow = AtomicSurvival(alpha=1.0, unpenalized=[0], ties="breslow").fit(X, y)
    assert estimates(breslow, X, y, [0]).values[0] == pytest.approx(1.509, abs=5e-4)


def test_errors_are_those_of_lifelines() -> None:
    X, event, time, entry, stratum = data()
    every = list(range(5))
    y = survival_target(event, time, entry, stratum)
    found = estimates(unpenalized().fit(X, y), X, y, every)
    assert_allclose(found.values, STRATIFIED, atol=1e-6)
    normal = 1.959964
    assert_allclose(np.ptp(found.intervals, axis=1) / (2 * normal), ERRORS, rtol=1e-5)
    y = survival_target(event, time + np.arange(120) * 1e-3)
    found = estimates(unpenalized().fit(X, y), X, y, every, groups=np.arange(120) // 2)
    student = 2.0009954  # of 60 groups
    assert_allclose(np.ptp(found.intervals, axis=1) / (2 * student), CLUSTERED, rtol=1e-5)
    assert found.by_group


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_score_residuals_are_integrals_over_martingales(ties: Any) -> None:
    """Loops over rows and events; rows enter late, and tied events count as Efron has it."""
    X, event, time, entry, stratum = data()
    y = survival_target(event, time, entry, stratum)
    z, s = 0.5 * X[:, 0] - 0.2 * X[:, 1], np.random.default_rng(1).uniform(0.5, 2.0, 120)
    found = np.zeros_like(X)
    for which in np.unique(stratum):
        for t in np.unique(time[event & (stratum == which)]):
            at_risk = (stratum == which) & (entry < t) & (time >= t)
            tied = at_risk & event & (time == t)
            k = tied.sum()
            for j in range(k if ties == "efron" else 1):
                part = 1.0 / (k if ties == "efron" else 1)
                share = s * np.exp(z) * at_risk * (1.0 - (j / k) * tied)
                share /= share.sum()
                away = X - share @ X
                found += part * (tied * s)[:, None] * away
                found -= part * (s[tied].sum() * share)[:, None] * away
    residuals = Cox(ties).score_residuals(y, z, s, X)
    assert_allclose(residuals, found, atol=1e-12)
    assert_allclose(residuals.sum(axis=0), -X.T @ Cox(ties).gradient(y, z, s), atol=1e-12)


def test_named_columns_have_the_fit_without_a_penalty_or_are_close_to_it() -> None:
    X, event, time, _, _ = data()
    y = survival_target(event, time)
    whole = estimates(unpenalized().fit(X, y), X, y, list(range(5)))
    found = estimates(AtomicSurvival(alpha=0.05).fit(X, y), X, y, [0, [1, 2]])
    assert found.how == "unpenalized"  # 80 events for 5 columns
    assert_allclose(found.values, whole.values[:3], atol=1e-9)
    assert found.group_p_values is not None
    assert found.group_p_values[0] < 1e-6 < found.group_p_values[1]
    noise = np.random.default_rng(4).standard_normal((120, 15))
    more = np.hstack([X, noise])
    found = estimates(AtomicSurvival(alpha=0.05).fit(more, y), more, y, [0, 1])
    assert found.how == "named"
    assert (np.abs(found.values - whole.values[:2]) < np.ptp(whole.intervals[:2], axis=1) / 4).all()


def test_more_columns_than_rows() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((150, 200))
    times, censored = rng.exponential(np.exp(-0.9 * X[:, 3])), rng.exponential(3.0, 150)
    y = survival_target(times <= censored, np.minimum(times, censored))
    found = estimates(AtomicSurvival(alpha=0.1).fit(X, y), X, y, [3, 7])
    (low, high), (below, above) = found.intervals
    assert found.penalized[0] < found.values[0]
    assert low < 0.9 < high
    assert low > 0.4
    assert below < 0.0 < above


def test_selected_columns_are_estimated_from_other_rows() -> None:
    X, event, time, _, _ = data()
    y = survival_target(event, time)
    found = estimates(AtomicSurvivalCV(n_alphas=8, cv=3).fit(X, y), X, y)
    assert found.how == "split"
    assert 0 in found.columns
    assert (found.intervals[:, 0] < found.intervals[:, 1]).all()
    assert (found.ratios > 0).all()


def test_a_column_that_orders_all_events_has_no_bound() -> None:
    y = survival_target([True] * 6, np.arange(1.0, 7.0))
    X = -np.arange(6.0)[:, None]
    model = AtomicSurvival(alpha=0.1).fit(X, y).set_params(unpenalized=[0])
    with pytest.raises(ValueError, match="hazard ratio of column 0 has no bound"):
        estimates(model, X, y, [0])


def test_what_only_sums_over_rows_have_is_refused() -> None:
    X, event, time, _, _ = data()
    y = survival_target(event, time)
    model = AtomicSurvival(alpha=0.05).fit(X, y)
    for how in ("carved", "exact"):
        with pytest.raises(ValueError, match='use how="split"'):
            estimates(model, X, y, how=how)  # type: ignore[arg-type]


def test_exact_intervals_of_survival_times_are_refused_with_the_reason() -> None:
    X, event, time, *_ = data()
    y = survival_target(event, time)
    model = AtomicSurvival(alpha=0.05).fit(X, y)
    with pytest.raises(ValueError, match=r'which rows are at risk.*how="split"'):
        estimates(model, X, y, how="exact")
