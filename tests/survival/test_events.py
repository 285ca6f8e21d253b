"""Event codings as they are in files, and competing events, against other software."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import AtomicSurvival
from atomlearn.losses import Cox, survival_target
from atomlearn.survival.cox import concordance
from atomlearn.survival.events import read_events
from tests.estimators.test_survival import data, unpenalized

#: Coefficients of Fine and Gray's model for the data of ``with_competing``, computed by lifelines
#: 0.30.3 (CoxTimeVaryingFitter with weights, Efron's ties) on the rows that the function
#: ``finegray`` of R's package survival would make: each row with a competing event is repeated for
#: each later event time t, with the weight G(t-) / G(c-).
FINE_GRAY = [0.36870086, -0.29261077, -0.00544113, -0.20499383, 0.1597552]


def with_competing() -> tuple[Any, Any, Any]:
    """Return X, the codes 0 (censored), 1 (event) and 2 (competing) and times, with ties."""
    X, event, time, _, _ = data()
    rng = np.random.default_rng(7)
    codes = np.where(event, 1, 0)
    codes[event & (rng.random(event.size) < 0.35)] = 2
    return X, codes, time


@pytest.mark.parametrize(
    ("labels", "observed", "expected"),
    [
        ([True, False], None, [True, False]),
        ([0, 1], None, [False, True]),
        ([0.0, 1.0], None, [False, True]),
        ([1, 2], None, [False, True]),  # R's Surv
        (["Dead", "Alive"], None, [True, False]),
        (["1:DECEASED", "0:LIVING"], None, [True, False]),  # cBioPortal
        (["TRUE", "FALSE"], None, [True, False]),
        (["yes", "no"], None, [True, False]),
        ([0, 1, 2], 2, [False, False, True]),
        ([0, 1, 2], "2", [False, False, True]),
        ([0, 1, 2], [1, 2], [False, True, True]),
        (["a", "b"], "b", [False, True]),
        (["Dead", "Alive"], "dead", [True, False]),
    ],
)
def test_codings_are_read_as_they_are(labels: Any, observed: Any, expected: list[bool]) -> None:
    y = survival_target(labels, np.arange(1.0, len(labels) + 1), observed=observed)
    assert y["event"].tolist() == expected
    assert not y["competing"].any()


def test_each_label_is_explained() -> None:
    found = read_events([0, 1, 2, 2], "status", 2)
    assert found.words == (
        "status: '2' (2 rows) is the event; '0' (1 row) is censored; '1' (1 row) is another event, "
        "censored at its time: hazards are those of rows still at risk"
    )
    assert "subdistribution" in read_events([0, 1, 2], "status", 2, "all").words
    assert read_events([0, 1]).is_plain
    assert not read_events([1, 2]).is_plain


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([0, 1, 2], {}, r"'0' \(1\), '1' \(1\), '2' \(1\); name that of the event, as --event s=2"),
        (["ill", "well"], {}, "name that of the event"),
        ([0, 1], {"observed": 3}, "no label '3' for the event"),
        ([1, 2, 3], {"observed": 3, "competing": "all"}, "none of them means censoring"),
        ([0, 1], {"observed": 1, "competing": "all"}, "no competing event"),
        ([0, 1, 2], {"observed": 2, "competing": 2}, "cannot be the event and compete"),
    ],
)
def test_what_labels_do_not_say_is_asked(labels: Any, options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_events(labels, "s", **options)


def test_a_table_of_codes_is_a_target() -> None:
    pandas = pytest.importorskip("pandas")
    X, event, time, _, _ = data()
    model = AtomicSurvival(alpha=0.05)
    expected = model.fit(X, survival_target(event, time)).coef_
    table = pandas.DataFrame({"time": time, "status": np.where(event, "Dead", "Alive")})
    assert_allclose(model.fit(X, table).coef_, expected)


def expanded(y: Any) -> tuple[Any, Any, Any]:
    """Return rows, intervals and weights in which competing events are extended, by loops."""
    time, event, competing = y["time"], y["event"], y["competing"]
    censored = ~event & ~competing
    moments = np.unique(time[censored])

    def kept(at: float) -> float:
        """Return G just before a time."""
        product = 1.0
        for u in moments[moments < at]:
            lost = np.sum(censored & (time == u))
            product *= 1.0 - lost / (np.sum(time > u) + lost)
        return product

    rows, spans, weights = [], [], []
    for i in range(y.size):
        rows.append(i)
        spans.append((event[i], time[i], 0.0))
        weights.append(1.0)
        before = time[i]
        for t in np.unique(time[event & (time > time[i])]) if competing[i] else ():
            rows.append(i)
            spans.append((False, t, before))
            weights.append(kept(t) / kept(time[i]))
            before = t
    flags, ends, starts = map(np.array, zip(*spans, strict=True))
    return np.array(rows), survival_target(flags, ends, starts), np.array(weights)


@pytest.mark.parametrize("ties", ["efron", "breslow"])
def test_value_and_derivatives_are_those_of_the_expanded_rows(ties: Any) -> None:
    _, codes, time = with_competing()
    y = survival_target(codes, time, observed=1, competing=2)
    rows, long, weight = expanded(y)
    rng, loss = np.random.default_rng(1), Cox(ties)
    z, one = 2.0 * rng.standard_normal(y.size), np.ones(y.size)
    assert loss.value(y, z, one) == pytest.approx(loss.value(long, z[rows], weight), rel=1e-12)
    gradient = np.bincount(rows, loss.gradient(long, z[rows], weight))
    assert_allclose(loss.gradient(y, z, one), gradient, atol=1e-11)
    (c, K), (c_long, K_long) = loss.coupling(y, z, one), loss.coupling(long, z[rows], weight)
    assert_allclose(c, np.bincount(rows, c_long), atol=1e-11)
    A = rng.standard_normal((y.size, 3))
    assert_allclose(K.T @ A, K_long.T @ A[rows], atol=1e-11)
    B = rng.standard_normal((K.shape[1], 3))
    spread = np.zeros((y.size, 3))
    np.add.at(spread, rows, K_long @ B)
    assert_allclose(K @ B, spread, atol=1e-11)


def test_fine_and_gray_is_that_of_other_software_and_proved() -> None:
    X, codes, time = with_competing()
    y = survival_target(codes, time, observed=1, competing="all")
    model = unpenalized().fit(X, y)
    assert_allclose(model.coef_, FINE_GRAY, atol=1e-6)
    assert model.status_.is_converged
    lasso = AtomicSurvival(alpha=0.03, tol=1e-8).fit(X, y)
    assert lasso.status_.is_converged
    assert 0 < lasso.selected_.size < 5
    censored = unpenalized().fit(X, survival_target(codes, time, observed=1))
    assert np.abs(censored.coef_ - model.coef_).max() > 0.01


def test_risks_without_columns_are_the_cumulative_incidence() -> None:
    """With a coefficient of zero the risk is that of all rows, near Aalen and Johansen's."""
    codes, time = np.array([1, 2, 0, 1, 0, 2]), np.arange(1.0, 7.0)
    y = survival_target(codes, time, observed=1, competing=2)
    model = AtomicSurvival(alpha=10.0).fit(np.arange(6.0)[:, None], y)
    curve = model.predict_survival_function(np.zeros((1, 1)))[0]
    steps = [1 / 6, 1 / (3 + 3 / 4)]  # the competing row counts G(4-) / G(2-) = 3 / 4
    assert_allclose(-np.log(curve([1.0, 4.0])), np.cumsum(steps))


def test_concordance_keeps_competing_events_to_the_end() -> None:
    y = survival_target([1, 2, 0], [3.0, 1.0, 2.0], observed=1, competing=2)
    assert concordance(y, np.array([2.0, 1.0, 0.0])) == 1.0
    assert concordance(y, np.array([1.0, 2.0, 0.0])) == 0.0
    assert np.isnan(concordance(survival_target([1, 0, 0], [3.0, 1.0, 2.0]), np.zeros(3)))


def test_competing_events_do_not_go_with_entries() -> None:
    with pytest.raises(ValueError, match="observed from time 0"):
        survival_target([1, 2], [3.0, 4.0], [1.0, 1.0], observed=1, competing=2)
