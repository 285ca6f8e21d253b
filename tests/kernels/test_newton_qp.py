"""Newton steps by QPs in C++: where they end is priced by the problem, which shares no code."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from atomlearn import designs, losses, norms, problem
from atomlearn._kernels import KeptHessian, newton_qp
from atomlearn.core import CachedBlock, DenseBlock, choose_master, l1_weights, objective_at
from atomlearn.core.masters.sequential_qp import model_terms
from atomlearn.problem import optimal_intercept, prove

POSITIVE = ["gamma", "negative_binomial", "poisson", "tweedie"]
LOSSES = [*POSITIVE, "huber", "logistic", "squared", "squared_hinge"]


def fit(
    columns,
    y,
    s,
    loss,
    start,
    shift=0.0,
    *,
    level=0.0,
    coupling=0.0,
    ridge=0.0,
    radius=np.inf,
    intercept=False,
    **options,
):
    """Return the weights, the intercept and the number of steps of one level."""
    terms = np.array([[level, coupling, ridge, radius]])
    free = np.ones((int(intercept), y.size))
    shifts = np.full(len(free), shift)
    weights, shifts, steps = newton_qp(
        columns, y, s, loss, start, shifts, basis=free, terms=terms, **options
    )
    return weights[0], float(shifts[0].sum()), steps


def task(rng, loss, form, *, n=60, p=12, tau=0.0, intercept=True, signed=True, weights=None):
    """Return a problem whose level leaves about half of the columns out."""
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 2.0, size=p)
    y = X[:, :4] @ rng.normal(size=4) + 0.3 * rng.normal(size=n)
    the_loss = losses.as_loss(loss)
    if the_loss.task == "classification":
        y = np.sign(y - np.median(y) + 1e-9)
    elif loss in POSITIVE:
        y = 1.0 + rng.poisson(np.exp(np.clip(y, -2.0, 3.0)))
    norm = norms.L1() if weights is None else norms.L1(weights=weights)
    norm = norm if signed else norms.Nonnegative(norm)
    amount = {"penalized": 3.0, "squared": 1.0, "constrained": 0.7}[form]
    sample_weight = rng.uniform(0.5, 2.0, size=n)
    return problem.Problem.build(
        designs.as_design(X), y, the_loss, problem.Regularizer(norm, form, amount),
        tau=tau, fit_intercept=intercept, sample_weight=sample_weight,
    )  # fmt: skip


def by_kernel(task, weights=None, shift=0.0, **options):
    norm, X = task.regularizer.norm, np.asarray(task.design.array)
    signed = l1_weights(norm, X.shape[1])
    price = l1_weights(norm, X.shape[1], nonnegative=True) if signed is None else signed
    level, coupling, radius = model_terms(task.regularizer)
    start = np.zeros(X.shape[1]) if weights is None else weights
    return fit(
        X, task.y, task.weight, task.loss, start, shift, price=price, level=level,
        coupling=coupling, ridge=task.tau, radius=radius, signed=signed is not None,
        intercept=task.fit_intercept, **options,
    )  # fmt: skip


def priced(task, weights, shift):
    """Return the certificate at the best intercept of these weights."""
    linear = np.asarray(task.design.array) @ weights
    shift = optimal_intercept(task, linear, shift)
    return prove(task, None, weights, linear + shift).certificate


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize("loss", [*LOSSES, losses.Quantile(0.9).smoothed(0.05)])
def test_ends_at_the_optimum(loss, form):
    seed = (len(str(loss)) + len(form)) % 4
    rng = np.random.default_rng(seed)
    options = {
        "tau": 0.4 * (seed % 2),
        "intercept": seed < 2,
        "signed": seed != 3,
        "weights": rng.uniform(0.5, 2.0, size=12) if seed == 1 else None,
    }
    given = task(rng, loss, form, **options)
    weights, shift, steps = by_kernel(given)
    assert steps >= 1
    assert priced(given, weights, shift).relative_gap < 1e-9
    if seed == 3:
        assert (weights >= 0).all()


def test_repeated_columns_and_more_columns_than_samples():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(20, 30))
    X[:, 15:] = X[:, :15]
    y = np.sign(X[:, 0] + 0.1 * rng.normal(size=20))
    level = problem.Regularizer(norms.L1(), "penalized", 1.0)
    for loss in ("logistic", "squared_hinge", "squared"):
        given = problem.Problem.build(
            designs.as_design(X), y, losses.as_loss(loss), level, fit_intercept=True
        )
        weights, shift, _ = by_kernel(given)
        assert priced(given, weights, shift).relative_gap < 1e-9


def test_a_start_is_never_left_for_a_worse_point():
    rng = np.random.default_rng(6)
    given = task(rng, "logistic", "penalized", n=30)
    start = rng.normal(size=12)
    before = objective_at(given, start, np.asarray(given.design.array) @ start + 0.3)
    for most in (1, 2, 3):
        weights, shift, steps = by_kernel(given, start, 0.3, most=most)
        after = objective_at(given, weights, np.asarray(given.design.array) @ weights + shift)
        assert steps <= most
        assert after < before


def test_samples_of_no_curvature_do_not_end_the_steps():
    # Every margin is beyond 1: no slope, nothing to do but to shrink the weights.
    X, y = np.eye(3), np.ones(3)
    weights, shift, steps = fit(
        X, y, np.ones(3), losses.SquaredHinge(), np.full(3, 5.0), price=np.ones(3), level=0.1
    )
    assert steps > 0
    np.testing.assert_allclose(weights, 0.9, rtol=1e-12)
    assert shift == 0.0


def test_refuses_what_does_not_fit():
    X, ones = np.eye(3), np.ones(3)
    with pytest.raises(ValueError, match="do not fit"):
        fit(X, np.ones(2), ones, losses.Squared(), np.zeros(3), price=ones)
    with pytest.raises(ValueError, match="an entry a column"):
        fit(X, ones, ones, losses.Squared(), np.zeros(3), price=np.ones(2))


def wide(loss, seed, *, n=80, p=300):
    """Return columns, nine in ten entries of which are zero, and a target for the loss."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * (rng.random((n, p)) < 0.1)
    y = X[:, :8] @ rng.normal(size=8) + 0.2 * rng.normal(size=n)
    if loss in ("logistic", "squared_hinge"):
        return X, np.sign(y + 1e-9)
    return X, np.exp(np.clip(y, -2.0, 2.0)) if loss == "gamma" else y


@pytest.mark.parametrize(
    ("loss", "intercept"),
    [("gamma", True), ("huber", False), ("logistic", True), ("squared", False)],
)
def test_compressed_columns_lead_to_the_same_optimum(loss, intercept):
    X, y = wide(loss, 7)
    n, p = X.shape
    the_loss = losses.as_loss(loss)
    level = problem.Regularizer(norms.L1(), "penalized", 0.4)
    given = problem.Problem.build(designs.as_design(X), y, the_loss, level, fit_intercept=intercept)
    options = {"price": np.ones(p), "level": 0.4, "intercept": intercept}
    found = []
    for columns in (X, sp.csc_array(X), sp.csc_matrix(X.astype(np.float32).astype(float))):
        weights, shift, _ = fit(columns, y, np.ones(n), the_loss, np.zeros(p), **options)
        found.append(priced(given, weights, shift))
    assert found[0].relative_gap < 1e-9
    assert found[1].relative_gap < 1e-9
    assert found[2].relative_gap < 1e-5


@pytest.mark.parametrize("loss", ["gamma", "huber", "logistic", "squared"])
def test_a_kept_hessian_changes_the_way_and_not_the_end(loss):
    """Columns come in three parts, weights of samples and ridge change between calls."""
    X, y = wide(loss, 8)
    n = y.size
    kept, start = KeptHessian(), np.zeros(0)
    rng = np.random.default_rng(9)
    s, ridge = np.ones(n), 0.0
    for step, size in enumerate((60, 150, 300, 300, 300)):
        if step == 3:
            s = rng.uniform(0.5, 2.0, size=n)
        if step == 4:
            ridge = 0.5
        start = np.concatenate([start, np.zeros(size - start.size)])
        options = {"price": np.ones(size), "level": 0.4, "intercept": True, "ridge": ridge}
        columns = np.asfortranarray(X[:, :size])
        mine, shift, _ = fit(columns, y, s, losses.as_loss(loss), start, kept=kept, **options)
        given = problem.Problem.build(
            designs.as_design(columns), y, losses.as_loss(loss),
            problem.Regularizer(norms.L1(), "penalized", 0.4), tau=ridge, fit_intercept=True,
            sample_weight=s,
        )  # fmt: skip
        assert priced(given, mine, shift).relative_gap < 1e-9
        start = mine


def test_ends_where_the_gap_is_small_or_time_is_up():
    X, y = wide("logistic", 10)
    n, p = X.shape
    level = problem.Regularizer(norms.L1(), "penalized", 0.2)
    given = problem.Problem.build(designs.as_design(X), y, losses.Logistic(), level)
    options = {"price": np.ones(p), "level": 0.2}
    steps = []
    for gap in (1.0, 1e-3, 1e-9):
        weights, shift, made = fit(
            X, y, np.ones(n), losses.Logistic(), np.zeros(p), gap=gap, **options
        )
        steps.append(made)
        assert priced(given, weights, shift).gap <= 2.0 * gap
    assert steps[0] < steps[1] <= steps[2]
    options["seconds"] = -1.0
    weights, _, made = fit(X, y, np.ones(n), losses.Logistic(), np.zeros(p), **options)
    assert made == 0
    assert not weights.any()


@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_a_metric_takes_the_place_of_squares(loss):
    """The weights of atoms U, whose ridge term is w'U'U w, in two parts with one kept Hessian."""
    rng = np.random.default_rng(13)
    X, y = wide(loss, 13, p=40)
    U, kept, start = rng.normal(size=(50, 40)), KeptHessian(), np.zeros(0)
    for size in (15, 40):
        M, start = U[:, :size].T @ U[:, :size], np.append(start, np.zeros(size - start.size))
        options = {"price": np.ones(size), "level": 0.4, "signed": False, "intercept": True}
        weights, shift, _ = fit(
            X[:, :size], y, np.ones(y.size), losses.as_loss(loss), start, ridge=0.1, metric=M,
            kept=kept, **options,
        )  # fmt: skip
        rays = problem.Regularizer(norms.Nonnegative(norms.L1()), "penalized", 0.4)
        given = problem.Problem.build(
            designs.as_design(X[:, :size]), y, losses.as_loss(loss), rays, tau=0.1,
            fit_intercept=True,
        )  # fmt: skip
        assert priced(replace(given, metric=M), weights, shift).relative_gap < 1e-9
        start = weights


def test_an_error_of_the_loss_is_told():
    """It passes through the kernel, which leaves the Hessian free for the next call."""

    class Broken(losses.as_loss("logistic").__class__.__base__):
        """Fails at the first gradient."""

        curvature_bounds, check_target, conjugate = (0.0, 1.0), None, None

        def value(self, y, prediction, weight):
            return 1.0

        def gradient(self, y, prediction, weight):
            raise ZeroDivisionError("no slope")

        curvature = gradient

    kept, ones = KeptHessian(), np.ones(3)
    with pytest.raises(ZeroDivisionError, match="no slope"):
        fit(np.eye(3), ones, ones, Broken(), np.zeros(3), price=ones, kept=kept)
    weights, _, _ = fit(
        np.eye(3), ones, ones, losses.Squared(), np.zeros(3), price=ones, level=0.1, kept=kept
    )
    np.testing.assert_allclose(weights, 0.9)


def test_threads_that_share_a_kept_hessian_end_at_their_optima():
    """One of them has it at a time, the others work on one of their own."""
    rng = np.random.default_rng(0)
    kept, tasks = KeptHessian(), [task(rng, "logistic", "penalized") for _ in range(8)]

    def end(at):
        weights, shift, _ = by_kernel(at, kept=kept)
        return priced(at, weights, shift).relative_gap

    with ThreadPoolExecutor(4) as pool:
        assert max(pool.map(end, 10 * tasks)) < 1e-9


def test_a_hessian_of_other_columns_is_not_used():
    X, y = wide("squared", 11)
    n, kept = y.size, KeptHessian()
    options = {"level": 0.4, "kept": kept}
    fit(X, y, np.ones(n), losses.Squared(), np.zeros(300), price=np.ones(300), **options)
    few = np.asfortranarray(X[:, :20])
    mine, _, _ = fit(
        few, y, np.ones(n), losses.Squared(), np.zeros(20), price=np.ones(20), **options
    )
    alone, _, _ = fit(
        few, y, np.ones(n), losses.Squared(), np.zeros(20), price=np.ones(20), level=0.4
    )
    np.testing.assert_allclose(mine, alone, atol=1e-12)


def test_successors_of_a_block_do_not_share_a_hessian():
    """Two blocks that grow out of one have other columns at the same places."""
    X, y = wide("squared", 12)
    level = problem.Regularizer(norms.L1(), "penalized", 0.4)
    base = CachedBlock(DenseBlock(np.asfortranarray(X[:, :10])))
    for some in (X[:, 10:150], X[:, 150:290]):
        block = base.append(DenseBlock(np.asfortranarray(some)))
        given = problem.Problem.build(block, y, losses.Squared(), level)
        refit = choose_master(given).solve(given, np.zeros(150), 0.0, 1e-9)
        assert refit.gap <= 1e-9
        assert refit.steps < 50


@pytest.mark.parametrize("loss", ["huber", "logistic", "poisson", "squared"])
@pytest.mark.parametrize("sparse", [False, True])
def test_levels_on_their_way_together_end_where_each_ends_alone(loss, sparse):
    """More levels than fit on the way at once, one of them twice, with a ridge that differs."""
    rng = np.random.default_rng(14)
    X = rng.normal(size=(90, 40)) * (rng.random((90, 40)) < 0.5)
    y = X[:, :5] @ rng.normal(size=5) + 0.3 * rng.normal(size=90)
    y = {"logistic": np.sign(y), "poisson": np.floor(np.exp(np.minimum(y, 2.0)))}.get(loss, y)
    the_loss, s = losses.as_loss(loss), rng.uniform(0.5, 2.0, size=90)
    levels = 8.0 * 0.8 ** np.array([0, 1, 2, 3, 3, *range(4, 16)])
    terms = np.array([[level, 0.0, 0.1 * level, np.inf] for level in levels])
    given = sp.csc_array(X) if sparse else X
    weights, shifts, _ = newton_qp(
        given, y, s, the_loss, np.zeros(40), price=np.ones(40), terms=terms,
        basis=np.ones((1, 90)), share=1e-8,
    )  # fmt: skip
    assert len(weights) == len(levels)
    for w, [shift], level in zip(weights, shifts, levels, strict=True):
        at = problem.Problem.build(
            designs.as_design(X), y, the_loss, problem.Regularizer(norms.L1(), "penalized", level),
            tau=0.1 * level, fit_intercept=True, sample_weight=s,
        )  # fmt: skip
        assert priced(at, w, shift).relative_gap < 1e-7
    np.testing.assert_allclose(weights[3], weights[4], atol=1e-3)


def test_time_that_is_up_leaves_the_levels_that_have_begun():
    X, y = wide("logistic", 15)
    terms = np.array([[level, 0.0, 0.0, np.inf] for level in (3.0, 2.0, 1.0, 0.5)])
    weights, shifts, steps = newton_qp(
        X, y, np.ones(y.size), losses.Logistic(), np.zeros(300), price=np.ones(300), terms=terms,
        seconds=-1.0,
    )  # fmt: skip
    assert weights.shape == (1, 300)
    assert shifts.shape == (1, 0)
    assert steps == 0


@pytest.mark.parametrize("loss", ["huber", "logistic", "squared"])
@pytest.mark.parametrize("sparse", [False, True])
def test_free_columns_are_columns_of_the_model(loss, sparse):
    """What the free columns explain is nobody else's: the slopes along them vanish at the end."""
    X, y = wide(loss if loss == "logistic" else "huber", 16)
    rng = np.random.default_rng(16)
    Q = np.linalg.qr(np.column_stack([np.ones(y.size), rng.normal(size=(y.size, 2))]))[0]
    y = np.sign(y + Q[:, 1] * 9.0) if loss == "logistic" else y + Q @ [3.0, -20.0, 10.0]
    the_loss, ones = losses.as_loss(loss), np.ones(y.size)
    weights, shifts, _ = newton_qp(
        sp.csc_array(X) if sparse else X, y, ones, the_loss, np.zeros(300), price=np.ones(300),
        terms=np.array([[0.8, 0.0, 0.0, np.inf]]), basis=Q.T,
    )  # fmt: skip
    slope = the_loss.gradient(y, X @ weights[0] + Q @ shifts[0], ones)
    np.testing.assert_allclose(Q.T @ slope, 0.0, atol=1e-7)
    scores = X.T @ slope
    assert np.abs(scores).max() <= 0.8 * (1 + 1e-7)
    used = weights[0] != 0.0
    np.testing.assert_allclose(scores[used], -0.8 * np.sign(weights[0][used]), rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_a_loss_that_couples_all_samples(seed):
    rng = np.random.default_rng(seed)
    n, p = 80, 12
    X = rng.normal(size=(n, p))
    y = 3.0 * X[:, 0] + rng.uniform(0.0, 4.0, size=n)
    loss = Centered(y)
    s = rng.uniform(0.5, 2.0, size=n)
    Q = np.linalg.qr(rng.normal(size=(n, 2)))[0].T if seed % 3 else np.zeros((0, n))
    columns = sp.csc_array(X) if seed == 5 else X
    terms = np.array([[5.0, 0.0, 0.0, np.inf], [2.0, 0.0, 0.0, np.inf]])
    weights, shifts, steps = newton_qp(
        columns, y, s, loss, np.zeros(p), price=np.ones(p), terms=terms, basis=Q, share=1e-13
    )
    assert 0 < steps < 60
    for w, c, (level, *_) in zip(weights, shifts, terms, strict=True):
        slope = loss.gradient(y, X @ w + c @ Q, s)
        np.testing.assert_allclose(Q @ slope, 0.0, atol=1e-5)
        pull = -X.T @ slope
        np.testing.assert_allclose(pull[w != 0], level * np.sign(w[w != 0]), atol=1e-4)
        assert np.abs(pull).max() <= level + 1e-4


class Centered(losses.Squared):
    """The squared loss of what differs from the weighted mean of each block of samples."""

    coupled = 0
    curvature_bounds = 0.0, 1.0

    def __init__(self, y):
        self.blocks = np.unique(np.floor(y) % 4, return_inverse=True)[1]

    def _centered(self, r, s):
        of = self.blocks
        return r - (np.bincount(of, s * r) / np.bincount(of, s))[of]

    def value(self, y, z, s):
        return float(0.5 * s @ self._centered(y - z, s) ** 2)

    def gradient(self, y, z, s):
        return -s * self._centered(y - z, s)

    def curvature(self, y, z, s):
        return s

    def coupling(self, y, z, s):
        of = self.blocks
        K = s[:, None] * (of[:, None] == np.arange(of.max() + 1))
        return s, K / np.sqrt(np.bincount(of, s))
