"""Search for sparse atoms u u': power iterations, exchanges of indices, bounds, branch and bound.

max u'Au over unit u with at most k non-zeros, A symmetric, is NP-hard; see ``sparse_search``.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Deadline, Mask
from atomlearn.matrices.norms.sparse_search import (
    Branching,
    branched,
    forced_sum,
    never,
    top_sums,
    truncated,
)
from atomlearn.matrices.settings import SETTINGS

Indices = NDArray[np.int64]

#: Rounds of exchanges; indices that may leave a support in one, and exchanges then tried in full.
EXCHANGES, LEAVING, TRIALS = 50, 8, 4


def disc_bound(A: Array, k: int) -> float:
    """Return max_i a_ii + the k - 1 largest |a_ij|: Gershgorin's discs of every k x k block."""
    return float(_discs(A, k).max())


def _discs(A: Array, k: int) -> Array:
    magnitudes = np.abs(A)
    np.fill_diagonal(magnitudes, 0.0)
    radii = top_sums(magnitudes, k - 1) if k > 1 else np.zeros(A.shape[0])
    return np.asarray(np.diag(A) + radii)


def vector_starts(
    A: Array,
    k: int,
    top: Array,
    rng: np.random.Generator,
    sizes: tuple[int, int] = SETTINGS.quick_vectors,
) -> Array:
    """Return starting u: truncated eigenvectors, those of the best discs, and some at random."""
    n_discs, n_random = sizes
    best = np.argsort(-_discs(A, k), kind="stable")[:n_discs]
    discs = A[:, best].copy()
    # The center of its disc is always kept, the others are the nearest to it.
    discs[best, np.arange(best.size)] = 2.0 * np.abs(A[:, best]).max(axis=0) + 1e-300
    discs = truncated(discs, k)
    discs[best, np.arange(best.size)] = np.abs(discs).max(axis=0) * 0.5
    random = rng.normal(size=(A.shape[0], n_random))
    return truncated(np.column_stack([top, discs, random]), k)


def power_vectors(A: Array, k: int, U: Array, shift: float) -> Indices:
    """u = T_k((A + shift I) u) from every column of U; return the supports (s, k), distinct.

    ``shift`` makes the matrix positive semidefinite, so that no step lowers u'Au.
    """
    values = np.full(U.shape[1], -math.inf)
    for _ in range(SETTINGS.power_steps):
        images = A @ U
        reached = np.einsum("ij,ij->j", U, images)
        if (reached - 1e-12 * np.abs(reached) <= values).all():
            break
        values = reached
        U = truncated(images + shift * U, k)
    # Where every start is annihilated, the largest diagonal entry is one at least.
    found = [np.flatnonzero(u) for u in U.T] + [np.zeros(0, dtype=np.int64)]
    return np.unique([filled(A, k, support) for support in found], axis=0)


def filled(A: Array, k: int, support: Indices) -> Indices:
    """Return the support with the largest diagonal entries besides, k indices, increasing.

    More indices never lower the largest eigenvalue.
    """
    if support.size < k:
        order = np.argsort(-np.diag(A), kind="stable")
        more = order[~np.isin(order, support)][: k - support.size]
        support = np.concatenate([support, more])
    return np.sort(support)


def exchanged(
    A: Array, supports: Indices, deadline: Deadline = never
) -> tuple[Array, Array, Indices]:
    """Improve supports (s, k) by exchanges of one index while that helps; best first, distinct.

    Returns the largest eigenvalues (s',), their vectors (n, s') and the supports. All exchanges
    of one of the LEAVING smallest entries of u are rated by the largest eigenvalue over the span
    of the rest of u and the new unit vector, which bounds the new value from below; the best of
    them are tried: O(s k n) a round.
    """
    supports = supports.copy()
    values, X = _top_pairs(A, supports)
    open_ = np.arange(supports.shape[0])
    for _ in range(EXCHANGES):
        if supports.shape[1] == A.shape[0] or not open_.size or deadline.passed:
            break
        trials = _exchanges(A, supports[open_], values[open_], X[open_])
        size, count, k = trials.shape
        reached, vectors = _top_pairs(A, trials.reshape(-1, k))
        reached, rows = reached.reshape(size, count), np.arange(size)
        best = reached.argmax(axis=1)
        better = reached[rows, best] > values[open_] + 1e-13 * np.abs(values[open_])
        chosen, rows, best = open_[better], rows[better], best[better]
        values[chosen], supports[chosen] = reached[rows, best], trials[rows, best]
        X[chosen] = vectors.reshape(size, count, k)[rows, best]
        open_ = chosen
    order = np.argsort(-values, kind="stable")
    _, first = np.unique(supports[order], axis=0, return_index=True)
    order = order[np.sort(first)]
    U = np.zeros((A.shape[0], order.size))
    U[supports[order].T, np.arange(order.size)] = X[order].T
    return values[order], U, supports[order]


def supports_of(A: Array, k: int, U: Array) -> Indices:
    """Return the distinct supports of the columns of U, filled to k indices: (s, k)."""
    return np.unique([filled(A, k, np.flatnonzero(u)) for u in U.T], axis=0)


def vectors_on_supports(A: Array, supports: Indices) -> tuple[Array, Array]:
    """Return all eigenvectors of each block and their values: (n, s k) and (s k,)."""
    values, vectors = np.linalg.eigh(A[supports[:, :, None], supports[:, None, :]])
    size, k = supports.shape
    U = np.zeros((size, A.shape[0], k))
    U[np.arange(size)[:, None], supports] = vectors
    return U.transpose(1, 0, 2).reshape(A.shape[0], size * k), values.reshape(-1)


def _top_pairs(A: Array, supports: Indices) -> tuple[Array, Array]:
    """Return the largest eigenvalue of each block and its vector, (s,) and (s, k)."""
    values, vectors = np.linalg.eigh(A[supports[:, :, None], supports[:, None, :]])
    return values[:, -1], vectors[:, :, -1]


def _exchanges(A: Array, supports: Indices, values: Array, X: Array) -> Indices:
    """Return the exchanges that promise most for each support, (s, TRIALS, k)."""
    size, k = supports.shape
    n, rows = A.shape[0], np.arange(size)[:, None]
    n_leaving = min(k, LEAVING)
    places = np.argpartition(np.abs(X), n_leaving - 1, axis=1)[:, :n_leaving]
    x, out = X[rows, places], supports[rows, places]
    U = np.zeros((size, n))
    U[rows, supports] = X
    diagonal, rest = np.diag(A), np.maximum(1.0 - x * x, 0.0)
    # Without entry i: u'Au and A u of what is left, scaled to length 1.
    some = rest > 1e-12
    scale = np.where(some, rest, 1.0)
    left = (values[:, None] * (1.0 - 2.0 * x * x) + x * x * diagonal[out]) / scale
    left = np.where(some, left, diagonal.min())
    pull = (U @ A)[:, None, :] - x[:, :, None] * A[out]
    pull *= np.where(some, 1.0 / np.sqrt(scale), 0.0)[:, :, None]
    half = 0.5 * (left[:, :, None] - diagonal)
    promised = 0.5 * (left[:, :, None] + diagonal) + np.sqrt(half * half + pull * pull)
    promised[rows, :, supports] = -np.inf
    promised = promised.reshape(size, -1)
    count = min(TRIALS, n_leaving * (n - k))
    best = np.argpartition(-promised, count - 1, axis=1)[:, :count]
    trials = np.repeat(supports[:, None, :], count, axis=1)
    np.put_along_axis(trials, places[rows, best // n][:, :, None], (best % n)[:, :, None], axis=2)
    return np.sort(trials, axis=2)


def branch_vectors(
    A: Array, k: int, best: Branching, accuracy: float, deadline: Deadline = never
) -> Branching:
    """max u'Au by branch and bound over indices."""
    n = A.shape[0]
    magnitudes = np.abs(A)
    np.fill_diagonal(magnitudes, 0.0)
    diagonal = np.diag(A)
    tried = set[bytes]()

    def bounded(alive: Mask, keep: Mask) -> tuple[float, Array]:
        i = np.flatnonzero(alive)
        values, X = _top_pairs(A, i[None, :])
        part = magnitudes[np.ix_(i, i)]
        radii = top_sums(part, k - 1) if k > 1 else np.zeros(i.size)
        discs = float((diagonal[i] + radii).max())
        energy = diagonal[i] ** 2 + (top_sums(part * part, k - 1) if k > 1 else 0.0)
        u = np.zeros(n)
        u[i] = X[0]
        return min(float(values[0]), discs, math.sqrt(forced_sum(energy, keep[i], k))), u

    def improved(alive: Mask, keep: Mask, u: Array, best: Branching) -> Branching:
        order = np.argsort(-np.where(alive, np.abs(u) + 2.0 * keep, -1.0), kind="stable")
        support = filled(A, k, order[: min(k, int(alive.sum()))])
        if support.tobytes() in tried:  # of nodes below another, many begin at the same support
            return best
        tried.add(support.tobytes())
        values, U, _ = exchanged(A, support[None, :])
        if values[0] > best.value:
            return Branching(float(values[0]), U[:, 0], U[:, 0], best.bound)
        return best

    return branched([(slice(n), k)], n, bounded, improved, best, accuracy, deadline)
