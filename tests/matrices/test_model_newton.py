"""ModelNewton against masters that know a diagonal only, and against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from atomlearn import designs, norms
from atomlearn.core import DenseBlock, FreeColumns, gauge_of, hessian, objective_at
from atomlearn.core.masters.model_newton import is_coupled, levelled
from atomlearn.interfaces import Block, Loss, Norm
from atomlearn.losses import Logistic, Multinomial
from atomlearn.masters import AcceleratedGradient, ModelNewton, SemismoothNewton
from atomlearn.matrices.designs.tasks import TaskBlock
from atomlearn.problem import Problem, Regularizer

N, P, Q = 40, 6, 3
SIZE = P * Q


def block_problem(
    norm: Norm, form: str, amount: float, free: bool = True, loss: Loss | None = None
) -> Problem:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, P)) + rng.normal(size=(N, 1))
    classes = np.argmax(2.0 * X[:, :Q] + rng.gumbel(size=(N, Q)), axis=1)
    weight = np.repeat(rng.uniform(0.2, 2.0, N), Q)
    y = np.eye(Q)[classes].ravel()
    if loss is None:
        loss = FreeColumns.of_tasks(Multinomial(Q), N, Q) if free else Multinomial(Q)
    else:
        y = 2.0 * y - 1.0
    design = designs.Tasks(X, Q)
    block = design.gather(np.arange(SIZE))
    regularizer = Regularizer(norm, form, amount)
    return Problem.build(block, y, loss, regularizer, sample_weight=weight)


def cases() -> list[tuple[Norm, str, float]]:
    return [
        (norms.L1(), "penalized", 1.0),
        (norms.L1(), "penalized", 0.1),
        (norms.L1(), "constrained", 3.0),
        (norms.KSupport(4), "squared", 0.5),
        (norms.Groups([range(j * Q, (j + 1) * Q) for j in range(P)]), "penalized", 1.0),
        (norms.TraceNorm((P, Q)), "penalized", 1.0),
        (norms.TraceNorm((P, Q)), "constrained", 2.0),
    ]


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize(("norm", "form", "amount"), cases())
def test_same_solution_as_first_order_steps(
    norm: Norm, form: str, amount: float, free: bool
) -> None:
    problem = block_problem(norm, form, amount, free)
    assert is_coupled(problem)
    inner = AcceleratedGradient() if isinstance(norm, norms.TraceNorm) else SemismoothNewton()
    refit = ModelNewton(inner).solve(problem, np.zeros(SIZE), 0.0, 1e-9)
    slow = AcceleratedGradient().solve(problem, np.zeros(SIZE), 0.0, 1e-7)
    assert refit.gap <= 1e-9
    assert slow.gap <= 1e-7
    assert refit.steps <= 15
    assert abs(refit.objective - slow.objective) <= slow.gap + refit.gap
    linear = problem.design.predict(refit.weights)
    assert_allclose(refit.prediction, linear, atol=1e-12)
    assert_allclose(objective_at(problem, refit.weights, linear), refit.objective, rtol=1e-12)


def test_against_brute_force_over_weights_and_intercepts() -> None:
    problem = block_problem(norms.L2(), "squared", 0.7)
    refit = ModelNewton().solve(problem, np.zeros(SIZE), 0.0, 1e-10)

    def function(x: np.ndarray) -> float:
        W, b = x[:SIZE], x[SIZE:]
        z = problem.design.predict(W) + np.tile(b, N)
        smooth = Multinomial(Q).value(problem.y, z, problem.weight)
        return smooth + 0.35 * float(W @ W)

    found = minimize(function, np.zeros(SIZE + Q), method="BFGS", options={"gtol": 1e-7})
    assert_allclose(refit.objective, found.fun, rtol=1e-9)
    assert_allclose(refit.weights, found.x[:SIZE], atol=1e-5)


def test_targets_with_an_intercept_each() -> None:
    problem = block_problem(
        norms.TraceNorm((P, Q)), "penalized", 0.5, loss=FreeColumns.of_tasks(Logistic(), N, Q)
    )
    refit = ModelNewton(AcceleratedGradient()).solve(problem, np.zeros(SIZE), 0.0, 1e-9)
    slow = AcceleratedGradient().solve(problem, np.zeros(SIZE), 0.0, 1e-7)
    assert refit.gap <= 1e-9
    assert abs(refit.objective - slow.objective) <= 1.1e-7


def test_hessian_over_the_block() -> None:
    problem = block_problem(norms.L1(), "penalized", 1.0)
    block = problem.design
    w = np.random.default_rng(0).normal(size=SIZE)

    def gradient(w: np.ndarray) -> np.ndarray:
        dual = problem.loss.gradient(problem.y, block.predict(w), problem.weight)
        return block.scores(dual).full()

    step = 1e-5
    numeric = [gradient(w + e) - gradient(w - e) for e in step * np.eye(SIZE)]
    H = hessian(problem, DenseBlock(block.dense()), block.predict(w))
    assert_allclose(H, np.array(numeric) / (2 * step), atol=1e-6)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_rows_of_classes_are_solved_where_they_sum_to_zero(free: bool, form: str) -> None:
    """The same optimum, with one coefficient less a feature; a start with other sums is taken."""
    rows = norms.Groups(np.repeat(np.arange(P), Q), weights=np.linspace(0.5, 2.0, P))
    problem = block_problem(rows, form, 0.8, free)
    features, tasks = np.repeat(np.arange(P), Q), np.tile(np.arange(Q), P)
    Xt = problem.design.dense()[::Q, ::Q].T
    structured = replace(problem, design=TaskBlock(Xt, features, tasks, Q))
    inside = levelled(structured)
    assert inside is not None
    assert inside[0].design.shape == (N * Q, P * (Q - 1))
    start = np.random.default_rng(1).normal(size=SIZE)
    start = structured.regularizer.inside(start, gauge_of(structured, None, start))
    refit = ModelNewton().solve(structured, start, 0.0, 1e-9)
    slow = AcceleratedGradient().solve(problem, np.zeros(SIZE), 0.0, 1e-9)
    assert refit.gap <= 1e-9
    assert abs(refit.objective - slow.objective) <= 2e-9
    assert_allclose(refit.weights.reshape(P, Q).sum(axis=1), 0.0, atol=1e-12)
    assert_allclose(refit.weights, slow.weights, atol=1e-4)


def test_other_problems_of_classes_keep_all_columns() -> None:
    features, tasks = np.repeat(np.arange(P), Q), np.tile(np.arange(Q), P)
    rows = norms.Groups(np.repeat(np.arange(P), Q))
    base = block_problem(rows, "penalized", 1.0)
    Xt = base.design.dense()[::Q, ::Q].T
    whole = TaskBlock(Xt, features, tasks, Q)
    assert levelled(replace(base, design=whole)) is not None
    explicit = replace(base, design=whole.explicit())
    assert levelled(explicit) is None  # a block that does not know its rows
    assert levelled(replace(base, design=TaskBlock(Xt, features, tasks[::-1], Q))) is None
    several = norms.Groups(np.repeat(np.arange(2), SIZE // 2))  # groups of whole features
    within = norms.Groups(np.tile(np.arange(Q), P))  # groups that split the rows of features
    for norm, is_levelled in ((several, True), (within, False), (norms.L1(), False)):
        other = replace(base, design=whole, regularizer=Regularizer(norm, "penalized", 1.0))
        assert (levelled(other) is not None) is is_levelled
    apart = block_problem(rows, "penalized", 1.0, loss=FreeColumns.of_tasks(Logistic(), N, Q))
    assert levelled(replace(apart, design=whole)) is None


def test_start_that_is_good_enough_stays() -> None:
    problem = block_problem(norms.L1(), "penalized", 1.0)
    first = ModelNewton().solve(problem, np.zeros(SIZE), 0.0, 1e-9)
    again = ModelNewton().solve(problem, first.weights, 0.0, 1e-8)
    assert again.steps == 0
    assert_allclose(again.weights, first.weights)


@pytest.mark.parametrize("free", [True, False])
@pytest.mark.parametrize(("r", "s"), [(1, 1), (3, 2), (2, 3), (6, 3)])
def test_spans_of_tasks_use_their_factors(free: bool, r: int, s: int) -> None:
    """The Hessian from A and B is that of the array A kron B, rows without weight included."""
    base = block_problem(norms.L1(), "penalized", 1.0, free)
    weight = base.weight.copy()
    weight[: 2 * Q] = 0.0
    rng = np.random.default_rng(5)
    X, left, right = rng.normal(size=(N, P)), rng.normal(size=(P, r)), rng.normal(size=(Q, s))
    block = designs.Tasks(X, Q).span(left, right)
    array = np.kron(X @ left, right)
    assert_allclose(block.dense(), array, atol=1e-12)
    trace = Regularizer(norms.TraceNorm((r, s)), "penalized", 1.0)
    problem = replace(base, design=block, weight=weight, regularizer=trace)
    prediction = array @ rng.normal(size=r * s)
    c, K = problem.loss.coupling(problem.y, prediction, weight)
    expected = array.T @ (np.diag(c) - (K @ K.T).toarray()) @ array
    assert isinstance(block, Block)
    assert block.traits.couples_by_structure
    assert_allclose(hessian(problem, block, prediction), expected, atol=1e-11)
    assert_allclose(hessian(problem, DenseBlock(array), prediction), expected, atol=1e-11)
    refit = ModelNewton(AcceleratedGradient()).solve(problem, np.zeros(r * s), 0.0, 1e-9)
    assert refit.gap <= 1e-9
    assert refit.steps <= 5
