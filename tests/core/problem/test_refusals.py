"""What problems, rules, warm starts and checkpoints refuse, and what stands in the message."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import losses, norms, solvers
from atomlearn._support import EPS, check_offset, check_weight, growth, positive
from atomlearn.core import (
    Certificate,
    Factored,
    Lengths,
    MatrixPart,
    Problem,
    Progress,
    Regularizer,
    Status,
    check_free,
    check_loss,
)
from atomlearn.core.problem.checks import check_tau
from atomlearn.core.solvers.solver import checked_warm_start
from atomlearn.designs import as_design
from atomlearn.interfaces import WarmStart
from atomlearn.problem import prove, restrict
from atomlearn.solvers import stopping
from tests.oracles.sums import solve_sum

X = np.arange(12.0).reshape(4, 3)
ONES = np.ones(4)


def problem_of(norm: Any = None, **more: Any) -> Problem:
    level = Regularizer(norm or norms.L1(), "penalized", 1.0)
    return Problem.build(as_design(X), ONES, losses.Squared(), level, **more)


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: positive("level", "1", "form"), TypeError, r"must be a positive number \(form\)"),
    (lambda: positive("level", 0.0, "form"), ValueError, "positive and finite"),
    (lambda: positive("level", np.inf, "form"), ValueError, "positive and finite"),
    (lambda: check_weight([1.0, -2.0, -3.0], 3), ValueError, r"sample_weight\[1\] is -2\.0"),
    (lambda: check_weight([0.0, 0.0], 2), ValueError, "zero for every sample"),
    (lambda: check_weight([1.0], 2), ValueError, r"shape \(2,\), one weight a sample; got \(1,\)"),
    (lambda: check_weight([1.0, np.inf], 2), ValueError, r"sample_weight\[1\] is inf"),
    (lambda: check_weight([1.0, 1j], 2), TypeError, "they are complex"),
    (lambda: check_weight(["a", "b"], 2), TypeError, "must be an array of numbers"),
    (lambda: check_offset([0.0, -np.inf], 2), ValueError, r"offset\[1\] is -inf.*exposure"),
    (lambda: check_tau("1"), TypeError, "tau must be a number >= 0, got str"),
    (lambda: check_tau(-1.0), ValueError, "tau must be finite and >= 0, got -1"),
    (lambda: check_tau(np.nan), ValueError, "tau must be finite and >= 0, got nan"),
    (lambda: check_loss(losses.Squared(), ONES, ONES, 2), TypeError, "True or False, got 2"),
    (lambda: check_loss(losses.Squared(), 1e200 * ONES, ONES, 0), ValueError, "too large"),
    (lambda: check_free([True, False], 3), ValueError, r"a mask must have shape \(3,\)"),
    (lambda: check_free([[0], [1]], 3), ValueError, r"list of columns; got shape \(2, 1\)"),
    (lambda: check_free([0, 3], 3), ValueError, "values from 0 to 3"),
    (lambda: check_free([0, -4], 3), ValueError, "values from -4 to 0"),
    (lambda: Regularizer(norms.L1(), "other", 1.0), ValueError, "got 'other'"),  # type: ignore[arg-type]
    (lambda: Regularizer("l1", "squared", 1.0), TypeError, "must be a Norm"),  # type: ignore[arg-type]
    (lambda: Problem.build(as_design(X), np.ones(3), losses.Squared(),
                           Regularizer(norms.L1(), "penalized", 1.0)),
     ValueError, "4 rows and y has 3 targets"),
    (lambda: restrict(problem_of(norms.UserNorm(lambda z: None)), as_design(X), np.arange(2)),
     TypeError, "UserNorm cannot be restricted"),
    (lambda: checked_warm_start(7, problem_of()), TypeError, "got int"),
    (lambda: checked_warm_start(WarmStart(np.array([0.5]), np.ones(1)), problem_of()),
     TypeError, "columns must be whole numbers, got float64"),
    (lambda: checked_warm_start(WarmStart(np.array([0]), np.array(["a"])), problem_of()),
     TypeError, "weights must be real numbers"),
    (lambda: checked_warm_start(WarmStart(np.array([0, 3]), np.ones(2)), problem_of()),
     ValueError, r"be in \[0, 3\), got values from 0 to 3"),
    (lambda: checked_warm_start(WarmStart(np.array([-1, 0]), np.ones(2)), problem_of()),
     ValueError, r"be in \[0, 3\), got values from -1 to 0"),
    (lambda: checked_warm_start(WarmStart(np.array([0]), np.array([np.nan])), problem_of()),
     ValueError, "must be finite"),
    (lambda: checked_warm_start(WarmStart(np.array([0]), np.ones(1), np.inf), problem_of()),
     ValueError, "must be finite"),
    (lambda: solvers.run(problem_of(), "fista", stopping.Iterations(1)), TypeError, "got str"),  # type: ignore[arg-type]
    (lambda: solvers.run(problem_of(), solvers.ColumnGeneration(), 3), TypeError, "got int"),  # type: ignore[arg-type]
    (lambda: stopping.Iterations(1) | 3, TypeError, "got int"),  # type: ignore[operator]
    (lambda: solvers.Checkpoint("folder", every_s=-1.0), ValueError, "every_s must be"),
    (lambda: solvers.Checkpoint("folder", every_s=np.nan), ValueError, "every_s must be"),
    (
        lambda: solvers.Checkpoint("folder").end(
            Progress(problem_of(), solvers.ColumnGeneration())
        ),
        RuntimeError,
        "saved by `run`",
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused_and_in_which_words(number: int) -> None:
    call, kind, said = REFUSED[number]
    with pytest.raises(kind, match=said):
        call()


def test_one_checkpoint_in_a_folder_of_its_own(tmp_path: Any) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(ValueError, match="is a file; give a folder"):
        solve_sum(X, ONES, level=0.5, observers=[solvers.Checkpoint(file)])
    two = [solvers.Checkpoint(tmp_path / "one"), solvers.Checkpoint(tmp_path / "two")]
    with pytest.raises(ValueError, match="one Checkpoint is enough for a solve, got 2"):
        solve_sum(X, ONES, level=0.5, observers=two)


def test_what_is_nearly_refused_is_taken() -> None:
    assert check_weight(2.0, 3).tolist() == [2.0, 2.0, 2.0]
    assert check_weight([0.0, 1.0], 2).tolist() == [0.0, 1.0]
    assert check_offset(-1.0, 2).tolist() == [-1.0, -1.0]
    assert check_free([2, -3], 3).tolist() == [0, 2]
    assert check_free([True, False, True], 3).tolist() == [0, 2]
    check_tau(0.0)
    ends = checked_warm_start(WarmStart(np.array([2, 0]), np.ones(2)), problem_of())
    assert ends.columns.tolist() == [2, 0]
    assert positive("level", 1e-300, "form") == 1e-300


def test_matrices_by_their_factors() -> None:
    rng = np.random.default_rng(0)
    matrix = Factored(rng.normal(size=(6, 2)), np.array([2.0, 0.25]), rng.normal(size=(5, 2)))
    W = (matrix.left * matrix.weights) @ matrix.right.T
    other = rng.normal(size=(5, 3))
    assert_allclose(matrix.dot(other), W @ other)
    assert_allclose(matrix.T.dot(other[:, 0].repeat(6)[:6]), W.T @ other[:, 0].repeat(6)[:6])
    assert matrix.shape == (6, 5)
    assert matrix.T.shape == (5, 6)
    # More entries than are looked up at a time.
    at = rng.integers(0, 5, size=(2, 2**16 + 7))
    assert_allclose(matrix.at(*at), W[tuple(at)])
    for mode, shape in ((0, (2, 5, 3)), (1, (3, 6, 5)), (2, (5, 1, 6))):
        sizes = shape[mode], int(np.prod(shape)) // shape[mode]
        left, right = rng.normal(size=(sizes[0], 1)), rng.normal(size=(sizes[1], 1))
        part = MatrixPart(
            None, 1.0, 0.0, Factored(left, np.ones(1), right), tensor=shape, mode=mode
        )
        unfolded = np.moveaxis(part.dense(shape), mode, 0).reshape(sizes)
        assert_allclose(unfolded, left @ right.T)
    flat = MatrixPart(None, 1.0, 0.0, columns=np.array([1, 5]), weights=np.array([2.0, -1.0]))
    assert flat.dense((2, 3)).tolist() == [[0.0, 2.0, 0.0], [0.0, 0.0, -1.0]]


def test_certificates_grow_by_what_rounding_hides() -> None:
    plain = Certificate(2.0, 0.5, 1.0)
    wider = plain.widened(0.25, 0.125)
    assert (wider.objective, wider.gap, wider.rounding) == (2.125, 0.875, 0.375)
    assert wider.search_gap is None
    assert wider.widened(1.0).rounding == 1.375
    searched = replace(plain, search_gap=0.1)
    assert searched.widened(0.25, 0.125).search_gap == pytest.approx(0.475)
    assert (plain.closable, searched.closable) == (0.5, 0.1)
    assert searched.leaves_open(0.1)
    assert searched.leaves_open(0.05)
    assert not searched.leaves_open(0.04)
    assert not searched.leaves_open(0.25)
    assert not plain.leaves_open(0.1)
    assert replace(searched, objective=-2.0).leaves_open(0.1)
    assert Certificate(0.0, 1.0, 1.0).relative_gap > 1e300
    assert Certificate(-4.0, 1.0, 1.0).relative_gap == 0.25
    assert growth(100) == 14.0 * EPS


def test_lengths_of_columns_follow_their_columns() -> None:
    one = Lengths(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([5.0, 6.0]))
    task = problem_of()
    both = one.append(one.take(np.array([1])))
    assert both.scored.tolist() == [1.0, 2.0, 2.0]
    assert both.summed.tolist() == [3.0, 4.0, 4.0]
    assert both.offsets.tolist() == [5.0, 6.0, 6.0]
    found = task.measured.of(task.design, task.weight, np.array([2, 0]))
    assert_allclose(found.summed, np.linalg.norm(X[:, [2, 0]], axis=0))
    assert_allclose(found.scored, found.summed)
    assert not found.offsets.any()


def test_results_begin_where_nothing_was_counted() -> None:
    result = solve_sum(X, ONES, level=0.5)
    first = result.history[0]
    assert first.vectors == 1
    assert first.skipped is None
    assert result.status is Status.CONVERGED
    task = problem_of()
    assert (task.tau, task.origin, task.fit_intercept) == (0.0, 0.0, False)


@pytest.mark.parametrize("norm", [norms.L1(), norms.L1(lower=-1e9)])
def test_errors_of_scores_count_by_the_gauge_where_the_loss_is_most_of_the_objective(
    norm: Any,
) -> None:
    """The bound on the gauge, f / level, is far above it: a scaled dual point needs none of it."""
    rng = np.random.default_rng(0)
    A, y = rng.normal(size=(200, 2)), 1e3 * rng.normal(size=200)
    level = Regularizer(norm, "penalized", 1.0)
    task = Problem.build(as_design(A), y, losses.Squared(), level)
    w = np.linalg.lstsq(A, y, rcond=None)[0]
    w -= np.linalg.solve(A.T @ A, np.sign(w))
    certificate = prove(task, None, w, A @ w).certificate
    reach = 2.0 * growth(200) * np.linalg.norm(y - A @ w) * np.linalg.norm(A, axis=0).max()
    assert certificate.gap < 1e-6 * certificate.objective
    far = reach * certificate.objective
    if isinstance(norm.lower, float):
        assert certificate.rounding > far
    else:
        assert certificate.rounding < 0.01 * far


@pytest.mark.parametrize(("form", "name"), [("constrained", "radius"), ("penalized", "level")])
def test_the_amount_of_a_form_has_its_name(form, name):
    with pytest.raises(ValueError, match=f"^{name} must"):
        Regularizer(norms.L1(), form, -1.0)


@pytest.mark.parametrize("given", [[], np.array([], dtype=np.float64)])
def test_no_columns_are_free_whatever_the_type_of_the_list(given):
    assert check_free(given, 3).size == 0
    assert check_free([2, 0, -1], 3).tolist() == [0, 2]
    with pytest.raises(TypeError, match="indices, a mask or names"):
        check_free([0.5], 3)


def test_warm_starts_of_two_lengths_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match="must be vectors of one length, got shapes"):
        solve_sum(X, y, level=0.1, warm_start=WarmStart(np.array([0, 1]), np.ones(3), 0.0))


def test_points_beyond_the_ball_have_no_value():
    ball = Regularizer(norms.L1(), "constrained", 2.0)
    assert ball.value(2.0 * (1 + 1e-10)) == 0.0
    assert ball.value(2.0 * (1 + 1e-8)) == np.inf
