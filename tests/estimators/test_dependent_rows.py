"""Rows that belong together: never on both sides of a split, and permuted as they are bound."""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import TimeSeriesSplit

from atomlearn import (
    AtomicClassifierCV,
    AtomicRegressorCV,
    AtomicSurvivalCV,
    FeatureGenerator,
    KnockoffSelector,
    StabilitySelector,
)
from atomlearn.estimators.dependent_rows import folds, halves, held_out, permuted_rows
from atomlearn.losses import survival_target

GROUPS = st.lists(st.integers(0, 6), min_size=8, max_size=40).filter(lambda g: len(set(g)) > 2)


def _splits(n_rows, codes, groups, order):
    yield held_out(n_rows, 0.3, 0, codes, groups, order)
    yield halves(n_rows, 0, codes, groups, order)
    with suppress(ValueError):  # a class of one group
        yield from folds(n_rows, 4, 0, codes, groups, order)


@settings(max_examples=60, deadline=None)
@given(GROUPS, st.integers(0, 5), st.booleans())
def test_no_group_stands_on_both_sides_and_no_class_is_lost(groups, seed, classes):
    rng, names = np.random.default_rng(seed), np.array(list("abcdefg"))
    codes = rng.integers(0, 2, len(groups)) if classes else None
    for train, test in _splits(len(groups), codes, names[groups], None):
        assert not set(np.array(groups)[train]) & set(np.array(groups)[test])
        assert np.union1d(train, test).tolist() == list(range(len(groups)))
    train, _ = held_out(len(groups), 0.3, seed, codes, groups)
    if classes:
        assert set(codes[train]) == set(codes)


@settings(max_examples=60, deadline=None)
@given(GROUPS, st.integers(0, 5))
def test_of_a_series_the_end_is_held_out_and_each_fold_lies_after_its_training_rows(days, seed):
    order = np.array(days, dtype="datetime64[D]")
    found = [held_out(len(days), 0.3, seed, None, None, order)]
    found += folds(len(days), 4, seed, None, None, order)
    for train, test in found:
        assert train.size > 0 < test.size
        assert order[train].max() < order[test].min()  # rows of one day are never cut


def test_shares_are_met_where_groups_allow_it():
    groups, codes = np.repeat(np.arange(40), 5), np.repeat([0, 0, 0, 1], 50)
    _, test = held_out(200, 0.3, 1, codes, groups)
    assert (test.size, Fraction(int(codes[test].sum()), test.size)) == (60, Fraction(1, 4))
    for _, test in folds(200, 5, 1, codes, groups):
        assert (test.size, codes[test].sum()) == (40, 10)
    assert [codes[half].sum() for half in halves(200, 1, codes, groups)] == [25, 25]
    _, test = held_out(200, 0.3, 1, order=np.arange(200)[::-1])
    assert test.tolist() == list(range(60))


def test_rows_by_themselves_are_split_as_ever():
    codes = np.repeat([0, 1, 2], [40, 8, 1])
    _, test = held_out(49, 0.25, 3, codes)
    assert np.bincount(codes[test], minlength=3).tolist() == [10, 2, 0]
    assert [np.bincount(codes[half]).tolist() for half in halves(40, 0, codes[:40])] == [[20], [20]]
    assert sorted(permuted_rows(49, 0).tolist()) == list(range(49))


def test_a_group_gets_the_targets_of_a_group():
    groups = np.array([3, 1, 1, 3, 2, 2, 1, 2, 3])
    y = np.array([30, 10, 11, 31, 20, 21, 12, 22, 32])
    blocks = {(10, 11, 12), (20, 21, 22), (30, 31, 32)}
    seen = set()
    for seed in range(40):
        moved = y[permuted_rows(9, seed, groups)]
        found = tuple(tuple(moved[groups == g].tolist()) for g in (1, 2, 3))
        assert set(found) == blocks
        seen.add(found)
    assert len(seen) == 6  # every permutation of the three blocks


def test_a_target_that_groups_share_stays_so_and_sizes_may_differ():
    groups = np.repeat(np.arange(4), [1, 2, 5, 3])
    for seed in range(20):
        moved = groups[permuted_rows(11, seed, groups)]
        of_each = [set(moved[groups == g]) for g in range(4)]
        assert sorted(min(values) for values in of_each) == [0, 1, 2, 3]
        assert all(len(values) == 1 for values in of_each)


def test_a_series_is_moved_on_as_a_whole():
    order = np.array([4, 0, 2, 1, 3])
    shifts = {tuple(order[permuted_rows(5, seed, None, order)][np.argsort(order)].tolist())
              for seed in range(60)}  # fmt: skip
    assert shifts == {tuple(np.roll(range(5), k).tolist()) for k in range(5)}


def test_halves_of_a_series_are_of_whole_stretches():
    one, other = halves(100, 0, order=np.arange(100))
    assert {rows // 10 for rows in one} & {rows // 10 for rows in other} == set()
    assert one.size == other.size == 50


def test_what_binds_no_rows_is_refused():
    gap = np.array(["2020-01-01", "NaT", "2020-01-02"], "datetime64[D]")
    for groups, order, said in (
        ([0, 1, 1], [0, 1, 2], "both"),
        ([0, 1], None, r"shape \(3,\), got \(2,\)"),
        ([0.0, np.nan, 1.0], None, "missing"),
        (None, gap, "missing"),
        (["a", "a", "a"], None, "one value only"),
    ):
        with pytest.raises(ValueError, match=said):
            held_out(3, 0.3, 0, None, groups, order)


# --- who holds out rows ------------------------------------------------------------------------


def of_patients(n_patients=30, visits=5, own=0.05, seed=0):
    """Noise: columns that are nearly the same at each visit, and a target of each patient."""
    rng = np.random.default_rng(seed)
    groups = rng.permutation(np.repeat(np.arange(n_patients), visits))
    X = np.sqrt(1 - own) * rng.standard_normal((n_patients, 40))[groups]
    X += np.sqrt(own) * rng.standard_normal(X.shape)
    return X, rng.standard_normal(n_patients)[groups], groups


def test_a_search_folds_patients_not_visits():
    X, y, groups = of_patients()
    by_rows = AtomicRegressorCV(n_alphas=8).fit(X, y)
    by_patients = AtomicRegressorCV(n_alphas=8).fit(X, y, groups=groups)
    assert np.count_nonzero(by_rows.coef_) > 20
    assert np.count_nonzero(by_patients.coef_) < 5
    given = AtomicRegressorCV(n_alphas=8, cv=folds(150, 5, 0, None, groups)).fit(X, y)
    np.testing.assert_allclose(
        by_patients.cv_results_["mean_test_score"], given.cv_results_["mean_test_score"], rtol=1e-9
    )


@pytest.mark.parametrize("kind", ["classes", "survival"])
def test_classes_and_survival_are_folded_by_patients(kind):
    X, y, groups = of_patients()
    if kind == "classes":
        y, model = y > 0, AtomicClassifierCV(n_alphas=6)
    else:
        y, model = survival_target(groups % 2 == 0, np.exp(y)), AtomicSurvivalCV()
        model.set_params(n_alphas=6)
    by_rows, by_patients = clone(model).fit(X, y), clone(model).fit(X, y, groups=groups)
    assert by_patients.alpha_ > by_rows.alpha_


def test_a_series_is_folded_by_its_order():
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((120, 10)), axis=0)
    y, when = np.cumsum(rng.standard_normal(120)), np.arange(120)
    found = AtomicRegressorCV(n_alphas=6).fit(X, y, order=when)
    given = AtomicRegressorCV(n_alphas=6, cv=TimeSeriesSplit(5)).fit(X, y)
    np.testing.assert_allclose(
        found.cv_results_["mean_test_score"], given.cv_results_["mean_test_score"], rtol=1e-9
    )


def test_the_number_of_features_is_chosen_by_patients():
    X, y, groups = of_patients()
    model = FeatureGenerator("auto", loss="squared", standardize=True)
    mixed = clone(model).fit(X, y)
    with pytest.warns(UserWarning, match="so none is selected"):
        apart = clone(model).fit(X, y, groups=groups)
    assert mixed.size_choice_.scores.mean(axis=1).max() > 0.5  # patients are recognized
    assert apart.size_choice_.scores.mean(axis=1).max() < 0.0  # and nothing else is there
    assert apart.n_wanted_ < mixed.n_wanted_


def test_selectors_halve_and_fold_by_patients():
    X, y, groups = of_patients()
    seen = []

    class Watched(AtomicRegressorCV):
        def fit(self, X, y, sample_weight=None, offset=None, groups=None, order=None):
            seen.append(set(groups))
            return super().fit(X, y, sample_weight, offset, groups, order)

    selector = StabilitySelector(Watched(n_alphas=3), n_resamples=4, random_state=0)
    selector.fit(X, y, groups=groups)
    assert seen[0] == set(groups)
    assert not seen[1] & seen[2]
    assert not seen[3] & seen[4]
    by_rows, by_patients = (
        KnockoffSelector(random_state=0).fit(X, y),
        KnockoffSelector(random_state=0),
    )
    assert by_patients.fit(X, y, groups=groups).alphas_[0] > by_rows.alphas_[0]


def test_before_the_end_of_a_series_rows_like_its_first_ones_are_left_out():
    train, test = held_out(100, 0.3, 0, order=np.arange(100))
    assert (train[-1], test[0]) == (63, 70)
    train, test = held_out(9, 0.3, 0, order=np.repeat([0, 1, 2], 3))  # too few positions for that
    assert (train.tolist(), test.tolist()) == ([0, 1, 2, 3, 4, 5], [6, 7, 8])
