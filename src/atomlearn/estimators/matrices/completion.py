"""MatrixCompletion: missing entries of a matrix by a low-rank one, its level chosen by held-out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.base import OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from atomlearn.core.data.convert import readable
from atomlearn.core.interfaces import Array, Loss, Mask, Rows
from atomlearn.designs import Entries
from atomlearn.estimators.checks import keep, whole
from atomlearn.estimators.matrices.matrix_models import MatrixModel
from atomlearn.losses import as_loss
from atomlearn.matrices.mixed import Mixed
from atomlearn.norms import TraceNorm
from atomlearn.paths import NoImprovement, Settings
from atomlearn.problem import Problem, Regularizer, positive
from atomlearn.result import Result

#: Levels that are tried, down to a hundredth of the largest.
LEVELS = 12


class MatrixCompletion(OneToOneFeatureMixin, TransformerMixin, MatrixModel):
    """min over L of  sum_observed loss_j(z_ij, L_ij) + level ||L||_*: fills in what is NaN.

    z are the entries of X, each column centered by the mean of what is observed in it and divided
    by its deviation; loss_j is 1/2 (z - L)^2, or of column j what ``loss`` says. The trace norm
    keeps the rank of L low.

    Parameters
    ----------
    loss : str, or sequence of one str a column, default="squared"
        "squared" or "huber" for numbers, "logistic" for columns of 0 and 1, which are not scaled:
        L is added to the log-odds of the column, and a missing entry becomes a probability.
        "auto": logistic for columns of 0 and 1, squared for the others.
    level : float, optional
        Weight of the trace norm. None: the one of a path that predicts held-out entries best.
    rank : int, optional
        Largest rank of L: of the levels of the path with at most this rank, without held-out
        entries and with them, the one that predicts held-out entries best.
    validation_fraction : float, default=0.1
        Share of the observed entries that is held out to choose.
    standardize : bool, default=True
        Divide columns by their deviations; they are centered in any case.
    tol : float, default=1e-4
        Relative duality gap to prove.
    max_iter : int, default=1000
    random_state : int, default=0
        Of the entries that are held out.

    Attributes
    ----------
    level_ : float, as used
    rank_ : int, of L
    left_, right_ : (n_samples, rank), (n_features, rank) ndarray
        L = left_ right_', in standardized units.
    levels_, scores_ : (n_levels,) ndarray
        Of the path, and twice the mean loss (the squared loss: the mean squared error) at held-out
        entries; empty where ``level`` is given.
    losses_ : list of str, one a column
    mean_, scale_ : (n_features,) ndarray
        Of columns of 0 and 1, ``mean_`` are the log-odds of 1.
    objective_, gap_, status_, n_passes_, n_iter_, history_, result_
        As of other estimators, of the final fit to all observed entries.
    n_features_in_, feature_names_in_

    References
    ----------
    E. J. Candes, B. Recht. Exact matrix completion via convex optimization. Foundations of
    Computational Mathematics 9 (2009) 717-772, doi:10.1007/s10208-009-9045-5.
    R. Mazumder, T. Hastie, R. Tibshirani. Spectral regularization algorithms for learning large
    incomplete matrices. Journal of Machine Learning Research 11 (2010) 2287-2322.
    M. Udell, C. Horn, R. Zadeh, S. Boyd. Generalized low rank models. Foundations and Trends in
    Machine Learning 9 (2016) 1-118, doi:10.1561/2200000055 (a loss a column).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import MatrixCompletion
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 30))
    >>> X = np.where(rng.random(truth.shape) < 0.3, np.nan, truth)
    >>> model = MatrixCompletion()
    >>> filled = model.fit_transform(X)
    >>> bool(np.isnan(filled).any()), bool(np.abs(filled - truth).mean() < 0.1)
    (False, True)
    """

    def __init__(
        self,
        level: float | None = None,
        rank: int | None = None,
        *,
        loss: Any = "squared",
        validation_fraction: float = 0.1,
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        random_state: int = 0,
    ) -> None:
        keep(self, locals())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: Any, y: Any = None) -> MatrixCompletion:
        """Find L for X (n_samples, n_features), whose missing entries are NaN; y is not used."""
        data = self._with_gaps(X, reset=True)
        observed = np.isfinite(data)
        if not observed.any():
            raise ValueError("X has no entry that is observed; expected numbers, some of them NaN")
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                "validation_fraction must lie between 0 and 1, such as 0.1, got "
                f"{self.validation_fraction!r}"
            )
        self.losses_ = column_losses(self.loss, data, observed)
        self._standardize(data, observed)
        rows, cols = np.nonzero(observed)
        entries = ObservedEntries(
            self._targets(data)[rows, cols], rows, cols, data.shape, self._of(cols)
        )
        level = self._level(entries)
        result = self._settings().run(entries.problem(level))
        while self.rank is not None and self.level is None and _rank(result) > self.rank:
            # Entries that were held out have a say now, too: one level back on the path.
            before = self.levels_[self.levels_ > level]
            level = float(before[-1]) if before.size else 1.2 * level
            result = self._settings().run(entries.problem(level), result.warm_start())
        self._take(result, level)
        self._report(result)
        return self

    def _targets(self, data: Array) -> Array:
        """Return what the losses are of: standardized numbers, and the labels -1 and +1."""
        labels = np.array([name == "logistic" for name in self.losses_])
        with np.errstate(invalid="ignore"):
            return np.where(labels, 2 * data - 1, (data - self.mean_) / self.scale_)

    def _of(self, cols: Rows) -> Loss:
        """Return the loss of entries in these columns; a plain one where it is the same for all."""
        names = list(dict.fromkeys(self.losses_))
        if names == ["squared"]:
            return as_loss("squared")
        kinds = np.array([names.index(name) for name in self.losses_])
        offsets = np.where([name == "logistic" for name in self.losses_], self.mean_, 0.0)
        return Mixed([as_loss(name) for name in names], kinds[cols], offsets[cols])

    def _with_gaps(self, X: Any, *, reset: bool) -> Array:
        """Return X in float64, NaN where entries are missing, its names and width compared."""
        dtypes = [np.float64, np.float32]
        checked: Array = validate_data(
            self, readable(X), reset=reset, dtype=dtypes, ensure_all_finite="allow-nan"
        )
        self._dtype = checked.dtype
        return np.asarray(checked, dtype=np.float64)

    def _standardize(self, data: Array, observed: Mask) -> None:
        counts = np.maximum(observed.sum(axis=0), 1)
        held = np.where(observed, data, 0.0)
        self.mean_ = held.sum(axis=0) / counts
        squares = np.where(observed, (data - self.mean_) ** 2, 0.0).sum(axis=0) / counts
        labels = np.array([name == "logistic" for name in self.losses_])
        usable = self.standardize & (squares > 0) & ~labels
        self.scale_ = np.sqrt(np.where(usable, squares, 1.0))
        # Log-odds, of half an entry more of each kind: a column may hold one kind alone.
        shares = (counts * self.mean_ + 0.5) / (counts + 1.0)
        odds = logit(np.where(labels, shares, 0.5))
        self.mean_ = np.where(labels, odds, self.mean_)

    def _settings(self) -> Settings:
        tol = positive("tol", self.tol, "relative duality gap to prove, such as 1e-4")
        return Settings(tol, whole("max_iter", self.max_iter))

    def _level(self, entries: ObservedEntries) -> float:
        """Return the level as given, or by entries that are held out of a path."""
        self.levels_, self.scores_ = np.zeros(0), np.zeros(0)
        if self.level is not None:
            return positive("level", self.level, "weight of the trace norm")
        most = None if self.rank is None else whole("rank", self.rank)
        size = entries.z.size
        rng = np.random.default_rng(self.random_state)
        out = rng.random(size) < self.validation_fraction
        if out.all() or not out.any():
            out[:] = False
            out[rng.integers(size)] = size > 1
        fitted, held_out = entries.some(~out), entries.some(out)
        largest = fitted.largest()
        if largest == 0.0:
            return 1.0
        levels, scores, ranks = [], [], []
        _, hopeless = NoImprovement(patience=3).begin_folds()
        for level, result in self._each(fitted, largest):
            levels.append(level)
            scores.append(held_out.error(result))
            ranks.append(_rank(result))
            if hopeless(-scores[-1]) or (most is not None and ranks[-1] > most):
                break
        self.levels_, self.scores_ = np.array(levels), np.array(scores)
        fits = np.array([most is None or rank <= most for rank in ranks])
        best = int(np.argmin(np.where(fits, self.scores_, np.inf)))
        # Held-out entries are observed, too, in the final fit: as many more pull at L.
        return float(levels[best])

    def _each(self, entries: ObservedEntries, largest: float) -> Iterator[tuple[float, Result]]:
        """Yield (level, result) from the largest on, each started where the last one ended."""
        warm = None
        settings = self._settings()
        for level in (largest * np.geomspace(0.9, 1e-2, LEVELS)).tolist():
            result = settings.run(entries.problem(level), warm)
            warm = result.warm_start()
            result.state = None
            yield level, result

    def _take(self, result: Result, level: float) -> None:
        held = result.low_rank
        assert held is not None
        root = np.sqrt(held.weights)
        self.left_, self.right_ = held.left * root, held.right * root
        self.level_, self.rank_ = level, int(held.weights.size)

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> NDArray[Any]:
        """Return X with its missing entries filled in by L; observed ones stay as they are."""
        self.fit(X)
        data = self._with_gaps(X, reset=False)
        return self._filled(data, self.left_ @ self.right_.T)

    def transform(self, X: Any) -> NDArray[Any]:
        """Return rows with their missing entries filled in, the factors of columns as fitted.

        The factor a of a row minimizes sum_observed loss_j(z_j, a'b_j) + level/2 ||a||^2, which
        gives back the rows of L for the rows of the fit.
        """
        check_is_fitted(self)
        data = self._with_gaps(X, reset=False)
        z, observed = self._targets(data), np.isfinite(data)
        left = np.zeros((data.shape[0], self.rank_))
        for row in range(data.shape[0]):
            mine = np.flatnonzero(observed[row])
            if mine.size and self.rank_:
                left[row] = row_factor(self._of(mine), z[row, mine], self.right_[mine], self.level_)
        return self._filled(data, left @ self.right_.T)

    def _filled(self, data: Array, low_rank: Array) -> NDArray[Any]:
        labels = np.array([name == "logistic" for name in self.losses_])
        plain = low_rank * self.scale_ + self.mean_
        fill = np.where(labels, expit(np.where(labels, plain, 0.0)), plain)
        return np.where(np.isfinite(data), data, fill).astype(self._dtype, copy=False)


def _rank(result: Result) -> int:
    return 0 if result.low_rank is None else int(result.low_rank.weights.size)


@dataclass(frozen=True, slots=True, eq=False)
class ObservedEntries:
    """z, rows, cols : (n_entries,) values and places in a matrix of this shape; loss : of them."""

    z: Array
    rows: Rows
    cols: Rows
    shape: tuple[int, ...]
    loss: Loss

    def some(self, mask: Mask) -> ObservedEntries:
        """Return these entries."""
        kept = np.flatnonzero(mask)
        return ObservedEntries(
            self.z[kept], self.rows[kept], self.cols[kept], self.shape, self.loss.part(kept)
        )

    def problem(self, level: float) -> Problem:
        """Return the problem of these entries."""
        design = Entries(self.rows, self.cols, (self.shape[0], self.shape[1]))
        regularizer = Regularizer(TraceNorm(), "penalized", level)
        return Problem.build(design, self.z, self.loss, regularizer)

    def largest(self) -> float:
        """Return the level from which on L is zero: the largest singular value of -f'(0)."""
        problem = self.problem(1.0)
        slope = -self.loss.gradient(problem.y, np.zeros(self.z.size), np.ones(self.z.size))
        polar: float = problem.regularizer.norm.polar(problem.design.scores(slope))
        return polar

    def error(self, result: Result) -> float:
        """Return twice the mean loss of what was fitted to other entries."""
        if not self.z.size:
            return 0.0
        held = result.low_rank
        at = np.zeros(self.z.size)
        if held is not None:
            at = np.asarray(held.at(self.rows, self.cols))
        return 2.0 * self.loss.value(self.z, at, np.ones(self.z.size)) / self.z.size


def column_losses(asked: Any, data: Array, observed: Mask) -> list[str]:
    """Return the name of the loss of each column."""
    n_columns = data.shape[1]
    held = np.where(observed, data, 0.0)
    labels = ((held == 0.0) | (held == 1.0)).all(axis=0)
    names = [asked] * n_columns if isinstance(asked, str) else [str(name) for name in asked]
    if len(names) != n_columns:
        raise ValueError(f"loss has {len(names)} names, and X {n_columns} columns; give one each")
    if asked == "auto":
        return ["logistic" if label else "squared" for label in labels.tolist()]
    for column, name in enumerate(names):
        if name not in ("squared", "huber", "logistic"):
            raise ValueError(
                f"loss must be 'squared', 'huber', 'logistic' or 'auto', got {name!r}; others have "
                "no bound on their curvature, or no mean to fill in"
            )
        if name == "logistic" and not labels[column]:
            raise ValueError(
                f"loss 'logistic' is for columns of 0 and 1, and column {column} holds other "
                "numbers; use 'squared' there"
            )
    return names


def row_factor(loss: Loss, z: Array, factors: Array, level: float) -> Array:
    """Return argmin over a of  sum_j loss_j(z_j, a'b_j) + level/2 ||a||^2."""
    ones = np.ones(z.size)

    def objective(a: Array) -> tuple[float, Array]:
        at = factors @ a
        value = loss.value(z, at, ones) + 0.5 * level * float(a @ a)
        return value, factors.T @ loss.gradient(z, at, ones) + level * a

    start = np.zeros(factors.shape[1])
    return np.asarray(minimize(objective, start, jac=True, method="BFGS").x)
