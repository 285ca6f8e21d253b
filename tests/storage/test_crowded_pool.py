"""A path over packed genotypes with many effects: more columns want to join than may at a time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import paths
from atomlearn.core.paths import pool, shared_levels
from atomlearn.core.paths.refits import Refits
from atomlearn.designs import PlinkBed
from atomlearn.storage.store import stored_columns
from tests.oracles.genotypes import genotypes, naive_write_plink

SHARED: dict[str, Any] = {"fit_intercept": True, "n_alphas": 20, "alpha_ratio": 0.1, "tol": 1e-9}


@pytest.fixture
def expected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[Any, Any]:
    """Return targets and their path in memory; write the genotypes, of which few may join."""
    rng = np.random.default_rng(0)
    X = genotypes(150, 500, 0.0)
    y = (X - X.mean(axis=0)) @ rng.standard_normal(500) + rng.standard_normal(150)
    naive_write_plink(tmp_path / "many.bed", X)
    found = paths.path(X, y, **SHARED)
    monkeypatch.setattr(stored_columns, "READING", replace(stored_columns.READING, packed_from=0))
    monkeypatch.setattr(pool, "WHOLE", 0)
    monkeypatch.setattr(shared_levels, "WHOLE", 0)
    monkeypatch.setattr(pool, "JOINING", 10)  # four times as many packed ones
    monkeypatch.setattr(shared_levels, "JOINING", 10)
    return y, found


def test_no_level_is_tried_far_ahead_of_the_columns_that_joined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, expected: tuple[Any, Any]
) -> None:
    y, whole = expected
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
        found = paths.path(design, y, **SHARED)
        assert found.converged
        assert_allclose(found.alphas, whole.alphas, rtol=1e-12)
        assert_allclose(found.objectives, whole.objectives, rtol=1e-8)
        assert np.diff(np.unique(sizes)).max() <= 40
        return len(sizes)

    few = count()
    monkeypatch.setattr(shared_levels, "SHARES", (shared_levels.SHARE,))
    assert few < count()


class Killed(BaseException):
    """What a kill does to a process: nothing after it runs."""


class Dying(PlinkBed):
    """Genotypes whose process dies before so many readings for several vectors are done."""

    left = 10**9

    def scores_above(self, V: Any, bounds: Any, affine: Any = None) -> Any:
        if not self.left:
            raise Killed
        self.left -= 1
        return super().scores_above(V, bounds, affine)


@pytest.mark.parametrize("done", [2, 4])
def test_a_killed_path_proves_what_was_kept_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, expected: tuple[Any, Any], done: int
) -> None:
    y, whole = expected
    design = Dying(tmp_path / "many.bed")
    unharmed = paths.path(design, y, **SHARED)
    design.left = done
    with pytest.raises(Killed):
        paths.path(design, y, **SHARED, checkpoint=tmp_path / "kept")
    design.left = 10**9
    levels: list[float] = []
    refitted = Refits.refitted

    def watched(self, level, *given):  # type: ignore[no-untyped-def]
        levels.append(level.inner.regularizer.amount)
        return refitted(self, level, *given)

    monkeypatch.setattr(Refits, "refitted", watched)
    counts: list[int] = []
    answered = shared_levels.SharedLevels.learn

    def learned(self, answer):  # type: ignore[no-untyped-def]
        counts.append(len(levels))
        return answered(self, answer)

    monkeypatch.setattr(shared_levels.SharedLevels, "learn", learned)
    again = paths.path(design, y, **SHARED, checkpoint=tmp_path / "kept")
    assert again.converged
    assert_allclose(again.objectives, whole.objectives, rtol=1e-8)
    # Before the first reading no level beyond what was kept is solved, over a pool without its
    # columns. That reading proves what was kept.
    n_kept = next(count for count in counts if count)
    assert n_kept < 20
    assert len(set(levels[:n_kept])) == n_kept
    assert again.passes <= unharmed.passes - done + 3
