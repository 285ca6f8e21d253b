"""The estimators whose norm and alpha are chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.classifier import AtomicClassifier, LinearClassifier
from atomlearn.estimators.regressor import AtomicRegressor, LinearRegressor
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.estimators.selects_columns import SelectsColumns


@dataclass(eq=False, repr=False)
class AtomicRegressorCV(CrossValidatedModel, LinearRegressor):
    """``AtomicRegressor`` with norm and alpha chosen by cross-validation, then fitted to all data.

    For each norm and fold, all alphas are fitted as one warm-started path, the most regularized one
    first. ``y`` may be a matrix (n_samples, n_targets): ``norms="rows"`` selects features for all
    targets together.

    Parameters
    ----------
    norms : str, Norm or list of them, default="l1"
        Candidates, for example ``[norms.KSupport(k) for k in (5, 10, 20)]``. If a single norm
        without k is given, such as "ksupport" or "elasticnet", k and alpha are searched together.
        This search scores only pairs of k and alpha near the best one, by mean scores that are
        smoothed over neighboring alphas. Other pairs are NaN in ``cv_results_``.
    alphas : array, default=None
        Candidates for alpha (radii if ``form="constrained"``), for all norms. None: a grid for each
        norm and l1_ratio, which begins at the smallest alpha at which all coefficients are zero.
    n_alphas : int, default=20
        Size of the default grid.
    alpha_ratio : float, default=None
        Last alpha of the default grid over the first. None: 1e-2 for the penalized form, 1e-4 for
        the squared one, 1e-3 for the constrained one.
    l1_ratio : float or list of float, default=1.0
        Share of the norm in the penalty, above 0 and at most 1. The rest is the squared l2 norm:
        alpha * (l1_ratio * penalty(w) + (1 - l1_ratio) / 2 * ||w||^2). From a list the best value
        is chosen together with alpha and the norm; it is ``l1_ratio_``. The constrained form needs
        1.
    form : {"penalized", "squared", "constrained"}, default=None
        How the gauge (the value of the norm) of all candidates enters: itself, half its square, or
        as a constraint. None: the usual form of the first candidate, "squared" for ``KSupport`` and
        "penalized" for most.
    loss : str or Loss, default="squared"
        A loss for regression. "squared" is (y - z)^2 / 2. "poisson", "negative_binomial" (counts),
        "gamma" and "tweedie" (amounts) have ``predict`` = exp(X w + b). Others: "huber",
        "quantile", or an object such as ``losses.Quantile(0.9)``.
    features : str or (str, dict), default="linear"
        "interactions" adds all products x_i x_j, i < j, after the columns of X. "quadratic" adds
        the squares, too. "polynomial" is "quadratic" with the scales of the kernel (x'y + 1)^2.
        "cubic" adds products of three (``designs.Cubic``). Products are never stored
        (``designs.Polynomial.interactions``). "splines", "intersection", "additive_gaussian" and
        "additive_chi2" make the model a sum of curves, one for each input
        (``designs.Additive(X, normalize=True)``). Then ``norm="groups"``, or
        ``norms.KSupport(k, "inputs")``, selects whole inputs. "anova" adds a surface for each pair
        of inputs (``designs.Anova(X, normalize=True)``); its groups are called "terms". A tuple of
        a name and a dictionary has settings of the features, such as ("splines", {"n_knots": 12}),
        or ("intersection", {"exponent": 2}) for the general intersection kernel.
    standardize : bool, default=False
        Whether to divide columns by their standard deviations for the fit (and to center dense
        columns, if there is an intercept). Coefficients are in the units of X in any case. Curves
        have variance 1 in any case.
    unpenalized : indices, mask or names of inputs, default=None
        Covariates without a penalty, such as age and sex: they are fitted like the intercept and
        always kept. With ``features`` other than "linear", their columns or curves are unpenalized,
        but not their products and surfaces.
    relax : float or sequence of float, default=0.0
        Shares of a refit without penalty over the selected columns, such as (0, 0.25, 0.5, 0.75,
        1): the coefficients are (1 - relax) times the penalized fit plus relax times the refit. The
        chosen one is ``relax_``.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of the search.
    scoring : str, callable or None, default=None
        None: minus the mean held-out loss, weighted. A scorer sees predictions, not X.
    selection : {"best", "one_standard_error"}, default="best"
        "one_standard_error": for the best norm and l1_ratio, the most regularized alpha with a mean
        score within one standard error of the best.
    refit : bool, default=True
        Whether to fit all rows with the chosen parameters. False, for a cv of one split, keeps the
        fit to the training rows.
    until : paths.End, default=None
        The end of each path of the search, such as ``paths.NumberOfFeatures(50)``;
        ``paths.NoImprovement()`` uses the mean held-out score. Scores of later alphas are NaN.
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
    n_jobs : int, default=None
        Number of paths (one for each norm and fold) at a time, in threads that share X.
    verbose : int, default=0
        If above 0, print one line for each step of the final fit.
    observers : sequence of callables, default=None
        ``observer(progress)`` is called after each step, those of the search included.
    stop : StoppingRule, default=None
        A rule that ends the fit in addition to ``tol`` and ``max_iter``, such as
        ``solvers.stopping.Passes(20)``.
    time_limit : float, default=None
        Seconds after which the whole fit ends with the best point so far. Half of them are for the
        search.

    Attributes
    ----------
    norm_ : Norm
        The chosen norm.
    alpha_ : float
        The chosen alpha, or the radius if ``form="constrained"``.
    l1_ratio_ : float
        The chosen share of the norm in the penalty.
    relax_ : float
        The chosen share of a refit.
    alphas_ : (n_alphas,) ndarray
        The grid; a leading axis for several norms, and one before it for several values of
        l1_ratio.
    cv_results_ : dict of arrays
        One entry for each (l1_ratio, norm, alpha), with the keys of ``GridSearchCV``;
        ``pandas.DataFrame(cv_results_)`` is a table.
    coef_ : (n_features,) ndarray, float64
        Coefficients in units of X.
    selected_ : ndarray of int
        Columns with a coefficient.
    selected_names_ : list of str
        Their names.
    parts_ : list of Part, or None
        For latent norms (overlapping groups): the vectors, one for each group in use, whose sum is
        ``coef_``. None for other norms.
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

    Notes
    -----
    Ctrl-C, or ``time_limit``, ends the search with a warning. Then alpha is chosen among the values
    with scores (other scores are NaN), the final fit follows, and ``status_`` has the reason.

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

    _one_level: ClassVar[type[AtomicModel]] = AtomicRegressor


@dataclass(eq=False, repr=False)
class AtomicClassifierCV(SelectsColumns, CrossValidatedModel, LinearClassifier):
    """``AtomicClassifier`` with norm and alpha chosen by cross-validation, then fitted to all data.

    For each norm and fold, all alphas are fitted as one warm-started path, the most regularized one
    first. With more than two classes there is one path for each class; all classes share norm and
    alpha.

    Parameters
    ----------
    norms : str, Norm or list of them, default="l1"
        Candidates, for example ``[norms.KSupport(k) for k in (5, 10, 20)]``. If a single norm
        without k is given, such as "ksupport" or "elasticnet", k and alpha are searched together.
        This search scores only pairs of k and alpha near the best one, by mean scores that are
        smoothed over neighboring alphas. Other pairs are NaN in ``cv_results_``.
    alphas : array, default=None
        Candidates for alpha (radii if ``form="constrained"``), for all norms. None: a grid for each
        norm and l1_ratio, which begins at the smallest alpha at which all coefficients are zero.
    n_alphas : int, default=20
        Size of the default grid.
    alpha_ratio : float, default=None
        Last alpha of the default grid over the first. None: 1e-2 for the penalized form, 1e-4 for
        the squared one, 1e-3 for the constrained one.
    l1_ratio : float or list of float, default=1.0
        Share of the norm in the penalty, above 0 and at most 1. The rest is the squared l2 norm:
        alpha * (l1_ratio * penalty(w) + (1 - l1_ratio) / 2 * ||w||^2). From a list the best value
        is chosen together with alpha and the norm; it is ``l1_ratio_``. The constrained form needs
        1.
    form : {"penalized", "squared", "constrained"}, default=None
        How the gauge (the value of the norm) of all candidates enters: itself, half its square, or
        as a constraint. None: the usual form of the first candidate, "squared" for ``KSupport`` and
        "penalized" for most.
    loss : {"logistic", "squared_hinge"} or Loss, default="logistic"
        A loss for classification. "squared_hinge" is max(0, 1 - y z)^2 / 2.
    multi_class : {"ovr", "multinomial"}, default="ovr"
        How more than two classes are fitted: one against the rest, or together, for which
        ``norms="rows"`` selects features of all classes. Two classes are one problem either way.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights of each class; "balanced" gives all classes the same total
        weight. The loss is the mean under these weights: ``C`` of scikit-learn is 1 / (alpha * sum
        of weights). Folds use the weights of all rows.
    features : str or (str, dict), default="linear"
        "interactions" adds all products x_i x_j, i < j, after the columns of X. "quadratic" adds
        the squares, too. "polynomial" is "quadratic" with the scales of the kernel (x'y + 1)^2.
        "cubic" adds products of three (``designs.Cubic``). Products are never stored
        (``designs.Polynomial.interactions``). "splines", "intersection", "additive_gaussian" and
        "additive_chi2" make the model a sum of curves, one for each input
        (``designs.Additive(X, normalize=True)``). Then ``norm="groups"``, or
        ``norms.KSupport(k, "inputs")``, selects whole inputs. "anova" adds a surface for each pair
        of inputs (``designs.Anova(X, normalize=True)``); its groups are called "terms". A tuple of
        a name and a dictionary has settings of the features, such as ("splines", {"n_knots": 12}),
        or ("intersection", {"exponent": 2}) for the general intersection kernel.
    standardize : bool, default=False
        Whether to divide columns by their standard deviations for the fit (and to center dense
        columns, if there is an intercept). Coefficients are in the units of X in any case. Curves
        have variance 1 in any case.
    unpenalized : indices, mask or names of inputs, default=None
        Covariates without a penalty, such as age and sex: they are fitted like the intercept and
        always kept. With ``features`` other than "linear", their columns or curves are unpenalized,
        but not their products and surfaces.
    relax : float or sequence of float, default=0.0
        Shares of a refit without penalty over the selected columns, such as (0, 0.25, 0.5, 0.75,
        1): the coefficients are (1 - relax) times the penalized fit plus relax times the refit. The
        chosen one is ``relax_``.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    cv : int, splitter or iterable of (train, test), default=5
        Folds of the search; a number of folds is stratified by class.
    scoring : str, callable or None, default=None
        None: minus the mean held-out loss, weighted and summed over one-against-rest classes. A
        scorer sees decisions, predictions and probabilities, not the columns of X.
    selection : {"best", "one_standard_error"}, default="best"
        "one_standard_error": for the best norm and l1_ratio, the most regularized alpha with a mean
        score within one standard error of the best.
    refit : bool, default=True
        Whether to fit all rows with the chosen parameters. False, for a cv of one split, keeps the
        fit to the training rows.
    until : paths.End, default=None
        The end of each path of the search, such as ``paths.NumberOfFeatures(50)``;
        ``paths.NoImprovement()`` uses the mean held-out score. Scores of later alphas are NaN.
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
    n_jobs : int, default=None
        Number of paths (one for each norm and fold) at a time, in threads that share X.
    verbose : int, default=0
        If above 0, print one line for each step of the final fit.
    observers : sequence of callables, default=None
        ``observer(progress)`` is called after each step, those of the search included.
    stop : StoppingRule, default=None
        A rule that ends the fit in addition to ``tol`` and ``max_iter``, such as
        ``solvers.stopping.Passes(20)``.
    time_limit : float, default=None
        Seconds after which the whole fit ends with the best point so far. Half of them are for the
        search.

    Attributes
    ----------
    norm_ : Norm
        The chosen norm.
    alpha_ : float
        The chosen alpha, or the radius if ``form="constrained"``.
    l1_ratio_ : float
        The chosen share of the norm in the penalty.
    relax_ : float
        The chosen share of a refit.
    alphas_ : (n_alphas,) ndarray
        The grid; a leading axis for several norms, and one before it for several values of
        l1_ratio.
    cv_results_ : dict of arrays
        One entry for each (l1_ratio, norm, alpha), with the keys of ``GridSearchCV``;
        ``pandas.DataFrame(cv_results_)`` is a table.
    classes_ : (n_classes,) ndarray
        The labels, sorted.
    coef_ : (1, n_features) or (n_classes, n_features) ndarray, float64
        Coefficients in units of X.
    selected_ : ndarray of int
        Columns with a coefficient.
    selected_names_ : list of str
        Their names.
    parts_ : list of Part, or None
        For latent norms (overlapping groups): the vectors, one for each group in use, whose sum is
        ``coef_``. None for other norms.
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

    multi_class: str = field(default="ovr", kw_only=True)

    _one_level: ClassVar[type[AtomicModel]] = AtomicClassifier
