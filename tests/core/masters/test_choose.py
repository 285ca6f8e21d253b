"""Which master each kind of problem gets, and that it solves the problem."""

from __future__ import annotations

import numpy as np
import pytest

from atomlearn import norms
from atomlearn.core import CachedBlock, DenseBlock, choose_master
from atomlearn.interfaces import Block, Loss, Master, Norm
from atomlearn.losses import as_loss
from atomlearn.problem import Problem, Regularizer


def names(master: Master) -> str:
    """Return the classes of the master and of those inside it, outermost first."""
    inner = getattr(master, "master", None)
    mine = type(master).__name__
    return f"{mine} {names(inner)}" if isinstance(inner, Master) else mine


def dense(n_samples: int, size: int) -> Block:
    return CachedBlock(DenseBlock(np.zeros((n_samples, size), order="F")))


def pairs(size: int) -> Norm:
    return norms.Groups(np.arange(size) // 2)


KINDS = [
    # norm, loss, block, what else differs, the master
    (norms.L1(), "squared", dense(50, 20), {}, "SequentialQP"),
    (norms.L1(), "squared", dense(50, 20), {"tau": 1.0}, "SequentialQP"),
    (norms.L1(), "squared", dense(2000, 501), {}, "SequentialQP"),
    (norms.L1(), "poisson", dense(50, 501), {}, "SequentialQP"),
    (norms.KSupport(3), "logistic", dense(50, 20), {}, "PatternNewton"),
    (norms.ElasticNetNorm(3), "squared_hinge", dense(50, 20), {"intercept": True}, "PatternNewton"),
    (pairs(20), "logistic", dense(50, 20), {"intercept": True}, "SequentialQP"),
    (pairs(20), "squared", dense(2000, 20), {"form": "constrained"}, "ScalingNewton"),
    (pairs(20), "squared", dense(50, 20), {"tau": 1.0}, "SequentialQP"),
    (pairs(502), "logistic", dense(3000, 502), {}, "SequentialQP"),
    (pairs(202), "squared", dense(50, 202), {}, "ScalingNewton"),
    (pairs(202), "squared", dense(51, 202), {}, "SequentialQP"),
    (pairs(202), "squared", dense(50, 202), {"tau": 1.0}, "SequentialQP"),
    (pairs(202), "logistic", dense(50, 202), {}, "SequentialQP"),
    (norms.L2(), "squared", dense(50, 20), {"tau": 1.0}, "SequentialQP"),
    (norms.L2(), "logistic", dense(50, 100), {}, "ScalingNewton"),
    (norms.L2(), "squared", dense(50, 100), {"tau": 1.0}, "SemismoothNewton"),
    # The kernel for groups takes so small a block whole.
    (norms.L2(), "squared", dense(50, 600), {}, "ScalingNewton"),
]


@pytest.mark.parametrize(("norm", "loss", "block", "rest", "expected"), KINDS)
def test_each_kind_of_problem_gets_its_master(
    norm: Norm, loss: str, block: Block, rest: dict[str, object], expected: str
) -> None:
    n_samples = block.shape[0]
    y = np.tile([1.0, 0.0 if loss == "poisson" else -1.0], n_samples)[:n_samples]
    assert_gets_its_master(norm, as_loss(loss), y, block, rest, expected)


def assert_gets_its_master(
    norm: Norm, loss: Loss, y: object, block: Block, rest: dict[str, object], expected: str
) -> None:
    problem = Problem.build(
        block,
        y,
        loss,
        Regularizer(norm, str(rest.get("form", "penalized")), 1.0),  # type: ignore[arg-type]
        tau=float(rest.get("tau", 0.0)),  # type: ignore[arg-type]
        fit_intercept=bool(rest.get("intercept", False)),
    )
    assert names(choose_master(problem)) == expected


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("norm", [norms.L1(), norms.KSupport(3), pairs(20)], ids=repr)
def test_the_chosen_master_solves_the_problem(norm: Norm, loss: str) -> None:
    rng = np.random.default_rng(1)
    X = np.asfortranarray(rng.normal(size=(40, 20)))
    y = X[:, :3].sum(axis=1)
    y = y if loss == "squared" else np.sign(y)
    block = CachedBlock(DenseBlock(X))
    problem = Problem.build(block, y, as_loss(loss), Regularizer(norm, "penalized", 2.0))
    refit = choose_master(problem).solve(problem, np.zeros(20), 0.0, 1e-8)
    assert refit.gap <= 1e-8
