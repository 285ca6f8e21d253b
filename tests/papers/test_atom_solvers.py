"""Rays and Frank-Wolfe beyond the suite: oracles, known facts, odd cases."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from atomlearn import designs, losses, norms
from atomlearn.core import Counted, WarmStart, objective_at
from atomlearn.designs import as_design
from atomlearn.interfaces import Norm, Solver
from atomlearn.norms import L1, L2, Groups, KSupport, Nonnegative, UserNorm
from atomlearn.papers.frank_wolfe import truncation
from atomlearn.papers.line_search import LineProblem, best_step
from atomlearn.problem import Problem, Regularizer, optimal_intercept
from atomlearn.result import Status
from atomlearn.solvers import AtomGeneration, ColumnGeneration, FrankWolfe, run, stopping
from atomlearn.testing import tolerances
from atomlearn.testing.problems import FORMS, LOSSES, Case, cvxpy_optimum, optimum
from tests.oracles.covering import in_turn

Array = NDArray[np.float64]

GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]]
WEIGHTED = Groups(GROUPS, weights=[1.0, 0.5, 2.0, 1.0])
NORMS = (L1(), L2(), KSupport(3), Groups(GROUPS), WEIGHTED)
#: What each solver proves on norms whose ball is curved, within some hundreds of steps.
SOLVERS: tuple[tuple[Solver, float], ...] = (
    (AtomGeneration(tol=1e-8), 1e-8),
    (FrankWolfe(), 1e-2),
    (FrankWolfe(direction="away"), 1e-2),
    (FrankWolfe(direction="pairwise"), 1e-2),
    (FrankWolfe(direction="blended"), 1e-2),
)


def name(value: object) -> str:
    return getattr(value, "direction", type(value).__name__)


def hull(V: Array, symmetric: bool = True) -> UserNorm:
    """The norm of the convex hull of the rows of V (and of -V)."""

    def oracle(z: Array) -> Array:
        products = V @ z
        best = int(np.abs(products).argmax() if symmetric else products.argmax())
        sign = np.sign(products[best]) if symmetric else 1.0
        return np.asarray(sign * V[best])

    return UserNorm(oracle, symmetric=symmetric)


def hull_optimum(problem: Problem, X: Array, V: Array) -> float:
    """F* by CVXPY: l1 over the coefficients of the atoms, which are columns X v."""
    # One of each pair a, -a: l1 has the other one, and twins spoil the oracle's accuracy.
    V = V[[bool(v[np.flatnonzero(v)[0]] > 0) for v in V]] if (-V[0] == V).all(1).any() else V
    over_atoms = replace(problem.regularizer, norm=KSupport(1))
    return cvxpy_optimum(replace(problem, regularizer=over_atoms), X @ V.T)


# Right answers.


@pytest.mark.parametrize(
    ("solver", "gap", "norm"),
    [(solver, gap, norm) for solver, gap in SOLVERS[:1] for norm in NORMS]
    # Steps toward and away from an atom are the same ones whatever the norm of the atom is.
    + [(solver, gap, KSupport(3)) for solver, gap in SOLVERS[1:]],
    ids=name,
)
def test_curved_norms_agree_with_the_oracle(solver: Solver, gap: float, norm: Norm) -> None:
    """Every loss and form, with intercept, weights and tau in turn."""
    for number, (loss, form) in enumerate(itertools.product(LOSSES, FORMS)):
        case = Case(
            loss, form, number % 2 == 0, number % 3 == 0, 0.3 * (number % 2), 0.5, seed=number
        )
        result = run(
            case.problem(norm), solver, stopping.RelativeGap(gap) | stopping.Iterations(3000)
        )
        assert result.status is Status.CONVERGED, (str(case), result.relative_gap)
        best = optimum(case, norm)
        slack = tolerances.ORACLE * best
        assert -slack <= result.objective - best <= result.gap + slack
        assert min(r.gap - r.objective for r in result.history) >= -best - slack


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_hull_of_given_points(loss: str, form: str) -> None:
    """A UserNorm that knows its best atom only, against CVXPY over all of its atoms."""
    V = np.random.default_rng(1).standard_normal((40, 16))
    for intercept, weighted in itertools.product((False, True), repeat=2):
        case = Case(loss, form, intercept, weighted, seed=5)  # type: ignore[arg-type]
        problem = case.problem(hull(V))
        result = run(
            problem, AtomGeneration(tol=1e-8), stopping.RelativeGap(1e-8) | stopping.Iterations(300)
        )
        best = hull_optimum(problem, case.data()[0], V)
        assert result.status is Status.CONVERGED
        assert abs(result.objective - best) <= tolerances.ORACLE * best


@pytest.mark.parametrize("form", FORMS)
def test_a_gauge_that_is_no_norm(form: str) -> None:
    """Nonnegative l1 as a UserNorm: atoms e_j only, none where no score is positive."""
    user = UserNorm(lambda z: (np.array([z.argmax()]), np.ones(1)), symmetric=False)
    case = Case("logistic", form, intercept=True, seed=3)  # type: ignore[arg-type]
    problem = case.problem(Nonnegative(L1()))
    expected = run(problem, ColumnGeneration(tol=1e-9), stopping.RelativeGap(1e-9))
    mine = replace(problem, regularizer=replace(problem.regularizer, norm=user))
    for solver in (AtomGeneration(tol=1e-9), FrankWolfe(direction="pairwise")):
        result = run(mine, solver, stopping.RelativeGap(1e-9) | stopping.Iterations(3000))
        assert result.status is Status.CONVERGED
        assert_allclose(result.objective, expected.objective, rtol=2e-9)
        assert (result.weights >= 0).all()


def test_sparse_designs_and_float32_make_the_same_steps() -> None:
    import scipy.sparse as sp

    rng = np.random.default_rng(0)
    X = sp.random_array((60, 300), density=0.05, rng=rng, format="csc")
    y = np.where(rng.standard_normal(60) > 0, 1.0, -1.0)
    for solver in (AtomGeneration(), FrankWolfe(direction="blended")):
        found = []
        for data in (X, X.toarray(), X.astype(np.float32)):
            case = Case("logistic", "penalized", intercept=True)
            problem = Problem.build(
                as_design(data),
                y,
                case.problem(L1()).loss,
                Regularizer(L1(), "penalized", 0.5),
                fit_intercept=True,
            )
            result = run(problem, solver, stopping.RelativeGap(1e-7) | stopping.Iterations(2000))
            assert result.converged
            found.append(result.objective)
        assert_allclose(found[1], found[0], rtol=2e-7)
        assert_allclose(found[2], found[0], rtol=1e-5)


# Rays.


def test_one_step_of_algorithm_1() -> None:
    """The best atom joins; c = argmin 1/2 (c image - y)^2 + level c in closed form."""
    case = Case("squared", "penalized", seed=8)
    problem, (X, y, _) = case.problem(Groups(GROUPS)), case.data()
    solver = AtomGeneration(inner_ratio=1e-12)
    state = solver.step(problem, solver.start(problem))
    z = X.T @ y
    groups = [*GROUPS, [9], [12], [13], [14], [15]]
    best = max(groups, key=lambda group: float(np.linalg.norm(z[group])))
    atom = np.zeros(16)
    atom[best] = z[best] / np.linalg.norm(z[best])
    image = X @ atom
    c = (image @ y - problem.regularizer.amount) / (image @ image)
    w = np.zeros(16)
    w[state.columns] = state.weights
    assert_allclose(w, c * atom, atol=1e-9)


def test_atoms_of_weight_zero_leave_and_the_state_is_consistent() -> None:
    problem = Case("logistic", "squared", True, tau=0.2, correlation=0.8, seed=9).problem(
        KSupport(3)
    )
    solver = AtomGeneration()
    state = solver.start(problem)
    most = 0
    for _ in range(25):
        state = solver.step(problem, state)
        state.check()
        assert (state.shares > 0).all()
        assert_allclose(
            state.certificate.objective,
            objective_at(problem, state.weights, state.prediction, float(state.shares.sum())),
        )
        most = max(most, state.shares.size)
    assert state.master_steps > 0
    assert most < 25


def test_a_step_is_one_pass() -> None:
    case = Case("logistic", "penalized", True, seed=10)
    for solver in (AtomGeneration(), FrankWolfe(direction="blended")):
        design = Counted(as_design(case.data()[0]))
        problem = replace(case.problem(L1()), design=design)
        result = run(problem, solver, stopping.Iterations(7) | stopping.RelativeGap(1e-300))
        # The result may be an earlier point, where rounding is all that is left of the gap.
        last = result.history[-1]
        assert result.passes == last.passes == last.iteration + 1


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="step_size"):
        FrankWolfe(step_size="short")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="direction"):
        FrankWolfe(direction="back")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="line_search"):
        FrankWolfe(step_size="classic", direction="away")


# Starts and ends.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("solver", "gap"), SOLVERS, ids=name)
def test_targets_of_zero(solver: Solver, gap: float, form: str) -> None:
    """y = 0: w = 0 is optimal, no atom enters, and a step asked for anyway changes nothing."""
    X = np.random.default_rng(0).standard_normal((6, 4))
    problem = Case(form=form, n_samples=6, n_features=4).problem(L1())  # type: ignore[arg-type]
    problem = replace(problem, y=np.zeros(6), design=as_design(X))
    state = solver.start(problem)
    assert state.certificate.gap == 0.0
    following = solver.step(problem, state)
    assert not following.weights.any()
    assert following.certificate.gap == 0.0
    assert run(problem, solver, stopping.RelativeGap(gap)).status is Status.CONVERGED


@pytest.mark.parametrize("form", FORMS)
def test_a_warm_start_is_one_atom(form: str) -> None:
    case = Case("squared", form, seed=14)  # type: ignore[arg-type]
    norm = Groups(GROUPS)
    problem = case.problem(norm)
    w = np.zeros(16)
    w[[0, 2, 7, 12]] = 0.05, -0.03, 0.02, 0.04
    start = WarmStart(np.array([12, 0, 2, 7]), w[[12, 0, 2, 7]], 0.0)
    for solver in (AtomGeneration(), FrankWolfe(), FrankWolfe(direction="away")):
        state = solver.start(problem, start)
        z = np.zeros(16)
        z[state.columns] = state.weights
        assert_allclose(z, w, atol=1e-15)
        assert_allclose(
            state.certificate.objective, objective_at(problem, w, case.data()[0] @ w), rtol=1e-12
        )


def test_a_warm_start_of_a_norm_without_value_is_decomposed() -> None:
    V = np.random.default_rng(2).standard_normal((30, 16))
    problem = Case("logistic", "penalized", True, seed=15).problem(hull(V))
    cold = run(problem, AtomGeneration(tol=1e-8), stopping.RelativeGap(1e-8))
    start = WarmStart(cold.columns, cold.weights, cold.intercept)
    warm = run(problem, AtomGeneration(tol=1e-8), stopping.RelativeGap(1e-7), warm=start)
    assert warm.converged
    assert warm.iterations <= 1 < cold.iterations
    assert_allclose(warm.history[0].objective, cold.objective, rtol=1e-7)


def test_parts_of_a_state_make_up_its_point_and_begin_another_fit() -> None:
    V = np.random.default_rng(3).standard_normal((30, 16))
    problem = Case("squared", "squared", True, seed=18).problem(hull(V))
    for solver in (AtomGeneration(), FrankWolfe(direction="pairwise")):
        cold = run(problem, solver, stopping.RelativeGap(1e-5) | stopping.Iterations(2000))
        parts = cold.state.parts()
        w = np.zeros(16)
        for atom, weight in parts:
            w[atom.columns] += weight * atom.values
        assert_allclose(w, np.asarray(cold.coef), atol=1e-12)
        assert len(parts) > 1
        start = WarmStart(cold.columns, cold.weights, cold.intercept, atoms=parts)
        warm = run(
            problem, solver, stopping.Iterations(0) | stopping.RelativeGap(1e-300), warm=start
        )
        assert_allclose(warm.objective, cold.objective, rtol=1e-12)
        # Gaps near rounding differ by rounding.
        assert_allclose(warm.gap, cold.gap, rtol=1e-6, atol=1e-13 * cold.objective)
    # Steps toward the vertex alone keep no atoms: the point is one.
    assert len(run(problem, FrankWolfe(), stopping.Iterations(3)).state.parts()) == 1


@pytest.mark.parametrize(("solver", "gap"), SOLVERS, ids=name)
def test_limits_are_told(solver: Solver, gap: float) -> None:
    problem = Case("logistic", "penalized", correlation=0.9, seed=16).problem(KSupport(3))
    result = run(problem, solver, stopping.RelativeGap(1e-12) | stopping.Iterations(2))
    assert result.status is Status.ITERATION_LIMIT
    assert result.gap == min(record.gap for record in result.history)


def test_no_further_progress_is_told() -> None:
    """An unreachable gap: STALLED, at a point that is right to rounding."""
    case = Case("logistic", "penalized", True, seed=17)
    for solver in (AtomGeneration(), FrankWolfe(direction="blended")):
        result = run(
            case.problem(KSupport(1)),
            solver,
            stopping.RelativeGap(1e-300) | stopping.Iterations(3000),
        )
        assert result.status is Status.STALLED or result.gap == 0.0
        assert result.relative_gap <= 1e-11


# Frank-Wolfe.


def test_classic_steps_of_the_paper() -> None:
    """x_1 = v_0, x_2 = x_1 / 3 + 2 v_1 / 3 on the ball of the constrained form."""
    case = Case("squared", "constrained", seed=21)
    problem, (X, y, _) = case.problem(L1()), case.data()
    solver, w = FrankWolfe("classic"), np.zeros(16)
    state = solver.start(problem)
    for t in range(6):
        z = X.T @ (y - X @ w)
        vertex = np.zeros(16)
        vertex[np.abs(z).argmax()] = problem.regularizer.amount * np.sign(z[np.abs(z).argmax()])
        w = w + 2 / (t + 2) * (vertex - w)
        state = solver.step(problem, state)
        found = np.zeros(16)
        found[state.columns] = state.weights
        assert_allclose(found, w, atol=1e-12)


def test_local_steps_save_passes() -> None:
    case = Case("logistic", "constrained", n_samples=60, n_features=60, strength=2.0, seed=23)
    problem = case.problem(KSupport(1))
    stop = stopping.RelativeGap(1e-7) | stopping.Iterations(5000)
    blended = run(problem, FrankWolfe(direction="blended"), stop)
    pairwise = run(problem, FrankWolfe(direction="pairwise"), stop)
    assert blended.converged
    assert pairwise.converged
    assert blended.passes < 0.7 * pairwise.passes


def test_the_truncated_cone_holds_every_solution() -> None:
    for form in FORMS:
        case = Case("logistic", form, True, seed=24)
        problem = case.problem(KSupport(3))
        state = FrankWolfe().start(problem)
        exact = run(problem, ColumnGeneration(), stopping.RelativeGap(1e-9))
        gauge = KSupport(3).value(np.asarray(exact.coef))
        assert gauge <= state.reach * (1 + 1e-9)
        assert_allclose(truncation(problem, state.weights, state.prediction, 0.0), state.reach)


@pytest.mark.parametrize(("form", "loss", "tau"), in_turn(FORMS, LOSSES, [0.0, 0.7]))
def test_exact_line_search(loss: str, form: str, tau: float) -> None:
    """Against SciPy's search along the direction, b minimised over at every point."""
    case = Case(loss, form, True, True, tau, seed=25)  # type: ignore[arg-type]
    problem, X = case.problem(L1()), case.data()[0]
    rng = np.random.default_rng(0)
    w, t, t_change = 0.01 * rng.standard_normal(16), 0.4, 0.3
    for seed in range(2):
        d = (1 if seed % 2 else 20) * np.random.default_rng(seed).standard_normal(16)
        amount = problem.regularizer.amount
        slope = {"penalized": amount * t_change, "squared": amount * t * t_change}.get(form, 0.0)
        bend = amount * t_change**2 if form == "squared" else 0.0
        slope, bend = slope + tau * float(w @ d), bend + tau * float(d @ d)
        way = LineProblem(X @ w, X @ d, slope, bend)
        for longest in (0.02, 1.0, 50.0):
            step = best_step(problem, way, longest, 0.0)

            def value(s: float, d: Array = d) -> float:
                linear, gauge = X @ (w + s * d), t + s * t_change
                b = optimal_intercept(problem, linear)
                amount, form = problem.regularizer.amount, problem.regularizer.form
                penalty = {"penalized": amount * gauge, "squared": amount * gauge**2 / 2}
                smooth = problem.loss.value(problem.y, linear + b, problem.weight)
                return smooth + tau / 2 * float((w + s * d) @ (w + s * d)) + penalty.get(form, 0.0)

            assert 0.0 <= step <= longest
            found = minimize_scalar(value, bounds=(0.0, longest), method="bounded")
            ends = value(0.0), value(longest)
            assert value(step) <= min(*ends, float(found.fun)) * (1 + 1e-12)


def test_truncations_are_what_the_objective_allows(table):
    X, y = table
    value = 0.5 * y @ y
    for form, expected in (("penalized", value / 3.0), ("squared", np.sqrt(2.0 * value / 3.0))):
        problem = Problem.build(
            designs.as_design(X), y, losses.Squared(), Regularizer(norms.L1(), form, 3.0)
        )
        found = truncation(problem, np.zeros(0), np.zeros(40), 0.0)
        assert found == pytest.approx(expected, rel=1e-12)
