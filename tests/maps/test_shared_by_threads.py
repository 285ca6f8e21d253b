"""One design, many threads: what it keeps from one fit to the next is worth the same to all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from atomlearn import designs, norms
from atomlearn.core import Counted
from tests.oracles.sums import solve_sum

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 20))
y = X[:, 0] - X[:, 1] * X[:, 2] + 0.1 * rng.standard_normal(60)

DESIGNS: dict[str, Callable[[], Any]] = {
    "dense": lambda: designs.as_design(X),
    "sparse": lambda: designs.as_design(sp.csr_array(np.where(X > 0.5, X, 0.0))),
    "products": lambda: designs.Polynomial(X),
    "products of sparse": lambda: designs.Polynomial(sp.csr_array(np.where(X > 0.5, X, 0.0))),
    "curves": lambda: designs.Additive(X),
    "counted": lambda: Counted(designs.as_design(X)),
}


@pytest.mark.parametrize("kind", list(DESIGNS))
def test_threads_that_share_a_design_find_what_each_would_alone(kind: str) -> None:
    levels = [0.5, 1.0, 2.0, 4.0, 6.0, 8.0]

    def fit(design: Any, level: float) -> Any:
        norm = norms.Groups(design.blocks) if hasattr(design, "blocks") else "l1"
        return solve_sum(design, y, norm=norm, form="penalized", level=level, tol=1e-8)

    alone = [fit(DESIGNS[kind](), level) for level in levels]
    shared, together, begin = DESIGNS[kind](), [None] * len(levels), threading.Barrier(len(levels))

    def work(place: int) -> None:
        begin.wait()  # caches are empty when all of them begin
        together[place] = fit(shared, levels[place])

    threads = [threading.Thread(target=work, args=(place,)) for place in range(len(levels))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, together, strict=True):
        assert other is not None
        assert other.status == one.status
        assert other.objective == pytest.approx(one.objective, rel=1e-7)
        assert other.columns.tolist() == one.columns.tolist()
