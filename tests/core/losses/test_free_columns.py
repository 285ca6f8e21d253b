"""Free columns around any loss: the least value over their coefficients, and what proves it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from atomlearn import losses
from atomlearn.core import Array, FreeColumns, Loss, Offset, bare_loss, free_columns, loss_of_rows
from atomlearn.losses import Huber, Logistic, Multinomial, Poisson, Squared
from atomlearn.testing.loss_oracles import targets_of
from atomlearn.testing.tolerances import SAME_FLOAT64

N, Q = 24, 3
EPS = float(np.finfo(np.float64).eps)
INNER: dict[str, Loss] = {
    "squared": Squared(),
    "logistic": Logistic(),
    "poisson": Poisson(),
    "huber": Huber(1.0),
    "offset": Offset(Poisson(), np.linspace(-1.0, 1.0, N)),
    "multinomial": Multinomial(Q),
}
#: Makes the loss with two free columns, targets, predictions and weights for a seed.
Made = Callable[..., tuple[FreeColumns, Any, Array, Array]]


@pytest.fixture(params=INNER)
def made(request: pytest.FixtureRequest) -> Made:
    return partial(drawn, request.param)


def drawn(name: str, seed: int = 0) -> tuple[FreeColumns, Any, Array, Array]:
    """Return the loss with two free columns, targets, predictions and weights."""
    rng = np.random.default_rng(seed)
    inner = INNER[name]
    Z, z = rng.normal(size=(N, 2)), rng.normal(size=N)
    s = np.repeat(rng.uniform(0.5, 2.0, size=N // Q), Q)
    if name == "multinomial":
        y = np.eye(Q)[np.arange(N // Q) % Q].ravel()
    else:
        y = targets_of(bare_loss(inner), rng.normal(size=N))
    return FreeColumns(inner, Z, inner.coupled == 1), y, z, s


def test_the_value_is_the_least_and_the_coefficients_reach_it(made: Made) -> None:
    loss, y, z, s = made()
    columns = np.column_stack([loss.columns, np.full(N, float(loss.intercept))])
    best = minimize(lambda g: loss.inner.value(y, z + columns @ g, s), np.zeros(3)).fun
    assert_allclose(loss.value(y, z, s), best, rtol=1e-8)
    g, b = loss.free_part(y, z, s)
    assert (b != 0.0) == loss.intercept
    whole = z + loss.columns @ g + b
    if bare_loss(loss).coupled < 2:  # else the classes of a row may have moved alike
        assert_allclose(loss.whole(y, z, s), whole, atol=1e-12)
    assert_allclose(loss.inner.value(y, whole, s), loss.value(y, z, s), rtol=SAME_FLOAT64)
    assert_allclose(loss.curvature(y, z, s), loss.inner.curvature(y, whole, s))
    assert free_columns(loss) is loss
    assert loss.coupled == 0


def test_dual_points_are_balanced_and_prove_the_value(made: Made) -> None:
    loss, y, z, s = made()
    u = loss.gradient(y, z, s)
    basis = loss.basis
    assert np.abs(basis.T @ u).max() <= 1e-14 * np.linalg.norm(u)
    assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-14)
    f = loss.value(y, z, s)
    size = f + float(np.abs(u) @ np.abs(z))
    assert abs(f + loss.conjugate_along(y, z, u, s, 1.0) - z @ u) <= 1e-11 * size
    whole = loss.whole(y, z, s)
    part = loss.inner.conjugate_along(y, whole, u, s, 0.6)
    assert_allclose(loss.conjugate_along(y, z, u, s, 0.6), part)
    assert_allclose(loss.conjugate(y, 0.6 * u, s), loss.inner.conjugate(y, 0.6 * u, s))
    for along in basis.T:
        # Out of balance along one direction, and along the others not.
        assert loss.conjugate(y, u + 1e-6 * along, s) == np.inf
        assert loss.conjugate_along(y, z, u + 1e-6 * along, s, 0.6) == np.inf


def test_what_rounding_leaves_of_the_balance_is_told(made: Made) -> None:
    loss, y, z, s = made()
    u = loss.gradient(y, z, s) + 1e-3 * loss.basis[:, -1]
    c = loss.basis.T @ (loss.whole(y, z, s) - z)
    for dual in (u, 1e13 * (u - loss.basis @ (loss.basis.T @ u))):
        left = np.linalg.norm(loss.basis.T @ dual)
        left += EPS * (4.0 + np.sqrt(N)) * np.linalg.norm(dual)
        bound = 10.0 * left * (np.linalg.norm(c) + np.linalg.norm(z))
        bound += loss.inner.slack(y, z, dual, s)
        assert_allclose(loss.slack(y, z, dual, s), bound, rtol=0.05)


def test_nothing_that_was_asked_before_changes_an_answer(made: Made) -> None:
    used, y, z, s = made()
    others: list[tuple[Any, Array, Array]] = [(y, z, s), (y, z, 2.0 * s[::-1].copy()), (y, -z, s)]
    others.append((y.copy(), z, s))
    others.append((made(1)[1], z, s))
    for case in (*others, *reversed(others)):
        fresh = made()[0]
        assert_allclose(used.value(*case), fresh.value(*case), rtol=1e-11)
        atol = 1e-7 * float(np.abs(fresh.gradient(*case)).max())
        assert_allclose(used.gradient(*case), fresh.gradient(*case), atol=atol)


@pytest.mark.parametrize("name", ["squared", "logistic", "offset", "multinomial"])
def test_some_of_the_samples_have_coefficients_of_their_own(name: str) -> None:
    loss, y, z, s = drawn(name)
    for rows in (slice(6, 18), slice(0, N, 2), np.arange(3, 15)):
        if name == "multinomial" and isinstance(rows, slice) and rows.step:
            continue
        part = loss_of_rows(loss, rows)
        own = FreeColumns(loss_of_rows(loss.inner, rows), loss.columns[rows], loss.intercept)
        at = y[rows], z[rows], s[rows]
        assert_allclose(part.value(*at), own.value(*at), rtol=1e-12)
        assert part.value(*at) < loss_of_rows(loss.inner, rows).value(*at)
    for rows in (slice(0, N), slice(None), slice(0, 2 * N)):
        assert loss_of_rows(loss, rows) is loss


def test_columns_that_move_the_classes_of_a_row_alike_are_no_directions() -> None:
    """Each column of one covariate stands for a class; their sum changes no probability."""
    inner, rng = Multinomial(Q), np.random.default_rng(2)
    Z = np.kron(rng.normal(size=(N, 2)), np.eye(Q))
    y, z = np.eye(Q)[rng.integers(0, Q, N)].ravel(), rng.normal(size=N * Q)
    s = np.repeat(rng.uniform(0.5, 2.0, N), Q)
    loss = FreeColumns(inner, Z, False)
    assert loss.basis.shape == (N * Q, 2 * (Q - 1))
    assert_allclose(loss.basis.reshape(N, Q, -1).sum(axis=1), 0.0, atol=1e-14)
    best = minimize(lambda g: inner.value(y, z + Z @ g, s), np.zeros(6), options={"gtol": 1e-9})
    assert_allclose(loss.value(y, z, s), best.fun, rtol=1e-9)
    g, b = loss.free_part(y, z, s)
    assert b == 0.0
    assert_allclose(loss.inner.value(y, z + loss.columns @ g + b, s), best.fun, rtol=1e-9)


def test_intercepts_of_tasks_are_the_columns_of_ones_that_they_stand_for() -> None:
    inner, rng = Multinomial(Q), np.random.default_rng(3)
    y, z = np.eye(Q)[np.arange(N) % Q].ravel(), rng.normal(size=N * Q)
    s, at = np.ones(N * Q), slice(0, N * Q // 2)
    loss = FreeColumns.of_tasks(inner, N, Q)
    dense = FreeColumns(inner, np.tile(np.eye(Q), (N, 1)), False)
    assert_allclose(loss.basis.T @ loss.basis, np.eye(Q - 1), atol=1e-14)
    for one, other in ((loss, dense), (loss_of_rows(loss, at), loss_of_rows(dense, at))):
        case = y[at], z[at], s[at]
        case = case if one is not loss else (y, z, s)
        assert_allclose(one.value(*case), other.value(*case), rtol=1e-12)
        assert_allclose(one.free_part(*case)[0], other.free_part(*case)[0], atol=1e-9)
        assert_allclose(one.gradient(*case), other.gradient(*case), atol=1e-12)


def test_columns_that_depend_on_each_other_or_on_the_intercept_are_left_out() -> None:
    _, y, z, s = drawn("squared")
    Z = np.random.default_rng(4).normal(size=(N, 2))
    more = np.column_stack([Z, Z.sum(axis=1), np.ones(N), np.zeros(N)])
    one = FreeColumns(Squared(), Z, True)
    many = FreeColumns(Squared(), more, True)
    assert many.basis.shape == one.basis.shape == (N, 3)
    assert_allclose(many.value(y, z, s), one.value(y, z, s), rtol=1e-12)
    g, b = many.free_part(y, z, s)
    assert np.count_nonzero(g) == 2
    assert_allclose(
        many.inner.value(y, z + many.columns @ g + b, s), one.value(y, z, s), rtol=1e-12
    )


def test_what_newton_leaves_is_taken_off_by_factors(made: Made) -> None:
    """Entries of a dual point only shrink or grow alike: it stays in the domain."""
    loss, y, z, s = made()
    u = loss.inner.gradient(y, loss.whole(y, z, s) + 1e-4 * np.sin(np.arange(N)), s)
    assert np.abs(loss.basis.T @ u).max() > 1e-9 * np.linalg.norm(u)
    balanced = loss._balanced(u)
    assert np.abs(loss.basis.T @ balanced).max() <= 1e-14 * np.linalg.norm(u)
    assert_allclose(balanced, u, atol=1e-2 * float(np.abs(u).max()))
    assert np.isfinite(loss.conjugate(y, balanced, s))


@pytest.mark.parametrize("inner", [losses.Logistic(), losses.Multinomial(3)])
def test_the_hessian_with_free_columns_is_the_derivative_of_the_gradient(inner):
    rng = np.random.default_rng(3)
    n = 24
    y = (
        np.eye(3)[np.arange(8) % 3].ravel()
        if bare_loss(inner).coupled > 1
        else np.sign(rng.normal(size=n))
    )
    z, s = rng.normal(size=n), np.repeat(rng.uniform(0.5, 2.0, 8), 3)
    loss = FreeColumns(inner, rng.normal(size=(n, 2)), bare_loss(inner).coupled < 2)
    c, K = loss.coupling(y, z, s)
    step = 1e-5
    ahead, behind = (
        np.array([loss.gradient(y, z + sign * step * e, s) for e in np.eye(n)]) for sign in (1, -1)
    )
    found = np.diag(c) - K @ (K.T @ np.eye(n))
    assert_allclose(found, (ahead - behind) / (2.0 * step), atol=1e-6)
