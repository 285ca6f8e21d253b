"""Wrappers and Jacobians beyond the conformance suite: implicit scores, sparse factors, size."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from atomlearn.core import ArrayScores
from atomlearn.core.interfaces import proximal
from atomlearn.core.norms.blocks import Cover
from atomlearn.core.norms.combine import PositiveScores
from atomlearn.interfaces import Norm, Scores
from atomlearn.norms import (
    L1,
    L2,
    Blocks,
    ElasticNetNorm,
    Groups,
    KSupport,
    Nonnegative,
    Scaled,
)
from atomlearn.testing import tolerances

SAME = tolerances.SAME_FLOAT64
FORMS = ("penalized", "squared", "constrained")


class TopOnly(Scores):
    """Scores that can be asked for their largest magnitudes only, as implicit designs'."""

    def __init__(self, z):
        self.z = z
        self.asked = []

    @property
    def n_columns(self):
        return self.z.size

    def top(self, count):
        self.asked.append(count)
        return ArrayScores(self.z).top(count)

    def at(self, columns):
        return self.z[columns]


class TestImplicitScores:
    def test_ksupport_asks_for_k(self):
        scores = TopOnly(np.random.default_rng(0).normal(size=1000))
        KSupport(7).polar(scores)
        KSupport(7).best_columns(scores, 3)
        assert scores.asked == [7, 7]

    def test_nonnegative_stops_early(self):
        scores = TopOnly(np.random.default_rng(3).normal(size=100_000))
        Nonnegative(L1()).polar(scores)
        assert sum(scores.asked) < 1000

    def test_elastic_net_asks_for_few(self):
        rng = np.random.default_rng(1)
        for _ in range(50):
            z = rng.normal(size=5000)
            scores = TopOnly(z)
            polar = ElasticNetNorm(20).polar(scores)
            assert max(scores.asked) <= 320
            # The polar of all scores at once: nothing was missed.
            theta = ElasticNetNorm(20)._top_scores(ArrayScores(z[np.argsort(-np.abs(z))]))[2]
            expected = np.linalg.norm(np.maximum(np.abs(z) - theta, 0)) + np.sqrt(20) * theta
            assert_allclose(polar, expected, rtol=SAME)

    @pytest.mark.parametrize("n_positive", [0, 1, 5, 500])
    def test_nonnegative_asks_until_it_has_enough(self, n_positive):
        rng = np.random.default_rng(2)
        z = -np.abs(rng.normal(size=2000)) - 1.0
        z[rng.permutation(2000)[:n_positive]] = rng.uniform(0.1, 0.9, size=n_positive)
        norm = Nonnegative(KSupport(4))
        largest = np.sort(np.maximum(z, 0))[::-1][:4]
        assert_allclose(norm.polar(TopOnly(z)), np.linalg.norm(largest), rtol=SAME)
        columns = norm.best_columns(TopOnly(z), 10)
        assert columns.size == min(10, n_positive)
        assert_allclose(z[columns], np.sort(np.maximum(z, 0))[::-1][: columns.size])


class TestViews:
    def test_positive_scores_keep_the_contract(self):
        rng = np.random.default_rng(4)
        for _ in range(200):
            z = np.round(rng.normal(size=int(rng.integers(1, 40))), 1)
            view, plain = PositiveScores(ArrayScores(z)), ArrayScores(np.maximum(z, 0))
            count = int(rng.integers(0, 45))
            columns, values = view.top(count)
            expected, best = plain.top(count)
            positive = best > 0  # zeros are left out
            assert_array_equal(values, best[positive])
            assert_array_equal(columns, expected[positive])


class TestWrappers:
    def test_nested_restriction(self):
        norm = Blocks([KSupport(2)], Cover((np.array([4, 1, 0]),), 6))
        part = norm.restrict(np.array([3, 4, 0]), 6)
        assert part.value(np.array([0.0, 3.0, 4.0])) == 5.0
        assert part.value(np.array([1.0, 3.0, 4.0])) == np.inf
        assert norm.restrict(np.array([4, 0]), 6) == KSupport(2)

    def test_a_norm_without_prox(self):
        class PolarOnly(Norm):
            def value(self, w):
                return float(np.abs(w).max())

            def polar(self, scores):
                return float(np.abs(scores.full()).sum())

            def best_columns(self, scores, count):
                return scores.top(count)[0]

        with pytest.raises(TypeError, match="PolarOnly has no proximal map"):
            Scaled(PolarOnly(), 2.0).prox(np.ones(3), 1.0)
        assert Scaled(PolarOnly(), 2.0).restrict(np.array([0]), 3) is None
        assert Scaled(PolarOnly(), 2.0).thresholds(np.ones(3), np.zeros(1, int), 3) == 0.0
        assert Scaled(PolarOnly(), 2.0).value(np.ones(3)) == 2.0


class TestJacobians:
    @pytest.mark.parametrize("form", FORMS)
    def test_sparse_factors_are_the_dense_ones(self, form, monkeypatch):
        rng = np.random.default_rng(7)
        labels = rng.integers(0, 8, size=30)
        for norm in (
            KSupport(3, labels),
            Groups(labels, rng.uniform(0.5, 2.0, 8)),
            Nonnegative(KSupport(3, labels)),
        ):
            v, u = rng.normal(size=30), rng.normal(size=30)
            monkeypatch.setattr(proximal, "MAX_DENSE_FACTORS", 2**18)
            dense = norm.prox_point(v, 0.4, form).jacobian()
            monkeypatch.setattr(proximal, "MAX_DENSE_FACTORS", 0)
            slim = norm.prox_point(v, 0.4, form).jacobian()
            assert isinstance(dense.factors, np.ndarray)
            assert isinstance(slim.factors, sparse.csc_array)
            assert slim.factors.has_canonical_format
            assert_array_equal(slim.dense(), dense.dense())
            assert_array_equal(slim.dense_factors(), dense.factors)
            assert_array_equal(slim.support, dense.support)
            assert_allclose(slim.apply(u), dense.apply(u), atol=SAME)
            more = rng.normal(size=(30, 2))
            both = [part.plus(more, np.array([1.0, 2.0])).dense() for part in (slim, dense)]
            assert_allclose(both[0], both[1], atol=SAME)

    def test_many_groups_stay_sparse(self):
        rng = np.random.default_rng(8)
        labels = np.repeat(np.arange(5000), 4)
        jacobian = KSupport(500, labels).prox_point(rng.normal(size=20_000), 1.0, "squared")
        factors = jacobian.jacobian().factors
        assert isinstance(factors, sparse.csc_array)
        assert factors.nnz <= 2 * 20_000

    def test_zero_has_the_jacobian_of_the_l2_norm(self):
        """Where k covers every coordinate the squared map is linear, at zero too."""
        for norm in (L2(), KSupport(5), ElasticNetNorm(5), KSupport(1, np.zeros(5, int))):
            for v in (np.zeros(5), np.array([1.0, 0.0, 0.0, 2.0, 0.0])):
                jacobian = norm.prox_point(v, 0.25, "squared").jacobian()
                assert_allclose(jacobian.dense(), 0.8 * np.eye(5), atol=SAME)


class TestLargeInputs:
    @pytest.mark.parametrize("form", ["penalized", "constrained"])
    def test_hard_inputs(self, form):
        """Heavy tails, ties and sixteen decades: optimal."""
        rng = np.random.default_rng(9)
        makers = [
            rng.standard_normal,
            rng.standard_cauchy,
            lambda size: np.exp(5.0 * rng.normal(size=size)),
            lambda size: np.round(3.0 * rng.normal(size=size)),
            lambda size: 10.0 ** rng.uniform(-8, 8, size=size),
        ]
        for trial in range(60):
            v = makers[trial % 5](int(rng.integers(100, 2000)))
            norm = KSupport(int(rng.integers(1, v.size + 1)))
            polar, gauge = norm.polar(ArrayScores(v)), norm.value(v)
            shares = (rng.uniform(), 1.0 - 10.0 ** rng.uniform(-12, -1), 10.0 ** rng.uniform(-8, 0))
            amount = shares[trial % 3] * (polar if form == "penalized" else gauge)
            point = norm.prox_point(v, amount, form).point
            residual = v - point
            value, top = norm.value(point), norm.polar(ArrayScores(residual))
            if form == "penalized":
                assert top <= amount + SAME * polar
                assert abs(point @ residual - amount * value) <= SAME * polar * gauge
            else:
                assert value <= amount + SAME * gauge
                assert abs(point @ residual - amount * top) <= SAME * polar * gauge
