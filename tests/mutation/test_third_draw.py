"""Terms and refusals that drawn changes of a line got past, the third draw of them."""

from __future__ import annotations

import io
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from atomlearn import designs, losses, norms, solve, solvers
from atomlearn.core.data.compressed import checked_parts
from atomlearn.core.data.entries import one_weight_each
from atomlearn.core.data.parts import check_columns
from atomlearn.core.interfaces import Refit
from atomlearn.core.losses.targets import regression_target
from atomlearn.core.masters.active_set import prices_of
from atomlearn.core.masters.candidate import Candidate
from atomlearn.core.masters.sequential_qp import _chosen
from atomlearn.core.problem.checks import check_free
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Status
from atomlearn.core.solvers.centered_columns import centered_columns
from atomlearn.core.solvers.fingerprint import same_norm
from atomlearn.core.solvers.progress import Progress, Stall
from atomlearn.survival.target import checked_survival


def problem_of(X, y, norm=None, loss=None, **more) -> Problem:
    regularizer = Regularizer(norm or norms.L1(), "penalized", 1.0)
    return Problem.build(designs.as_design(X), y, loss or losses.Squared(), regularizer, **more)


def test_the_mean_is_taken_off_the_columns_that_are_far_and_off_no_others():
    X = np.random.default_rng(0).normal(size=(20, 3)) + np.array([0.0, 1e4, 0.0])
    block, lengths = centered_columns(
        problem_of(X, np.ones(20), fit_intercept=True), np.array([0, 1, 2])
    )
    assert_allclose(lengths.offsets, [0.0, X[:, 1].mean(), 0.0])
    assert_allclose(block.dense(), X - lengths.offsets, atol=1e-11)


def test_the_weight_that_is_wrong_is_named():
    with pytest.raises(ValueError, match=r"weights\[1\] is 0\.0"):
        norms.Groups([[0], [1]], weights=[1.0, 0.0]).value(np.ones(2))


def test_an_intercept_stays_where_further_columns_are_freed():
    X, y = np.random.default_rng(1).normal(size=(12, 3)), np.arange(12.0)
    task = problem_of(X, y, fit_intercept=True, unpenalized=[0]).freed([1])
    none = problem_of(X, y, unpenalized=[0]).freed([1])
    assert task.loss.free_part(y, np.zeros(12), np.ones(12))[1] > 1.0
    assert none.loss.free_part(y, np.zeros(12), np.ones(12))[1] == 0.0


@pytest.mark.parametrize("columns", [np.array([0.0, 1.0]), np.array([[0, 1]])])
def test_blocks_of_a_norm_are_lists_of_whole_numbers(columns):
    norm = norms.Blocks([norms.L1(), norms.L1()], [columns, np.array([2])])
    with pytest.raises(TypeError, match="whole column numbers"):
        norm.value(np.ones(3))


def steps_before_the_stall(patience, merits, gaps) -> list[bool]:
    stall, said = Stall(), []
    for merit, gap in zip(merits, gaps, strict=True):
        certificate = SimpleNamespace(closable=gap)
        state = SimpleNamespace(certificate=certificate, patience=patience, merit=lambda m=merit: m)
        said.append(stall.reason(state) is Status.STALLED)
    return said


def test_a_run_has_stalled_after_as_many_steps_as_its_solver_may_need():
    ones = [1.0] * 4
    assert steps_before_the_stall(2, ones, ones) == [False, False, True, True]
    assert steps_before_the_stall(np.inf, ones, ones) == [False] * 4
    assert steps_before_the_stall(1, [4.0, 3.0, 2.0, 1.0], ones) == [False] * 4
    assert steps_before_the_stall(1, ones, [4.0, 3.0, 2.0, 1.9]) == [False, False, False, True]


def test_progress_is_relative_to_what_is_minimized():
    within, beyond = [1e20, 1e20 - 65536.0], [1e20, 1e20 - 1e6]
    assert steps_before_the_stall(1, within, [1.0, 1.0]) == [False, True]
    assert steps_before_the_stall(1, beyond, [1.0, 1.0]) == [False, False]


def test_nothing_is_read_before_the_first_pass():
    assert Progress(SimpleNamespace()).passes == 0.0


@pytest.mark.parametrize(
    ("shape", "remedy"), [((3, 1), r"pass y\.ravel\(\)"), ((3, 2), "one target per sample"),
                          ((1, 3, 1), "one target per sample"), ((0, 2), "one target per sample")],
)  # fmt: skip
def test_targets_of_one_column_are_told_how_to_be_flat(shape, remedy):
    with pytest.raises(ValueError, match=remedy):
        regression_target(np.zeros(shape))


def test_norms_that_differ_in_a_function_are_two():
    def made(factor):
        return norms.UserNorm(lambda scores: None, value=lambda w: factor * abs(w).sum())

    one = made(1.0)
    assert same_norm(one, one)
    assert not same_norm(one, made(2.0))
    assert not same_norm(one, made(1.0))  # nobody can tell
    assert same_norm(norms.KSupport(2), norms.KSupport(2))
    assert not same_norm(norms.KSupport(2), norms.KSupport(3))


def test_one_weight_a_column_is_asked_for():
    with pytest.raises(ValueError, match=r"shape \(3,\), got \(2,\)"):
        one_weight_each(np.ones(2), 3)


def test_a_point_on_the_way_is_one_of_the_problem_as_it_was_given():
    """Targets far from zero are fitted less their mean, and observers must not see that."""
    X = np.random.default_rng(3).normal(size=(20, 2))
    y, seen = 1e3 + X[:, 0], []
    solve(X, y, level=0.1, intercept=True, observers=[lambda p: seen.append(p.warm_start())])
    assert_allclose(seen[-1].intercept, 1e3, atol=1.0)


def test_columns_want_in_by_their_scores_over_their_prices():
    rng = np.random.default_rng(4)
    prices = np.where(np.arange(80) < 40, 0.01, 100.0)
    task = problem_of(rng.normal(size=(5, 80)), np.ones(5), norms.L1(weights=prices))
    refit = Refit(np.zeros(80), 0.0, np.zeros(5), 1.0, 1.0)
    slope = np.full(80, 10.0)
    known = prices_of(task)
    assert_allclose(known.price, prices)
    found = _chosen(task, known, Candidate(refit, -slope), slope)
    assert found.tolist() == list(range(40))


def test_a_table_is_no_vector():
    with pytest.raises(ValueError, match=r"pass w\.ravel"):
        norms.L1().value(np.ones((2, 2)))


@pytest.mark.parametrize("columns", [[-1, 2], [0, 5]])
def test_columns_lie_between_the_first_and_the_last(columns):
    with pytest.raises(ValueError, match="between 0 and 4"):
        check_columns(np.array(columns), 5)


def test_lines_are_printed_where_they_are_asked_for(capsys):
    lines = io.StringIO()
    solve(np.eye(3), np.ones(3), level=0.5, observers=[solvers.PrintProgress(lines)])
    assert "relative gap" in lines.getvalue()
    assert capsys.readouterr() == ("", "")


def test_a_point_improves_where_it_is_lower_or_its_gap_is():
    def at(objective, gap):
        return Candidate(Refit(np.zeros(1), 0.0, np.zeros(1), gap, objective), np.zeros(1))

    old = at(1.0, 0.1)
    assert at(0.9, 1.0).improves(old)
    assert at(1.0, 0.05).improves(old)
    assert not at(1.0, 0.1).improves(old)
    assert not at(1.0, 0.2).improves(old)
    assert not at(1.1, 0.05).improves(old)


def test_times_that_are_no_numbers_are_told_with_their_field():
    given = np.array([(True, "long"), (False, "short")], dtype=[("event", "?"), ("time", "U8")])
    with pytest.raises(ValueError, match="numbers for its field 'time'"):
        checked_survival(given)


@pytest.mark.parametrize(("place", "value"), [(0, 1), (2, 1)])
def test_the_entry_of_the_pointers_that_is_wrong_is_named(place, value):
    """Pointers 0 2 2 4, and indices that are others at each place: one starts late, one falls."""
    X = sp.csc_array(np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 4.0]]))
    X.indptr[place] = value
    X.indices[:] = 0
    with pytest.raises(ValueError, match=rf"\({value} at position {place}\)"):
        checked_parts(X)


def test_offsets_are_added_to_predictions():
    X = np.random.default_rng(5).normal(size=(20, 2))
    result = solve(X, X[:, 0], level=0.1)
    offset = np.arange(20.0)
    assert_allclose(result.predict(X, offset), X @ result.coef + offset, atol=1e-12)
    with pytest.raises(ValueError, match="offset must have shape"):
        result.predict(X, np.ones(3))


@pytest.mark.parametrize("given", [[], np.array([], dtype=np.float64)])
def test_no_columns_are_free_whatever_the_type_of_the_list(given):
    assert check_free(given, 3).size == 0
    assert check_free([2, 0, -1], 3).tolist() == [0, 2]
    with pytest.raises(TypeError, match="indices, a mask or names"):
        check_free([0.5], 3)
