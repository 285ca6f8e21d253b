"""LossChecks: what every loss must do. Inherit, name the loss, and pytest runs the rest.

>>> class TestHuber(LossChecks):  # doctest: +SKIP
...     loss = Huber(1.5)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.core import Array, Loss, Task
from atomlearn.testing import tolerances
from atomlearn.testing.cases import each
from atomlearn.testing.loss_oracles import targets_of
from atomlearn.testing.tolerances import SAME_FLOAT64


class LossChecks:
    """Tests that every loss must pass. Set ``loss``, and override ``targets`` if necessary."""

    loss: Loss
    n_samples = 200

    def targets(self, rng: np.random.Generator, n_samples: int) -> Array:
        """Return valid targets (n_samples,) drawn from ``rng``; see ``loss_oracles.targets_of``."""
        return targets_of(self.loss, rng.standard_normal(n_samples))

    def sample(self, seed: int) -> tuple[Array, Array, Array]:
        """Return random targets, predictions and weights (n_samples,) for this ``seed``.

        About a tenth of the weights are zero.
        """
        rng = np.random.default_rng(seed)
        n = self.n_samples
        weight = rng.uniform(0.1, 3.0, size=n)
        weight[rng.random(n) < 0.1] = 0.0
        return self.targets(rng, n), 3.0 * rng.standard_normal(n), weight

    def per_sample(self, method: Callable[..., float], y: Array, point: Array) -> Array:
        """Return ``value`` or ``conjugate`` of each single sample with weight 1, (n_samples,).

        ``method`` is one of these two methods of the loss, y are the targets, and ``point`` are the
        predictions or dual values.
        """
        ones = np.ones(1)
        return np.array([method(y[i : i + 1], point[i : i + 1], ones) for i in range(y.size)])

    def values(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the n_samples values s_i loss(y_i, z_i), each by a call for one sample.

        y are targets, ``prediction`` is z, ``weight`` is s.
        """
        return weight * self.per_sample(self.loss.value, y, prediction)

    # Derivatives.

    def test_declarations(self) -> None:
        """The class has a name, a task, and bounds of its curvature."""
        assert isinstance(self.loss, Loss)
        assert isinstance(self.loss.name, str)
        assert self.loss.name
        assert self.loss.task in get_args(Task)
        least, largest = self.loss.curvature_bounds
        assert 0 <= least <= largest
        assert largest > 0

    def test_what_is_added_to_predictions_may_be_taken_off_targets_that_translate(self) -> None:
        """loss(y, z + c) = loss(y - c, z) for losses that declare ``translates``."""
        y, z, s = self.sample(0)
        if self.loss.translates:
            moved = self.loss.value(y, z + 7.0, s)
            assert_allclose(moved, self.loss.value(y - 7.0, z, s), rtol=SAME_FLOAT64)

    @each("seed", range(3))
    def test_gradient_and_curvature_are_derivatives(self, seed: int) -> None:
        """Gradient and curvature agree with fourth-order central differences at smooth points."""
        y, prediction, weight = self.sample(seed)
        loss = self.loss
        step = tolerances.FINITE_DIFFERENCE_STEP
        # Samples whose curvature hardly changes within reach of the differences.
        curvature_before, curvature_after = (
            loss.curvature(y, prediction + j * step, weight) for j in (-2, 2)
        )
        is_smooth = np.abs(curvature_after - curvature_before) <= 0.05 * (
            1.0 + np.maximum(curvature_before, curvature_after)
        )
        # A loss with kinks has jumps of the slope as well.
        if loss.smoothed(1.0) is not None:
            sides = [loss.gradient(y, prediction + 2 * j * step, weight) for j in (-1, 1)]
            is_smooth &= sides[0] == sides[1]
        assert is_smooth.mean() > 0.5, "most samples lie at a kink: nothing was checked"
        for function, derivative in ((self.values, loss.gradient), (loss.gradient, loss.curvature)):
            nearby = [function(y, prediction + j * step, weight) for j in (-2, -1, 1, 2)]
            # The derivative to fourth order, from values at -2, -1, 1 and 2 steps.
            expected = (nearby[0] - 8.0 * nearby[1] + 8.0 * nearby[2] - nearby[3]) / (12.0 * step)
            received = derivative(y, prediction, weight)
            tolerance = tolerances.FINITE_DIFFERENCE
            assert_allclose(
                received[is_smooth], expected[is_smooth], rtol=tolerance, atol=tolerance
            )

    @each("seed", range(3))
    def test_convex_and_smooth(self, seed: int) -> None:
        """Gradients are monotone and Lipschitz, and curvatures are within their bounds.

        The Fenchel-Young equality holds, too.
        """
        y, first, weight = self.sample(seed)
        second = self.sample(seed + 1000)[1]
        ones = np.ones_like(y)
        self.assert_equality_of_fenchel_young(y, first, self.loss.gradient(y, first, ones))
        # Compare the gradients at two points.
        curvature = self.loss.curvature(y, first, weight)
        move = second - first
        ends = [self.loss.gradient(y, z, weight) for z in (first, second)]
        change = ends[1] - ends[0]
        slack = SAME_FLOAT64 * (1.0 + np.abs(ends[0]) + np.abs(ends[1]))
        assert np.all(change * np.sign(move) >= -slack)
        least, largest = self.loss.curvature_bounds
        assert np.all(curvature >= (1.0 - SAME_FLOAT64) * least * weight)
        if np.isfinite(largest):
            lipschitz = largest * weight
            assert np.all(np.abs(change) <= lipschitz * np.abs(move) + slack)
            assert np.all(curvature <= (1.0 + SAME_FLOAT64) * lipschitz)

    # Conjugate.

    def assert_equality_of_fenchel_young(self, y: Array, prediction: Array, dual: Array) -> None:
        """Assert the Fenchel-Young equality f(z) + f*(f'(z)) = <z, f'(z)> for each sample.

        y are targets, ``prediction`` is z, and ``dual`` is f'(z) for weights 1.
        """
        value, conjugate = (
            self.per_sample(method, y, point)
            for method, point in ((self.loss.value, prediction), (self.loss.conjugate, dual))
        )
        assert np.all(value >= 0.0), "the certificate relies on f >= 0"
        inner = prediction * dual
        bound = SAME_FLOAT64 * (1.0 + value + np.abs(inner))
        wrong = ~(np.abs(value + conjugate - inner) <= bound)
        assert not wrong.any(), f"f(z) + f*(f'(z)) != <z, f'(z)> at z = {prediction[wrong]}"

    @each("seed", range(20))
    def test_conjugate_is_the_supremum(self, seed: int) -> None:
        """f*(u) agrees with the supremum of <u, z> - f(z) over a grid, for single samples.

        If f*(u) is infinite, the supremum must grow with the grid.
        """
        rng = np.random.default_rng(seed)
        y = self.targets(rng, 1)
        weight = rng.uniform(0.5, 2.0, size=1)
        dual = 2.0 * rng.standard_normal(1)
        conjugate = self.loss.conjugate(y, dual, weight)
        # The supremum over a short and over a long interval.
        near, far = (self._supremum(y, dual, weight, radius) for radius in (40.0, 4000.0))
        if np.isfinite(conjugate):
            assert max(near, far) <= conjugate + SAME_FLOAT64 * (1 + abs(conjugate))
            assert_allclose(near, conjugate, atol=tolerances.GRID_SUPREMUM * weight[0])
        else:
            assert far > near + 1.0, "the conjugate is infinite, yet the supremum is not"

    def _supremum(self, y: Array, dual: Array, weight: Array, radius: float) -> float:
        """Return the largest <u, z> - f(z) over a grid on [-radius, radius], refined nine times.

        f is the loss of one sample with target ``y`` and weight ``weight``, and u is ``dual``, (1,)
        each. As f is convex, the largest value is between the neighbors of the best point of each
        grid.
        """
        center = 0.0
        for _ in range(10):
            grid = center + np.linspace(-radius, radius, 41)
            gains = dual[0] * grid - self.values(np.repeat(y, grid.size), grid, weight)
            center = float(grid[np.argmax(gains)])
            radius = radius / 10.0
        return float(gains.max())

    # Weights.

    def test_sums_over_samples(self) -> None:
        """f and f* are sums over samples, and derivatives are multiplied by weights.

        f(z) = sum s_i l_i(z_i), f*(u) = sum s_i l_i*(u_i / s_i), where l_i is the loss of sample i.
        """
        y, prediction, weight = self.sample(1)
        # A sample of weight zero adds nothing.
        prediction[weight == 0.0] = 1e4
        loss = self.loss
        is_weighted = weight > 0.0
        assert not is_weighted.all()
        gradient = loss.gradient(y, prediction, weight)
        assert_array_equal(gradient[~is_weighted], 0.0)
        assert_array_equal(loss.curvature(y, prediction, weight)[~is_weighted], 0.0)
        for derivative in (loss.gradient, loss.curvature):
            expected = weight * derivative(y, prediction, np.ones_like(y))
            received = derivative(y, prediction, weight)
            assert_allclose(received[is_weighted], expected[is_weighted], rtol=SAME_FLOAT64)
        # Value and conjugate are sums over the samples of positive weight.
        scale = np.where(is_weighted, weight, 1.0)
        for method, point, single_point in (
            (loss.value, prediction, prediction),
            (loss.conjugate, gradient, gradient / scale),
        ):
            terms = weight[is_weighted] * self.per_sample(
                method, y[is_weighted], single_point[is_weighted]
            )
            rounding = SAME_FLOAT64 * np.abs(terms).sum()
            assert_allclose(method(y, point, weight), terms.sum(), rtol=0, atol=rounding)

    def test_one_value_outside_of_the_domain_makes_a_conjugate_infinite(self) -> None:
        """A conjugate is infinite if one dual value is outside, or not 0 at a weight of 0."""
        y, prediction, _ = (part[:6] for part in self.sample(4))
        weight = np.linspace(0.5, 2.0, 6)
        gradient = self.loss.gradient(y, prediction, weight)
        for seed in range(20):
            dual = gradient.copy()
            position = seed % 6
            dual[position] += 5.0 * np.random.default_rng(seed).standard_normal()
            # The sum is finite if and only if the term of this sample is.
            conjugate_there = self.loss.conjugate(
                y[[position]], dual[[position]], weight[[position]]
            )
            assert np.isfinite(self.loss.conjugate(y, dual, weight)) == np.isfinite(conjugate_there)
        weight[2] = 0.0
        gradient[2] = 1e-300
        assert self.loss.conjugate(y, gradient, weight) == np.inf

    # Numbers.

    def test_extreme_margins(self) -> None:
        """Predictions of +-1e4 cause no overflow, no lost sign and no negative value.

        For a loss of unbounded curvature this holds as long as the loss is below the largest float.
        """
        margins = np.array([0.0, *(s * m for m in (1.0, 30.0, 700.0, 800.0, 1e4) for s in (1, -1))])
        prediction = np.repeat(margins, 2)
        y = self.targets(np.random.default_rng(0), prediction.size)
        if self.loss.task == "classification":
            y = np.tile([-1.0, 1.0], prediction.size // 2)
        weight = np.ones(prediction.size)
        if not np.isfinite(self.loss.curvature_bounds[1]):
            # exp(700) is about the largest float.
            is_infinite = np.isinf(self.values(y, prediction, weight))
            assert np.all(np.abs(prediction[is_infinite]) > 700.0)
            y, prediction, weight = (part[~is_infinite] for part in (y, prediction, weight))
        with np.errstate(all="raise", under="ignore"):
            gradient = self.loss.gradient(y, prediction, weight)
            curvature = self.loss.curvature(y, prediction, weight)
            self.assert_equality_of_fenchel_young(y, prediction, gradient)
        assert np.isfinite(gradient).all()
        assert np.isfinite(curvature).all()
        assert np.all(curvature >= 0.0)

    def test_inputs_are_left_alone(self) -> None:
        """Read-only inputs and a single weight for all samples work; outputs are new arrays."""
        y, prediction, weight = self.sample(2)
        for weights in (weight, np.broadcast_to(2.0, y.shape)):
            parts = (y, prediction, weights)
            for part in parts:
                part.flags.writeable = False
            weight_copies = np.array(weights)
            # Derivatives are new arrays, which the caller may change.
            for derivative in (self.loss.gradient, self.loss.curvature):
                result = derivative(*parts)
                assert_allclose(result, derivative(y, prediction, weight_copies), rtol=SAME_FLOAT64)
                assert result.shape == y.shape
                assert result.dtype == np.float64
                assert result.flags.writeable
                assert not any(np.shares_memory(result, part) for part in parts)
            dual = self.loss.gradient(*parts)
            dual.flags.writeable = False
            for method, point in ((self.loss.value, prediction), (self.loss.conjugate, dual)):
                value = method(y, point, weights)
                assert isinstance(value, float)
                assert_allclose(value, method(y, point, weight_copies), rtol=SAME_FLOAT64)

    # Targets.

    def test_targets_are_checked(self) -> None:
        """Valid targets are returned unchanged, and invalid ones raise ValueError."""
        y = self.sample(3)[0]
        once = self.loss.check_target(y.tolist())
        assert once.dtype == np.float64
        assert_array_equal(once, y)
        assert_array_equal(self.loss.check_target(once), once)
        missing = y.copy()
        infinite = y.copy()
        missing[3] = np.nan
        infinite[3] = np.inf
        bad: list[Any] = [missing, infinite, y[:, None], np.zeros(0), 1.0, None, ["a", "b"], 1j * y]
        for target in (*bad, {}, np.ma.masked_array(y, mask=y == y[0])):
            with pytest.raises(ValueError, match=r"^y "):
                self.loss.check_target(target)

    def test_labels_are_mapped(self) -> None:
        """{0, 1} and booleans become -1 and +1; other labels raise an error that names them."""
        if self.loss.task != "classification":
            pytest.skip("a loss of numbers")
        expected = np.array([-1.0, 1.0, 1.0, -1.0])
        for labels in ([0, 1, 1, 0], [False, True, True, False], [-1, 1, 1, -1], [0.0, 1, 1, 0]):
            assert_array_equal(self.loss.check_target(labels), expected)
        refused: dict[str, Any] = {"2": [1, 2, 2], "0": [-1, 0, 1], "'yes'": ["no", "yes"]}
        for label, other in refused.items():
            with pytest.raises(ValueError, match=rf"found .*{label}.*np.where"):
                self.loss.check_target(other)
