"""Completion with the spectral k-support norm and the trace norm (McDonald, Pontil, Stamos 2014).

python -m benchmarks.matrices.spectral_completion [--full]

Matrices of rank 3 with noise are completed from a share of their entries. The level, and k, are
those of the least error on a tenth of the observed entries; the error is that of all others,
relative to the norm of the matrix there. Lines: means over draws, with the standard error of the
differences.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from atomlearn import norms, solve
from atomlearn.designs import Entries

FULL: dict[str, Any] = {"side": 32, "shares": (0.3, 0.4, 0.5), "draws": 6, "levels": 9}
SMALL: dict[str, Any] = {"side": 20, "shares": (0.4,), "draws": 2, "levels": 4}
KS = (1, 2, 3, 5, 8)


def drawn(side: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return a matrix of rank 3 with entries of variance 1, and the same with noise."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal((side, 3)) @ rng.standard_normal((3, side)) / np.sqrt(3)
    return truth, truth + 0.2 * rng.standard_normal(truth.shape)


def completed(noisy: np.ndarray, seen: np.ndarray, norm: Any, alphas: np.ndarray) -> list[Any]:
    """Return a completion for each level, from the largest down, each from the one before."""
    design = Entries(seen, None, noisy.shape)
    found: list[Any] = []
    for alpha in alphas:
        warm = found[-1] if found else None
        settings = {"form": "squared", "fit_intercept": False, "tol": 1e-3, "max_iter": 200}
        y = noisy.ravel()[seen]
        found.append(solve(design, y, norm=norm, alpha=alpha, warm_start=warm, **settings))
    return found


def errors(sizes: dict[str, Any], share: float, seed: int) -> tuple[dict[int, float], int]:
    """Return the error for each k at its best level, and the k of least validation error."""
    truth, noisy = drawn(sizes["side"], seed)
    entries = np.random.default_rng(seed + 1000).permutation(truth.size)
    n = int(share * truth.size)
    seen, valid, rest = np.split(entries[: truth.size], [int(0.9 * n), n])
    test: dict[int, float] = {}
    checked: dict[int, float] = {}
    for k in KS:
        norm = norms.SpectralKSupport(k)
        start = np.zeros(truth.size)
        start[seen] = noisy.ravel()[seen]
        # In the squared form no level selects nothing; this one leaves a hundredth of the fit.
        top = norm.polar(start.reshape(truth.shape)) ** 2 / (start @ start) / seen.size
        alphas = top * np.geomspace(1.0, 1e-4, sizes["levels"])
        found = completed(noisy, np.sort(seen), norm, alphas)
        left = [fit.coef.ravel()[valid] - noisy.ravel()[valid] for fit in found]
        held = [float(part @ part) for part in left]
        best = found[int(np.argmin(held))].coef.ravel()
        checked[k] = min(held)
        missed = np.linalg.norm(best[rest] - truth.ravel()[rest])
        test[k] = float(missed / np.linalg.norm(truth.ravel()[rest]))
    return test, min(checked, key=lambda k: checked[k])


def main(sizes: dict[str, Any]) -> None:
    """Print a row for each share of observed entries."""
    print("| observed | trace norm (k = 1) | spectral k-support | difference | k chosen |")
    print("|---|---|---|---|---|")
    for share in sizes["shares"]:
        rows = [errors(sizes, share, seed) for seed in range(sizes["draws"])]
        trace = np.array([test[1] for test, _ in rows])
        chosen = np.array([test[k] for test, k in rows])
        gain = trace - chosen
        error = gain.std(ddof=1) / np.sqrt(gain.size)
        ks = sorted(k for _, k in rows)
        print(
            f"| {share:.0%} | {trace.mean():.3f} | {chosen.mean():.3f} | "
            f"{gain.mean():.3f} +- {error:.3f} | {', '.join(map(str, ks))} |",
            flush=True,
        )


if __name__ == "__main__":
    began = time.process_time()
    main(FULL if "--full" in sys.argv else SMALL)
    print(f"{time.process_time() - began:.0f} processor seconds")
