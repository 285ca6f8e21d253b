"""Losses piece by piece are the losses of all samples at once, wherever the pieces end."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import Loss, pieces
from atomlearn.losses import Logistic, Multinomial, Squared, SquaredHinge

LOSSES = (
    Squared(),
    Logistic(),
    SquaredHinge(),
    Multinomial(3),
)


def sample(loss: Loss, rows: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Targets, predictions and weights of 3 * rows samples; each row has one weight."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=3 * rows)
    if loss.name == "multinomial":
        y = np.eye(3)[np.arange(rows) % 3].reshape(-1)
    elif loss.task == "classification":
        y = rng.choice([-1.0, 1.0], 3 * rows)
    else:
        y = rng.normal(size=3 * rows)
    return y, z, np.repeat(rng.uniform(0.1, 2.0, rows), 3)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
@given(
    rows=st.integers(1, 40),
    piece=st.integers(1, 30),
    shift=st.sampled_from([0.0, 0.7]),
    seed=st.integers(0, 99),
)
def test_pieces_sum_to_the_whole(
    loss: Loss, rows: int, piece: int, shift: float, seed: int
) -> None:
    y, z, s = sample(loss, rows, seed)
    before, pieces.PIECE = pieces.PIECE, piece
    try:
        cut = [piece[0] for piece in pieces.each_piece(loss, y, z, s)]
        covered = np.concatenate([np.arange(y.size)[part] for part in cut])
        assert_array_equal(covered, np.arange(y.size))
        if loss.coupled == 1:
            assert all(y[part].size <= piece for part in cut)
        g = loss.gradient(y, z + shift, s)
        assert_allclose(pieces.gradient(loss, y, z, s, shift), g, atol=1e-12)
        assert_allclose(pieces.value(loss, y, z, s, shift), loss.value(y, z + shift, s))
        assert_allclose(pieces.conjugate(loss, y, g, s), loss.conjugate(y, g, s), atol=1e-11)
        half = pieces.conjugate(loss, y, -g, s, -0.5)
        assert_allclose(half, loss.conjugate(y, 0.5 * g, s), atol=1e-11)
        slope, size = pieces.slope(loss, y, z, s, shift)
        assert_allclose([slope, size], [g.sum(), np.abs(g).sum()], atol=1e-11)
        bends = loss.curvature(y, z + shift, s)
        assert_allclose(pieces.curvature(loss, y, z, s, shift), bends.sum())
        assert_allclose(pieces.squares(g, s), (g * g / s).sum(), atol=1e-12)
    finally:
        pieces.PIECE = before


def test_samples_without_weight_have_no_square() -> None:
    assert pieces.squares(np.array([3.0, 0.0]), np.array([2.0, 0.0])) == 4.5


@pytest.mark.parametrize("loss", [Squared(), Logistic(), SquaredHinge()], ids=repr)
def test_no_temporary_arrays_of_all_samples(loss: Loss) -> None:
    rng = np.random.default_rng(0)
    n = 2**20
    y, z, s = rng.choice([-1.0, 1.0], n), rng.normal(size=n), np.ones(n)
    g = loss.gradient(y, z, s)
    vector = y.nbytes
    for call, vectors in (
        (lambda: pieces.value(loss, y, z, s, 0.1), 0),
        (lambda: pieces.conjugate(loss, y, g, s, 0.5), 0),
        (lambda: pieces.slope(loss, y, z, s, 0.1), 0),
        (lambda: pieces.curvature(loss, y, z, s, 0.1), 0),
        (lambda: pieces.gradient(loss, y, z, s, 0.1), 1),
    ):
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= (vectors + 0.3) * vector
