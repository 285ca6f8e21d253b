"""Terms and refusals that drawn changes of a line got past, the second draw of them."""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import designs, losses, norms
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.losses.probabilities import log_probabilities
from atomlearn.core.losses.targets import binary_target
from atomlearn.core.masters.free_newton import projected
from atomlearn.core.problem.factored import Factored
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Certificate
from atomlearn.core.problem.rounding import EPS, Lengths, _reach, of_shift, rounding
from atomlearn.solvers import ColumnGeneration
from atomlearn.storage.formats.numpy_files import load_npy
from atomlearn.survival.target import checked_survival


def problem_of(loss, y) -> Problem:
    regularizer = Regularizer(norms.L1(), "penalized", 1.0)
    return Problem.build(designs.as_design(np.eye(y.size)), y, loss, regularizer)


def test_what_predictions_are_off_by_counts_with_slope_and_curvature():
    """Weights that cancel, of long columns: f is off by its slope times what the sum is off by."""
    task = problem_of(losses.Squared(), np.arange(1.0, 5.0))
    columns, prediction = np.arange(4), np.zeros(4)
    lengths = Lengths(np.ones(4), np.full(4, 1e6), np.zeros(4))
    none = Lengths(np.ones(4), np.zeros(4), np.zeros(4))
    weights, dual = np.array([1e3, -1e3, 1e3, -1e3]), np.full(4, 5.0)
    at = task, columns, weights, prediction, dual, Certificate(10.0, 1.0, 1.0)
    more = rounding(*at, lengths) - rounding(*at, none)
    off = EPS * (4.0 + math.sqrt(4.0)) * 4e9
    assert_allclose(more, 10.0 * off + 0.5 * off * off, rtol=1e-6)


def test_the_curvature_of_losses_without_a_bound_counts_where_it_is_known():
    task = problem_of(losses.Poisson(), np.array([1.0, 2.0, 0.0]))
    prediction = np.array([0.0, 1.0, 2.0])
    assert_allclose(of_shift(task, 1e-3, prediction), math.exp(2.0) * 3e-6)
    assert of_shift(task, 1e-3) == 0.0
    assert of_shift(task, 0.0, prediction) == 0.0


def test_arrays_are_read_in_place_only_where_all_of_them_are_meant():
    X = np.random.default_rng(0).normal(size=(30, 8))
    assert designs.as_design(X).stored() is not None
    assert designs.as_design(X).with_rows(np.array([1, 4, 5])).stored() is None
    assert designs.as_design(X[::2, ::2]).stored() is None


def test_what_is_projected_is_made_anew_for_another_curvature():
    rng = np.random.default_rng(1)
    A, Q = np.asfortranarray(rng.normal(size=(12, 4))), np.linalg.qr(rng.normal(size=(12, 2)))[0]
    block = CachedBlock.of(DenseBlock(A))
    for D in (np.ones(12), rng.uniform(0.5, 2.0, size=12)):
        left = projected(block, Q, D)
        assert projected(block, Q, D) is left
        assert_allclose(Q.T @ (D[:, None] * left.dense()), 0.0, atol=1e-12)


def test_a_parameter_without_effect_is_told_where_it_is_given():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ColumnGeneration(screening=True)
    assert [one.category for one in told] == [DeprecationWarning]
    assert told[0].filename == __file__


def test_five_labels_are_named_and_a_sixth_is_counted():
    with pytest.raises(ValueError, match=r"found 0\.0, 1\.0, 2\.0, 3\.0, 4\.0\. Map"):
        binary_target(np.arange(5.0))
    with pytest.raises(ValueError, match=r"4\.0, \.\.\. \(6 distinct values\)"):
        binary_target(np.arange(6.0))


@pytest.mark.parametrize(("form", "name"), [("constrained", "radius"), ("penalized", "level")])
def test_the_amount_of_a_form_has_its_name(form, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        Regularizer(norms.L1(), form, -1.0)


def test_events_that_are_neither_seen_nor_not_are_refused():
    given = np.array([(2, 1.0), (1, 2.0)], dtype=[("event", "i4"), ("time", "f8")])
    with pytest.raises(ValueError, match="True or False"):
        checked_survival(given)
    pairs = np.zeros(2, dtype=[("event", "?", (2,)), ("time", "f8")])
    with pytest.raises(ValueError, match="one for each"):
        checked_survival(pairs)


def test_both_factors_are_as_wide_as_there_are_weights():
    left, right = np.ones((3, 2)), np.ones((4, 2))
    for one, other in ((left[:, :1], right), (left, right[:, :1])):
        with pytest.raises(ValueError, match="Factored needs"):
            Factored(one, np.ones(2), other)


def test_the_polar_of_no_scores_is_nothing():
    norm = norms.OWL(np.ones(3))
    assert norm.restrict(np.arange(0), 3).polar(ArrayScores(np.zeros(0))) == 0.0


def test_errors_of_scores_reach_as_far_as_the_largest_where_no_norm_tells():
    whole = SimpleNamespace(restrict=lambda columns, n_features: None)
    task = SimpleNamespace(
        regularizer=SimpleNamespace(norm=whole), design=SimpleNamespace(shape=(3, 9))
    )
    assert _reach(task, np.arange(3), ArrayScores(np.array([1.0, 4.0, 2.0]))) == (4.0, None)


def test_what_an_offset_is_off_by_counts_by_the_curvature():
    task = problem_of(losses.Squared(), np.arange(1.0, 5.0))
    at = task, np.arange(2), np.ones(2), np.zeros(4), np.zeros(4), Certificate(10.0, 1.0, 1.0)
    offsets = [
        rounding(*at, Lengths(np.ones(2), np.ones(2), np.full(2, far))) for far in (0.0, 1e9)
    ]
    shift = EPS * (4.0 + math.sqrt(2.0)) * 2e9
    assert_allclose(offsets[1] - offsets[0], 0.5 * 4.0 * shift * shift, rtol=1e-6)


def test_probabilities_one_against_rest_are_those_of_each_class():
    decisions = np.array([[3.0, -1.0, 0.0], [-2.0, -2.0, 1.0]])
    each = 1.0 / (1.0 + np.exp(-decisions))
    found = np.exp(log_probabilities(losses.Logistic(), decisions))
    assert_allclose(found, each / each.sum(axis=1, keepdims=True))
    two = np.exp(log_probabilities(losses.Logistic(), decisions[:, :1]))
    assert_allclose(two[:, 1], each[:, 0])


@pytest.mark.parametrize("letter", [0xD800, 0xDC80, 0xDFFF])
def test_half_a_letter_is_no_text(letter, tmp_path):
    np.save(tmp_path / "names.npy", np.array([65, letter], dtype=np.uint32).view("U1"))
    with pytest.raises(ValueError, match="text that is no text"):
        load_npy(tmp_path / "names.npy")


@pytest.mark.parametrize(("map_", "name"), [("project", "radius"), ("prox", "step")])
def test_the_amount_of_a_map_has_its_name(map_, name):
    with pytest.raises(ValueError, match=name):
        getattr(norms.L1(), map_)(np.ones(3), -1.0)


def test_a_part_outside_of_the_range_is_told_with_its_size():
    Q, b = np.diag([1.0, 1.0, 0.0]), np.array([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="a part of 3 outside of the range"):
        designs.from_moments(Q, b)
