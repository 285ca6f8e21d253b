"""Cholesky factors that grow and shrink, against factors computed afresh."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn import _kernels as kernels
from atomlearn._kernels import reference

Array = NDArray[np.float64]


def held(factor: Array, size: int) -> Array:
    """Return R; what lies below the diagonal of the buffer is not part of it."""
    return np.triu(factor[:size, :size])


@pytest.mark.parametrize("correlation", [0.0, 0.9, 0.999])
def test_thousands_of_changes_do_not_drift(correlation: float) -> None:
    """Appends of one to three and deletions anywhere: R'R stays G to a few roundings."""
    rng = np.random.default_rng(1)
    n_atoms, capacity = 300, 80
    images = rng.standard_normal((200, n_atoms))
    images = np.sqrt(1 - correlation) * images + np.sqrt(correlation) * images[:, :1]
    gram = images.T @ images
    factor, used = np.full((capacity, capacity), np.nan), []
    deleted_first = deleted_last = 0
    for turn in range(6000):
        if len(used) < 2 or (rng.random() < 0.52 and len(used) <= capacity - 3):
            new = rng.choice(np.setdiff1d(np.arange(n_atoms), used), rng.integers(1, 4), False)
            used_then = used + new.tolist()
            pivot = kernels.factor_append(factor, len(used), gram[np.ix_(used_then, new)])
            assert 0 < pivot <= 1
            used = used_then
        else:
            place = int(rng.integers(len(used)))
            deleted_first += place == 0
            deleted_last += place == len(used) - 1
            kernels.factor_delete(factor, len(used), place)
            del used[place]
        if turn % 500 == 499:
            part = gram[np.ix_(used, used)]
            R = held(factor, len(used))
            assert_allclose(R.T @ R, part, rtol=0, atol=1e-13 * gram.max())
            assert_allclose(R, reference.factor_of(part), rtol=0, atol=1e-10 * np.abs(R).max())
    assert deleted_first
    assert deleted_last


@settings(deadline=None, max_examples=100)
@given(size=st.integers(1, 12), seed=st.integers(0, 10**6), data=st.data())
def test_each_position_deletes_as_the_twin_does(size: int, seed: int, data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((size + 3, size))
    gram = images.T @ images
    factor = np.full((size + 2, size + 2), np.nan)
    kernels.factor_append(factor, 0, gram)
    assert_allclose(held(factor, size), reference.factor_of(gram), rtol=1e-9, atol=1e-12)
    place = data.draw(st.integers(0, size - 1))
    kernels.factor_delete(factor, size, place)
    rest = np.delete(np.delete(gram, place, 0), place, 1)
    R = held(factor, size - 1)
    assert_allclose(R.T @ R, rest, rtol=0, atol=1e-12 * gram.max())
    assert (np.diag(R) > 0).all()


def test_solve() -> None:
    rng = np.random.default_rng(2)
    images, right = rng.standard_normal((40, 25)), rng.standard_normal(25)
    gram = images.T @ images
    factor = np.full((30, 30), np.nan)
    kernels.factor_append(factor, 0, gram)
    given = right.copy()
    solution = kernels.factor_solve(factor, 25, right)
    assert_allclose(gram @ solution, right, atol=1e-11)
    np.testing.assert_array_equal(right, given)
    assert kernels.factor_solve(factor, 0, np.zeros(0)).shape == (0,)


def test_dependent_atoms_get_the_least_pivot() -> None:
    """The same atom twice: the pivot is raised, and R'R says by how much."""
    image = np.arange(1.0, 5.0)[:, None]
    gram = np.tile(image, 3).T @ np.tile(image, 3)
    factor = np.zeros((3, 3))
    assert abs(kernels.factor_append(factor, 0, gram, least=1e-10)) < 1e-14
    R = held(factor, 3)
    assert_allclose(R.T @ R - gram, np.diag([0, 1e-10, 1e-10]) * gram[0, 0], atol=1e-13)
    kernels.factor_append(factor, 0, np.zeros((1, 1)), least=1e-10)
    assert factor[0, 0] > 0


def test_bad_arguments() -> None:
    factor = np.zeros((4, 4))
    with pytest.raises(ValueError, match="does not fit"):
        kernels.factor_append(factor, 3, np.ones((5, 2)))
    with pytest.raises(ValueError, match="rows"):
        kernels.factor_append(factor, 2, np.ones((2, 1)))
    with pytest.raises(ValueError, match="does not fit"):
        kernels.factor_solve(factor, 5, np.ones(5))
    with pytest.raises(ValueError, match="does not fit"):
        kernels.factor_delete(factor, -1, 0)
    with pytest.raises(IndexError, match="position"):
        kernels.factor_delete(factor, 2, 2)
    with pytest.raises(IndexError, match="position"):
        kernels.factor_delete(factor, 2, -1)
    with pytest.raises(ValueError, match="3 entries"):
        kernels.factor_solve(factor, 3, np.ones(2))
    with pytest.raises(TypeError, match="square"):
        kernels.factor_solve(np.zeros((3, 4)), 2, np.ones(2))
    with pytest.raises(ValueError, match="C-ordered"):
        kernels.factor_solve(np.zeros((6, 6))[::2, ::2], 2, np.ones(2))
    with pytest.raises(TypeError, match="float64"):
        kernels.factor_append(factor, 0, np.ones((1, 1), dtype=np.float32))
    with pytest.raises(ValueError, match="least"):
        kernels.factor_append(factor, 0, np.ones((1, 1)), least=0.0)
