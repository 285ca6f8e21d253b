"""Every norm of the package passes the conformance suite that the package ships."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn.core.norms.blocks import Cover
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
from atomlearn.testing.norms import NormChecks

LABELS = np.array([0, 1, 0, -1, 2, 2, 1, 0, -1, 3])
LISTS = [[0, 2, 7], [1, 6], [4, 5], [9]]


class TestL1(NormChecks):
    norm = L1()
    n_features = 10


class TestWeightedL1(NormChecks):
    norm = L1(weights=[1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 1.0, 0.1, 7.0, 1.0])
    n_features = 10
    changes = {"weights": 2.0, "lower": None}


class OneSidedChecks(NormChecks):
    """Weights, a column that is left out, and signs that are fixed: still a gauge."""

    symmetric = False
    weights = np.array([1.0, 2.0, 0.5, np.inf, 3.0, 1.0, 1.0, 0.1, 7.0, 1.0])
    lower = np.where(np.arange(10) % 3 == 0, 0.0, -np.inf)
    upper = np.where(np.arange(10) % 4 == 2, 0.0, np.inf)
    n_features = 10

    def inside(self, w):
        return np.where(np.isinf(self.weights), 0.0, np.clip(w, self.lower, self.upper))


class TestOneSidedL1(OneSidedChecks):
    norm = L1(OneSidedChecks.weights, OneSidedChecks.lower, OneSidedChecks.upper)


class TestNonnegativeWeightedL1(NormChecks):
    norm = Nonnegative(L1(weights=[1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 1.0, 0.1, 7.0, 1.0]))
    n_features = 10
    symmetric = False

    def inside(self, w):
        return np.maximum(w, 0.0)


class TestL2(NormChecks):
    norm = L2()
    n_features = 10


class TestKSupport(NormChecks):
    norm = KSupport(3)
    n_features = 10
    changes = {"k": 2, "groups": LABELS}


class TestKSupportOfMoreThanAll(NormChecks):
    norm = KSupport(50)
    n_features = 7


class TestKSupportOverLabels(NormChecks):
    norm = KSupport(2, LABELS)
    n_features = 10


class TestElasticNet(NormChecks):
    norm = ElasticNetNorm(3)
    n_features = 10
    changes = {"k": 2}


class TestElasticNetBetweenWholeNumbers(NormChecks):
    norm = ElasticNetNorm(2.6)
    n_features = 10
    changes = {"k": 3.1}


class TestElasticNetOfOne(NormChecks):
    norm = ElasticNetNorm(1)
    n_features = 7


class TestGroups(NormChecks):
    norm = Groups(LISTS)
    n_features = 10
    changes = {"groups": [[0, 1], [2, 3], [5, 6], [8, 9]], "weights": [0.5, 1.0, 2.0, 3.0]}


class TestGroupsLeftOut(NormChecks):
    """Infinite weights: the second and the last listed group stay at 0."""

    norm = Groups(LISTS, weights=[1.5, np.inf, 0.4, np.inf])
    n_features = 10

    def inside(self, w):
        return np.where(np.isin(np.arange(10), LISTS[1] + LISTS[3]), 0.0, w)


class TestWeightedGroups(NormChecks):
    norm = Groups(LABELS, weights=[1.5, 0.7, 1.0, 2.0])
    n_features = 10
    changes = {"weights": [3.0, 1.0, 0.2, 1.0]}


class TestScaled(NormChecks):
    norm = Scaled(KSupport(3), 2.5)
    n_features = 10
    changes = {"norm": KSupport(2), "factor": 0.3}


class NonnegativeChecks(NormChecks):
    symmetric = False

    def inside(self, w):
        return np.maximum(w, 0.0)


class TestNonnegativeKSupport(NonnegativeChecks):
    norm = Nonnegative(Scaled(KSupport(3), 0.5))
    n_features = 10
    changes = {"norm": L2()}


class TestNonnegativeGroups(NonnegativeChecks):
    norm = Nonnegative(KSupport(2, LABELS))
    n_features = 10


class RestrictedChecks(NormChecks):
    allowed = np.array([8, 1, 2, 6, 4])

    def inside(self, w):
        result = np.zeros_like(w)
        result[self.allowed] = w[self.allowed]
        return result


class TestKSupportOfSomeColumns(RestrictedChecks):
    norm = Blocks([KSupport(2)], Cover((RestrictedChecks.allowed,), 10))
    n_features = 10


def test_weights_of_groups_by_their_size() -> None:
    groups = [[0, 1, 2, 3], [5]]
    named, given = Groups(groups, "sqrt_size"), Groups(groups, [2.0, 1.0])
    w = np.arange(1.0, 8.0)
    assert named.value(w) == given.value(w)
    assert named.on(7).value(w) == given.value(w)
    with pytest.raises(ValueError, match="'sqrt_size', one number a group"):
        Groups(groups, "size").value(w)
