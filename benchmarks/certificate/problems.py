"""Random problems: every loss, form, intercept, weights, storage, correlation and norm."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import norms
from benchmarks.certificate.independent import Array, Ball, Plain, loss_slope, loss_value

LOSSES = ("squared", "logistic", "squared_hinge")
FORMS = ("penalized", "squared", "constrained")
NORMS = ("l1", "k-support", "elastic net", "group k-support")
CORRELATIONS = (0.0, 0.9)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A problem twice: as arrays for the check, and as it is handed to ``solve``."""

    seed: int
    plain: Plain
    X: Any
    norm: norms.L1 | norms.KSupport | norms.ElasticNetNorm
    sample_weight: Array | None
    correlation: float

    @property
    def arguments(self) -> dict[str, Any]:
        """Keyword arguments of ``solve``."""
        plain = self.plain
        bound = "radius" if plain.form == "constrained" else "level"
        return {
            "loss": plain.loss,
            "norm": self.norm,
            "form": plain.form,
            bound: plain.amount,
            "tau": plain.tau,
            "fit_intercept": plain.intercept,
            "sample_weight": self.sample_weight,
        }


def draw(count: int) -> Iterator[Drawn]:
    """Yield ``count`` problems: all 576 kinds in a random order, again and again."""
    kinds = list(
        itertools.product(LOSSES, FORMS, NORMS, CORRELATIONS, (0, 1), (0, 1), ("dense", "sparse"))
    )
    order = np.random.default_rng(0).permutation(len(kinds))
    for seed in range(count):
        yield _draw(seed, *kinds[order[seed % len(kinds)]])


def _draw(
    seed: int, loss: str, form: str, kind: str, rho: float, intercept: int, weighted: int, kept: str
) -> Drawn:
    rng = np.random.default_rng([1, seed])
    small = rng.random() < 0.6
    n = int(rng.integers(5, 41) if small else rng.integers(40, 301))
    p = int(rng.integers(3, 41) if small else rng.integers(100, 1501))
    dense = _columns(rng, n, p, rho, 0.3 if kept == "sparse" else 1.0)
    narrow = rng.random() < 0.25
    X: Any = dense.astype(np.float32) if narrow else dense
    dense = X.astype(np.float64)
    if kept == "sparse":
        X = sparse.csr_array(X) if rng.random() < 0.5 else sparse.csc_array(X)
    elif rng.random() < 0.5:
        X = np.asfortranarray(X)
    y = _target(rng, dense, loss)
    s = rng.integers(0, 4, n).astype(np.float64) if weighted else np.ones(n)
    s[:2] = np.maximum(s[:2], 1.0)
    groups = rng.integers(0, max(2, p // 4), p).astype(np.int64)
    labels = np.unique(groups, return_inverse=True)[1] if kind == "group k-support" else None
    units = p if labels is None else int(labels.max()) + 1
    k = 1 if kind == "l1" else int(rng.integers(1, max(2, units // 3) + 1))
    if k > 1 and rng.random() < 0.1:
        k = units + int(rng.integers(0, 2))
    tau = float(rng.uniform(0.05, 1.0)) if rng.random() < 0.25 else 0.0
    ball = Ball(kind, k, labels)
    plain = Plain(dense, y, s, loss, form, ball, 1.0, tau, bool(intercept))
    plain = _with_amount(rng, plain)
    norm = {
        "l1": lambda: norms.L1(),
        "k-support": lambda: norms.KSupport(k),
        "elastic net": lambda: norms.ElasticNetNorm(k),
        "group k-support": lambda: norms.KSupport(k, groups=labels),
    }[kind]()
    return Drawn(seed, plain, X, norm, s if weighted else None, rho)


def _columns(rng: np.random.Generator, n: int, p: int, rho: float, density: float) -> Array:
    """Return AR(rho) columns; below density 1 an entry is kept with that probability."""
    X = rng.standard_normal((n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho * rho) * X[:, j]
    if density < 1.0:
        X *= rng.random((n, p)) < density
    return X


def _target(rng: np.random.Generator, X: Array, loss: str) -> Array:
    truth = np.where(rng.random(X.shape[1]) < min(1.0, 10 / X.shape[1]), 1.0, 0.0)
    signal = X @ truth
    y = signal + 0.5 * (signal.std() + 0.1) * rng.standard_normal(signal.size) + 0.7
    if loss == "squared":
        return y
    labels = np.where(y > np.quantile(y, rng.uniform(0.3, 0.7)), 1.0, -1.0)
    labels[:2] = 1.0, -1.0
    return labels


def _with_amount(rng: np.random.Generator, plain: Plain) -> Plain:
    """Return the problem with a level or radius in its natural units, weak to strong."""
    zero = np.zeros(plain.y.size)
    at_zero = loss_value(plain.loss, plain.y, zero, plain.s)
    polar = plain.ball.polar(-plain.X.T @ loss_slope(plain.loss, plain.y, zero, plain.s)) or 1.0
    strength = float(np.exp(rng.uniform(np.log(0.02), np.log(0.8))))
    amount = {
        "penalized": strength * polar,
        "squared": strength * polar**2 / at_zero,
        "constrained": 2.0 * strength * at_zero / polar,
    }[plain.form]
    return Plain(
        plain.X, plain.y, plain.s, plain.loss, plain.form, plain.ball, amount, plain.tau,
        plain.intercept,
    )  # fmt: skip
