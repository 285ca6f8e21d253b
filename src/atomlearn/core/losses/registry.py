"""Losses by name: the meaning of ``loss="logistic"``."""

from __future__ import annotations

from atomlearn.core.catalogue import LOSSES, loaded
from atomlearn.core.interfaces import Loss, Task, instead

#: Names of losses in other packages, and the names here.
OTHERS = (
    dict.fromkeys(("logloss", "log", "bernoulli", "crossentropy", "deviance"), "loss='logistic'")
    | dict.fromkeys(("mse", "squarederror", "leastsquares", "gaussian", "l2"), "loss='squared'")
    | dict.fromkeys(("mae", "absoluteerror", "l1", "pinball"), "losses.Quantile(0.5)")
    | dict.fromkeys(
        ("multinomial", "softmax", "categorical"),
        "loss='logistic' of AtomicClassifier(multi_class='multinomial')",
    )
    | {"hinge": "loss='squared_hinge'", "coxph": "AtomicSurvival"}
)


def loss_names(task: Task | None = None) -> tuple[str, ...]:
    """Return the names of losses in alphabetical order.

    task : "regression", "classification" or "survival", the kind of the losses; None: all losses.
    """
    return tuple(name for name in sorted(LOSSES) if task in (None, LOSSES[name][1]))


def as_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name such as "logistic", or the loss object itself.

    Raises ValueError or TypeError if ``loss`` is neither; the message names the known losses.
    """
    if isinstance(loss, Loss):
        return loss
    if isinstance(loss, str) and loss in LOSSES:
        # A class that needs parameters cannot be made from its name only.
        kind: type[Loss] = loaded(LOSSES[loss][0])
        try:
            return kind()
        except TypeError as error:
            raise TypeError(f"loss={loss!r}: {error}; pass {kind.__name__}(...)") from error
    # Nothing fits: say why, with the names of losses in other packages as hints.
    names = list(loss_names())
    if isinstance(loss, str):
        hint = instead(loss, names, OTHERS)
        raise ValueError(f"loss must be one of {names}; received {loss!r}{hint}")
    if isinstance(loss, type) and issubclass(loss, Loss):
        raise TypeError(f"loss is the class {loss.__name__}; pass an instance, {loss.__name__}()")
    raise TypeError(
        f"loss must be a name ({', '.join(names)}) or a Loss object; received {type(loss).__name__}"
    )
