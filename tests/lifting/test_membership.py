"""Groups in every form users have them: lists, names, patterns, matrices, data frames; errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from atomlearn import AtomicClassifier, AtomicRegressor
from atomlearn.core import ArrayScores
from atomlearn.norms import L1, Groups, KSupport, LatentGroups, Nonnegative, Scaled, Trees, Union
from tests.oracles.sums import solve_sum

SETS = [[0, 1, 2], [2, 3], [3, 4, 5]]
NAMES = ["age", "dose_am", "dose_pm", "bmi", "sbp", "ldl", "alone"]
NAMED = {"basic": ["age", "dose_*"], "body": ["dose_pm", "bmi"], "blood": ["bmi", "sbp", "ldl"]}


def sets_of(norm, n_features=7):
    sets = norm.membership(n_features)
    pairs = zip(sets.starts[:-1], sets.starts[1:], strict=True)
    return [sets.members[a:b].tolist() for a, b in pairs]


def test_all_forms_are_the_same_sets():
    matrix = np.zeros((7, 3), dtype=bool)
    for number, group in enumerate(SETS):
        matrix[group, number] = True
    frame = pd.DataFrame(matrix, index=NAMES, columns=list(NAMED))
    long = pd.DataFrame(
        [(name, NAMES[j]) for name, group in zip(NAMED, SETS, strict=True) for j in group],
        columns=["set", "feature"],
    )
    stored_zero = sparse.csc_array(matrix.astype(float))
    stored_zero.data[0] = 0.0
    expected = [*SETS, [6]]
    assert sets_of(LatentGroups(SETS)) == expected
    assert sets_of(LatentGroups([group[::-1] for group in SETS])) == expected
    assert sets_of(LatentGroups(matrix)) == expected
    assert sets_of(LatentGroups(sparse.csr_array(matrix))) == expected
    assert sets_of(LatentGroups(stored_zero)) == [[1, 2], *SETS[1:], [0], [6]]
    for groups in (NAMED, frame, long, list(NAMED.values())):
        assert sets_of(LatentGroups(groups).with_names(NAMES)) == expected
    assert LatentGroups(NAMED).with_names(NAMES).membership(7).names == tuple(NAMED)


def test_names_reach_the_norms_inside_others():
    inside = Union([Scaled(Nonnegative(LatentGroups(NAMED)), 2.0), L1()])
    norm = inside.with_names(NAMES)
    assert norm.norms[0].norm.norm.groups == {
        "basic": [0, 1, 2],
        "body": [2, 3],
        "blood": [3, 4, 5],
    }
    assert Groups([["age", "bmi"], ["dose_*"]]).with_names(NAMES).groups == [[0, 3], [1, 2]]
    assert KSupport(2, groups=[["age", "bmi"]]).with_names(NAMES).groups == [[0, 3]]
    labels = ["a", "a", "b", "b", "b", "c", "c"]
    assert Groups(labels).with_names(NAMES).groups is labels
    assert Trees({"all": ["*"], "doses": ["dose_*"]}).with_names(NAMES).groups["doses"] == [1, 2]
    assert L1().with_names(NAMES) == L1()


@pytest.mark.parametrize("model", [AtomicRegressor, AtomicClassifier])
def test_estimators_know_the_columns_by_name(model):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 7)), columns=NAMES)
    y = X["age"] + X["dose_am"] + X["dose_pm"] + 0.1 * rng.normal(size=60)
    y = y if model is AtomicRegressor else y > 0
    fitted = model(LatentGroups(NAMED), alpha=0.1).fit(X, y)
    parts = fitted.results_[0].parts
    assert parts[0].name == "basic"
    total = np.zeros(7)
    for part in parts:
        total[part.columns] += part.weights
        assert set(part.columns) <= {*[*SETS, [6]][part.group]}
    assert_allclose(total, fitted.coef_.ravel(), atol=1e-12)
    with pytest.raises(TypeError, match="no names"):
        model(LatentGroups(NAMED)).fit(X.to_numpy(), y)


def test_solve_and_missing_names():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 7)), columns=NAMES)
    y = rng.normal(size=30)
    sets = {**NAMED, "absent": ["tsh", "t4"], "partly": ["tsh", "ldl"]}
    with pytest.raises(ValueError, match=r"'tsh' of group 'absent'.*missing='ignore'"):
        solve_sum(X, y, norm=LatentGroups(sets), level=1.0)
    norm = LatentGroups(sets, missing="ignore", weights={**dict.fromkeys(sets, 1.0), "body": 3.0})
    assert solve_sum(X, y, norm=norm, level=1.0).converged
    resolved = norm.with_names(NAMES)
    assert list(resolved.groups) == [*NAMED, "partly"]
    assert_array_equal(resolved.lift(7).norm.weights, [1.0, 3.0, 1.0, 1.0, 1.0])
    listed = LatentGroups([["tsh"], ["age"], ["bmi"]], weights=[5.0, 2.0, 3.0], missing="ignore")
    assert_array_equal(listed.with_names(NAMES).weights, [2.0, 3.0])
    with pytest.raises(ValueError, match="pattern 'zz\\*' of group"):
        LatentGroups([["zz*"]]).with_names(NAMES)


@pytest.mark.parametrize(
    ("groups", "error", "match"),
    [
        ([[0, 9]], ValueError, "group 0 names feature 9, but features are numbered 0 to 6"),
        ([[0], []], ValueError, "group 1 is empty"),
        ([[0, -1]], ValueError, "names feature -1"),
        ([[0, 1], [3, 2, 3]], ValueError, "group 1 holds feature 3 twice"),
        ([[0.5]], TypeError, "whole column indices"),
        ("abc", TypeError, "index lists"),
        ([3], TypeError, "group 0 must be a list"),
        (np.ones((7, 2)), TypeError, "must be boolean"),
        (np.ones((6, 2), dtype=bool), ValueError, "one row a feature"),
    ],
)
def test_unusable_groups(groups, error, match):
    with pytest.raises(error, match=match):
        LatentGroups(groups).on(7)


@pytest.mark.parametrize(
    ("weights", "error", "match"),
    [
        ([1.0], ValueError, "each of the 3 groups"),
        ([1.0, 0.0, 1.0], ValueError, r"weights\[1\] is 0.0"),
        ([1.0, np.nan, 1.0], ValueError, r"weights\[1\] is nan.*>= 0"),
        ("size", ValueError, "sqrt_size"),
        ({"a": 1.0}, TypeError, "groups with names"),
    ],
)
def test_unusable_weights(weights, error, match):
    with pytest.raises(error, match=match):
        LatentGroups(SETS, weights).on(7)


def test_a_million_memberships_are_read_at_once():
    rng = np.random.default_rng(0)
    members = np.sort(rng.integers(0, 50_000, size=(100_000, 10)), axis=1)
    matrix = sparse.csc_array(
        (np.ones(10**6, dtype=bool), members.ravel(), np.arange(0, 10**6 + 1, 10)),
        shape=(50_000, 100_000),
    )
    matrix.sum_duplicates()
    sets = LatentGroups(matrix).membership(50_000)
    assert sets.n_listed == 100_000
    assert np.unique(sets.members).size == 50_000


def test_a_norm_inside_may_change_its_parameters():
    union = Union([KSupport(1), Scaled(L1(), 5.0)])
    z = ArrayScores(np.array([3.0, 4.0, 0.0]))
    assert_allclose(union.polar(z), 4.0)
    union.norms[0].set_params(k=2)
    assert_allclose(union.polar(z), 5.0)
    union.norms[1].set_params(factor=0.5)
    assert_allclose(union.polar(z), 8.0)


def test_trees_lose_the_weights_of_sets_that_are_not_there():
    tree = Trees([["age", "bmi"], ["tsh"], ["bmi"]], weights=[3.0, 9.0, 2.0], missing="ignore")
    found = tree.with_names(NAMES)
    assert isinstance(found, Trees)
    assert found.groups == [[0, 3], [3]]
    assert_array_equal(found.weights, [3.0, 2.0])
    with pytest.raises(TypeError, match="Trees: groups name columns"):
        tree.on(7)
