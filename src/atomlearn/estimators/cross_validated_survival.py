"""AtomicSurvivalCV: proportional hazards with norm and alpha chosen by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.search import CrossValidatedModel
from atomlearn.estimators.selects_columns import SelectsColumns
from atomlearn.estimators.survival import AtomicSurvival, LinearSurvival


@dataclass(eq=False, repr=False)
class AtomicSurvivalCV(SelectsColumns, CrossValidatedModel, LinearSurvival):
    """``AtomicSurvival`` with norm and alpha chosen by cross-validation, then fitted to all data.

    For each norm and fold, all alphas are fitted as one warm-started path, the most regularized one
    first.

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
    ties : {"efron", "breslow"}, default="efron"
        Treatment of events at the same time.
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
    cv : int, splitter or iterable of (train, test), default=5
        Folds of the search; a number of folds gives each fold its part of the events. A splitter
        sees the events as classes.
    scoring : "concordance", callable or None, default=None
        None: minus the mean held-out loss, the partial likelihood of the rows of a fold among
        themselves. A scorer ``(model, X, y) -> number`` sees only ``model.predict``, such as one by
        ``concordance_index_censored`` of scikit-survival.
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
        Log hazard ratios per unit of each column.
    unique_times_ : (n_times,) ndarray
        The times of events.
    last_time_ : float
        The last time of an event or of censoring.
    baselines_ : dict of Baseline
        Breslow's estimate of the cumulative baseline hazard of each stratum (also with Efron's
        ties, as in scikit-survival).
    selected_ : ndarray of int
        Columns with a coefficient.
    selected_names_ : list of str
        Their names.
    parts_ : list of Part, or None
        For latent norms (overlapping groups): the vectors, one for each group in use, whose sum is
        ``coef_``. None for other norms.
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

    _one_level: ClassVar[type[AtomicModel]] = AtomicSurvival

    ties: Literal["efron", "breslow"] = "efron"

    def _strata(self, y: NDArray[Any]) -> tuple[NDArray[Any], bool]:
        """Return the events, and whether there are enough to stratify the folds by them.

        y : the records of survival times.
        """
        events: NDArray[Any] = y["event"].astype(np.int64)
        folds = 5 if self.cv is None else self.cv
        n_rarer = min(int(events.sum()), int((1 - events).sum()))
        return events, not isinstance(folds, int) or n_rarer >= folds
