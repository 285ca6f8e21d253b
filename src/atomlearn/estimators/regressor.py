"""AtomicRegressor: regression with an atomic norm."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

from sklearn.base import RegressorMixin

from atomlearn._support import check_weight
from atomlearn.core import Loss, as_loss
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import available_if, checked_design, norm_for, norm_on, penalty_of
from atomlearn.estimators.moments import Moments
from atomlearn.estimators.parameters import OneLevel
from atomlearn.estimators.targets import Checked, checked_target


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegressor(RegressorMixin, AtomicModel):
    """Base class of ``AtomicRegressor`` and ``AtomicRegressorCV``; not for direct use."""

    loss: str | Loss = "squared"
    fit_intercept: bool = True
    several_targets: ClassVar[bool] = True
    score = AtomicModel.score


def _has_moments(estimator: Any) -> None:
    """Raise AttributeError unless the parameters are those of least squares on columns of X."""
    is_least_squares = (
        as_loss(estimator.loss).name == "squared"
        and estimator.features == "linear"
        and estimator.unpenalized is None
        and not estimator.relax
        and not estimator.standardize
    )
    if not is_least_squares:
        raise AttributeError(
            f"{type(estimator).__name__} has no partial_fit with these parameters: it needs "
            "loss='squared' and features='linear', without unpenalized=, standardize= or relax=; "
            "fit to all rows with warm_start=True"
        )


@dataclass(eq=False, repr=False)
class AtomicRegressor(OneLevel, LinearRegressor):
    r"""min over w, b of  (1 / sum s) sum_i s_i loss(y_i, x_i'w + b) + alpha * penalty(w).

    The gauge is the value of the norm. The penalty is the gauge (``form="penalized"``) or half its
    square ("squared"). "constrained" has no penalty, but the constraint gauge(w) <= radius. With
    several targets, y (n_samples, n_tasks), w is a matrix W (n_features, n_tasks), the loss is
    summed over the tasks, and ``norm`` may be one of matrices.

    Parameters
    ----------
    norm : str or Norm, default="l1"
        A name, or an object such as ``norms.KSupport(k=10)``, whose parameters ``set_params`` and
        grid searches reach as ``norm__k``. For several targets "rows" (each feature for all tasks,
        ``norms.RowGroups``), "trace" or another norm of matrices; groups of features then hold
        their coefficients for all tasks.
    alpha : float, default=1.0
        Strength of the penalty; the loss is a mean over samples.
    l1_ratio : float, default=1.0
        Share of the norm in the penalty, from 0 to 1. The rest is the squared l2 norm: alpha *
        (l1_ratio * penalty(w) + (1 - l1_ratio) / 2 * ||w||^2). With ``norm="l1"`` it is the
        l1_ratio of scikit-learn's ElasticNet. 0 leaves only the squared l2 norm. The constrained
        form needs 1.
    form : {"penalized", "squared", "constrained"}, default="penalized"
        How the gauge (the value of the norm) enters: itself, half its square, or as a constraint.
    radius : float, default=1.0
        Bound on the gauge if ``form="constrained"``; alpha has no effect then.
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
        or ("intersection", {"exponent": 2}) for the general intersection kernel. With
        ``norm=norms.Hierarchy("weak")`` products enter only with their main effects. ``curve(j)``
        and ``surface(i, j)`` return the curves and surfaces.
    standardize : bool, default=False
        Whether to divide columns by their standard deviations for the fit (and to center dense
        columns, if there is an intercept). Coefficients are in the units of X in any case. Curves
        have variance 1 in any case.
    unpenalized : indices, mask or names of inputs, default=None
        Covariates without a penalty, such as age and sex: they are fitted like the intercept and
        always kept. With ``features`` other than "linear", their columns or curves are unpenalized,
        but not their products and surfaces.
    relax : float, default=0.0
        Share of a refit without penalty over the selected columns: ``coef_`` is (1 - relax) times
        the penalized fit plus relax times the refit, as in glmnet.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
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
    warm_start : bool, default=False
        Whether ``fit`` begins at the solution of the last ``fit``.
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
    coef_ : (n_features,) ndarray, float64
        With ``features`` other than "linear" it has an entry for each main effect, square or
        product; it is a csr_array with one row if there are more than 2^26. For several targets it
        is W' (n_tasks, n_features); it is (1, n_features) for y (n_samples, 1) and a norm of
        matrices.
    selected_, selected_names_ : ndarray of int, list of str
        The columns with a coefficient, and their names: those of the table or x0, x1, ...; products
        have names such as "age:dose".
    parts_ : list of Part, or None
        For latent norms (overlapping groups): the vectors, one for each group in use, whose sum is
        ``coef_``. None for other norms.
    intercept_ : float, or (n_tasks,) ndarray
    objective_, gap_ : float
        The mean loss plus penalty, and a proved bound on its distance to the optimum. With
        ``relax`` they are those of the penalized fit.
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    n_passes_ : float
        Passes over the data.
    n_iter_ : int
        Number of points whose gap was computed, the starting point included.
    history_ : list of Record
        One record for each of these points.
    results_ : list of one Result
    n_features_in_, feature_names_in_
    encoding_ : TableEncoding
        How a data frame with words, dates or gaps was encoded; absent for numbers.

    Notes
    -----
    ``alpha`` and ``radius`` are also those of ``solve``. With ``norm="l1"`` alpha is that of
    ``sklearn.linear_model.Lasso``. Dense X in float32 or float64 (also read-only, memory
    mapped) and sparse CSR and CSC are not copied; a ``Design`` is accepted, too.

    References
    ----------
    .. [V] M. Vinyes, G. Obozinski. Fast column generation for atomic norm regularization. AISTATS
       2017, PMLR 54, 547-556 (the solver of ``solver="auto"``).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import AtomicRegressor, norms
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = AtomicRegressor(norms.KSupport(k=3), alpha=1e-4, form="squared").fit(X, y)
    >>> bool(model.gap_ <= 1e-6 * model.objective_)
    True
    """

    _moments: tuple[Moments, Any] | None = field(default=None, init=False)

    @available_if(_has_moments)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to these rows and to the rows of all earlier calls, from sums over rows.

        Only for the squared loss. The sums of products of all pairs of columns take 8 (p + 1)^2
        bytes: 0.2 GB for 5,000 columns; p is at most 8,191. The optimum is that of all rows
        together. The fit begins at the last solution, and the gap is proved from the sums.

        Parameters
        ----------
        X, y : (n_samples, n_features), (n_samples,)
        sample_weight : (n_samples,), optional

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from atomlearn import AtomicRegressor
        >>> X, y = load_diabetes(return_X_y=True)
        >>> parts = AtomicRegressor(alpha=0.1).partial_fit(X[:300], y[:300])
        >>> parts = parts.partial_fit(X[300:], y[300:])
        >>> whole = AtomicRegressor(alpha=0.1).fit(X, y)
        >>> bool(abs(parts.coef_ - whole.coef_).max() < 0.1)
        True
        """
        # Sums of earlier rows count only if the last fit was made from them.
        earlier, former_results = self._moments or (None, ())
        if former_results is not self.results_:
            warnings.warn(
                "this model was fitted by fit, which keeps no sums over its rows, so partial_fit "
                "fits to the new rows only; call partial_fit with all rows",
                UserWarning,
                stacklevel=3,
            )
            earlier = None
        settings = self._settings()
        intercept = bool(self.fit_intercept)
        design = checked_design(self, X, reset=earlier is None)
        target = as_loss("squared").check_target(checked_target(self, y, design.shape[0]))
        weight = check_weight(sample_weight, design.shape[0])
        sums_before = Moments.none(design.shape[1]) if earlier is None else earlier
        moments = sums_before.joined(design, target, weight)
        # The problem of all rows so far, from their sums, warm-started at the last solution.
        norm, amount, l1_ratio = self._regularized_by()
        norm = norm_on(norm_for(self, norm, design), design)
        penalty, tau = penalty_of(norm, self._form_of(norm), amount, l1_ratio)
        problem, constant, rounding = moments.problem(penalty, intercept)
        problem = replace(problem, tau=tau)
        start = None if earlier is None else self.results_[0].warm_start()
        [result] = self._solve([problem], [start], settings)
        result = moments.completed(result, constant, rounding, intercept)
        self._set_fitted(Checked(design, target, [target], weight, problem.loss), [result])
        self._moments = moments, self.results_
        return self
