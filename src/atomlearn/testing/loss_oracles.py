"""Independent reference formulas of each loss, as CVXPY expressions, and valid targets for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import xlogy

from atomlearn.core import Array, Loss


def _as_labels(numbers: Array) -> Array:
    """Return labels -1 and +1, about equally many, as the signs of standard normal numbers."""
    return np.where(numbers > 0.0, 1.0, -1.0)


@dataclass(frozen=True, slots=True)
class LossOracle:
    """An independent reference implementation of a loss.

    Attributes
    ----------
    expression : callable
        expression(cp, y, z, s, loss) returns sum_i s_i loss(y_i, z_i) as a convex CVXPY expression
        of z, for the module ``cp``, constants y and s, and the loss with its parameters (which
        ``oracle_of`` fills in).
    targets : callable
        targets(numbers) returns valid targets, made of any numbers.
    """

    expression: Callable[..., Any]
    targets: Callable[[Array], Array]


def _as_counts(numbers: Array) -> Array:
    """Return whole numbers >= 0, many of them 0, that increase with ``numbers``."""
    return np.floor(np.exp(np.clip(numbers, -5.0, 5.0)))


def _as_amounts(numbers: Array) -> Array:
    """Return positive targets: the exponentials of ``numbers``, which are clipped to [-5, 5]."""
    return np.exp(np.clip(numbers, -5.0, 5.0))


def _as_claims(numbers: Array) -> Array:
    """Return 0 for ``numbers`` <= 0, else their exponentials."""
    return np.where(numbers > 0.0, np.exp(np.clip(numbers, -5.0, 5.0)), 0.0)


def _as_shares(numbers: Array) -> Array:
    """Return shares of ten trials, some of them 0 or 1, that increase with ``numbers``."""
    return np.round(5.0 + 5.0 * np.tanh(2.0 * numbers)) / 10.0


def _tweedie(cp: Any, y: Array, z: Any, s: Array, loss: Any) -> Any:
    """Return the CVXPY expression of the Tweedie loss with power p; see ``LossOracle``.

    For one sample it is exp(A z) / A + y exp(-B z) / B - y^A / (A B), with A = 2 - p and B = p - 1.
    """
    A = 2.0 - loss.power
    B = loss.power - 1.0
    terms = cp.exp(A * z) / A + cp.multiply(y / B, cp.exp(-B * z))
    return s @ terms - float(s @ y**A) / (A * B)


def _negative_binomial(cp: Any, y: Array, z: Any, s: Array, loss: Any) -> Any:
    """Return the CVXPY expression of the negative binomial loss with theta; see ``LossOracle``.

    For one sample it is y log(1 + exp(-x)) + theta log(1 + exp(x)) with x = z - log(theta), minus
    its minimum over z.
    """
    theta = loss.theta
    x = z - np.log(loss.theta)
    terms = cp.multiply(y, cp.logistic(-x)) + theta * cp.logistic(x)
    least = xlogy(y, y + theta) - xlogy(y, y) + theta * np.log1p(y / theta)
    return s @ terms - float(s @ least)


#: One line for each loss, by its name. Suites over losses run for those in this table.
LOSS_ORACLES: dict[str, LossOracle] = {
    "squared": LossOracle(
        lambda cp, y, z, s, loss: 0.5 * cp.sum_squares(cp.multiply(np.sqrt(s), z - y)),
        lambda numbers: numbers,
    ),
    "logistic": LossOracle(
        lambda cp, y, z, s, loss: s @ cp.logistic(-cp.multiply(y, z)), _as_labels
    ),
    "binomial": LossOracle(
        lambda cp, y, z, s, loss: s @ (cp.logistic(z) - cp.multiply(y, z)), _as_shares
    ),
    "squared_hinge": LossOracle(
        lambda cp, y, z, s, loss: (
            0.5 * cp.sum_squares(cp.multiply(np.sqrt(s), cp.pos(1 - cp.multiply(y, z))))
        ),
        _as_labels,
    ),
    "poisson": LossOracle(
        lambda cp, y, z, s, loss: s @ (cp.exp(z) - cp.multiply(y, z) + xlogy(y, y) - y), _as_counts
    ),
    "gamma": LossOracle(
        lambda cp, y, z, s, loss: s @ (cp.multiply(y, cp.exp(-z)) + z - 1.0 - np.log(y)),
        _as_amounts,
    ),
    "tweedie": LossOracle(_tweedie, _as_claims),
    "negative_binomial": LossOracle(_negative_binomial, _as_counts),
    "huber": LossOracle(
        lambda cp, y, z, s, loss: 0.5 * s @ cp.huber(z - y, loss.delta), lambda numbers: numbers
    ),
    "quantile": LossOracle(
        lambda cp, y, z, s, loss: s @ cp.maximum(loss.q * (y - z), (1 - loss.q) * (z - y)),
        lambda numbers: numbers,
    ),
}


def oracle_of(loss: Loss) -> LossOracle:
    """Return the oracle of ``loss``, with its parameters filled in; ValueError if there is none."""
    oracle = _oracle(loss)
    if oracle is None:
        raise ValueError(
            f"no independent optimum for the loss {loss!r}; add its CVXPY expression to "
            "testing/loss_oracles.py"
        )
    return LossOracle(partial(oracle.expression, loss=loss), oracle.targets)


def targets_of(loss: Loss, numbers: Array) -> Array:
    """Return valid targets for a loss, made of any ``numbers``; labels are their signs.

    For a loss without an oracle they are labels or the numbers, depending on its task.
    """
    oracle = _oracle(loss)
    if oracle is not None:
        return oracle.targets(numbers)
    return _as_labels(numbers) if loss.task == "classification" else numbers


def _oracle(loss: Loss) -> LossOracle | None:
    """Return the oracle of ``loss`` by the name of its class, or None.

    A loss that wraps another one has no oracle. Its class has no name; only the object has one.
    """
    return LOSS_ORACLES.get(getattr(type(loss), "name", ""))
