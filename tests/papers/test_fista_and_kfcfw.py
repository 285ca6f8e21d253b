"""FISTA and k-FCFW beyond the suite: named proxes, other norms, the papers' formulas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from atomlearn import norms
from atomlearn.core import Block, Columns, Design, Scores
from atomlearn.designs import as_design
from atomlearn.interfaces import Norm
from atomlearn.norms import L1, L2, ElasticNetNorm, Groups, KSupport
from atomlearn.papers.fista import NamedProx
from atomlearn.problem import Problem, negative_gradient
from atomlearn.result import Status
from atomlearn.solvers import FISTA, KFCFW, AtomGeneration, run, stopping
from atomlearn.testing import tolerances
from atomlearn.testing.problems import FORMS, LOSSES, Case, optimum, problem_on
from tests.core.losses.test_fits import assert_proves_the_optimum
from tests.core.problem.test_offset_and_free import assert_solves_with_offset_and_free_columns
from tests.core.solvers.test_contracts_of_run import assert_starts_with_the_best_intercept
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]

GROUPS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]]
NORMS = (L1(), L2(), KSupport(2, groups=GROUPS), Groups(GROUPS))
NAMES: tuple[NamedProx, ...] = ("box_norm", "binary_search", "two_step", "exhaustive")
STOP = stopping.RelativeGap(1e-7) | stopping.Iterations(1000)


@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: type(norm).__name__)
def test_every_norm_with_a_prox(norm: Norm) -> None:
    for number, form in enumerate(FORMS):
        case = Case(LOSSES[number], form, intercept=True, seed=200 + number)
        result = run(case.problem(norm), FISTA(), STOP)
        assert result.status is Status.CONVERGED
        best = optimum(case, norm)
        assert abs(result.objective - best) <= tolerances.ORACLE * best + result.gap


def test_elastic_net_norm() -> None:
    """A norm whose atoms cannot be restricted to a few columns, by steps and by its atoms."""
    for form in FORMS:
        problem = Case("squared", form, seed=31).problem(ElasticNetNorm(4))
        first, second = run(problem, FISTA(), STOP), run(problem, AtomGeneration(), STOP)
        assert first.status is second.status is Status.CONVERGED
        assert_allclose(first.objective, second.objective, rtol=2e-7)


@pytest.mark.parametrize("name", NAMES)
def test_named_proxes_make_the_same_run(name: NamedProx) -> None:
    """The papers' proximal maps compute the same point, so the runs agree step by step."""
    problem = Case("logistic", "squared", tau=0.3, seed=41).problem(KSupport(4))
    stop = stopping.Iterations(3)
    ours = run(problem, FISTA(iterations=2), stop)
    theirs = run(problem, FISTA(iterations=2, prox=name), stop)
    mine = [record.objective for record in ours.history]
    assert_allclose([record.objective for record in theirs.history], mine, rtol=1e-9)
    assert_allclose(theirs.coef, ours.coef, atol=1e-9)


def test_named_proxes_are_refused_elsewhere() -> None:
    with pytest.raises(ValueError, match="box_norm"):
        run(Case().problem(L1()), FISTA(prox="quick"), STOP)  # type: ignore[arg-type]
    others = (L1(), "squared"), (KSupport(3), "penalized"), (KSupport(2, GROUPS), "squared")
    for norm, form in others:
        problem = Case("squared", form, seed=1).problem(norm)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="prox=None"):
            run(problem, FISTA(prox="box_norm"), STOP)


class ScoresOnly(Design):
    """A design whose columns are too many to be listed, by its own account."""

    listable = False

    def __init__(self, array: Array) -> None:
        self.design = as_design(array)

    @property
    def shape(self) -> tuple[int, int]:
        return self.design.shape

    @property
    def dtype(self) -> np.dtype[np.float64]:
        return self.design.dtype

    def scores(self, v: Array) -> Scores:
        return self.design.scores(v)

    def gather(self, columns: Columns) -> Block:
        return self.design.gather(columns)


def test_designs_without_predict_are_refused() -> None:
    case = Case(seed=2)
    problem = replace(case.problem(KSupport(3)), design=ScoresOnly(case.data()[0]))
    with pytest.raises(TypeError, match="ColumnGeneration"):
        run(problem, FISTA(), STOP)


def test_kfcfw_needs_no_predict() -> None:
    case = Case("logistic", seed=2, strength=0.6)
    problem = replace(case.problem(KSupport(3)), design=ScoresOnly(case.data()[0]))
    result = run(problem, KFCFW(), stopping.RelativeGap(1e-4) | stopping.Iterations(300))
    assert result.status is Status.CONVERGED


def test_fista_passes() -> None:
    """Two passes an iteration, one for the certificate, one more for each refused step size."""
    problem = Case("squared", seed=3).problem(KSupport(3))
    result = run(problem, FISTA(iterations=5), stopping.Iterations(4))
    assert result.history[0].passes == 1
    assert result.passes >= 1 + 4 * 11
    assert result.passes <= 1 + 4 * 11 + 12


# k-FCFW, formula by formula.


def test_first_step_of_kfcfw_is_the_paper() -> None:
    """u = -grad_k / (2 lambda), v = (||grad||_(k) / (2 lambda))^2, alpha best on the simplex."""
    case = Case("squared", "squared", seed=61)
    problem = case.problem(KSupport(4))
    X = case.data()[0]
    lam = problem.regularizer.amount / 2
    gradient = X.T @ (0.0 - problem.y)
    top = np.argsort(-np.abs(gradient))[:4]
    u = np.zeros(16)
    u[top] = -gradient[top] / (2 * lam)
    v = float((gradient[top] ** 2).sum()) / (2 * lam) ** 2
    start = KFCFW().start(problem)
    assert start.atom is not None
    columns, values, cost = start.atom
    assert_array_equal(np.sort(columns), np.sort(top))
    assert_allclose(values, u[columns])
    assert_allclose(cost, lam * v)
    state = KFCFW(inner_ratio=1e-12).step(problem, start)
    grid = np.linspace(0, 1, 200001)
    image = X @ u
    values_on_grid = 0.5 * (
        problem.y @ problem.y - 2 * grid * (image @ problem.y) + grid**2 * (image @ image)
    )
    best = float((values_on_grid + lam * v * grid).min())
    assert_allclose(state.model_objective, best, rtol=1e-9)
    assert_allclose(state.alpha.sum(), 1.0)


def test_constrained_atom_of_kfcfw() -> None:
    """u = -radius grad_k / ||grad||_(k), [L] eq. 6."""
    case = Case("logistic", "constrained", seed=62)
    problem = case.problem(KSupport(3))
    state = KFCFW().start(problem)
    assert state.atom is not None
    columns, values, cost = state.atom
    z = case.data()[0].T @ negative_gradient(problem, np.zeros(24))
    top = np.argsort(-np.abs(z))[:3]
    expected = problem.regularizer.amount * z[top] / np.linalg.norm(z[top])
    assert_array_equal(columns, top)
    assert_allclose(values, expected)
    assert cost == 0.0


def test_kfcfw_model_objective_never_rises_and_bounds_f() -> None:
    """theta >= gauge^2: what the simplex minimises falls, and lies above F of w."""
    problem = Case("logistic", "squared", tau=0.2, seed=63).problem(KSupport(3))
    solver, state = KFCFW(), KFCFW().start(problem)
    for _ in range(15):
        following = solver.step(problem, state)
        assert following.model_objective <= state.model_objective * (1 + 1e-12)
        own = following.own.certificate.objective  # type: ignore[union-attr]
        assert own <= following.model_objective * (1 + 1e-12)
        state = following


@pytest.mark.parametrize("norm", [*NORMS, KSupport(3)], ids=lambda norm: type(norm).__name__)
@pytest.mark.parametrize("form", ["squared", "constrained"])
def test_kfcfw_for_every_norm_whose_atom_is_known(norm: Norm, form: str) -> None:
    case = Case("logistic", form, True, strength=0.5, seed=65)  # type: ignore[arg-type]
    result = run(case.problem(norm), KFCFW(), stopping.RelativeGap(1e-4) | stopping.Iterations(500))
    assert result.status is Status.CONVERGED
    best = optimum(case, norm)
    assert -1e-6 * best <= result.objective - best <= result.gap + 1e-6 * best


@pytest.mark.parametrize(("form", "strength"), [("squared", 0.1), ("constrained", 1.0)])
def test_kfcfw_returns_the_best_point_with_the_best_bound(form: str, strength: float) -> None:
    """Both are those of the iterates, certified one by one, and verify() finds both again."""
    X, y, _ = Case("logistic", n_samples=40, n_features=300, correlation=0.5, seed=5).data()
    case = Case("logistic", form, True, strength=strength, seed=5)  # type: ignore[arg-type]
    problem = problem_on(X, y, KSupport(30), case)
    state = KFCFW().start(problem)
    own = [state.own.certificate]  # type: ignore[union-attr]
    for _ in range(30):
        state = KFCFW().step(problem, state)
        own.append(state.own.certificate)  # type: ignore[union-attr]
    objectives = np.array([one.objective for one in own])
    gaps = np.array([one.gap for one in own])
    lower = objectives - gaps
    best = np.minimum.accumulate(objectives) - np.maximum.accumulate(lower)
    shares = best / np.minimum.accumulate(gaps)
    # After so many steps, what is carried on proves most beyond the iterate of least gap.
    steps = 5 + int(shares[5:].argmin())
    assert shares[steps] < 0.9
    result = run(problem, KFCFW(), stopping.Iterations(steps))
    assert result.status is Status.ITERATION_LIMIT
    assert_allclose(result.objective, objectives[: steps + 1].min(), rtol=1e-12)
    bound = lower[: steps + 1].max()
    assert_allclose(result.objective - result.gap, bound, rtol=1e-12)
    recorded = [record.gap for record in result.history]
    assert (np.diff(recorded) <= 1e-12 * result.objective).all()
    other = run(problem, FISTA(), stopping.RelativeGap(1e-9) | stopping.Iterations(3000))
    assert bound <= other.objective
    result.problem = problem
    found = result.verify()
    assert_allclose(found.upper, result.objective, rtol=1e-12)
    assert_allclose(found.lower, bound, rtol=1e-12)
    v = negative_gradient(problem, X @ result.proved_by.coef + result.proved_by.intercept)  # type: ignore[union-attr]
    assert_allclose(found.dual, v, atol=1e-12)
    result.proved_by = None
    assert result.verify().lower < found.lower


def test_the_paper_stops_k_fcfw_by_the_change_of_its_objective() -> None:
    X, y, _ = Case("logistic", n_samples=40, n_features=300, correlation=0.5, seed=5).data()
    problem = problem_on(X, y, KSupport(30), Case("logistic", strength=0.02))
    rule = stopping.RelativeGap(1e-6) | stopping.RelativeChange(1e-3) | stopping.Iterations(500)
    result = run(problem, KFCFW(), rule)
    assert result.status is Status.SMALL_CHANGE
    assert not result.converged
    values = [record.objective for record in result.history]
    changes = -np.diff(values) / values[:-1]
    assert 0.0 < changes[-1] <= 1e-3
    assert ((changes[:-1] > 1e-3) | (changes[:-1] == 0.0)).all()
    assert result.relative_gap > 1e-3


def test_kfcfw_refuses_the_penalized_form() -> None:
    with pytest.raises(ValueError, match="penalized"):
        run(Case("squared", "penalized").problem(KSupport(2)), KFCFW(), STOP)


def test_a_gradient_of_zero_needs_no_atom() -> None:
    """y = 0: w = 0 is optimal, and the step that is asked for anyway changes nothing."""
    X = np.random.default_rng(0).standard_normal((6, 4))
    problem: Problem = replace(Case(n_samples=6, n_features=4).problem(KSupport(2)), y=np.zeros(6))
    problem = replace(problem, design=as_design(X))
    state = KFCFW().start(problem)
    assert state.atom is None
    assert KFCFW().step(problem, state).certificate.objective == 0.0


def test_atoms_without_weight_leave() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((40, 60))
    y = X[:, :5].sum(axis=1) + 0.1 * rng.standard_normal(40)
    settings = {"norm": norms.KSupport(10), "form": "squared", "level": 2.0, "tol": 1e-5}
    pruned = solve_sum(X, y, solver=KFCFW(), **settings)
    plain = solve_sum(X, y, solver=KFCFW(prune=False), **settings)
    assert pruned.converged
    assert plain.converged
    assert plain.state.atoms.size == plain.iterations
    assert pruned.state.atoms.size < plain.state.atoms.size
    assert (pruned.state.alpha[1:] > 0).all()
    assert_allclose(pruned.objective, plain.objective, rtol=2e-5)


@pytest.mark.parametrize("loss", ["poisson", "quantile"])
def test_fista_proves_fits_of_losses_of_numbers(loss: str) -> None:
    assert_proves_the_optimum(loss, FISTA())


def test_offsets_and_free_columns() -> None:
    assert_solves_with_offset_and_free_columns(FISTA())


def test_the_first_point_has_the_best_intercept() -> None:
    assert_starts_with_the_best_intercept(FISTA())
