"""NormChecks: what every norm of vectors must do. Inherit, name the norm, and pytest runs the rest.

>>> class TestMyNorm(NormChecks):  # doctest: +SKIP
...     norm = MyNorm(3)
...     n_features = 12
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from atomlearn.core import Array, ArrayScores, Form, Norm, ProxPoint
from atomlearn.testing import tolerances
from atomlearn.testing.cases import each
from atomlearn.testing.problems import FORMS


class NormChecks:
    """Tests that every norm of vectors must pass. Set ``norm`` and ``n_features``.

    Override ``inside``, which moves a point to where the gauge is finite, if it can be infinite.
    ``accuracy`` and ``polar_accuracy`` are the relative accuracies of the gauge and of its polar.
    """

    norm: Norm
    n_features: int
    #: Other values of parameters: each of them gives another norm.
    changes: ClassVar[Mapping[str, Any]] = {}
    #: False for gauges that are finite for one sign only.
    symmetric = True
    #: Relative accuracy of ``value``: looser if it is the result of an iteration.
    accuracy: float = tolerances.SAME_FLOAT64
    #: Relative accuracy of ``polar`` and of the best atom: looser if an iteration computes them.
    polar_accuracy: float = 1e-12
    #: Step of central differences of a prox, relative to its argument: error 1e-16 / step + step^2.
    step = 1e-5

    def inside(self, w: Array) -> Array:
        """Return a point near ``w`` at which the gauge is finite, such as its positive part."""
        return w

    # The parts of the checks.

    def sample(self, seed: int) -> Array:
        """Return a vector (n_features,): normal, heavy-tailed, with zeros, or with ties.

        ``seed`` modulo 4 decides which.
        """
        rng = np.random.default_rng(seed)
        kind = seed % 4
        v = rng.standard_cauchy(self.n_features) if kind == 1 else rng.normal(size=self.n_features)
        if kind == 2:
            v[rng.random(self.n_features) < 0.5] = 0.0
        if kind == 3:
            v = np.round(v)
        return v

    def amount(self, seed: int) -> float:
        """Return a random step (or radius) of a proximal map, for this ``seed``."""
        return float(np.exp(np.random.default_rng(seed + 10_000).normal(scale=1.5)))

    def polar(self, z: Array) -> float:
        """Return the polar (dual norm) of the norm at the vector z."""
        return self.norm.polar(ArrayScores(np.ascontiguousarray(z, dtype=np.float64)))

    def point(self, v: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal point of ``v``; skip the test if the norm has no proximal operator.

        ``amount`` and ``form`` are those of ``Norm.prox_point``.
        """
        if not self.norm.proximal:
            pytest.skip("no proximal map")
        return self.norm.prox_point(v, amount, form)

    def assert_optimal(self, v: Array, w: Array, amount: float, form: Form) -> None:
        """Assert that ``w`` is the proximal point of ``v``, by the first-order conditions.

        They are sufficient: the residual q = v - w must satisfy gauge°(q) <= m and <w, q> = m
        gauge(w). Here m = step for the form "penalized", and m = step * gauge(w) for "squared". For
        a projection m is any number >= 0 if gauge(w) = radius, and 0 inside the ball. ``amount`` is
        the step or the radius.
        """
        scale = float(np.abs(v).max(initial=0.0)) or 1.0
        v = v / scale
        w = w / scale
        residual = v - w
        gauge = self.norm.value(w)
        tolerance = tolerances.SAME_FLOAT64
        size = 1.0 + gauge + self.polar(residual)
        assert np.isfinite(size), "the point lies outside the domain of the gauge"
        inner = float(w @ residual)
        if form == "constrained":
            radius = amount / scale
            assert gauge <= radius + tolerance * size
            assert abs(inner - radius * self.polar(residual)) <= tolerance * size**2
            return
        multiplier = amount / scale if form == "penalized" else amount * gauge
        if form == "squared":
            size *= 1.0 + amount  # the factor by which a rounding error of w enters the multiplier
        assert self.polar(residual) <= multiplier + tolerance * size
        assert abs(inner - multiplier * gauge) <= tolerance * size**2

    # Gauge and polar.

    def test_declarations(self) -> None:
        """The norm is a Norm, accepts its number of features, and has its class in its repr."""
        assert isinstance(self.norm, Norm)
        self.norm.on(self.n_features)
        assert type(self.norm).__name__ in repr(self.norm)

    def test_gauge(self) -> None:
        """The gauge is 0 at 0, positive elsewhere, homogeneous, subadditive, and symmetric.

        The last holds only for norms that are ``symmetric``.
        """
        for seed in range(8):
            v = self.inside(self.sample(seed))
            w = self.inside(self.sample(seed + 500))
            tolerance = self.accuracy
            gauge_v = self.norm.value(v)
            gauge_w = self.norm.value(w)
            assert self.norm.value(np.zeros(self.n_features)) == 0.0
            assert gauge_v > 0.0 or not v.any()
            # Scales at which squares would underflow or overflow are included.
            for scale in (3.0, 2.0**-500, 2.0**500):
                assert_allclose(self.norm.value(scale * v), scale * gauge_v, rtol=tolerance)
            assert self.norm.value(v + w) <= (gauge_v + gauge_w) * (1.0 + tolerance)
            if self.symmetric:
                assert_allclose(self.norm.value(-v), gauge_v, rtol=tolerance)

    def test_polar_bounds_the_inner_product(self) -> None:
        """The polar satisfies <w, z> <= gauge(w) gauge°(z), is homogeneous and subadditive."""
        points = np.array([self.inside(self.sample(1000 + seed)) for seed in range(20)])
        gauges = np.array([self.norm.value(w) for w in points])
        for seed in range(12):
            z = self.sample(seed)
            other = self.sample(seed + 500)
            polar = self.polar(z)
            tolerance = self.accuracy
            assert np.all(points @ z <= gauges * polar * (1.0 + tolerance) + tolerance)
            assert_allclose(self.polar(7.0 * z), 7.0 * polar, rtol=tolerance)
            assert self.polar(z + other) <= (polar + self.polar(other)) * (1.0 + tolerance)

    def test_the_best_atom_attains_the_polar(self) -> None:
        """The best atom has distinct columns, <a, z> = gauge°(z) and gauge(a) = 1.

        If z is 0, the atom is empty.
        """
        for seed in range(12):
            z = self.sample(seed)
            atom = self.norm.best_atom(ArrayScores(z))
            polar = self.polar(z)
            dense = np.zeros(self.n_features)
            dense[atom.columns] = atom.values
            assert np.unique(atom.columns).size == atom.columns.size
            assert_allclose(dense @ z, polar, rtol=self.polar_accuracy, atol=1e-15)
            if polar > 0.0:
                assert_allclose(self.norm.value(dense), 1.0, rtol=max(self.accuracy, 1e-12))
        zero_scores = ArrayScores(np.zeros(self.n_features))
        assert not self.norm.best_atom(zero_scores).columns.size

    def assert_same(self, norm: Norm, other: Norm) -> None:
        """Assert that two norms have the same values, polars, columns and proximal maps.

        The norms are ``norm`` and ``other``.
        """
        for seed in range(4):
            v = self.inside(self.sample(seed))
            scores = ArrayScores(v)
            tolerance = tolerances.SAME_FLOAT64
            assert_allclose(norm.polar(scores), other.polar(scores), rtol=tolerance)
            assert_allclose(
                norm.value(v), other.value(v), rtol=max(tolerance, 10.0 * self.accuracy)
            )
            assert_array_equal(norm.best_columns(scores, 3), other.best_columns(scores, 3))
            for form in FORMS if norm.proximal else ():
                point = norm.prox_point(v, 0.7, form).point
                assert_allclose(
                    point, other.prox_point(v, 0.7, form).point, rtol=tolerance, atol=tolerance
                )

    def test_a_norm_is_what_its_parameters_say_now(self) -> None:
        """A changed parameter changes the norm, even after a use with the old value."""
        bound = self.norm.on(self.n_features)
        self.assert_same(bound, self.norm)
        self.assert_same(bound.on(self.n_features), self.norm)
        # Change one parameter at a time, after the norm was used with the old value.
        for name, value in self.changes.items():
            norm: Any = copy.deepcopy(self.norm)
            fresh = type(norm)(**{**norm.get_params(deep=False), name: value})
            self.assert_same(norm.on(self.n_features), self.norm)
            setattr(norm, name, value)
            self.assert_same(norm, fresh)
            self.assert_same(norm.on(self.n_features), fresh)

    # Columns.

    def test_best_columns_hold_the_best_atom(self) -> None:
        """Best columns are distinct and in range; the polar over them is that over all columns."""
        for seed in range(12):
            z = self.sample(seed)
            columns = self.norm.best_columns(ArrayScores(z), (1, 3, 1000)[seed % 3])
            assert columns.dtype == np.int64
            assert np.unique(columns).size == columns.size
            assert np.all((columns >= 0) & (columns < self.n_features))
            scores_there = np.zeros_like(z)
            scores_there[columns] = z[columns]
            assert_allclose(self.polar(scores_there), self.polar(z), rtol=self.polar_accuracy)

    def test_restriction(self) -> None:
        """The restriction is the norm on vectors that are zero elsewhere, with polar and prox."""
        if self.norm.restrict(np.arange(1), self.n_features) is None:
            pytest.skip("no restriction")
        for seed in range(12):
            rng = np.random.default_rng(seed)
            size = int(rng.integers(1, self.n_features + 1))
            columns = rng.permutation(self.n_features)[:size].astype(np.int64)
            restricted = self.norm.restrict(columns, self.n_features)
            assert restricted is not None
            restricted.on(size)
            # A vector that is zero outside the columns.
            w = np.zeros(self.n_features)
            w[columns] = self.sample(seed)[columns]
            w = self.inside(w)
            tolerance = tolerances.SAME_FLOAT64
            assert_allclose(restricted.value(w[columns]), self.norm.value(w), rtol=tolerance)
            assert_allclose(
                restricted.polar(ArrayScores(w[columns])), self.polar(w), rtol=tolerance
            )
            for form in FORMS:
                unrestricted = self.point(w, self.amount(seed), form).point
                part = restricted.prox_point(w[columns], self.amount(seed), form)
                assert_allclose(part.point, unrestricted[columns], rtol=tolerance, atol=tolerance)

    def test_thresholds(self) -> None:
        """Scores up to the threshold at zeros of w keep a subgradient, and larger ones do not."""
        for seed in range(12):
            v = self.sample(seed)
            w = self.point(v, 0.3, "squared").point
            gauge = self.norm.value(w)
            # Coordinates that must be 0 in the domain of the gauge have no threshold.
            usable = self.inside(np.ones(self.n_features)) != 0
            zeros = np.flatnonzero((w == 0) & usable)
            threshold = self.norm.thresholds(w[w != 0], zeros, self.n_features)
            assert np.min(threshold, initial=0.0) >= 0.0
            if gauge == 0.0 or zeros.size == 0:
                continue
            # (v - w) / (step * gauge) is a subgradient of the gauge at w.
            subgradient = (v - w) / (0.3 * gauge)
            subgradient[zeros] = threshold
            tolerance = tolerances.SAME_FLOAT64
            assert self.polar(subgradient) <= 1.0 + tolerance
            assert_allclose(subgradient @ w, gauge, rtol=tolerance)
            first = np.broadcast_to(threshold, zeros.shape)[0]
            if first > 0:
                subgradient[zeros[0]] = 1.01 * first
                assert self.polar(subgradient) > 1.0 + 1e-6

    # Proximal maps.

    @each("form", FORMS)
    def test_prox_is_optimal(self, form: Form) -> None:
        """Proximal points satisfy first-order conditions and have the right gauge, at any scale.

        ``form`` is how the norm enters: penalized, squared or constrained.
        """
        for seed in range(20):
            # A step or radius has the units of v, except for the squared form.
            scale = 2.0 ** (0, -500, -30, 30, 500)[seed % 5]
            v = scale * self.sample(seed)
            amount = self.amount(seed)
            amount *= 1.0 if form == "squared" else scale
            result = self.point(v, amount, form)
            self.assert_optimal(v, result.point, amount, form)
            tolerance = tolerances.SAME_FLOAT64
            size = scale + np.abs(v).max()
            assert_allclose(
                result.gauge, self.norm.value(result.point), rtol=tolerance, atol=tolerance * size
            )

    @each("form", FORMS)
    def test_extreme_amounts(self, form: Form) -> None:
        """The proximal map is the identity or zero for extreme amounts, and optimal just before.

        A step of 0 gives v, and a step of twice the polar gives 0. A radius of 0 gives 0, and a
        radius of twice the gauge gives v. Amounts that are negative or not finite raise ValueError.
        """
        zeros = np.zeros(self.n_features)
        for v in (self.inside(self.sample(0)), self.inside(self.sample(2))):
            # The amount from which the map is constant: the gauge of v, or its polar.
            threshold = self.norm.value(v) if form == "constrained" else self.polar(v)
            at_small = self.point(v, 0.0, form).point
            at_large = self.point(v, 2.0 * threshold, form).point
            if form == "constrained":
                at_small, at_large = at_large, at_small
            assert_array_equal(at_small, v)
            if form != "squared":
                assert_array_equal(at_large, zeros)
            for amount in (
                1e-10,
                1e10,
                *(threshold * (1.0 - share) for share in (1e-15, 1e-12, 1e-6)),
            ):
                self.assert_optimal(v, self.point(v, amount, form).point, amount, form)
        assert_array_equal(self.point(zeros, 1.0, form).point, zeros)
        # Amounts must be finite and >= 0.
        for wrong in (-1.0, np.nan, np.inf):
            with pytest.raises(ValueError, match=r"finite and at least 0"):
                self.point(zeros, wrong, form)

    @each("form", FORMS)
    def test_precision_and_inputs(self, form: Form) -> None:
        """Inputs of any precision and memory layout work, are not changed, and may be read-only."""
        v = self.sample(0)
        amount = self.amount(0)
        expected = self.point(v, amount, form).point
        v.flags.writeable = False
        result = self.point(v, amount, form).point
        assert result.dtype == np.float64
        assert not np.shares_memory(result, v)
        v_float32: Any = v.astype(np.float32)
        v_float32.flags.writeable = False
        point = self.point(v_float32, amount, form).point
        assert_allclose(point, expected, rtol=tolerances.SAME_FLOAT32, atol=1e-5)
        assert_array_equal(self.point(np.repeat(v, 2)[::2], amount, form).point, expected)

    # Jacobians.

    @each("form", FORMS)
    def test_jacobian_is_the_derivative(self, form: Form) -> None:
        """The Jacobian of the proximal map agrees with central differences at generic points.

        ``form`` is how the norm enters. At all points the Jacobian is symmetric with eigenvalues in
        [0, 1], and it is 0 outside its support.
        """
        points = [self.sample(seed) for seed in range(8)]
        for seed, v in enumerate([*points, np.zeros(self.n_features), np.ones(self.n_features)]):
            dense = self.point(v, self.amount(seed), form).jacobian().dense()
            assert_allclose(dense, dense.T, atol=tolerances.SAME_FLOAT64)
            eigenvalues = np.linalg.eigvalsh(dense)
            assert -1e-10 <= eigenvalues[0] <= eigenvalues[-1] <= 1.0 + 1e-10
        # Compare with differences at five points that have no kink nearby.
        checked = 0
        for seed in range(0, 40, 4):
            if checked == 5:
                break
            v = self.sample(seed)
            amount = self.amount(seed)
            jacobian = self.point(v, amount, form).jacobian()
            dense = jacobian.dense()
            direction = self.sample(seed + 4)
            assert_allclose(jacobian.apply(direction), dense @ direction, atol=1e-12)
            outside = np.setdiff1d(np.arange(self.n_features), jacobian.support)
            assert not dense[outside].any()
            moves = self.step * np.eye(self.n_features)
            neighbors = [self.point(v + move, amount, form) for move in (*moves, *-moves)]
            if any(np.abs(point.jacobian().dense() - dense).max() > 1e-3 for point in neighbors):
                continue  # a kink within the reach of the differences
            checked += 1
            points_above, points_below = np.split(np.array([point.point for point in neighbors]), 2)
            assert_allclose((points_above - points_below) / (2.0 * self.step), dense, atol=1e-7)
        assert checked == 5, "most points lie at a kink: little was checked"

    # Parameters.

    def test_parameters(self) -> None:
        """get_params and set_params have all parameters; copies, pickles and clones are equal."""
        norm: Any = self.norm
        twin = type(norm)(**norm.get_params(deep=False))
        assert twin.set_params(**norm.get_params()) is twin
        with pytest.raises(ValueError, match="no parameter 'nonsense'"):
            twin.set_params(nonsense=1)
        w = self.inside(self.sample(0))
        for other in (twin, copy.deepcopy(norm), pickle.loads(pickle.dumps(norm)), clone(norm)):
            assert other is not norm
            assert other == norm
            assert other.value(w) == norm.value(w)
        assert norm != object()
