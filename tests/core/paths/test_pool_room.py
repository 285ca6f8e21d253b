"""A pool with little room: what joins together leaves room for what is missing later."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from atomlearn import losses, norms
from atomlearn.core import Pool, Problem, Regularizer
from atomlearn.core.paths import pool as pools
from atomlearn.designs import as_design


def test_all_of_sparse_data_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pool, "MOST_ENTRIES", 1000)
    monkeypatch.setattr(pools, "JOINING", 4)
    X = sp.random_array((100, 300), density=0.02, rng=np.random.default_rng(0), format="csc")
    l1 = Regularizer(norms.L1(), "penalized", 1.0)

    def pool(data: object) -> Pool:
        design = as_design(data)
        return Pool(Problem.build(design, np.ones(100), losses.as_loss("squared"), l1))

    assert pool(X).room == 300
    assert pool(X.toarray()).room == 10
    # Of two paths with pools of their own each has room for half as many, and both for no more
    # than the one that gathers for them.
    one, other = pool(X.toarray()).for_paths(2)
    assert one is not other
    assert one.room == 5
    one.add(np.arange(5))
    assert (one.room, other.room) == (0, 5)
    other.add(np.arange(3, 7))
    assert other.room == 1
