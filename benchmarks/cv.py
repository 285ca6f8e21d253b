"""Five-fold cross-validation of 50 levels: ours against adelie and scikit-learn.

The data of ``benchmarks.paths``; levels to 0.02 of the largest. ``passes`` are all readings of the
data, those of the final fit included; ``worst_gap`` is the largest that ours proved in any fold.

    python -m benchmarks.cv --out benchmarks/results
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LassoCV

from atomlearn import AtomicRegressorCV
from benchmarks.harness import Options, Table
from benchmarks.paths import THREADS, data

Array = NDArray[np.float64]
N_LEVELS, RATIO, FOLDS = 50, 0.02, 5


def ours(X: Array, y: Array, tolerance: float) -> dict[str, Any]:
    """AtomicRegressorCV."""
    model = AtomicRegressorCV(
        n_alphas=N_LEVELS, alpha_ratio=RATIO, cv=FOLDS, fit_intercept=False, tol=tolerance
    ).fit(X, y)
    gap = float(model.cv_results_["max_relative_gap"].max())
    return {"alpha": model.alpha_, "passes": model.n_passes_, "worst_gap": gap}


def adelie(X: Array, y: Array, tolerance: float) -> dict[str, Any]:
    """adelie's cv_grpnet, which makes its own levels and folds."""
    import adelie as ad

    found = ad.cv_grpnet(
        X, ad.glm.gaussian(y), n_folds=FOLDS, intercept=False, tol=tolerance,
        min_ratio=RATIO, lmda_path_size=N_LEVELS, early_exit=False, n_threads=THREADS,
        progress_bar=False,
    )  # fmt: skip
    return {"alpha": float(found.lmdas[found.best_idx])}


def scikit(X: Array, y: Array, tolerance: float) -> dict[str, Any]:
    """LassoCV."""
    model = LassoCV(
        eps=RATIO, alphas=N_LEVELS, cv=FOLDS, fit_intercept=False, tol=tolerance, max_iter=100_000,
        n_jobs=THREADS,
    ).fit(X, y)  # fmt: skip
    return {"alpha": float(model.alpha_)}


def main() -> None:
    """Run each at its tolerances."""
    options = Options.parse(__doc__)
    X, y = data(options)
    runs = [
        ("atomlearn", ours, (1e-3, 1e-6)),
        ("adelie", adelie, (1e-10, 1e-12)),
        ("scikit-learn", scikit, (1e-4,)),
    ]
    with Table("cv", options) as table:
        for name, run, tolerances in runs:
            for tolerance in tolerances:
                row: dict[str, Any] = {"solver": name, "n": X.shape[0], "p": X.shape[1]}
                try:
                    seconds, processor = time.perf_counter(), time.process_time()
                    found = run(X, y, tolerance)
                except ImportError as missing:
                    table.add(**row, tolerance=tolerance, missing=str(missing))
                    break
                seconds = time.perf_counter() - seconds
                processor = time.process_time() - processor
                table.add(
                    **row, tolerance=tolerance, seconds=seconds, processor_s=processor, **found
                )


if __name__ == "__main__":
    main()
