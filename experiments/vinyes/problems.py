"""The problems of [V] section 4, one a draw."""

from __future__ import annotations

from typing import Any

import numpy as np

from atomlearn.core.solvers.stopping import Iterations, RelativeGap
from atomlearn.designs import Polynomial, as_design
from atomlearn.interfaces import Norm
from atomlearn.losses import Squared
from atomlearn.norms import Chains, Groups, Hierarchy
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import ColumnGeneration, run
from benchmarks.harness.real_data import load

Array = Any


def problem_of(X: Array, y: Array, norm: Norm, form: Any, amount: float) -> Problem:
    """Return the problem with the squared loss."""
    return Problem.build(as_design(X), y, Squared(), Regularizer(norm, form, amount))


def correlated(n: int, p: int, share: float, seed: int) -> Problem:
    """Section 4.1: groups of 10, w = 2 on the first 50, singular values 0.9^(2i).

    The paper does not state the noise (here 1% of the signal) nor lambda (``share`` of the largest
    that is of use).
    """
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((n, n)))[0]
    right = np.linalg.qr(rng.standard_normal((p, n)))[0]
    X = np.asfortranarray((left * 0.9 ** (2.0 * np.arange(n))) @ right.T)
    signal = 2.0 * X[:, :50].sum(axis=1)
    y = signal + 0.01 * np.sqrt(np.mean(signal**2)) * rng.standard_normal(n)
    norm = Groups(np.arange(p) // 10)
    return problem_of(X, y, norm, "penalized", share * norm.polar(X.T @ y))


def chains(n: int, p: int, share: float, seed: int) -> tuple[Problem, Problem]:
    """Section 4.2: chains of 8, support 1..10, standard normal rows, sigma = 0.1; both forms.

    The paper states neither p, nor w on its support (here 1), nor lambda.
    """
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((n, p)))
    y = X[:, :10].sum(axis=1) + 0.1 * rng.standard_normal(n)
    level = share * Chains(8).polar(X.T @ y)
    penalized = problem_of(X, y, Chains(8), "penalized", level)
    found = run(penalized, ColumnGeneration(tol=1e-8), RelativeGap(1e-8) | Iterations(200))
    radius = sum(float(np.linalg.norm(part.weights)) for part in found.parts or [])
    return penalized, problem_of(X, y, Chains(8), "constrained", radius)


def hierarchy(n: int, p: int, share: float, seed: int) -> Problem:
    """Section 4.3: p main effects, 10% of the pairs 1, the fewest main effects that cover them 0.5.

    The cover is found greedily; noise of standard deviation 1 and lambda are not stated.
    """
    rng = np.random.default_rng(seed)
    design = Polynomial.interactions(rng.standard_normal((n, p)))
    n_pairs = design.shape[1] - p
    chosen = rng.choice(n_pairs, n_pairs // 10, replace=False)
    w = np.zeros(design.shape[1])
    w[p + chosen] = 1.0
    uncovered = [design.pair(int(p + column)) for column in chosen]
    while uncovered:
        counts = np.bincount(np.array(uncovered).ravel(), minlength=p)
        best = int(counts.argmax())
        w[best] = 0.5
        uncovered = [pair for pair in uncovered if best not in pair]
    X = np.asfortranarray(np.asarray(design.gather(np.arange(design.shape[1]))))
    y = X @ w + rng.standard_normal(n)
    norm = Hierarchy("weak")
    level = share * norm.on(X.shape[1]).polar(X.T @ y)
    return problem_of(X, y, norm, "penalized", level)


def housing(rows: int | None, seed: int) -> tuple[Array, Array]:
    """Section 4.3: California housing, 8 + 20 nuisance main effects, all interactions.

    Columns and target are standardized, which the paper does not say.
    """
    data = load("california")
    rng = np.random.default_rng(seed)
    main = np.column_stack([data.X[:rows], rng.standard_normal((data.X[:rows].shape[0], 20))])
    design = Polynomial.interactions(standardized(main))
    X = standardized(np.asarray(design.gather(np.arange(design.shape[1]))))
    return X, standardized(np.asarray(data.y[:rows], dtype=np.float64)[:, None])[:, 0]


def standardized(X: Array) -> Array:
    """Return columns of mean 0 and variance 1, in Fortran order."""
    return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))


def covariance(p: int, k: int, noise: float, seed: int, overlap: int) -> Array:
    """Section 4.4: five k x k blocks of ones, plus symmetric noise.

    The paper does not state how many indices neighboring blocks share.
    """
    rng = np.random.default_rng(seed)
    C = np.zeros((p, p))
    for block in range(5):
        part = np.arange(k) + block * (k - overlap)
        C[np.ix_(part, part)] += 1.0
    E = np.triu(noise * rng.standard_normal((p, p)))
    return C + E + np.triu(E, 1).T
