"""Pair scores X' diag(v) X: all of them, and the largest, against one general matrix product.

``pair full`` and ``pair top`` compute the upper triangle only, so half of ``gemm`` is what they
could reach. ``formed`` is a pass over the columns once they have been formed and stored, which is
possible for a few hundred inputs.
"""

# ruff: noqa: B023 - every closure is called before its loop goes on
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn.core.data.dense import DenseDesign
from atomlearn.designs import Polynomial
from benchmarks.harness import Options, Table
from benchmarks.micro.timing import side_by_side


def dense(smoke: bool, repeats: int) -> Iterator[dict[str, Any]]:
    """One row for each (inputs, precision, order, method)."""
    rng = np.random.default_rng(0)
    n = 100 if smoke else 1000
    for d, precision, order in [
        (d, precision, order)
        for d in ([60] if smoke else [200, 2000])
        for precision in (np.float64, np.float32)
        for order in "FC"
    ]:
        X = np.asarray(rng.standard_normal((n, d)), dtype=precision, order=order)
        v = rng.standard_normal(n)
        weights = v.astype(precision)[:, None]
        design = Polynomial.interactions(X)
        calls = {
            "gemm": lambda: X.T @ (X * weights),
            "pair full": lambda: design.scores(v).full(),
            "pair top 100": lambda: design.scores(v).top(100),
            "pair top 20000": lambda: design.scores(v).top(20_000),
        }
        if d <= 200:
            formed = DenseDesign(design.gather(np.arange(design.shape[1])).dense())
            calls["formed top 100"] = lambda: formed.scores(v).top(100)
        for name, times in side_by_side(calls, dict.fromkeys(calls, repeats)).items():
            yield {
                "data": f"dense {np.dtype(precision)} {order}",
                "n": n,
                "d": d,
                "method": name,
                **times,
                "gflops": (1.0 if name == "gemm" else 0.5) * 2e-6 * n * d * d / times["median_ms"],
            }


def sparse_rows(smoke: bool, repeats: int) -> Iterator[dict[str, Any]]:
    """Rows of 29 non-zeros whose columns are of Zipf popularity; shares of the work skipped."""
    rng = np.random.default_rng(1)
    n, d = (200, 2000) if smoke else (20_000, 100_000)
    columns = np.minimum(rng.zipf(1.3, (n, 29)) - 1, d - 1)
    rows = np.repeat(np.arange(n), 29)
    X = sparse.csr_array((rng.random(n * 29), (rows, columns.ravel())), shape=(n, d))
    design, v = Polynomial(X), rng.standard_normal(n)
    for name, times in side_by_side(
        {"pair top 100": lambda: design.scores(v).top(100)}, {"pair top 100": repeats}
    ).items():
        scores = design.scores(v)
        scores.top(100)
        assert scores.work is not None
        yield {
            "data": "sparse",
            "n": n,
            "d": d,
            "method": name,
            **times,
            "products": scores.work.products,
        }


def main() -> None:
    """Time all."""
    options = Options.parse(__doc__)
    with Table("polynomial", options) as table:
        for part in (dense, sparse_rows):
            for row in part(options.smoke, options.times(9)):
                table.add(**row)


if __name__ == "__main__":
    main()
