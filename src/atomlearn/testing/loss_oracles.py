"""What tests know of each loss from elsewhere: its formula for CVXPY, and targets that suit it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces.loss import Loss

Array = NDArray[np.float64]


def _as_labels(numbers: Array) -> Array:
    """Return the signs: of standard normals about as many of both."""
    return np.where(numbers > 0.0, 1.0, -1.0)


@dataclass(frozen=True, slots=True)
class LossOracle:
    """A loss as others write it.

    expression(cp, y, z, s) : sum_i s_i loss(y_i, z_i) as a convex CVXPY expression of z, for the
    module ``cp`` and constants y and s; targets(numbers) : valid targets, made of any numbers.
    """

    expression: Callable[[Any, Array, Any, Array], Any]
    targets: Callable[[Array], Array]


#: One line a loss, by its name. Suites over losses run for those that stand here.
LOSS_ORACLES: dict[str, LossOracle] = {
    "squared": LossOracle(
        lambda cp, y, z, s: 0.5 * cp.sum_squares(cp.multiply(np.sqrt(s), z - y)),
        lambda numbers: numbers,
    ),
    "logistic": LossOracle(
        lambda cp, y, z, s: s @ cp.logistic(-cp.multiply(y, z)),
        _as_labels,
    ),
    "squared_hinge": LossOracle(
        lambda cp, y, z, s: (
            0.5 * cp.sum_squares(cp.multiply(np.sqrt(s), cp.pos(1 - cp.multiply(y, z))))
        ),
        _as_labels,
    ),
}


def oracle_of(loss: Loss) -> LossOracle:
    """Return what is known of a loss, or raise: a wrong optimum would be compared with nothing."""
    found = _known(loss)
    if found is None:
        raise ValueError(
            f"no independent optimum for the loss {loss!r}; add its CVXPY expression to "
            "testing/loss_oracles.py"
        )
    return found


def targets_of(loss: Loss, numbers: Array) -> Array:
    """Return valid targets for a loss, made of any numbers; labels are their signs."""
    found = _known(loss)
    if found is not None:
        return found.targets(numbers)
    return _as_labels(numbers) if loss.is_classification else numbers


def _known(loss: Loss) -> LossOracle | None:
    """Return the entry of a loss; losses made of another one carry its name, but not as a class."""
    return LOSS_ORACLES.get(getattr(type(loss), "name", ""))
