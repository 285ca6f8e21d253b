"""Losses by name: what ``loss="logistic"`` means.

A new loss is one file next to this one, and one line below: the import of its class. From here its
name goes to ``solve``, the estimators, the command line and the test suites.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atomlearn.core.interfaces import Loss, Task, instead
from atomlearn.core.losses.huber import Huber as Huber
from atomlearn.core.losses.logistic import Logistic as Logistic
from atomlearn.core.losses.negative_binomial import NegativeBinomial as NegativeBinomial
from atomlearn.core.losses.poisson import Poisson as Poisson
from atomlearn.core.losses.quantile import Quantile as Quantile
from atomlearn.core.losses.squared import Squared as Squared
from atomlearn.core.losses.squared_hinge import SquaredHinge as SquaredHinge
from atomlearn.core.losses.tweedie import Gamma as Gamma
from atomlearn.core.losses.tweedie import Tweedie as Tweedie

#: Losses by their names. Wings add theirs where they are opened.
BY_NAME: dict[str, type[Loss]] = {
    kind.name: kind
    for kind in list(globals().values())
    if isinstance(kind, type) and issubclass(kind, Loss) and kind is not Loss
}

#: Names of losses in other packages, and their names here.
OTHERS = (
    dict.fromkeys(("logloss", "log", "binomial", "crossentropy", "deviance"), "loss='logistic'")
    | dict.fromkeys(("mse", "squarederror", "leastsquares", "gaussian", "l2"), "loss='squared'")
    | dict.fromkeys(("mae", "absoluteerror", "l1", "pinball"), "losses.Quantile(0.5)")
    | dict.fromkeys(
        ("multinomial", "softmax", "categorical"),
        "loss='logistic' of AtomicClassifier(multi_class='multinomial')",
    )
    | {"hinge": "loss='squared_hinge'", "coxph": "AtomicSurvival"}
)

if not TYPE_CHECKING:  # type checkers read the imports
    __all__ = [kind.__name__ for kind in BY_NAME.values()]


def loss_names(task: Task | None = None) -> tuple[str, ...]:
    """Return the names that ``loss=`` may have, in alphabetical order; those of one task."""
    return tuple(name for name in sorted(BY_NAME) if task in (None, BY_NAME[name].task))


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss of that name, or the loss object itself."""
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in BY_NAME:
        return BY_NAME[loss]()
    known = list(loss_names())
    if isinstance(loss, str):
        hint = instead(loss, known, OTHERS)
        raise ValueError(f"loss must be one of {known}; received {loss!r}{hint}")
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise TypeError(f"loss is the class {loss.__name__}; pass an instance, {loss.__name__}()")
    raise TypeError(
        f"loss must be a name ({', '.join(known)}) or a Loss object; received {type(loss).__name__}"
    )
