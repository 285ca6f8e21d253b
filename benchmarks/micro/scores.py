"""X'v and X w in GB/s of X: dense (any order and precision) against BLAS, sparse against SciPy."""

# ruff: noqa: B023 - every closure is called before its loop goes on
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import sparse

from atomlearn import _kernels as kernels
from benchmarks.harness import Options, Table
from benchmarks.micro.timing import seconds


def timed(
    what: str, layout: str, n_bytes: int, calls: dict[str, Callable[[], object]], repeats: int
) -> Iterator[dict[str, Any]]:
    """Rows with the speed in GB/s at the least time."""
    for name, call in calls.items():
        times = seconds(call, repeats)
        yield {
            "what": what,
            "layout": layout,
            "method": name,
            "gigabytes": n_bytes / 1e9,
            "gigabytes_per_s": n_bytes / 1e6 / times["least_ms"],
            **times,
        }


def dense(smoke: bool, repeats: int) -> Iterator[dict[str, Any]]:
    """Dense arrays of about 0.8 GB (0.02 GB where smoke)."""
    rng = np.random.default_rng(0)
    scale = 40 if smoke else 1
    for dtype in (np.float32, np.float64):
        width = 8 // np.dtype(dtype).itemsize
        for n, p in [
            (500, 200_000 * width // scale),
            (8192 // (2 if smoke else 1), 12_000 * width // scale),
        ]:
            base = rng.standard_normal((n, p), dtype=np.float32).astype(dtype)
            v, w = rng.standard_normal(n), rng.standard_normal(p)
            narrow_v, narrow_w = v.astype(dtype), w.astype(dtype)
            rows = np.sort(rng.permutation(n)[: 4 * n // 5])
            for order in "CF":
                X = np.asarray(base, order=order)
                layout = f"{np.dtype(dtype).name} {order} {n} x {p}"
                calls = {"ours": lambda: kernels.scores_dense(X, v), "BLAS": lambda: X.T @ narrow_v}
                yield from timed("X'v", layout, X.nbytes, calls, repeats)
                calls = {"ours": lambda: kernels.predict_dense(X, w), "BLAS": lambda: X @ narrow_w}
                yield from timed("X w", layout, X.nbytes, calls, repeats)
                calls = {"ours": lambda: kernels.scores_dense(X, v[rows], rows)}
                yield from timed(
                    "X[rows]'v, 4/5 of the rows", layout, X.nbytes * 4 // 5, calls, repeats
                )
                calls = {"ours": lambda: kernels.scores_dense(X, None, squared=True)}
                yield from timed("squared norms", layout, X.nbytes, calls, repeats)


def text_like(n: int, p: int, n_stored: int) -> sparse.csr_array:
    """Rows of equal length whose columns are drawn with popularity (rank + 50)^-0.9."""
    rng = np.random.default_rng(1)
    popularity = np.cumsum((np.arange(p) + 50.0) ** -0.9)
    each = n_stored // n
    columns = np.searchsorted(popularity, rng.random((n, each)) * popularity[-1])
    data = rng.standard_normal(n * each)
    csr = sparse.csr_array((data, columns.ravel(), np.arange(0, n * each + 1, each)), shape=(n, p))
    csr.sum_duplicates()
    return csr


def sparse_products(smoke: bool, repeats: int) -> Iterator[dict[str, Any]]:
    """Sparse arrays in both layouts, with 32- and 64-bit indices."""
    sizes = (
        [(2_000, 50_000, 200_000)]
        if smoke
        else [(20_000, 500_000, 2_000_000), (20_000, 500_000, 20_000_000)]
    )
    for n, p, n_stored in sizes:
        csr = text_like(n, p, n_stored)
        csc = sparse.csc_array(csr)
        rng = np.random.default_rng(2)
        v, w = rng.standard_normal(n), rng.standard_normal(p)
        for index in (np.int32, np.int64):
            for X in (csr, csc):
                X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
            n_bytes = csr.data.nbytes + csr.indices.nbytes
            label = f"{np.dtype(index).name} {n} x {p}, {csr.nnz} stored"
            a, b = (csc.data, csc.indices, csc.indptr), (csr.data, csr.indices, csr.indptr)
            for layout, calls in {
                "CSC X'v": {"ours": lambda: kernels.sparse_dots(*a, v), "SciPy": lambda: csc.T @ v},
                "CSR X'v": {
                    "ours": lambda: kernels.sparse_sums(*b, v, p),
                    "SciPy": lambda: csr.T @ v,
                },
                "CSC X w": {
                    "ours": lambda: kernels.sparse_sums(*a, w, n),
                    "SciPy": lambda: csc @ w,
                },
                "CSR X w": {"ours": lambda: kernels.sparse_dots(*b, w), "SciPy": lambda: csr @ w},
                "check": {"ours": lambda: kernels.sparse_fault(csr.indices, csr.indptr, p)},
            }.items():
                yield from timed(layout, label, n_bytes, calls, repeats)


def main() -> None:
    """Time sparse and dense products."""
    options = Options.parse(__doc__)
    with Table("scores", options) as table:
        for part in (sparse_products, dense):
            for row in part(options.smoke, options.times(9)):
                table.add(**row)


if __name__ == "__main__":
    main()
