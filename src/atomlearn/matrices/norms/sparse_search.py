"""Sparse PCA search for sparse rank-one atoms: local search, upper bounds, branch and bound.

The best atom u u' maximizes x'Ax over unit vectors x with at most k nonzero entries, A symmetric
(sparse PCA). The best atom u v' maximizes x'Ax for A = [0 Z; Z' 0] and x = (u, v) / sqrt(2), since
x'Ax = u'Zv. Here x has at most k nonzero entries in its first part and q in the second. One search
covers both. It looks for the best support of x, with a given number of indices in each part of x,
which is NP-hard. Local search over exchanges of indices gives lower bounds. Upper bounds are the
largest eigenvalue, Gershgorin discs, Frobenius norms, the convex relaxation, and branch and bound,
which is exact unless it is stopped early.
"""

from __future__ import annotations

import heapq
import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import Deadline
from atomlearn.core import Array, Mask
from atomlearn.matrices.norms.relaxation import RankOneRelaxation
from atomlearn.matrices.scores import symmetric_block
from atomlearn.matrices.settings import SETTINGS

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SparseSearch:
    """max x'Ax over unit x with at most ``limits[part]`` nonzero entries in each part.

    Attributes
    ----------
    A : (n, n) float64
        Symmetric matrix.
    labels : (n,) int64
        Part of each index, increasing.
    limits : tuple of int
        Largest number of indices of each part.
    deadline : Deadline
        Time at which the search returns its best result.
    flat : (n, n) float64, optional
        Part of A that branch and bound bounds by its largest entry, the rest by its eigenvalues.
    """

    A: Array
    labels: Indices
    limits: tuple[int, ...]
    deadline: Deadline
    flat: Array | None = None

    @classmethod
    def of_vectors(cls, A: Array, k: int, deadline: Deadline) -> SparseSearch:
        """Return the search for atoms u u' with at most k nonzero entries, for symmetric A (n, n).

        It ends at ``deadline``.
        """
        n = A.shape[0]
        return cls(A, np.zeros(n, dtype=np.int64), (min(k, n),), deadline)

    @classmethod
    def of_pairs(cls, Z: Array, k: int, q: int, deadline: Deadline) -> SparseSearch:
        """Return the search for atoms u v' with at most k and q nonzero entries.

        Z (p, n) are the scores, and the search ends at ``deadline``.
        """
        p, n = Z.shape
        return cls(symmetric_block(Z), np.repeat([0, 1], [p, n]), (min(k, p), min(q, n)), deadline)

    def best(self, top: Array, upper: float, thorough: bool) -> tuple[Array, Array, float]:
        """Return unit vectors x (n, t), their x'Ax (t,), decreasing, and an upper bound on x'Ax.

        Parameters
        ----------
        top : (n, s) array
            Eigenvectors at which the search starts.
        upper : float
            Bound on the largest eigenvalue.
        thorough : bool
            Whether to use branch and bound, too.
        """
        supports = self.exchanged(self._starts(top))
        lower = float(self._top_pairs(supports)[0].max())
        upper = min(upper, self._bound(np.zeros(self.labels.size, dtype=np.bool_)))
        # The expensive bounds are computed only if the cheap ones leave a gap.
        if thorough and upper > lower + SETTINGS.rounding * abs(lower):
            bound, flat = self._relaxed()
            upper = min(upper, bound)
            improved, bound = replace(self, flat=flat)._branched(lower)
            supports = np.vstack([improved, supports])
            upper = min(upper, bound)
        X, values = self.on_supports(supports)
        return X, values, max(upper, float(values.max(initial=0.0)))

    def supports(self, M: Array) -> Indices:
        """Return the supports of the largest entries of each column of M (n, t), one in each row.

        A support is an increasing array of indices, ``limits[part]`` of them in each part. Equal
        supports are returned once.
        """
        chosen = []
        for part, limit in enumerate(self.limits):
            members = np.flatnonzero(self.labels == part)
            chosen.append(members[np.argsort(-np.abs(M[members]), axis=0, kind="stable")[:limit]])
        return np.unique(np.sort(np.vstack(chosen), axis=0).T, axis=0)

    def on_supports(self, supports: Indices) -> tuple[Array, Array]:
        """Return the eigenvectors (n, t) of A restricted to each support, and their eigenvalues.

        Only positive eigenvalues are kept, of all supports together, in decreasing order.
        """
        # Each positive eigenvalue has the number of its support, and its rank there.
        values, vectors = np.linalg.eigh(self._blocks(supports))
        support, rank = np.nonzero(values > SETTINGS.accuracy * max(values.max(initial=0.0), 0.0))
        values = values[support, rank]
        vectors = vectors[support, :, rank]
        order = np.argsort(-values, kind="stable")
        X = np.zeros((self.labels.size, order.size))
        X[supports[support[order]].T, np.arange(order.size)] = vectors[order].T
        return X, values[order]

    def exchanged(self, supports: Indices) -> Indices:
        """Return supports (s, k), each improved by local search.

        A step swaps the index whose exchange raises the largest eigenvalue the most. A support is
        finished when no tried swap raises it.
        """
        supports = supports.copy()
        values, X = self._top_pairs(supports)
        unfinished = np.arange(values.size)
        while unfinished.size and not self.deadline.passed:
            # ``n_trials`` swaps are tried for each support; there are none if it has all indices.
            trials = self._exchanges(supports[unfinished], values[unfinished], X[unfinished])
            n_supports, n_trials, k = trials.shape
            if not n_trials:
                break
            eigenvalues = self._top_pairs(trials.reshape(-1, k))[0].reshape(n_supports, n_trials)
            best = trials[np.arange(n_supports), eigenvalues.argmax(axis=1)]
            # An improvement must exceed rounding.
            least = values[unfinished] + SETTINGS.rounding * np.abs(values[unfinished])
            improves = eigenvalues.max(axis=1) > least
            unfinished = unfinished[improves]
            supports[unfinished] = best[improves]
            values[unfinished], X[unfinished] = self._top_pairs(supports[unfinished])
        return np.unique(supports, axis=0)

    def _exchanges(self, supports: Indices, values: Array, X: Array) -> Indices:
        """Return t candidate swaps for each of s supports, (s, t, k).

        ``values`` (s,) and ``X`` (s, k) are the largest eigenvalues and eigenvectors x on the
        ``supports`` (s, k). Indices with the smallest entries of x leave. An index j enters if the
        largest eigenvalue on the span of x and the unit vector e_j is among the largest. With
        d = (x'Ax - A_jj) / 2 this eigenvalue is x'Ax - d + sqrt(d^2 + (Ax)_j^2).
        """
        # x with zeros outside of its support, and the eigenvalue that each index j would give.
        rows = np.arange(values.size)[:, None]
        padded = np.zeros((values.size, self.labels.size))
        padded[rows, supports] = X
        half_difference = 0.5 * (values[:, None] - np.diag(self.A))
        predicted = values[:, None] - half_difference + np.hypot(half_difference, padded @ self.A)
        predicted[rows, supports] = -np.inf
        trials = [np.zeros((values.size, 0, supports.shape[1]), dtype=np.int64)]
        # Within a part, each leaving index is paired with each entering one. ``positions`` are the
        # places of the part in a support.
        first = 0
        for part, limit in enumerate(self.limits):
            members = np.flatnonzero(self.labels == part)
            positions = np.arange(first, first + limit)
            leave = positions[np.argsort(np.abs(X[:, positions]), axis=1)[:, : SETTINGS.exchanges]]
            count = min(SETTINGS.exchanges, members.size - limit)
            enter = members[np.argsort(-predicted[:, members], axis=1)[:, :count]]
            swapped = np.repeat(supports[:, None, :], leave.shape[1] * count, axis=1)
            leaving = np.repeat(leave, count, axis=1)[:, :, None]
            np.put_along_axis(swapped, leaving, np.tile(enter, leave.shape[1])[:, :, None], axis=2)
            trials.append(np.sort(swapped, axis=2))
            first += limit
        return np.concatenate(trials, axis=1)

    def _starts(self, top: Array) -> Indices:
        """Return starting supports: from eigenvectors, large Gershgorin discs, random vectors.

        ``top`` (n, s) are eigenvectors of A.
        """
        count = SETTINGS.starts
        n = self.labels.size
        best = np.argsort(-self._discs(), kind="stable")[:count]
        discs = np.abs(self.A[:, best])
        # A support has the center of a disc first, then the indices j with the largest |A_ij| for
        # the center i. Ties are broken by a second step: the indices that these lead to.
        discs[best, np.arange(best.size)] = 2.0 * discs.max(initial=0.0) + 1.0
        discs += (
            1e-3 * np.abs(self.A) @ discs / max(float(np.abs(self.A).sum(axis=1).max()), 1e-300)
        )
        random = np.random.default_rng(0).normal(size=(n, count))
        return self.ranked(self.supports(np.hstack([top, discs, random])))

    def ranked(self, supports: Indices) -> Indices:
        """Return the supports with the largest eigenvalues, at most ``SETTINGS.starts`` of them."""
        order = np.argsort(-self._top_pairs(supports)[0], kind="stable")
        return supports[order[: SETTINGS.starts]]

    def _blocks(self, supports: Indices) -> Array:
        """Return the submatrices of A on these supports, (s, k, k)."""
        return np.asarray(self.A[supports[:, :, None], supports[:, None, :]])

    def _top_pairs(self, supports: Indices) -> tuple[Array, Array]:
        """Return the largest eigenvalue of A on each support and its eigenvector, (s,) and (s, k).

        ``supports`` (s, k) has the indices of one support in each row.
        """
        values, vectors = np.linalg.eigh(self._blocks(supports))
        return values[:, -1], vectors[:, :, -1]

    def _sums(self, M: Array) -> Array:
        """Return for each row of M >= 0 its largest sum over a support, without the diagonal, (n,).

        The support contains the index of the row, so that its part has one index less to offer.
        """
        M = M - np.diag(np.diag(M))
        sums = np.zeros(M.shape[0])
        # In each part, column c has the sums of the c + 1 largest entries of a row.
        for part, limit in enumerate(self.limits):
            columns = np.sort(M[:, self.labels == part], axis=1)[:, ::-1].cumsum(axis=1)
            counts = limit - (self.labels == part)
            sums += np.where(counts > 0, columns[np.arange(sums.size), counts - 1], 0.0)
        return sums

    def _discs(self) -> Array:
        """Return the largest right end of the Gershgorin disc of each index on a support, (n,).

        It is A_ii plus the largest sum of |A_ij| over the other indices j of a support. The largest
        eigenvalue on a support is at most the largest of these numbers.
        """
        return np.asarray(np.diag(self.A) + self._sums(np.abs(self.A)))

    def _bound(self, keep: Mask) -> float:
        """Return an upper bound on x'Ax over supports that contain the indices ``keep``.

        ``keep`` (n,) is a mask. The bound is the smaller one of the Gershgorin bound and a bound on
        the Frobenius norm of A on a support.
        """
        # ``energy`` bounds the squares in one row of A on a support. Their sum over the rows of one
        # part bounds the squared eigenvalue.
        squares = self.A * self.A
        energy = np.diag(squares) + self._sums(squares)
        sums = []
        for part, limit in enumerate(self.limits):
            is_member = self.labels == part
            is_kept = keep & (self.labels == part)
            other_energy = np.sort(energy[is_member & ~is_kept])[::-1][: limit - int(is_kept.sum())]
            sums.append(float(energy[is_kept].sum() + other_energy.sum()))
        return min(float(self._discs().max()), math.sqrt(min(sums)))

    @property
    def relaxation(self) -> RankOneRelaxation:
        """The convex relaxation of the polar."""
        return RankOneRelaxation(len(self.limits) == 1, math.sqrt(self.limits[0] * self.limits[-1]))

    def _relaxed(self) -> tuple[float, Array | None]:
        """Return the bound of the convex relaxation, and the flat part of A that attains it.

        The flat part is U in the split A = S + U of ``RankOneRelaxation``. The bound is inf and the
        part None if A is so large that its decompositions would take too long.
        """
        if self.A.size > SETTINGS.decomposed_entries:
            return math.inf, None
        if len(self.limits) == 1:
            return self.relaxation.lowest(self.A, self.deadline)
        rows = self.labels == 0
        bound, U = self.relaxation.lowest(self.A[np.ix_(rows, ~rows)], self.deadline)
        return bound, symmetric_block(U)

    def _inside(self, alive: Mask, keep: Mask) -> tuple[float, Array]:
        """Return an upper bound on x'Ax over the supports of a node, and the entries |x| for it.

        A support has all indices of the mask ``keep`` and only indices of the mask ``alive``. The
        vector (n,) is the magnitude of the leading eigenvector of A restricted to ``alive``.
        """
        # Excluded indices are left out of A.
        i = np.flatnonzero(alive)
        reduced = replace(self, A=self.A[np.ix_(i, i)], labels=self.labels[i])
        values, vectors = np.linalg.eigh(reduced.A)
        x = np.zeros(alive.size)
        x[i] = np.abs(vectors[:, -1])
        bound = min(float(values[-1]), reduced._bound(keep[i]))
        # With the split A = (A - flat) + flat the convex relaxation gives another bound.
        if self.flat is not None:
            flat = self.flat[np.ix_(i, i)]
            values = np.linalg.eigvalsh(reduced.A - flat)
            bound = min(bound, self.relaxation.bound_of_values(values, flat))
        return bound, x

    def _branched(self, value: float) -> tuple[Indices, float]:
        """Improve the lower bound ``value`` by best-first branch and bound over the indices.

        Each node includes or excludes some indices. It inherits the split of A into ``flat`` and
        the rest that the relaxation found for all indices. Return the best support if it exceeds
        ``value``, else no support, and an upper bound. The bound is the optimum if the search is
        complete, else the largest bound of the open nodes after ``branch_nodes`` nodes or at the
        deadline.
        """
        size = self.labels.size
        limits = np.array(self.limits)
        # The heap is ordered by minus the bound; the counter breaks ties.
        tie = itertools.count()
        improved = np.zeros((0, int(limits.sum())), dtype=np.int64)
        # A node has the masks of the indices that its supports may have, and must have.
        alive = np.ones(size, dtype=np.bool_)
        keep = np.zeros(size, dtype=np.bool_)
        bound, x = self._inside(alive, keep)
        queue = [(-bound, next(tie), alive, keep, x)]
        # A node takes O(size^3) operations, so larger matrices get fewer nodes.
        share = min(1.0, SETTINGS.branch_side * limits.size / size)
        for _ in range(int(SETTINGS.branch_nodes * share**3)):
            sufficient = value + SETTINGS.rounding * abs(value)
            if -queue[0][0] <= sufficient or self.deadline.passed:
                break
            _, _, alive, keep, x = heapq.heappop(queue)
            # A support of this node has all indices of ``keep``, filled up by the largest entries
            # of x. (Entries of x are at most 1, so that 2 puts ``keep`` first.)
            support = self.supports((x + 2.0 * keep)[:, None])
            reached = float(self._top_pairs(support)[0][0])
            if reached > value:
                value = reached
                improved = support
            # Branch on the undecided index with the largest entry: with it, and without it.
            undecided = np.bincount(self.labels[alive], minlength=limits.size) > limits
            weights = np.where(alive & ~keep & undecided[self.labels], x, -1.0)
            chosen = int(weights.argmax())
            for is_kept in (True, False) if weights[chosen] >= 0.0 else ():
                child_alive = alive.copy()
                child_keep = keep.copy()
                child_alive[chosen] = is_kept
                child_keep[chosen] = is_kept
                # If a part has all its indices, its other indices are excluded.
                full = np.bincount(self.labels[child_keep], minlength=limits.size) == limits
                child_alive &= child_keep | ~full[self.labels]
                bound, x = self._inside(child_alive, child_keep)
                heapq.heappush(queue, (-bound, next(tie), child_alive, child_keep, x))
            if not queue:
                break
        open_bound = max((-entry[0] for entry in queue), default=value)
        return improved, max(open_bound, value) + SETTINGS.rounding * abs(value)
