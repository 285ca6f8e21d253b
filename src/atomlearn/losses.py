"""Losses: smooth convex functions of the predictions, summed over weighted samples."""

from atomlearn.core.losses import (
    FreeIntercepts,
    Logistic,
    Multinomial,
    Squared,
    SquaredHinge,
    as_loss,
)

__all__ = [
    "FreeIntercepts",
    "Logistic",
    "Multinomial",
    "Squared",
    "SquaredHinge",
    "as_loss",
]
