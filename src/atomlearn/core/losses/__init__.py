"""Losses: smooth convex functions of the predictions, summed over weighted samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atomlearn.core.losses import registry
from atomlearn.core.losses.around import Offset as Offset
from atomlearn.core.losses.free_columns import FreeColumns as FreeColumns
from atomlearn.core.losses.multinomial import Multinomial as Multinomial
from atomlearn.core.losses.registry import *  # noqa: F403
from atomlearn.core.losses.registry import as_loss as as_loss
from atomlearn.core.losses.registry import loss_names as loss_names

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = [
        "FreeColumns",
        "Multinomial",
        "Offset",
        *registry.__all__,
        "as_loss",
        "loss_names",
    ]
