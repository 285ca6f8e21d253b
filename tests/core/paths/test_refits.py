"""Re-fits of the levels of one path over a pool: where the next one starts."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn import losses, norms, paths
from atomlearn.core import DenseBlock, DenseDesign, Pool, Settings, changed
from atomlearn.core.paths.pool import Level
from atomlearn.core.paths.refits import Refits
from atomlearn.interfaces import Norm
from atomlearn.problem import Problem, Regularizer


@pytest.mark.parametrize(
    ("norm", "form", "amounts"),
    [
        (norms.L1(), "penalized", (20.0, 18.0, 16.0)),
        (norms.L1(), "constrained", (1.0, 1.2, 1.4)),
        (norms.KSupport(3), "penalized", (20.0, 18.0, 16.0)),
    ],
)
def test_a_level_starts_where_the_last_two_lead(
    norm: Norm, form: str, amounts: tuple[float, ...]
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 40))
    y = X[:, :10] @ rng.uniform(0.5, 1.0, 10) + rng.standard_normal(100)
    regularizer = Regularizer(norm, form, 1.0)  # type: ignore[arg-type]
    problem = Problem.build(DenseDesign(X), y, losses.Squared(), regularizer)
    pool = Pool(problem)
    pool.add(np.arange(40))
    pool.settle()
    refits = Refits(pool, 1e-9, True)
    how = Settings().run_settings(problem)
    at = [changed(problem, amount=amount) for amount in amounts]
    one, two, three = (Level(each, each, None, how) for each in at)
    first = refits.refitted(one, None)
    refits.remember(one, first)
    second = refits.refitted(two, first)
    refits.remember(two, second)
    start, _ = refits.warm(three, second)
    before, found = np.zeros((2, 40))
    before[second.positions] = second.weights
    third = refits.refitted(three, second)
    refits.remember(three, third)
    found[third.positions] = third.weights
    assert np.linalg.norm(start - found) < 0.4 * np.linalg.norm(before - found)
    assert np.abs(start).sum() <= amounts[2] * (1.0 + 1e-12) or form == "penalized"
    # The same level again starts from its own point.
    again, _ = refits.warm(three, third)
    np.testing.assert_allclose(again, found, rtol=1e-12, atol=1e-12)


def test_levels_ahead_share_the_readings_of_the_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4000))
    y = np.sign(X[:, :10].sum(axis=1) + rng.standard_normal(200))
    calls: list[int] = []
    scores = DenseBlock.scores

    def counted(self: DenseBlock, v: np.ndarray) -> object:
        calls.append(self.shape[1])
        return scores(self, v)

    monkeypatch.setattr(DenseBlock, "scores", counted)
    found = paths.path(X, y, loss="logistic", n_alphas=40, alpha_ratio=0.1, tol=1e-4)
    assert found.converged
    # One reading of the pool for each level would be 40 of them.
    assert len(calls) < 20
