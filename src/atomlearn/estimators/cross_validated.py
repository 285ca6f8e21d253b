"""The estimators whose norm and alpha are chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from atomlearn.estimators.classifier import LinearClassifier
from atomlearn.estimators.regressor import LinearRegressor
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.estimators.selects_columns import SelectsColumns
from atomlearn.estimators.survival import LinearSurvival


@dataclass(eq=False, repr=False)
class AtomicRegressorCV(CrossValidatedModel, LinearRegressor):
    """``AtomicRegressor`` with norm and alpha chosen by cross-validation, then fitted to all data.

    Each (norm, fold) is one warm-started path from the most regularized alpha on.

    Parameters
    ----------
    norms : str, Norm or list of them, default="l1"
        Candidates, for example ``[norms.KSupport(k) for k in (5, 10, 20)]``. With one norm
        that leaves its k open, "ksupport" or ``norms.KSupport()`` (or "elasticnet"), k and alpha
        are searched together, near the best of both alone: mean scores are smoothed over
        neighbouring alphas, and what was not needed is NaN in ``cv_results_``.
    alphas : array, optional
        Candidates for alpha (radii, where ``form="constrained"``), for all norms. Default: a grid
        for each norm, from ``paths.largest_useful_level`` of the whole data on.
    n_alphas : int, default=20
        Size of the default grid.
    alpha_ratio : float, optional
        Range of the default grid, see ``paths.level_grid``.
    form : {"penalized", "squared", "constrained"}, optional
        How all candidates enter. Default: as the first one usually does, "squared" for
        ``KSupport`` and "penalized" for most.
    loss, features, fit_intercept, unpenalized, tol, max_iter, solver, stop
        As in ``AtomicRegressor``.
    relax : float, or sequence of them, default=0.0
        Shares of a refit without penalty to choose from, such as (0, 0.25, 0.5, 0.75, 1), see
        ``AtomicRegressor``; the chosen one is ``relax_``.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None means 5 folds.
    scoring : str, callable or None, default=None
        None means minus the mean held-out loss, weighted. A scorer sees predictions, not X.
    selection : {"best", "one_standard_error"}, default="best"
        "one_standard_error": for the best norm, the most regularized alpha whose mean score is
        within one standard error of the best.
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
    until : interfaces.End, optional
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


@dataclass(eq=False, repr=False)
class AtomicClassifierCV(SelectsColumns, CrossValidatedModel, LinearClassifier):
    """``AtomicClassifier`` with norm and alpha chosen by cross-validation, then fitted to all data.

    Each (norm, fold) is one warm-started path from the most regularized alpha on; with more than
    two classes, one a class, and all classes share norm and alpha.

    Parameters
    ----------
    norms, alphas, n_alphas, alpha_ratio, selection, refit, n_jobs, verbose, observers, stop,
    time_limit, until
        As in ``AtomicRegressorCV``.
    form
        As in ``AtomicRegressorCV``.
    loss, features, fit_intercept, unpenalized, class_weight, tol, max_iter, solver
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


@dataclass(eq=False, repr=False)
class AtomicSurvivalCV(SelectsColumns, CrossValidatedModel, LinearSurvival):
    """``AtomicSurvival`` with norm and alpha chosen by cross-validation, then fitted to all data.

    Each (norm, fold) is one warm-started path from the most regularized alpha on.

    Parameters
    ----------
    norms, alphas, n_alphas, alpha_ratio, selection, refit, n_jobs, verbose, observers, stop,
    time_limit, until
        As in ``AtomicRegressorCV``.
    form
        As in ``AtomicRegressorCV``.
    ties, features, unpenalized, relax, tol, max_iter, solver
        As in ``AtomicSurvival``.
    cv : int, splitter, iterable of (train, test) or None, default=None
        None means 5 folds, with as many events in each: a dozen or more. A splitter sees the events
        for classes.
    scoring : "concordance", callable or None, default=None
        None means minus the mean held-out loss: the partial likelihood of the fold's samples among
        themselves. A scorer ``(model, X, y) -> number`` sees ``model.predict`` only, such as one
        by scikit-survival's ``concordance_index_censored``.

    Attributes
    ----------
    norm_, alpha_, relax_, alphas_, cv_results_
        As of ``AtomicRegressorCV``.
    coef_, unique_times_, baselines_, selected_, selected_names_, objective_, gap_, status_,
    n_passes_, n_iter_, history_, results_
        Of the final fit, see ``AtomicSurvival``.
    n_features_in_, feature_names_in_

    References
    ----------
    N. Simon, J. Friedman, T. Hastie, R. Tibshirani. Regularization paths for Cox's proportional
    hazards model via coordinate descent. Journal of Statistical Software 39(5), 2011.
    P. J. M. Verweij, H. C. van Houwelingen. Cross-validation in survival analysis. Statistics in
    Medicine 12 (1993) 2305-2314.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import AtomicSurvivalCV
    >>> from atomlearn.losses import survival_target
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 20))
    >>> y = survival_target(rng.random(200) < 0.7, rng.exponential(np.exp(-X[:, 3])))
    >>> model = AtomicSurvivalCV(n_alphas=10, cv=3).fit(X, y)
    >>> bool(np.argmax(np.abs(model.coef_)) == 3 and model.score(X, y) > 0.7)
    True
    """

    ties: Literal["efron", "breslow"] = "efron"

    def _strata(self, y: NDArray[Any]) -> tuple[NDArray[Any], bool]:
        """Return the events: folds each have their part of them, where there are enough of both."""
        events: NDArray[Any] = y["event"].astype(np.int64)
        folds = 5 if self.cv is None else self.cv
        rarest = min(int(events.sum()), int((1 - events).sum()))
        return events, not isinstance(folds, int) or rarest >= folds
