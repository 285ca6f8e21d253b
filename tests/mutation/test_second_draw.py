"""Terms and refusals that drawn changes of a line got past, the second draw of them."""

from __future__ import annotations

import io
import math
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import designs, losses, norms
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.data.scores import ArrayScores
from atomlearn.core.data.text_objects import read_text_objects
from atomlearn.core.losses.survival_target import checked_survival
from atomlearn.core.losses.targets import binary_target
from atomlearn.core.masters.free_newton import projected
from atomlearn.core.problem.factored import Factored
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.rounding import EPS, Lengths, of_shift, rounding
from atomlearn.solvers import ColumnGeneration


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
    at = task, columns, weights, prediction, dual, 10.0, 1.0
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


def test_one_number_among_texts_is_no_text():
    for held, right in ((["a", "b"], True), (["a", 1], False), ([1, 2], False)):
        stream = io.BytesIO()
        np.save(stream, np.array(held, dtype=object))
        stream.seek(0)
        if right:
            assert read_text_objects(stream, "names").tolist() == held
        else:
            with pytest.raises(ValueError, match="names holds objects that are no text"):
                read_text_objects(stream, "names")


def test_the_polar_of_no_scores_is_nothing():
    norm = norms.OWL(np.ones(3))
    assert norm.restrict(np.arange(0), 3).polar(ArrayScores(np.zeros(0))) == 0.0
