"""Multiple kernel learning: a sum of functions of several kernels, with few kernels."""

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


def default_kernels(X: Array, weight: Array) -> list[KernelOn]:
    """Return a linear kernel, and Gaussian kernels on all columns and on each single column.

    X : (n, p). Widths are in standard deviations, the root mean square distances from the mean,
    under ``weight`` (n,), which adds up to 1.
    """
    kernels = [KernelOn("linear")]
    # exp(-gamma ||x - z||^2) of three widths, on all columns and on each that is not constant.
    variances = weight @ (X - weight @ X) ** 2
    for columns in (None, *((j,) for j in range(X.shape[1]))):
        variance = float(variances.sum() if columns is None else variances[columns[0]])
        if variance > 0:
            kernels += [
                KernelOn("rbf", columns, (("gamma", 0.5 / (width**2 * variance)),))
                for width in (0.5, 1.0, 2.0)
            ]
    return kernels


@dataclass(eq=False, repr=False)
class _KernelModel(AtomicModel):
    """Base class of the two estimators; the columns of the design are made from kernels.

    The parameters are documented in ``MultipleKernelClassifier``.
    """

    kernels: Sequence[Any] | None = None
    norm: str | Norm = "groups"
    alpha: float = 0.01
    _: KW_ONLY
    form: Form = "squared"
    radius: float = 1.0
    rank: int = 100
    #: Kernels are functions of the columns of X.
    features: str = field(default="linear", init=False)
    unpenalized: Any = field(default=None, init=False)
    standardize: bool = field(default=False, init=False)

    def _columns(self, inputs: Design, weight: Array) -> Kernels:
        """Return the design of the kernels, and set ``maps_``.

        ``inputs`` are the columns of X and ``weight`` the sample weights.
        """
        whole("rank", self.rank)
        X = _array(inputs)
        kernels = default_kernels(X, weight) if self.kernels is None else self.kernels
        design = Kernels(kernels, X, rank=self.rank, sample_weight=weight)
        self.maps_ = design.maps
        return design

    def _expanded(self, design: Design) -> Design:
        """Return the design of the kernels at new rows."""
        return Kernels.from_map(_array(design), self.maps_)

    def _set_coefficients(self, data: Checked, coef: Any, intercept: Any) -> None:
        """Set the coefficients, and the RKHS norm and relative weight of each kernel.

        coef, intercept : in the shapes of the fitted attributes. ``data`` is the checked data.
        """
        super()._set_coefficients(data, coef, intercept)
        design: Any = data.design
        all_columns = np.arange(design.shape[1])
        norms = np.stack([design.sizes_of(all_columns, row) for row in np.atleast_2d(coef)])
        self.kernel_norms_ = norms.max(axis=0)
        self.kernel_weights_ = self.kernel_norms_ / (float(self.kernel_norms_.sum()) or 1.0)


def _array(design: Design) -> Array:
    """Return the columns of ``design`` as a dense array: kernels are functions of whole rows."""
    all_columns = np.arange(design.shape[1], dtype=np.int64)
    return dense_part(design, all_columns)


@dataclass(eq=False, repr=False)
class MultipleKernelClassifier(_KernelModel, LinearClassifier):
    """min over f_m, b of  mean_i loss(y_i, sum_m f_m(x_i) + b) + (alpha / 2) (sum_m ||f_m||_m)^2.

    f_m is in the space of kernel m. The penalty selects kernels: its dual is SimpleMKL's. Other
    norms over the kernels: ``norms.KSupport(k, "kernels")``; ``"l2"`` uses all kernels with equal
    weights.

    Parameters
    ----------
    norm : str or Norm, default="groups"
        "groups" is ``norms.Groups("kernels")``: it selects kernels. ``norms.KSupport(k,
        "kernels")`` is another such norm; "l2" uses all kernels.
    kernels : list of functions K(A, B) or ``designs.KernelOn``, default=None
        None: Gaussian kernels of three widths on all columns and on each single column, and a
        linear one. ``designs.kernel_grid`` makes larger collections. For precomputed matrices fit
        ``AtomicClassifier`` or ``AtomicRegressor`` to ``designs.Kernels(matrices)``.
    alpha : float, default=0.01
        Strength of the penalty; the loss is a mean over samples.
    l1_ratio : float, default=1.0
        Share of the norm in the penalty, from 0 to 1. The rest is the squared l2 norm: alpha *
        (l1_ratio * penalty(w) + (1 - l1_ratio) / 2 * ||w||^2). With ``norm="l1"`` it is the
        l1_ratio of scikit-learn's ElasticNet. 0 leaves only the squared l2 norm. The constrained
        form needs 1.
    form : {"squared", "penalized", "constrained"}, default="squared"
        How the gauge (the value of the norm) enters: half its square, itself, or as a constraint.
    radius : float, default=1.0
        Bound on the gauge if ``form="constrained"``; alpha has no effect then.
    loss : {"logistic", "squared_hinge"} or Loss, default="logistic"
        A loss for classification. "squared_hinge" is max(0, 1 - y z)^2 / 2.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights of each class; "balanced" gives all classes the same total
        weight. The loss is the mean under these weights: ``C`` of scikit-learn is 1 / (alpha * sum
        of weights).
    rank : int, default=100
        Maximum number of columns that approximate a kernel (``designs.Kernels``).
    relax : float, default=0.0
        Share of a refit without penalty over the selected kernels: ``coef_`` is (1 - relax) times
        the penalized fit plus relax times the refit.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    encode : bool, default=True
        Whether a data frame with words, categories, dates or gaps is encoded as numbers. A category
        becomes a 0/1 column for each label but the first, such as "stage=4". A date becomes the
        number of days since the first date. Gaps are filled with the median, or the most frequent
        label, of the training rows. False: such tables are refused.
    tol : float, default=1e-6
        Relative duality gap to prove.
    max_iter : int, default=1000
        Maximum number of steps of the solver.
    solver : str or Solver, default="auto"
        "auto" is column generation over subspaces or over atoms, as the norm allows. Others:
        "column_generation", "atom_generation", "fista", "kfcfw", "frank_wolfe".
    verbose : int, default=0
        If above 0, print one line for each step.
    observers : sequence of callables, default=None
        ``observer(progress)`` is called after each step.
    stop : StoppingRule, default=None
        A rule that ends the fit in addition to ``tol`` and ``max_iter``, such as
        ``solvers.stopping.Passes(20)``.
    time_limit : float, default=None
        Seconds after which the whole fit ends with the best point so far.

    Attributes
    ----------
    kernel_norms_ : (n_kernels,) ndarray
        Norms ||f_m|| of the functions; for more than two classes the largest.
    kernel_weights_ : (n_kernels,) ndarray
        The norms divided by their sum: the kernel weights of SimpleMKL, zero for unused kernels.
    maps_ : KernelMaps
        The columns of each kernel.
    classes_ : (n_classes,) ndarray
        The labels, sorted.
    coef_ : ndarray, float64
        Coefficients over the columns of all kernels.
    intercept_ : (1,) or (n_classes,) ndarray
        Intercepts.
    objective_ : float
        Mean loss plus penalty of the final fit, summed over one-against-rest problems.
    gap_ : float
        Proved bound on the distance of ``objective_`` to the optimum.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    n_passes_ : float
        Passes over the data.
    n_iter_ : int
        Number of points whose gap was computed, the starting point included.
    history_ : list of Record
        One record for each of these points.
    results_ : list of Result
        One for each output.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it has any.
    encoding_ : TableEncoding
        How a data frame with words, dates or gaps was encoded; absent for numbers.

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

    The regressor that corresponds to ``MultipleKernelClassifier``.

    Parameters
    ----------
    norm : str or Norm, default="groups"
        "groups" is ``norms.Groups("kernels")``: it selects kernels. ``norms.KSupport(k,
        "kernels")`` is another such norm; "l2" uses all kernels.
    kernels : list of functions K(A, B) or ``designs.KernelOn``, default=None
        None: Gaussian kernels of three widths on all columns and on each single column, and a
        linear one. ``designs.kernel_grid`` makes larger collections. For precomputed matrices fit
        ``AtomicClassifier`` or ``AtomicRegressor`` to ``designs.Kernels(matrices)``.
    alpha : float, default=0.01
        Strength of the penalty; the loss is a mean over samples.
    l1_ratio : float, default=1.0
        Share of the norm in the penalty, from 0 to 1. The rest is the squared l2 norm: alpha *
        (l1_ratio * penalty(w) + (1 - l1_ratio) / 2 * ||w||^2). With ``norm="l1"`` it is the
        l1_ratio of scikit-learn's ElasticNet. 0 leaves only the squared l2 norm. The constrained
        form needs 1.
    form : {"squared", "penalized", "constrained"}, default="squared"
        How the gauge (the value of the norm) enters: half its square, itself, or as a constraint.
    radius : float, default=1.0
        Bound on the gauge if ``form="constrained"``; alpha has no effect then.
    loss : str or Loss, default="squared"
        A loss for regression. "squared" is (y - z)^2 / 2. "poisson", "negative_binomial" (counts),
        "gamma" and "tweedie" (amounts) have ``predict`` = exp(X w + b). Others: "huber",
        "quantile", or an object such as ``losses.Quantile(0.9)``.
    rank : int, default=100
        Maximum number of columns that approximate a kernel (``designs.Kernels``).
    relax : float, default=0.0
        Share of a refit without penalty over the selected kernels: ``coef_`` is (1 - relax) times
        the penalized fit plus relax times the refit.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    encode : bool, default=True
        Whether a data frame with words, categories, dates or gaps is encoded as numbers. A category
        becomes a 0/1 column for each label but the first, such as "stage=4". A date becomes the
        number of days since the first date. Gaps are filled with the median, or the most frequent
        label, of the training rows. False: such tables are refused.
    tol : float, default=1e-6
        Relative duality gap to prove.
    max_iter : int, default=1000
        Maximum number of steps of the solver.
    solver : str or Solver, default="auto"
        "auto" is column generation over subspaces or over atoms, as the norm allows. Others:
        "column_generation", "atom_generation", "fista", "kfcfw", "frank_wolfe".
    verbose : int, default=0
        If above 0, print one line for each step.
    observers : sequence of callables, default=None
        ``observer(progress)`` is called after each step.
    stop : StoppingRule, default=None
        A rule that ends the fit in addition to ``tol`` and ``max_iter``, such as
        ``solvers.stopping.Passes(20)``.
    time_limit : float, default=None
        Seconds after which the whole fit ends with the best point so far.

    Attributes
    ----------
    kernel_norms_ : (n_kernels,) ndarray
        Norms ||f_m|| of the functions; for more than two classes the largest.
    kernel_weights_ : (n_kernels,) ndarray
        The norms divided by their sum: the kernel weights of SimpleMKL, zero for unused kernels.
    maps_ : KernelMaps
        The columns of each kernel.
    coef_ : ndarray, float64
        Coefficients over the columns of all kernels.
    intercept_ : float
        The intercept.
    objective_ : float
        Mean loss plus penalty of the final fit.
    gap_ : float
        Proved bound on the distance of ``objective_`` to the optimum.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    n_passes_ : float
        Passes over the data.
    n_iter_ : int
        Number of points whose gap was computed, the starting point included.
    history_ : list of Record
        One record for each of these points.
    results_ : list of Result
        One for each output.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of str
        Names of the columns of X, if it has any.
    encoding_ : TableEncoding
        How a data frame with words, dates or gaps was encoded; absent for numbers.

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
