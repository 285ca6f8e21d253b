"""Losses: smooth convex functions of the predictions, summed over weighted samples."""

from atomlearn.core.losses.binomial import Binomial
from atomlearn.core.losses.huber import Huber
from atomlearn.core.losses.logistic import Logistic
from atomlearn.core.losses.multinomial import Multinomial
from atomlearn.core.losses.negative_binomial import NegativeBinomial
from atomlearn.core.losses.poisson import Poisson
from atomlearn.core.losses.quantile import Quantile
from atomlearn.core.losses.registry import as_loss
from atomlearn.core.losses.squared import Squared
from atomlearn.core.losses.squared_hinge import SquaredHinge
from atomlearn.core.losses.tweedie import Gamma, Tweedie
from atomlearn.survival.cox import Cox
from atomlearn.survival.target import survival_target

__all__ = [
    "Binomial",
    "Cox",
    "Gamma",
    "Huber",
    "Logistic",
    "Multinomial",
    "NegativeBinomial",
    "Poisson",
    "Quantile",
    "Squared",
    "SquaredHinge",
    "Tweedie",
    "as_loss",
    "survival_target",
]
