"""Five-fold cross-validation of 50 levels: ours against adelie, celer and scikit-learn.

Dense: 1000 x 20,000; sparse: 20,000 x 500,000, made as in ``benchmarks.paths``; levels to 0.02 of
the largest. ``passes`` are all readings of the data, those of the final fit included;
``worst_gap`` is the largest that ours proved in any fold. The first runs are not timed.

    python -m benchmarks.cv --out benchmarks/results
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.linear_model import LassoCV

from atomlearn import AtomicRegressorCV
from benchmarks.harness import Options, Table
from benchmarks.paths import THREADS, dense, task, words

Array = NDArray[np.float64]
N_LEVELS, RATIO, FOLDS = 50, 0.02, 5


def ours(X: Any, y: Array, tolerance: float) -> dict[str, Any]:
    """AtomicRegressorCV."""
    model = AtomicRegressorCV(
        n_alphas=N_LEVELS, alpha_ratio=RATIO, cv=FOLDS, fit_intercept=False, tol=tolerance
    ).fit(X, y)
    gap = float(model.cv_results_["max_relative_gap"].max())
    return {"alpha": model.alpha_, "passes": model.n_passes_, "worst_gap": gap}


def adelie(X: Any, y: Array, tolerance: float) -> dict[str, Any]:
    """adelie's cv_grpnet, which makes its own levels and folds."""
    import adelie as ad

    if sparse.issparse(X):
        X = ad.matrix.sparse(X, method="naive", n_threads=THREADS)
    found = ad.cv_grpnet(
        X, ad.glm.gaussian(y), n_folds=FOLDS, intercept=False, tol=tolerance,
        min_ratio=RATIO, lmda_path_size=N_LEVELS, early_exit=False, n_threads=THREADS,
        progress_bar=False,
    )  # fmt: skip
    return {"alpha": float(found.lmdas[found.best_idx])}


def celer(X: Any, y: Array, tolerance: float) -> dict[str, Any]:
    """LassoCV of celer."""
    from celer import LassoCV as CelerCV

    model = CelerCV(
        eps=RATIO, n_alphas=N_LEVELS, cv=FOLDS, fit_intercept=False, tol=tolerance, n_jobs=THREADS
    ).fit(X, y)
    return {"alpha": float(model.alpha_)}


def scikit(X: Any, y: Array, tolerance: float) -> dict[str, Any]:
    """LassoCV."""
    model = LassoCV(
        eps=RATIO, alphas=N_LEVELS, cv=FOLDS, fit_intercept=False, tol=tolerance, max_iter=100_000,
        n_jobs=THREADS,
    ).fit(X, y)  # fmt: skip
    return {"alpha": float(model.alpha_)}


Run = Callable[[Any, Array, float], dict[str, Any]]


def main() -> None:
    """Run each at its tolerances."""
    options = Options.parse(__doc__)
    X, signal = dense(80, 500) if options.smoke else dense(1000, 20_000)
    W, spoken = words(400, 2000, 8000) if options.smoke else words(20_000, 500_000, 2_000_000)
    runs: list[tuple[str, Run, tuple[float, ...]]] = [
        ("atomlearn", ours, (1e-3, 1e-6)),
        ("adelie", adelie, (1e-10, 1e-12)),
        ("celer", celer, (1e-4,)),
        ("scikit-learn", scikit, (1e-4,)),
    ]
    problems = [("dense", X, signal), ("sparse", W, spoken)]
    with Table("cv", options) as table:
        for kind, design, clean in problems:
            y = task(kind, design, clean, "squared", RATIO).y
            for name, run, tolerances in runs:
                for number, tolerance in enumerate(tolerances):
                    row: dict[str, Any] = {"data": kind, "solver": name, "tolerance": tolerance}
                    try:
                        if not number:
                            small, wave = dense(60, 100)
                            run(small, wave, 1e-3)
                        seconds, processor = time.perf_counter(), time.process_time()
                        found = run(design, y, tolerance)
                    except ImportError as missing:
                        table.add(**row, missing=str(missing))
                        break
                    seconds = time.perf_counter() - seconds
                    processor = time.process_time() - processor
                    table.add(**row, seconds=seconds, processor_s=processor, **found)


if __name__ == "__main__":
    main()
