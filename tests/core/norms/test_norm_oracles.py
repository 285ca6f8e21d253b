"""The norms against enumeration, exact rational arithmetic and CVXPY."""

from __future__ import annotations

import math
from fractions import Fraction

import cvxpy as cp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn.core import ArrayScores
from atomlearn.norms import L1, L2, ElasticNetNorm, Groups, KSupport, Nonnegative
from atomlearn.testing import tolerances
from tests.oracles.norms import (
    naive_elastic_net_polar,
    naive_ksupport_polar,
    naive_ksupport_prox,
    naive_ksupport_square,
)
from tests.oracles.sums import solve_sum

SAME = tolerances.SAME_FLOAT64
FORMS = ("penalized", "squared", "constrained")


def random_vector(rng):
    """A short vector of one of five kinds: normal, heavy-tailed, ties, zeros, or wide scales."""
    size = int(rng.integers(1, 9))
    kind = rng.integers(5)
    v = rng.standard_cauchy(size) if kind == 1 else rng.normal(size=size)
    if kind == 2:
        v = np.round(v)
    if kind == 3:
        v[rng.random(size) < 0.5] = 0.0
    if kind == 4:
        v *= 10.0 ** rng.integers(-8, 9, size=size)
    return v


def assert_close(received, exact, scale):
    """Assert equality to roundings of the largest number that went in."""
    exact = np.array([float(entry) for entry in exact])
    assert_allclose(received, exact, rtol=SAME, atol=SAME * scale)


class TestKSupport:
    def test_value_is_exact(self):
        rng = np.random.default_rng(0)
        for _ in range(100):
            w = random_vector(rng)
            k = int(rng.integers(1, w.size + 3))
            exact = naive_ksupport_square(w, k)
            received = Fraction(KSupport(k).value(w)) ** 2
            assert abs(received - exact) <= Fraction(SAME) * exact

    def test_polar_is_the_best_of_all_supports(self):
        rng = np.random.default_rng(1)
        for _ in range(60):
            z = random_vector(rng)
            k = int(rng.integers(1, z.size + 3))
            norm = KSupport(k)
            scores = ArrayScores(z)
            assert_allclose(norm.polar(scores), naive_ksupport_polar(z, k), rtol=SAME)
            columns = norm.best_columns(scores, 1)
            assert columns.size == min(k, z.size)
            assert_allclose(np.linalg.norm(z[columns]), norm.polar(scores), rtol=SAME)

    def test_polar_over_groups_is_the_best_of_all_unions(self):
        rng = np.random.default_rng(2)
        for _ in range(50):
            z = random_vector(rng)
            labels = rng.integers(-1, 4, size=z.size)
            groups = [np.flatnonzero(labels == g).tolist() for g in np.unique(labels[labels >= 0])]
            alone = [[int(j)] for j in np.flatnonzero(labels < 0)]
            k = int(rng.integers(1, z.size + 2))
            exact = naive_ksupport_polar(z, k, groups + alone)
            for norm in (KSupport(k, labels), KSupport(k, groups)):
                assert_allclose(norm.polar(ArrayScores(z)), exact, rtol=SAME)
                columns = norm.best_columns(ArrayScores(z), 1)
                assert_allclose(np.linalg.norm(z[columns]), exact, rtol=SAME)
                whole = [set(group) for group in groups + alone]
                chosen = set(columns.tolist())
                assert all(group <= chosen or not group & chosen for group in whole)
                assert sum(group <= chosen for group in whole) == min(k, len(whole))

    def test_prox_squared_is_exact(self):
        rng = np.random.default_rng(3)
        for _ in range(100):
            v = random_vector(rng)
            k, step = int(rng.integers(1, v.size + 3)), float(10.0 ** rng.uniform(-4, 4))
            exact = naive_ksupport_prox(v, k, step)
            assert_close(KSupport(k).prox_squared(v, step), exact, np.abs(v).max())

    def test_prox_satisfies_its_equation_exactly(self):
        """Penalized and constrained points are prox_squared at the mu they imply, in fractions."""
        rng = np.random.default_rng(4)
        for _ in range(60):
            v = random_vector(rng)
            if not v.any():
                continue
            k = int(rng.integers(1, v.size + 1))
            norm, largest = KSupport(k), float(np.abs(v).max())
            share = float(rng.uniform(0.02, 0.98))
            step = share * norm.polar(ArrayScores(v))
            point = norm.prox_point(v, step, "penalized")
            exact = naive_ksupport_prox(v, k, step / point.gauge)
            assert_close(point.point, exact, 10 * largest)
            radius = share * norm.value(v)
            point = norm.prox_point(v, radius, "constrained")
            assert point.gauge == radius
            assert_allclose(norm.value(point.point), radius, rtol=1e3 * SAME, atol=SAME * largest)

    def test_zero_threshold_by_hand(self):
        # k = 2, w = (3, 1, 1): 3 >= (1 + 1) / 1, so d = (1, 1/2, 1/2) and the share is 2.
        norm = KSupport(2)
        gauge = norm.value(np.array([3.0, 1.0, -1.0, 0.0]))
        assert_allclose(gauge, math.sqrt(13.0), rtol=SAME)
        threshold = norm.thresholds(np.array([3.0, 1.0, -1.0, 0.0]), np.zeros(1, int), 3)
        assert_allclose(threshold, 2.0 / gauge, rtol=SAME)
        assert norm.thresholds(np.array([3.0, 0.0, 1.0]), np.zeros(1, int), 3) == 0.0
        assert norm.thresholds(np.zeros(3), np.zeros(1, int), 3) == 0.0
        assert norm.thresholds(np.zeros(0), np.zeros(1, int), 3) == 0.0
        assert L1().thresholds(np.ones(3), np.zeros(1, int), 3) == 1.0
        assert L2().thresholds(np.ones(3), np.zeros(1, int), 3) == 0.0
        told = KSupport(1).thresholds(np.array([3.0, 1.0]), np.zeros(1, int), 3)
        assert_allclose(told, 1.0, rtol=SAME)


class TestElasticNet:
    def test_polar_against_golden_sections(self):
        rng = np.random.default_rng(6)
        for _ in range(50):
            z = random_vector(rng)
            k = int(rng.integers(1, z.size + 3))
            polar = ElasticNetNorm(k).polar(ArrayScores(z))
            slow = naive_elastic_net_polar(z, k)
            assert_allclose(polar, slow, rtol=1e-9)
            assert polar <= slow * (1.0 + SAME)

    def test_any_real_k(self):
        """The polar between whole numbers, ties included."""
        rng = np.random.default_rng(61)
        for _ in range(40):
            z = random_vector(rng)
            k = float(rng.uniform(1.0, z.size + 1.0))
            norm = ElasticNetNorm(k)
            slow = naive_elastic_net_polar(z, k)
            assert_allclose(norm.polar(z), slow, rtol=1e-9)
            tied = np.sign(rng.standard_normal(9)) * 2.0
            atom = norm.best_atom(tied)
            assert_allclose(atom.values @ tied[atom.columns], norm.polar(tied), rtol=1e-12)
            assert norm.value(atom.values) <= 1.0 + 1e-12

    def test_solutions_of_the_elastic_net_are_solutions_of_the_norm(self):
        """[A] section 3: k = (||w||_1 / ||w||_2)^2 of a solution of (6), any real number."""
        for seed in range(3):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((30, 8))
            y = X @ np.where(np.arange(8) < 3, 1.0, 0.0) + rng.standard_normal(30)
            one, two = 10.0 ** rng.uniform(-1, 1, 2)
            w = cp.Variable(8)
            loss = 0.5 * cp.sum_squares(X @ w - y)
            cp.Problem(cp.Minimize(loss + one * cp.norm1(w) + two * cp.sum_squares(w))).solve(
                solver="CLARABEL"
            )
            found = np.where(np.abs(w.value) > 1e-7, w.value, 0.0)
            k = (np.abs(found).sum() / np.linalg.norm(found)) ** 2
            norm = ElasticNetNorm(float(k))
            ours = solve_sum(
                X, y, norm=norm, form="constrained", radius=norm.value(found), tol=1e-10
            )
            assert_allclose(ours.coef, found, atol=2e-4)


class TestThresholds:
    @pytest.mark.parametrize("form", FORMS)
    def test_l1_is_ksupport_of_one_and_groups_of_one(self, form):
        rng = np.random.default_rng(10)
        for _ in range(40):
            v = random_vector(rng)
            amount = float(10.0 ** rng.uniform(-2, 2))
            expected = L1().prox_point(v, amount, form)
            scale = float(np.abs(v).max())
            for norm in (KSupport(1), Groups(np.arange(v.size)), ElasticNetNorm(1)):
                received = norm.prox_point(v, amount, form)
                assert_allclose(received.point, expected.point, atol=10 * SAME * scale)


class Program:
    """One CVXPY program for each form, solved again for each v: the norm by its definition."""

    n_features = 5

    def __init__(self, squared_bound, nonnegative=False):
        """``squared_bound(x, size)`` returns u and constraints: gauge(x)^2 <= size * u."""
        n = self.n_features
        self.v, self.amount = cp.Parameter(n), cp.Parameter(nonneg=True)
        self.x, self.size = cp.Variable(n, nonneg=nonnegative), cp.Variable(nonneg=True)
        distance = 0.5 * cp.sum_squares(self.x - self.v)
        bound, constraints = squared_bound(self.x, self.size)
        gauge = 0.5 * (bound + self.size)
        unit, unit_constraints = squared_bound(self.x, 1.0)
        self.programs = {
            "penalized": cp.Problem(cp.Minimize(distance + self.amount * gauge), constraints),
            "squared": cp.Problem(
                cp.Minimize(distance + 0.5 * self.amount * unit), unit_constraints
            ),
            "constrained": cp.Problem(
                cp.Minimize(distance), [*unit_constraints, unit <= self.amount]
            ),
        }

    def solve(self, v, amount, form):
        self.v.value = v
        self.amount.value = amount**2 if form == "constrained" else amount
        # CVXPY evaluates 0 / 0 where the solver rounds a d to zero.
        with np.errstate(divide="ignore", invalid="ignore"):
            self.programs[form].solve(solver=cp.CLARABEL)
        return self.x.value


def scaling_bound(k, groups):
    """gauge(x)^2 <= u s where u = sum_g ||x_g||^2 / d_g, 0 <= d <= s, sum d <= k s."""

    def bound(x, size):
        d = cp.Variable(len(groups), nonneg=True)
        terms = [cp.quad_over_lin(x[group], d[i]) for i, group in enumerate(groups)]
        return sum(terms), [d <= size, cp.sum(d) <= k * size]

    return bound


def two_norms_bound(k):
    """max(||x||_2, ||x||_1 / sqrt k)^2 <= u s."""

    def bound(x, size):
        parts = [cp.norm1(x) / math.sqrt(k), cp.norm2(x)]
        if isinstance(size, float):
            return cp.square(cp.maximum(*parts)), []
        u = cp.Variable(nonneg=True)
        return u, [part <= u for part in parts] + [size == u]

    return bound


LISTS = [[0, 3], [1], [2, 4]]


PROGRAMS = {
    "k-support": (KSupport(2), scaling_bound(2, [[j] for j in range(5)]), False),
    "k-support over groups": (KSupport(2, LISTS), scaling_bound(2, LISTS), False),
    "groups": (Groups(LISTS), scaling_bound(1, LISTS), False),
    "l1": (L1(), scaling_bound(1, [[j] for j in range(5)]), False),
    "elastic net": (ElasticNetNorm(2), two_norms_bound(2), False),
    "non-negative": (
        Nonnegative(KSupport(2)),
        scaling_bound(2, [[j] for j in range(5)]),
        True,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_cvxpy(name):
    """The three maps by an interior-point solver, from the definition of the norm."""
    norm, bound, nonnegative = PROGRAMS[name]
    program = Program(bound, nonnegative)
    rng = np.random.default_rng(12)
    for trial in range(12):
        v = rng.normal(size=program.n_features) * float(10.0 ** rng.uniform(-0.5, 0.5))
        amount = float(10.0 ** rng.uniform(-1, 0.5))
        form = FORMS[trial % 3]
        slow = program.solve(v, amount, form)
        received = norm.prox_point(v, amount, form).point
        # An objective right to 1e-6 leaves its point free by the square root of twice that.
        assert_allclose(received, slow, atol=math.sqrt(2.0 * tolerances.ORACLE) * (1.0 + v @ v))
