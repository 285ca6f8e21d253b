"""Supports of sparse atoms, with the parts of a matrix on each of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array
from atomlearn.matrices.scores import DenseMatrix
from atomlearn.matrices.settings import SETTINGS

if TYPE_CHECKING:
    from atomlearn.matrices.norms.sparse import SparseNorm

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Supports(ABC):
    """Supports of k rows and q columns. places : (s, k q) entries of W, row after row."""

    places: Indices
    sides: tuple[int, int]

    #: Weight of ||Y||^2 / 2 in the barrier.
    pull = 0.0

    def take(self, Y: Array) -> Array:
        """Return Y_s for every s, (s, k, q)."""
        return Y.reshape(-1)[self.places].reshape(-1, *self.sides)

    def put(self, Z: Array, size: int) -> Array:
        """Return the sum of the Z_s, each at its places, (p q,)."""
        found: Array = np.bincount(self.places.reshape(-1), Z.reshape(-1), size).astype(np.float64)
        return found

    def put_squares(self, blocks: Array, size: int) -> Array:
        """Return the sum of (s, k, q, k, q) at its places, (p q, p q)."""
        index = self.places[:, :, None] * size + self.places[:, None, :]
        sums: Array = np.bincount(index.reshape(-1), blocks.reshape(-1), size**2).astype(np.float64)
        return sums.reshape(size, size)

    def reduced(self, W: Array) -> Array:
        """Return W in the coordinates of Y."""
        return W

    def whole(self, Y: Array) -> Array:
        """Return Y over all entries of W."""
        return Y

    def dual_value(self, W: Array, Y: Array) -> float:
        """Return <W, Y> for the dual whose polar is told by ``priced``."""
        return float((W * self.whole(Y)).sum())

    def total(self, Z: Array, shape: tuple[int, int]) -> Array:
        """Return the sum of the parts, over all entries of W."""
        return self.put(Z, shape[0] * shape[1]).reshape(shape)

    def joined(self, places: Indices) -> Supports:
        """Return these and more supports."""
        return replace(self, places=np.vstack([self.places, places]))

    def priced(
        self, norm: SparseNorm, Y: Array, n: int, thorough: bool
    ) -> tuple[float, float, Indices]:
        """Return bounds on the polar of Y, and the places of new supports that it violates."""
        k, q = self.sides
        found = norm.search(
            DenseMatrix(self.whole(Y)), SETTINGS.supports_together, thorough=thorough
        )
        new: list[Indices] = []
        for u, v, value in zip(found.left.T, found.right.T, found.values, strict=True):
            # Where there are fewer entries than may be, any others will do.
            rows = np.sort(np.argsort(-np.abs(u), kind="stable")[:k])
            cols = np.sort(np.argsort(-np.abs(v), kind="stable")[:q])
            if value > 1.0:
                new.append((rows[:, None] * n + cols).reshape(-1))
        return found.lower, found.upper, self.unknown(new)

    def unknown(self, places: list[Indices]) -> Indices:
        """Return those that are not among these supports, each once."""
        known = {place.tobytes() for place in self.places}
        new = {place.tobytes(): place for place in places if place.tobytes() not in known}
        return np.array(list(new.values()), dtype=np.int64).reshape(len(new), self.places.shape[1])

    @abstractmethod
    def log_det(self, Ys: Array) -> float:
        """Return the sum of the log determinants, -inf where one is not positive."""

    @abstractmethod
    def derivatives(self, Ys: Array) -> tuple[Array, Array]:
        """Return gradients (s, k, q) and Hessians (s, k, q, k, q) of -log det."""

    @abstractmethod
    def gauge(self, Z: Array) -> float:
        """Return the sum of the norms of the parts."""

    @abstractmethod
    def value(self, Z: Array, missed: Array) -> tuple[float, float]:
        """Return the value of W for parts that miss it by ``missed``, and by how much they do."""


class Pairs(Supports):
    """Supports (I, J) of atoms u v'."""

    __slots__ = ()

    @classmethod
    def covering(cls, shape: tuple[int, int], sides: tuple[int, int]) -> Pairs:
        """Return supports that cover all entries: without them the dual has no bound."""
        (p, n), (k, q) = shape, sides
        rows = [np.arange(k) + min(i, p - k) for i in range(0, p, k)]
        cols = [np.arange(q) + min(j, n - q) for j in range(0, n, q)]
        return cls(np.array([(r[:, None] * n + c).reshape(-1) for r in rows for c in cols]), sides)

    def log_det(self, Ys: Array) -> float:
        sigma = np.linalg.svd(Ys, compute_uv=False)
        if sigma.max() >= 1.0:
            return -np.inf
        return float(np.log1p(-sigma).sum() + np.log1p(sigma).sum())

    def derivatives(self, Ys: Array) -> tuple[Array, Array]:
        """2 Y G, and D -> 2 (1 - YY')^-1 D G + 2 Y G D'Y G, for G = (1 - Y'Y)^-1."""
        # By singular values, which keep the digits of 1 - sigma.
        U, sigma, Vt = np.linalg.svd(Ys, full_matrices=False)
        large = (sigma / (1.0 - sigma) * (sigma / (1.0 + sigma)))[:, None, :]
        left = (U * large) @ U.transpose(0, 2, 1) + np.eye(Ys.shape[1])
        right = (Vt.transpose(0, 2, 1) * large) @ Vt + np.eye(Ys.shape[2])
        pulled = Ys @ right
        blocks = 2.0 * np.einsum("sij,sab->siajb", left, right)
        blocks += 2.0 * np.einsum("sib,sja->siajb", pulled, pulled)
        return 2.0 * pulled, blocks

    def gauge(self, Z: Array) -> float:
        return float(np.linalg.svd(Z, compute_uv=False).sum())

    def value(self, Z: Array, missed: Array) -> tuple[float, float]:
        # Single entries are atoms: with them the parts make up W exactly.
        return self.gauge(Z) + float(np.abs(missed).sum()), 0.0


@dataclass(frozen=True, slots=True)
class Squares(Supports):
    """Supports (I, I) of atoms u u'.

    A semidefinite part of W has its range in that of W. Where W is singular the parts are therefore
    Z_s = B_s M_s B_s' for a basis B_s of the vectors on I within the range of W, in coordinates of
    the range: the duals of the parts beside it would go to infinity.

    basis : (p, r) orthonormal, of the range of W; null : (p, p - r), of the rest;
    inner : (s, r, k) the B_s in these coordinates, padded with zeros; every : all supports, where
    W is singular and they are not too many; the polar is then the largest value over their B_s.
    """

    basis: Array
    null: Array
    inner: Array
    every: Squares | None = None

    pull = SETTINGS.pull

    @classmethod
    def covering(cls, W: Array, k: int) -> Squares:
        """Return supports that cover all pairs of indices (all indices where k = 1)."""
        p, half = W.shape[0], max(k // 2, 1)
        blocks = [np.arange(i, min(i + half, p)) for i in range(0, p, half)]
        pairs = (
            list(combinations(blocks, 2)) if k > 1 and len(blocks) > 1 else [(b,) for b in blocks]
        )
        found = set()
        for pair in pairs:
            chosen = np.concatenate(pair)
            others = np.setdiff1d(np.arange(p), chosen)[: k - chosen.size]
            found.add(tuple(np.sort(np.concatenate([chosen, others])).tolist()))
        sets = np.array(sorted(found))
        values, Q = np.linalg.eigh(W)
        ranged = values > SETTINGS.zero_eigenvalue * np.abs(values).max()
        basis, null = (np.eye(p), Q[:, :0]) if ranged.all() else (Q[:, ranged], Q[:, ~ranged])
        empty = np.zeros((0, k * k), dtype=np.int64), (k, k), basis, null
        none, every = cls(*empty, np.zeros((0, basis.shape[1], k))), None
        if null.shape[1] and comb(p, k) <= SETTINGS.enumerated:
            every = none.joined(_squares(np.array(list(combinations(range(p), k))), p))
        return replace(none, every=every).joined(_squares(sets, p))

    def joined(self, places: Indices) -> Squares:
        """Return these and more supports; those without a vector in the range of W add nothing."""
        k, p = self.sides[0], self.basis.shape[0]
        inner = np.zeros((len(places), self.basis.shape[1], k))
        for number, place in enumerate(places):
            rows = place[:k] % p
            _, sigma, Vt = np.linalg.svd(self.null[rows].T, full_matrices=True)
            vectors = Vt[int((sigma > np.sqrt(SETTINGS.zero_eigenvalue)).sum()) :].T
            inner[number, :, : vectors.shape[1]] = self.basis[rows].T @ vectors
        both = np.concatenate([self.inner, inner])
        return replace(self, places=np.vstack([self.places, places]), inner=both)

    def reduced(self, W: Array) -> Array:
        """Return W in coordinates of its range."""
        return self.basis.T @ (0.5 * (W + W.T)) @ self.basis

    def whole(self, Y: Array) -> Array:
        """Return a dual over all entries of W: far below on what no part reaches."""
        far = SETTINGS.far * max(1.0, float(np.abs(Y).max()))
        return self.basis @ Y @ self.basis.T - far * (self.null @ self.null.T)

    def dual_value(self, W: Array, Y: Array) -> float:
        """Return <W, Y> in the range of W where the polar is that of all supports, else whole."""
        whole = self.every is None
        return float((W * self.whole(Y)).sum() if whole else (self.reduced(W) * Y).sum())

    def priced(
        self, norm: SparseNorm, Y: Array, n: int, thorough: bool
    ) -> tuple[float, float, Indices]:
        """Return bounds on the polar of Y, and the places of new supports that it violates."""
        if self.every is None:
            return super(Squares, self).priced(norm, Y, n, thorough)
        values = np.linalg.eigvalsh(self.every.take(Y))[:, -1]
        order = np.argsort(-values, kind="stable")[: SETTINGS.supports_together]
        polar = max(float(values[order[0]]), 0.0)
        violated = [self.every.places[number] for number in order if values[number] > 1.0]
        return polar, polar, self.unknown(violated)

    def take(self, Y: Array) -> Array:
        return np.asarray(self.inner.transpose(0, 2, 1) @ Y @ self.inner)

    def put(self, Z: Array, size: int) -> Array:
        sums = np.einsum("sik,skl,sjl->ij", self.inner, Z, self.inner, optimize=True)
        return np.asarray(sums.reshape(size))

    def put_squares(self, blocks: Array, size: int) -> Array:
        s, k = self.inner.shape[0], self.inner.shape[2]
        both = np.einsum("sia,sjb->ijsab", self.inner, self.inner).reshape(size, s, k * k)
        flat = blocks.reshape(s, k * k, k * k)
        left = np.einsum("xsa,sab->xsb", both, flat, optimize=True).reshape(size, -1)
        return np.asarray(left @ both.reshape(size, -1).T)

    def total(self, Z: Array, shape: tuple[int, int]) -> Array:
        r = self.basis.shape[1]
        return np.asarray(self.basis @ self.put(Z, r * r).reshape(r, r) @ self.basis.T)

    def log_det(self, Ys: Array) -> float:
        least = np.linalg.eigvalsh(np.eye(self.sides[0]) - Ys)
        return float(np.log(least).sum()) if least.min() > 0.0 else -np.inf

    def derivatives(self, Ys: Array) -> tuple[Array, Array]:
        """G, and D -> G D G, for G = (1 - Y)^-1."""
        values, P = np.linalg.eigh(Ys)
        inverse = (P / (1.0 - values)[:, None, :]) @ P.transpose(0, 2, 1)
        return inverse, np.einsum("sij,sab->siajb", inverse, inverse)

    def gauge(self, Z: Array) -> float:
        # Of what the padding is, nothing counts.
        return float(np.einsum("sik,skl,sil->", self.inner, Z, self.inner))

    def value(self, Z: Array, missed: Array) -> tuple[float, float]:
        return self.gauge(Z), float(np.linalg.norm(missed))


def _squares(sets: Indices, p: int) -> Indices:
    """Return the places of supports (I, I) for sets (s, k)."""
    return np.asarray((sets[:, :, None] * p + sets[:, None, :]).reshape(len(sets), -1))
