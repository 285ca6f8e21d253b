"""Search for sparse rank-one atoms u v': power iterations, bounds, branch and bound.

max u'Zv over unit u, v with at most k and q non-zeros is NP-hard. What is found is a bound from
below; from above there are the singular value, the largest k x q sums of squares, and, for small
matrices, branch and bound, which is exact when it ends and a bound whenever it is cut off.
Atoms u u' are searched for in ``sparse_vectors``.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Deadline, Mask
from atomlearn.matrices.settings import SETTINGS

Indices = NDArray[np.int64]

#: No deadline: searches go on to their end.
never = Deadline.never()


def truncated(M: Array, count: int) -> Array:
    """Return the columns of M with their ``count`` largest entries kept, scaled to length 1."""
    result = np.array(M)
    if count < M.shape[0]:
        drop = np.argpartition(-np.abs(M), count - 1, axis=0)[count:]
        np.put_along_axis(result, drop, 0.0, axis=0)
    norms = np.linalg.norm(result, axis=0)
    return np.asarray(result / np.where(norms > 0, norms, 1.0))


def pair_starts(
    Z: Array,
    q: int,
    right: Array,
    rng: np.random.Generator,
    sizes: tuple[int, int] = SETTINGS.quick,
) -> Array:
    """Return starting v: truncated singular vectors, the best rows, and some at random."""
    n_rows, n_random = sizes
    rows = truncated(Z.T, q)
    gains = np.einsum("ij,ji->i", Z, rows)
    best = np.argsort(-gains, kind="stable")[:n_rows]
    random = rng.normal(size=(Z.shape[1], n_random))
    return truncated(np.column_stack([right, rows[:, best], random]), q)


def power_pairs(
    Z: Array, k: int, q: int, V: Array, deadline: Deadline = never
) -> tuple[Array, Array, Array]:
    """Alternate u = T_k(Zv), v = T_q(Z'u), which never lowers u'Zv; return u, v, values."""
    U, values = truncated(Z @ V, k), np.full(V.shape[1], -math.inf)
    for _ in range(SETTINGS.power_steps):
        V = truncated(Z.T @ U, q)
        U = truncated(Z @ V, k)
        reached = np.einsum("ij,ij->j", U, Z @ V)
        if (reached <= values * (1 + 1e-12)).all() or deadline.passed:
            break
        values = reached
    best = np.argsort(-np.einsum("ij,ij->j", U, Z @ V), kind="stable")
    return _polished(Z, U[:, best], V[:, best], deadline)


def _polished(Z: Array, U: Array, V: Array, deadline: Deadline) -> tuple[Array, Array, Array]:
    """Return the best u, v on each pair of supports, best first, each pair of supports once.

    Those that promise most come first, for where time ends it.
    """
    seen: dict[tuple[bytes, bytes], None] = {}
    found: list[tuple[float, Array, Array]] = []
    for u, v in zip(U.T, V.T, strict=True):
        rows, cols = np.flatnonzero(u), np.flatnonzero(v)
        key = (rows.tobytes(), cols.tobytes())
        if key in seen or not rows.size or not cols.size:
            continue
        if found and deadline.passed:
            break
        seen[key] = None
        left, sigma, right = np.linalg.svd(Z[np.ix_(rows, cols)], full_matrices=False)
        new_u, new_v = np.zeros_like(u), np.zeros_like(v)
        new_u[rows], new_v[cols] = left[:, 0], right[0]
        found.append((float(sigma[0]), new_u, new_v))
    found.sort(key=lambda item: -item[0])
    if not found:
        return U[:, :0], V[:, :0], np.zeros(0)
    return (
        np.column_stack([item[1] for item in found]),
        np.column_stack([item[2] for item in found]),
        np.array([item[0] for item in found]),
    )


def pairs_on_supports(
    Z: Array, U: Array, V: Array, deadline: Deadline = never
) -> tuple[Array, Array, Array]:
    """Return all singular triplets on each pair of supports of u, v, best first: u, v, values."""
    seen: dict[tuple[bytes, bytes], tuple[Array, Array, Array]] = {}
    for u, v in zip(U.T, V.T, strict=True):
        rows, cols = np.flatnonzero(u), np.flatnonzero(v)
        key = (rows.tobytes(), cols.tobytes())
        if key not in seen and not (seen and deadline.passed):
            P, sigma, Qt = np.linalg.svd(Z[np.ix_(rows, cols)], full_matrices=False)
            left, right = np.zeros((Z.shape[0], sigma.size)), np.zeros((Z.shape[1], sigma.size))
            left[rows], right[cols] = P, Qt.T
            seen[key] = left, right, sigma
    left, right, values = (
        np.concatenate(parts, axis=-1) for parts in zip(*seen.values(), strict=True)
    )
    order = np.argsort(-values, kind="stable")
    return left[:, order], right[:, order], values[order]


def _top_sum(values: Array, count: int) -> float:
    """Return the sum of the ``count`` largest values."""
    if count >= values.size:
        return float(values.sum())
    return float(np.partition(values, values.size - count)[values.size - count :].sum())


def top_sums(M: Array, count: int) -> Array:
    """Return the sum of the ``count`` largest entries of each row."""
    if count >= M.shape[1]:
        return np.asarray(M.sum(axis=1))
    start = M.shape[1] - count
    return np.asarray(np.partition(M, start, axis=1)[:, start:].sum(axis=1))


def frobenius_bound(Z: Array, k: int, q: int) -> float:
    """Return a bound on sqrt of the largest k x q sum of squares, hence on the polar."""
    squares = Z * Z
    by_rows = _top_sum(top_sums(squares, q), k)
    by_cols = _top_sum(top_sums(squares.T, k), q)
    return math.sqrt(min(by_rows, by_cols))


@dataclass(frozen=True, slots=True)
class Branching:
    """A search tree over supports: the best value, with the vectors, and a bound on all values."""

    value: float
    left: Array
    right: Array
    bound: float


def branched(
    limits: Sequence[tuple[slice, int]],
    size: int,
    bounded: Callable[[Mask, Mask], tuple[float, Array]],
    improved: Callable[[Mask, Mask, Array, Branching], Branching],
    best: Branching,
    accuracy: float,
    deadline: Deadline,
) -> Branching:
    """Best-first branch and bound over indices that are left out or kept for good.

    Ends when bound <= (1 + accuracy) value, or after ``branch_nodes`` nodes, or when time is up,
    with the bound of those that are left: a bound in any case.

    Parameters
    ----------
    limits : parts of the indices, one behind the other, and how many a support has of each.
    bounded : a bound over the supports within some indices that hold others, and a vector that
        says how much each index matters.
    improved : the better of ``best`` and what such a vector leads to.
    """
    tie = itertools.count()
    alive, keep = np.ones(size, dtype=bool), np.zeros(size, dtype=bool)
    bound, vector = bounded(alive, keep)
    queue = [(-bound, next(tie), alive, keep, vector)]
    for _ in range(SETTINGS.branch_nodes):
        if not queue or -queue[0][0] <= best.value * (1 + accuracy) or deadline.passed:
            break
        _, _, alive, keep, vector = heapq.heappop(queue)
        best = improved(alive, keep, vector, best)
        shares = [_share(vector[at], alive[at], keep[at], count) for at, count in limits]
        weights = np.concatenate(shares)
        chosen = int(weights.argmax())
        if weights[chosen] < 0.0:
            continue  # the support itself: it has been tried
        for kept in (True, False):
            fewer, new_keep = alive.copy(), keep.copy()
            if kept:
                new_keep[chosen] = True
                for at, count in limits:
                    if new_keep[at].sum() == count:
                        fewer[at] &= new_keep[at]
            else:
                fewer[chosen] = False
            bound, below = bounded(fewer, new_keep)
            if bound > best.value * (1 + accuracy):
                heapq.heappush(queue, (-bound, next(tie), fewer, new_keep, below))
    remaining = max((-entry[0] for entry in queue), default=0.0)
    return Branching(best.value, best.left, best.right, max(best.value * (1 + accuracy), remaining))


def branch_pairs(
    Z: Array, k: int, q: int, best: Branching, accuracy: float, deadline: Deadline = never
) -> Branching:
    """max u'Zv by branch and bound over rows and columns."""
    p, n = Z.shape
    squares = Z * Z

    def bounded(alive: Mask, keep: Mask) -> tuple[float, Array]:
        i, j = np.flatnonzero(alive[:p]), np.flatnonzero(alive[p:])
        left, sigma, right = np.linalg.svd(Z[np.ix_(i, j)], full_matrices=False)
        part = squares[np.ix_(i, j)]
        energy = min(
            forced_sum(top_sums(part, q), keep[:p][i], k),
            forced_sum(top_sums(part.T, k), keep[p:][j], q),
        )
        both = np.zeros(p + n)
        both[i], both[p + j] = left[:, 0], right[0]
        return min(float(sigma[0]), math.sqrt(energy)), both

    def improved(alive: Mask, keep: Mask, both: Array, best: Branching) -> Branching:
        """Return the better of ``best`` and what power iterations reach from v."""
        U, V, values = power_pairs(Z, k, q, truncated(both[p:, None], q))
        if values.size and values[0] > best.value:
            return Branching(float(values[0]), U[:, 0], V[:, 0], best.bound)
        return best

    limits = (slice(p), k), (slice(p, p + n), q)
    return branched(limits, p + n, bounded, improved, best, accuracy, deadline)


def forced_sum(values: Array, forced: Mask, count: int) -> float:
    """Return the sum of the forced values and the largest others, ``count`` in all."""
    rest = count - int(forced.sum())
    return float(values[forced].sum()) + (_top_sum(values[~forced], rest) if rest > 0 else 0.0)


def _share(vector: Array, alive: Mask, keep: Mask, count: int) -> Array:
    """Return |vector| where there is something to decide, -1 elsewhere."""
    open_ = alive & ~keep if alive.sum() > count else np.zeros_like(alive)
    return np.where(open_, np.abs(vector), -1.0)
