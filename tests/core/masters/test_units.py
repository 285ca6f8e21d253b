"""Units change nothing: neither those of the columns, nor of the sample weights, nor of all X."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray

from atomlearn import losses, norms
from atomlearn.core import (
    CachedBlock,
    DenseBlock,
    ModelNewton,
    PatternNewton,
    SemismoothNewton,
    changed,
    loss_at_zero,
)
from atomlearn.interfaces import Master, Norm
from atomlearn.masters import AcceleratedGradient, ScalingNewton, SequentialQP, WorkingSets
from atomlearn.problem import Problem, Regularizer
from atomlearn.testing.problems import Case, all_cases

Array = NDArray[np.float64]

NORMS = {
    "l2": norms.L2(),
    "groups": norms.Groups([list(range(i, i + 4)) for i in range(0, 24, 4)]),
}


@pytest.mark.parametrize("name", NORMS)
def test_few_steps_whatever_the_units(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 24)) * 10.0 ** rng.uniform(-3, 3, 24)
    w = rng.normal(size=24) / np.abs(X).mean(axis=0)
    y = X @ w + rng.normal(size=200)
    regularizer = Regularizer(NORMS[name], "squared", 0.05)
    problem = Problem.build(DenseBlock(np.asfortranarray(X)), y, losses.Squared(), regularizer)
    refit = SemismoothNewton().solve(problem, np.zeros(24), 0.0, 1e-4)
    assert refit.gap <= 1e-4 < 1e-6 * refit.objective
    # With all columns damped alike it takes thousands, as the small ones hardly move.
    assert refit.steps <= 100


def in_units(problem: Problem, X: Array, heavier: float, longer: float) -> Problem:
    """Return the same problem with sample weights and columns times these powers of 4."""
    form, tau = problem.regularizer.form, problem.tau * heavier * longer**2
    factor = {"penalized": heavier * longer, "squared": heavier * longer**2}
    amount = problem.regularizer.amount * factor.get(form, 1.0 / longer)
    block = CachedBlock(DenseBlock(np.asfortranarray(longer * X)))
    level = replace(problem.regularizer, amount=amount)
    weight = problem.weight * heavier
    return replace(problem, design=block, weight=weight, tau=tau, regularizer=level)


GROUPS = norms.Groups([[0, 1, 2], [3, 4], [5, 6, 7, 8], [10, 11]])
RAYS = norms.Nonnegative(norms.L1())
USUAL = "squared logistic squared_hinge"
#: Master, norm, losses, and the steps that all cases take together, with a tenth to spare.
KINDS: list[tuple[Master, Norm, str, int]] = [
    (SemismoothNewton(), norms.KSupport(3), USUAL, 168),
    (SemismoothNewton(), GROUPS, "huber poisson", 111),
    (AcceleratedGradient(), norms.KSupport(3), USUAL, 528),
    (AcceleratedGradient(), GROUPS, USUAL, 506),
    (WorkingSets(smallest=3, least=2), norms.KSupport(2), "squared logistic", 268),
    (ScalingNewton(), GROUPS, "squared logistic poisson", 150),
    (SequentialQP(), norms.L1(), USUAL, 75),
    (SequentialQP(), norms.L1(), "huber poisson", 70),
    (SequentialQP(), RAYS, USUAL, 68),
    (PatternNewton(), norms.KSupport(3), "squared", 128),
    (ModelNewton(), norms.KSupport(3), USUAL, 97),
    (ModelNewton(), norms.L1(), "poisson squared", 97),
    (ModelNewton(), GROUPS, "poisson", 24),
    (ModelNewton(), norms.KSupport(3), "multinomial", 46),
    (ModelNewton(WorkingSets(SequentialQP(SemismoothNewton()))), norms.L1(), "multinomial", 7),
]


def taken(kind: int, heavier: float, longer: float) -> list[tuple[int, Array, float]]:
    """Return steps, weights, and gaps relative to what was asked for, of all cases."""
    master, norm, names, _ = KINDS[kind]
    found = []
    for case in cases(names.split(), 24):
        problem = in_units(case.problem(norm), case.data()[0], heavier, longer)
        if case.loss == "multinomial":
            problem = of_classes(problem)
        elif isinstance(master, ModelNewton):
            problem = changed(problem, unpenalized=[1])
        enough = 1e-7 * loss_at_zero(problem)
        refit = master.solve(problem, np.zeros(16), 0.0, enough)
        assert refit.gap <= enough
        found.append((refit.steps, refit.weights * longer, refit.gap / enough))
    return found


def cases(names: list[str], n_samples: int) -> list[Case]:
    """Return six cases of each loss: any two of intercept, weights and ridge meet."""
    found = []
    for name in names:
        for number, like in enumerate(case for case in all_cases() if case.loss == "logistic"):
            loss = "squared" if name == "multinomial" else name
            found.append(replace(like, loss=loss, n_samples=n_samples, seed=50 + number))
    return found


def of_classes(problem: Problem) -> Problem:
    """Return the problem of rows of three classes each, at most one of which is the right one."""
    right = problem.y.reshape(-1, 3).argmax(axis=1)
    return replace(
        problem, loss=losses.Multinomial(3), y=np.eye(3)[right].ravel(), tau=0.0,
        weight=np.repeat(problem.weight[::3], 3), fit_intercept=False,
    )  # fmt: skip


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_other_units_take_the_same_steps_to_the_same_point(kind: int) -> None:
    """Powers of 4 round nothing: whatever decides on a way is free of units, or it shows here."""
    plain = taken(kind, 1.0, 1.0)
    assert sum(steps for steps, _, _ in plain) <= KINDS[kind][-1]
    for heavier, longer in ((2.0**-14, 1.0), (64.0, 1.0), (1.0, 2.0**-12), (1.0, 16.0)):
        for one, other in zip(plain, taken(kind, heavier, longer), strict=True):
            assert other[0] == one[0]
            assert_allclose(other[1], one[1], rtol=1e-6, atol=1e-9)
            assert_allclose(other[2], one[2], rtol=0.05, atol=1e-3)
