"""MatrixCompletion fills in missing entries of a matrix from a matrix of low rank."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from atomlearn._support import check_share, positive
from atomlearn.core import (
    Array,
    Mask,
    NoImprovement,
    Problem,
    Regularizer,
    Result,
    Settings,
    Squared,
    changed,
    largest_useful_alpha,
)
from atomlearn.estimators.checks import whole
from atomlearn.estimators.matrices.matrix_models import MatrixModel, double
from atomlearn.matrices.designs.entries import Entries
from atomlearn.matrices.norms.spectral import TraceNorm

#: Values of alpha on the path, down to a hundredth of the largest.
N_ALPHAS = 12


@dataclass(eq=False, repr=False)
class MatrixCompletion(OneToOneFeatureMixin, TransformerMixin, MatrixModel):
    """min over L of  1/(2 N) sum_observed (z_ij - L_ij)^2 + alpha ||L||_*: fills in NaN.

    N is the number of observed entries, and z are the entries of X. Each column is centered by the
    mean of its observed entries and, with ``standardize=True``, divided by their deviation. The
    trace norm keeps the rank of L low. For other losses, such as the logistic loss of 0/1 entries,
    use ``solve`` with ``designs.Entries``.

    Parameters
    ----------
    alpha : float, default=None
        Weight of the trace norm. None: the value of a path that predicts held-out entries best.
    rank : int, default=None
        Largest rank of L. The path then ends at this rank, and alpha is raised until the final fit
        has it too.
    validation_fraction : float, default=0.1
        Share of the observed entries that is held out to choose alpha. They are left out of the
        sum on the path, and N remains the number of all observed entries.
    standardize : bool, default=False
        Whether to divide columns by their deviations; they are centered in any case.
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
    time_limit : float, default=None
        Seconds after which the whole fit ends with the best point so far.
    random_state : int, default=0
        Seed of the choice of held-out entries.

    Attributes
    ----------
    alpha_ : float
        The alpha of the final fit.
    rank_ : int
        Rank of L.
    left_, right_ : (n_samples, rank), (n_features, rank) ndarray
        L = left_ right_', in standardized units.
    alphas_, scores_ : (n_alphas,) ndarray
        Values of alpha on the path and their mean squared errors at held-out entries; empty if
        ``alpha`` is given.
    mean_, scale_ : (n_features,) ndarray
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
    result_ : Result
        Result of the final fit to all observed entries.
    n_features_in_, feature_names_in_

    References
    ----------
    E. J. Candes, B. Recht. Exact matrix completion via convex optimization. Foundations of
    Computational Mathematics 9 (2009) 717-772, doi:10.1007/s10208-009-9045-5.
    R. Mazumder, T. Hastie, R. Tibshirani. Spectral regularization algorithms for learning large
    incomplete matrices. Journal of Machine Learning Research 11 (2010) 2287-2322.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import MatrixCompletion
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 30))
    >>> X = np.where(rng.random(truth.shape) < 0.3, np.nan, truth)
    >>> model = MatrixCompletion(standardize=True)
    >>> filled = model.fit_transform(X)
    >>> bool(np.isnan(filled).any()), bool(np.abs(filled - truth).mean() < 0.1)
    (False, True)
    """

    alpha: float | None = None
    rank: int | None = None
    _: KW_ONLY
    validation_fraction: float = 0.1
    standardize: bool = False
    tol: float = 1e-4
    random_state: int = 0

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: X may have NaN, and the type of its numbers is kept."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> MatrixCompletion:
        """Find L for X (n_samples, n_features), whose missing entries are NaN; y is not used."""
        settings = self._settings()
        data = double(self._checked(X, reset=True, gaps=True))
        observed = np.isfinite(data)
        if not observed.any():
            raise ValueError("X has no entry that is observed; expected numbers, some of them NaN")
        check_share("validation_fraction", self.validation_fraction, 0.1)
        self._standardize(data, observed)
        self._n_observed = np.count_nonzero(observed)
        alpha = self._chosen_alpha(data, observed, settings)
        [result] = self._solve([self._problem(data, observed, alpha)], [None], settings)
        while self.rank is not None and self.alpha is None and _rank(result) > self.rank:
            # The final fit uses the held-out entries, too, and its rank can be larger than on the
            # path: return to the next larger alpha.
            larger = self.alphas_[self.alphas_ > alpha]
            alpha = float(larger[-1]) if larger.size else 1.2 * alpha
            problem = self._problem(data, observed, alpha)
            [result] = self._solve([problem], [result.warm_start()], settings)
        factors: Any = result.low_rank
        root = np.sqrt(factors.weights)
        self.left_ = factors.left * root
        self.right_ = factors.right * root
        self.alpha_ = alpha
        self.rank_ = _rank(result)
        self._record(result)
        return self

    def _standardize(self, data: Array, observed: Mask) -> None:
        """Set ``mean_`` and ``scale_`` of each column from its observed entries.

        data : (n_samples, n_features). observed : a mask of its numbers.
        """
        counts = np.maximum(observed.sum(axis=0), 1)
        self.mean_ = np.where(observed, data, 0.0).sum(axis=0) / counts
        squares = np.where(observed, (data - self.mean_) ** 2, 0.0).sum(axis=0) / counts
        self.scale_ = np.sqrt(np.where(self.standardize & (squares > 0), squares, 1.0))

    def _problem(self, data: Array, chosen: Mask, alpha: float) -> Problem:
        """Return the problem of the chosen entries, each with weight 1 / N.

        data : (n_samples, n_features) with NaN. chosen : a mask of observed entries. alpha : the
        weight of the trace norm.
        """
        rows, cols = np.nonzero(chosen)
        design = Entries(rows, cols, (data.shape[0], data.shape[1]))
        regularizer = Regularizer(TraceNorm(), "penalized", alpha)
        targets = (data - self.mean_) / self.scale_
        weight = 1.0 / self._n_observed
        return Problem.build(design, targets[chosen], Squared(), regularizer, sample_weight=weight)

    def _chosen_alpha(self, data: Array, observed: Mask, settings: Settings) -> float:
        """Return the parameter ``alpha``, or the alpha on a path that is best at held-out entries.

        data : (n_samples, n_features) with NaN. observed : a mask of its numbers. settings : those
        of the fits. Each alpha is scored by the mean squared error at the held-out entries.
        """
        self.alphas_ = np.zeros(0)
        self.scores_ = np.zeros(0)
        if self.alpha is not None:
            return positive("alpha", self.alpha, "weight of the trace norm")
        largest_rank = np.inf if self.rank is None else whole("rank", self.rank)
        n_observed = self._n_observed
        rng = np.random.default_rng(self.random_state)
        # Hold out a random part of the observed entries, at least one of them.
        is_held_out = rng.random(n_observed) < self.validation_fraction
        if is_held_out.all() or not is_held_out.any():
            is_held_out[:] = False
            is_held_out[rng.integers(n_observed)] = n_observed > 1
        held_out = np.zeros_like(observed)
        held_out[observed] = is_held_out
        fitted = self._problem(data, observed & ~held_out, 1.0)
        largest = largest_useful_alpha(fitted)
        # If L is 0 for each alpha, or nothing is held out, there is no path to choose from.
        if largest == 0.0 or not is_held_out.any():
            return largest or 1.0
        unseen: Any = self._problem(data, held_out, 1.0)
        alphas: list[float] = []
        scores = []
        ranks = []
        start = None
        _, stops_improving = NoImprovement(patience=3).begin_folds()
        # Follow a path of decreasing alpha until the error rises or the rank is too large.
        for alpha in (largest * np.geomspace(0.9, 1e-2, N_ALPHAS)).tolist():
            result = settings.run(changed(fitted, amount=alpha), start)
            start = result.warm_start()
            factors = result.low_rank
            predicted = unseen.design.predictions(factors.left * factors.weights, factors.right)
            alphas.append(alpha)
            squares = np.square(unseen.y - predicted)
            scores.append(float(np.mean(squares)))
            ranks.append(_rank(result))
            if stops_improving(-scores[-1]) or ranks[-1] > largest_rank:
                break
        self.alphas_ = np.array(alphas)
        self.scores_ = np.array(scores)
        allowed = np.array(ranks) <= largest_rank
        return alphas[int(np.argmin(np.where(allowed, self.scores_, np.inf)))]

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> NDArray[Any]:
        """Fit to X and return it with its missing entries from L; observed entries are unchanged.

        y is not used, and neither are ``params``.
        """
        self.fit(X)
        return self._filled(self._checked(X, reset=False, gaps=True), self.left_)

    def transform(self, X: Any) -> NDArray[Any]:
        """Return rows X with their missing entries filled in by the fitted factors of the columns.

        L = A B' with B = ``right_``. The factor a of a row minimizes
        1/2 sum_observed (z_j - a'b_j)^2 + (N alpha / 2) ||a||^2. This is its part of the problem,
        since ||L||_* is the minimum of (||A||^2 + ||B||^2) / 2.
        """
        check_is_fitted(self)
        data = self._checked(X, reset=False, gaps=True)
        standardized = (double(data) - self.mean_) / self.scale_
        row_factors = np.zeros((data.shape[0], self.rank_))
        ridge = self._n_observed * self.alpha_ * np.eye(self.rank_)
        # A ridge regression of the observed entries of each row on the factors of their columns.
        for row, observed in enumerate(np.isfinite(data)):
            if observed.any() and self.rank_:
                factors = self.right_[observed]
                observed_values = standardized[row, observed]
                row_factors[row] = np.linalg.solve(
                    factors.T @ factors + ridge, factors.T @ observed_values
                )
        return self._filled(data, row_factors)

    def _filled(self, data: NDArray[Any], row_factors: Array) -> NDArray[Any]:
        """Return X with the low-rank fit in place of missing entries, in the units of X.

        row_factors : (n_samples, rank) the factors of the rows. ``data`` is the matrix X with NaN.
        """
        fill = row_factors @ self.right_.T * self.scale_ + self.mean_
        return np.where(np.isfinite(data), data, fill).astype(data.dtype, copy=False)


def _rank(result: Result) -> int:
    """Return the rank of the low-rank part of a result."""
    factors: Any = result.low_rank
    return int(factors.weights.size)
