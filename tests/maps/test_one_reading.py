"""Scores of many vectors take one reading, whatever the columns are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from atomlearn import norms, paths, solve
from atomlearn.core import Counted, Forwarding
from atomlearn.designs import (
    Additive,
    Anova,
    Entries,
    Identity,
    KernelOn,
    Kernels,
    Polynomial,
    Standardized,
    Tasks,
    as_design,
)
from atomlearn.interfaces import Design


class Spied(Forwarding):
    """Says which of its data was asked for, and for how many vectors."""

    def __init__(self, inner: Design) -> None:
        super().__init__(inner)
        self.asked: list[int] = []

    def scores(self, v: Any) -> Any:
        self.asked.append(1)
        return self.inner.scores(v)

    def scores_many(self, V: Any) -> Any:
        self.asked.append(V.shape[1])
        return self.inner.scores_many(V)


X = np.random.default_rng(0).integers(0, 6, (40, 7)).astype(np.float64)
AROUND: dict[str, Callable[[Design], Design]] = {
    "standardized": Standardized,
    "products": Polynomial.interactions,
    "tasks": lambda design: Tasks(design, 3),
}
DESIGNS: dict[str, Callable[[], Design]] = {
    "curves": lambda: Additive(X, "intersection"),
    "splines": lambda: Additive(X, "splines"),
    "surfaces": lambda: Anova(X),
    "kernels": lambda: Kernels([KernelOn("rbf", (j,)) for j in range(3)], X),
    "steps in both directions": lambda: as_design(np.repeat(X, 2, axis=1)[::2, ::2]),
    "identity": lambda: Identity((5, 8)),
    "entries": lambda: Entries(np.arange(9) % 5, np.arange(9) % 4, (5, 4)),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_a_reading_serves_all(name: str) -> None:
    design = Counted(DESIGNS[name]())
    V = np.random.default_rng(1).standard_normal((design.shape[0], 5))
    found = design.scores_many(V)
    assert design.passes == 1.0
    for z, v in zip(found, V.T, strict=True):
        np.testing.assert_allclose(z.full(), design.scores(v.copy()).full(), atol=1e-9)


def test_too_many_products_are_searched_for_each_vector() -> None:
    wide = Polynomial.interactions(np.random.default_rng(0).standard_normal((10, 2000)))
    V = np.random.default_rng(1).standard_normal((10, 2))
    assert not wide.traits.reads_at_once
    for z, v in zip(wide.scores_many(V), V.T, strict=True):
        assert z.top(3)[0].tolist() == wide.scores(v.copy()).top(3)[0].tolist()


@pytest.mark.parametrize("name", ["curves", "surfaces", "products", "kernels"])
def test_paths_share_them(name: str) -> None:
    """Ten levels of implicit columns take few readings, and are those of single solves."""
    rng = np.random.default_rng(2)
    inputs = rng.integers(0, 8, (120, 12)).astype(np.float64)
    y = inputs[:, 0] + 0.3 * inputs[:, 1] * inputs[:, 2] + rng.standard_normal(120)
    scaled = (inputs - inputs.mean(axis=0)) / inputs.std(axis=0)
    made: dict[str, Design] = {
        "curves": Additive(inputs, "intersection"),
        "surfaces": Anova(inputs),
        "products": Polynomial.interactions(scaled),
        "kernels": Kernels([KernelOn("rbf", (j,)) for j in range(12)], scaled),
    }
    design = made[name]
    grouped = norms.Groups(design.groups) if name in ("curves", "surfaces", "kernels") else "l1"
    found = paths.path(design, y, norm=grouped, n_alphas=10, alpha_ratio=0.1, fit_intercept=True)
    assert found.converged
    assert found.passes <= 8
    for alpha, objective in zip(found.alphas, found.objectives, strict=True):
        alone = solve(design, y, norm=grouped, alpha=alpha)
        assert objective == pytest.approx(alone.objective, rel=2e-6)
