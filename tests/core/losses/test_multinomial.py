"""The multinomial loss and free intercepts against finite differences and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import logsumexp

from atomlearn.core import FreeColumns, mean_loss
from atomlearn.losses import Logistic, Multinomial, Squared
from atomlearn.testing.cases import each

N, Q = 30, 4


def case(seed: int, q: int = Q, scale: float = 2.0):
    rng = np.random.default_rng(seed)
    Y = np.eye(q)[rng.integers(0, q, N)]
    weight = rng.uniform(0.2, 2.0, N)
    weight[:3] = 0.0
    return Y.ravel(), scale * rng.normal(size=N * q), np.repeat(weight, q)


@each("seed", range(5))
def test_value_gradient_and_conjugate(seed: int) -> None:
    y, z, s = case(seed)
    loss = Multinomial(Q)
    Z, Y = z.reshape(N, Q), y.reshape(N, Q)
    naive = float(s[::Q] @ (logsumexp(Z, axis=1) - (Y * Z).sum(axis=1)))
    assert_allclose(loss.value(y, z, s), naive, rtol=1e-12)
    gradient = loss.gradient(y, z, s)
    step = 1e-5
    for j in range(0, N * Q, 7):
        e = np.zeros(N * Q)
        e[j] = step
        slope = (loss.value(y, z + e, s) - loss.value(y, z - e, s)) / (2 * step)
        assert_allclose(gradient[j], slope, atol=1e-7)
    young = loss.value(y, z, s) + loss.conjugate(y, gradient, s) - float(z @ gradient)
    assert abs(young) < 1e-12 * (1 + abs(float(z @ gradient)))
    other = loss.gradient(y, -z, s)
    for share in (0.0, 0.3, 0.9):
        dual = share * gradient + (1 - share) * other
        assert loss.value(y, z, s) + loss.conjugate(y, dual, s) >= float(z @ dual) - 1e-10
    gradient[-1] += 1e-3
    assert loss.conjugate(y, gradient, s) == np.inf


@pytest.mark.parametrize("q", [2, 3, 7])
@pytest.mark.parametrize("scale", [0.1, 2.0, 30.0])
def test_curvature_bounds_the_hessian(q: int, scale: float) -> None:
    y, z, s = case(1, q, scale)
    loss = Multinomial(q)
    D = loss.curvature(y, z, s).reshape(N, q)
    for p, d, w in zip(loss.probabilities(z), D, s[::q], strict=True):
        H = w * (np.diag(p) - np.outer(p, p))
        assert np.linalg.eigvalsh(np.diag(d) - H)[0] >= -1e-12
        assert (d <= loss.curvature_bounds[1] * w * (1 + 1e-12)).all()


@pytest.mark.parametrize("scale", [0.1, 2.0])
@pytest.mark.parametrize("kind", ["multinomial", "free", "free of single predictions"])
def test_coupling_is_the_hessian(kind: str, scale: float) -> None:
    y, z, s = case(2, Q, scale)
    loss = {
        "multinomial": Multinomial(Q),
        "free": FreeColumns.of_tasks(Multinomial(Q), N, Q),
        "free of single predictions": FreeColumns.of_tasks(Logistic(), N, Q),
    }[kind]
    y = 2.0 * y - 1.0 if kind == "free of single predictions" else y
    c, K = loss.coupling(y, z, s)
    H = np.diag(c) - K @ (K.T @ np.eye(N * Q))
    step = 1e-5
    moved = step * np.eye(N * Q)
    numeric = [(loss.gradient(y, z + e, s) - loss.gradient(y, z - e, s)) for e in moved]
    assert_allclose(H, np.array(numeric) / (2 * step), atol=1e-7)


def test_coupling_where_a_class_has_no_samples() -> None:
    y, z, s = case(3)
    Y = y.reshape(N, Q)
    Y[:, 0] += Y[:, -1]
    Y[:, -1] = 0.0
    loss = FreeColumns.of_tasks(Multinomial(Q), N, Q)
    c, K = loss.coupling(y, z, s)
    H = (np.diag(c) - (K @ K.T).toarray()).reshape(N, Q, N, Q)
    assert np.isfinite(H).all()
    assert_allclose(H[:, -1], 0.0, atol=1e-14)
    assert_allclose(H[:, :, :, -1], 0.0, atol=1e-14)


def test_extreme_predictions() -> None:
    loss = Multinomial(3)
    y = np.array([1.0, 0, 0, 0, 1, 0])
    s = np.ones(6)
    for z in (np.array([1e4, 0, -1e4, 1e4, -1e4, 0.0]), np.array([40.0, 0, 0, 0, 40, 0])):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            value = loss.value(y, z, s)
            gradient = loss.gradient(y, z, s)
            young = value + loss.conjugate(y, gradient, s) - z @ gradient
        assert value > 0
        assert abs(young) <= 1e-12 * (value + abs(z) @ abs(gradient))


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([1.0, 0, 0], "3 indicators|2 indicators"),
        ([1.0, 1.0], "sum to 1"),
        ([-1.0, 2.0], "shares"),
        ([np.nan, 1.0], "NaN"),
    ],
)
def test_targets_are_checked(target: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Multinomial(2).check_target(target)
    with pytest.raises(ValueError, match="at least 2"):
        Multinomial(1)


@pytest.mark.parametrize("inner", [Multinomial(Q), Squared()])
@each("seed", range(5))
def test_free_intercepts_minimize(inner, seed: int) -> None:
    y, z, s = case(seed)
    loss = FreeColumns.of_tasks(inner, N, Q)

    def at(b):
        return inner.value(y, (z.reshape(N, Q) + b).ravel(), s)

    best = minimize(at, np.zeros(Q), method="BFGS", options={"gtol": 1e-9}).fun
    assert_allclose(loss.value(y, z, s), best, rtol=1e-10)
    assert_allclose(at(loss.free_part(y, z, s)[0]), best, rtol=1e-10)
    gradient = loss.gradient(y, z, s)
    assert np.abs(gradient.reshape(N, Q).sum(axis=0)).max() < 1e-13 * N
    young = loss.value(y, z, s) + loss.conjugate(y, gradient, s) - float(z @ gradient)
    assert abs(young) < 1e-11 * (1 + best)
    # A shift of a column changes nothing, and no unbalanced dual point is in the domain.
    shift = np.tile([3.0, -1.0, 0.0, 5.0], N)
    assert_allclose(loss.value(y, z + shift, s), best, rtol=1e-10)
    wrong = inner.gradient(y, z, s)
    assert loss.conjugate(y, wrong, s) == np.inf


@pytest.mark.parametrize("inner", [Multinomial(Q), Logistic()])
def test_free_intercepts_remember_nothing(inner) -> None:
    """Neither what was asked before nor in what order changes any answer."""
    y, z, s = case(0)
    y = y if inner.coupled > 1 else 2.0 * y - 1.0
    elsewhere = z + np.tile([30.0, -20.0, 5.0, 0.0], N)
    used, fresh = FreeColumns.of_tasks(inner, N, Q), FreeColumns.of_tasks(inner, N, Q)
    before = dict(vars(used))
    used.value(y, elsewhere, s)
    used.gradient(y, -elsewhere, s)
    assert vars(used) == before
    assert_allclose(used.value(y, z, s), fresh.value(y, z, s), rtol=1e-13)
    assert_allclose(used.gradient(y, z, s), fresh.gradient(y, z, s), atol=1e-12)


def test_a_class_without_weight_is_left_out() -> None:
    rng = np.random.default_rng(0)
    Y = np.eye(3)[rng.integers(0, 2, N)]
    z, s = rng.normal(size=3 * N), np.ones(3 * N)
    loss = FreeColumns.of_tasks(Multinomial(3), N, 3)
    two = FreeColumns.of_tasks(Multinomial(2), N, 2)
    y = Y.ravel()
    expected = two.value(Y[:, :2].ravel(), z.reshape(N, 3)[:, :2].ravel(), s[: 2 * N])
    assert_allclose(loss.value(y, z, s), expected, rtol=1e-12)
    b = loss.free_part(y, z, s)[0]
    assert np.isfinite(b).all()
    at = Multinomial(3).value(y, (z.reshape(N, 3) + b).ravel(), s)
    assert_allclose(at, expected, rtol=1e-12)


def test_balanced_duals_stay_in_the_domain_at_any_intercept() -> None:
    """The certificate is a bound even where b is far from optimal."""
    y, z, s = case(3)
    loss = Multinomial(Q)
    free = FreeColumns.of_tasks(loss, N, Q)
    moved = free._balanced(loss.gradient(y, z + np.tile([0.5, -0.4, 0.2, 0.0], N), s))
    conjugate = free.conjugate(y, moved, s)
    assert np.isfinite(conjugate)
    assert free.value(y, z, s) + conjugate >= float(z @ moved) - 1e-12


def test_means_probabilities_and_scores_of_rows() -> None:
    y, z, s = case(1)
    loss = Multinomial(Q)
    shares = loss.probabilities(z)
    assert_allclose(loss.mean(z), shares.ravel())
    assert_allclose(np.exp(loss.log_probabilities(z)), shares)
    assert_allclose(mean_loss(loss, y, z, s), loss.value(y, z, s) / s[::Q].sum())
    right = shares.argmax(axis=1) == y.reshape(N, Q).argmax(axis=1)
    assert_allclose(loss.score(y, z, s), np.average(right, weights=s[::Q]))


@pytest.mark.parametrize("shift", [-0.4, 0.0, 0.7])
def test_balanced_duals_of_single_predictions_stay_in_the_domain(shift) -> None:
    """They only shrink, whatever intercepts were found: Logistic's would leave [0, 1] else."""
    y, z, s = case(5)
    labels, loss = 2.0 * y - 1.0, FreeColumns.of_tasks(Logistic(), N, Q)
    plain = Logistic().gradient(labels, z + shift, s)
    u = loss._balanced(plain)
    assert np.abs(u.reshape(N, Q).sum(axis=0)).max() <= 1e-13 * N
    assert np.all(np.abs(u) <= np.abs(plain) * (1 + 1e-14))
    assert np.isfinite(loss.conjugate(labels, u, s))


@pytest.mark.parametrize("scale", [1.0, 8.0, 60.0])
@pytest.mark.parametrize("absent", [False, True])
def test_intercepts_are_the_best_however_far_they_are(scale, absent) -> None:
    """Newton steps keep every digit, and lead there from zero."""
    y, z, s = case(3, scale=scale)
    if absent:
        keep = y.reshape(N, Q)[:, 1] == 0
        y, z, s = (part.reshape(N, Q)[keep].ravel() for part in (y, z, s))
    loss = Multinomial(Q)
    b = FreeColumns.of_tasks(loss, y.size // Q, Q).free_part(y, z, s)[0]
    U = loss.gradient(y, z + np.tile(b, y.size // Q), s).reshape(-1, Q)
    assert np.abs(U.sum(axis=0)).max() <= 1e-12 * np.abs(U).sum()
    if absent:
        assert U[:, 1].max() <= 1e-12
    assert_allclose(b.sum(), 0.0, atol=1e-9)
