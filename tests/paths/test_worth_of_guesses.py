"""How far a path looks ahead: what is wasted costs less than the readings that it spares."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from atomlearn import norms, paths
from atomlearn.core.paths.refits import PoolRefit
from atomlearn.core.paths.shared_levels import SharedLevels


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_guesses_waste_less_than_the_readings_that_they_spare(
    monkeypatch: pytest.MonkeyPatch, loss: str
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 6000))
    y = rng.standard_normal(200)
    y = y if loss == "squared" else np.where(y > 0, 1.0, -1.0)
    work: list[Any] = []
    keep = PoolRefit.solve

    def solve(self: PoolRefit, *given: Any) -> Any:
        before = self.work
        found = keep(self, *given)
        work.append(self.work - before)
        return found

    monkeypatch.setattr(PoolRefit, "solve", solve)
    shared: dict[str, Any] = {"norm": norms.Groups(np.repeat(np.arange(1500), 4)), "loss": loss}
    found = paths.path(X, y, n_levels=12, ratio=0.02, **shared)
    assert found.converged
    ahead = sum(work)
    work.clear()
    monkeypatch.setattr(SharedLevels, "_goes_on", lambda path, batch: False)
    one = paths.path(X, y, n_levels=12, ratio=0.02, **shared)
    assert found.passes < one.passes
    # What was wasted in all is less than the readings that guesses spare, each at its price.
    assert ahead - sum(work) <= (one.passes - found.passes) * X.size
