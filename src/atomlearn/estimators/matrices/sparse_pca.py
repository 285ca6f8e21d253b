"""SparsePCA: sparse principal components by one convex fit of the covariance, certified."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from atomlearn.core.interfaces import Form, Solver
from atomlearn.estimators.checks import keep, whole
from atomlearn.estimators.matrices.matrix_models import MatrixTransformer, amount, double
from atomlearn.matrices.components import (
    components_of,
    covariance,
    default_alpha,
    sparse_components,
)


class SparsePCA(MatrixTransformer):
    """min over W of  1/2 ||S - W||_F^2 + alpha gauge(W), S the covariance: [V] 4.4.

    The atoms of the gauge are u u' of unit u with ``k`` non-zeros at most, so W = sum_i c_i u_i
    u_i', whose u_i are the components: all of them found together, not one after the other. The
    search for the best atom is NP-hard; what is proved and what is only searched for is told apart.

    Parameters
    ----------
    k : int, default=5
        Non-zeros of a component at most; more than there are features acts as all of them.
    alpha : float, optional
        Weight of the gauge. None: a tenth of the largest variance along k features, above which
        there are no components.
    n_components : int, optional
        Components kept, heaviest first. None: all that W has.
    form : {"penalized", "squared", "constrained"}, default="penalized"
    radius : float, default=1.0
        Bound on the gauge where ``form="constrained"``; there alpha plays no part.
    tol : float, default=1e-4
        Relative duality gap to prove.
    max_iter : int, default=1000
        Bound on steps of the solver.
    solver : str or Solver, default="auto"
    verbose : int, default=0
        Above 0, print one line a step.

    Attributes
    ----------
    components_ : (n_components, n_features) ndarray, in the dtype of X
        Unit vectors with k non-zeros at most, heaviest first, the largest entry positive.
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

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import SparsePCA
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.normal(size=(200, 1))
    >>> X = 0.1 * rng.normal(size=(200, 8))
    >>> X[:, :3] += hidden
    >>> model = SparsePCA(k=3, n_components=1).fit(X)
    >>> np.flatnonzero(model.components_[0]).tolist()
    [0, 1, 2]

    References
    ----------
    Zou, Hastie, Tibshirani 2006; [V] section 4.4.
    """

    def __init__(
        self,
        k: int = 5,
        alpha: float | None = None,
        *,
        n_components: int | None = None,
        form: Form = "penalized",
        radius: float = 1.0,
        tol: float = 1e-4,
        max_iter: int = 1000,
        solver: str | Solver = "auto",
        verbose: int = 0,
    ) -> None:
        keep(self, locals())

    def fit(self, X: Any, y: Any = None) -> SparsePCA:
        """Find the components of X (n_samples, n_features); y is not used."""
        count = None if self.n_components is None else whole("n_components", self.n_components)
        checked = self._checked(X, reset=True, least=2)
        data = double(checked)
        k = min(whole("k", self.k), data.shape[1])
        means, S = covariance(data)
        needed = self.alpha is None and self.form != "constrained"
        self.alpha_ = amount(self, default_alpha(S, k) if needed else None)
        result = self._solved(sparse_components(S, k, self.alpha_, self.form))
        found = components_of(result, data, means, count)
        self.mean_ = means.astype(checked.dtype)
        self.components_ = found.directions.astype(checked.dtype)
        self.weights_ = found.weights
        self.explained_variance_ = found.variance
        total = float(np.trace(S))
        self.explained_variance_ratio_ = found.variance / total if total else found.variance
        self.search_gap_ = float(result.gap if result.search_gap is None else result.search_gap)
        self._report(result)
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Return the projections (X - mean_) components_', shape (n_samples, n_components)."""
        check_is_fitted(self)
        checked = self._checked(X, reset=False)
        projected: NDArray[Any] = (checked - self.mean_) @ self.components_.T
        return projected.astype(checked.dtype, copy=False)
