"""The masters of problems with several targets or classes."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn import designs, norms
from atomlearn.interfaces import Block, Norm
from atomlearn.losses import Multinomial, Squared
from tests.core.masters.test_choose import assert_gets_its_master, pairs


def tasks(rows: int, features: int, count: int) -> Block:
    X = np.random.default_rng(0).normal(size=(rows, features))
    return designs.Tasks(X, count).gather(np.arange(features * count))


COUPLED = "ModelNewton WorkingSets"
KINDS = [
    (norms.L1(), "squared", tasks(30, 12, 60), {}, "SequentialQP"),
    (norms.L1(), "squared", tasks(30, 12, 60), {"intercept": True}, "SequentialQP"),
    (norms.L1(), "multinomial", tasks(30, 4, 3), {}, f"{COUPLED} SequentialQP"),
    (norms.KSupport(3), "multinomial", tasks(30, 4, 3), {}, f"{COUPLED} PatternNewton"),
    (pairs(12), "multinomial", tasks(30, 4, 3), {"tau": 1.0}, f"{COUPLED} SemismoothNewton"),
    (
        norms.KSupport(3),
        "multinomial",
        tasks(30, 201, 3),
        {},
        f"WorkingSets {COUPLED} PatternNewton",
    ),
]


@pytest.mark.parametrize(("norm", "loss", "block", "rest", "expected"), KINDS)
def test_each_kind_of_problem_gets_its_master(
    norm: Norm, loss: str, block: Block, rest: dict[str, object], expected: str
) -> None:
    if loss == "squared":
        y = np.tile([1.0, -1.0], block.shape[0] // 2)
        assert_gets_its_master(norm, Squared(), y, block, rest, expected)
    else:
        y = np.tile(np.eye(3)[0], block.shape[0] // 3)
        assert_gets_its_master(norm, Multinomial(3), y, block, rest, expected)
