"""What masters are made of, each by its known answer: shares, models, hand-overs, bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import losses, norms
from atomlearn._support import without
from atomlearn.core import CachedBlock, DenseBlock, SparseBlock
from atomlearn.core.data import cached_block
from atomlearn.core.masters.master import finished
from atomlearn.core.masters.model_newton import _factor
from atomlearn.core.masters.sequential_qp import Prices, model_terms, prices_of
from atomlearn.interfaces import Deadline, Master, Norm, Refit
from atomlearn.problem import Problem, Regularizer

RNG = np.random.default_rng(0)


def problem_of(
    X: np.ndarray, norm: Norm, form: Any = "penalized", amount: float = 1.0, **more: Any
) -> Problem:
    loss = more.pop("loss", losses.Squared())
    y = np.where(np.arange(X.shape[0]) % 3 == 0, 1.0, -1.0)
    level = Regularizer(norm, form, amount)
    return Problem.build(CachedBlock(DenseBlock(np.asfortranarray(X))), y, loss, level, **more)


@dataclass(frozen=True)
class Told(Master):
    """Gives back the start after seven steps, and notes what it was asked for."""

    asked: list[tuple[int, float]] = field(default_factory=list)

    def solve(self, problem, weights, intercept, gap_target):  # type: ignore[no-untyped-def]
        self.asked.append((weights.size, gap_target))
        return Refit(weights, intercept, np.zeros(problem.y.size), 9.0, 9.0, 7)


def test_another_master_goes_on_where_gap_and_time_ask_for_it() -> None:
    task, other = problem_of(RNG.normal(size=(9, 3)), norms.L1()), Told()
    refit = Refit(np.zeros(3), 0.0, np.zeros(9), 0.5, 2.0, 4)
    assert finished(refit, other, task, 0.5) is refit
    late = replace(task, deadline=Deadline.after(-1.0))
    assert finished(refit, other, late, 0.1) is refit
    assert not other.asked
    assert finished(refit, other, task, 0.1).steps == 11
    assert other.asked == [(3, 0.1)]


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_a_quadratic_model_has_the_terms_of_its_form(form: Any) -> None:
    task = problem_of(RNG.normal(size=(9, 3)), norms.L1(), form, 3.0)
    expected = {
        "penalized": (3.0, 0.0, math.inf), "squared": (0.0, 3.0, math.inf),
        "constrained": (0.0, 0.0, 3.0),
    }  # fmt: skip
    assert model_terms(task.regularizer) == expected[form]
    prices = prices_of(task)
    assert prices is not None
    assert prices.signed
    far, near = np.array([4.0, -2.0, 0.0]), np.array([1.0, -2.0, 0.0])
    half = 0.5 if form == "constrained" else 1.0
    assert_allclose(prices.feasible(task, far), half * far)
    assert prices.feasible(task, near).tolist() == near.tolist()
    rays = Prices(np.ones(3), False)
    assert rays.feasible(task, near).tolist() == [1.0, 0.0, 0.0]


def test_factors_are_damped_until_there_is_one() -> None:
    H, way = np.array([[4.0, 2.0], [2.0, 3.0]]), np.array([1.0, -1.0])
    found = _factor(H.copy(), way, 1.0)
    assert found is not None
    lower, moved = found
    assert_allclose(lower @ lower.T, H, rtol=1e-9)
    assert_allclose(np.diag(lower @ lower.T - H) / 3.5, 1e-10, rtol=1e-3)
    assert_allclose(lower @ moved, way)
    singular, slope = np.ones((3, 3)) - 1e-8 * np.eye(3), np.array([1.0, -1.0, 0.0])
    damped, _ = _factor(singular.copy(), np.ones(3), 1.0) or (np.zeros((3, 3)), None)
    assert_allclose(damped @ damped.T, singular, atol=1e-3)
    # Where there is a slope and no curvature, the model promises ten times what there is at most.
    _, moved = _factor(singular.copy(), slope, 5.0) or (None, np.full(3, 9.0))
    assert 0.5 * moved @ moved <= 50.0
    assert _factor(np.array([[1.0, 0.0], [0.0, -1.0 + 1e-3]]), way, 1.0) is None
    for nothing in (np.zeros((2, 2)), np.full((2, 2), np.nan), -np.eye(2)):
        assert _factor(nothing, way, 1.0) is None


def test_what_free_columns_explain_is_projected_out_to_the_last_digit() -> None:
    rng = np.random.default_rng(3)
    Q, D = np.linalg.qr(rng.normal(size=(12, 2)))[0], rng.uniform(0.5, 2.0, 12)
    A = np.column_stack([rng.normal(size=12), 1e6 * Q @ [1.0, -2.0], 1e3 * rng.normal(size=12)])
    left = without(A.copy(), Q, D)
    assert np.abs(left[:, 1]).max() <= 1e-15 * np.abs(A[:, 1]).max()
    assert_allclose(Q.T @ (D[:, None] * left), 0.0, atol=1e-11)
    share = np.linalg.solve(Q.T @ (D[:, None] * Q), Q.T @ (D[:, None] * A))
    assert_allclose(left[:, [0, 2]], (A - Q @ share)[:, [0, 2]], rtol=1e-9, atol=1e-9)


def test_a_gram_matrix_without_what_is_free_grows_and_is_made_anew_for_another_curvature() -> None:
    rng = np.random.default_rng(1)
    A, Q = np.asfortranarray(rng.normal(size=(12, 4))), np.linalg.qr(rng.normal(size=(12, 2)))[0]
    for D in (np.ones(12), rng.uniform(0.5, 2.0, size=12)):
        left = without(A.copy(), Q, D)
        block = CachedBlock.of(DenseBlock(A[:, :3]))
        block.growing_gram(D, False, Q)
        block = block.append(DenseBlock(A[:, 3:]))
        growing = block.growing_gram(D, False, Q)
        assert_allclose(growing.matrix, left.T @ (D[:, None] * left), atol=1e-14)
        assert block.growing_gram(D, False, Q) is growing


def test_a_gram_matrix_grows_by_a_few_columns_at_a_time(monkeypatch) -> None:
    few = replace(cached_block.LIMITS, most_dense=8 * 12 * 2)
    monkeypatch.setattr(cached_block, "LIMITS", few)
    rng, D = np.random.default_rng(1), np.linspace(0.5, 2.0, 12)
    A, Q = rng.normal(size=(12, 7)), np.linalg.qr(rng.normal(size=(12, 2)))[0]
    left = without(A.copy(), Q, D)
    for make in (DenseBlock, SparseBlock.of):
        growing = CachedBlock(make(A)).growing_gram(D, False, Q)
        assert_allclose(growing.matrix, left.T @ (D[:, None] * left), atol=1e-12)
