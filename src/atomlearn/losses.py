"""Losses: smooth convex functions of the predictions, summed over weighted samples."""

from typing import TYPE_CHECKING

from atomlearn.core import losses as _losses
from atomlearn.core.losses import *  # noqa: F403
from atomlearn.core.losses.registry import BY_NAME as _BY_NAME
from atomlearn.survival.cox import Cox as Cox
from atomlearn.survival.target import survival_target as survival_target

# The names of the wings' losses, beside those of the core.
_BY_NAME["cox"] = Cox

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = [*_losses.__all__, "Cox", "survival_target"]
