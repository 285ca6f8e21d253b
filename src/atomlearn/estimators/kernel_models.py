"""Multiple kernel learning: which of many kernels to use, and the sum of functions over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Array, Design, Form, Loss, Norm, Solver
from atomlearn.designs import KernelOn, Kernels
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import keep, whole
from atomlearn.estimators.classifier import LinearClassifier
from atomlearn.estimators.regressor import LinearRegressor
from atomlearn.estimators.targets import Checked
from atomlearn.paths import Settings


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


class _KernelModel(AtomicModel):
    """What the two estimators share: data become columns of kernels."""

    #: The columns of X are what kernels work on.
    features = "linear"
    kernels: Sequence[Any] | None
    rank: int
    n_features_in_: int
    maps_: Any
    coef_: NDArray[Any]
    kernel_norms_: Array
    kernel_weights_: Array

    def _fit(self, data: Checked, settings: Settings) -> None:
        design = self._kernels_of(data.design, data.weight)
        super()._fit(replace(data, design=design), settings)
        self._report_kernels(design)

    def _kernels_of(self, design: Design, weight: Array) -> Kernels:
        whole("rank", self.rank)
        X = _array(design)
        kernels = default_kernels(X, weight) if self.kernels is None else self.kernels
        found = Kernels(kernels, X, rank=self.rank, sample_weight=weight)
        self.maps_ = found.maps
        return found

    def _expanded(self, design: Design) -> Design:
        return Kernels.from_map(_array(design), self.maps_)

    def _report_kernels(self, design: Kernels) -> None:
        coefs = np.atleast_2d(self.coef_)
        everything = np.arange(coefs.shape[1])
        norms = np.stack([design.sizes_of(everything, coef) for coef in coefs])
        self.kernel_norms_ = norms.max(axis=0)
        total = float(self.kernel_norms_.sum())
        self.kernel_weights_ = self.kernel_norms_ / total if total > 0 else self.kernel_norms_


def _array(design: Design) -> Array:
    """Return all of X as a dense float64 array: kernels are functions of whole rows."""
    everything = np.arange(design.shape[1], dtype=np.int64)
    return np.asarray(design.gather(everything).dense(), dtype=np.float64)


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
    fit_intercept, class_weight, tol, max_iter, solver, verbose
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

    def __init__(
        self,
        kernels: Sequence[Any] | None = None,
        norm: str | Norm = "groups",
        alpha: float = 0.01,
        *,
        form: Form = "squared",
        radius: float = 1.0,
        loss: str | Loss = "logistic",
        rank: int = 100,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str | Solver = "auto",
        verbose: int = 0,
    ) -> None:
        keep(self, locals())


class MultipleKernelRegressor(_KernelModel, LinearRegressor):
    """min over f_m, b of  mean_i loss(y_i, sum_m f_m(x_i) + b) + (alpha / 2) (sum_m ||f_m||_m)^2.

    The regression twin of ``MultipleKernelClassifier``, with its parameters and attributes.

    Parameters
    ----------
    kernels, norm, alpha, form, radius, rank, fit_intercept, tol, max_iter, solver, verbose
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

    def __init__(
        self,
        kernels: Sequence[Any] | None = None,
        norm: str | Norm = "groups",
        alpha: float = 0.01,
        *,
        form: Form = "squared",
        radius: float = 1.0,
        loss: str | Loss = "squared",
        rank: int = 100,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str | Solver = "auto",
        verbose: int = 0,
    ) -> None:
        keep(self, locals())
