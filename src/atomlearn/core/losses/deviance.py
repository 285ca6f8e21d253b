"""Deviance: what a fit leaves, and the share of it that a fit explains."""

from __future__ import annotations

import numpy as np

from atomlearn.core.interfaces import Array, Loss
from atomlearn.core.losses.shift import optimal_shift


def deviance_explained(loss: Loss, y: Array, prediction: Array, weight: Array) -> float:
    """Return D^2 = 1 - loss / loss of the best constant prediction.

    Where no constant leaves anything to explain: 1 if nothing is missed, else 0.
    """
    missed = loss.value(y, prediction, weight)
    flat = np.zeros(y.size)
    around = loss.value(y, flat + optimal_shift(loss, y, weight, flat), weight)
    if not around > 0.0:
        return 1.0 if missed == 0.0 else 0.0
    return 1.0 - missed / around


class Explained(Loss):
    """A loss whose fits are scored by D^2, the share of the deviance that they explain."""

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return D^2, the share of the loss of the best constant that is explained."""
        return deviance_explained(self, y, prediction, weight)
