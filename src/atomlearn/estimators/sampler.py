"""AdditiveKernelSampler: the columns of ``designs.Additive`` as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from atomlearn.designs import Additive
from atomlearn.estimators.checks import checked_design, keep
from atomlearn.maps.curves import Kernel


class AdditiveKernelSampler(TransformerMixin, BaseEstimator):
    """Columns phi(x) with phi(x)'phi(y) = sum_j k(x_j, y_j): histogram intersection and others.

    The intersection kernel sum_j min(x_j, y_j), the additive Gaussian and chi-squared kernels, any
    kernel of one variable, and B-splines, for pipelines with linear models. Columns are measured
    from their value at the origin, where they are 0. The models of this package need no such
    columns: give them ``features="intersection"``.

    Parameters
    ----------
    kernel : {"intersection", "gaussian", "chi2", "splines"} or callable, default="intersection"
    n_bins : int, optional
        Values of an input are rounded to so many levels where it has more; default 100 for
        "intersection", else 255.
    binning : {"quantile", "uniform"}, default="quantile"
    n_components : int, default=11
        Columns of an input for gaussian, chi2 and callables.
    length_scale : float, default=1.0
        Of the gaussian kernel, in standard deviations of each input.
    n_knots, degree : int, default=8 and 3
        Of the splines.
    normalize : bool, default=False
        Whether the variances of the columns of each input add up to 1.

    Attributes
    ----------
    map_ : AdditiveMap
        Levels and columns of every input.
    n_features_in_, feature_names_in_

    References
    ----------
    S. Maji, A. C. Berg, J. Malik. Efficient classification for additive kernel SVMs. IEEE
    Transactions on Pattern Analysis and Machine Intelligence 35 (2013) 66-77.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AdditiveKernelSampler
    >>> X = np.array([[0.0, 3.0], [1.0, 0.0], [2.0, 4.0]])
    >>> Z = AdditiveKernelSampler().fit_transform(X)
    >>> (Z @ Z.T).round(6)
    array([[3., 0., 3.],
           [0., 1., 1.],
           [3., 1., 6.]])
    """

    def __init__(
        self,
        kernel: str | Kernel = "intersection",
        n_bins: int | None = None,
        *,
        binning: str = "quantile",
        n_components: int = 11,
        length_scale: float = 1.0,
        n_knots: int = 8,
        degree: int = 3,
        normalize: bool = False,
    ) -> None:
        keep(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = bool(self.kernel == "chi2")
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> AdditiveKernelSampler:
        """Find the levels of each column of X (n_samples, n_features); y is not used."""
        design = checked_design(self, X, reset=True)
        parameters = self.get_params(deep=False)
        kernel, n_bins = parameters.pop("kernel"), parameters.pop("n_bins")
        self.map_ = Additive(design, kernel, n_bins, **parameters).map
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns, (n_samples, n_columns), in the dtype of X; sparse where X is."""
        check_is_fitted(self)
        design = checked_design(self, X, reset=False)
        return Additive.from_map(design, self.map_).expanded()

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return names such as ``age>=41``, or ``age[3]`` for smooth columns."""
        check_is_fitted(self)
        names = [str(name) for name in _check_feature_names_in(self, input_features)]
        design = Additive.from_map(np.zeros((1, len(names))), self.map_)
        found = design.feature_names(np.arange(design.shape[1]), names)
        return np.array(found, dtype=object)
