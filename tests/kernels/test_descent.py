"""Coordinate descent on a quadratic in float32, by the conditions of its minimum in float64."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn._kernels import descend_quadratic


def problem(seed, size=25, rank=40):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rank, size))
    H = (A.T @ A / rank).astype(np.float32)
    return H, rng.standard_normal(size), rng.uniform(0.2, 0.8, size), rng.standard_normal(size)


def strips(H, width):
    """Return the lower half of H in strips of tiles; entries beyond H are large."""
    count = -(-len(H) // width)
    whole = np.full((count * width, count * width), 1e9, dtype=np.float32)
    whole[: len(H), : len(H)] = H
    rows = [whole[k * width : (k + 1) * width, : (k + 1) * width] for k in range(count)]
    return [np.stack(np.hsplit(each, k + 1)) for k, each in enumerate(rows)]


@pytest.mark.parametrize("width", [1, 8, 25, 64])
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.5])
def test_slopes_at_the_end_are_those_of_a_minimum(signed, ridge, width):
    for seed in range(5):
        H, slope, price, start = problem(seed)
        start = start if signed else np.abs(start)
        start[::3] = 0.0
        w, sweeps = descend_quadratic(
            strips(H, width), slope, price, start, ridge=ridge, signed=signed, tolerance=1e-10
        )
        there = slope + (H.astype(float) + ridge * np.eye(25)) @ (w - start)
        assert 0 < np.count_nonzero(w) < 25
        assert sweeps < 1000
        used = w != 0
        assert_allclose(there[used], -price[used] * np.sign(w[used]), atol=1e-8)
        assert np.all(-there[~used] <= price[~used] + 1e-8)
        if signed:
            assert np.all(there[~used] <= price[~used] + 1e-8)
        else:
            assert np.all(w >= 0)


@pytest.mark.parametrize("width", [1, 8, 64])
def test_a_sweep_is_that_of_plain_arithmetic(width):
    H, slope, price, start = problem(7)
    w, sweeps = descend_quadratic(strips(H, width), slope, price, start, ridge=0.1, most=1)
    slow, at = start.copy(), slope.copy()
    for j in range(25):
        bend = float(H[j, j]) + 0.1
        there = slow[j] - at[j] / bend
        change = np.sign(there) * max(abs(there) - price[j] / bend, 0.0) - slow[j]
        slow[j] += change
        at += change * H[j].astype(float)
        at[j] += 0.1 * change
    assert sweeps == 1
    assert_allclose(w, slow, rtol=1e-12, atol=1e-14)


def test_what_does_not_fit_together_is_refused():
    H, slope, price, start = problem(0)
    with pytest.raises(ValueError, match="fit together"):
        descend_quadratic(strips(H[:-9, :-9], 8), slope, price, start)
    with pytest.raises(ValueError, match="fit together"):
        descend_quadratic([*strips(H, 8)[:-1], strips(H, 8)[0]], slope, price, start)
    with pytest.raises(ValueError, match="price must be positive"):
        descend_quadratic(strips(H, 8), slope, 0.0 * price, start)
