"""The gauge by generation: against closed forms and linear programs, with a gap that holds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import linprog

from atomlearn.interfaces import Norm
from atomlearn.matrices.found import Found
from atomlearn.matrices.solver import supports
from atomlearn.norms import (
    L1,
    L2,
    Groups,
    KSupport,
    Scaled,
    SparsePSD,
    SparseRankOne,
    UserNorm,
)
from atomlearn.solvers import gauge_by_generation

Array = NDArray[np.float64]


@pytest.mark.parametrize(("n_features", "n_atoms"), [(3, 5), (6, 30), (16, 100)])
def test_hulls_of_points_against_a_linear_program(n_features: int, n_atoms: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        V = rng.standard_normal((n_atoms, n_features))

        def oracle(z: Array, V: Array = V) -> Array:
            best = int(np.abs(V @ z).argmax())
            return np.asarray(np.sign(V[best] @ z) * V[best])

        w = rng.standard_normal(n_features) * (rng.random(n_features) < 0.7) * 10.0 ** (seed - 5)
        A = np.vstack([V, -V]).T
        expected = linprog(np.ones(2 * n_atoms), A_eq=A, b_eq=w / 10.0 ** (seed - 5)).fun
        value, gap = gauge_by_generation(UserNorm(oracle), w)
        assert_allclose(value, expected * 10.0 ** (seed - 5), rtol=1e-8)
        assert gap <= 1e-8 * value


@pytest.mark.parametrize(
    "norm",
    [L1(), L2(), KSupport(3), Groups([[0, 1, 2], [3, 4]], weights=[2.0, 0.5])],
    ids=lambda norm: type(norm).__name__,
)
def test_norms_whose_value_is_known(norm: Norm) -> None:
    for seed in range(5):
        w = np.random.default_rng(seed).standard_normal(8)
        value, gap = gauge_by_generation(norm, w, gap=1e-6)
        slack = 1e-9 * value
        assert value - gap - slack <= norm.value(w) <= value + slack
        assert gap <= 1e-6 * value


def test_a_point_outside_the_cone_has_no_gauge() -> None:
    norm = UserNorm(lambda z: (np.array([z.argmax()]), np.ones(1)), symmetric=False)
    assert_allclose(gauge_by_generation(norm, np.array([1.0, 2.0, 0.0]))[0], 3.0, rtol=1e-10)
    assert gauge_by_generation(norm, np.array([1.0, -2.0, 0.0]), max_iter=200)[0] == math.inf
    assert gauge_by_generation(norm, -np.ones(3)) == (math.inf, math.inf)


def test_zero_and_bad_input() -> None:
    assert gauge_by_generation(L1(), np.zeros(4)) == (0.0, 0.0)
    with pytest.raises(ValueError, match=r"w\[1\] is nan"):
        gauge_by_generation(L1(), np.array([0.0, np.nan]))


@pytest.mark.parametrize("kind", ["pairs", "semidefinite"])
@pytest.mark.parametrize("seed", range(8))
def test_sparse_atoms_against_all_supports(kind: str, seed: int) -> None:
    """A cone program over every support; bounds that hold; W at the border of the cone, too."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 6))
    n = p if kind == "semidefinite" else int(rng.integers(2, 5))
    k, q = (int(size) for size in rng.integers(1, 4, size=2))
    W = rng.standard_normal((p, n))
    if kind == "semidefinite":
        W, q = np.zeros((p, p)), k
        for _ in range(3):
            u = np.zeros(p)
            u[rng.permutation(p)[:k]] = rng.standard_normal(min(k, p))
            W += np.outer(u, u)
    norm = SparsePSD(k, W.shape) if kind == "semidefinite" else SparseRankOne(k, q, W.shape)
    rows = list(itertools.combinations(range(p), min(k, p)))
    cols = list(itertools.combinations(range(n), min(q, n)))
    parts, total = [], 0
    pairs = list(zip(rows, rows, strict=True))
    for i, j in pairs if kind == "semidefinite" else itertools.product(rows, cols):
        Z = cp.Variable((len(i), len(j)), PSD=kind == "semidefinite")
        parts.append(cp.trace(Z) if kind == "semidefinite" else cp.normNuc(Z))
        total = total + np.eye(p)[:, list(i)] @ Z @ np.eye(n)[list(j)]
    program = cp.Problem(cp.Minimize(sum(parts)), [total == W])
    expected = program.solve(solver=cp.CLARABEL)
    value, gap = gauge_by_generation(norm, W.reshape(-1))
    assert_allclose(value, expected, rtol=2e-7)
    assert gap <= 1e-8 * value
    assert value - gap <= expected * (1 + 2e-7)
    doubled, _ = gauge_by_generation(Scaled(norm, 2.0), 3.0 * W.reshape(-1))
    assert_allclose(doubled, 6.0 * value, rtol=1e-8)


def test_a_missed_atom_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that sees the first entry only: the value is infinite or the gap stays open."""
    W = np.random.default_rng(0).standard_normal((4, 4))
    norm = SparseRankOne(2, 2, W.shape)
    exact, _ = gauge_by_generation(norm, W.reshape(-1))
    search = SparseRankOne._search

    def blind(self: SparseRankOne, matrix, count, accuracy, thorough):
        found = search(self, matrix, count, accuracy, thorough)
        Z = matrix.dense()
        u, v = np.zeros((4, 1)), np.zeros((4, 1))
        u[0], v[0] = 1.0, np.sign(Z[0, 0])
        value = abs(float(Z[0, 0]))
        return Found(u, v, np.array([value]), value, max(found.upper, value))

    monkeypatch.setattr(SparseRankOne, "_search", blind)
    value, gap = gauge_by_generation(norm, W.reshape(-1))
    assert value - gap <= exact * (1 + 1e-8) <= value * (1 + 2e-8)
    assert gap > 1e-3 * value


@pytest.mark.parametrize("k", [1, 2])
def test_semidefinite_parts_refuse_what_is_no_sum(k: int) -> None:
    """Not positive semidefinite, not symmetric, or too full for supports of one index."""
    for W in (-np.eye(3), np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.5], [0.5, 1.0]])):
        value, _ = gauge_by_generation(SparsePSD(k, W.shape), W.reshape(-1))
        inside = k == 2 and np.array_equal(W, W.T) and np.linalg.eigvalsh(W)[0] > 0
        assert math.isfinite(value) == inside


@pytest.mark.parametrize("enumerated", [True, False])
def test_semidefinite_parts_at_the_border_of_the_cone(
    enumerated: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few sparse atoms that overlap: the duals of most supports lie at infinity."""
    if not enumerated:
        monkeypatch.setattr(supports, "SETTINGS", replace(supports.SETTINGS, enumerated=0))
    for seed in range(12, 15):
        rng = np.random.default_rng(seed)
        U = np.zeros((6, 3))
        for column in range(3):
            U[rng.permutation(6)[:3], column] = rng.standard_normal(3)
        W, sets = U @ U.T, list(itertools.combinations(range(6), 3))
        parts = [cp.Variable((3, 3), PSD=True) for _ in sets]
        total = sum(
            np.eye(6)[:, list(rows)] @ Z @ np.eye(6)[list(rows)]
            for rows, Z in zip(sets, parts, strict=True)
        )
        program = cp.Problem(cp.Minimize(sum(cp.trace(Z) for Z in parts)), [total == W])
        expected = program.solve(solver=cp.CLARABEL)
        value, gap = gauge_by_generation(SparsePSD(3, (6, 6)), W.reshape(-1))
        # Without all supports the bound from below takes what limits only could prove.
        assert_allclose(value, expected, rtol=2e-7)
        assert value - gap <= expected * (1 + 2e-7)
        assert gap <= (1e-6 * value if enumerated else np.inf)
