"""Offsets and free columns: one problem with them, and one that says the same without them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import PoissonRegressor

from atomlearn import (
    designs,
    losses,
    norms,
    paths,
    problem,
    solve,
    solvers,
)
from atomlearn.core import FreeColumns, Problem, Regularizer, changed, loss_value
from atomlearn.core.solvers.stopping import Passes
from atomlearn.designs import as_design
from atomlearn.losses import Huber, as_loss
from atomlearn.testing.gauges import gauge_model
from atomlearn.testing.loss_oracles import oracle_of, targets_of
from tests.oracles.sums import solve_sum

cp = pytest.importorskip("cvxpy")

GROUPS = [list(range(start, start + 3)) for start in range(0, 15, 3)]
NORMS = {"l1": norms.L1(), "k": norms.KSupport(4), "groups": norms.Groups(GROUPS)}
FORMS = ("penalized", "squared", "constrained")
LOSSES = ("squared", "logistic", "squared_hinge")


def data(seed, loss, n_samples=30, n_features=15):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_samples, n_features))
    X[:, 1] += 50.0
    X[:, 2] = X[:, 0] - X[:, 1]  # three columns that depend on each other
    z = X[:, 3:] @ (np.arange(12) % 4 == 0) + rng.standard_normal(n_samples)
    y = targets_of(as_loss(loss), z + 0.3)
    return X, y, rng.integers(0, 4, n_samples).astype(float), rng.standard_normal(n_samples)


def optimum(X, y, loss, norm, form, amount, weight, offset, free, tau, intercept):
    """F* by CVXPY, with the free coefficients as variables of their own."""
    w, b = cp.Variable(X.shape[1]), cp.Variable() if intercept else 0.0
    z = X @ w + b + (0.0 if offset is None else offset)
    if free:
        z = z + X[:, free] @ cp.Variable(len(free))
    smooth = oracle_of(as_loss(loss)).expression(cp, y, z, weight)
    smooth += 0.5 * tau * cp.sum_squares(w)
    gauge, constraints = gauge_model(cp, norm.on(X.shape[1]), w)
    constraints += [w[j] == 0 for j in free or ()]
    penalty = {"penalized": amount * gauge, "squared": 0.5 * amount * cp.square(gauge)}
    if form == "constrained":
        constraints.append(gauge <= amount)
    program = cp.Problem(cp.Minimize(smooth + penalty.get(form, 0.0)), constraints)
    program.solve(solver="CLARABEL")
    return float(program.value)


def objective(result, X, y, loss, norm, form, amount, weight, offset, free, tau):
    """F at what was given back; free columns have no part in the norm."""
    coef = result.coef.copy()
    smooth = as_loss(loss).value(y, result.predict(X, offset), weight)
    coef[free or []] = 0.0
    gauge = norm.on(X.shape[1]).value(coef)
    penalty = {"penalized": amount * gauge, "squared": 0.5 * amount * gauge**2}
    assert form != "constrained" or gauge <= amount * (1 + 1e-9)
    return smooth + penalty.get(form, 0.0) + 0.5 * tau * float(coef @ coef)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", NORMS)
def test_the_gap_holds_the_optimum(loss, form, name):
    settings = itertools.product((False, True), (None, [1], [0, 1, 2]), (False, True), (0.0, 0.5))
    first = len(loss) + len(form) + len(name)
    for seed, (intercept, free, has_offset, tau) in enumerate(settings):
        if (seed + first) % 11:
            continue  # each combination of three meets an eleventh of the others
        X, y, weight, offset = data(seed, loss)
        if not has_offset:
            offset = None
        amount = 1.0 if form == "constrained" else 0.8
        result = solve_sum(
            X,
            y,
            loss=loss,
            norm=NORMS[name],
            form=form,
            tau=tau,
            fit_intercept=intercept,
            sample_weight=weight,
            offset=offset,
            unpenalized=free,
            tol=1e-7,
            **{"radius" if form == "constrained" else "level": amount},
        )
        assert result.converged
        parts = (loss, NORMS[name], form, amount, weight, offset, free, tau)
        found = objective(result, X, y, *parts)
        assert_allclose(result.objective, found, rtol=1e-9, atol=1e-12)
        best = optimum(X, y, *parts, intercept)
        assert -1e-5 * (1 + best) <= found - best <= result.gap + 1e-6 * (1 + best)


def test_free_columns_are_partialled_out():
    """Frisch, Waugh and Lovell: regress both on the free columns, then fit the residuals."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 30)) + 3.0, rng.standard_normal(60)
    Z = np.column_stack([np.ones(60), X[:, :4]])
    off = np.eye(60) - Z @ np.linalg.pinv(Z)
    plain = solve_sum(off @ X[:, 4:], off @ y, level=2.0, tol=1e-12)
    free = solve_sum(X, y, level=2.0, fit_intercept=True, unpenalized=range(4), tol=1e-12)
    assert_allclose(free.coef[4:], plain.coef, atol=1e-7)
    assert_allclose(free.objective, plain.objective, rtol=1e-10)
    g = np.linalg.lstsq(Z, y - X[:, 4:] @ plain.coef, rcond=None)[0]
    assert_allclose(np.append(free.intercept, free.coef[:4]), g, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_offset_is_a_column_with_coefficient_one(loss):
    X, y, weight, offset = data(3, loss)
    settings = {
        "loss": loss,
        "level": 0.5,
        "sample_weight": weight,
        "fit_intercept": True,
        "tol": 1e-9,
    }
    result = solve_sum(X, y, offset=offset, **settings)
    # The same numbers as two halves, of which one is in a free column and has to find its 1.
    column = np.column_stack([X, offset])
    other = solve_sum(column, y, unpenalized=[15], offset=0.0 * offset, **settings)
    assert other.objective <= result.objective + result.gap
    fixed = solve_sum(column, y, unpenalized=[15], offset=offset, **settings)
    assert_allclose(fixed.coef[15], other.coef[15] - 1.0, atol=1e-4)
    assert_allclose(fixed.objective, other.objective, rtol=1e-8)


def test_targets_far_from_zero_lose_no_digits():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((50, 20)), 1e6 + rng.standard_normal(50)
    result = solve_sum(X, y, level=1.0, fit_intercept=True, unpenalized=[0], tol=1e-8)
    other = solve_sum(X, y - 1e6, level=1.0, fit_intercept=True, unpenalized=[0], tol=1e-8)
    assert result.converged
    assert_allclose(result.intercept - 1e6, other.intercept, atol=1e-6)
    assert_allclose(result.coef, other.coef, atol=1e-6)


def test_free_columns_that_fit_perfectly_leave_nothing_to_do():
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((20, 50)), rng.standard_normal(20)
    result = solve_sum(X, y, level=1.0, fit_intercept=True, unpenalized=range(30))
    assert result.status.name == "PERFECT_FIT"
    assert_allclose(result.predict(X), y, atol=1e-10)


def test_without_any_penalty_it_is_a_generalized_linear_model():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((200, 6))
    y = rng.poisson(np.exp(0.3 * X[:, 0] + 0.5)).astype(float)
    result = solve_sum(X, y, loss="poisson", level=1.0, fit_intercept=True, unpenalized=range(6))
    oracle = PoissonRegressor(alpha=0, tol=1e-12, solver="newton-cholesky").fit(X, y)
    assert_allclose(result.coef, oracle.coef_, atol=1e-10)
    assert_allclose(result.intercept, oracle.intercept_, atol=1e-10)


def test_names_masks_and_indices_say_the_same():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)
    frame = pandas.DataFrame(X, columns=["age", "sex", "gene1", "gene2"])
    by_name = solve_sum(frame, y, level=1.0, unpenalized=["sex", "age"])
    by_mask = solve_sum(frame, y, level=1.0, unpenalized=np.array([True, True, False, False]))
    by_index = solve_sum(X, y, level=1.0, unpenalized=[-4, 1])
    assert np.array_equal(by_name.coef, by_mask.coef)
    assert np.array_equal(by_name.coef, by_index.coef)
    with pytest.raises(ValueError, match=r"unpenalized.*'height'"):
        solve_sum(frame, y, level=1.0, unpenalized=["height"])
    with pytest.raises(ValueError, match="names"):
        solve_sum(X, y, level=1.0, unpenalized=["age"])
    with pytest.raises(ValueError, match=r"\[0, 4\)"):
        solve_sum(X, y, level=1.0, unpenalized=[7])
    with pytest.raises(ValueError, match="offset must have shape"):
        solve_sum(X, y, level=1.0, offset=np.zeros(7))
    with pytest.raises(ValueError, match=r"offset\[3\]"):
        solve_sum(X, y, level=1.0, offset=np.where(np.arange(30) == 3, np.inf, 0.0))


@pytest.mark.parametrize("loss", ["poisson", "gamma", "huber", "negative_binomial"])
def test_other_losses_have_them_too(loss):
    for seed, intercept in enumerate((True, False)):
        X, y, weight, offset = data(seed + 10, loss)
        offset, free, norm = 0.3 * offset, [0, 1, 2], norms.L1()
        result = solve_sum(
            X,
            y,
            loss=loss,
            level=1.0,
            fit_intercept=intercept,
            sample_weight=weight,
            offset=offset,
            unpenalized=free,
            tol=1e-7,
        )
        assert result.converged
        parts = (loss, norm, "penalized", 1.0, weight, offset, free, 0.0)
        found, best = objective(result, X, y, *parts), optimum(X, y, *parts, intercept)
        assert_allclose(result.objective, found, rtol=1e-9)
        assert -1e-5 * (1 + best) <= found - best <= result.gap + 1e-6 * (1 + best)


ANY_NORM = {
    "nonnegative": norms.Nonnegative(norms.KSupport(3)),
    "owl": norms.OWL(np.linspace(2.0, 1.0, 15)),
    "elastic net": norms.ElasticNetNorm(2.5),
}


@pytest.mark.parametrize("name", ANY_NORM)
def test_every_norm_leaves_free_columns_alone(name):
    assert_leaves_free_columns_alone(ANY_NORM[name])


def assert_leaves_free_columns_alone(norm):
    """Free columns partialled out by hand give the same objective."""
    X, y, _, _ = data(5, "squared")
    off = np.eye(30) - X[:, :3] @ np.linalg.pinv(X[:, :3])
    plain = solve_sum(off @ X, off @ y, norm=norm, level=1.0, tol=1e-9)
    free = solve_sum(X, y, norm=norm, level=1.0, unpenalized=[0, 1, 2], tol=1e-9)
    assert free.converged
    assert_allclose(free.objective, plain.objective, rtol=1e-7)
    assert_allclose(free.coef[3:], plain.coef[3:], atol=1e-4)


def test_other_solvers_too():
    assert_solves_with_offset_and_free_columns(solvers.AtomGeneration())


def assert_solves_with_offset_and_free_columns(solver):
    X, y, _, offset = data(7, "logistic")
    settings = {"loss": "logistic", "level": 1.0, "offset": offset, "unpenalized": [1, 4]}
    usual = solve_sum(X, y, fit_intercept=True, tol=1e-8, **settings)
    other = solve_sum(X, y, fit_intercept=True, tol=1e-5, solver=solver, max_iter=5000, **settings)
    assert other.converged
    assert_allclose(other.objective, usual.objective, rtol=2e-5)


def test_warm_starts_and_results_can_go_on():
    X, y, _weight, offset = data(9, "logistic")
    settings = {"loss": "logistic", "fit_intercept": True, "offset": offset, "unpenalized": [0, 4]}
    first = solve_sum(X, y, level=1.0, **settings)
    again = solve_sum(X, y, level=1.0, warm_start=first, **settings)
    assert again.iterations == 0
    assert_allclose(again.coef, first.coef, atol=1e-6)
    assert again.columns.tolist() == sorted(set(again.columns.tolist()) | {0, 4})


def test_free_columns_of_huber_are_found_from_far_away():
    # Far out the loss is straight: steps of its slope's length once were thousands, and cut off.
    rng = np.random.default_rng(0)
    Z, y = 5.0 + rng.standard_normal((60, 3)), rng.standard_normal(60)
    loss = FreeColumns(Huber(1.0), Z, intercept=False)
    for target, z in ((y, 1e4 * Z.sum(axis=1)), (y + 1e4 * Z @ [0.3, -0.2, 0.1], np.zeros(60))):
        dual = Huber(1.0).gradient(target, loss.whole(target, z, np.ones(60)), np.ones(60))
        assert np.abs(loss.basis.T @ dual).max() <= 1e-9


def test_free_columns_far_from_zero_of_huber_converge():
    rng = np.random.default_rng(0)
    X, y = 1000.0 + rng.standard_normal((23, 94)), 2.0 * rng.standard_normal(23)
    how = {"loss": "huber", "norm": "l1", "form": "squared", "unpenalized": [0, 3]}
    result = solve_sum(X, y, level=0.01, tol=1e-5, stop=Passes(50), **how)
    assert result.converged


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_paths_beside_free_columns_are_those_of_single_fits(loss: str) -> None:
    """What is projected out of the working set is kept from level to level, and extended."""
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(80, 120)), rng.normal(size=(80, 2))
    z = X[:, :5].sum(axis=1) + Z @ [2.0, -1.0] + 3.0
    y = z + rng.normal(size=80) if loss == "squared" else np.sign(z + rng.normal(size=80))
    given = {"loss": loss, "norm": norms.L1(), "fit_intercept": True, "unpenalized": [120, 121]}
    X = np.column_stack([X, Z])
    found = paths.path(X, y, n_alphas=12, alpha_ratio=0.05, tol=1e-9, **given)
    for alpha, result in zip(found.alphas, found.results, strict=True):
        alone = solve(X, y, alpha=alpha, tol=1e-10, **given)
        assert result.relative_gap <= 1e-9
        np.testing.assert_allclose(result.objective, alone.objective, rtol=2e-9)


def test_samples_without_weight_have_no_say_in_the_scale_of_free_columns() -> None:
    """Far out they made the basis theirs, in which the others had no digits left."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, far = rng.normal(size=(25, 12)) + np.eye(12)[0] * 3.0, 1e3 * rng.normal(size=(5, 12))
        y, weight = rng.poisson(1.0, size=25).astype(float), np.r_[np.ones(25), np.zeros(5)]
        penalty = problem.Regularizer(norms.L1(), "penalized", 1.0)
        free = {"fit_intercept": True, "unpenalized": [0]}
        plain = problem.Problem.build(as_design(X), y, as_loss("poisson"), penalty, **free)
        X_both, y_both = as_design(np.r_[X, far]), np.r_[y, y[:5]]
        beside = problem.Problem.build(
            X_both, y_both, as_loss("poisson"), penalty, sample_weight=weight, **free
        )
        for size in (0.1, 0.5, 1.0):
            w = size * rng.normal(size=12)
            value = loss_value(plain, X @ w)
            assert_allclose(loss_value(beside, np.r_[X, far] @ w), value, rtol=1e-9)


def test_free_columns_forget_where_they_were_when_predictions_jump() -> None:
    """Of counts the last best coefficients may be where every mean is exp(-200)."""
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(47, 1))
    y, weight = rng.poisson(1.0, size=47).astype(float), np.full(47, 1.0 / 47.0)
    for size in (400.0, 260.0, 130.0, 8.0):
        loss = FreeColumns(losses.Poisson(), Z, True)
        near, far = rng.normal(size=47), np.full(47, size) + size * Z[:, 0]
        wanted = FreeColumns(losses.Poisson(), Z, True).value(y, near, weight)
        loss.value(y, far + near, weight)
        assert_allclose(loss.value(y, near, weight), wanted, rtol=1e-9)
        assert_allclose(loss.value(y, near - far, weight), wanted, rtol=1e-9)


def test_free_columns_come_back_from_where_the_loss_is_flat() -> None:
    """There Newton's step is exp(200) too long, which halves never make short enough."""
    rng = np.random.default_rng(1)
    Z, y = rng.normal(size=(30, 1)), rng.poisson(1.0, size=30).astype(float)
    weight, prediction = np.ones(30), rng.normal(size=30)
    loss = FreeColumns(losses.Poisson(), Z, True)
    wanted = loss.value(y, prediction, weight)
    loss._start = lambda y, z, s: (  # type: ignore[method-assign]
        c := loss.basis.T @ np.full(30, -200.0),
        there := z + loss.basis @ c,
        loss.inner.value(y, there, s),
        None,
    )
    assert_allclose(loss.value(y, prediction + 1.0, weight), wanted, rtol=1e-9)


def test_free_columns_of_losses_with_kinks_are_minimized_over_seldom(monkeypatch):
    """Semismooth steps know them: 43 and 50 searches; first-order models took 220 and 387."""
    searched, rng = FreeColumns._searched, np.random.default_rng(0)
    X = rng.standard_normal((57, 9))
    y = X[:, 0] - X[:, 3] + 0.5 * X[:, 8] + rng.standard_normal(57)
    counts = []

    def counted(*arguments):
        counts.append(1)
        return searched(*arguments)

    monkeypatch.setattr(FreeColumns, "_searched", counted)
    norm = norms.Groups([[0, 1, 2], [3, 4], [5, 6, 7], [8]])
    for level in (1.0, 0.3):
        counts.clear()
        result = solve_sum(
            X, y, loss="quantile", norm=norm, level=level, fit_intercept=True, unpenalized=[8]
        )
        assert result.converged
        assert len(counts) < 120


def problem_of(X, y, norm=None, loss=None, **more) -> Problem:
    regularizer = Regularizer(norm or norms.L1(), "penalized", 1.0)
    return Problem.build(designs.as_design(X), y, loss or losses.Squared(), regularizer, **more)


def test_an_intercept_stays_where_further_columns_are_freed():
    X, y = np.random.default_rng(1).normal(size=(12, 3)), np.arange(12.0)
    task = changed(problem_of(X, y, fit_intercept=True, unpenalized=[0]), unpenalized=[1])
    none = changed(problem_of(X, y, unpenalized=[0]), unpenalized=[1])
    assert task.loss.free_part(y, np.zeros(12), np.ones(12))[1] > 1.0
    assert none.loss.free_part(y, np.zeros(12), np.ones(12))[1] == 0.0


def test_free_columns_leave_the_gap_as_small_as_it_is(table):
    X, y = table
    result = solve_sum(X, y, level=0.1, unpenalized=[2], fit_intercept=True, tol=1e-9)
    assert result.converged
    assert result.gap < 1e-8 * result.objective
