"""Newton steps by QPs in C++: where they end is priced by the problem, which shares no code."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn import designs, losses, norms, problem
from atomlearn._kernels import NEWTON_LOSSES, newton_qp
from atomlearn.core.masters.active_set import model_terms


def task(rng, loss, form, *, n=60, p=12, tau=0.0, intercept=True, signed=True, weights=None):
    """Return a problem whose level leaves about half of the columns out."""
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 2.0, size=p)
    y = X[:, :4] @ rng.normal(size=4) + 0.3 * rng.normal(size=n)
    the_loss = losses.as_loss(loss)
    if the_loss.is_classification:
        y = np.sign(y - np.median(y) + 1e-9)
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
    signed = norm.l1_weights(X.shape[1])
    price = norm.prices(X.shape[1]) if signed is None else signed
    level, coupling, radius = model_terms(task.regularizer)
    start = np.zeros(X.shape[1]) if weights is None else weights
    return newton_qp(
        X, task.y, task.weight, task.loss.in_kernel, start, shift, price=price, level=level,
        coupling=coupling, ridge=task.tau, radius=radius, signed=signed is not None,
        intercept=task.fit_intercept, **options,
    )  # fmt: skip


def priced(task, weights, shift):
    """Return the certificate at the best intercept of these weights."""
    linear = np.asarray(task.design.array) @ weights
    shift = task.optimal_intercept(linear, shift)
    return task.price(None, weights, linear + shift).certificate


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize("loss", sorted(NEWTON_LOSSES))
@pytest.mark.parametrize("seed", range(4))
def test_ends_at_the_optimum(loss, form, seed):
    rng = np.random.default_rng(seed)
    options = {
        "tau": 0.4 * (seed % 2),
        "intercept": seed < 2,
        "signed": seed != 3,
        "weights": rng.uniform(0.5, 2.0, size=12) if seed == 1 else None,
    }
    given = task(rng, loss, form, **options)
    weights, shift, steps = by_kernel(given, batch=1 + seed)
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
    before = given.objective(start, np.asarray(given.design.array) @ start + 0.3)
    for most in (1, 2, 3):
        weights, shift, steps = by_kernel(given, start, 0.3, most=most)
        after = given.objective(weights, np.asarray(given.design.array) @ weights + shift)
        assert steps <= most
        assert after < before


def test_samples_of_no_curvature_end_the_steps():
    # Every margin is beyond 1: no slope, nothing to do but to shrink the weights.
    X, y = np.eye(3), np.ones(3)
    weights, shift, steps = newton_qp(
        X, y, np.ones(3), "squared_hinge", np.full(3, 5.0), price=np.ones(3), level=0.1
    )
    assert steps == 0
    assert weights.tolist() == [5.0, 5.0, 5.0]
    assert shift == 0.0


def test_refuses_what_does_not_fit():
    X, ones = np.eye(3), np.ones(3)
    with pytest.raises(ValueError, match="target must have 3 entries"):
        newton_qp(X, np.ones(2), ones, "squared", np.zeros(3), price=ones)
    with pytest.raises(ValueError, match="price must have 3 entries"):
        newton_qp(X, ones, ones, "squared", np.zeros(3), price=np.ones(2))
    with pytest.raises(KeyError):
        newton_qp(X, ones, ones, "hinge", np.zeros(3), price=ones)
