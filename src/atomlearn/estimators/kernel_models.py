"""Multiple kernel learning: which of many kernels to use, and the sum of functions over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from atomlearn.core import Array, Design, Form, Norm, dense_part
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import whole
from atomlearn.estimators.classifier import LinearClassifier
from atomlearn.estimators.regressor import LinearRegressor
from atomlearn.estimators.targets import Checked
from atomlearn.maps.kernels import KernelOn, Kernels


def default_kernels(
    X: Array, weight: Array, widths: Sequence[float] = (0.5, 1.0, 2.0)
) -> list[KernelOn]:
    """Return Gaussian kernels of these widths on all columns and on each one, and a linear one.

    Widths are in standard deviations under ``weight``, which sums to 1: root mean square distances
    from the mean.
    """
    found = [KernelOn("linear")]
    variances = weight @ (X - weight @ X) ** 2
    for columns in (None, *((j,) for j in range(X.shape[1]))):
        variance = float(variances.sum() if columns is None else variances[columns[0]])
        if variance > 0:
            found += [
                KernelOn("rbf", columns, (("gamma", 0.5 / (width**2 * variance)),))
                for width in widths
            ]
    return found


@dataclass(eq=False, repr=False)
class _KernelModel(AtomicModel):
    """What the two estimators share: data become columns of kernels."""

    kernels: Sequence[Any] | None = None
    norm: str | Norm = "groups"
    alpha: float = 0.01
    _: KW_ONLY
    form: Form = "squared"
    radius: float = 1.0
    rank: int = 100
    #: The columns of X are what kernels work on.
    features: str = field(default="linear", init=False)
    unpenalized: Any = field(default=None, init=False)
    standardize: bool = field(default=False, init=False)

    def _columns(self, inputs: Design, weight: Array) -> Kernels:
        whole("rank", self.rank)
        X = _array(inputs)
        kernels = default_kernels(X, weight) if self.kernels is None else self.kernels
        found = Kernels(kernels, X, rank=self.rank, sample_weight=weight)
        self.maps_ = found.maps
        return found

    def _expanded(self, design: Design) -> Design:
        return Kernels.from_map(_array(design), self.maps_)

    def _take_coefficients(self, data: Checked, coef: Any, intercept: Any) -> None:
        super()._take_coefficients(data, coef, intercept)
        design: Any = data.design
        everything = np.arange(design.shape[1])
        norms = np.stack([design.sizes_of(everything, row) for row in np.atleast_2d(coef)])
        self.kernel_norms_ = norms.max(axis=0)
        self.kernel_weights_ = self.kernel_norms_ / (float(self.kernel_norms_.sum()) or 1.0)


def _array(design: Design) -> Array:
    """Return all of X as a dense float64 array: kernels are functions of whole rows."""
    everything = np.arange(design.shape[1], dtype=np.int64)
    return dense_part(design, everything)


@dataclass(eq=False, repr=False)
class MultipleKernelClassifier(_KernelModel, LinearClassifier):
    """min over f_m, b of  mean_i loss(y_i, sum_m f_m(x_i) + b) + (alpha / 2) (sum_m ||f_m||_m)^2.

    f_m lies in the space of kernel m. The penalty selects kernels: its dual is SimpleMKL's. Other
    norms over the kernels: ``norms.KSupport(k, "kernels")``; ``"l2"`` uses all kernels with equal
    weights.

    Parameters
    ----------
    kernels : list of functions K(A, B) or ``designs.KernelOn``, optional
        Default: Gaussian kernels of three widths on all columns and on each column alone, and a
        linear one. ``designs.kernel_grid`` makes larger collections. Precomputed matrices: fit
        ``AtomicClassifier`` to ``designs.Kernels(matrices)``.
    norm : str or Norm, default="groups"
        "groups" is ``norms.Groups("kernels")``.
    alpha : float, default=0.01
        Weight of the penalty.
    form : {"squared", "penalized", "constrained"}, default="squared"
    radius : float, default=1.0
        Bound on the norm where ``form="constrained"``.
    loss : str or Loss, default="logistic"
        Or "squared_hinge".
    rank : int, default=100
        Columns of a kernel at most, see ``designs.Kernels``.
    fit_intercept, class_weight, relax, tol, max_iter, solver, verbose, observers, stop,
    time_limit
        As in ``AtomicClassifier``.

    Attributes
    ----------
    kernel_norms_ : (n_kernels,) ndarray
        ||f_m||, of more than two classes the largest.
    kernel_weights_ : (n_kernels,) ndarray
        The same with sum 1: the kernel weights of SimpleMKL. Zero: not used.
    maps_ : KernelMaps
        The columns of each kernel.
    classes_, coef_, intercept_, objective_, gap_, status_, n_passes_, n_iter_, history_, results_
        As of ``AtomicClassifier``; ``coef_`` over the columns of all kernels.
    n_features_in_, feature_names_in_

    References
    ----------
    A. Rakotomamonjy, F. Bach, S. Canu, Y. Grandvalet, "SimpleMKL", JMLR 9 (2008); [T] section 5.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from atomlearn import MultipleKernelClassifier
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = MultipleKernelClassifier(rank=20).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.9)
    True
    """


@dataclass(eq=False, repr=False)
class MultipleKernelRegressor(_KernelModel, LinearRegressor):
    """min over f_m, b of  mean_i loss(y_i, sum_m f_m(x_i) + b) + (alpha / 2) (sum_m ||f_m||_m)^2.

    The regression twin of ``MultipleKernelClassifier``, with its parameters and attributes.

    Parameters
    ----------
    kernels, norm, alpha, form, radius, rank, fit_intercept, relax, tol, max_iter, solver,
    verbose, observers, stop, time_limit
        As in ``MultipleKernelClassifier``.
    loss : str or Loss, default="squared"

    Attributes
    ----------
    kernel_norms_, kernel_weights_, maps_
        As of ``MultipleKernelClassifier``.
    coef_, intercept_, objective_, gap_, status_, n_passes_, n_iter_, history_, results_
        As of ``AtomicRegressor``; ``coef_`` over the columns of all kernels.
    n_features_in_, feature_names_in_

    References
    ----------
    A. Rakotomamonjy, F. Bach, S. Canu, Y. Grandvalet, "SimpleMKL", JMLR 9 (2008); [T] section 5.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import MultipleKernelRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = MultipleKernelRegressor(rank=20).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.4)
    True
    """
