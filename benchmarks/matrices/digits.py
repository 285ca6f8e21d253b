"""Images of digits with unit norm, as in the matrix pursuit of [L]: MNIST at 14 x 14, and USPS."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.real_data import load

#: Images of each digit.
PER_DIGIT = {"mnist": 100, "usps": 200}


class Digits:
    """One data set, from which balanced draws are made."""

    def __init__(self, name: str) -> None:
        data = load(name, dtype=np.float32)
        X = np.asarray(data.X)
        if name == "mnist":
            X = X.reshape(-1, 14, 2, 14, 2).mean((2, 4)).reshape(-1, 196)
        self.name, self.X, self.y = name, X, np.asarray(data.y).astype(np.int64)

    def draw(self, seed: int, each: int | None = None) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return X (n_pixels, n) with unit columns, float64, and the digits (n,)."""
        rng = np.random.default_rng(seed)
        count = each or PER_DIGIT[self.name]
        chosen = np.concatenate(
            [rng.choice(np.flatnonzero(self.y == digit), count, False) for digit in range(10)]
        )
        X = self.X[chosen].astype(np.float64)
        X /= np.linalg.norm(X, axis=1)[:, None]
        return np.asfortranarray(X.T), self.y[chosen]
