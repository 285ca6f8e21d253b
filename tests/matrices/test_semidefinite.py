"""Elliptope and doubly nonnegative matrices: CVXPY, enumeration, proofs that hold wherever."""

from __future__ import annotations

import itertools
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn import solve
from atomlearn.designs import Identity, Tasks
from atomlearn.interfaces import ArrayScores
from atomlearn.matrices.norms import semidefinite
from atomlearn.norms import DoublyNonnegative, Elliptope
from atomlearn.solvers import AtomGeneration
from atomlearn.testing.norms import NormChecks

Array = NDArray[np.float64]
NORMS = (Elliptope, DoublyNonnegative)


class SemidefiniteChecks(NormChecks):
    n_features = 9
    symmetric = False
    accuracy = 1e-8
    polar_accuracy = 1e-8

    def polar(self, z: Array) -> float:
        """Return the polar, and 0 where it is the rounding of 0."""
        found = super().polar(z)
        return found if found > 1e-9 * np.abs(z).max() else 0.0


class TestElliptopeChecks(SemidefiniteChecks):
    norm = Elliptope((3, 3))

    def inside(self, w: Array) -> Array:
        V = w.reshape(3, 3) + 0.1 * np.abs(w).max() * np.eye(3)
        V = V / np.maximum(np.linalg.norm(V, axis=1, keepdims=True), 1e-300)
        return (np.abs(w).max() * (V @ V.T)).reshape(-1)


class TestDoublyNonnegativeChecks(SemidefiniteChecks):
    norm = DoublyNonnegative((3, 3))

    def inside(self, w: Array) -> Array:
        V = np.abs(w.reshape(3, 3))
        return (V @ V.T / max(V.max(), 1e-300)).reshape(-1)


def symmetric(seed: int, p: int) -> Array:
    Z = np.random.default_rng(seed).standard_normal((p, p))
    return Z + Z.T


def membership(norm: Any, R: cp.Variable) -> tuple[list[Any], Any]:
    """Return the constraints of the cone, and the gauge on it, in CVXPY."""
    if isinstance(norm, Elliptope):
        gauge = cp.Variable(nonneg=True)
        return [cp.diag(R) == gauge], gauge
    return [R >= 0], cp.trace(R)


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize("p", [1, 2, 3, 5, 8, 12])
def test_the_polar_is_that_of_cvxpy(kind: Any, p: int) -> None:
    for seed in range(3):
        Z = symmetric(seed, p) - seed * np.eye(p)
        norm = kind((p, p))
        R = cp.Variable((p, p), PSD=True)
        constraints, gauge = membership(norm, R)
        program = cp.Problem(cp.Maximize(cp.sum(cp.multiply(Z, R))), [*constraints, gauge <= 1])
        best = program.solve(solver=cp.CLARABEL)
        scores = ArrayScores(Z.ravel())
        assert_allclose(norm.polar(scores), best, rtol=1e-6, atol=1e-7)
        atom = norm.best_atom(scores)
        if norm.polar(scores) > 1e-6:
            dense = np.zeros(p * p)
            dense[atom.columns] = atom.values
            assert_allclose(norm.value(dense), 1.0, rtol=1e-9)
            assert_allclose(dense @ Z.ravel(), norm.polar(scores), rtol=1e-8)
            assert dense @ Z.ravel() <= norm.polar(scores)


@pytest.mark.parametrize("kind", NORMS)
def test_bounds_hold_wherever_the_steps_end(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut after 0, 1, 2, ... steps, the two bounds are still on their sides, and close in."""
    Z = symmetric(4, 9)
    exact = kind((9, 9)).polar(ArrayScores(Z.ravel()))
    step = semidefinite.Program.step
    last = np.inf
    for most in range(12):
        left = [most]

        def cut(self: Any, at: Any, left: list[int] = left) -> Any:
            left[0] -= 1
            return step(self, at) if left[0] >= 0 else (at, 0.0)

        monkeypatch.setattr(semidefinite.Program, "step", cut)
        found = kind((9, 9))._best(Z)
        assert found.lower <= exact * (1 + 1e-9)
        assert found.upper >= exact * (1 - 1e-9)
        assert found.upper - found.lower <= last
        last = found.upper - found.lower
        assert_allclose(kind().value(found.R), 1.0, rtol=1e-9)


def test_the_elliptope_contains_the_cuts_and_is_at_most_pi_over_2_beyond_them() -> None:
    """max-cut by all sign vectors: equal for p <= 2, bounded for all [Nesterov 1998]."""
    strict = 0
    for p in (1, 2, 3, 5, 7):
        signs = np.array(list(itertools.product((-1.0, 1.0), repeat=p)))
        for seed in range(6):
            half = np.random.default_rng(seed).standard_normal((p, 2))
            Z = half @ half.T
            cut = float(np.einsum("si,ij,sj->s", signs, Z, signs).max())
            polar = Elliptope((p, p)).polar(ArrayScores(Z.ravel()))
            assert cut * (1 - 1e-9) <= polar <= np.pi / 2 * cut
            if p <= 2:
                assert_allclose(polar, cut, rtol=1e-8)
            strict += polar > 1.001 * cut
    # Of the 5-cycle the cuts have 4 edges of 5, and the elliptope (25 + 5 sqrt 5) / 8.
    cycle = np.roll(np.eye(5), 1, axis=1)
    laplacian = 2 * np.eye(5) - cycle - cycle.T
    polar = Elliptope((5, 5)).polar(ArrayScores(laplacian.ravel()))
    assert_allclose(polar / 4, (25 + 5 * np.sqrt(5)) / 8, rtol=1e-8)


def copositive(Z: Array) -> float:
    """Return max u'Zu over u >= 0, ||u|| = 1, by the eigenvectors of all principal submatrices."""
    best = -np.inf
    for size in range(1, len(Z) + 1):
        for some in itertools.combinations(range(len(Z)), size):
            values, vectors = np.linalg.eigh(Z[np.ix_(some, some)])
            for value, u in zip(values, vectors.T, strict=True):
                if (u >= -1e-12).all() or (u <= 1e-12).all():
                    best = max(best, float(value))
    return best


def test_doubly_nonnegative_is_completely_positive_up_to_four() -> None:
    for p in (2, 3, 4):
        for seed in range(6):
            Z = symmetric(seed, p)
            polar = DoublyNonnegative((p, p)).polar(ArrayScores(Z.ravel()))
            assert_allclose(polar, max(copositive(Z), 0.0), rtol=1e-7, atol=1e-9)
    # Of 5, the Horn matrix H is copositive, u'Hu >= 0, but it is not psd + nonnegative.
    H = np.array([[1 if abs(i - j) in (0, 2, 3) else -1 for j in range(5)] for i in range(5)])
    assert copositive(-1.0 * H) <= 1e-12
    polar = DoublyNonnegative((5, 5)).polar(ArrayScores(-1.0 * H.ravel()))
    assert_allclose(polar, np.sqrt(5) - 2, rtol=1e-7)


@pytest.mark.parametrize("kind", NORMS)
def test_values(kind: Any) -> None:
    norm = kind((3, 3))
    assert norm.value(2.0 * np.eye(3)) == pytest.approx(2.0 if kind is Elliptope else 6.0)
    assert norm.value(np.zeros((3, 3))) == 0.0
    assert norm.value(-np.eye(3)) == np.inf
    assert norm.value(np.array([[1.0, 0.5, 0], [0, 1, 0], [0, 0, 1]])) == np.inf
    negative = np.eye(3) - 0.3 * (np.ones((3, 3)) - np.eye(3))
    assert np.isinf(norm.value(negative)) == (kind is DoublyNonnegative)
    assert np.isinf(norm.value(np.diag([1.0, 2.0, 3.0]))) == (kind is Elliptope)
    with pytest.raises(ValueError, match="square"):
        kind((3, 2)).value(np.zeros(6))


@pytest.mark.parametrize("kind", NORMS)
@pytest.mark.parametrize(
    ("form", "amount"), [("penalized", 0.5), ("squared", 0.5), ("constrained", 0.7)]
)
def test_fits_prove_the_optimum_of_cvxpy(kind: Any, form: str, amount: float) -> None:
    p = 5
    target = np.eye(p) + 0.5 * symmetric(7, p)
    R = cp.Variable((p, p), PSD=True)
    constraints, gauge = membership(kind(), R)
    loss = 0.5 * cp.sum_squares(R - target)
    if form == "constrained":
        objective, strength = loss, {"radius": amount}
        constraints = [*constraints, gauge <= amount]
    else:
        penalty = gauge if form == "penalized" else 0.5 * cp.square(gauge)
        objective, strength = loss + amount * penalty, {"alpha": amount / p**2}
    best = cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
    kept: dict[str, Any] = {"norm": kind(), "form": form, "fit_intercept": False, "tol": 1e-4}
    fit = solve(Identity((p, p)), target.ravel(), **kept, **strength)
    assert fit.converged
    assert isinstance(kind().solver(1e-6), AtomGeneration)
    assert p * p * (fit.objective - fit.gap) <= best * (1 + 1e-7)
    assert_allclose(p * p * fit.objective, best, rtol=2e-4)
    assert np.isfinite(kind().value(fit.coef))
    assert fit.verify().lower <= fit.objective


def test_a_covariance_of_designs_of_tasks() -> None:
    """Not the identity as a design, and a logistic loss: the bound holds against CVXPY."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4))
    Y = np.where(X @ (np.eye(4) + 0.5) + rng.standard_normal((30, 4)) > 0, 1.0, -1.0)
    R = cp.Variable((4, 4), PSD=True)
    constraints, gauge = membership(Elliptope(), R)
    losses = cp.sum(cp.logistic(-cp.multiply(Y, X @ R)))
    best = cp.Problem(cp.Minimize(losses + 3.0 * gauge), constraints).solve(solver=cp.CLARABEL)
    settings: dict[str, Any] = {"loss": "logistic", "norm": "elliptope", "fit_intercept": False}
    fit = solve(Tasks(X, 4), Y.ravel(), alpha=3.0 / 120, tol=1e-6, **settings)
    assert fit.converged
    assert_allclose(120 * fit.objective, best, rtol=2e-6)
