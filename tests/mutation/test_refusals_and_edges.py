"""Refusals and edges that drawn changes of a line got past (``python -m tests.mutation``)."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from atomlearn import designs, losses, norms, solve
from atomlearn.core.data import dense, moments, standardized
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.centered import rows_of
from atomlearn.core.data.entries import one_weight_each
from atomlearn.core.data.found import FoundScores
from atomlearn.core.data.growing_gram import GrowingGram
from atomlearn.core.data.standardized import scaled_design
from atomlearn.core.losses.deviance import deviance_explained
from atomlearn.core.masters.newton import search
from atomlearn.core.masters.sign_pivoting import l1_quadratic
from atomlearn.core.problem.card import HEIGHT, WIDTH, small_path
from atomlearn.core.problem.factored import Factored
from atomlearn.core.problem.free import freed
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.solvers.atom_generation import with_candidates
from atomlearn.core.solvers.atoms import AtomSet
from atomlearn.core.solvers.refit import truncation
from atomlearn.interfaces import Atom, Design, WarmStart
from atomlearn.solvers import FeatureGeneration
from atomlearn.survival.target import RECORD, checked_survival


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    return X, X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=40) + 2.0


def test_small_paths_are_drawn_from_corner_to_corner():
    picture = small_path([4.0, 2.0, 1.0], [[0.0, 1.0, 3.0], [0.0, 0.0, -1.0]])
    drawn = [
        [tuple(map(float, point.split(","))) for point in part.split('"')[0].split()]
        for part in picture.split('points="')[1:]
    ]
    whole = HEIGHT
    assert (WIDTH, HEIGHT) == (320.0, 120.0)
    assert drawn[0] == [(0.0, 0.75 * whole), (0.5 * WIDTH, 0.5 * whole), (WIDTH, 0.0)]
    assert drawn[1] == [(0.0, 0.75 * whole), (0.5 * WIDTH, 0.75 * whole), (WIDTH, whole)]
    assert small_path([1.0], [[3.0]]) == ""
    assert small_path([2.0, 1.0], []) == ""
    # Nothing but zeros is a line, not a division by nothing.
    assert "nan" not in small_path([1.0, 1.0], [[0.0, 0.0]])


def test_entries_of_factored_matrices_have_their_weights():
    rng = np.random.default_rng(0)
    matrix = Factored(rng.normal(size=(6, 2)), np.array([2.0, 0.25]), rng.normal(size=(5, 2)))
    rows, cols = np.array([0, 5, 3]), np.array([4, 0, 2])
    assert_allclose(matrix.at(rows, cols), matrix.toarray()[rows, cols], rtol=1e-14)


@pytest.mark.parametrize("weights", [[np.inf, 1, 1], [2, np.nan, 1], [3, 2, -1], [1, 2, 0]])
def test_weights_of_owl_are_refused_one_by_one(weights):
    with pytest.raises(ValueError, match="finite, >= 0 and non-increasing"):
        norms.OWL(np.array(weights, dtype=float)).value(np.ones(3))


def test_events_may_be_ones_and_zeros_and_nothing_else():
    y = np.array([(1, 2.0), (0, 3.0), (1, 1.0)], dtype=[("event", "i8"), ("time", "f8")])
    assert checked_survival(y)["event"].tolist() == [True, False, True]
    y["event"][1] = 2
    with pytest.raises(ValueError, match="whether its event was seen"):
        checked_survival(y)


@pytest.mark.parametrize("entry", [np.inf, np.nan])
def test_entries_may_be_minus_infinity_only(entry):
    kinds = [("event", "?"), ("time", "f8"), ("entry", "f8")]
    y = np.array([(True, 2.0, -np.inf), (True, 3.0, entry)], dtype=kinds)
    with pytest.raises(ValueError, match="one finite number a sample for its field 'entry'"):
        checked_survival(y)
    y["entry"][1] = 1.0
    assert checked_survival(y).dtype == RECORD


def test_sparse_designs_of_other_numbers_are_refused_in_words():
    X = sp.csc_array(np.eye(3, dtype=np.int64))
    with pytest.raises(ValueError, match="needs float32 or float64 data, got int64"):
        designs.SparseDesign(X)


@pytest.mark.parametrize("shape", [(3, 2), (0, 0)])
def test_sparse_moments_that_are_not_square_are_refused(shape):
    with pytest.raises(ValueError, match="gram must be square"):
        moments._components(sp.csr_array(shape))


def test_adaptive_groups_need_a_first_fit_that_selects():
    with pytest.raises(ValueError, match="use a smaller alpha"):
        norms.Groups([[0, 1], [2]]).adapted(np.zeros(3), 1.0)


def test_warm_starts_of_two_lengths_are_refused(table):
    X, y = table
    with pytest.raises(ValueError, match="must be vectors of one length, got shapes"):
        solve(X, y, level=0.1, warm_start=WarmStart(np.array([0, 1]), np.ones(3), 0.0))


def test_many_rows_of_float32_are_all_multiplied(monkeypatch):
    """By columns and by rows: pieces of rows, more of them than there are columns."""
    monkeypatch.setattr(dense, "LIMITS", replace(dense.LIMITS, converted_rows=2))
    rng = np.random.default_rng(1)
    X = rng.normal(size=(11, 3)).astype(np.float32)
    W, V = rng.normal(size=(3, 2)), rng.normal(size=(11, 2))
    design = designs.as_design(X)
    assert_allclose(design.product(W), X.astype(float) @ W, rtol=1e-13)
    assert_allclose(design.transposed_product(V), X.T.astype(float) @ V, rtol=1e-12, atol=1e-14)


def test_more_rows_than_a_piece_has_entries_are_a_column_a_piece(monkeypatch):
    monkeypatch.setattr(standardized, "LIMITS", replace(standardized.LIMITS, piece_entries=3))
    X = np.random.default_rng(2).normal(size=(7, 2))
    pieces = list(standardized._dense_pieces(designs.as_design(X), np.array([1, 0])))
    assert [piece.tolist() for piece, _ in pieces] == [[1], [0]]
    assert_allclose(np.hstack([values for _, values in pieces]), X[:, ::-1])


def test_scaled_designs_know_the_unit_of_their_columns():
    class Bare(Design):
        """Only what a design must have: nothing of its own to rescale."""

        shape, dtype = (4, 2), np.dtype(np.float64)

        def __init__(self, X):
            self.X = X

        def scores(self, v):
            return designs.as_design(self.X).scores(v)

        def gather(self, columns):
            return designs.as_design(self.X).gather(columns)

    X = np.arange(8.0).reshape(4, 2)
    factors = np.array([2.0, 0.5])
    scaled = scaled_design(Bare(X), factors)
    assert_allclose(scaled.scores(np.ones(4)).full(), X.sum(0) * factors)
    assert_allclose(scaled.gather(np.array([1, 0])).dense(), (X * factors)[:, ::-1])
    assert_allclose(scaled.scales, 1.0 / factors)


def test_sparse_rows_answer_many_vectors_without_a_copy_by_columns(monkeypatch):
    rng = np.random.default_rng(3)
    X = sp.random(6, 15, 0.4, format="csr", random_state=0)
    design = designs.SparseDesign(X)
    monkeypatch.setattr(designs.SparseDesign, "_own_columns", lambda self: None)
    V = np.asfortranarray(rng.normal(size=(6, 3)))
    for vector, scores in zip(V.T, design.scores_many(V), strict=True):
        assert_allclose(scores.full(), X.T @ vector, atol=1e-14)


def test_columns_set_free_one_after_the_other_keep_the_intercept(table):
    X, y = table
    regularizer = Regularizer(norms.L1(), "penalized", 5.0)
    build = Problem.build
    once = build(
        designs.as_design(X), y, losses.Squared(), regularizer,
        unpenalized=[0, 2], fit_intercept=True,
    )  # fmt: skip
    first = build(
        designs.as_design(X), y, losses.Squared(), regularizer,
        unpenalized=[2], fit_intercept=True,
    )  # fmt: skip
    zero = np.zeros(40)
    assert freed(first, [0]).loss_value(zero) == pytest.approx(once.loss_value(zero), 1e-13)


def test_truncations_are_what_the_objective_allows(table):
    X, y = table
    value = 0.5 * y @ y
    for form, expected in (("penalized", value / 3.0), ("squared", np.sqrt(2.0 * value / 3.0))):
        problem = Problem.build(
            designs.as_design(X), y, losses.Squared(), Regularizer(norms.L1(), form, 3.0)
        )
        found = truncation(problem, np.zeros(0), np.zeros(40), 0.0)
        assert found == pytest.approx(expected, rel=1e-12)


def test_candidates_that_are_held_are_not_added_again(table):
    X, y = table
    problem = Problem.build(
        designs.as_design(X), y, losses.Squared(), Regularizer(norms.L1(), "penalized", 3.0)
    )
    first, second = (Atom(np.array([j]), np.array([1.0])) for j in (0, 1))
    atoms = AtomSet.empty(40).append(problem.design, first).append(problem.design, second)
    state = SimpleNamespace(atoms=atoms, candidates=[first, second], shares=np.ones(2))
    held, shares = with_candidates(problem, state)
    assert held.size == 2
    assert shares.tolist() == [1.0, 1.0]


def test_zero_is_left_where_it_is_by_a_prox_of_no_size():
    point = norms.L2().prox_point(np.zeros(3), 0.0, "penalized")
    assert_allclose(point.jacobian().apply(np.array([1.0, 2.0, 3.0])), [1.0, 2.0, 3.0])


def test_targets_that_are_constant_are_explained_when_none_is_missed():
    y, ones = np.full(4, 2.0), np.ones(4)
    assert deviance_explained(losses.Squared(), y, y, ones) == 1.0
    assert deviance_explained(losses.Squared(), y, y + 0.1, ones) == 0.0


def test_searches_begin_where_they_stand():
    """Where the slope at the start is not negative there is no way down, whatever comes after."""
    asked = []

    def slope(length):
        asked.append(length)
        return -1.0 + 2.0 * length, length

    assert search(slope) == pytest.approx(0.5, abs=0.2)
    assert asked[0] == 0.0
    assert search(lambda length: (1.0 - 2.0 * length, length)) is None


def test_points_beyond_the_ball_have_no_value():
    ball = Regularizer(norms.L1(), "constrained", 2.0)
    assert ball.value(2.0 * (1 + 1e-10)) == 0.0
    assert ball.value(2.0 * (1 + 1e-8)) == np.inf


def test_factored_matrices_have_the_rank_of_their_weights():
    rng = np.random.default_rng(0)
    assert Factored(rng.normal(size=(6, 2)), np.ones(2), rng.normal(size=(5, 2))).rank == 2


def test_blocks_without_rows_of_their_own_are_cut_when_dense():
    class Bare(DenseBlock):
        """As a block of somebody else: rows are cut by nobody."""

        def with_rows(self, rows):
            return None

    X = np.asfortranarray(np.arange(8.0).reshape(4, 2))
    assert_allclose(rows_of(Bare(X), np.array([3, 1, 1])).dense(), X[[3, 1, 1]])


def test_scores_of_columns_that_were_not_kept_are_not_told():
    z = FoundScores(np.array([2, 5]), np.array([1.0, -3.0]), 0.9, 100)
    assert z.at(np.array([5, 2])).tolist() == [-3.0, 1.0]
    with pytest.raises(LookupError, match="those of each column"):
        z.at(np.array([2, 3]))


def test_factors_are_forgotten_when_the_prices_change():
    gram = GrowingGram.known(np.ones(3), 2.0 * np.eye(2))
    factor = gram.factor(1.0, 0.0, np.ones(2))
    forgotten = []
    gram._factor = SimpleNamespace(forget=lambda: forgotten.append(True))
    assert factor is not None
    gram.factor(1.0, 0.0, np.ones(2))
    assert not forgotten
    gram.factor(1.0, 0.0, np.array([1.0, 2.0]))
    assert len(forgotten) == 1
    gram.factor(0.5, 0.0, np.array([1.0, 2.0]))
    assert len(forgotten) == 2


def test_feature_generation_refuses_the_penalized_form(table):
    X, y = table
    with pytest.raises(ValueError, match="solves the squared k-support norm"):
        solve(X, y, norm=norms.KSupport(2), level=0.1, solver=FeatureGeneration())


def test_weights_of_another_length_are_refused():
    with pytest.raises(ValueError, match=r"must have shape \(3,\), got \(2,\)"):
        one_weight_each(np.ones(2), 3)


def test_levels_beyond_a_batch_go_on_from_the_last_point():
    """More levels than are solved at once: the second batch begins with weights that moved."""
    rng = np.random.default_rng(5)
    A = rng.normal(size=(30, 6))
    H, slope = np.ascontiguousarray(A.T @ A), -A.T @ rng.normal(size=30)
    levels = np.geomspace(1.0, 0.01, 70) * np.abs(slope).max()
    start = rng.normal(size=6)
    W = l1_quadratic(H, slope + H @ start, np.ones(6), start, levels)
    assert len(W) == 70
    for level, w in zip(levels, W, strict=True):
        z = -(slope + H @ w)
        assert np.abs(z).max() <= level * (1 + 1e-8)
        assert_allclose(z[w != 0], level * np.sign(w[w != 0]), rtol=1e-7)
