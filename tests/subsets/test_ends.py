"""How a search ends: its status is what its numbers say, at any moment that time may run out."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from atomlearn import SubsetRegressor, losses
from atomlearn._support import Deadline, Work
from atomlearn.core import Status, changed
from atomlearn.subsets.fit import ridge_fit
from atomlearn.subsets.result import SubsetResult, SubsetStatus
from benchmarks.subsets.brute_force import fault_of_status, faults
from tests.oracles.subset_sums import subset_sum


def stopping_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each time limit pass after so many questions, and no clock."""
    monkeypatch.setattr(Deadline, "limited", lambda limit: Deadline(math.inf, Work(steps)))


def table(seed: int = 0, n: int = 60, p: int = 30) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, X[:, :3] @ np.ones(3) + 1.5 * rng.standard_normal(n)


@pytest.mark.parametrize("steps", [*range(0, 40, 3), *range(40, 400, 40), 1000, 3000])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_optimal_is_what_the_reported_gap_says(
    steps: int, loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = table()
    y = y if loss == "squared" else np.sign(y)
    groups = [[2 * j, 2 * j + 1] for j in range(15)]
    stopping_after(steps, monkeypatch)
    result = subset_sum(
        X, y, n_features=3, ridge=18.0, loss=loss, groups=groups, within=1.0, time_limit=1.0
    )
    assert fault_of_status(result) == ""
    if result.near_complete:
        monkeypatch.undo()
        every = subset_sum(X, y, n_features=3, ridge=18.0, loss=loss, groups=groups, within=1.0)
        assert len(result.near) == len(every.near)


def test_a_set_whose_fit_was_cut_short_leaves_the_gap_open(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(p=8)
    whole = subset_sum(X, y, n_features=2, ridge=1.0, within=0.5)
    assert whole.near_complete
    cut = whole.near[1].columns.tolist()

    def at_zero(problem: Any, accuracy: float, gram: Any = None) -> Any:
        """Fit all sets but one, which stays where fits begin."""
        columns = problem.design.dense()
        if columns.shape[1] == 2 and np.array_equal(columns, X[:, cut]):
            problem = changed(problem, deadline=Deadline(work=Work(0)))
        return ridge_fit(problem, accuracy, gram)

    monkeypatch.setattr("atomlearn.subsets.relaxation.ridge_fit", at_zero)
    # The columns of a problem with a stronger ridge are others.
    monkeypatch.setattr("atomlearn.subsets.partial.strengthened_problem", lambda *given: None)
    result = subset_sum(X, y, n_features=2, ridge=1.0, within=0.5)
    assert result.gap > 0.1
    assert result.status is SubsetStatus.ROUNDING
    assert not result.near_complete
    assert not result.fitted.converged
    # It may be the best one: neither are its columns proved out, nor others proved in.
    assert set(cut) <= set(result.open_columns)
    assert set(result.proved_in) <= set(cut)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_bound_never_falls_when_time_is_up(loss: str, monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(n=40, p=60)
    y = y if loss == "squared" else np.sign(y)
    branched = 0
    for steps in range(20, 400, 19):
        stopping_after(steps, monkeypatch)
        result = subset_sum(X, y, n_features=4, ridge=2.0, loss=loss, time_limit=1.0)
        bounds = [record.lower_bound for record in result.history]
        # A fit that the deadline cut short must not replace what is proved of all subsets.
        assert bounds == sorted(bounds)
        assert result.lower_bound >= bounds[-1]
        branched += result.nodes > 1
    assert branched > 5


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-15, 1e-300])
def test_a_gap_that_floats_cannot_prove_is_not_said_to_be_proved(gap: float) -> None:
    X, y = table(p=6)
    result = subset_sum(X, y, n_features=2, ridge=1e-3, tol=gap)
    assert fault_of_status(result) == ""
    assert (result.status is SubsetStatus.OPTIMAL) == (gap > 1e-12)


def test_a_search_that_never_began_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Any, *given: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr("atomlearn.subsets.search.Search.begin", interrupted)
    X, y = table()
    result = subset_sum(X, y, n_features=3, ridge=1.0, within=0.1)
    assert result.status is SubsetStatus.INTERRUPTED
    assert not result.near_complete
    assert result.proved_in.size == 0


@pytest.mark.parametrize("price", [3.0, 10.0])
def test_a_price_hides_no_larger_set_within_reach(price: float) -> None:
    # Five columns cost more than none at all, and less than twice the best set.
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20, 6))
    y = X[:, :2] @ [1.0, 1.0] + rng.standard_normal(20)
    values = {}
    for size in range(6):
        for each in map(list, itertools.combinations(range(6), size)):
            K = X[:, each].T @ X[:, each] + np.eye(size)
            w = np.linalg.solve(K, X[:, each].T @ y)
            left = y - X[:, each] @ w
            values[tuple(each)] = 0.5 * (left @ left + w @ w) + price * size
    limit = 2.0 * min(values.values())
    result = subset_sum(X, y, n_features=5, ridge=1.0, price=price, within=1.0)
    found = {tuple(each.columns.tolist()) for each in result.near}
    assert result.near_complete
    assert found == {each for each, value in values.items() if value <= limit}
    assert len(found) > 20


def test_nearly_equal_columns_under_a_weak_ridge_end_soon() -> None:
    # Rounding keeps the masters from the accuracy that a search asks for: they stepped on for ever.
    rng, began = np.random.default_rng(8), time.process_time()
    for _ in range(4):
        x, size = rng.standard_normal(30), 10.0 ** rng.uniform(-7, -4)
        X = x[:, None] + size * rng.standard_normal((30, 2))
        result = subset_sum(X, 2.0 * x, n_features=1, ridge=3e-8, loss=losses.Huber(1.345))
        assert result.status is SubsetStatus.OPTIMAL
    assert time.process_time() - began < 20.0  # takes 1 to 2


def test_the_limit_covers_the_choice_by_cross_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    fits = []
    search = SubsetRegressor.fit

    def slow(self: Any, *given: Any, **named: Any) -> Any:
        fits.append(self.time_limit)
        found = search(self, *given, **named)
        clock[0] += 1.0 if self.max_nodes == 0 else 0.0
        return found

    monkeypatch.setattr(SubsetRegressor, "fit", slow)
    X, y = table()
    model = SubsetRegressor([1, 2, 3], l2="cv", time_limit=40.0, standardize=True)
    with pytest.warns(UserWarning, match="ended after 3 of 18 pairs of n_features and l2"):
        model.fit(X, y)
    assert len(model.cv_scores_) == 3
    assert (model.n_selected_, model.l2_) in model.cv_scores_
    # Half of the time is for the proof; each fit has what is left of the other half.
    assert fits == [40.0, *(20.0 - second for second in range(20))]


def test_without_time_for_any_choice_the_usual_ridge_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = table()
    usual = SubsetRegressor(1, standardize=True).fit(X, y).l2_
    stopping_after(0, monkeypatch)
    monkeypatch.setattr(Deadline, "left", property(lambda self: 0.0))
    model = SubsetRegressor([1, 2], l2="cv", time_limit=1.0, standardize=True)
    with (
        pytest.warns(UserWarning, match="after 0 of 12 pairs"),
        pytest.warns(UserWarning, match="limit reached"),
    ):
        model.fit(X, y)
    assert model.cv_scores_ == {}
    assert model.l2_ == pytest.approx(usual)


def test_the_status_of_a_result_follows_its_gap() -> None:
    X, y = table(p=6)
    result = subset_sum(X, y, n_features=2, ridge=1.0)
    fields = {name: getattr(result, name) for name in SubsetResult.__dataclass_fields__}
    for asked, status in [(1.0, SubsetStatus.OPTIMAL), (1e-300, SubsetStatus.NODE_LIMIT)]:
        fields |= {"fitted": replace(result.fitted, tol=asked, status=Status.STALLED)}
        again = SubsetResult(**{**fields, "ended": SubsetStatus.NODE_LIMIT})
        assert again.status is status
        assert again.fitted.converged == (status is SubsetStatus.OPTIMAL)


@pytest.mark.parametrize("seed", range(900, 912))
def test_certificates_of_searches_that_are_cut_short(seed: int) -> None:
    assert faults(seed, steps=1 + 7 * (seed % 12)) == []
