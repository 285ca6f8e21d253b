"""Losses: smooth convex functions of the predictions, summed over weighted samples."""

from typing import TYPE_CHECKING

from atomlearn.core import losses as _losses
from atomlearn.core.losses import *  # noqa: F403

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = _losses.__all__
