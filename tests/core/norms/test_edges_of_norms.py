"""Edges of norms: ties, zeros and infinities, what an error names, and what is no part of them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import norms
from atomlearn._support import l2_norm, power_of_two
from atomlearn.core import ArrayScores
from atomlearn.core.norms.forms import l1_point
from atomlearn.interfaces import Scores
from atomlearn.norms import L1, KSupport, Nonnegative
from tests.core.norms.test_bounded_l1 import FORMS, one_by_one
from tests.core.norms.test_what_solvers_ask import EACH


@EACH
def test_refused_amounts_are_called_what_they_are(suite) -> None:
    v = np.ones(suite.n_features)
    for call, name in (
        (suite.norm.prox, "step"),
        (suite.norm.prox_squared, "step"),
        (suite.norm.project, "radius"),
    ):
        for amount in (-1.0, math.nan):
            with pytest.raises(ValueError, match=rf"{name} must be finite and at least 0"):
                call(v, amount)


def test_an_entry_that_has_just_become_zero_has_no_part_in_the_jacobian() -> None:
    c = np.array([1.0, 2.0, 0.5])
    v = np.array([3.0, -1.0, 2.0]) * c
    found = l1_point(v, c, 1.0, "penalized")
    assert_allclose(found.point, np.copysign(np.maximum(np.abs(v) - c, 0.0), v), atol=1e-15)
    assert_array_equal(found.jacobian().support, [0, 2])


def test_columns_without_a_price_and_without_a_score_do_not_matter() -> None:
    norm = L1(weights=[0.0, 2.0, 0.0])
    assert norm.polar(ArrayScores(np.array([0.0, 3.0, 0.0]))) == 1.5
    assert norm.polar(ArrayScores(np.array([0.0, 3.0, 1e-9]))) == math.inf


@pytest.mark.parametrize("form", FORMS)
def test_columns_without_a_price_are_left_alone_beside_bounds(form) -> None:
    weights = np.array([0.0, 1.0, 0.0, 2.0])
    lower, upper = np.where(weights > 0, -0.5, -np.inf), np.full(4, np.inf)
    v, amount = np.array([-2.0, 3.0, 1.0, 4.0]), 0.4
    found = L1(weights, lower, upper).prox_point(v, amount, form)
    theta = {"penalized": amount, "squared": amount * found.gauge}.get(form)
    if theta is None:
        assert_allclose(found.gauge, amount)
        theta = (v[1] - found.point[1]) / weights[1]
    assert_allclose(found.point, one_by_one(v, theta, weights, lower, upper), atol=1e-12)


@pytest.mark.parametrize(
    ("weights", "error", "words"),
    [
        ({"a": 1.0}, ValueError, "by name needs columns with names"),
        ("many", TypeError, "must be a number or one number a column"),
        ([1.0, 2.0], ValueError, r"shape \(3,\); got \(2,\)"),
        ([1.0, math.nan, 1.0], ValueError, "must not be NaN"),
    ],
)
def test_weights_of_columns_are_numbers(weights, error, words) -> None:
    with pytest.raises(error, match=words):
        L1(weights=weights, upper=1.0).value(np.ones(3))


def test_lengths_of_vectors_at_the_ends_of_floats() -> None:
    assert power_of_two(np.array([1.0, np.inf])) == 1.0
    assert l2_norm(np.array([1.0, np.inf])) == np.inf
    assert power_of_two(np.array([1.7e308])) == 2.0**1023
    assert l2_norm(np.array([3e-320, 4e-320])) == pytest.approx(5e-320, rel=1e-3)
    assert KSupport(1).thresholds(np.array([1e307, 2e307]), np.zeros(1, int), 3) == pytest.approx(
        1.0
    )


def test_norms_without_free_columns_are_without_them() -> None:
    _, norm = Nonnegative(L1([1.0, 2.0, 3.0])).without(np.array([1]), 3)
    assert norm.value(np.array([1.0, 0.0, 1.0])) == 4.0
    assert norm.value(np.array([1.0, 5.0, 1.0])) == math.inf
    assert norm.value(np.array([-1.0, 0.0, 1.0])) == math.inf


def test_a_parameter_that_is_a_list_is_not_one_that_is_none() -> None:
    assert KSupport(2, [[0, 1]]) != KSupport(2)
    assert KSupport(2) != KSupport(2, [[0, 1]])
    assert KSupport(2, [[0, 1], [2]]) != KSupport(2, [[0, 1]])


@pytest.mark.parametrize("columns", [np.array([0.0, 1.0]), np.array([[0, 1]])])
def test_blocks_of_a_norm_are_lists_of_whole_numbers(columns):
    norm = norms.Blocks([norms.L1(), norms.L1()], [columns, np.array([2])])
    with pytest.raises(TypeError, match="whole column numbers"):
        norm.value(np.ones(3))


def test_oscar_is_l1_and_the_larger_of_each_pair():
    w = np.array([3.0, -1.0, 0.0, 2.0])
    pairs = sum(max(abs(w[i]), abs(w[j])) for i in range(4) for j in range(i))
    assert norms.OWL.oscar(4, 0.5).value(w) == pytest.approx(6.0 + 0.5 * pairs, rel=1e-14)


@pytest.mark.parametrize("weights", [[np.inf, 1, 1], [2, np.nan, 1], [3, 2, -1], [1, 2, 0]])
def test_weights_of_owl_are_refused_one_by_one(weights):
    with pytest.raises(ValueError, match="finite, >= 0 and non-increasing"):
        norms.OWL(np.array(weights, dtype=float)).value(np.ones(3))


class _Wrong(L1):
    def polar(self, scores: Scores) -> float:
        return 2.0 * super().polar(scores)


def test_an_atom_that_misses_the_polar_is_refused() -> None:
    with pytest.raises(TypeError, match="_Wrong"):
        _Wrong().best_atom(ArrayScores(np.array([1.0, -2.0])))
