"""Losses that are quadratic near the target and linear beyond: their slopes are clipped."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.losses.domain import slopes_within, weighted_sum
from atomlearn.core.losses.shift import Explained


class ClippedSlopes(Explained):
    """f(z) = sum_i s_i max over a in [low, high] of a (z_i - y_i) - width/2 a^2.

    It is quadratic in the residual z_i - y_i near 0 and linear beyond. The property
    ``slopes`` of a subclass gives low < 0, high > 0 and the width.
    """

    translates: ClassVar[bool] = True

    @property
    @abstractmethod
    def slopes(self) -> tuple[float, float, float]:
        """(low, high, width): the smallest and the largest slope a, and the width."""

    def _slope(self, y: Array, prediction: Array) -> Array:
        """Return the maximizing slopes a_i = clip((z_i - y_i) / width, low, high), (n_samples,).

        y : targets; z = ``prediction``.
        """
        low, high, width = self.slopes
        slope = prediction - y
        slope /= width
        return np.clip(slope, low, high, out=slope)

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z) = sum_i s_i (a_i (z_i - y_i) - width/2 a_i^2) at the maximizing slopes a.

        z = ``prediction``, y are the targets, and s = ``weight`` the sample weights.
        """
        slope = self._slope(y, prediction)
        residual = prediction - y
        residual -= (0.5 * self.slopes[2]) * slope
        slope *= residual
        return weighted_sum(weight, slope)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient s_i a_i, (n_samples,), a_i = clip((z_i - y_i) / width, low, high).

        z = ``prediction``, y are the targets, and s = ``weight`` the sample weights.
        """
        slope = self._slope(y, prediction)
        slope *= weight
        return slope

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) = sum_i u_i y_i + width/2 u_i^2 / s_i, for u = ``dual``.

        It is ``inf`` if some u_i / s_i is not in [low, high]. y are the targets, and s = ``weight``
        the sample weights.
        """
        low, high, width = self.slopes
        slope = slopes_within(low, high, dual, weight)
        return float("inf") if slope is None else float(dual @ (y + 0.5 * width * slope))

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f'' at z = ``prediction``, (n_samples,): s_i / width if the slope is not clipped.

        It is 0 where the slope is clipped, and the larger value at the kinks of f'. y are the
        targets, and s = ``weight`` the sample weights.
        """
        low, high, width = self.slopes
        fraction = (prediction - y) / width
        return np.where((fraction >= low) & (fraction <= high), weight / width, 0.0)
