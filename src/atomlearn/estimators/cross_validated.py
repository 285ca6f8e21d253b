"""AtomicRegressorCV and AtomicClassifierCV: norm and alpha chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from atomlearn.core.interfaces import Form, Loss, Solver
from atomlearn.core.paths.cross_validation import Rule
from atomlearn.core.paths.ends import End
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.stopping import StoppingRule
from atomlearn.estimators.checks import keep
from atomlearn.estimators.classifier import LinearClassifier
from atomlearn.estimators.regressor import LinearRegressor
from atomlearn.estimators.search import CrossValidatedModel, Norms
from atomlearn.estimators.selects_columns import SelectsColumns


class AtomicRegressorCV(CrossValidatedModel, LinearRegressor):
    """``AtomicRegressor`` with norm and alpha chosen by cross-validation, then fitted to all data.

    Each (norm, fold) is one warm-started path from the most regularized alpha on.

    Parameters
    ----------
    norms : str, Norm or list of them, default="l1"
        Candidates, for example ``[norms.KSupport(k) for k in (5, 10, 20)]``.
    alphas : array, optional
        Candidates for alpha (radii, where ``form="constrained"``), for all norms. Default: a grid
        for each norm, from ``paths.largest_useful_level`` of the whole data on.
    n_alphas : int, default=20
        Size of the default grid.
    alpha_ratio : float, optional
        Range of the default grid, see ``paths.level_grid``.
    form, loss, features, fit_intercept, unpenalized, tol, max_iter, solver, stop
        As in ``AtomicRegressor``.
    relax : float, or sequence of them, default=0.0
        Shares of a refit without penalty to choose from, such as (0, 0.25, 0.5, 0.75, 1), see
        ``AtomicRegressor``; the chosen one is ``relax_``.
    adaptive : float, default=0.0
        Above 0, the search is made again with weights from the chosen fit, see
        ``AtomicRegressor``. The weights have seen held-out rows: score by other folds.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None means 5 folds.
    scoring : str, callable or None, default=None
        None means minus the mean held-out loss, weighted. A scorer sees predictions, not X.
    selection : {"best", "one_standard_error", "aic", "bic", "ebic", "mbic"}, default="best"
        "one_standard_error": for the best norm, the most regularized alpha whose mean score is
        within one standard error of the best. An information criterion needs no folds (``cv`` is
        not used): one path over all rows, scored by minus ``paths.information_criterion``.
    refit : bool, default=True
        Whether to fit all rows again. False, for a cv of one split: the fit that was chosen stays,
        of the training rows alone (the hold-out of [A] section 5).
    n_jobs : int, optional
        Number of (norm, fold) at a time, in threads that share X.
    verbose : int, default=0
        Above 0, print one line a step of the final fit.
    observers : sequence of callables, optional
        ``observer(progress)`` is called after each step, of the search too.
    time_limit : float, optional
        Seconds after which the whole fit ends with what it has. Half of it is for the search.
    until : paths.End, optional
        Where the search has gone far enough, as in ``paths.path``; ``paths.NoImprovement()`` is of
        the mean held-out score. Scores of alphas beyond are NaN.

    Attributes
    ----------
    norm_, alpha_, relax_
        The chosen ones; alpha_ is the radius where ``form="constrained"``.
    alphas_ : (n_alphas,) ndarray, or (n_norms, n_alphas) with several norms
    cv_results_ : dict of arrays
        As of ``GridSearchCV``, one entry a (norm, alpha); ``pandas.DataFrame(cv_results_)``.
    coef_, selected_, selected_names_, parts_, intercept_, objective_, gap_, status_, n_passes_,
    n_iter_, history_, results_
        Of the final fit, see ``AtomicRegressor``.
    n_features_in_, feature_names_in_

    Notes
    -----
    Ctrl-C, or ``time_limit``, ends the search: with a warning, alpha is chosen among what was
    scored (other scores are NaN), the final fit follows, and ``status_`` says what ended it.

    References
    ----------
    L. Breiman et al. Classification and Regression Trees. Wadsworth, 1984 (one standard error).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.preprocessing import scale
    >>> from atomlearn import AtomicRegressorCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AtomicRegressorCV(n_alphas=10, cv=3).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.5)
    True
    """

    def __init__(
        self,
        norms: Norms = "l1",
        alphas: Any = None,
        *,
        n_alphas: int = 20,
        alpha_ratio: float | None = None,
        form: Form = "penalized",
        loss: str | Loss = "squared",
        features: str = "linear",
        fit_intercept: bool = True,
        unpenalized: Any = None,
        relax: Any = 0.0,
        adaptive: float = 0.0,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str | Solver = "auto",
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        selection: Rule = "best",
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        observers: Sequence[Observer] | None = None,
        stop: StoppingRule | None = None,
        time_limit: float | None = None,
        until: End | None = None,
    ) -> None:
        keep(self, locals())


class AtomicClassifierCV(SelectsColumns, CrossValidatedModel, LinearClassifier):
    """``AtomicClassifier`` with norm and alpha chosen by cross-validation, then fitted to all data.

    Each (norm, fold) is one warm-started path from the most regularized alpha on; with more than
    two classes, one a class, and all classes share norm and alpha.

    Parameters
    ----------
    norms, alphas, n_alphas, alpha_ratio, selection, refit, n_jobs, verbose, observers, stop,
    time_limit, until
        As in ``AtomicRegressorCV``.
    form, loss, features, fit_intercept, unpenalized, class_weight, tol, max_iter, solver
        As in ``AtomicClassifier``. Class weights are those of all data, also in the folds.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None means 5 folds, stratified by class.
    scoring : str, callable or None, default=None
        None means minus the mean held-out loss, weighted and summed over one-against-rest classes.
        A scorer sees decisions, predictions and probabilities only, not the columns of X.

    Attributes
    ----------
    norm_, alpha_, alphas_, cv_results_
        As of ``AtomicRegressorCV``.
    classes_, coef_, intercept_, objective_, gap_, status_, n_passes_, n_iter_, history_, results_
        Of the final fit, see ``AtomicClassifier``.
    n_features_in_, feature_names_in_

    References
    ----------
    L. Breiman et al. Classification and Regression Trees. Wadsworth, 1984 (one standard error).

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> from atomlearn import AtomicClassifierCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = AtomicClassifierCV(n_alphas=10, cv=3).fit(scale(X), y)
    >>> bool(model.score(scale(X), y) > 0.97)
    True
    """

    def __init__(
        self,
        norms: Norms = "l1",
        alphas: Any = None,
        *,
        n_alphas: int = 20,
        alpha_ratio: float | None = None,
        form: Form = "penalized",
        loss: str | Loss = "logistic",
        features: str = "linear",
        fit_intercept: bool = True,
        unpenalized: Any = None,
        relax: Any = 0.0,
        adaptive: float = 0.0,
        class_weight: Any = None,
        tol: float = 1e-6,
        max_iter: int = 1000,
        solver: str | Solver = "auto",
        cv: Any = None,
        scoring: str | Callable[..., float] | None = None,
        selection: Rule = "best",
        refit: bool = True,
        n_jobs: int | None = None,
        verbose: int = 0,
        observers: Sequence[Observer] | None = None,
        stop: StoppingRule | None = None,
        time_limit: float | None = None,
        until: End | None = None,
    ) -> None:
        keep(self, locals())
