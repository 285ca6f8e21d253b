"""Sweeps over factors: never a higher objective, the same certified optima."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.designs import Entries, Tasks
from atomlearn.losses import Logistic, Squared, SquaredHinge
from atomlearn.matrices.solver import spans
from atomlearn.matrices.solver.spans import Span
from atomlearn.norms import L1, PSD, Scaled, TensorTrace, TraceNorm, Union
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Status
from atomlearn.testing.cases import each
from tests.oracles.sums import solve_sum

P, Q = 14, 11
LOSSES = {"squared": Squared(), "logistic": Logistic(), "squared_hinge": SquaredHinge()}


@pytest.fixture(autouse=True)
def spans_are_not_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small matrices would be fitted as a whole."""
    monkeypatch.setattr(spans, "SETTINGS", replace(spans.SETTINGS, whole_entries=0))


@pytest.fixture
def gains(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What the sweeps of a fit gained."""
    found: list[float] = []

    swept = Span.swept

    def watched(term: Span, problem: Problem, linear: Any, *rest: Any) -> Any:
        result = swept(term, problem, linear, *rest)
        intercept, price = rest[0], problem.regularizer.amount * term.term.factor

        def objective(values: Any, linear: Any) -> float:
            loss = problem.loss.value(problem.y, linear + intercept, problem.weight)
            return loss + price * float(np.abs(values).sum())

        found.append(objective(term.x, linear) - objective(result[0].x, result[1]))
        return result

    monkeypatch.setattr(Span, "swept", watched)
    return found


def observed(seed: int, share: float = 0.6) -> tuple[Any, Any, Any]:
    """Rows, columns and values of some entries, in no order, some of them twice."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(P, 2)) @ rng.normal(size=(2, Q))
    at = rng.permutation(P * Q)[: int(share * P * Q)]
    at = np.concatenate([at, at[:5]])
    return at // Q, at % Q, W.reshape(-1)[at] + 0.1 * rng.normal(size=at.size)


def problem_of(
    rows: Any, cols: Any, y: Any, norm: Any, amount: float, *, loss: str = "squared",
    form: str = "penalized", tau: float = 0.0,
) -> Problem:  # fmt: skip
    regularizer = Regularizer(norm, form, amount)  # type: ignore[arg-type]
    return Problem.build(Entries(rows, cols, norm.shape), y, LOSSES[loss], regularizer, tau=tau)


def optimum(loss: str, rows: Any, cols: Any, y: Any, level: float, **more: Any) -> float:
    """The optimal value by CVXPY."""
    W, b = cp.Variable((P, Q)), cp.Variable()
    z = cp.hstack([W[i, j] for i, j in zip(rows, cols, strict=True)])
    z = z + b if more.get("intercept") else z
    weight = more.get("sample_weight", np.ones(y.size))
    each = {
        "squared": lambda: 0.5 * cp.square(y - z),
        "logistic": lambda: cp.logistic(cp.multiply(-y, z)),
        "squared_hinge": lambda: 0.5 * cp.square(cp.pos(1 - cp.multiply(y, z))),
    }[loss]()
    norm = cp.normNuc(W)
    if more.get("union"):
        S = cp.Variable((P, Q))
        norm = cp.normNuc(W - S) + 0.3 * cp.sum(cp.abs(S))
    return float(cp.Problem(cp.Minimize(weight @ each + level * norm)).solve(solver=cp.CLARABEL))


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@pytest.mark.parametrize("more", [{}, {"fit_intercept": True}, {"weighted": True}, {"union": True}],
                         ids=["plain", "intercept", "weighted", "union"])  # fmt: skip
def test_fits_with_sweeps_are_those_of_the_cone_program(
    loss: str, more: dict[str, Any], gains: list[float]
) -> None:
    rows, cols, y = observed(3)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    level = 0.8 if loss == "squared" else 0.5
    given = {key: more[key] for key in more if key == "intercept"}
    if "weighted" in more:
        given["sample_weight"] = np.random.default_rng(0).uniform(0.5, 2.0, y.size)
    norm = Union([TraceNorm(), Scaled(L1(), 0.3)]) if "union" in more else TraceNorm()
    design = Entries(rows, cols, (P, Q))
    fit = solve_sum(design, y, loss=loss, norm=norm, level=level, tol=1e-7, **given)
    assert fit.status is Status.CONVERGED
    best = optimum(loss, rows, cols, y, level, **{**more, **given})
    assert_allclose(fit.objective, best, rtol=2e-6)
    assert fit.objective - fit.gap <= best * (1 + 1e-6)
    assert gains
    assert min(gains) >= -1e-10
    assert max(gains) > 1e-6


@pytest.mark.parametrize("loss", ["squared", "logistic", "squared_hinge"])
@each("seed", range(2))
def test_a_sweep_is_true_to_its_factors(loss: str, seed: int) -> None:
    rows, cols, y = observed(seed)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    problem = problem_of(rows, cols, y, TraceNorm((P, Q)), 0.4, loss=loss)
    rng = np.random.default_rng(seed)
    left, right = (np.linalg.qr(rng.normal(size=(side, 3)))[0] for side in (P, Q))
    (term,) = problem.regularizer.norm.terms()
    values = np.array([3.0, 1.0, 0.2])
    span = Span(term, problem.design, np.diag(values).reshape(-1), left, right)
    linear = ((left * values) @ right.T)[rows, cols]
    before = problem.loss.value(y, linear + 0.3, problem.weight) + 0.4 * values.sum()
    turned, after = span.swept(problem, linear, 0.3, 0.0)
    assert isinstance(turned, Span)
    rank = turned.left.shape[1]
    for basis in (turned.left, turned.right):
        assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-9)
    W = turned.left @ turned.core @ turned.right.T
    assert_allclose(W[rows, cols], after, atol=1e-9)
    objective = problem.loss.value(y, after + 0.3, problem.weight) + 0.4 * np.trace(turned.core)
    assert objective < before - 1e-3


def test_sweeps_that_end_at_zero() -> None:
    rows, cols, y = observed(0)
    problem = problem_of(rows, cols, y, TraceNorm((P, Q)), 1e9)
    (term,) = problem.regularizer.norm.terms()
    eye = np.eye(2).reshape(-1)
    span = Span(term, problem.design, eye, np.eye(P)[:, :2], np.eye(Q)[:, :2])
    linear = (np.eye(P)[:, :2] @ np.eye(Q)[:, :2].T)[rows, cols]
    turned, after = span.swept(problem, linear, 0.0, 0.0)
    assert isinstance(turned, Span)
    W = turned.left @ turned.core @ turned.right.T
    assert_allclose(W, 0.0, atol=1e-6)
    assert_allclose(after, W[rows, cols], atol=1e-9)


@pytest.mark.parametrize("shape", [(40, 14, 11), (12, 14, 11)])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_columns_in_other_units_take_few_passes(loss: str, shape: tuple[int, int, int]) -> None:
    n, p, q = shape
    rng = np.random.default_rng(0)
    X, W = rng.normal(size=(n, p)), rng.normal(size=(p, 2)) @ rng.normal(size=(2, q))
    Y, X = X @ W + rng.normal(size=(n, q)), X * np.geomspace(1.0, 1e4, p)
    Y = Y if loss == "squared" else np.sign(Y)
    slopes = LOSSES[loss].gradient(Y.reshape(-1), np.zeros(n * q), np.ones(n * q))
    level = 0.02 * float(np.linalg.norm(X.T @ slopes.reshape(n, q), 2))
    # Rows without weight, as in a fold, have no say.
    weight = np.repeat(np.arange(n) % 5 > 0, q).astype(np.float64)
    design, given = Tasks(X, q), {"loss": loss, "norm": TraceNorm(), "level": level, "tol": 1e-6}
    fit = solve_sum(design, Y.reshape(-1), sample_weight=weight, max_iter=25, **given)
    assert fit.status is Status.CONVERGED
    kept = np.arange(n) % 5 > 0
    same = solve_sum(Tasks(X[kept], q), Y[kept].reshape(-1), max_iter=25, **given)
    assert_allclose(fit.objective, same.objective, rtol=2e-6)


def test_a_step_of_tasks_is_the_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    n, p, q, r = 9, 5, 4, 3
    X, left, right = rng.normal(size=(n, p)), rng.normal(size=(p, r)), rng.normal(size=(q, r))
    Y = rng.normal(size=(n, q))
    begin, ones = Tasks(X, q).ridge_steps(), np.ones(n * q)
    assert begin is not None
    steps = begin(ones)

    slope, own, other = (X @ left @ right.T - Y).reshape(-1), cp.Variable((p, r)), X @ left
    turned = cp.Variable((q, r))
    for variable, z in ((own, X @ own @ right.T), (turned, other @ turned.T)):
        cost = 0.5 * cp.sum_squares(Y - z) + 0.35 * cp.sum_squares(variable)
        cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL)
    assert_allclose(steps.step(True, slope, ones, left, right, 0.7), own.value, atol=1e-6)
    assert_allclose(steps.step(False, slope, ones, right, left, 0.7), turned.value, atol=1e-6)


def test_only_where_the_price_is_known() -> None:
    rows, cols, y = observed(0)

    def could(norm: Any, **given: Any) -> bool:
        side = (P, P) if isinstance(norm, PSD) else (P, Q)
        problem = problem_of(rows, cols, y, norm.on(side[0] * side[1], side), 1.0, **given)
        (term,) = problem.regularizer.norm.terms()
        return term.norm.at_zero(term, problem.design).sweeps(problem)

    assert could(TraceNorm())
    assert not could(TraceNorm(), form="squared")
    assert not could(TraceNorm(), form="constrained")
    assert not could(TraceNorm(), tau=0.5)
    assert not could(PSD())


def test_factors_of_norms_and_tensors_are_priced(gains: list[float]) -> None:
    rows, cols, y = observed(5)
    design = Entries(rows, cols, (P, Q))
    scaled = solve_sum(design, y, norm=Scaled(TraceNorm(), 0.5), level=1.6, tol=1e-8)
    plain = solve_sum(design, y, norm=TraceNorm(), level=0.8, tol=1e-8)
    assert scaled.status is plain.status is Status.CONVERGED
    assert_allclose(scaled.objective, plain.objective, rtol=1e-7)
    assert len(gains) >= 2
    at = np.random.default_rng(1).permutation(6 * 5 * 4)[:70]
    y = np.cos(at)
    tensor = Entries(at, None, (6, 5, 4))
    fit = solve_sum(tensor, y, norm=TensorTrace((6, 5, 4)), level=0.6, tol=1e-6)
    parts, total = [], 0
    index = np.arange(120).reshape(6, 5, 4)
    for mode, size in enumerate((6, 5, 4)):
        Z = cp.Variable((size, 120 // size))
        parts.append(cp.normNuc(Z))
        order = np.moveaxis(index, mode, 0).reshape(-1)
        total = total + np.eye(120)[:, order] @ cp.vec(Z, order="C")
    cost = 0.5 * cp.sum_squares(y - total[at]) + 0.6 * sum(parts)
    best = cp.Problem(cp.Minimize(cost)).solve(solver=cp.CLARABEL)
    assert fit.status is Status.CONVERGED
    assert_allclose(fit.objective, best, rtol=2e-6)
    assert len(gains) > 4
