"""MatrixCompletion: missing entries of a matrix by a low-rank one, its level chosen by held-out."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from atomlearn.core import (
    Array,
    Mask,
    NoImprovement,
    Problem,
    Regularizer,
    Result,
    Settings,
    Squared,
    check_share,
    largest_useful_alpha,
    loss_value,
    positive,
    with_amount,
)
from atomlearn.estimators.checks import whole
from atomlearn.estimators.matrices.matrix_models import MatrixModel, double
from atomlearn.matrices.designs.entries import Entries
from atomlearn.matrices.norms.spectral import TraceNorm

#: Levels that are tried, down to a hundredth of the largest.
LEVELS = 12


@dataclass(eq=False, repr=False)
class MatrixCompletion(OneToOneFeatureMixin, TransformerMixin, MatrixModel):
    """min over L of  1/2 sum_observed (z_ij - L_ij)^2 + level ||L||_*: fills in what is NaN.

    z are the entries of X, each column centered by the mean of what is observed in it and divided
    by its deviation. The trace norm keeps the rank of L low. For other losses, such as the logistic
    one of 0/1 entries, use ``solve`` over ``designs.Entries``.

    Parameters
    ----------
    level : float, default=None
        Weight of the trace norm. None: the one of a path that predicts held-out entries best.
    rank : int, default=None
        Largest rank of L: of the levels of the path with at most this rank, without held-out
        entries and with them, the one that predicts held-out entries best.
    validation_fraction : float, default=0.1
        Share of the observed entries that is held out to choose.
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
    level_ : float, as used
    rank_ : int, of L
    left_, right_ : (n_samples, rank), (n_features, rank) ndarray
        L = left_ right_', in standardized units.
    levels_, scores_ : (n_levels,) ndarray
        Of the path, and the mean squared error at held-out entries; empty where ``level`` is given.
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
        Points whose gap was computed, the starting point included.
    history_ : list of Record
        One for each of them.
    result_ : Result
        Of the final fit to all observed entries.
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

    level: float | None = None
    rank: int | None = None
    _: KW_ONLY
    validation_fraction: float = 0.1
    standardize: bool = False
    tol: float = 1e-4
    random_state: int = 0

    def __sklearn_tags__(self) -> Any:
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
        level = self._level(data, observed, settings)
        [result] = self._solve([self._problem(data, observed, level)], [None], settings)
        while self.rank is not None and self.level is None and _rank(result) > self.rank:
            # Entries that were held out have a say now, too: one level back on the path.
            before = self.levels_[self.levels_ > level]
            level = float(before[-1]) if before.size else 1.2 * level
            problem = self._problem(data, observed, level)
            [result] = self._solve([problem], [result.warm_start()], settings)
        held: Any = result.low_rank
        root = np.sqrt(held.weights)
        self.left_ = held.left * root
        self.right_ = held.right * root
        self.level_, self.rank_ = level, _rank(result)
        self._record(result)
        return self

    def _standardize(self, data: Array, observed: Mask) -> None:
        counts = np.maximum(observed.sum(axis=0), 1)
        self.mean_ = np.where(observed, data, 0.0).sum(axis=0) / counts
        squares = np.where(observed, (data - self.mean_) ** 2, 0.0).sum(axis=0) / counts
        self.scale_ = np.sqrt(np.where(self.standardize & (squares > 0), squares, 1.0))

    def _problem(self, data: Array, chosen: Mask, level: float) -> Problem:
        """Return the problem of these entries."""
        rows, cols = np.nonzero(chosen)
        design = Entries(rows, cols, (data.shape[0], data.shape[1]))
        regularizer = Regularizer(TraceNorm(), "penalized", level)
        targets = (data - self.mean_) / self.scale_
        return Problem.build(design, targets[chosen], Squared(), regularizer)

    def _level(self, data: Array, observed: Mask, settings: Settings) -> float:
        """Return the level as given, or by entries that are held out of a path."""
        self.levels_, self.scores_ = np.zeros(0), np.zeros(0)
        if self.level is not None:
            return positive("level", self.level, "weight of the trace norm")
        most = np.inf if self.rank is None else whole("rank", self.rank)
        size = np.count_nonzero(observed)
        rng = np.random.default_rng(self.random_state)
        out = rng.random(size) < self.validation_fraction
        if out.all() or not out.any():
            out[:] = False
            out[rng.integers(size)] = size > 1
        held_out = np.zeros_like(observed)
        held_out[observed] = out
        fitted = self._problem(data, observed & ~held_out, 1.0)
        largest = largest_useful_alpha(fitted)
        if largest == 0.0 or not out.any():
            return largest or 1.0
        unseen: Any = self._problem(data, held_out, 1.0)
        levels: list[float] = []
        scores = []
        ranks = []
        warm = None
        _, hopeless = NoImprovement(patience=3).begin_folds()
        for level in (largest * np.geomspace(0.9, 1e-2, LEVELS)).tolist():
            result = settings.run(with_amount(fitted, level), warm)
            warm = result.warm_start()
            held = result.low_rank
            predicted = unseen.design.predictions(held.left * held.weights, held.right)
            levels.append(level)
            scores.append(2.0 * loss_value(unseen, predicted) / np.count_nonzero(out))
            ranks.append(_rank(result))
            if hopeless(-scores[-1]) or ranks[-1] > most:
                break
        self.levels_, self.scores_ = np.array(levels), np.array(scores)
        return levels[int(np.argmin(np.where(np.array(ranks) <= most, self.scores_, np.inf)))]

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> NDArray[Any]:
        """Return X with its missing entries filled in by L; observed ones stay as they are."""
        self.fit(X)
        return self._filled(self._checked(X, reset=False, gaps=True), self.left_)

    def transform(self, X: Any) -> NDArray[Any]:
        """Return rows with their missing entries filled in, the factors of columns as fitted.

        The factor of each row is what fits its observed entries best, with the penalty that it has
        in the factored form of the problem: level/2 ||a||^2.
        """
        check_is_fitted(self)
        data = self._checked(X, reset=False, gaps=True)
        standardized = (double(data) - self.mean_) / self.scale_
        left = np.zeros((data.shape[0], self.rank_))
        ridge = self.level_ * np.eye(self.rank_)
        for row, observed in enumerate(np.isfinite(data)):
            if observed.any() and self.rank_:
                factors = self.right_[observed]
                z = standardized[row, observed]
                left[row] = np.linalg.solve(factors.T @ factors + ridge, factors.T @ z)
        return self._filled(data, left)

    def _filled(self, data: NDArray[Any], left: Array) -> NDArray[Any]:
        fill = left @ self.right_.T * self.scale_ + self.mean_
        return np.where(np.isfinite(data), data, fill).astype(data.dtype, copy=False)


def _rank(result: Result) -> int:
    held: Any = result.low_rank
    return int(held.weights.size)
