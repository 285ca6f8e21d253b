"""What the numbers of a room trade: each field of its settings a factor of four down and up.

Rooms: data (``core/data/limits.py``), maps, matrices, papers, lifting (their ``settings.py``).
Every variant does the same as the settings as they are, in turns with them. A row gives the ratios
of processor times and of passes (geometric means over the cases), and the cases where passes differ
or where the answer is another one beyond 1e-6: numbers that tell rounding are no matter of speed.
Sizes that these small cases do not reach change nothing.

    python -m benchmarks.tuning.rooms [--smoke] [--out benchmarks/results]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from atomlearn import designs, norms, solve, solvers
from atomlearn.core.data.limits import LIMITS
from atomlearn.lifting.settings import SETTINGS as OF_LIFTING
from atomlearn.maps.settings import SETTINGS as OF_MAPS
from atomlearn.matrices.settings import SETTINGS as OF_MATRICES
from atomlearn.papers.settings import SETTINGS as OF_PAPERS
from benchmarks.harness.options import Options
from benchmarks.tuning.turns import Case, table_of


def solved(X: Any, y: Any, **arguments: Any) -> Case:
    """Return a case that solves, with its objective and its passes."""

    def case() -> tuple[float, float]:
        result = solve(X, y, **{"gap": 1e-7, **arguments})
        return float(result.objective), float(result.passes)

    return case


def drawn(n: int, p: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return correlated columns and a target of ten of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 0.5 * rng.standard_normal((n, 1))
    return X, X[:, :10].sum(axis=1) + rng.standard_normal(n)


def data(scale: int) -> dict[str, Case]:
    """Return dense, single precision, sparse by columns and by rows, with gaps, standardized."""
    X, y = drawn(60 * scale, 600 * scale)
    thin = sp.random_array(
        (150 * scale, 1000 * scale), density=0.02, rng=np.random.default_rng(1), format="csc"
    )
    target = thin[:, :10].sum(axis=1) + 0.1 * np.random.default_rng(2).standard_normal(150 * scale)
    level, low = 0.1 * np.abs(X.T @ y).max(), 0.1 * np.abs(thin.T @ target).max()
    gaps = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    standardized = designs.Standardized(designs.as_design(X))
    return {
        "dense": solved(np.asfortranarray(X), y, level=level),
        "single": solved(X.astype(np.float32), y, level=level, gap=1e-5),
        "by rows": solved(np.ascontiguousarray(X), y, level=level, norm=norms.KSupport(5)),
        "gaps": solved(gaps, y, level=level),
        "sparse": solved(thin, target, level=low),
        "sparse by rows": solved(thin.tocsr(), target, level=low, intercept=True),
        "standardized": solved(standardized, y, level=level),
    }


def maps(scale: int) -> dict[str, Case]:
    """Return products of dense and sparse columns, curves, surfaces and kernels."""
    X, y = drawn(40 * scale, 30 * scale)
    thin = sp.random_array(
        (80 * scale, 60 * scale), density=0.05, rng=np.random.default_rng(1), format="csc"
    )
    target = np.random.default_rng(2).standard_normal(80 * scale)
    few = designs.as_design(np.ascontiguousarray(X[:, :6]))
    splines, surfaces = designs.Additive(few, "splines"), designs.Anova(few, "splines")
    products = designs.Polynomial.interactions(X)
    return {
        "products": solved(products, y, norm=norms.KSupport(5), level=50.0, form="squared"),
        "sparse products": solved(designs.Polynomial.interactions(thin), target, level=2.0),
        "curves": solved(splines, y, norm=norms.Groups(splines.groups), level=2.0),
        "surfaces": solved(surfaces, y, norm=norms.Groups(surfaces.groups), level=5.0),
    }


def matrices(scale: int) -> dict[str, Case]:
    """Return tasks, completion, denoising by semidefinite and by sparse atoms, a sum of norms."""
    rng = np.random.default_rng(0)
    side = 8 * scale
    low = rng.standard_normal((side, 3)) @ rng.standard_normal((3, side))
    W = low + 0.1 * rng.standard_normal((side, side))
    X = rng.standard_normal((3 * side, side))
    flat = np.sort(rng.permutation(side * side)[: side * side // 2])
    entries = designs.Entries(flat // side, flat % side, (side, side))
    some, whole = W.reshape(-1)[flat], designs.Identity((side, side))
    part = W[:8, :8].reshape(-1)
    small = designs.Identity((8, 8))
    both = norms.Union([norms.TraceNorm(), norms.Scaled(norms.L1(), 0.3)])
    return {
        "tasks": solved(X, X @ W, norm="trace", level=20.0),
        "completion": solved(entries, some, norm="trace", level=1.0),
        "semidefinite": solved(whole, (W + W.T).reshape(-1), norm=norms.PSD(), level=2.0),
        "sparse atoms": solved(small, part, norm=norms.SparseRankOne(2, 2), level=1.0, gap=1e-5),
        "trace and l1": solved(whole, W.reshape(-1), norm=both, level=1.0),
    }


def papers(scale: int) -> dict[str, Case]:
    """Return one problem for each algorithm of a paper that has settings."""
    X, y = drawn(15 * scale, 20 * scale)
    level = 0.2 * np.abs(X.T @ y).max()
    algorithms: dict[str, tuple[Any, Any, str]] = {
        "blended": (solvers.FrankWolfe(direction="blended"), norms.KSupport(1), "penalized"),
        "k-FCFW": (solvers.KFCFW(), norms.KSupport(3), "squared"),
    }
    return {
        name: solved(X, y, norm=norm, form=form, solver=solver, level=level, gap=1e-4)
        for name, (solver, norm, form) in algorithms.items()
    }


def lifting(scale: int) -> dict[str, Case]:
    """Return values of norms by decomposition, whose iterations are not counted."""
    rng = np.random.default_rng(0)
    sets = [list(range(j, j + 6)) for j in range(0, 20 * scale, 3)]
    n_features = sets[-1][-1] + 1
    w = rng.standard_normal(n_features)
    kinds = {
        "latent groups": norms.LatentGroups(sets),
        "k of them": norms.LatentKSupport(2, sets),
        "chains": norms.Chains(4),
    }

    def valued(norm: Any) -> Callable[[], tuple[float, float]]:
        return lambda: (float(norm.on(n_features).value(w)), 1.0)

    return {name: valued(norm) for name, norm in kinds.items()}


ROOMS = {
    "data": (LIMITS, data),
    "maps": (OF_MAPS, maps),
    "matrices": (OF_MATRICES, matrices),
    "papers": (OF_PAPERS, papers),
    "lifting": (OF_LIFTING, lifting),
}


def main(options: Options) -> None:
    """Vary the settings of one room after the other."""
    for name, (settings, cases) in ROOMS.items():
        table_of(f"tuning_{name}", settings, cases(1 if options.smoke else 3), options, "passes")


if __name__ == "__main__":
    main(Options.parse(__doc__))
