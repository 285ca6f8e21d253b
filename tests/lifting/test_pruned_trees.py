"""[T] Remark 2: the search in trees, pruned by bounds, selects as all ratings do, and counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from atomlearn import solve
from atomlearn.interfaces import ArrayScores
from atomlearn.norms import LatentGroups, LatentKSupport, Trees
from atomlearn.solvers import FeatureGeneration

Array = NDArray[np.float64]


def balanced(depth: int) -> list[list[int]]:
    """Return the nodes of a binary tree over 2^depth features, leaves of two features last."""
    p = 2**depth
    spans = [2**level for level in range(depth, 0, -1)]
    return [list(range(s, s + size)) for size in spans for s in range(0, p, size)]


def forest(seed: int, n_features: int = 60) -> list[list[int]]:
    """Return random nested sets: each part is split at random, some are repeated, some left out."""
    rng = np.random.default_rng(seed)
    sets, parts = [], [rng.permutation(n_features)[: n_features - 7]]
    while parts:
        part = parts.pop()
        if rng.random() < 0.8:
            sets.append(part.tolist())
        if rng.random() < 0.1:
            sets.append(part.tolist())
        if part.size > 2:
            at = int(rng.integers(1, part.size))
            parts += [part[:at], part[at:]]
    return [sets[k] for k in rng.permutation(len(sets))]


def looked_at(norm: Any, z: Array) -> float:
    """Return the share of the columns of all sets that the polar looks at."""
    work = norm.stored.expansion.nested.work
    before = work.columns, work.possible
    norm.polar(ArrayScores(z))
    return (work.columns - before[0]) / (work.possible - before[1])


@pytest.mark.parametrize("weights", [None, "sqrt_size", "random"])
@pytest.mark.parametrize("seed", range(8))
def test_the_selection_is_that_of_all_ratings(
    seed: int, weights: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ratings by brute force in NumPy; ties, zeros and repeated sets come in the same order."""
    monkeypatch.setattr("atomlearn.core.interfaces.lift.SEARCHED_FROM", 0)
    rng = np.random.default_rng(seed)
    sets = forest(seed)
    single = sorted(set(range(60)) - {j for one in sets for j in one})
    delta = np.ones(len(sets) + len(single))
    if weights == "random":
        weights = delta[: len(sets)] = rng.uniform(0.2, 3.0, len(sets))
    if isinstance(weights, str):
        delta[: len(sets)] = np.sqrt([len(one) for one in sets])
    lift = Trees(sets, weights).lift(60)
    for turn in range(6):
        z = rng.standard_normal(60) * (rng.random(60) < 0.3)
        z = np.round(z) if turn % 2 else 1e150 * z
        scores = lift.expansion.scores(ArrayScores(z))
        ratings = np.array(
            [np.linalg.norm(z[one] / 1e150) for one in [*sets, *([j] for j in single)]]
        )
        ratings = 1e150 * ratings / delta
        found = scores.group_ratings(lift.labels, delta.size, delta)
        assert_allclose(found.full(), ratings, rtol=1e-12)
        exact = found.full()
        for count in (1, 2, 5, 17, delta.size, 1000):
            order = np.lexsort((np.arange(delta.size), -exact))[:count]
            best, values = found.top(count)
            assert_array_equal(best, order)
            assert_array_equal(values, exact[order])
        bound = float(np.quantile(exact[exact > 0], 0.7))
        assert_array_equal(np.sort(found.above(bound)[0]), np.flatnonzero(exact >= bound))


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_a_deep_tree_is_looked_at_by_less_than_a_fifth(noise: float) -> None:
    """Of 2^16 features under 65,535 nodes, with the signal in one place."""
    sets = balanced(16)
    tree = LatentKSupport(8, Trees(sets)).on(2**16)
    z = noise * np.random.default_rng(0).standard_normal(2**16)
    z[:16] += 3.0
    # Equal weights: the best eight are the path from the root, and what it holds of the signal.
    ratings = np.sqrt([float(z[one] @ z[one]) for one in sets])
    assert looked_at(tree, z) <= 0.2
    assert_allclose(tree.polar(ArrayScores(z)), np.linalg.norm(np.sort(ratings)[-8:]), rtol=1e-12)


def test_a_chain_is_looked_at_as_far_as_its_signal_reaches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """400 nested sets: [0..399], [0..398], ..., with the signal at features 390 and more."""
    monkeypatch.setattr("atomlearn.core.interfaces.lift.SEARCHED_FROM", 0)
    sets = [list(range(stop)) for stop in range(400, 0, -1)]
    tree = Trees(sets).on(400)
    z = np.where(np.arange(400) >= 390, 1.0, 1e-3)
    assert looked_at(tree, z) <= 0.2
    assert_allclose(tree.polar(ArrayScores(z)), np.linalg.norm(z))


def test_fits_over_deep_trees_are_the_same_and_say_what_was_skipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("atomlearn.core.interfaces.lift.SEARCHED_FROM", 0)
    depth = 11
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 2**depth))
    y = np.where(X[:, 64:72].sum(axis=1) > 0, 1.0, -1.0)
    settings: dict[str, Any] = {"loss": "squared_hinge", "form": "squared", "alpha": 1.0 / 80}
    settings |= {"fit_intercept": False, "solver": FeatureGeneration(max_blocks=6)}
    sets = balanced(depth)[2**4 - 1 :]  # without the groups of more than 128 features
    pruned = solve(X, y, norm=LatentKSupport(2, Trees(sets)), **settings)
    whole = solve(X, y, norm=LatentKSupport(2, LatentGroups(sets)), **settings)
    assert_array_equal(pruned.columns, whole.columns)
    assert_allclose(pruned.objective, whole.objective, rtol=1e-7)
    assert [part.group for part in pruned.parts] == [part.group for part in whole.parts]  # type: ignore[union-attr]
    assert whole.history[-1].skipped is None
    assert pruned.history[-1].skipped is not None
    assert 0.0 < pruned.history[-1].skipped < 1.0
