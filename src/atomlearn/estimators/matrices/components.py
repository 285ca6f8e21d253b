"""SparseLowRank, robust principal components; SparsePCA, sparse ones: both certified."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from atomlearn.core import (
    L1,
    Form,
    Problem,
    Regularizer,
    Scaled,
    Squared,
    Status,
    positive,
)
from atomlearn.estimators.checks import amount_of, whole
from atomlearn.estimators.matrices.matrix_models import MatrixTransformer, double
from atomlearn.lifting.union import Union
from atomlearn.matrices.designs.identity import Identity
from atomlearn.matrices.norms.sparse import SparsePSD
from atomlearn.matrices.norms.spectral import TraceNorm
from atomlearn.matrices.robust import robust_coordinates


@dataclass(eq=False, repr=False)
class SparseLowRank(MatrixTransformer):
    """min over L, S of  1/2 ||X - L - S||_F^2 + alpha (||L||_* + ratio ||S||_1): robust PCA.

    L is of low rank (the background), S sparse (gross errors, what moves). X is not centered.

    Parameters
    ----------
    alpha : float, default=None
        Weight of both parts against the sum of squares. None: a hundredth of the least alpha that
        makes both zero. Where the noise has standard deviation sigma, sigma (sqrt(n_samples) +
        sqrt(n_features)) removes it.
    ratio : float, default=None
        Weight of the sparse part against the low rank. None: 1 / sqrt(max(n_samples, n_features)),
        which separates them for a wide class of matrices (Candes, Li, Ma, Wright 2011).
    form : {"penalized", "squared", "constrained"}, default="penalized"
        The gauge itself, half its square, or a bound on it.
    radius : float, default=1.0
        Bound on ||L||_* + ratio ||S||_1 if ``form="constrained"``; alpha has no effect then.
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
    low_rank_, sparse_ : (n_samples, n_features) ndarray, float64
    components_ : (rank, n_features) ndarray
        Orthonormal directions of the rows of L, largest singular value first.
    singular_values_ : (rank,) ndarray, those of L
    alpha_, ratio_ : float, as used
    objective_, gap_ : float
        Objective at this point and a proved bound on its distance to the optimum.
    status_ : Status
    n_passes_, n_iter_, history_
    result_ : Result, whose ``low_rank`` is L by its factors
    n_features_in_, feature_names_in_

    References
    ----------
    Candes, Li, Ma, Wright 2011.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import SparseLowRank
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    >>> spikes = np.where(rng.random((60, 40)) < 0.05, 10.0, 0.0)
    >>> model = SparseLowRank().fit(clean + spikes)
    >>> model.components_.shape, bool(np.abs(model.low_rank_ - clean).max() < 0.5)
    ((2, 40), True)
    """

    alpha: float | None = None
    ratio: float | None = None
    _: KW_ONLY
    form: Form = "penalized"
    radius: float = 1.0

    def fit(self, X: Any, y: Any = None) -> SparseLowRank:
        """Separate X (n_samples, n_features); y is not used."""
        checked = self._checked(X, reset=True)
        data = double(checked)
        shape = (checked.shape[0], checked.shape[1])
        self.ratio_ = 1.0 / math.sqrt(max(shape))
        if self.ratio is not None:
            self.ratio_ = positive("ratio", self.ratio, "weight of the sparse part")
        norm: Any = Union([TraceNorm(shape), Scaled(L1(), self.ratio_)])
        self.alpha_ = amount_of(self, lambda: 0.01 * float(norm.polar(data)))
        regularizer = Regularizer(norm, self.form, self.alpha_)
        problem = Problem.build(Identity(shape), data.reshape(-1), Squared(), regularizer)
        result = self._solved(problem)
        low_rank, sparse = (part.dense(shape) for part in result.matrix_parts or ())
        self.low_rank_ = low_rank
        self.sparse_ = sparse
        factored = result.low_rank
        order = np.argsort(-factored.weights, kind="stable")
        self.singular_values_ = factored.weights[order]
        self._basis = factored.right[:, order]
        self.components_ = self._basis.T
        # The weight that the sparse part has at this fit: alpha ratio, where it is penalized.
        W = low_rank + sparse
        gauge = float(sum(part.gauge for part in result.matrix_parts or ()))
        self._threshold = self.ratio_ * regularizer.multiplier(gauge, float(np.vdot(data - W, W)))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the coordinates of rows in the span of ``components_``, robust to gross errors.

        They minimize 1/2 ||x - components_'c - s||^2 + alpha ratio ||s||_1, s for the errors
        (other forms: the multiplier at the fit for alpha), a Huber regression, to the relative gap
        ``tol``. Shape (n_samples, rank).
        """
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        tol = positive("tol", self.tol, "relative duality gap to prove, for example 1e-6")
        steps = whole("max_iter", self.max_iter)
        coordinates, gap = robust_coordinates(
            double(checked), self._basis, self._threshold, tol, steps
        )
        if gap > tol:
            warnings.warn(
                f"SparseLowRank.transform: {Status.ITERATION_LIMIT}. Relative gap proved: "
                f"{gap:.2e}, asked for: tol={self.tol:.2e}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return coordinates.astype(checked.dtype, copy=False)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return the low-rank rows of these coordinates (n_samples, rank)."""
        check_is_fitted(self)
        coordinates = check_array(X, dtype=[np.float64, np.float32], ensure_min_features=0)
        rows: NDArray[Any] = coordinates @ self.components_
        return rows


@dataclass(eq=False, repr=False)
class SparsePCA(MatrixTransformer):
    """min over W of  1/2 ||S - W||_F^2 + alpha gauge(W), S the covariance: [V] 4.4.

    The atoms of the gauge are u u' of unit u with ``n_features`` non-zeros at most, so W = sum_i
    c_i u_i u_i', whose u_i are the components: all of them found together, not one after the other.
    The search for the best atom is NP-hard; what is proved and what is only searched for is told
    apart.

    Parameters
    ----------
    n_features : int, default=5
        Maximum number of features of a component; more than X has act as all of them.
    alpha : float, default=None
        Weight of the gauge against the sum of squares. None: a tenth of the largest variance along
        n_features features, above which there are no components.
    n_components : int, default=None
        Components kept, heaviest first. None: all that W has.
    form : {"penalized", "squared", "constrained"}, default="penalized"
        The gauge itself, half its square, or a bound on it.
    radius : float, default=1.0
        Bound on the gauge if ``form="constrained"``; alpha has no effect then.
    tol : float, default=1e-4
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
    time_limit : float or None, default=60.0
        Seconds after which the best point found is returned, with status TIME_LIMIT and the gap
        that is proved there. None: no limit.

    Attributes
    ----------
    components_ : (n_components, n_features) ndarray, float64
        Unit vectors with n_features non-zeros at most, heaviest first, the largest entry positive.
    weights_ : (n_components,) ndarray, their c_i
    explained_variance_, explained_variance_ratio_ : (n_components,) ndarray
        Variance along each, less what those before it explain (Zou, Hastie, Tibshirani 2006).
    mean_ : (n_features,) ndarray
    alpha_ : float, as used
    objective_, gap_ : float
        Objective at W and a proved bound on its distance to the optimum.
    search_gap_ : float
        The bound if the search for atoms was exhaustive; ``gap_`` where that is proved.
    status_ : Status
        CONVERGED where the gap is proved, SEARCH_RELATIVE where the search finds no more atoms
        but no bound proves that there are none.
    n_passes_, n_iter_, history_
    result_ : Result
    n_features_in_, feature_names_in_

    References
    ----------
    Zou, Hastie, Tibshirani 2006; [V] section 4.4.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import SparsePCA
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(200, 1))
    >>> X = 0.1 * rng.normal(size=(200, 8))
    >>> X[:, :3] += hidden
    >>> model = SparsePCA(n_features=3, n_components=1).fit(X)
    >>> np.flatnonzero(model.components_[0]).tolist()
    [0, 1, 2]
    """

    n_features: int = 5
    alpha: float | None = None
    _: KW_ONLY
    n_components: int | None = None
    form: Form = "penalized"
    radius: float = 1.0
    tol: float = 1e-4
    time_limit: float | None = 60.0

    def fit(self, X: Any, y: Any = None) -> SparsePCA:
        """Find the components of X (n_samples, n_features); y is not used."""
        count = None if self.n_components is None else whole("n_components", self.n_components)
        checked = self._checked(X, reset=True, least=2)
        n_samples, n_features = checked.shape
        means = double(checked).mean(axis=0)
        centered = checked - means
        S: Any = centered.T @ centered / (n_samples - 1)
        norm = SparsePSD(min(whole("n_features", self.n_features), n_features), shape=S.shape)
        self.alpha_ = amount_of(self, lambda: 0.1 * norm.polar_bounds(S)[0])
        regularizer = Regularizer(norm, self.form, self.alpha_)
        problem = Problem.build(Identity(S.shape), S.reshape(-1), Squared(), regularizer)
        result = self._solved(problem)
        factored = result.low_rank
        order = np.argsort(-factored.weights, kind="stable")[:count]
        directions = factored.left[:, order].T
        top = np.argmax(np.abs(directions), axis=1)[:, None]
        directions = directions * np.where(np.take_along_axis(directions, top, axis=1) < 0, -1, 1)
        # The squared diagonal of R in the QR decomposition of the projected data.
        diagonal = np.diag(np.linalg.qr(centered @ directions.T, mode="r"))
        variance = np.zeros(order.size)
        variance[: diagonal.size] = np.square(diagonal) / (n_samples - 1)
        self.mean_ = means
        self.components_ = directions + 0.0
        self.weights_ = factored.weights[order]
        self.explained_variance_ = variance
        self.explained_variance_ratio_ = variance / (float(np.trace(S)) or 1.0)
        self.search_gap_ = float(result.gap if result.search_gap is None else result.search_gap)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the projections (X - mean_) components_', shape (n_samples, n_components)."""
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        projected: NDArray[Any] = (checked - self.mean_) @ self.components_.T
        return projected.astype(checked.dtype, copy=False)
