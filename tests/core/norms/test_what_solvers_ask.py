"""What solvers and paths ask a norm beside gauge, polar and prox, against its own gauge."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import ArrayScores, as_norm, l1_weights
from atomlearn.interfaces import Norm
from atomlearn.norms import L1, L2, Groups, KSupport, Nonnegative, Scaled
from atomlearn.testing.norms import NormChecks
from tests.core.norms import test_norm_checks

SUITES = [
    suite
    for suite in vars(test_norm_checks).values()
    if isinstance(suite, type) and issubclass(suite, NormChecks) and hasattr(suite, "norm")
]
EACH = pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.__name__)
N = 7
W = np.array([3.0, 0.0, -1.0, 2.0, 0.0, -0.5, 1.0])
PRICES = [1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 4.0]
GROUPS = [[0, 1], [2, 6], [3, 4, 5]]


@EACH
def test_no_columns_have_no_gauge_no_polar_and_no_best(suite: type[NormChecks]) -> None:
    norm = suite.norm.restrict(np.zeros(0, dtype=np.int64), suite.n_features)
    nothing = np.zeros(0)
    scores = ArrayScores(nothing)
    assert norm is not None
    assert norm.value(nothing) == 0.0
    assert norm.polar(scores) == 0.0
    assert norm.best_columns(scores, 3).size == 0
    for form in ("penalized", "squared", "constrained"):
        point = norm.prox_point(nothing, 1.0, form)
        assert point.point.size == 0
        assert point.gauge == 0.0


@EACH
def test_columns_are_rated_in_the_order_in_which_they_are_best(suite: type[NormChecks]) -> None:
    norm = suite.norm.on(suite.n_features)
    if norm.scores_for_ratings is None:
        pytest.skip("rates no columns")
    for seed in range(8):
        z = suite().sample(seed)
        scores = ArrayScores(z)
        reference = norm.reference(scores)
        if reference == 0.0:
            continue
        assert_allclose(norm.reference(ArrayScores(2.0 * z)), 2.0 * reference, rtol=1e-12)
        fewer = np.where(np.arange(z.size) % 3, z, 0.0)
        assert norm.reference(ArrayScores(fewer)) <= reference * (1 + 1e-12)
        for share in (0.3, 0.8, 1.0 - 1e-12):
            found = norm.rated(scores, share * reference)
            assert found.size
            assert_array_equal(found, norm.best_columns(scores, found.size)[: found.size])
        assert not norm.rated(scores, 1.0001 * norm.polar(scores) * len(PRICES)).size


@EACH
def test_simpler_names_are_of_the_same_norm(suite: type[NormChecks]) -> None:
    """Groups, weights, prices and shares that a norm says it has make up its gauge."""
    checks, n = suite(), suite.n_features
    for norm in (suite.norm.on(n),):
        groups, weights = norm.as_groups(n), l1_weights(norm, n)
        prices = l1_weights(norm, n, nonnegative=True)
        for seed in range(4):
            w = checks.inside(checks.sample(seed))
            gauge = norm.value(w)
            if groups is not None:
                squares = np.bincount(groups.labels, w * w, groups.weights.size)
                assert_allclose(groups.weights @ np.sqrt(squares), gauge, rtol=1e-12)
            if weights is not None:
                assert_allclose(weights @ np.abs(w), gauge, rtol=1e-12)
            if prices is not None:
                assert_allclose(prices @ w, gauge, rtol=1e-12)
                assert norm.value(-np.ones(n)) == math.inf
            if isinstance(norm, KSupport) and norm.groups is None:
                shares = norm.scaling(w)
                square = np.divide(w * w, shares, out=np.zeros(n), where=shares > 0).sum()
                assert_allclose(square, gauge**2, rtol=1e-12)
                assert ((shares > 0) == (w != 0)).all()


@pytest.mark.parametrize(
    ("norm", "weights", "prices"),
    [(L1(), np.ones(N), None), (L1(PRICES), np.array(PRICES), None),
     (Scaled(L1(PRICES), 2.0), 2.0 * np.array(PRICES), None),
     (L1(PRICES, lower=0.0), None, np.array(PRICES)),
     (Scaled(L1(PRICES, lower=0.0), 2.0), None, 2.0 * np.array(PRICES)),
     (L1(PRICES, lower=-1.0), None, None), (L1(PRICES, lower=0.0, upper=9.0), None, None),
     (L1([0.0, *PRICES[1:]]), None, None),
     (L1([np.inf, *PRICES[1:]]), None, None),
     (Nonnegative(L1(PRICES)), None, np.array(PRICES)), (L2(), None, None),
     (Groups([[j] for j in range(N)], PRICES), np.array(PRICES), None),
     (Groups([[j] for j in range(N)]), np.ones(N), None), (Groups(GROUPS), None, None)],
)  # fmt: skip
def test_which_norms_are_sums_of_magnitudes(norm: Norm, weights: object, prices: object) -> None:
    norm = norm.on(N)
    both = l1_weights(norm, N), l1_weights(norm, N, nonnegative=True)
    for told, expected in zip(both, (weights, prices), strict=True):
        assert (told is None) == (expected is None)
        if expected is not None:
            assert_allclose(told, expected)


@pytest.mark.parametrize("norm", [L1(), L1(PRICES), Scaled(L1(PRICES), 2.0), Groups(GROUPS), L2(),
                                  Scaled(KSupport(2), 3.0), Nonnegative(L1(PRICES))])  # fmt: skip
def test_without_some_columns_the_others_cost_what_they_did(norm: Norm) -> None:
    norm, out, w = norm.on(N), np.array([0, 3]), np.abs(W)
    free, less = norm.without(out, N)
    assert free.tolist() == [0, 3]
    kept = np.where(np.isin(np.arange(N), out), 0.0, w)
    assert_allclose(less.value(kept), norm.value(kept))
    still = less.prox_point(np.where(kept > 0, w, 0.0), 0.1, "penalized").point
    assert_allclose(still, norm.prox_point(np.where(kept > 0, w, 0.0), 0.1, "penalized").point)
    assert not still[out].any()
    if l1_weights(norm, N) is not None and l1_weights(norm, N)[1] != 1.0:
        assert less.value(w) == math.inf


def test_ratings_by_hand() -> None:
    z = ArrayScores(np.array([4.0, -3.0, 2.0, 1.0, 0.5, -3.5, 0.0]))
    ones = [[0, 1], [2, 6], [3, 4, 5]]
    assert L1().reference(z) == 4.0
    assert L1().rated(z, 3.0).tolist() == [0, 5, 1]
    assert L1(PRICES).reference(z) == 4.0
    assert L1(PRICES).rated(z, 3.5).tolist() == [0, 2, 5]
    assert KSupport(2).reference(z) == 3.5
    assert KSupport(2).rated(z, 3.5).tolist() == [0, 5]
    assert KSupport(2, ones).reference(z) == pytest.approx(math.hypot(1.0, 0.5, 3.5))
    assert KSupport(2, ones).rated(z, 2.5).tolist() == [0, 1, 3, 4, 5]
    assert Groups(ones, [5.0, 1.0, 1.0]).reference(z) == pytest.approx(math.hypot(1.0, 0.5, 3.5))
    assert Groups(ones, [5.0, 1.0, 1.0]).rated(z, 1.0).tolist() == [3, 4, 5, 2, 6, 0, 1]
    rated = (L1(), L1(PRICES), L1(lower=0.0), KSupport(2), KSupport(2, ones), L2())
    needed = [norm.scores_for_ratings for norm in rated]
    assert needed == ["large", "all", None, "large", "all", "all"]


@pytest.mark.parametrize(("given", "said"), [(3, "got int$"), (L1, r"write L1\(\.\.\.\)")])
def test_what_is_no_norm_is_refused(given: object, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        as_norm(given)
    with pytest.raises(TypeError, match=r"parameters \['k'\] were given with the object"):
        as_norm(L1(), k=2)
