"""A norm with value, polar and best columns, and nothing else, is fitted with a proof."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.core import ArrayScores
from atomlearn.interfaces import Norm
from atomlearn.norms import OWL, ElasticNetNorm, Groups, KSupport, LInf
from tests.oracles.sums import solve_sum

P = 8
LABELS = np.array([0, 0, 0, 1, 1, 2, 2, 2])


class WeightedL1(Norm):
    """sum_j (1 + j / p) |w_j|; max_j |z_j| / (1 + j / p)."""

    def _weights(self, size):
        return 1.0 + np.arange(size) / size

    def value(self, w):
        return float(self._weights(w.size) @ np.abs(w))

    def polar(self, scores):
        z = scores.full()
        return float((np.abs(z) / self._weights(z.size)).max())

    def best_columns(self, scores, count):
        z = scores.full()
        return np.argsort(-np.abs(z) / self._weights(z.size))[:count]


class Bare(Norm):
    """Another norm's value, polar and best columns."""

    def __init__(self, norm):
        self.inner = norm

    def value(self, w):
        return self.inner.value(w)

    def polar(self, scores):
        return self.inner.polar(scores)

    def best_columns(self, scores, count):
        return self.inner.best_columns(scores, count)


PAIRS = {
    "weighted l1": (WeightedL1(), Groups(np.arange(P), 1.0 + np.arange(P) / P)),
    "ordered": (Bare(OWL.oscar(P, 0.3)), OWL.oscar(P, 0.3)),
    "largest": (Bare(LInf()), LInf()),
    "groups": (Bare(Groups(LABELS)), Groups(LABELS)),
    "k-support": (Bare(KSupport(3)), KSupport(3)),
    "elastic net": (Bare(ElasticNetNorm(2)), ElasticNetNorm(2)),
}


def data():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, P))
    truth = np.array([2.0, 1.0, 1.5, 0.0, 0.0, -1.0, 0.0, 0.5])
    return X, X @ truth + 0.5 * rng.standard_normal(30)


@pytest.mark.parametrize("name", PAIRS)
def test_the_slope_of_the_polar_is_the_best_atom(name):
    bare, known = PAIRS[name]
    for seed in range(30):
        rng = np.random.default_rng(seed)
        z = np.round(rng.standard_normal(P)) if seed % 3 == 0 else rng.standard_normal(P)
        scores = ArrayScores(z)
        atom = bare.best_atom(scores)
        dense = np.zeros(P)
        dense[atom.columns] = atom.values
        assert known.value(dense) <= 1.0 + 1e-12
        assert_allclose(float(dense @ z), known.polar(scores), rtol=1e-7)
    assert bare.best_atom(ArrayScores(np.zeros(P))).columns.size == 0


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
@pytest.mark.parametrize("name", PAIRS)
def test_the_default_solver_proves_the_optimum(name, form):
    bare, known = PAIRS[name]
    X, y = data()
    amount = {
        "penalized": {"level": 4.0},
        "squared": {"level": 2.0},
        "constrained": {"radius": 1.5},
    }
    options = {"form": form, "fit_intercept": True, "tol": 1e-6, **amount[form]}
    mine, theirs = solve_sum(X, y, norm=bare, **options), solve_sum(X, y, norm=known, **options)
    assert mine.converged
    assert mine.relative_gap <= 1e-6
    assert abs(mine.objective - theirs.objective) <= 2e-6 * theirs.objective


def test_a_polar_of_another_norm_is_refused():
    class Wrong(WeightedL1):
        def polar(self, scores):
            return 2.0 * super().polar(scores)

    X, y = data()
    with pytest.raises(TypeError, match="not those of one norm"):
        solve_sum(X, y, norm=Wrong(), level=1.0)
