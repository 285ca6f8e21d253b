"""Found: what a search for the best rank-one atoms has found, and sums of such atoms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.matrices.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class Found:
    """What a search for the best rank-one atoms u v' of a matrix norm has found, best first.

    left : (p, t); right : (q, t); values : (t,) <u_i v_i', Z> (times 1 / gauge of the atom, 1);
    lower, upper : lower <= gauge°(Z) <= upper, where ``lower`` is the best value found (0 where
    no atom is positive). ``upper`` may hold with a failure probability that its norm states.
    """

    left: Array
    right: Array
    values: Array
    lower: float
    upper: float

    def above(self, level: float) -> tuple[Array, Array]:
        """Return the atoms whose value is beyond the level, by more than rounding."""
        kept = self.values > level * (1 + SETTINGS.rounding)
        return self.left[:, kept], self.right[:, kept]


def positive_part(U: Array, values: Array, lower: float, upper: float) -> Found:
    """Return the atoms u u' of positive value."""
    kept = values > 0
    return Found(U[:, kept], U[:, kept], values[kept], lower, upper)


def joined(first: Found, second: Found) -> Found:
    """Return the atoms of both, best first, with the better bound on either side."""
    values = np.concatenate([first.values, second.values])
    order = np.argsort(-values, kind="stable")
    lower = max(first.lower, second.lower, float(values.max(initial=0.0)))
    return Found(
        np.hstack([first.left, second.left])[:, order],
        np.hstack([first.right, second.right])[:, order],
        values[order],
        lower,
        max(min(first.upper, second.upper), lower),
    )


def merged(left: Array, weights: Array, right: Array) -> tuple[Array, Array, Array]:
    """Return the same sum of atoms with those on one pair of supports made orthogonal.

    The singular vectors of sum c_i u_i v_i' over the atoms on the same supports are atoms too, k at
    most, and their weights add up to no more. Eigenvectors where left and right are one.
    """
    groups: dict[tuple[bytes, bytes], list[int]] = {}
    for number, (u, v) in enumerate(zip(left.T, right.T, strict=True)):
        key = np.flatnonzero(u).tobytes(), np.flatnonzero(v).tobytes()
        groups.setdefault(key, []).append(number)
    alone = [group[0] for group in groups.values() if len(group) == 1]
    parts = [(left[:, alone], weights[alone], right[:, alone])]
    for group in groups.values():
        if len(group) == 1:
            continue
        rows, cols = np.flatnonzero(left[:, group[0]]), np.flatnonzero(right[:, group[0]])
        W = (left[:, group][rows] * weights[group]) @ right[:, group][cols].T
        if np.array_equal(left, right):
            values, P = np.linalg.eigh(W)
            Q = P
        else:
            P, values, Qt = np.linalg.svd(W, full_matrices=False)
            Q = Qt.T
        kept = np.flatnonzero(values > SETTINGS.rounding * values.max(initial=0.0))
        U, V = np.zeros((left.shape[0], kept.size)), np.zeros((right.shape[0], kept.size))
        U[rows], V[cols] = P[:, kept], Q[:, kept]
        parts.append((U, values[kept], V))
    lefts, sizes, rights = zip(*parts, strict=True)
    return np.hstack(lefts), np.concatenate(sizes), np.hstack(rights)
