"""A path over packed genotypes with many effects: more columns want to join than may at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import paths
from atomlearn.core.paths import pool, shared_levels
from atomlearn.core.paths.refits import Refits
from atomlearn.designs import PlinkBed
from atomlearn.storage.store import stored_columns
from tests.oracles.genotypes import genotypes, naive_write_plink


def test_no_level_is_tried_far_ahead_of_the_columns_that_joined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X = genotypes(150, 500, 0.0)
    y = (X - X.mean(axis=0)) @ rng.standard_normal(500) + rng.standard_normal(150)
    naive_write_plink(tmp_path / "many.bed", X)
    expected = paths.path(X, y, fit_intercept=True, n_alphas=20, alpha_ratio=0.1, tol=1e-9)

    monkeypatch.setattr(stored_columns, "READING", replace(stored_columns.READING, packed_from=0))
    monkeypatch.setattr(pool, "WHOLE", 0)
    monkeypatch.setattr(shared_levels, "WHOLE", 0)
    monkeypatch.setattr(pool, "JOINING", 10)  # four times as many packed ones
    monkeypatch.setattr(shared_levels, "JOINING", 10)
    sizes: list[int] = []
    refitted = Refits.refitted

    def watched(self, *given):  # type: ignore[no-untyped-def]
        sizes.append(self.pool.columns.size)
        return refitted(self, *given)

    monkeypatch.setattr(Refits, "refitted", watched)
    design = PlinkBed(tmp_path / "many.bed")

    def count() -> int:
        """Return how many re-fits the path takes."""
        sizes.clear()
        found = paths.path(design, y, fit_intercept=True, n_alphas=20, alpha_ratio=0.1, tol=1e-9)
        assert found.converged
        assert_allclose(found.alphas, expected.alphas, rtol=1e-12)
        assert_allclose(found.objectives, expected.objectives, rtol=1e-8)
        assert np.diff(np.unique(sizes)).max() <= 40
        return len(sizes)

    few = count()
    monkeypatch.setattr(shared_levels, "SHARES", (shared_levels.SHARE,))
    assert few < count()
