"""Feature generation: the paper's steps, its objective, blocks, scaling vector, exact counts."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from atomlearn import FeatureGenerator
from atomlearn.core import DenseDesign, WarmStart
from atomlearn.datasets import make_feature_generation
from atomlearn.designs import Additive, as_design
from atomlearn.interfaces import Design, Master
from atomlearn.losses import as_loss
from atomlearn.masters import AcceleratedGradient, SemismoothNewton
from atomlearn.norms import L1, KSupport
from atomlearn.problem import Problem, Regularizer
from atomlearn.result import Result, Status
from atomlearn.solvers import ColumnGeneration, FeatureGeneration, run, stopping
from atomlearn.testing import tolerances
from atomlearn.testing.cases import each
from atomlearn.testing.problems import cvxpy_optimum
from tests.core.solvers.test_units import WIDE, assert_units_change_nothing
from tests.oracles.covering import in_turn

Array = NDArray[np.float64]

MASTERS = (None, SemismoothNewton(), AcceleratedGradient())


def data(seed: int = 0, n_samples: int = 60, n_features: int = 40) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    truth = np.where(np.arange(n_features) < 10, rng.uniform(0.2, 1, n_features), 0.0)
    return X, np.where(X @ truth + 0.3 * rng.standard_normal(n_samples) > 0.4, 1.0, -1.0)


def problem_of(
    X: Array,
    y: Array,
    batch: int = 4,
    C: float = 2.0,
    loss: str = "squared_hinge",
    groups: object = None,
    shift: bool = False,
) -> Problem:
    norm = KSupport(batch, groups=groups)
    regularizer = Regularizer(norm, "squared", 1.0)
    return Problem.build(
        as_design(X), y, as_loss(loss), regularizer, fit_intercept=shift, sample_weight=C
    )


def generate(problem: Problem, gap: float = 1e-300, steps: int = 500, **settings: object) -> Result:
    solver = FeatureGeneration(**settings)  # type: ignore[arg-type]
    return run(problem, solver, stopping.RelativeGap(gap) | stopping.Iterations(steps))


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_only_the_last_round_is_exact(loss: str) -> None:
    X, y = data(3, 400, 60)
    problem = problem_of(X, y, loss=loss, shift=True)
    rounds: list[float] = []

    class Noted(FeatureGeneration):
        def step(self, problem: Problem, state: object) -> object:
            following = super().step(problem, state)  # type: ignore[arg-type]
            rounds.append(following.restricted_gap / following.restricted_objective)
            return following

    solver = Noted(n_features=20, tol=1e-9)
    result = run(problem, solver, stopping.RelativeGap(1e-300) | stopping.Iterations(100))
    assert result.status is Status.COLUMN_LIMIT
    assert result.columns.size == 20
    assert rounds[-1] <= 1e-9
    assert min(rounds[:-1]) > 1e-9
    exact = generate(problem, n_features=20, inner_tol=1e-9)
    assert np.intersect1d(result.columns, exact.columns).size >= 18
    loose = generate(problem, n_features=20)
    assert loose.state.restricted_gap > 1e-9 * loose.state.restricted_objective


def test_first_block_is_the_worst_case_of_the_paper() -> None:
    """alpha = C 1, c = sum_i alpha_i y_i x_i: the B largest c_j^2 are the first block."""
    X, y = data()
    state = generate(problem_of(X, y, batch=6, C=3.0), max_blocks=1).state
    c = X.T @ (3.0 * y)
    expected = np.argsort(-(c**2))[:6]
    assert_array_equal(state.blocks[0], expected)
    assert set(state.selection()[1].tolist()) == {1}


@pytest.mark.parametrize(
    ("master", "loss", "shift"), in_turn(MASTERS, ["squared_hinge", "logistic"], [False, True])
)
def test_subproblem_is_the_one_of_the_paper(loss: str, shift: bool, master: Master | None) -> None:
    """After T rounds, F_T is the optimum of [T] (31) over the blocks, with C and -b as there."""
    X, y = data(1)
    C = 1.5
    problem = problem_of(X, y, C=C, loss=loss, shift=shift)
    state = generate(problem, max_blocks=3, inner_tol=1e-7, master=master).state
    omegas = [cp.Variable(block.size) for block in state.blocks]
    b = cp.Variable() if shift else 0.0
    scores = sum(X[:, c] @ o for c, o in zip(state.blocks, omegas, strict=True)) - b
    xi, total = cp.Variable(y.size, nonneg=True), cp.Variable()
    constraints = [xi >= 1 - cp.multiply(y, scores), total >= sum(cp.norm(o) for o in omegas)]
    P = C / 2 * cp.sum_squares(xi)
    if loss == "logistic":
        P = C * cp.sum(cp.logistic(-cp.multiply(y, scores)))
    program = cp.Problem(cp.Minimize(0.5 * cp.square(total) + P), constraints)
    best = program.solve(solver="CLARABEL", use_quad_obj=False)
    assert_allclose(state.restricted_objective, best, rtol=2e-6)
    if shift:
        assert_allclose(-state.intercept, float(b.value), atol=1e-3)


def test_objective_falls_and_bounds_the_whole_problem() -> None:
    """F_t falls with t, stays above F of w, and the gap bounds the distance to F*."""
    X, y = data(2)
    problem = problem_of(X, y)
    best = cvxpy_optimum(problem, X)
    restricted: list[float] = []

    def watch(progress) -> None:  # type: ignore[no-untyped-def]
        state = progress.state
        restricted.append(state.restricted_objective)
        assert state.certificate.objective <= restricted[-1] * (1 + 1e-12)
        assert state.certificate.gap >= state.certificate.objective - best * (1 + 1e-6)

    result = run(
        problem, FeatureGeneration(), stopping.RelativeGap(1e-6) | stopping.Iterations(300), [watch]
    )
    assert result.status is Status.CONVERGED
    assert_allclose(result.objective, best, rtol=2e-6)
    assert (np.diff(restricted) <= 1e-12 * np.array(restricted[1:])).all()


@pytest.mark.parametrize("wanted", [1, 3, 4, 7, 13, 22])
@pytest.mark.parametrize("shift", [False, True])
def test_exactly_n_features(wanted: int, shift: bool) -> None:
    """The last block is truncated, so that exactly n_features carry weight."""
    X, y = data(3)
    result = generate(problem_of(X, y, C=10.0, shift=shift), gap=1e-9, n_features=wanted)
    assert result.status is Status.COLUMN_LIMIT
    assert result.columns.size == wanted
    assert result.state.units == wanted
    order, rounds = result.state.selection()
    assert_array_equal(np.sort(order), result.columns)
    assert (np.diff(rounds) >= 0).all()


def test_the_optimum_may_have_fewer() -> None:
    """Where the optimum has fewer features, the gap proves it."""
    X, y = data(4)
    problem = problem_of(X, y, batch=2, C=0.005)
    result = generate(problem, gap=1e-7, n_features=39)
    assert result.status is Status.CONVERGED
    assert result.columns.size < 39


def test_outer_rules() -> None:
    """eps_c and T end with SELECTED, as late as they should."""
    X, y = data(6)
    result = generate(problem_of(X, y), outer_tol=1e-2, inner_tol=1e-6)
    assert result.status is Status.SELECTED
    F = [result.state.first_objective] + [record.objective for record in result.history[1:]]
    assert result.iterations >= 2
    assert F[-2] - F[-1] <= 2e-2 * F[0]
    limited = generate(problem_of(X, y), max_blocks=2)
    assert limited.status is Status.SELECTED
    assert limited.iterations == 2
    assert limited.columns.size <= 8


def test_scaling_vectors() -> None:
    """(||w||_B)^2 = sum w_j^2 / d_j for the d of w itself, which lies in D."""
    X, y = data(8)
    problem = problem_of(X, y, batch=5)
    norm = problem.regularizer.norm
    assert isinstance(norm, KSupport)
    state = generate(problem, gap=1e-8, inner_tol=1e-9).state
    assert_allclose(state.mu.sum(), 1.0)
    columns, own = state.scaling(norm, X.shape[1])
    square = norm.value(state.weights) ** 2
    used = state.weights != 0
    assert_allclose((state.weights[used] ** 2 / own[used]).sum(), square, rtol=1e-10)
    assert_array_equal(columns, state.columns)
    assert (own >= 0).all()
    assert (own <= 1 + 1e-12).all()
    assert own.sum() <= 5.0 + 1e-12


@each("seed", range(12))
def test_scaling_vector_attains_the_gauge(seed: int) -> None:
    """Against the norm's own value: ties, zeros, heavy tails, k beyond the size."""
    rng = np.random.default_rng(seed)
    w = rng.standard_cauchy(12) if seed % 2 else np.round(2 * rng.standard_normal(12))
    k = 1 + seed % 14
    d = KSupport(k).scaling(w)
    assert d is not None
    assert (d >= 0).all()
    assert (d <= 1).all()
    assert d.sum() <= k * (1 + 1e-12)
    used = w != 0
    assert (d[used] > 0).all()
    gauge = KSupport(k).value(w)
    assert_allclose((w[used] ** 2 / d[used]).sum(), gauge**2, rtol=1e-10)


def test_groups() -> None:
    """With groups a block is the B best groups, counted as such; the optimum is the norm's."""
    X, y = data(9)
    groups = [list(range(4 * g, 4 * g + 4)) for g in range(8)]
    problem = problem_of(X, y, batch=2, groups=groups)
    c = np.sqrt(((X.T @ (2.0 * y))[:32].reshape(8, 4) ** 2).sum(axis=1))
    singles = np.abs((X.T @ (2.0 * y))[32:])
    first = generate(problem, max_blocks=1).state.blocks[0]
    best = sorted([(-v, g) for g, v in enumerate(c)] + [(-v, 8 + j) for j, v in enumerate(singles)])
    expected = [j for _, g in best[:2] for j in (groups[g] if g < 8 else [24 + g])]
    assert sorted(first.tolist()) == sorted(expected)
    limited = generate(problem, gap=1e-9, n_features=5)
    labels = KSupport(2, groups=groups).partition(40).labels
    assert np.unique(labels[limited.columns]).size == 5
    result = generate(problem, gap=1e-7)
    assert result.status is Status.CONVERGED
    assert_allclose(result.objective, cvxpy_optimum(problem, X), rtol=tolerances.ORACLE)
    columns, d = result.state.scaling(problem.regularizer.norm, 40)
    mine = labels[columns]
    # One number a group, with which the squared norm is sum ||w_g||^2 / d_g.
    for label in np.unique(mine):
        assert np.count_nonzero(mine == label) == np.count_nonzero(labels == label)
        assert_allclose(d[mine == label], d[mine == label][0], rtol=1e-12)
    used = np.isin(columns, result.columns)
    assert (d[used] > 0).all()
    gauge = KSupport(2, groups=groups).value(result.coef)
    assert_allclose((result.coef[columns[used]] ** 2 / d[used]).sum(), gauge**2, rtol=1e-9)


def test_warm_start_is_cut_into_blocks() -> None:
    """A dense warm start is a sum of blocks of B, whose F_t is above F."""
    X, y = data(10)
    problem = problem_of(X, y)
    cold = run(problem, ColumnGeneration(), stopping.RelativeGap(1e-8) | stopping.Iterations(100))
    solver = FeatureGeneration(inner_tol=1e-8)
    warm = WarmStart(cold.columns, cold.weights, cold.intercept)
    result = run(problem, solver, stopping.RelativeGap(1e-6) | stopping.Iterations(100), (), warm)
    assert result.iterations == 0
    assert result.state.n_blocks == -(-cold.columns.size // 4)
    assert result.state.restricted_objective >= cold.objective * (1 - 1e-12)
    assert_allclose(result.objective, cold.objective, rtol=1e-8)


def test_float32_data_keeps_its_certificate() -> None:
    X, y = data(12)
    single = generate(problem_of(X.astype(np.float32), y), gap=1e-6)
    double = generate(problem_of(X.astype(np.float32).astype(np.float64), y), gap=1e-6)
    assert single.status is Status.CONVERGED
    assert_allclose(single.objective, double.objective, rtol=1e-6)


def test_refusals() -> None:
    """Other norms, other forms and tau meet a sentence with a remedy."""
    X, y = data(13)
    design, loss = as_design(X), as_loss("squared_hinge")
    others = Regularizer(L1(), "squared", 1.0), Regularizer(KSupport(2), "penalized", 1.0)
    for regularizer in others:
        problem = Problem.build(design, y, loss, regularizer)
        with pytest.raises(ValueError, match="KSupport"):
            run(problem, FeatureGeneration(), stopping.Iterations(1))
    problem = Problem.build(design, y, loss, Regularizer(KSupport(2), "squared", 1.0), tau=0.1)
    with pytest.raises(ValueError, match="l1_ratio=1"):
        run(problem, FeatureGeneration(), stopping.Iterations(1))


@each("seed", [7, 22, 97, 247])
def test_the_gap_asked_of_the_last_round_is_of_its_own_objective(seed: int) -> None:
    """A round that lowers the objective far: the gap is a share of the new one, not of the old."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(10, 60)), int(rng.integers(3, 8))
    X = rng.uniform(-1, 1, (n, d))
    y = 3 * X[:, 0] + np.sin(3 * X[:, 1]) + 0.01 * rng.standard_normal(n)
    y = np.sign(y - np.median(y) + 1e-9)
    design: Design = DenseDesign(X)
    groups = None
    if seed % 2:
        additive = Additive(X, "splines", normalize=True)
        design, groups = additive, additive.groups
    problem = Problem.build(
        design,
        y,
        as_loss("squared_hinge"),
        Regularizer(KSupport(1, groups), "squared", 1.0),
        fit_intercept=True,
        sample_weight=np.full(n, [1.0, 100.0, 1e4][seed % 5 % 3]),
    )
    solver = FeatureGeneration(n_features=min(3, d), inner_tol=0.5e-6)
    state = run(problem, solver, stopping.RelativeGap(1e-6) | stopping.Iterations(200)).state
    assert state.restricted_gap <= 0.5e-6 * abs(state.restricted_objective)


@pytest.mark.parametrize(("n", "p", "true", "asked"), [(60, 200, 10, 20), (200, 1000, 20, 100)])
def test_blocks_that_trade_places_end_with_what_was_asked_for(n, p, true, asked):
    """A block cut to the one feature that is left pushes another out: 19 of 20 for 70 passes."""
    data = make_feature_generation(n, p, true, n, rng=0)
    model = FeatureGenerator(n_features=asked, C=10.0, standardize=True).fit(
        data.X, np.sign(data.y)
    )
    assert len(model.selected_) == model.get_support().sum() == asked
    assert model.n_passes_ < 60
    assert "requested number" in str(model.status_)


@pytest.mark.parametrize(
    ("solver", "loss", "passes", "seed"),
    [
        (FeatureGeneration(), "squared", 22, 12),
        (FeatureGeneration(inner_tol=1e-6), "squared_hinge", 29, 13),
    ],
)
def test_other_units_take_the_same_passes_to_the_same_point(
    solver: FeatureGeneration, loss: str, passes: int, seed: int
) -> None:
    kind = (solver, KSupport(4), "squared", loss, WIDE, passes, 0)
    assert_units_change_nothing(kind, seed)
