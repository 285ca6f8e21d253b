"""Sparse data stored by rows: found often enough it is copied by columns, and nothing changes."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from atomlearn.core.data.limits import LIMITS
from atomlearn.designs import as_design


def test_many_searches_give_what_the_first_gave():
    rng = np.random.default_rng(0)
    X = sp.random_array((300, 400), density=0.02, rng=rng, format="csr")
    design, v = as_design(X), rng.normal(size=300)
    before = design.scores(v).full()
    for _ in range(LIMITS.searches + 3):
        columns = rng.choice(400, 7, replace=False)
        assert np.array_equal(design.gather(columns).dense(), X.toarray()[:, columns])
    assert np.allclose(design.scores(v).full(), before, rtol=1e-13, atol=1e-15)


def test_largest_magnitudes_are_those_of_the_array():
    X = sp.random_array((30, 40), density=0.05, rng=np.random.default_rng(1), format="csr")
    X.data -= 0.5
    for stored in (X, X.tocsc(), X.astype(np.float32)):
        largest = as_design(stored).largest_magnitudes()
        assert np.array_equal(largest, np.abs(stored.toarray()).max(axis=0))
