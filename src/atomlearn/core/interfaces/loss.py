"""Loss: f(z) = sum_i s_i loss(y_i, z_i), a smooth convex function of the predictions z."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import Array, OwnMethods
from atomlearn.core.interfaces.targets import binary_target, regression_target

#: The kind of target of a loss: numbers, labels, or possibly censored times.
Task = Literal["regression", "classification", "survival"]


class Loss(OwnMethods, ABC):
    """f(z) = sum_i s_i loss(y_i, z_i) for targets y, predictions z and sample weights s >= 0.

    All arrays are float64 of shape (n_samples,). Every method is O(n_samples), allocates no more
    than a few such arrays, and neither overflows nor loses its sign at predictions of +-1e4. Only a
    loss without a bound on its second derivative may return ``inf`` for values beyond the largest
    float, without a warning. A loss is bounded below by zero, ``value >= 0``: the certificate
    relies on this. No method stores anything. The arguments of all methods are

    - ``y``: the targets y;
    - ``prediction``: the predictions z;
    - ``weight``: the sample weights s;
    - ``dual``: dual values u, such as derivatives of f.

    A loss must have four methods, which solvers need: ``value``, ``gradient``, ``conjugate`` and
    ``curvature``. The defaults of all others suit a regression with the identity link:
    ``check_target`` checks y, and ``mean`` and ``score`` interpret predictions.
    """

    #: Name of the loss in errors and in ``loss=``, for example ``"logistic"``.
    name: ClassVar[str]
    #: Kind of targets; the targets of ``"classification"`` are the two labels -1 and +1.
    task: ClassVar[Task] = "regression"
    #: Bounds of loss'' for a unit sample weight; equal for a quadratic loss.
    curvature_bounds: ClassVar[tuple[float, float]] = 0.0, math.inf
    #: True if loss(y, z + c) = loss(y - c, z), so that an offset can be subtracted from y.
    translates: ClassVar[bool] = False
    #: True if the deviance depends on an unknown dispersion (a variance).
    dispersed: ClassVar[bool] = True

    #: Number of successive samples whose predictions the loss couples; 0: all of them. The loss
    #: is a sum over such groups of samples, and may be computed piece by piece.
    coupled: ClassVar[int] = 1

    # --- methods that solvers need ----------------------------------------------------------

    def check_target(self, y: object) -> Array:
        """Return the targets ``y`` as float64; raise ValueError with a remedy for invalid ones.

        The default accepts any finite numbers; for a classification, the labels -1 and +1, to which
        it maps {0, 1} and booleans.
        """
        return binary_target(y) if self.task == "classification" else regression_target(y)

    def one_target(self, y: Any, sample_weight: Any) -> tuple[Any, Any]:
        """Return one target and one weight for each sample.

        By default ``y`` and ``sample_weight`` themselves. A loss of counts makes them of two
        columns of successes and failures.
        """
        return y, sample_weight

    @abstractmethod
    def value(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return f(z) = sum_i s_i loss(y_i, z_i), for z = ``prediction`` and s = ``weight``."""

    @abstractmethod
    def gradient(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return the derivatives s_i loss'(y_i, z_i) with respect to z_i, (n_samples,).

        z = ``prediction`` and s = ``weight``.
        """

    @abstractmethod
    def conjugate(self, y: Array, dual: Array, weight: Array) -> float:
        """Return f*(u) = sup_z <u, z> - f(z) at u = ``dual``, ``inf`` outside its domain.

        The domain is where the supremum is finite. If s_i = 0, u_i must be 0 there; s = ``weight``.
        """

    def conjugate_along(
        self, y: Array, prediction: Array, dual: Array, weight: Array, factor: float
    ) -> float:
        """Return f*(factor u) of u = f'(z) and 0 <= factor <= 1, or a bound on it from above.

        z = ``prediction``, u = ``dual``, s = ``weight``, and ``y`` are the targets.
        """
        return self.conjugate(y, factor * dual, weight)

    @abstractmethod
    def curvature(self, y: Array, prediction: Array, weight: Array) -> Array:
        """Return s_i loss''(y_i, z_i) >= 0, (n_samples,), for z = ``prediction``, s = ``weight``.

        At a kink it is the larger of the two one-sided values. Losses that couple predictions
        return a diagonal that bounds their Hessian from above.
        """

    def slack(self, y: Array, prediction: Array, dual: Array, weight: Array) -> float:
        """Return a bound on the rounding error of f(z) + f*(u) - <u, z> from terms that cancel.

        Callers add the error of sums of the terms that do not cancel. z = ``prediction``, u =
        ``dual`` and s = ``weight``. The default suits functions of z - y, in which <u, y> cancels,
        and losses of labels, in which nothing does.
        """
        return rounded(dual, y, weight) if self.task == "regression" else 0.0

    def coupling(self, y: Array, prediction: Array, weight: Array) -> tuple[Array, Any]:
        """Return c (n_samples,) and K, sparse (n_samples, k): the Hessian is diag(c) - K K'.

        The Hessian is that of f at z = ``prediction``, for targets ``y`` and s = ``weight``. K has
        no columns if the loss couples no predictions.
        """
        curvature = self.curvature(y, prediction, weight)
        return curvature, np.zeros((curvature.size, 0))

    def smoothed(self, width: float) -> Loss | None:
        """Return a smooth approximation of a loss with kinks (``Quantile``); None without kinks.

        For a sample weight of 1 it is the maximum over slopes a of a z - loss*(a) - width/2 a^2,
        with loss* the conjugate. A loss with kinks must have slopes of at most 1 in magnitude, and
        loss(y, z + c) = loss(y - c, z).
        """
        return None

    def along(
        self, y: Array, prediction: Array, weight: Array, basis: Array
    ) -> tuple[Array, Array | None] | None:
        """Return argmin_c f(z + Q c), Q = ``basis``, and a dual point u there with Q'u = 0.

        z = ``prediction`` and s = ``weight``; Q is (n_samples, r). None if no formula or program
        finds them; u is None if c is only near the minimum.
        """
        return None

    def best_shift(self, y: Array, linear: Array, weight: Array, start: float) -> float:
        """Return a b near argmin_b f(linear + b) by a formula; ``start`` if there is none.

        ``linear`` are predictions without the intercept b, and s = ``weight``.
        """
        return start

    # --- the meaning of predictions ---------------------------------------------------------

    def mean(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return the expected target at the predictions: the inverse link, in their dtype.

        For labels it is the probability of +1, if the loss has one. ``prediction`` may have any
        shape.
        """
        return prediction

    def log_probabilities(self, prediction: NDArray[Any]) -> NDArray[Any]:
        """Return log P(-1) and log P(+1), (n_samples, 2), for a loss that is a likelihood.

        ``prediction`` is (n_samples,).
        """
        raise AttributeError(f"the loss {self.name!r} has no probabilities")

    def score(self, y: Array, prediction: Array, weight: Array) -> float:
        """Return the score of held-out predictions, 1 at best.

        For labels, the share of correct ones; for numbers, R^2 of ``mean(prediction)``. Samples
        count by their ``weight``.
        """
        if self.task == "classification":
            return float(weight @ ((prediction > 0) == (y > 0)) / weight.sum())
        return explained(y, self.mean(prediction), weight)


def has_link(loss: Loss) -> bool:
    """Return whether the mean of ``loss`` is a function of the prediction, such as exp."""
    return type(loss).mean is not Loss.mean


def is_quadratic(loss: Loss) -> bool:
    """Return whether ``loss`` has a constant second derivative: one Newton step is exact."""
    least, largest = loss.curvature_bounds
    return least == largest


def has_probabilities(loss: Loss) -> bool:
    """Return whether ``loss`` gives probabilities of the labels, by ``log_probabilities``."""
    return type(loss).log_probabilities is not Loss.log_probabilities


def rounded(dual: Array, other: Array, weight: Array) -> float:
    """Return a bound on the rounding error of <dual, other> over samples of positive ``weight``."""
    eps = float(np.finfo(np.float64).eps)
    weighted = other if weight.all() else np.where(weight > 0.0, other, 0.0)
    norms = math.sqrt(dual.dot(dual)) * math.sqrt(weighted.dot(weighted))
    # The rounding errors of n terms add up to about sqrt(n) of the error of one term.
    return eps * (4.0 + math.sqrt(dual.size)) * norms


def explained(y: Array, fitted: Array, weight: Array) -> float:
    """Return R^2 = 1 - sum_i s_i (y_i - fitted_i)^2 / sum_i s_i (y_i - mean y)^2.

    s = ``weight``. If y is constant: 1 if it equals ``fitted``, else 0.
    """
    total = float(weight @ (y - weight @ y / weight.sum()) ** 2)
    residual = float(weight @ (y - fitted) ** 2)
    if total == 0.0:
        return 1.0 if residual == 0.0 else 0.0
    return 1.0 - residual / total
