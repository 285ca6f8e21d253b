"""Losses: smooth convex functions of the predictions, summed over weighted samples."""

from __future__ import annotations

import difflib

from atomlearn.core.interfaces.loss import Loss
from atomlearn.core.losses.intercepts import FreeIntercepts
from atomlearn.core.losses.logistic import Logistic
from atomlearn.core.losses.multinomial import Multinomial
from atomlearn.core.losses.squared import Squared
from atomlearn.core.losses.squared_hinge import SquaredHinge

__all__ = ["FreeIntercepts", "Logistic", "Multinomial", "Squared", "SquaredHinge", "as_loss"]

#: A new loss is one class and one line here.
_LOSSES: tuple[type[Loss], ...] = (Squared, Logistic, SquaredHinge)
_BY_NAME = {loss.name: loss for loss in _LOSSES}


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the loss object itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str):
        if loss in _BY_NAME:
            return _BY_NAME[loss]()
        near = difflib.get_close_matches(loss, _BY_NAME, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"loss must be one of {sorted(_BY_NAME)}; received {loss!r}{hint}")
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise TypeError(f"loss is the class {loss.__name__}; pass an instance, {loss.__name__}()")
    raise TypeError(
        f"loss must be a name ({', '.join(sorted(_BY_NAME))}) or a Loss object; "
        f"received {type(loss).__name__}"
    )
