"""Arrays that designs are compared on."""

from __future__ import annotations

import numpy as np

from atomlearn.core import Array

N_SAMPLES, N_FEATURES = 23, 41


def normal(seed: int = 0, shape: tuple[int, int] = (N_SAMPLES, N_FEATURES)) -> Array:
    """Return normal numbers, with a column of zeros and one that stands twice."""
    X = np.random.default_rng(seed).standard_normal(shape)
    X[:, 5] = 0.0
    X[:, 9] = X[:, 3]
    return X
