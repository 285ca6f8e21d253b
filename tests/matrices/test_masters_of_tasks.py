"""The masters of problems with several targets or classes."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from sklearn.linear_model import Lasso

from atomlearn import designs, norms
from atomlearn.core import CachedBlock, FreeColumns, Offset, Problem, Regularizer, SequentialQP
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


@pytest.mark.parametrize("shape", [(60, 12), (16, 40)])
@pytest.mark.parametrize("intercepts", [False, True])
def test_l1_of_tasks_is_a_lasso_of_each(
    shape: tuple[int, int], intercepts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(shape[0])
    n, p, q = *shape, 4
    X = rng.normal(size=shape) + 1.0
    Y = X[:, :5] @ rng.normal(size=(5, q)) + rng.normal(size=(n, q)) + 3.0
    known = rng.normal(size=(n, q))
    weight = rng.uniform(0.5, 2.0, size=(n, q))
    sizes: list[tuple[int, ...]] = []
    module = sys.modules["atomlearn.core.masters.separate_tasks"]
    solve = module.newton_qp

    def watched(columns: object, *rest: object, **named: object) -> object:
        sizes.append(np.shape(columns))
        return solve(columns, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "newton_qp", watched)
    loss: Loss = Offset(Squared(), known.ravel())
    if intercepts:
        loss = FreeColumns.of_tasks(loss, n, q)
    # Pairs come in any order, as they join a pool, and some are left out.
    pairs_in = rng.permutation(p * q)[: p * q - 3]
    block = CachedBlock(designs.Tasks(X, q).gather(pairs_in))
    level = 4.0
    problem = Problem.build(
        block, Y.ravel(), loss, Regularizer(norms.L1(), "penalized", level),
        sample_weight=weight.ravel(),
    )  # fmt: skip
    refit = SequentialQP().solve(problem, np.zeros(pairs_in.size), 0.0, 1e-9)
    assert refit.gap < 1e-8 * refit.objective
    assert {size[0] for size in sizes} == {n}
    assert max(size[1] for size in sizes) <= p
    found = np.zeros(p * q)
    found[pairs_in] = refit.weights
    for task in range(q):
        inside = np.isin(np.arange(p) * q + task, pairs_in)
        total = weight[:, task].sum()
        model = Lasso(level / total, fit_intercept=intercepts, tol=1e-14, max_iter=100_000)
        model.fit(X[:, inside], Y[:, task] - known[:, task], weight[:, task])
        np.testing.assert_allclose(found.reshape(p, q)[inside, task], model.coef_, atol=1e-5)
    assert 0 < np.count_nonzero(found) < p * q


@pytest.mark.parametrize("form", ["squared", "constrained"])
def test_a_penalty_that_joins_tasks_is_solved_for_all(form: str) -> None:
    rng = np.random.default_rng(1)
    n, p, q = 30, 8, 3
    X = rng.normal(size=(n, p))
    Y = X[:, :3] @ rng.normal(size=(3, q)) + rng.normal(size=(n, q))
    tasks_of_columns = designs.Tasks(X, q).gather(np.arange(p * q))
    assert isinstance(tasks_of_columns, TaskBlock)
    ends = []
    for block in (tasks_of_columns, tasks_of_columns.explicit()):
        regularizer = Regularizer(norms.L1(), form, 2.0)  # type: ignore[arg-type]
        problem = Problem.build(block, Y.ravel(), Squared(), regularizer)
        refit = SequentialQP().solve(problem, np.zeros(p * q), 0.0, 1e-9)
        assert refit.gap < 1e-8 * refit.objective
        ends.append(refit.weights)
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)
