"""Sparse data stored by rows: found often enough it is copied by columns, and nothing changes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from atomlearn import solve
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.standardized import largest_magnitudes
from atomlearn.designs import as_design


def test_many_searches_give_what_the_first_gave():
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 400), density=0.02, rng=rng, format="csr")
    design, v = as_design(X), rng.normal(size=300)
    before = design.scores(v).full()
    for _ in range(LIMITS.searches + 3):
        columns = rng.choice(400, 7, replace=False)
        assert np.array_equal(design.gather(columns).dense(), X.toarray()[:, columns])
    assert np.array_equal(design.scores(v).full(), before)


def test_a_fit_does_not_depend_on_what_was_asked_before() -> None:
    """To the last bit: of data that was searched often, and of data that was not."""
    rng = np.random.default_rng(2)
    X = sp.random_array((300, 4000), density=0.02, rng=rng, format="csr")
    y = X @ rng.standard_normal(4000)
    fresh, often = as_design(X), as_design(X)
    for _ in range(LIMITS.searches + 3):
        often.gather(np.arange(5))
    one, other = (solve(design, y, level=0.3, gap=1e-9) for design in (fresh, often))
    assert one.columns.tolist() == other.columns.tolist()
    assert np.array_equal(one.weights, other.weights)
    assert one.gap == other.gap


def test_largest_magnitudes_are_those_of_the_array():
    X = sp.random_array((30, 40), density=0.05, rng=np.random.default_rng(1), format="csr")
    X.data -= 0.5
    for stored in (X, X.tocsc(), X.astype(np.float32)):
        largest = largest_magnitudes(as_design(stored))
        assert np.array_equal(largest, np.abs(stored.toarray()).max(axis=0))
