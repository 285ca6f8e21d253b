"""Every norm of matrices on random small cases, against SVD, eigenvalues, enumeration and CVXPY.

A thousand cases a norm: polar, its bounds and the best atom against the decomposition, or against
all supports one by one; the value against the formula, or, where it is a convex program (tensors,
sums of norms) or NP-hard (sparse atoms), against CVXPY with Clarabel over all supports.
"""

from __future__ import annotations

import itertools
import math
import time
import warnings
from abc import ABC, abstractmethod
from functools import cache
from typing import Any

import cvxpy as cp
import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.solvers.gauge import gauge_by_generation
from atomlearn.interfaces import Norm
from atomlearn.norms import L1, PSD, Scaled, SparsePSD, SparseRankOne, TensorTrace, TraceNorm, Union
from benchmarks.harness import Options, Table

Array = NDArray[np.float64]
Generator = np.random.Generator


class Case(ABC):
    """One norm on matrices of one random shape, with what it is by definition."""

    def __init__(self, rng: Generator) -> None:
        p, q = (int(side) for side in rng.integers(1, 7, size=2))
        self.rng, self.shape = rng, (p, q)
        self.norm: Norm = self.build()

    @abstractmethod
    def build(self) -> Norm:
        """Return the norm for this shape, which may be changed."""

    @abstractmethod
    def polar(self, Z: Array) -> float:
        """Return the polar from the definition."""

    @abstractmethod
    def value(self, W: Array) -> float:
        """Return the value from the definition."""

    def point(self) -> Array:
        """Return a W of finite value."""
        return self.scores()

    def scores(self) -> Array:
        """Return scores of some kind: normal, heavy tails, zeros, ties."""
        Z = self.rng.standard_normal(self.shape)
        kind = int(self.rng.integers(4))
        if kind == 1:
            Z = self.rng.standard_cauchy(self.shape)
        if kind == 2:
            Z = np.where(self.rng.random(self.shape) < 0.5, 0.0, Z)
        if kind == 3:
            Z = np.rint(2.0 * Z)
        return Z if Z.any() else np.ones(self.shape)

    def square(self) -> None:
        """Make the shape square."""
        self.shape = (self.shape[0], self.shape[0])


class Trace(Case):
    def build(self) -> Norm:
        return TraceNorm(self.shape)

    def polar(self, Z: Array) -> float:
        return float(np.linalg.svd(Z, compute_uv=False)[0])

    def value(self, W: Array) -> float:
        return float(np.linalg.svd(W, compute_uv=False).sum())


class Semidefinite(Case):
    def build(self) -> Norm:
        self.square()
        return PSD(self.shape)

    def polar(self, Z: Array) -> float:
        return max(0.0, float(np.linalg.eigvalsh(0.5 * (Z + Z.T))[-1]))

    def value(self, W: Array) -> float:
        return float(np.linalg.eigvalsh(W).sum())

    def point(self) -> Array:
        Z = self.scores()
        return np.asarray(Z @ Z.T)


def subsets(n: int, k: int) -> list[list[int]]:
    return [list(chosen) for chosen in itertools.combinations(range(n), min(n, k))]


Sets = tuple[tuple[int, ...], ...]


@cache
def lifted_trace(shape: tuple[int, int], rows: Sets, cols: Sets, psd: bool) -> cp.Problem:
    """min sum ||Z_IJ||_* with sum Z_IJ = W over these pairs of supports; W is its parameter."""
    parts, total, W = [], 0, cp.Parameter(shape)
    for i, j in zip(rows, cols, strict=True):
        Z = cp.Variable((len(i), len(j)), PSD=psd)
        parts.append(cp.trace(Z) if psd else cp.normNuc(Z))
        total = total + np.eye(shape[0])[:, list(i)] @ Z @ np.eye(shape[1])[list(j)]
    return cp.Problem(cp.Minimize(sum(parts)), [total == W])


@cache
def latent_trace(shape: tuple[int, ...]) -> cp.Problem:
    """min sum_m ||weight_m (W_m)_(m)||_* with sum W_m = W; parameters: weights, and W."""
    index = np.arange(math.prod(shape)).reshape(shape)
    weights, W = cp.Parameter(len(shape), nonneg=True), cp.Parameter(index.size)
    parts, total = [], 0
    for mode, size in enumerate(shape):
        order = np.moveaxis(index, mode, 0).reshape(-1)
        Z = cp.Variable((size, index.size // size))
        parts.append(weights[mode] * cp.normNuc(Z))
        total = total + np.eye(index.size)[:, order] @ cp.vec(Z, order="C")
    return cp.Problem(cp.Minimize(sum(parts)), [total == W])


@cache
def sparse_and_low(shape: tuple[int, int]) -> cp.Problem:
    """min ||L||_* + mu ||S||_1 with L + S = W; parameters: mu, and W."""
    mu, W = cp.Parameter(nonneg=True), cp.Parameter(shape)
    L, S = cp.Variable(shape), cp.Variable(shape)
    cost = cp.normNuc(L) + mu * cp.sum(cp.abs(S))
    return cp.Problem(cp.Minimize(cost), [L + S == W])


def solved(program: cp.Problem, *values: Any) -> float:
    """Return the optimal value for these parameters, in the order they were made."""
    for parameter, value in zip(
        sorted(program.parameters(), key=lambda p: p.id), values, strict=True
    ):
        parameter.value = value
    return float(program.solve(solver=cp.CLARABEL))


class SparsePairs(Case):
    def build(self) -> Norm:
        self.shape = (min(self.shape[0], 5), min(self.shape[1], 5))
        self.k, self.q = (int(size) for size in self.rng.integers(1, 4, size=2))
        return SparseRankOne(self.k, self.q, self.shape)

    def pairs(self) -> list[tuple[list[int], list[int]]]:
        p, q = self.shape
        return list(itertools.product(subsets(p, self.k), subsets(q, self.q)))

    def polar(self, Z: Array) -> float:
        return max(float(np.linalg.norm(Z[np.ix_(rows, cols)], 2)) for rows, cols in self.pairs())

    def value(self, W: Array) -> float:
        rows, cols = zip(*((tuple(i), tuple(j)) for i, j in self.pairs()), strict=True)
        return solved(lifted_trace(self.shape, rows, cols, False), W)


class SparseComponents(Case):
    def build(self) -> Norm:
        self.square()
        self.k = int(self.rng.integers(1, 4))
        return SparsePSD(self.k, self.shape)

    def polar(self, Z: Array) -> float:
        A = 0.5 * (Z + Z.T)
        sets = subsets(A.shape[0], self.k)
        return max(0.0, *(float(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1]) for s in sets))

    def value(self, W: Array) -> float:
        sets = tuple(tuple(s) for s in subsets(W.shape[0], self.k))
        return solved(lifted_trace(self.shape, sets, sets, True), W)

    def point(self) -> Array:
        W = np.zeros(self.shape)
        for _ in range(3):
            support = self.rng.permutation(self.shape[0])[: self.k]
            u = np.zeros(self.shape[0])
            u[support] = self.rng.standard_normal(support.size)
            W += np.outer(u, u)
        return W


class Tensor(Case):
    def build(self) -> Norm:
        self.shape = tuple(int(side) for side in self.rng.integers(1, 4, size=3))  # type: ignore
        self.weights = self.rng.uniform(0.5, 2.0, 3)
        return TensorTrace(self.shape, self.weights.tolist())

    def unfolded(self, Z: Array, mode: int) -> Array:
        return np.moveaxis(Z, mode, 0).reshape(Z.shape[mode], -1)

    def polar(self, Z: Array) -> float:
        norms = [float(np.linalg.norm(self.unfolded(Z, m), 2)) / self.weights[m] for m in range(3)]
        return max(norms)

    def value(self, W: Array) -> float:
        return solved(latent_trace(W.shape), self.weights, W.reshape(-1))


class SparsePlusLowRank(Case):
    def build(self) -> Norm:
        self.mu = float(self.rng.uniform(0.2, 1.2))
        return Union([TraceNorm(self.shape), Scaled(L1(), self.mu)])

    def polar(self, Z: Array) -> float:
        return max(float(np.linalg.norm(Z, 2)), float(np.abs(Z).max()) / self.mu)

    def value(self, W: Array) -> float:
        return solved(sparse_and_low(self.shape), self.mu, W)


CASES: dict[str, type[Case]] = {
    "trace": Trace,
    "psd": Semidefinite,
    "sparse rank one": SparsePairs,
    "sparse psd": SparseComponents,
    "tensor trace": Tensor,
    "trace + l1": SparsePlusLowRank,
}


def errors(kind: type[Case], count: int) -> dict[str, Any]:
    """Return the worst relative errors of polar, best atom, bounds and value."""
    worst = dict.fromkeys(("polar_error", "atom_error", "bound_broken", "value_error"), 0.0)
    for seed in range(count):
        case = kind(np.random.default_rng(20_000 + seed))
        Z = case.scores()
        z, exact = Z.reshape(-1), case.polar(Z)
        scale = max(exact, 1e-3 * float(np.abs(Z).max()))  # polars of gauges may be 0
        norm, scores = case.norm, ArrayScores(z)
        lower, upper = norm.polar_bounds(ArrayScores(z))
        found: dict[str, float] = {
            "polar_error": abs(norm.polar(scores) - exact) / scale,
            "bound_broken": max(lower - exact, exact - upper, 0.0) / scale,
        }
        if hasattr(norm, "best_atom"):
            atom = norm.best_atom(scores)
            found["atom_error"] = abs(float(atom.values @ z[atom.columns]) - exact) / scale
        W = case.point()
        W = W / np.abs(W).max()
        found["value_error"] = _value_error(norm, W, case.value(W))
        for name, error in found.items():
            worst[name] = max(worst[name], error)
    return {"cases": count, **worst}


def _value_error(norm: Norm, W: Array, exact: float) -> float:
    """Return the relative error of the value; of its bounds the larger one."""
    if isinstance(norm, SparsePSD | SparseRankOne):
        value, gap = gauge_by_generation(norm, W.reshape(-1))
        return max(abs(value - exact), abs(value - gap - exact)) / exact
    return abs(norm.value(W.reshape(-1)) / exact - 1.0)


def main() -> None:
    """One row a norm."""
    options = Options.parse(__doc__)
    warnings.filterwarnings("ignore", message="Solution may be inaccurate")
    with Table("matrix_oracles", options) as table:
        for name, kind in CASES.items():
            began = time.perf_counter()
            count = 12 if options.smoke else 1000
            table.add(norm=name, **errors(kind, count))
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
