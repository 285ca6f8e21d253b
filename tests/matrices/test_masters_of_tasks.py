"""The masters of problems with several targets or classes."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn import designs, norms
from atomlearn.core import CachedBlock, FreeColumns, Problem, Regularizer, SequentialQP
from atomlearn.interfaces import Block, Loss, Norm
from atomlearn.losses import Multinomial, Squared
from atomlearn.matrices.designs.tasks import TaskBlock
from tests.core.masters.test_choose import assert_gets_its_master, pairs


def tasks(rows: int, features: int, count: int) -> Block:
    X = np.random.default_rng(0).normal(size=(rows, features))
    return designs.Tasks(X, count).gather(np.arange(features * count))


COUPLED = "ModelNewton WorkingSets"
KINDS = [
    (norms.L1(), "squared", tasks(30, 12, 60), {}, "SequentialQP"),
    (norms.L1(), "squared", tasks(30, 12, 60), {"intercept": True}, "SequentialQP"),
    (norms.L1(), "multinomial", tasks(30, 4, 3), {}, "SequentialQP"),
    (norms.KSupport(3), "multinomial", tasks(30, 4, 3), {}, f"{COUPLED} PatternNewton"),
    (pairs(12), "multinomial", tasks(30, 4, 3), {"tau": 1.0}, "SequentialQP"),
    (norms.L2(), "multinomial", tasks(30, 40, 3), {"tau": 1.0}, f"{COUPLED} SemismoothNewton"),
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


@pytest.mark.parametrize("shape", [(60, 8), (24, 20)])
@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("intercepts", [False, True])
def test_classes_end_at_the_optimum_with_one_kept_hessian(
    shape: tuple[int, int], rows: bool, intercepts: bool
) -> None:
    rng = np.random.default_rng(shape[0] + rows)
    n, p, q = *shape, 3
    X = rng.normal(size=shape) + 0.5
    codes = np.argmax(X[:, :q] + 0.7 * rng.normal(size=(n, q)), axis=1)
    loss: Loss = Multinomial(q)
    if intercepts:
        loss = FreeColumns.of_tasks(loss, n, q)
    norm: Norm = norms.Groups(np.repeat(np.arange(p), q)) if rows else norms.L1()
    block = CachedBlock(designs.Tasks(X, q).gather(np.arange(p * q)))
    level = Regularizer(norm, "penalized", 3.0)
    weight = np.repeat(rng.uniform(0.5, 2.0, size=n), q)
    problem = Problem.build(block, np.eye(q)[codes].ravel(), loss, level, sample_weight=weight)
    first = SequentialQP().solve(problem, np.zeros(p * q), 0.0, 1e-3)
    refit = SequentialQP().solve(problem, first.weights, 0.0, 1e-10 * first.objective)
    assert refit.gap < 1e-9 * refit.objective
    assert 0 < np.count_nonzero(refit.weights) < p * q


@pytest.mark.parametrize("shape", [(60, 12), (16, 40)])
@pytest.mark.parametrize("together", [1, 2])
@pytest.mark.parametrize("tau", [0.0, 2.0])
def test_one_hessian_of_all_tasks_ends_where_that_of_the_columns_does(
    shape: tuple[int, int], together: int, tau: float
) -> None:
    rng = np.random.default_rng(shape[0] + together)
    n, p, q = *shape, 5
    X = 0.3 * rng.normal(size=shape) + rng.normal(size=(n, 1))
    Y = X[:, :6] @ rng.normal(size=(6, q)) + rng.normal(size=(n, q))
    weight = np.repeat(rng.uniform(0.5, 2.0, size=n), q)
    norm = norms.Groups(np.repeat(np.arange(p // together), q * together))
    level = Regularizer(norm, "penalized", 12.0)
    tasks_of_rows = designs.Tasks(X, q).gather(np.arange(p * q))
    assert isinstance(tasks_of_rows, TaskBlock)
    ends = []
    for block in (tasks_of_rows, tasks_of_rows.explicit()):
        problem = Problem.build(block, Y.ravel(), Squared(), level, tau=tau, sample_weight=weight)
        refit = SequentialQP().solve(problem, np.zeros(p * q), 0.0, 1e-9)
        assert refit.gap < 1e-8 * refit.objective
        ends.append(refit.weights)
    assert 0 < np.count_nonzero(ends[0]) < p * q
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)
