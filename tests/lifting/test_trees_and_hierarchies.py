"""Trees: laminar families, pruning, parents. Hierarchies: supports of solutions, pair orders."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import AtomicRegressor
from atomlearn.core import ArrayScores
from atomlearn.designs import Polynomial
from atomlearn.norms import Hierarchy, LatentGroups, LatentKSupport, Trees
from tests.oracles.sums import solve_sum


def test_from_parents():
    #        0
    #      1   2
    #     3 4   5     features sit at 1, 3, 4, 5, 5; node 0 and 2 have none of their own
    norm = Trees.from_parents([-1, 0, 0, 1, 1, 2], nodes=[1, 3, 4, 5, 5], weights=np.arange(1.0, 7))
    assert norm.groups == [[0, 1, 2, 3, 4], [0, 1, 2], [3, 4], [1], [2], [3, 4]]
    assert_array_equal(norm.weights, np.arange(1.0, 7))
    norm.on(5)
    # Node 0 has no feature at it or below it: it is left out, and its weight with it.
    first = Trees.from_parents([-1, -1, 1], nodes=[1, 2, 2], weights=[5.0, 2.0, 1.0])
    assert first.groups == [[0, 1, 2], [1, 2]]
    assert_array_equal(first.weights, [2.0, 1.0])
    first.on(3)
    with pytest.raises(ValueError, match="cycle"):
        Trees.from_parents([1, 0])
    with pytest.raises(ValueError, match=r"-1\.\.1"):
        Trees.from_parents([5, -1])


def test_groups_that_overlap_are_refused():
    with pytest.raises(ValueError, match="groups 0 and 1 overlap"):
        Trees([[0, 1], [1, 2]]).on(3)
    with pytest.raises(ValueError, match="overlap"):
        Trees([[0, 1, 2, 3], [0, 1], [1, 2]]).on(4)
    Trees([[0, 1], [0, 1], [0]]).on(2)


class Unlisted(ArrayScores):
    """Scores as of all pairs of columns: never listed, known by their norms over groups."""

    def full(self):
        raise TypeError("never stored")

    def group_norms(self, labels, n_groups):
        return np.sqrt(np.bincount(labels, weights=self._z**2, minlength=n_groups))


@pytest.mark.parametrize("kind", [Trees, lambda groups, weights: LatentKSupport(3, Trees(groups))])
def test_trees_are_rated_as_any_sets_are_and_without_all_scores(kind):
    rng = np.random.default_rng(0)
    sizes = [2**level for level in range(6, 0, -1)]
    groups = [list(range(start, start + size)) for size in sizes for start in range(0, 60, size)]
    groups = [[feature for feature in group if feature < 60] for group in groups]
    weights = [np.sqrt(len(group)) for group in groups]
    tree = kind(groups, weights)
    plain = LatentGroups(groups, weights)
    if isinstance(tree, LatentKSupport):
        plain = LatentKSupport(3, LatentGroups(groups))
    for norm, other in ((tree, plain), (tree.on(64), plain.on(64))):
        for _ in range(10):
            z = rng.normal(size=64) * (rng.random(64) < 0.2)
            assert_allclose(norm.polar(Unlisted(z)), other.polar(z), rtol=1e-12)
            mine, all_of_it = norm.best_columns(Unlisted(z), 9), other.best_columns(z, 9)
            assert_array_equal(np.sort(mine), np.sort(all_of_it))


@pytest.mark.parametrize("kind", ["weak", "strong"])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_supports_obey_the_hierarchy(kind, loss):
    for seed in range(2):
        rng = np.random.default_rng(seed)
        main = rng.normal(size=(60, 8))
        design = Polynomial.interactions(main)
        signal = main[:, 0] + 2.0 * main[:, 0] * main[:, 1] + main[:, 2] * main[:, 3]
        y = signal + 0.3 * rng.normal(size=60)
        y = y if loss == "squared" else np.sign(y)
        for share in (0.6, 0.3, 0.1):
            norm = Hierarchy(kind)
            v = y if loss == "squared" else 0.5 * y
            level = share * norm.polar(design.scores(v))
            result = solve_sum(design, y, loss=loss, norm=norm, level=level, tol=1e-7)
            assert result.converged
            chosen = set(result.columns.tolist())
            for column in result.columns[result.columns >= 8]:
                i, j = design.pair(int(column))
                assert (i in chosen and j in chosen) or (
                    kind == "weak" and (i in chosen or j in chosen)
                )


def test_pairs_given_and_counted():
    with pytest.raises(ValueError, match=r"designs\.Polynomial\.interactions"):
        Hierarchy().on(11)
    with pytest.raises(ValueError, match="'weak' or 'strong'"):
        Hierarchy("both").on(6)
    with pytest.raises(ValueError, match="main effects come first"):
        Hierarchy(pairs=[[0, 5]]).on(4)
    with pytest.raises(TypeError, match=r"\(n_pairs, 2\)"):
        Hierarchy(pairs=[0, 1]).on(4)
    sets = Hierarchy("strong", pairs=[[1, 0], [1, 1]]).membership(4)
    pairs = zip(sets.starts[:-1], sets.starts[1:], strict=True)
    assert [sets.members[a:b].tolist() for a, b in pairs] == [[0], [1], [1, 3], [0, 1, 2]]


def test_an_estimator_on_interactions():
    rng = np.random.default_rng(1)
    main = rng.normal(size=(100, 6))
    y = main[:, 0] + main[:, 0] * main[:, 3] + 0.1 * rng.normal(size=100)
    model = AtomicRegressor(Hierarchy("weak"), alpha=0.05).fit(Polynomial.interactions(main), y)
    assert_allclose(model.predict(Polynomial.interactions(main)), y, atol=1.0)
    assert model.coef_.size == 21
