"""Parameters, names and refusals: every message names the object, what came, and the remedy."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn.core import ArrayScores, Partition, as_norm
from atomlearn.norms import L1, L2, ElasticNetNorm, Groups, KSupport, Nonnegative, Scaled


class TestNames:
    @pytest.mark.parametrize("name", ["l1", "L1"])
    def test_names(self, name):
        assert as_norm(name) == L1()
        assert as_norm("l2") == L2()
        assert as_norm("ksupport", k=5) == KSupport(5)
        assert as_norm("k-support", k=5) == KSupport(5)
        assert as_norm("elastic_net", k=5) == ElasticNetNorm(5)
        assert as_norm("groups", groups=[[0, 1]]) == Groups([[0, 1]])

    def test_objects_pass_through(self):
        norm = KSupport(3)
        assert as_norm(norm) is norm

    def test_refusals(self):
        with pytest.raises(ValueError, match=r"'lasso' is unknown; use one of 'l1'"):
            as_norm("lasso")
        with pytest.raises(ValueError, match=r"needs weights: pass an object such as norms.OWL"):
            as_norm("owl")
        with pytest.raises(TypeError, match=r"got type; write KSupport\(...\)|write KSupport"):
            as_norm(KSupport)
        with pytest.raises(TypeError, match="got int"):
            as_norm(3)
        with pytest.raises(TypeError, match="set them on the object"):
            as_norm(L1(), k=3)


class TestSettings:
    def test_nested_names(self):
        norm = Scaled(Nonnegative(KSupport(3)), 2.0)
        assert norm.get_params()["norm__norm__k"] == 3
        assert norm.set_params(norm__norm__k=7, factor=3.0) is norm
        assert norm.norm.norm.k == 7
        assert norm.factor == 3.0
        with pytest.raises(ValueError, match="no parameter 'k'"):
            norm.set_params(norm__k=5)
        with pytest.raises(ValueError, match="no parameter 'factor__x'"):
            norm.set_params(factor__x=5)

    def test_repr_and_equality(self):
        assert repr(KSupport(3)) == "KSupport(k=3)"
        assert repr(L1()) == "L1()"
        assert repr(Scaled(L1(), 2.0)) == "Scaled(norm=L1(), factor=2.0)"
        assert KSupport(3) != KSupport(4)
        assert KSupport(3) != ElasticNetNorm(3)
        assert KSupport(3, np.array([0, 0, 1])) == KSupport(3, np.array([0, 0, 1]))
        assert KSupport(3, np.array([0, 0, 1])) != KSupport(3, np.array([0, 1, 1]))
        assert KSupport(3, np.array([0, 0, 1])) != KSupport(3)
        assert Groups([[0], [1, 2]]) != Groups([[0], [1]])
        with pytest.raises(TypeError, match="unhashable"):
            hash(KSupport(3))

    def test_groups_set_anew_are_read_anew(self):
        w = np.array([3.0, 4.0, 12.0])
        norm = Groups([[0, 1]])
        assert norm.value(w) == 17.0
        norm.set_params(groups=[[0, 1, 2]])
        assert norm.value(w) == 13.0


class TestRefusals:
    @pytest.mark.parametrize(
        ("norm", "kind", "message"),
        [
            (KSupport(0), ValueError, "KSupport: k must be at least 1, got 0"),
            (KSupport(3.0), TypeError, r"KSupport: k must be a whole number.*use k=3$"),
            (KSupport(True), TypeError, "k must be a whole number"),
            (KSupport(np.nan), TypeError, "k must be a whole number"),
            (KSupport(None), ValueError, "has no k: a cross-validated estimator"),
            (ElasticNetNorm(-3), ValueError, "ElasticNetNorm: k must be at least 1, got -3"),
            (ElasticNetNorm(np.inf), ValueError, "ElasticNetNorm: k must be at least 1"),
            (ElasticNetNorm("3"), TypeError, "ElasticNetNorm: k must be a positive number"),
            (Groups([[0, 1], [2, 3]], [[1.0, 2.0]]), ValueError, "one number for each of the 2"),
            (Groups([[0, 1], [2, 3]], [1.0]), ValueError, "one number for each of the 2 groups"),
            (Groups([[0, 1], [2, 3]], [1.0, -1.0]), ValueError, r"weights\[1\] is -1.0.*>= 0"),
            (Groups([[0, 1], [2, 3]], [1.0, np.nan]), ValueError, "weights must be >= 0"),
            (Scaled(L1(), -1.0), ValueError, "factor must be positive and finite"),
            (Scaled(L1(), np.nan), ValueError, "factor must be positive and finite"),
            (Scaled(L1(), "2"), TypeError, "factor must be a positive number"),
            (Scaled("l1", 2.0), TypeError, "got str"),
            (Nonnegative(Nonnegative(L1())), TypeError, r"depends on \|w\| only"),
            (Nonnegative(Scaled(KSupport(1.5), 2.0)), TypeError, "k must be a whole number"),
        ],
    )
    def test_numbers_and_norms(self, norm, kind, message):
        with pytest.raises(kind, match=message):
            norm.on(10)

    def test_k_of_more_than_there_are(self):
        w = np.arange(10.0)
        for k in (np.int64(3), np.uint8(3), 11, 10**12):
            KSupport(k).on(10)
            assert KSupport(k).value(w) == KSupport(int(min(k, 10))).value(w)

    @pytest.mark.parametrize(
        ("groups", "kind", "message"),
        [
            ([[0, 1], [1, 2]], ValueError, "must be disjoint, but feature 1 appears again"),
            ([[0, 1, 0]], ValueError, "group 0 holds feature 0 twice"),
            ([[0, 6]], ValueError, "names feature 6, but features are numbered 0 to 5"),
            ([[-1]], ValueError, "names feature -1"),
            ([[0], []], ValueError, "group 1 is empty"),
            ([[0.5]], TypeError, "whole column indices"),
            ([[True, False]], TypeError, "whole column indices"),
            ([[0], 1], TypeError, "group 1 must be a list"),
            (["ab", [1]], TypeError, "groups name columns, but the columns of X have no names"),
            ([0, 0, 1], ValueError, "has 3 labels, but there are 6 features"),
            (np.array([0.0, 0, 1, 1, 2, 2]), TypeError, "must be integers or strings"),
            ("abc", TypeError, "groups must be index lists"),
            (5, TypeError, "groups must be index lists"),
            (Partition(np.zeros(3, np.int64), 1, 1), ValueError, "describe 3 features"),
        ],
    )
    def test_groups(self, groups, kind, message):
        for norm in (KSupport(2, groups), Groups(groups)):
            with pytest.raises(kind, match=message):
                norm.on(6)

    def test_matrices_are_not_vectors(self):
        for norm in (L1(), L2(), KSupport(2), ElasticNetNorm(2), Groups([[0]])):
            with pytest.raises(ValueError, match=r"shape \(n,\)"):
                norm.value(np.ones((2, 2)))


class TestPartition:
    def test_all_spellings_agree(self):
        w = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
        spellings = [
            [[0, 3], [1, 4]],
            ((3, 0), (4, 1)),
            [np.array([0, 3]), range(1, 5, 3)],
            [0, 1, -1, 0, 1],
            np.array([0, 1, -1, 0, 1], dtype=np.int32),
            np.array([7, 9, -1, 7, 9]),
            [[0, 3], [1, 4], [2]],
            ["a", "b", "c", "a", "b"],
        ]
        for groups in spellings:
            norm = Groups(groups)
            assert norm.value(w) == np.hypot(1, 4) + np.hypot(2, 5) + 3.0

    def test_weights_follow_the_lists_or_the_sorted_labels(self):
        w = np.array([1.0, 2.0, 3.0])
        assert Groups([[2], [0]], [10.0, 100.0]).value(w) == 30.0 + 100.0 + 2.0
        assert Groups(["b", "a", "b"], [10.0, 100.0]).value(w) == pytest.approx(
            20.0 + 100.0 * np.hypot(1, 3)
        )

    def test_best_columns_stop_at_whole_groups(self):
        z = np.array([1.0, 5.0, 1.0, 1.0, 3.0, 3.0])
        norm = Groups([[0, 1], [2, 3], [4, 5]])
        assert norm.best_columns(ArrayScores(z), 1).tolist() == [0, 1]
        assert norm.best_columns(ArrayScores(z), 2).tolist() == [0, 1]
        assert norm.best_columns(ArrayScores(z), 3).tolist() == [0, 1, 4, 5]
        norm = KSupport(2, [[0, 1], [2, 3], [4, 5]])
        assert norm.best_columns(ArrayScores(z), 1).tolist() == [0, 1, 4, 5]


def test_norms_that_differ_in_one_of_several_groups_are_not_equal() -> None:
    assert Groups([[0, 1], [2]]) == Groups([[0, 1], [2]])
    assert Groups([[0, 1], [2]]) != Groups([[0, 1], [3]])


def test_an_array_of_whole_numbers_lists_groups_of_one_size() -> None:
    rows = np.arange(12).reshape(4, 3)
    w = np.random.default_rng(0).standard_normal(12)
    assert Groups(rows).value(w) == Groups(rows.tolist()).value(w)
