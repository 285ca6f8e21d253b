"""SparseLowRank (robust principal components) and SparsePCA, with certificates."""

from __future__ import annotations

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_array, check_is_fitted

from atomlearn._support import positive
from atomlearn.core import L1, Form, Regularizer, Scaled, Status
from atomlearn.estimators.checks import amount_of, whole
from atomlearn.estimators.matrices.matrix_models import (
    MatrixTransformer,
    double,
    problem_of_entries,
)
from atomlearn.lifting.union import Union
from atomlearn.matrices.designs.identity import Identity
from atomlearn.matrices.norms.sparse import SparsePSD
from atomlearn.matrices.norms.spectral import TraceNorm
from atomlearn.matrices.robust import robust_coordinates


@dataclass(eq=False, repr=False)
class SparseLowRank(MatrixTransformer):
    """min over L, S of  1/(2 N) ||X - L - S||_F^2 + alpha (||L||_* + ratio ||S||_1): robust PCA.

    N = n_samples n_features is the number of entries. L has low rank (the background of a film) and
    S is sparse (gross errors, moving objects). X is not centered.

    Parameters
    ----------
    alpha : float, default=None
        Weight of the penalty of both parts. None: a hundredth of the smallest alpha that makes both
        zero. Noise of standard deviation sigma is removed by alpha = sigma (sqrt(n_samples) +
        sqrt(n_features)) / N.
    ratio : float, default=None
        Weight of the sparse part relative to the part of low rank. None: 1 / sqrt(max(n_samples,
        n_features)), which separates them for a wide class of matrices (Candes, Li, Ma, Wright
        2011).
    form : {"penalized", "squared", "constrained"}, default="penalized"
        How the gauge (the value of the norm) enters: itself, half its square, or as a constraint.
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
    singular_values_ : (rank,) ndarray
        Singular values of L.
    alpha_, ratio_ : float
        The values used in the fit.
    objective_, gap_ : float
        Objective at this point and a proved bound on its distance to the optimum.
    status_ : Status
    n_passes_, n_iter_, history_
    result_ : Result
        Its ``low_rank`` holds the factors of L.
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
        self.alpha_ = amount_of(self, lambda: 0.01 * float(norm.polar(data)) / data.size)
        regularizer = Regularizer(norm, self.form, self.alpha_)
        result = self._solved(problem_of_entries(Identity(shape), data, regularizer))
        low_rank, sparse = (part.dense(shape) for part in result.matrix_parts or ())
        self.low_rank_ = low_rank
        self.sparse_ = sparse
        factored = result.low_rank
        order = np.argsort(-factored.weights, kind="stable")
        self.singular_values_ = factored.weights[order]
        self._basis = factored.right[:, order]
        self.components_ = self._basis.T
        # The weight of ||S||_1 next to half the sum of squares. In the penalized form it is
        # N alpha ratio.
        W = low_rank + sparse
        gauge = float(sum(part.gauge for part in result.matrix_parts or ()))
        inner = float(np.vdot(data - W, W)) / data.size
        self._threshold = data.size * self.ratio_ * regularizer.multiplier(gauge, inner)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the coordinates of rows in the span of ``components_``, robust to gross errors.

        For each row x of X, the coordinates c (rank,) and the errors s minimize
        1/2 ||x - components_'c - s||^2 + N alpha ratio ||s||_1, a Huber regression. In other forms
        the multiplier of the norm at the solution of the fit replaces alpha. ``tol`` is the
        relative gap.
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
                f"{gap:.2e}, requested: tol={self.tol:.2e}",
                ConvergenceWarning,
                stacklevel=2,
            )
        return coordinates.astype(checked.dtype, copy=False)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Return the rows (n_samples, n_features) with the coordinates X (n_samples, rank)."""
        check_is_fitted(self)
        coordinates = check_array(X, dtype=[np.float64, np.float32], ensure_min_features=0)
        rows: NDArray[Any] = coordinates @ self.components_
        return rows


@dataclass(eq=False, repr=False)
class SparsePCA(MatrixTransformer):
    """min over W of  1/(2 N) ||S - W||_F^2 + alpha gauge(W), S the covariance: [V] 4.4.

    N is the number of entries of S, the square of the number of columns of X. The atoms of the
    gauge are u u' for unit vectors u with at most ``n_features`` non-zeros. So W = sum_i c_i u_i
    u_i', and the u_i are the components, all found together. The search for the best atom is
    NP-hard. ``gap_`` is proved; ``search_gap_`` supposes that the search missed no atom.

    Parameters
    ----------
    n_features : int, default=5
        Maximum number of features of a component. A number above that of the columns of X means
        all of them.
    alpha : float, default=None
        Weight of the gauge. None: a tenth of the smallest alpha without components, which is the
        largest variance along n_features features, divided by N.
    n_components : int, default=None
        Number of components kept, heaviest first. None: all components of W.
    form : {"penalized", "squared", "constrained"}, default="penalized"
        How the gauge (the value of the norm) enters: itself, half its square, or as a constraint.
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
        Seconds after which the best point found is returned, with status TIME_LIMIT and its proved
        gap. None: no limit.

    Attributes
    ----------
    components_ : (n_components, n_features) ndarray, float64
        Unit vectors with at most n_features non-zeros, heaviest first; the largest entry of each is
        positive.
    weights_ : (n_components,) ndarray
        The weights c_i of the components.
    explained_variance_, explained_variance_ratio_ : (n_components,) ndarray
        Variance along each component, without the part that earlier components explain (Zou,
        Hastie, Tibshirani 2006).
    mean_ : (n_features,) ndarray
    alpha_ : float
        The value used in the fit.
    objective_, gap_ : float
        Objective at W and a proved bound on its distance to the optimum.
    search_gap_ : float
        The bound if the search for atoms missed none; ``gap_`` if this is proved.
    status_ : Status
        CONVERGED if the gap is proved. SEARCH_RELATIVE if the search finds no more atoms but no
        bound proves that there are none.
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
        covariance: Any = centered.T @ centered / (n_samples - 1)
        norm = SparsePSD(
            min(whole("n_features", self.n_features), n_features), shape=covariance.shape
        )
        self.alpha_ = amount_of(
            self, lambda: 0.1 * norm.polar_bounds(covariance)[0] / covariance.size
        )
        regularizer = Regularizer(norm, self.form, self.alpha_)
        result = self._solved(
            problem_of_entries(Identity(covariance.shape), covariance, regularizer)
        )
        factored = result.low_rank
        order = np.argsort(-factored.weights, kind="stable")[:count]
        directions = factored.left[:, order].T
        largest_entry = np.argmax(np.abs(directions), axis=1)[:, None]
        directions = directions * np.where(
            np.take_along_axis(directions, largest_entry, axis=1) < 0, -1, 1
        )
        # Variance that earlier components do not explain: the squared diagonal of R in the QR
        # decomposition of the projected data.
        diagonal = np.diag(np.linalg.qr(centered @ directions.T, mode="r"))
        variance = np.zeros(order.size)
        variance[: diagonal.size] = np.square(diagonal) / (n_samples - 1)
        self.mean_ = means
        self.components_ = directions + 0.0  # turns -0.0 into 0.0
        self.weights_ = factored.weights[order]
        self.explained_variance_ = variance
        self.explained_variance_ratio_ = variance / (float(np.trace(covariance)) or 1.0)
        self.search_gap_ = float(result.gap if result.search_gap is None else result.search_gap)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the projections (X - mean_) components_' of rows X, (n_samples, n_components)."""
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        projected: NDArray[Any] = (checked - self.mean_) @ self.components_.T
        return projected.astype(checked.dtype, copy=False)
