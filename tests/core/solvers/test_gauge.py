"""The gauge by generation: against closed forms and linear programs, with a gap that holds."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from numpy.typing import NDArray
from scipy.optimize import linprog

from atomlearn.core import gauge_by_generation
from atomlearn.interfaces import Norm
from atomlearn.norms import (
    L1,
    L2,
    Groups,
    KSupport,
    UserNorm,
)

Array = NDArray[np.float64]


@pytest.mark.parametrize(("n_features", "n_atoms"), [(3, 5), (6, 30), (16, 100)])
def test_hulls_of_points_against_a_linear_program(n_features: int, n_atoms: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        V = rng.standard_normal((n_atoms, n_features))

        def oracle(z: Array, V: Array = V) -> Array:
            best = int(np.abs(V @ z).argmax())
            return np.asarray(np.sign(V[best] @ z) * V[best])

        w = rng.standard_normal(n_features) * (rng.random(n_features) < 0.7) * 10.0 ** (seed - 5)
        A = np.vstack([V, -V]).T
        expected = linprog(np.ones(2 * n_atoms), A_eq=A, b_eq=w / 10.0 ** (seed - 5)).fun
        value, gap = gauge_by_generation(UserNorm(oracle), w)
        assert_allclose(value, expected * 10.0 ** (seed - 5), rtol=1e-8)
        assert gap <= 1e-8 * value


@pytest.mark.parametrize(
    "norm",
    [L1(), L2(), KSupport(3), Groups([[0, 1, 2], [3, 4]], weights=[2.0, 0.5])],
    ids=lambda norm: type(norm).__name__,
)
def test_norms_whose_value_is_known(norm: Norm) -> None:
    for seed in range(5):
        w = np.random.default_rng(seed).standard_normal(8)
        value, gap = gauge_by_generation(norm, w, tol=1e-6)
        slack = 1e-9 * value
        assert value - gap - slack <= norm.value(w) <= value + slack
        assert gap <= 1e-6 * value


def test_a_point_outside_the_cone_has_no_gauge() -> None:
    norm = UserNorm(lambda z: (np.array([z.argmax()]), np.ones(1)), symmetric=False)
    assert_allclose(gauge_by_generation(norm, np.array([1.0, 2.0, 0.0]))[0], 3.0, rtol=1e-10)
    assert gauge_by_generation(norm, np.array([1.0, -2.0, 0.0]), max_iter=200)[0] == math.inf
    assert gauge_by_generation(norm, -np.ones(3)) == (math.inf, math.inf)


def test_zero_and_bad_input() -> None:
    assert gauge_by_generation(L1(), np.zeros(4)) == (0.0, 0.0)
    with pytest.raises(ValueError, match=r"w\[1\] is nan"):
        gauge_by_generation(L1(), np.array([0.0, np.nan]))
