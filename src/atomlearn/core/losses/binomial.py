"""The binomial loss, for shares of successes and counts of successes and failures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, xlog1py, xlogy

from atomlearn.core.interfaces import EPS, Array
from atomlearn.core.interfaces.targets import positive_target
from atomlearn.core.losses.domain import EDGE_TOLERANCE, per_unit_weight, weighted_sum
from atomlearn.core.losses.shift import Explained


@final
@dataclass(frozen=True)
class Binomial(Explained):
    """f(z) = sum_i s_i (log(1 + exp(z_i)) - y_i z_i), y_i in [0, 1], mean 1 / (1 + exp(-z_i)).

    Minus the log-likelihood of shares y_i of s_i trials, up to a constant. A target of two columns
    holds the numbers of successes and of failures. Then y_i is the share of successes, and sample
    weights are multiplied by the number of trials. The fit is the same as with ``Logistic`` and one
    row for each trial.

    Notes
    -----
    The gradient is u_i = s_i (p_i - y_i) for the probability p_i, so that a dual point has
    a_i = y_i + u_i / s_i in [0, 1]. There the conjugate is the negative entropy of a_i.

    References
    ----------
    P. McCullagh, J. A. Nelder. Generalized Linear Models. 2nd edition, Chapman and Hall, 1989;
    chapter 4.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> counts = np.array([[1, 9], [3, 7], [6, 4], [9, 1]])  # successes, failures
    >>> result = solve(X, counts, loss="binomial", alpha=1e-6, tol=1e-9)
    >>> result.coef.round(2), round(result.intercept, 2)
    (array([1.42]), -2.29)
    """

    name: ClassVar[str] = "binomial"
    dispersed: ClassVar[bool] = False
    curvature_bounds: ClassVar[tuple[float, float]] = 0.0, 0.25

    def check_target(self, y: object) -> Array:
        """Return the shares y as float64; raise ValueError unless all of them are in [0, 1]."""
        shares = positive_target(y, self.name, zero=True)
        if (shares > 1.0).any():
            first = int(np.argmax(shares > 1.0))
            raise ValueError(
                f"y must hold shares of successes in [0, 1] for the loss 'binomial'; received "
                f"{shares[first]:g} at index {first}. Pass counts as two columns, successes and "
                "failures"
            )
        return shares

    def one_target(self, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Return the shares of successes and their weights, each (n_samples,), from counts.

        y : two columns of counts, successes and failures. The weight of a row is its number of
        trials, times its ``sample_weight`` if given. A y of one column is returned unchanged.
        """
        if np.ndim(y) != 2 or np.shape(y)[1] == 1:
            return y, sample_weight
        counts = np.asarray(y, dtype=np.float64)
        if counts.shape[1] != 2 or not (np.isfinite(counts) & (counts >= 0)).all():
            raise ValueError(
                "y must hold two columns of numbers >= 0, successes and failures, for the loss "
                f"'binomial'; received an array of shape {counts.shape}"
            )
        trials = counts.sum(axis=1)
        shares = np.divide(counts[:, 0], trials, out=np.zeros(trials.size), where=trials > 0)
        return shares, trials if sample_weight is None else trials * np.asarray(sample_weight)

    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z) = sum_i s_i (y_i log(1 + exp(-z_i)) + (1 - y_i) log(1 + exp(z_i))).

        z = ``prediction``, y are the targets, and s = ``weight`` the sample weights. log(1 +
        exp(z)) is computed as max(z, 0) + log(1 + exp(-|z|)), which does not overflow.
        """
        tail = np.log1p(np.exp(-np.abs(prediction)))
        positive_part = np.maximum(prediction, 0.0)
        negative_part = np.maximum(-prediction, 0.0)
        return weighted_sum(weight, tail + y * negative_part + (1.0 - y) * positive_part)

    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the gradient s_i (p_i - y_i), (n_samples,), with p_i = 1 / (1 + exp(-z_i)).

        z = ``prediction``, y are the targets, and s = ``weight`` the sample weights.
        """
        # ``small`` is the smaller of p and 1 - p, which is accurate to all digits.
        is_positive = prediction > 0.0
        small = expit(-np.abs(prediction))
        return np.asarray(weight * np.where(is_positive, (1.0 - y) - small, small - y))

    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) = sum_i s_i (a_i log a_i + (1 - a_i) log(1 - a_i)), a_i = y_i + u_i / s_i.

        u = ``dual``, y are the targets, and s = ``weight`` the sample weights. The result is
        ``inf`` if some a_i is not in [0, 1].
        """
        slope = per_unit_weight(dual, weight)
        # None: u_i != 0 for a sample of weight 0.
        if slope is None:
            return float("inf")
        is_feasible = (slope >= -y - EDGE_TOLERANCE) & (slope <= 1.0 - y + EDGE_TOLERANCE)
        if not np.all(is_feasible):
            return float("inf")
        # a_i and 1 - a_i are computed apart, so that neither loses digits near 0.
        share = np.clip(y + slope, 0.0, 1.0)
        complement = np.clip((1.0 - y) - slope, 0.0, 1.0)
        return weighted_sum(weight, xlogy(share, share) + _log_of_rest(complement, share))

    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return f'' at z = ``prediction``, (n_samples,): s_i p_i (1 - p_i) with the shares p.

        p_i = 1 / (1 + exp(-z_i)). y are the targets, and s = ``weight`` the sample weights.
        """
        small = expit(-np.abs(prediction))
        return np.asarray(weight * small * (1.0 - small))

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the rounding error of the conjugate f*.

        The error comes from the rounding of a_i = y_i + u_i / s_i; the derivative of the entropy at
        a_i is z_i, the ``prediction``. u = ``dual``, y are the targets, and s = ``weight`` the
        sample weights.
        """
        # A few roundings of a_i.
        return 8.0 * EPS * float(weight @ (1.0 + np.abs(prediction)))

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the expected share of successes, 1 / (1 + exp(-z)), at z = ``prediction``."""
        probability: NDArray[Any] = expit(prediction)
        return probability

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return D^2 = 1 - deviance / deviance of the best constant share.

        Half of each deviance is the loss minus the loss of the saturated model, which predicts each
        y_i itself. If the constant share has no deviance, the score is 1 for predictions without a
        deviance, else 0. y : shares; prediction : z (n_samples,); weight : sample weights.
        """
        # f*(0) is minus the smallest loss, the loss of the saturated model.
        saturated = self.conjugate(y, np.zeros(y.size), weight)
        share = float(np.clip(weight @ y / weight.sum(), 0.0, 1.0))
        null = -float(weight.sum()) * float(xlogy(share, share) + xlog1py(1.0 - share, -share))
        deviance = self.value(y, prediction, weight) + saturated
        null_deviance = null + saturated
        if not null_deviance > 0.0:
            return 1.0 if deviance <= 0.0 else 0.0
        return 1.0 - deviance / null_deviance


def _log_of_rest(complement: Array, share: Array) -> Array:
    """Return (1 - a) log(1 - a) for shares a, computed from the more accurate of a and 1 - a.

    complement : 1 - a; share : a. Each has been computed without cancellation near 0.
    """
    return np.asarray(
        np.where(share < 0.5, xlog1py(complement, -share), xlogy(complement, complement))
    )
