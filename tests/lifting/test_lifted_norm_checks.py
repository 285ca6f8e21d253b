"""The conformance suite on latent groups, trees, hierarchies, operators, unions, ordered norms."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from atomlearn.interfaces import Norm
from atomlearn.norms import (
    L1,
    OWL,
    Blocks,
    Chains,
    Groups,
    Hierarchy,
    KSupport,
    LatentGroups,
    LInf,
    Nonnegative,
    Operators,
    Scaled,
    Trees,
    Union,
)
from atomlearn.testing.norms import NormChecks
from tests.core.norms.test_what_solvers_ask import N

Array = NDArray[np.float64]

OVERLAPPING = [[0, 1, 2], [2, 3, 4, 5], [5, 6], [0, 6], [1, 3, 5, 7]]


class LatentChecks(NormChecks):
    """Values are found by an iteration with its own gap."""

    accuracy = 1e-9


class TestLatentGroups(LatentChecks):
    norm: Norm = LatentGroups(OVERLAPPING, weights=[1.0, 2.0, 0.7, 1.0, 1.5])
    n_features = 9
    changes = {
        "groups": [[0, 1], [1, 2, 8], [3, 4, 5], [5, 6], [7, 0]],
        "weights": [0.5, 3.0, 1.0, 1.0, 0.2],
        "missing": "ignore",
    }


class TestChains(LatentChecks):
    norm: Norm = Chains(3)
    n_features = 10
    changes = {"length": 4, "weights": np.arange(1.0, 9.0)}


class TestTrees(LatentChecks):
    norm: Norm = Trees(
        [[0, 1, 2, 3, 4], [0, 1], [2, 3, 4], [3], [5, 6]], weights=[2.0, 1.2, 1.1, 0.4, 1.0]
    )
    n_features = 8
    changes = {"groups": [[0, 1], [0], [2, 3, 4], [3], [7]], "weights": [2.0, 0.2, 1.0, 1.0, 3.0]}


class TestStrongHierarchy(LatentChecks):
    norm: Norm = Hierarchy("strong", pairs=[[0, 1], [2, 1], [2, 2]], pair_weight=1.5)
    n_features = 6
    changes = {"kind": "weak", "pairs": [[0, 1], [0, 2], [1, 1]], "pair_weight": 0.2}


class TestOperators(LatentChecks):
    norm: Norm = Operators([np.eye(6)[:3], np.eye(6)[2:] * 2.0, np.ones((1, 6)), np.tri(6)[[1, 4]]])
    n_features = 6
    changes = {"operators": [np.eye(6)[:2], 3.0 * np.eye(6)]}


class TestUnionOfGroups(LatentChecks):
    norm: Norm = Union([Scaled(L1(), 1.3), Groups([[0, 1, 2], [3, 4, 5]]), Chains(2)])
    n_features = 7
    changes = {"norms": [L1(), Groups([[0, 6], [3, 4]])]}


class TestOWL(NormChecks):
    norm: Norm = OWL(np.array([3.0, 2.0, 2.0, 1.0, 0.5, 0.5, 0.1, 0.1]))
    n_features = 8
    changes = {"weights": np.array([3.0, 2.0, 1.0, 1.0, 0.5, 0.0, 0.0, 0.0])}


class TestLInf(NormChecks):
    norm: Norm = LInf()
    n_features = 9


class TestBlocks(NormChecks):
    norm: Norm = Blocks(
        [L1(), KSupport(2), Groups([[0, 1], [2]], weights=[2.0, 1.0])],
        [[0, 3], [1, 2, 7, 9], [4, 5, 8, 6]],
    )
    n_features = 10


class TestBlocksOfOrdered(NormChecks):
    norm: Norm = Blocks([LInf(), OWL(np.array([2.0, 1.0, 0.5]))], [[0, 3, 4], [1, 2, 5]])
    n_features = 6


def test_factors_reach_every_bound() -> None:
    overlapping = LatentGroups([[0, 1, 2], [2, 3], [4, 5, 6]])
    for wrapped, expected in ((Scaled(overlapping, 2.0), 2.0), (Nonnegative(overlapping), 1.0)):
        lift, plain = wrapped.lift(N), overlapping.lift(N)
        u = np.abs(np.arange(lift.expansion.shape[1])) + 1.0
        assert lift.norm.value(u) == expected * plain.norm.value(u)
        assert (lift.norm.value(-u) == math.inf) == isinstance(wrapped, Nonnegative)
