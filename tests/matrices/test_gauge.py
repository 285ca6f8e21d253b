"""The gauge of matrix norms by generation, with a gap that holds."""

from __future__ import annotations

import itertools
import math

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.core import gauge_by_generation
from atomlearn.interfaces import Found
from atomlearn.norms import (
    SparsePSD,
    SparseRankOne,
)


@pytest.mark.parametrize(
    ("kind", "seed"),
    [("pairs", 0), ("pairs", 5), ("semidefinite", 1), ("semidefinite", 6)],
)
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
    value, gap = gauge_by_generation(norm, W.reshape(-1), tol=1e-6)
    assert_allclose(value, expected, rtol=2e-7)
    assert gap <= 1e-6 * value
    assert value - gap <= expected * (1 + 2e-7)


def test_a_missed_atom_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search that sees the first entry only makes up no other matrix: the gauge is infinite."""
    norm, search = SparseRankOne(2, 2, (3, 3)), SparseRankOne._search

    def blind(self: SparseRankOne, matrix, count, accuracy, thorough):
        found = search(self, matrix, count, accuracy, thorough)
        u, v, value = np.eye(3)[:, :1], np.eye(3)[:, :1], float(matrix.dense()[0, 0])
        return Found(u, np.sign(value) * v, np.array([abs(value)]), abs(value), found.upper)

    monkeypatch.setattr(SparseRankOne, "_search", blind)
    W = np.random.default_rng(0).standard_normal(9)
    assert gauge_by_generation(norm, W, max_iter=20) == (math.inf, math.inf)
    value, gap = gauge_by_generation(norm, np.eye(9)[0], max_iter=20)
    assert_allclose(value, 1.0)
    assert gap <= 1e-8


@pytest.mark.parametrize("k", [1, 2])
def test_semidefinite_parts_refuse_what_is_no_sum(k: int) -> None:
    """Not positive semidefinite, not symmetric, or too full for supports of one index."""
    for W in (-np.eye(3), np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.5], [0.5, 1.0]])):
        value, _ = gauge_by_generation(SparsePSD(k, W.shape), W.reshape(-1), tol=1e-6, max_iter=100)
        inside = k == 2 and np.array_equal(W, W.T) and np.linalg.eigvalsh(W)[0] > 0
        assert math.isfinite(value) == inside
