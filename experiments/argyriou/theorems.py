"""[A]: what sections 2 and 3 prove in words, computed on random vectors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from atomlearn import norms
from experiments.common.runs import Runs

Array = Any
#: Step of the second difference that tells a kink from a smooth point.
STEP = 1e-4


def theorems(runs: Runs, config: Mapping[str, Any]) -> None:
    """Section 2: the balls are nested, and where the norm is differentiable."""
    runs.piece("theorems", "nested", lambda: nested(config["vectors"]))
    runs.piece("theorems", "kinks", lambda: kinks(config["points"]))


def nested(vectors: int) -> dict[str, Any]:
    """C_k lies in C_(k+1): the norm does not rise with k; it is l1 at k = 1 and l2 at k = d."""
    rng = np.random.default_rng(2)
    rises, ends = [], []
    for _ in range(vectors):
        d = int(rng.integers(2, 13))
        w = rng.standard_normal(d) * 10.0 ** rng.uniform(-2, 2, d) * rng.integers(0, 2, d)
        w[0] = 1.0
        values = np.array([norms.KSupport(k).value(w) for k in range(1, d + 1)])
        rises.append(float(np.max(np.diff(values) / values[:-1])))
        ends.append(
            abs(values[0] / np.abs(w).sum() - 1.0) + abs(values[-1] / np.linalg.norm(w) - 1)
        )
    return {"rises": max(rises), "ends": max(ends), "vectors": vectors}


def kink(norm: Any, w: Array, direction: Array) -> float:
    """Return the jump of the slope of the norm at w along the direction, up to O(STEP)."""
    values = (norm.value(w + sign * STEP * direction) for sign in (1.0, -1.0))
    return float((sum(values) - 2.0 * norm.value(w)) / STEP)


def kinks(points: int) -> dict[str, Any]:
    """Largest jump below cardinality k and least at cardinality k, over all other coordinates."""
    rng = np.random.default_rng(3)
    below: dict[str, list[float]] = {"k-support": [], "elastic net": [], "lasso": []}
    at: list[float] = []
    for _ in range(points):
        d = int(rng.integers(3, 10))
        k = int(rng.integers(2, d))
        each = {"k-support": norms.KSupport(k), "elastic net": norms.ElasticNetNorm(k)}
        for size in (int(rng.integers(1, k)), k):
            w = np.zeros(d)
            w[:size] = rng.uniform(1.0, 2.0, size) * rng.choice([-1.0, 1.0], size)
            mixed = rng.standard_normal(d)
            along = [*np.eye(d)[size:], mixed / np.linalg.norm(mixed)]
            if size == k:
                at.append(min(kink(each["k-support"], w, one) for one in along[:-1]))
                continue
            for name, norm in (each | {"lasso": norms.KSupport(1)}).items():
                below[name].append(max(kink(norm, w, one) for one in along))
    least = {name: min(of) for name, of in below.items()}
    most = {name: max(of) for name, of in below.items()}
    return {"below": most, "least": least, "at": min(at), "points": points}
