"""Results: their coefficients as arrays, their free columns, their terms, and what is printed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import losses, norms
from atomlearn.core import Factored, MatrixPart, free_columns, loss_value
from atomlearn.core.problem.proof import raised_by_floats
from atomlearn.designs import as_design
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Result, Status
from tests.oracles.sums import solve_sum


def result_of(**more: Any) -> Result:
    settings: dict[str, Any] = {
        "columns": np.array([1, 4]), "weights": np.array([2.0, -3.0]), "intercept": 0.5,
        "objective": 12.5, "gap": 0.25, "status": Status.STALLED, "tol": 0.01,
        "passes": 7.0, "seconds": 1.5, "n_features": 6, "iterations": 1234,
    }  # fmt: skip
    return Result(**(settings | more))


def test_a_result_converges_only_where_its_own_gap_is_what_was_asked_for() -> None:
    assert result_of().relative_gap == 0.02
    assert result_of(status=Status.CONVERGED, tol=0.02).converged
    for wrong in ({"tol": 0.019}, {"tol": 0.02, "gap": 0.26}, {"tol": 0.02, "gap": np.nan}):
        with pytest.raises(AssertionError, match="only such converge"):
            result_of(status=Status.CONVERGED, **wrong)
    with pytest.raises(AssertionError, match="only such converge"):
        replace(result_of(status=Status.CONVERGED, tol=0.02), objective=12.4)


FACTORS = Factored(np.array([[1.0], [2.0]]), np.array([3.0]), np.array([[1.0], [0.0], [-1.0]]))
FLAT = MatrixPart(None, 1.0, 1.0, FACTORS)
ENTRY = MatrixPart(None, 1.0, 0.0, columns=np.array([5]), weights=np.array([10.0]))
CUBE = MatrixPart(None, 1.0, 1.0, FACTORS, tensor=(2, 3, 1))


def test_coefficients_are_refused_beyond_what_an_array_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert result_of().coef.tolist() == [0.0, 2.0, 0.0, 0.0, -3.0, 0.0]
    assert result_of(shape=(2, 3)).coef.tolist() == [[0.0, 2.0, 0.0], [0.0, -3.0, 0.0]]
    monkeypatch.setattr(Result, "MAX_DENSE", 6)
    assert result_of().coef.size == 6
    monkeypatch.setattr(Result, "MAX_DENSE", 5)
    with pytest.raises(ValueError, match="coef would need 6 entries"):
        _ = result_of().coef


def test_terms_add_up_and_factors_are_those_of_matrices_alone() -> None:
    both = result_of(shape=(2, 3), matrix_parts=(FLAT, ENTRY, FLAT))
    assert both.coef.tolist() == [[6.0, 0.0, -6.0], [12.0, 0.0, -2.0]]
    assert_allclose(both.low_rank.toarray(), 2.0 * FACTORS.toarray())
    assert both.low_rank.rank == 2
    for parts in (None, (ENTRY,), (CUBE,), (FLAT, CUBE)):
        with pytest.raises(ValueError, match="no factored matrix"):
            _ = result_of(shape=(2, 3), matrix_parts=parts).low_rank
    # Of a tensor the factors are of the first unfolding, where nothing else is said.
    assert CUBE.dense((2, 3, 1)).reshape(2, 3).tolist() == FACTORS.toarray().tolist()


def test_free_coefficients_join_those_that_are_there() -> None:
    joined = result_of().with_free(np.array([0, 4, 5]), np.array([1.0, 3.0, 7.0]), 2.0)
    assert joined.columns.tolist() == [0, 1, 5]
    assert joined.weights.tolist() == [1.0, 2.0, 7.0]
    assert joined.intercept == 2.5
    assert joined.matrix_parts is None
    of_matrix = result_of(shape=(2, 3), matrix_parts=(FLAT,))
    last = of_matrix.with_free(np.array([0]), np.array([9.0]), 0.0).matrix_parts[-1]  # type: ignore[index]
    assert (last.norm, last.factor, last.gauge) == (None, 1.0, 0.0)


def test_predictions_are_of_the_columns_of_the_fit_or_of_its_tasks() -> None:
    X = np.arange(12.0).reshape(2, 6)
    assert result_of().predict(X).tolist() == (X @ result_of().coef + 0.5).tolist()
    of_matrix = result_of(shape=(2, 3), matrix_parts=(FLAT, ENTRY))
    assert_allclose(of_matrix.predict(X), X @ of_matrix.coef.ravel() + 0.5)
    rows = np.array([[1.0, 2.0], [0.0, -1.0], [3.0, 3.0]])
    assert_allclose(of_matrix.predict(rows), rows @ of_matrix.coef + 0.5)
    for fit, wide in ((of_matrix, 3), (result_of(), 2), (result_of(shape=(2, 3, 1)), 2)):
        with pytest.raises(ValueError, match=f"X has {wide} columns, and the fit was to 6"):
            fit.predict(np.ones((2, wide)))


def test_a_summary_is_a_line_for_each_fact() -> None:
    said = [
        "objective     12.5", "gap           0.25, relative 0.02",
        "columns       2 of 6 in use", "intercept     0.5",
        "cost          1,234 steps, 7 passes, 1.5 seconds",
    ]  # fmt: skip
    assert str(result_of()).splitlines() == [str(Status.STALLED), *said]
    more = result_of(search_gap=0.125, shape=(2, 3), matrix_parts=(FLAT, ENTRY))
    said[1] = "gap           0.25 (by search 0.125), relative 0.02"
    said.insert(3, "matrix        (2, 3), terms of rank or atoms [1]")
    assert str(more).splitlines() == [str(Status.STALLED), *said]


def test_free_coefficients_that_floats_cannot_hold_raise_the_objective() -> None:
    """An intercept beside an origin of 2^60 is a multiple of 256: what that costs is told."""
    X, y = np.random.default_rng(0).normal(size=(9, 2)), np.arange(9.0)
    level = Regularizer(norms.L1(), "penalized", 1.0)
    task = Problem.build(
        as_design(X), y, losses.Squared(), level, fit_intercept=True, unpenalized=[0]
    )
    prediction = X[:, 1] * 0.1
    assert 0.0 < raised_by_floats(task, prediction) < 1e-12
    task = replace(task, origin=2.0**60)
    _, b = task.loss.free_part(y, prediction, task.weight)
    assert 1.0 < abs(b) < 128.0
    cost = 0.5 * 9 * b**2
    assert_allclose(raised_by_floats(task, prediction), cost, rtol=1e-9)


def test_samples_without_weight_are_zero_in_the_free_columns() -> None:
    X, weight = np.random.default_rng(0).normal(size=(6, 3)), np.array([1.0, 0, 2, 0.5, 0, 1])
    level = Regularizer(norms.L1(), "penalized", 1.0)
    task = Problem.build(
        as_design(X), np.arange(6.0), losses.Squared(), level, sample_weight=weight, unpenalized=[2]
    )
    assert_allclose(task.loss.columns[:, 0], np.where(weight > 0.0, X[:, 2], 0.0))  # type: ignore[attr-defined]


@pytest.mark.parametrize("tau", [-1.0, float("nan"), float("inf")])
def test_a_ridge_is_a_number_of_zero_or_more(tau):
    penalty = Regularizer(norms.L1(), "penalized", 0.1)
    with pytest.raises(ValueError, match="tau"):
        Problem.build(as_design(np.eye(2)), np.ones(2), losses.as_loss("squared"), penalty, tau=tau)


def test_both_factors_are_as_wide_as_there_are_weights():
    left, right = np.ones((3, 2)), np.ones((4, 2))
    for one, other in ((left[:, :1], right), (left, right[:, :1])):
        with pytest.raises(ValueError, match="Factored needs"):
            Factored(one, np.ones(2), other)


def test_offsets_are_added_to_predictions():
    X = np.random.default_rng(5).normal(size=(20, 2))
    result = solve_sum(X, X[:, 0], level=0.1)
    offset = np.arange(20.0)
    assert_allclose(result.predict(X, offset), X @ result.coef + offset, atol=1e-12)
    with pytest.raises(ValueError, match="offset must have shape"):
        result.predict(X, np.ones(3))


def test_what_floats_of_free_columns_lose_raises_the_objective():
    """Columns at 1e8 leave coefficients whose sums are off by more than the optimum's rounding."""
    lost, raised = np.zeros(12), np.zeros(12)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
        X[:, :2] += 1e8
        problem = Problem.build(
            as_design(X), y, losses.Squared(), Regularizer(norms.L1(), "penalized", 1.0),
            unpenalized=[0, 1], fit_intercept=True,
        )  # fmt: skip
        prediction = np.zeros(30)
        g, b = free_columns(problem.loss).free_part(y, prediction, problem.weight)
        found = losses.Squared().value(y, prediction + (X[:, :2] @ g + b), problem.weight)
        lost[seed] = found - loss_value(problem, prediction)
        raised[seed] = raised_by_floats(problem, prediction)
    assert (lost > 0.0).any()
    assert (raised >= lost).all()
