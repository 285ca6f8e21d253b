"""Sweeps over the factors of completions: never a higher objective, the same certified optima."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import solve
from atomlearn.designs import Entries
from atomlearn.losses import Logistic, Squared, SquaredHinge
from atomlearn.matrices.solver import generation, spans, sweeps
from atomlearn.matrices.solver.spans import Span
from atomlearn.norms import L1, PSD, Scaled, TensorTrace, TraceNorm, Union
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Status
from atomlearn.testing.cases import each

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

    def watched(problem: Problem, term: Span, x: Any, linear: Any, *rest: Any) -> Any:
        result = sweeps.swept(problem, term, x, linear, *rest)
        intercept, price = rest[0], problem.regularizer.amount * term.term.factor

        def objective(values: Any, linear: Any) -> float:
            loss = problem.loss.value(problem.y, linear + intercept, problem.weight)
            return loss + price * float(np.abs(values).sum())

        found.append(objective(x, linear) - objective(result[1], result[2]))
        return result

    monkeypatch.setattr(generation, "swept", watched)
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
@pytest.mark.parametrize("more", [{}, {"intercept": True}, {"weighted": True}, {"union": True}],
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
    fit = solve(design, y, loss=loss, norm=norm, level=level, gap=1e-7, **given)
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
    span = Span(term, problem.design, left, right)
    values = np.array([3.0, 1.0, 0.2])
    linear = ((left * values) @ right.T)[rows, cols]
    before = problem.loss.value(y, linear + 0.3, problem.weight) + 0.4 * values.sum()
    turned, x, after = sweeps.swept(problem, span, np.diag(values).reshape(-1), linear, 0.3, 0.0)
    rank = turned.left.shape[1]
    for basis in (turned.left, turned.right):
        assert_allclose(basis.T @ basis, np.eye(rank), atol=1e-9)
    W = turned.left @ x.reshape(rank, rank) @ turned.right.T
    assert_allclose(W[rows, cols], after, atol=1e-9)
    objective = problem.loss.value(y, after + 0.3, problem.weight) + 0.4 * np.trace(
        x.reshape(rank, rank)
    )
    assert objective < before - 1e-3


def test_sweeps_that_end_at_zero() -> None:
    rows, cols, y = observed(0)
    problem = problem_of(rows, cols, y, TraceNorm((P, Q)), 1e9)
    (term,) = problem.regularizer.norm.terms()
    span = Span(term, problem.design, np.eye(P)[:, :2], np.eye(Q)[:, :2])
    linear = (np.eye(P)[:, :2] @ np.eye(Q)[:, :2].T)[rows, cols]
    turned, x, after = sweeps.swept(problem, span, np.eye(2).reshape(-1), linear, 0.0, 0.0)
    W = turned.left @ x.reshape(turned.left.shape[1], -1) @ turned.right.T
    assert_allclose(W, 0.0, atol=1e-6)
    assert_allclose(after, W[rows, cols], atol=1e-9)


def test_only_where_the_price_is_known() -> None:
    rows, cols, y = observed(0)

    def could(norm: Any, rank: int = 2, **given: Any) -> bool:
        side = (P, P) if isinstance(norm, PSD) else (P, Q)
        problem = problem_of(rows, cols, y, norm.on(side[0] * side[1], side), 1.0, **given)
        (term,) = problem.regularizer.norm.terms()
        span = term.norm.at_zero(term, problem.design)
        span = replace(span, left=np.eye(P)[:, :rank], right=np.eye(side[1])[:, :rank])
        return sweeps.can_sweep(problem, span)

    assert could(TraceNorm())
    assert not could(TraceNorm(), rank=0)
    assert not could(TraceNorm(), form="squared")
    assert not could(TraceNorm(), form="constrained")
    assert not could(TraceNorm(), tau=0.5)
    assert not could(PSD())


def test_factors_of_norms_and_tensors_are_priced(gains: list[float]) -> None:
    rows, cols, y = observed(5)
    design = Entries(rows, cols, (P, Q))
    scaled = solve(design, y, norm=Scaled(TraceNorm(), 0.5), level=1.6, gap=1e-8)
    plain = solve(design, y, norm=TraceNorm(), level=0.8, gap=1e-8)
    assert scaled.status is plain.status is Status.CONVERGED
    assert_allclose(scaled.objective, plain.objective, rtol=1e-7)
    assert len(gains) >= 2
    at = np.random.default_rng(1).permutation(6 * 5 * 4)[:70]
    y = np.cos(at)
    tensor = Entries(at, None, (6, 5, 4))
    fit = solve(tensor, y, norm=TensorTrace((6, 5, 4)), level=0.6, gap=1e-6)
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
