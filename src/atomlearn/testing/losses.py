"""LossChecks: what every loss must do. Inherit, name the loss, and pytest runs the rest.

>>> class TestHuber(LossChecks):  # doctest: +SKIP
...     loss = Huber(1.5)
"""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Loss, Task
from atomlearn.core.losses.shift import optimal_shift
from atomlearn.testing import tolerances
from atomlearn.testing.cases import each
from atomlearn.testing.loss_oracles import targets_of


class LossChecks:
    """Set ``loss``; override ``targets`` where labels or standard normals do not fit."""

    loss: Loss
    n_samples = 200

    def targets(self, rng: np.random.Generator, n_samples: int) -> Array:
        """Return valid targets, made of standard normals: see ``loss_oracles.targets_of``."""
        return targets_of(self.loss, rng.standard_normal(n_samples))

    def sample(self, seed: int) -> tuple[Array, Array, Array]:
        """Return targets, predictions and weights (some of them zero) of one random problem."""
        rng = np.random.default_rng(seed)
        n = self.n_samples
        weight = rng.uniform(0.1, 3.0, size=n)
        weight[rng.random(n) < 0.1] = 0.0
        return self.targets(rng, n), 3.0 * rng.standard_normal(n), weight

    def per_sample(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the n_samples values s_i loss(y_i, z_i), one call each."""
        return np.array(
            [
                self.loss.value(y[i : i + 1], prediction[i : i + 1], weight[i : i + 1])
                for i in range(y.size)
            ]
        )

    def away_from_kinks(self, y: Array, prediction: Array, weight: Array) -> NDArray[np.bool_]:
        """Tell where the curvature does not jump within the reach of the finite differences."""
        reach = 2.0 * tolerances.FINITE_DIFFERENCE_STEP
        before = self.loss.curvature(y, prediction - reach, weight)
        after = self.loss.curvature(y, prediction + reach, weight)
        smooth = np.abs(after - before) <= 0.05 * (1.0 + np.maximum(before, after))
        if self.loss.smoothed(1.0) is not None:
            sides = [self.loss.gradient(y, prediction + j * reach, weight) for j in (-1, 1)]
            smooth &= sides[0] == sides[1]
        assert smooth.mean() > 0.5, "most samples lie at a kink: nothing was checked"
        return smooth

    # Derivatives.

    def test_declarations(self) -> None:
        """The class says its name, its kind and its smoothness."""
        assert isinstance(self.loss, Loss)
        assert isinstance(self.loss.name, str)
        assert self.loss.name
        assert self.loss.task in get_args(Task)
        assert self.loss.smoothness > 0

    def test_what_is_added_to_predictions_may_be_taken_off_targets_that_translate(self) -> None:
        y, z, s = self.sample(0)
        if self.loss.translates:
            moved = self.loss.value(y, z + 7.0, s)
            assert_allclose(moved, self.loss.value(y - 7.0, z, s), rtol=tolerances.SAME_FLOAT64)

    @each("seed", range(3))
    def test_gradient_is_the_derivative_of_value(self, seed: int) -> None:
        """Fourth-order central differences of ``value``."""
        y, prediction, weight = self.sample(seed)
        step = tolerances.FINITE_DIFFERENCE_STEP
        f = {j: self.per_sample(y, prediction + j * step, weight) for j in (-2, -1, 1, 2)}
        expected = (f[-2] - 8.0 * f[-1] + 8.0 * f[1] - f[2]) / (12.0 * step)
        smooth = self.away_from_kinks(y, prediction, weight)
        received = self.loss.gradient(y, prediction, weight)
        tolerance = tolerances.FINITE_DIFFERENCE
        assert_allclose(received[smooth], expected[smooth], rtol=tolerance, atol=tolerance)

    @each("seed", range(3))
    def test_curvature_is_the_derivative_of_gradient(self, seed: int) -> None:
        """Fourth-order central differences of ``gradient``."""
        y, prediction, weight = self.sample(seed)
        step = tolerances.FINITE_DIFFERENCE_STEP
        g = {j: self.loss.gradient(y, prediction + j * step, weight) for j in (-2, -1, 1, 2)}
        expected = (g[-2] - 8.0 * g[-1] + 8.0 * g[1] - g[2]) / (12.0 * step)
        smooth = self.away_from_kinks(y, prediction, weight)
        received = self.loss.curvature(y, prediction, weight)
        tolerance = tolerances.FINITE_DIFFERENCE
        assert_allclose(received[smooth], expected[smooth], rtol=tolerance, atol=tolerance)
        assert np.all(received >= 0.0)
        if np.isfinite(self.loss.smoothness):
            roundings = 1.0 + tolerances.SAME_FLOAT64
            assert np.all(received <= roundings * self.loss.smoothness * weight)

    @each("seed", range(3))
    def test_convex_and_smooth(self, seed: int) -> None:
        """f lies above its tangents, and the gradient is monotone and L-Lipschitz."""
        y, first, weight = self.sample(seed)
        second = self.sample(seed + 1000)[1]
        value_first, value_second = (self.per_sample(y, z, weight) for z in (first, second))
        gradient_first, gradient_second = (
            self.loss.gradient(y, z, weight) for z in (first, second)
        )
        move = second - first
        slack = tolerances.SAME_FLOAT64 * (1.0 + np.abs(value_first) + np.abs(value_second))
        assert np.all(value_second >= value_first + gradient_first * move - slack)
        change = gradient_second - gradient_first
        assert np.all(change * move >= -slack)
        if np.isfinite(self.loss.smoothness):
            assert np.all(np.abs(change) <= self.loss.smoothness * weight * np.abs(move) + slack)

    # Conjugate.

    @each("seed", range(3))
    def test_fenchel_young_equality(self, seed: int) -> None:
        """f(z) + f*(f'(z)) = <z, f'(z)>."""
        y, prediction, weight = self.sample(seed)
        dual = self.loss.gradient(y, prediction, weight)
        value = self.loss.value(y, prediction, weight)
        conjugate = self.loss.conjugate(y, dual, weight)
        scale = value + float(np.abs(prediction) @ np.abs(dual))
        assert abs(value + conjugate - prediction @ dual) <= tolerances.SAME_FLOAT64 * scale

    @each("seed", range(3))
    def test_fenchel_young_inequality(self, seed: int) -> None:
        """f(z) + f*(u) >= <z, u> for dual points between two gradients."""
        y, prediction, weight = self.sample(seed)
        rng = np.random.default_rng(seed)
        duals = [self.loss.gradient(y, self.sample(seed + i)[1], weight) for i in (1, 2)]
        for share in rng.random(20):
            dual = share * duals[0] + (1.0 - share) * duals[1]
            conjugate = self.loss.conjugate(y, dual, weight)
            assert np.isfinite(conjugate), "the domain of a conjugate is convex"
            value = self.loss.value(y, prediction, weight)
            slack = tolerances.SAME_FLOAT64 * (value + abs(conjugate))
            assert value + conjugate >= prediction @ dual - slack

    @each("seed", range(10))
    def test_conjugate_is_the_supremum(self, seed: int) -> None:
        """f*(u) against brute force over a grid of predictions, one sample at a time."""
        rng = np.random.default_rng(seed)
        y, weight = self.targets(rng, 1), rng.uniform(0.5, 2.0, size=1)
        dual = 2.0 * rng.standard_normal(1)
        conjugate = self.loss.conjugate(y, dual, weight)
        near, far = (self._supremum(y, dual, weight, radius) for radius in (40.0, 4000.0))
        if np.isfinite(conjugate):
            assert max(near, far) <= conjugate + tolerances.SAME_FLOAT64 * (1 + abs(conjugate))
            assert_allclose(near, conjugate, atol=tolerances.GRID_SUPREMUM * weight[0])
        else:
            assert far > near + 1.0, "the conjugate is infinite, yet the supremum is not"

    def _supremum(self, y: Array, dual: Array, weight: Array, radius: float) -> float:
        """Return the largest <u, z> - f(z) over a grid on [-radius, radius], refined six times.

        f is convex: the largest lies between the neighbors of the best point of each grid.
        """
        center = 0.0
        for _ in range(7):
            grid = center + np.linspace(-radius, radius, 161)
            many_y, many_weight = (np.repeat(part, grid.size) for part in (y, weight))
            gains = dual[0] * grid - self.per_sample(many_y, grid, many_weight)
            center, radius = float(grid[np.argmax(gains)]), radius / 40.0
        return float(gains.max())

    def test_conjugate_is_a_sum_over_samples(self) -> None:
        """One dual value outside of its domain, among others inside, makes it infinite."""
        y, prediction, _ = self.sample(4)
        y, weight = y[:6], np.linspace(0.5, 2.0, 6)
        inside = self.loss.gradient(y, prediction[:6], weight)
        for seed in range(20):
            dual, at = inside.copy(), seed % 6
            dual[at] += 5.0 * np.random.default_rng(seed).standard_normal()
            parts = [
                self.loss.conjugate(y[i : i + 1], dual[i : i + 1], weight[i : i + 1])
                for i in range(6)
            ]
            whole = self.loss.conjugate(y, dual, weight)
            assert_allclose(whole, sum(parts), rtol=1e-12, atol=1e-12)

    # Weights.

    def test_one_weight_for_all(self) -> None:
        """Weights that are one number stored once are that number for each sample."""
        for n in (1, 5):
            y, prediction = (part[:n] for part in self.sample(5)[:2])
            once, each = np.broadcast_to(2.0, (n,)), np.full(n, 2.0)
            dual = self.loss.gradient(y, prediction, each)
            assert_array_equal(self.loss.gradient(y, prediction, once), dual)
            same = tolerances.SAME_FLOAT64
            for method, point in ((self.loss.value, prediction), (self.loss.conjugate, dual)):
                assert_allclose(method(y, point, once), method(y, point, each), rtol=same)

    @each("spread", [1.0, 30.0])
    def test_no_constant_is_better_than_the_best_shift(self, spread: float) -> None:
        """f(z + b) is least: its slopes on both sides of b have opposite signs, or vanish."""
        if self.loss.smoothed(1.0) is not None:
            pytest.skip("a loss with kinks is solved by smooth ones")
        for seed in range(5):
            y, prediction, weight = self.sample(seed)
            linear = spread * prediction if np.isfinite(self.loss.smoothness) else prediction
            start = 40.0 if seed % 2 else 0.0
            b = optimal_shift(self.loss, y, weight, linear, start)
            step = 1e-6 * (1.0 + abs(b))
            ahead, behind = (
                float(self.loss.gradient(y, linear + b + move, weight).sum())
                for move in (step, -step)
            )
            size = float(np.abs(self.loss.gradient(y, linear + b, weight)).sum())
            assert behind <= 1e-9 * size
            assert ahead >= -1e-9 * size

    def test_weights_count_rows(self) -> None:
        """A weight of 3 is the row three times."""
        y, prediction, _ = self.sample(0)
        counts = np.random.default_rng(0).integers(0, 4, size=y.size)
        weight = counts.astype(np.float64)
        many_y, many_prediction = np.repeat(y, counts), np.repeat(prediction, counts)
        ones = np.ones(many_y.size)
        same = tolerances.SAME_FLOAT64
        assert_allclose(
            self.loss.value(y, prediction, weight),
            self.loss.value(many_y, many_prediction, ones),
            rtol=same,
        )
        gradient = self.loss.gradient(y, prediction, weight)
        many_gradient = self.loss.gradient(many_y, many_prediction, ones)
        rows = np.repeat(np.arange(y.size), counts)
        assert_allclose(gradient, np.bincount(rows, many_gradient, y.size), rtol=same, atol=same)
        assert_allclose(
            self.loss.conjugate(y, gradient, weight),
            self.loss.conjugate(many_y, many_gradient, ones),
            rtol=same,
        )
        many_curvature = self.loss.curvature(many_y, many_prediction, ones)
        assert_allclose(
            self.loss.curvature(y, prediction, weight),
            np.bincount(rows, many_curvature, y.size),
            rtol=same,
        )

    def test_zero_weights_leave_no_trace(self) -> None:
        """A sample of weight zero adds nothing, and admits only the dual value zero."""
        y, prediction, weight = self.sample(1)
        kept = weight > 0.0
        assert not kept.all()
        extreme = np.where(kept, prediction, 1e4)
        gradient = self.loss.gradient(y, extreme, weight)
        assert_array_equal(gradient[~kept], 0.0)
        assert_array_equal(self.loss.curvature(y, extreme, weight)[~kept], 0.0)
        same = tolerances.SAME_FLOAT64
        for method, point in ((self.loss.value, extreme), (self.loss.conjugate, gradient)):
            alone = method(y[kept], point[kept], weight[kept])
            assert_allclose(method(y, point, weight), alone, rtol=same)
        gradient[np.argmin(kept)] = 1e-300
        assert self.loss.conjugate(y, gradient, weight) == np.inf

    # Numbers.

    def test_extreme_margins(self) -> None:
        """No overflow, no lost sign and no negative value at predictions of +-1e4.

        Where the curvature has no bound, as far as the loss itself is below the largest float.
        """
        margins = np.array([0.0, *(s * m for m in (1.0, 30.0, 700.0, 800.0, 1e4) for s in (1, -1))])
        prediction = np.repeat(margins, 2)
        y = self.targets(np.random.default_rng(0), prediction.size)
        if self.loss.task == "classification":
            y = np.tile([-1.0, 1.0], prediction.size // 2)
        if not np.isfinite(self.loss.smoothness):
            # exp(700) is about the largest float.
            beyond = np.isinf(self.per_sample(y, prediction, np.ones(prediction.size)))
            assert np.all(np.abs(prediction[beyond]) > 700.0)
            y, prediction = y[~beyond], prediction[~beyond]
        weight = np.ones(prediction.size)
        with np.errstate(all="raise", under="ignore"):
            value = self.loss.value(y, prediction, weight)
            gradient = self.loss.gradient(y, prediction, weight)
            curvature = self.loss.curvature(y, prediction, weight)
            conjugate = self.loss.conjugate(y, gradient, weight)
        assert np.isfinite([value, conjugate]).all()
        assert np.isfinite(gradient).all()
        assert np.isfinite(curvature).all()
        assert np.all(self.per_sample(y, prediction, weight) >= 0.0)
        assert np.all(curvature >= 0.0)
        scale = value + float(np.abs(prediction) @ np.abs(gradient))
        assert abs(value + conjugate - prediction @ gradient) <= tolerances.SAME_FLOAT64 * scale
        for i in range(y.size):
            parts = y[i : i + 1], gradient[i : i + 1], weight[i : i + 1]
            young = self.loss.value(parts[0], prediction[i : i + 1], parts[2])
            young += self.loss.conjugate(*parts) - prediction[i] * gradient[i]
            bound = 1.0 + abs(prediction[i] * gradient[i])
            assert abs(young) <= tolerances.SAME_FLOAT64 * bound

    def test_value_is_not_negative(self) -> None:
        """The certificate relies on f >= 0."""
        for seed in range(20):
            y, prediction, weight = self.sample(seed)
            assert self.loss.value(y, 0.01 * prediction, weight) >= 0.0
            assert self.loss.value(y, 1e3 * prediction, weight) >= 0.0
            assert self.loss.value(y, prediction, np.zeros_like(weight)) == 0.0

    def test_inputs_are_left_alone(self) -> None:
        """Read-only inputs work, outputs are fresh float64 arrays of the same shape."""
        parts = self.sample(2)
        for part in parts:
            part.flags.writeable = False
        y, prediction, weight = parts
        gradient = self.loss.gradient(*parts)
        curvature = self.loss.curvature(*parts)
        for result in (gradient, curvature):
            assert result.shape == y.shape
            assert result.dtype == np.float64
            assert result.flags.writeable
            assert not any(np.shares_memory(result, part) for part in parts)
        gradient.flags.writeable = False
        assert isinstance(self.loss.value(y, prediction, weight), float)
        assert isinstance(self.loss.conjugate(y, gradient, weight), float)

    # Targets.

    def test_targets_are_checked(self) -> None:
        """Good targets come back as they are, bad ones meet a ValueError."""
        y = self.sample(3)[0]
        once = self.loss.check_target(y.tolist())
        assert once.dtype == np.float64
        assert_array_equal(once, y)
        assert_array_equal(self.loss.check_target(once), once)
        missing, infinite = y.copy(), y.copy()
        missing[3], infinite[3] = np.nan, np.inf
        bad: tuple[object, ...] = (
            missing, infinite, y[:, None], np.zeros(0), 1.0, None, ["a", "b"], 1j * y, {},
            np.ma.masked_array(y, mask=y == y[0]),
        )  # fmt: skip
        for target in bad:
            with pytest.raises(ValueError, match=r"^y "):
                self.loss.check_target(target)

    def test_labels_are_mapped(self) -> None:
        """{0, 1} and booleans become -1 and +1; other labels are named and refused."""
        if self.loss.task != "classification":
            pytest.skip("a loss of numbers")
        expected = np.array([-1.0, 1.0, 1.0, -1.0])
        for labels in ([0, 1, 1, 0], [False, True, True, False], [-1, 1, 1, -1], [0.0, 1, 1, 0]):
            assert_array_equal(self.loss.check_target(labels), expected)
        refused: tuple[tuple[list[object], str], ...] = (
            ([1, 2, 2], "2"),
            ([-1, 0, 1], "0"),
            (["no", "yes"], "'yes'"),
        )
        for other, named in refused:
            with pytest.raises(ValueError, match=rf"found .*{named}.*np.where"):
                self.loss.check_target(other)
