"""Bounds on sparse principal components and on sparse singular vectors, and what they prove.

The polar of ``SparsePSD`` at the correlations of the genes of largest variance in the colon data of
Alon and others 1999, which d'Aspremont, El Ghaoui, Jordan, Lanckriet 2007 (DSPCA) used: the value
found, and the share by which each upper bound is above it. The cheap bounds are the largest
eigenvalue, Gershgorin's discs and sums of squares. DSPCA is also solved by SCS, on the smallest
matrices. Then fits of blocks under noise: the proved gap and its seconds.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import Deadline
from atomlearn.designs import Identity
from atomlearn.matrices.norms.sparse_search import SparseSearch
from atomlearn.norms import SparsePSD, SparseRankOne
from benchmarks.harness import Options, Table
from benchmarks.harness.real_data import load
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]


def correlations(genes: int) -> Array:
    """Return the correlations of the genes with the largest variances of logarithms."""
    X = np.log(np.maximum(np.asarray(load("alon").X, dtype=np.float64), 1.0))
    chosen = np.argsort(-X.var(axis=0))[:genes]
    return np.asarray(np.corrcoef(X[:, chosen].T))


def by_scs(A: Array, k: int) -> float:
    """Return DSPCA's optimum by CVXPY and SCS."""
    import cvxpy as cp

    X = cp.Variable(A.shape, PSD=True)
    sums = [cp.trace(X) == 1, cp.sum(cp.abs(X)) <= k]
    return float(cp.Problem(cp.Maximize(cp.sum(cp.multiply(A, X))), sums).solve(cp.SCS, eps=1e-5))


def polar(genes: int, k: int) -> dict[str, Any]:
    """Return the value found and the bounds, as shares above it."""
    A = correlations(genes)
    search = SparseSearch.of_vectors(A, k, Deadline())
    top = np.linalg.eigh(A)[1][:, -1:]
    eigenvalue = float(np.linalg.eigvalsh(A)[-1])
    _, values, cheap = search.best(top, eigenvalue, False)
    row: dict[str, Any] = {"genes": genes, "k": k, "value": float(values[0])}
    row["cheap"] = cheap / row["value"] - 1.0
    began = time.process_time()
    row["relaxation"] = search.relaxation.lowest(A, Deadline())[0] / row["value"] - 1.0
    row["relaxation_seconds"] = time.process_time() - began
    if genes <= 60:
        began = time.process_time()
        row["scs"] = by_scs(A, k) / row["value"] - 1.0
        row["scs_seconds"] = time.process_time() - began
    began = time.process_time()
    _, values, upper = search.best(top, eigenvalue, True)
    row |= {"value": float(values[0]), "branched": upper / float(values[0]) - 1.0}
    return row | {"branched_seconds": time.process_time() - began}


def fit(side: int, k: int, level: float, symmetric: bool) -> dict[str, Any]:
    """Return the gaps of a fit of three blocks of ones under noise of 0.3."""
    rng = np.random.default_rng(0)
    C = 0.3 * rng.standard_normal((side, side))
    C = np.triu(C) + np.triu(C, 1).T if symmetric else C
    for first in (0, k - 2, 3 * k):
        C[first : first + k, first : first + k] += 1.0
    shape = (side, side)
    norm = SparsePSD(k, shape) if symmetric else SparseRankOne(k, k, shape)
    began = time.process_time()
    found = solve_sum(Identity(shape), C.ravel(), norm=norm, level=level, tol=1e-3)
    seconds = time.process_time() - began
    return {
        "norm": repr(norm), "level": level, "gap": found.relative_gap, "status": found.status.name,
        "seconds": seconds,
    }  # fmt: skip


def main() -> None:
    """One row a matrix."""
    options = Options.parse(__doc__)
    with Table("sparse_bounds", options) as table:
        for genes, k in ((30, 5),) if options.smoke else ((60, 5), (60, 10), (200, 5), (200, 20)):
            table.add(part="polar", **polar(genes, k))
        for side in (20,) if options.smoke else (60, 200):
            for symmetric in (True, False):
                for level in (2.5, 4.0):
                    table.add(part="fit", **fit(side, 5, level, symmetric))


if __name__ == "__main__":
    main()
