"""Random small norms of every lifted or ordered kind, with independent oracles for them.

The oracles know nothing of lifts: polars are enumerated set by set from the definition, values
come from convex programs written down from the definition (CVXPY, an optional dependency).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import L1, Blocks, Groups, KSupport, LInf, Norm, Scaled
from atomlearn.norms import OWL, Chains, Hierarchy, LatentGroups, Operators, Trees, Union
from atomlearn.testing.tolerances import CLARABEL

Array = NDArray[np.float64]
#: A set of atoms { M'u : ||u||_2 <= 1 }, M dense with one column a feature.
Ellipsoid = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LiftedCase:
    """A norm, its number of features, and its atoms: ellipsoids, or points (rows), or both."""

    norm: Norm
    n_features: int
    ellipsoids: tuple[Ellipsoid, ...] = ()
    points: Array | None = None

    def polar(self, z: Array) -> float:
        """Return max over the atoms of <a, z>, by looking at every one of the sets."""
        best = max((float(np.linalg.norm(M @ z)) for M in self.ellipsoids), default=0.0)
        if self.points is not None:
            best = max(best, float((self.points @ z).max()))
        return best

    def value(self, w: Array) -> float:
        """Return inf { sum_M ||u_M|| + sum c : sum M'u_M + sum c a = w, c >= 0 } by CVXPY."""
        cp: Any = import_module("cvxpy")
        parts = [cp.Variable(M.shape[0]) for M in self.ellipsoids]
        total: Any = sum(
            (M.T @ u for M, u in zip(self.ellipsoids, parts, strict=True)), np.zeros(w.size)
        )
        cost: Any = sum((cp.norm2(u) for u in parts), 0.0)
        if self.points is not None:
            shares = cp.Variable(self.points.shape[0], nonneg=True)
            total = total + self.points.T @ shares
            cost = cost + cp.sum(shares)
        problem = cp.Problem(cp.Minimize(cost), [total == w])
        problem.solve(solver=cp.CLARABEL, **CLARABEL)
        return float(problem.value)


def _selection(members: list[int], p: int, weight: float) -> Ellipsoid:
    matrix = np.zeros((len(members), p))
    matrix[np.arange(len(members)), members] = 1.0 / weight
    return matrix


def _sets(rng: np.random.Generator, p: int) -> list[list[int]]:
    count = int(rng.integers(1, 7))
    return [
        sorted(rng.choice(p, size=int(rng.integers(1, p + 1)), replace=False).tolist())
        for _ in range(count)
    ]


def _latent(norm: Norm, p: int, sets: list[list[int]], weights: Array) -> LiftedCase:
    covered = set(itertools.chain(*sets))
    alone = [[j] for j in range(p) if j not in covered]
    ellipsoids = [_selection(s, p, float(d)) for s, d in zip(sets, weights, strict=True)]
    ellipsoids += [_selection(s, p, 1.0) for s in alone]
    return LiftedCase(norm, p, tuple(ellipsoids))


def latent_groups(rng: np.random.Generator) -> LiftedCase:
    """Random overlapping sets with random weights."""
    p = int(rng.integers(2, 9))
    sets = _sets(rng, p)
    weights = rng.uniform(0.5, 2.0, size=len(sets))
    return _latent(LatentGroups(sets, weights), p, sets, weights)


def chains(rng: np.random.Generator) -> LiftedCase:
    """All chains of a random length."""
    p, length = int(rng.integers(2, 9)), int(rng.integers(1, 5))
    k = min(p, length)
    sets = [list(range(start, start + k)) for start in range(p - k + 1)]
    return _latent(Chains(length), p, sets, np.ones(len(sets)))


def trees(rng: np.random.Generator) -> LiftedCase:
    """A random laminar family: intervals cut again and again."""
    p = int(rng.integers(2, 10))
    sets: list[list[int]] = []

    def cut(low: int, high: int) -> None:
        sets.append(list(range(low, high)))
        if high - low > 1 and rng.random() < 0.8:
            middle = int(rng.integers(low + 1, high))
            if rng.random() < 0.8:
                cut(low, middle)
            if rng.random() < 0.8:
                cut(middle, high)

    cut(0, int(rng.integers(1, p + 1)))
    order = rng.permutation(p)
    shuffled = [sorted(int(order[j]) for j in s) for s in sets]
    weights = rng.uniform(0.3, 2.0, size=len(sets))
    return _latent(Trees(shuffled, weights), p, shuffled, weights)


def hierarchy(rng: np.random.Generator) -> LiftedCase:
    """Weak or strong, all pairs or some of them with squares."""
    kind = "weak" if rng.random() < 0.5 else "strong"
    d = int(rng.integers(2, 5))
    pairs = [[i, j] for i in range(d) for j in range(i + 1, d)]
    given = None
    if rng.random() < 0.5:
        pairs = [[i, j] for i in range(d) for j in range(i, d) if rng.random() < 0.6] or [[0, 0]]
        given = np.array(pairs)
    weight = float(rng.uniform(0.5, 2.0))
    sets, weights = [[i] for i in range(d)], [1.0] * d
    for column, (i, j) in enumerate(pairs, start=d):
        both = [[i, j, column]] if i != j else [[i, column]]
        new = both if kind == "strong" else [[i, column]] + ([[j, column]] if i != j else [])
        sets += new
        weights += [weight] * len(new)
    norm = Hierarchy(kind, pairs=given, pair_weight=weight)
    return _latent(norm, d + len(pairs), sets, np.array(weights))


def operators(rng: np.random.Generator) -> LiftedCase:
    """Random matrices beside the identity."""
    p = int(rng.integers(2, 6))
    matrices = [rng.normal(size=(int(rng.integers(1, 4)), p)) for _ in range(3)]
    matrices.append(np.eye(p) * rng.uniform(0.3, 1.0))
    return LiftedCase(Operators(matrices), p, tuple(matrices))


def union(rng: np.random.Generator) -> LiftedCase:
    """Scaled l1, disjoint groups and chains together."""
    p = int(rng.integers(3, 8))
    labels = rng.integers(0, 3, size=p)
    factors = rng.uniform(0.5, 2.0, size=3)
    parts = [Scaled(L1(), factors[0]), Scaled(Groups(labels), factors[1])]
    parts.append(Scaled(Chains(2), factors[2]))
    sets = [_selection([j], p, factors[0]) for j in range(p)]
    sets += [
        _selection(np.flatnonzero(labels == g).tolist(), p, factors[1]) for g in np.unique(labels)
    ]
    sets += [_selection([j, j + 1], p, factors[2]) for j in range(p - 1)]
    return LiftedCase(Union(parts), p, tuple(sets))


def union_of_others(rng: np.random.Generator) -> LiftedCase:
    """k-support and l-infinity, which are no group norms."""
    p = int(rng.integers(2, 5))
    k = int(rng.integers(1, p + 1))
    factor = float(rng.uniform(1.5, 4.0))
    sets = [_selection(list(s), p, 1.0) for s in itertools.combinations(range(p), k)]
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=p))) / factor
    return LiftedCase(Union([KSupport(k), Scaled(LInf(), factor)]), p, tuple(sets), signs)


def ordered(rng: np.random.Generator) -> LiftedCase:
    """OWL with random weights: its atoms are sign patterns on k columns."""
    p = int(rng.integers(2, 5))
    weights = np.sort(rng.uniform(0.0, 2.0, size=p))[::-1].copy()
    atoms = []
    for size in range(1, p + 1):
        for chosen in itertools.combinations(range(p), size):
            for signs in itertools.product([-1.0, 1.0], repeat=size):
                atom = np.zeros(p)
                atom[list(chosen)] = signs
                atoms.append(atom / weights[:size].sum())
    return LiftedCase(OWL(weights), p, (), np.array(atoms))


def infinity(rng: np.random.Generator) -> LiftedCase:
    """The l-infinity norm and its sign vectors."""
    p = int(rng.integers(1, 7))
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=p)))
    return LiftedCase(LInf(), p, (), signs)


def blocks(rng: np.random.Generator) -> LiftedCase:
    """l1 on some columns, k-support on the others."""
    p = int(rng.integers(2, 7))
    order = rng.permutation(p)
    cut = int(rng.integers(1, p))
    first, second = order[:cut].tolist(), order[cut:].tolist()
    k = int(rng.integers(1, len(second) + 1))
    sets = [_selection([j], p, 1.0) for j in first]
    sets += [_selection(list(s), p, 1.0) for s in itertools.combinations(second, k)]
    return LiftedCase(Blocks([L1(), KSupport(k)], [first, second]), p, tuple(sets))


#: Kinds of norms by name: what makes a random one from a generator.
KINDS: dict[str, Callable[[np.random.Generator], LiftedCase]] = {
    "latent groups": latent_groups,
    "chains": chains,
    "trees": trees,
    "hierarchy": hierarchy,
    "operators": operators,
    "union": union,
    "union of other norms": union_of_others,
    "OWL": ordered,
    "l-infinity": infinity,
    "blocks": blocks,
}


def random_scores(rng: np.random.Generator, size: int) -> Array:
    """Return normal, heavy-tailed, sparse or tied entries, not all zero."""
    kind = int(rng.integers(4))
    z = rng.standard_cauchy(size) if kind == 1 else rng.normal(size=size)
    if kind == 2:
        z[rng.random(size) < 0.5] = 0.0
    if kind == 3:
        z = np.round(z)
    return z if z.any() else np.ones(size)
