"""A master over fewer samples: the same minimum, proved over all samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from atomlearn import norms
from atomlearn.core.data import growing_gram
from atomlearn.core.data.blocks import DenseBlock
from atomlearn.core.data.cached_block import CachedBlock
from atomlearn.core.interfaces.norm import Form
from atomlearn.core.masters.compressed import compressed
from atomlearn.designs import as_design
from atomlearn.interfaces import Master, Norm, Refit
from atomlearn.losses import Logistic, Squared
from atomlearn.masters import CompressedSamples, SemismoothNewton
from atomlearn.problem import Problem, Regularizer

N_TALL, WIDTH = 3000, 15


def tall(kind: str, norm: Norm, fit_intercept: bool, form: Form = "penalized") -> Problem:
    """Many samples: correlated columns far from mean zero, one twice, one empty; weights."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(N_TALL, WIDTH)) + 0.7 * rng.normal(size=(N_TALL, 1)) + 5.0
    X *= rng.random((N_TALL, WIDTH)) < (0.05 if kind == "sparse" else 1.0)
    X[:, 4], X[:, 9] = X[:, 3], 0.0
    y = X[:, :5].sum(axis=1) + 40.0 + rng.normal(size=N_TALL)
    weight = rng.random(N_TALL) * (rng.random(N_TALL) < 0.9)
    data = {
        "float64": np.asfortranarray(X),
        "float32": np.asfortranarray(X, dtype=np.float32),
        "sparse": sp.csc_array(X),
    }[kind]
    design = as_design(data)
    everything = np.arange(WIDTH)
    regularizer = Regularizer(norm, form, 2.0 if form == "constrained" else 300.0)
    whole = Problem.build(
        design, y, Squared(), regularizer, sample_weight=weight, fit_intercept=fit_intercept
    )
    block = CachedBlock(design.gather(everything))
    return whole.restricted_to(block, everything)


TALL_NORMS = [norms.L1(), norms.KSupport(4), norms.Groups(np.arange(WIDTH) // 3)]


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize("norm", TALL_NORMS, ids=lambda norm: type(norm).__name__)
def test_many_samples_become_as_many_as_columns(
    kind: str, norm: Norm, fit_intercept: bool, form: Form
) -> None:
    whole = tall(kind, norm, fit_intercept, form)
    smaller = compressed(whole)
    assert smaller is not None
    # One column is there twice and one is empty.
    assert smaller.design.shape == (WIDTH - 2, WIDTH)
    A = np.asarray(whole.design, dtype=float)
    weights = np.random.default_rng(3).normal(size=(2, WIDTH))
    values = []
    for w in weights:
        linear = A @ w
        linear = linear + whole.optimal_intercept(linear, 0.0)
        few = np.asarray(smaller.design) @ w
        values.append(whole.objective(w, linear) - smaller.objective(w, few))
    # The objectives differ by what no weights can change.
    assert_allclose(values[0], values[1], rtol=1e-9)
    start = np.zeros(WIDTH)
    target = 1e-9 * whole.objective(start, np.zeros(N_TALL))
    refit = CompressedSamples(SemismoothNewton()).solve(whole, start, 0.0, target)
    direct = SemismoothNewton().solve(whole, start, 0.0, target)
    assert refit.gap <= target
    assert abs(refit.objective - direct.objective) <= 2 * target
    assert_allclose(refit.intercept, whole.optimal_intercept(A @ refit.weights, 0.0), atol=1e-9)
    assert_allclose(refit.prediction, A @ refit.weights + refit.intercept, rtol=1e-9)


def test_the_gram_matrix_is_extended_by_new_columns_only(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = tall("float32", norms.L1(), True)
    block = whole.design
    assert isinstance(block, CachedBlock)
    first = block.take(np.arange(5))
    assert compressed(replace(whole, design=first)) is not None
    longer = first.append(block.take(np.arange(5, WIDTH)).inner)
    asked: list[int] = []
    before = growing_gram._products
    monkeypatch.setattr(
        growing_gram, "_products", lambda a, b: asked.append(b.shape[1]) or before(a, b)
    )
    extended, afresh = compressed(replace(whole, design=longer)), compressed(whole)
    assert extended is not None
    assert afresh is not None
    assert asked == [WIDTH - 5]
    R, S = np.asarray(extended.design), np.asarray(afresh.design)
    assert_allclose(R.T @ R, S.T @ S, rtol=1e-10, atol=1e-6)
    assert_allclose(R.T @ extended.y, S.T @ afresh.y, rtol=1e-9, atol=1e-6)


def test_few_samples_are_left_as_they_are() -> None:
    whole = tall("float64", norms.L1(), False)
    few = np.arange(1999)
    block = CachedBlock(DenseBlock(np.asarray(whole.design)[few]))
    short = replace(whole, design=block, y=whole.y[few], weight=whole.weight[few])
    assert compressed(short) is None


@dataclass(frozen=True)
class Careless(Master):
    """Gives the start back over few samples and claims a gap of zero there."""

    calls: list[int] = field(default_factory=list)

    def solve(self, problem: Problem, weights: np.ndarray, intercept: float, gap: float) -> Refit:
        self.calls.append(problem.design.shape[0])
        if problem.design.shape[0] < N_TALL:
            return Refit(weights, 0.0, np.zeros(problem.design.shape[0]), 0.0, 0.0, steps=3)
        return SemismoothNewton().solve(problem, weights, intercept, gap)


def test_a_claim_over_few_samples_is_checked_over_all() -> None:
    whole = tall("float64", norms.L1(), False)
    start = np.zeros(whole.design.shape[1])
    master = Careless()
    refit = CompressedSamples(master).solve(whole, start, 0.0, 1e-6)
    assert master.calls[0] <= whole.design.shape[1]
    assert master.calls[1:] == [N_TALL]
    assert refit.gap <= 1e-6
    assert refit.steps > 3


def test_other_losses_are_left_alone() -> None:
    whole = tall("float64", norms.L1(), False)
    labels = np.where(whole.y > 0, 1.0, -1.0)
    assert compressed(replace(whole, loss=Logistic(), y=labels)) is None
