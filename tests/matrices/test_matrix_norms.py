"""Norms of matrices against SVD, eigenvalues, enumeration of supports and CVXPY."""

from __future__ import annotations

import itertools
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.core import ArrayScores
from atomlearn.matrices.norms import sparse_search
from atomlearn.matrices.norms.spectral import lanczos
from atomlearn.matrices.scores import dense_matrix
from atomlearn.matrices.settings import SETTINGS
from atomlearn.norms import (
    L1,
    PSD,
    Scaled,
    SparsePSD,
    SparseRankOne,
    SpectralKSupport,
    TensorTrace,
    TraceNorm,
    Union,
)
from atomlearn.testing import tolerances
from atomlearn.testing.cases import each
from atomlearn.testing.norms import NormChecks

SEEDS = range(12)  # each kind of random_matrix


class TestTraceChecks(NormChecks):
    norm = TraceNorm((4, 2))
    n_features = 8


class TestSpectralKSupportChecks(NormChecks):
    norm = SpectralKSupport(2, (4, 3))
    n_features = 12


class TestPSDChecks(NormChecks):
    norm = PSD((3, 3))
    n_features = 9
    symmetric = False

    def inside(self, w: np.ndarray) -> np.ndarray:
        values, vectors = np.linalg.eigh(w.reshape(3, 3) + w.reshape(3, 3).T)
        values = np.abs(values) + 0.1 * np.abs(values).max()
        W = (vectors * values) @ vectors.T
        return (0.5 * (W + W.T)).reshape(-1)


def random_matrix(seed: int, square: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    p, q = rng.integers(1, 7, size=2)
    q = p if square else q
    Z = rng.standard_cauchy((p, q)) if seed % 3 == 1 else rng.normal(size=(p, q))
    if seed % 5 == 2:
        Z[rng.random((p, q)) < 0.5] = 0.0
    if seed % 7 == 3:
        Z = np.round(Z)
    return Z


def atom_of(norm, Z: np.ndarray) -> np.ndarray:
    atom = norm.on(Z.size, Z.shape).best_atom(ArrayScores(Z.reshape(-1)))
    dense = np.zeros(Z.size)
    dense[atom.columns] = atom.values
    return dense.reshape(Z.shape)


@each("seed", SEEDS)
def test_trace_norm_is_that_of_the_svd(seed: int) -> None:
    Z = random_matrix(seed)
    sigma = np.linalg.svd(Z, compute_uv=False)
    assert_allclose(TraceNorm().value(Z), sigma.sum())
    norm = TraceNorm(Z.shape)
    assert_allclose(norm.polar(ArrayScores(Z.reshape(-1))), sigma[0])
    atom = atom_of(TraceNorm(), Z)
    assert_allclose((atom * Z).sum(), sigma[0], atol=1e-12)
    if Z.any():
        assert_allclose(TraceNorm().value(atom), 1.0)
    found = norm.search(dense_matrix(Z), 3)
    assert_allclose(np.einsum("ij,ik,kj->j", found.left, Z, found.right), found.values, atol=1e-11)
    assert_allclose(found.values, sigma[:3])


@each("seed", SEEDS)
def test_spectral_ksupport_is_that_of_its_variational_form(seed: int) -> None:
    """gauge^2 = min tr(W' M^-1 W) over 0 <= M <= I, tr M <= k, by a cone program."""
    Z = random_matrix(seed)
    k = 1 + seed % min(Z.shape)
    norm = SpectralKSupport(k, Z.shape)
    sigma = np.linalg.svd(Z, compute_uv=False)
    assert_allclose(norm.polar(ArrayScores(Z.reshape(-1))), np.linalg.norm(sigma[:k]))
    if not Z.any():
        assert norm.value(Z) == 0.0
        return
    atom = atom_of(SpectralKSupport(k), Z)
    assert_allclose((atom * Z).sum(), np.linalg.norm(sigma[:k]))
    assert_allclose(norm.value(atom), 1.0)
    M = cp.Variable((len(Z), len(Z)), PSD=True)
    bounds = [np.eye(len(Z)) - M >> 0, cp.trace(M) <= k]
    scale = np.abs(Z).max()
    program = cp.Problem(cp.Minimize(cp.matrix_frac(Z / scale, M)), bounds)
    square = program.solve(solver=cp.CLARABEL, **tolerances.CLARABEL)
    assert_allclose(norm.value(Z), scale * np.sqrt(square), rtol=tolerances.ORACLE)


@pytest.mark.parametrize("k", [1, 3, 20, 25])
def test_bounds_of_large_matrices_hold_the_polar(k: int) -> None:
    """Rank 20 and noise, too large to be decomposed: the bounds hold and are close."""
    rng = np.random.default_rng(k)
    Z = rng.standard_normal((420, 20)) @ rng.standard_normal((20, 400))
    Z += 0.3 * rng.standard_normal(Z.shape)
    polar = np.linalg.norm(np.linalg.svd(Z, compute_uv=False)[:k])
    lower, upper = SpectralKSupport(k, Z.shape).polar_bounds(ArrayScores(Z.reshape(-1)))
    assert lower <= polar * (1 + 1e-12)
    assert polar <= upper * (1 + 1e-12)
    assert upper <= lower * (1 + 1e-4)


@each("seed", SEEDS)
def test_psd_is_that_of_the_eigenvalues(seed: int) -> None:
    Z = random_matrix(seed, square=True)
    top = float(np.linalg.eigvalsh(0.5 * (Z + Z.T))[-1])
    norm = PSD(Z.shape)
    scale = np.abs(Z).max(initial=0.0)
    assert_allclose(norm.polar(ArrayScores(Z.reshape(-1))), max(top, 0.0), atol=1e-12 * scale)
    atom = atom_of(PSD(), Z)
    assert_allclose((atom * Z).sum(), max(top, 0.0), atol=1e-11 * scale)
    assert_allclose(norm.value((Z @ Z.T).reshape(-1)), np.trace(Z @ Z.T))
    if scale:
        assert norm.value(-(Z @ Z.T).reshape(-1)) == np.inf
    skew = np.triu(Z, 1)
    if skew.any():
        assert norm.value((Z @ Z.T + skew).reshape(-1)) == np.inf


def supports(n: int, k: int) -> list[list[int]]:
    return [list(c) for c in itertools.combinations(range(n), min(n, k))]


@each("seed", SEEDS)
def test_sparse_rank_one_is_that_of_all_supports(seed: int) -> None:
    Z = random_matrix(seed)
    k, q = (int(x) for x in np.random.default_rng(seed + 1).integers(1, 5, size=2))
    pairs = itertools.product(supports(Z.shape[0], k), supports(Z.shape[1], q))
    best = max(np.linalg.norm(Z[np.ix_(rows, cols)], 2) for rows, cols in pairs)
    norm = SparseRankOne(k, q, Z.shape)
    scores = ArrayScores(Z.reshape(-1))
    assert_allclose(norm.polar(scores), best, rtol=1e-9)
    lower, upper = norm.polar_bounds(scores)
    assert lower <= best * (1 + 1e-12)
    assert best <= upper * (1 + 1e-12)
    found = norm.search(dense_matrix(Z), 5, thorough=True)
    assert_allclose(found.lower, best, rtol=1e-9)
    for u, v, value in zip(found.left.T, found.right.T, found.values, strict=True):
        assert np.count_nonzero(u) <= k
        assert np.count_nonzero(v) <= q
        assert_allclose([np.linalg.norm(u), np.linalg.norm(v)], 1.0)
        assert_allclose(u @ Z @ v, value, rtol=1e-9, atol=1e-12)


@each("seed", SEEDS)
def test_sparse_psd_is_that_of_all_supports(seed: int) -> None:
    Z = random_matrix(seed, square=True)
    k = int(np.random.default_rng(seed + 1).integers(1, 5))
    A = 0.5 * (Z + Z.T)
    tops = [np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in supports(A.shape[0], k)]
    best = max(0.0, *tops)
    norm = SparsePSD(k, Z.shape)
    scores, scale = ArrayScores(Z.reshape(-1)), 1e-12 * np.abs(Z).max(initial=0.0)
    assert_allclose(norm.polar(scores), best, rtol=1e-9, atol=scale)
    lower, upper = norm.polar_bounds(scores)
    assert lower <= best * (1 + 1e-12) + scale
    assert best <= upper * (1 + 1e-12) + scale
    found = norm.search(dense_matrix(Z), 5, thorough=True)
    for u, value in zip(found.left.T, found.values, strict=True):
        assert np.count_nonzero(u) <= k
        assert value > 0
        assert_allclose(np.linalg.norm(u), 1.0)
        assert_allclose(u @ A @ u, value, rtol=1e-9, atol=scale)


@pytest.mark.parametrize("kind", ["pairs", "vectors"])
def test_a_search_that_is_cut_off_still_bounds(monkeypatch, kind: str) -> None:
    """With two nodes only, branch and bound gives a bound that is above, not a guess."""
    monkeypatch.setattr(sparse_search, "SETTINGS", replace(SETTINGS, branch_nodes=2, starts=1))
    apart = 0
    for seed in range(15):
        Z = np.random.default_rng(seed).normal(size=(6, 6))
        scores = ArrayScores(Z.reshape(-1))
        if kind == "pairs":
            pairs = itertools.product(supports(6, 2), supports(6, 2))
            best = max(np.linalg.norm(Z[np.ix_(rows, cols)], 2) for rows, cols in pairs)
            lower, upper = SparseRankOne(2, 2, Z.shape).polar_bounds(scores, thorough=True)
        else:
            A = 0.5 * (Z + Z.T)
            best = max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in supports(6, 3))
            lower, upper = SparsePSD(3, Z.shape).polar_bounds(scores, thorough=True)
        assert lower <= best * (1 + 1e-12)
        assert best <= upper * (1 + 1e-12)
        apart += upper > lower * (1 + 1e-6)
    assert apart > 0, "two nodes always sufficed: the test shows nothing"


@pytest.mark.parametrize("k_of", [1, 2])
def test_sparse_norms_meet_known_ones(k_of: int) -> None:
    """k = q = 1 is l1; all of the sides is the trace norm, or the PSD gauge."""
    for seed in range(20):
        Z = random_matrix(seed, square=True)
        scores, n = ArrayScores(Z.reshape(-1)), Z.shape[0]
        if k_of == 1:
            assert_allclose(SparseRankOne(1, 1, Z.shape).polar(scores), np.abs(Z).max())
            diagonal = max(0.0, float(np.diag(Z).max()))
            assert_allclose(SparsePSD(1, Z.shape).polar(scores), diagonal, atol=1e-12)
        else:
            whole = TraceNorm(Z.shape).polar(scores)
            assert_allclose(SparseRankOne(n, n, Z.shape).polar(scores), whole)
            assert_allclose(
                SparsePSD(n, Z.shape).polar(scores), PSD(Z.shape).polar(scores), atol=1e-9
            )


@pytest.mark.parametrize("spectrum", ["flat", "cluster", "decay", "low rank"])
@pytest.mark.parametrize("accuracy", [1e-2, 1e-6])
def test_lanczos_bounds(spectrum: str, accuracy: float) -> None:
    """lower <= sigma_1 <= upper, as close as asked for; triplets are singular."""
    rng = np.random.default_rng(0)
    p, q = 90, 70
    U, V = np.linalg.qr(rng.normal(size=(p, q)))[0], np.linalg.qr(rng.normal(size=(q, q)))[0]
    sigma = {
        "flat": np.linspace(1.0, 0.9, q),
        "cluster": np.r_[np.full(5, 1.0), np.linspace(0.7, 0.0, q - 5)],
        "decay": 0.7 ** np.arange(q),
        "low rank": np.r_[3.0, 2.0, 1.0, np.zeros(q - 3)],
    }[spectrum]
    matrix = dense_matrix((U * sigma) @ V.T)
    found = lanczos(matrix, 3, accuracy)
    assert found.lower <= sigma[0] * (1 + 1e-12)
    assert found.upper >= sigma[0] * (1 - 1e-12)
    assert found.upper <= sigma[0] * (1 + accuracy) * (1 + 1e-9)
    assert_allclose(found.left.T @ found.left, np.eye(found.values.size), atol=1e-10)
    assert_allclose(found.right.T @ found.right, np.eye(found.values.size), atol=1e-10)
    reached = np.einsum("ij,ij->j", found.left, matrix.dot(found.right))
    assert_allclose(reached, found.values, rtol=1e-10)


def test_lanczos_that_is_cut_off_still_bounds() -> None:
    """Over many starts and few steps, no bound from above lies below sigma_1."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        Z = rng.normal(size=(40, 30))
        top = np.linalg.norm(Z, 2)
        for steps in (3, 10, 20):
            found = lanczos(dense_matrix(Z), 1, 0.0, max_steps=steps)
            assert found.lower <= top * (1 + 1e-12)
            assert top <= found.upper * (1 + 1e-12)


def latent_value(W: np.ndarray, weights: list[float]) -> float:
    """The latent trace norm as a cone program."""
    parts = [[cp.Variable(W.shape[1:]) for _ in range(W.shape[0])] for _ in weights]
    cost = 0
    for mode, (part, weight) in enumerate(zip(parts, weights, strict=True)):
        if mode == 0:
            unfolding = cp.vstack([cp.vec(slab, order="C") for slab in part])
        elif mode == 1:
            unfolding = cp.hstack(part)
        else:
            unfolding = cp.hstack([slab.T for slab in part])
        cost = cost + weight * cp.normNuc(unfolding)
    equal = [sum(part[i] for part in parts) == W[i] for i in range(W.shape[0])]
    problem = cp.Problem(cp.Minimize(cost), equal)
    return float(problem.solve(solver=cp.CLARABEL))


@each("seed", range(3))
def test_tensor_trace_is_that_of_the_cone_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    W, weights = rng.normal(size=(2, 3, 2)), [1.0, 0.8, 1.3]
    norm = TensorTrace((2, 3, 2), weights)
    assert_allclose(norm.value(W), latent_value(W, weights), rtol=1e-6)
    tops = [
        np.linalg.norm(np.moveaxis(W, mode, 0).reshape(W.shape[mode], -1), 2) / weight
        for mode, weight in enumerate(weights)
    ]
    scores = ArrayScores(W.reshape(-1))
    assert_allclose(norm.polar(scores), max(tops))
    atom = norm.best_atom(scores)
    assert_allclose(atom.values @ W.reshape(-1)[atom.columns], max(tops))


@each("seed", range(4))
def test_sparse_plus_low_rank_is_that_of_the_cone_program(seed: int) -> None:
    W, share = np.random.default_rng(seed).normal(size=(3, 4)), 0.4
    low, rest = cp.Variable((3, 4)), cp.Variable((3, 4))
    cost = cp.normNuc(low) + share * cp.sum(cp.abs(rest))
    optimum = cp.Problem(cp.Minimize(cost), [low + rest == W]).solve(solver=cp.CLARABEL)
    norm = Union([TraceNorm(), Scaled(L1(), share)])
    assert_allclose(norm.value(W), optimum, rtol=1e-6)
    polar = max(np.linalg.norm(W, 2), np.abs(W).max() / share)
    shaped = norm.on(W.size, W.shape)
    assert_allclose(shaped.polar(ArrayScores(W.reshape(-1))), polar)
    atom = atom_of(norm, W)
    assert_allclose((atom * W).sum(), polar)


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda: TraceNorm().polar(ArrayScores(np.ones(6))), "shape"),
        (lambda: TraceNorm((2, 2)).on(6), "6 columns"),
        (lambda: TraceNorm((2, 3)).value(np.ones((3, 2))), "shape"),
        (lambda: TraceNorm((2, 3)).on(6, (3, 2)), "leave shape out"),
        (lambda: PSD((2, 3)).on(6), "square"),
        (lambda: SparsePSD(0, (2, 2)).on(4), "at least 1"),
        (lambda: SparseRankOne(1, 1.5, (2, 2)).on(4), "whole number"),
        (lambda: SparsePSD(1).value(np.eye(40)), "NP-hard"),
        (lambda: Union([TraceNorm(), SparseRankOne(1, 1)]).value(np.eye(2)), "NP-hard"),
        (lambda: TensorTrace((2, 3), [1.0]).on(6), "one for each"),
        (lambda: TensorTrace((2, 3)).on(7), "6 entries"),
    ],
)
def test_refusals_name_the_remedy(act, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        act()
