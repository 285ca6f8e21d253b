"""AtomicRegressor: regression with an atomic norm, certified."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any, Self

from sklearn.base import RegressorMixin

from atomlearn.core import Loss, as_loss, check_weight
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import available_if, checked_design, norm_for, norm_on, penalty_of
from atomlearn.estimators.moments import Moments
from atomlearn.estimators.parameters import OneLevel
from atomlearn.estimators.targets import Checked, checked_target


@dataclass(eq=False, repr=False, kw_only=True)
class LinearRegressor(RegressorMixin, AtomicModel):
    """Shared by ``AtomicRegressor`` and ``AtomicRegressorCV``; not for direct use."""

    loss: str | Loss = "squared"
    fit_intercept: bool = True
    score = AtomicModel.score


def _has_moments(estimator: Any) -> None:
    plain = (
        as_loss(estimator.loss).name == "squared"
        and estimator.features == "linear"
        and estimator.unpenalized is None
        and not estimator.relax
        and not estimator.standardize
    )
    if not plain:
        raise AttributeError(
            f"{type(estimator).__name__} has no partial_fit with these parameters: sums over rows "
            "are enough for the squared loss of plain columns only, without unpenalized=, "
            "standardize= or relax=; fit to all rows with warm_start=True"
        )


@dataclass(eq=False, repr=False)
class AtomicRegressor(OneLevel, LinearRegressor):
    r"""min over w, b of  (1 / sum s) sum_i s_i loss(y_i, x_i'w + b) + alpha * penalty(w).

    penalty = gauge ("penalized") or gauge^2 / 2 ("squared"); for "constrained" there is none and
    gauge(w) <= radius instead. With several targets, y (n_samples, n_tasks), w is a matrix W
    (n_features, n_tasks), the loss is summed over the tasks, and ``norm`` may be one of matrices.

    Parameters
    ----------
    norm : str or Norm, default="l1"
        A name, or an object such as ``norms.KSupport(k=10)`` whose parameters ``set_params`` and
        grid searches reach as ``norm__k``. For several targets "rows" (each feature across all
        tasks, ``norms.RowGroups``), "trace" or any other norm of matrices too; groups of features,
        as in ``norms.Groups``, then hold their coefficients for all tasks.
    alpha : float, default=1.0
        Weight of the penalty.
    form : {"penalized", "squared", "constrained"}, default="penalized"
    radius : float, default=1.0
        Bound on the gauge where ``form="constrained"``; there alpha plays no part.
    loss : str or Loss, default="squared"
        A loss for regression; "squared" is (y - z)^2 / 2. "poisson", "negative_binomial" (counts),
        "gamma", "tweedie" (amounts), whose ``predict`` is exp(X w + b); "huber", "quantile", or
        such as ``losses.Quantile(0.9)``.
    features : str, default="linear"
        "interactions" adds all products x_i x_j, i < j, after the columns of X, "quadratic" the
        squares too, as ``designs.Polynomial.interactions`` does: implicit, never stored.
        "polynomial" are the same columns as "quadratic" scaled as in the kernel (x'y + 1)^2,
        ``designs.Polynomial``. With ``norm=norms.Hierarchy("weak")`` products come only with
        their main effects. "splines", "intersection", "additive_gaussian" and "additive_chi2"
        make the model a sum of curves, one an input, as ``designs.Additive(X, normalize=True)``
        does: ``norm="groups"``, or ``norms.KSupport(k, "inputs")``, selects whole inputs;
        ``curve(j)`` is what input j adds. "anova" adds a surface for each pair of inputs, as
        ``designs.Anova(X, normalize=True)`` does, with groups "terms" and ``surface(i, j)``.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    unpenalized : indices, mask or names of inputs, optional
        Covariates that are not penalized either, such as age and sex: fitted like the intercept,
        and always kept. With ``features`` beyond "linear": their own columns or curves.
    relax : float, default=0.0
        Share of a refit without penalty on what was selected: coef_ is (1 - relax) times the
        penalized fit plus relax times the refit, as glmnet's ``relax``.
    tol : float, default=1e-6
        Relative duality gap to prove.
    max_iter : int, default=1000
        Bound on steps of the solver.
    solver : str or Solver, default="auto"
        "auto" is column generation, over subspaces or over atoms as the norm allows. Others:
        "column_generation", "atom_generation", "fista", "kfcfw", "frank_wolfe".
    warm_start : bool, default=False
        Whether to begin where the last ``fit`` ended.
    verbose : int, default=0
        Above 0, print one line a step.
    observers : sequence of callables, optional
        ``observer(progress)`` is called after each step.
    stop : StoppingRule, optional
        When to end a fit beside ``tol`` and ``max_iter``, such as ``solvers.stopping.Passes(20)``.
    time_limit : float, optional
        Seconds after which the whole fit ends with what it has.

    Attributes
    ----------
    coef_ : (n_features,) ndarray, float64
        With ``features`` beyond "linear" one entry a main effect, square or product; a
        csr_array of one row where these are more than 2^26. Several targets: W', (n_tasks,
        n_features), (1, n_features) for y (n_samples, 1) and a norm of matrices.
    selected_, selected_names_ : ndarray of int, list of str
        The columns with a coefficient, and their names: those of the table or x0, x1, ...,
        products as "age:dose".
    parts_ : list of Part, or None
        For latent norms the parts z_B that coef_ is the sum of, with the sets they belong to.
    intercept_ : float, or (n_tasks,) ndarray
    objective_, gap_ : float
        The mean loss plus penalty at this point, and a proved bound on its distance to the optimum
        (with ``relax``: of the penalized fit).
    status_ : Status
        Why the fit ended; ``str(status_)`` is a sentence.
    n_passes_ : float
        Passes over the data.
    n_iter_ : int
        Points whose gap was computed, the starting point included.
    history_ : list of Record
        One for each of them.
    results_ : list with the one Result
    n_features_in_, feature_names_in_

    Notes
    -----
    ``solve`` minimizes the *sum* over samples: its ``level`` is alpha * sum(sample_weight), or
    alpha * n_samples without weights; its ``radius`` is ours. With ``norm="l1"`` alpha is that
    of ``sklearn.linear_model.Lasso``. Dense X in float32 or float64 (also read-only, memory
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

    several_targets = True

    _moments: tuple[Moments, Any] | None = field(default=None, init=False)

    @available_if(_has_moments)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit to these rows and to those of all earlier calls, of which sums are kept.

        For the squared loss. Sums of products of all pairs of columns take 8 (p + 1)^2 bytes: 0.2
        GB for 5,000 columns, and from 8,192 on they are refused. The optimum is that of all rows
        together; the fit begins at the last one, and its gap is of the problem of the sums.

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
        known, former = self._moments or (None, ())
        if former is not self.results_:
            warnings.warn(
                "this model was fitted by fit, which keeps no sums of its rows: partial_fit begins "
                "anew, with these rows alone; give it all rows",
                UserWarning,
                stacklevel=3,
            )
            known = None
        settings = self._settings()
        intercept = bool(self.fit_intercept)
        design = checked_design(self, X, reset=known is None)
        target = as_loss("squared").check_target(checked_target(self, y, design.shape[0]))
        weight = check_weight(sample_weight, design.shape[0])
        before = Moments.none(design.shape[1]) if known is None else known
        moments = before.joined(design, target, weight)
        given, *amounts = self._regularized_by()
        norm = norm_on(norm_for(self, given, design), design)
        penalty, tau = penalty_of(norm, self._form_of(norm), *amounts)
        problem, rest, lost = moments.problem(penalty, intercept)
        problem = replace(problem, tau=tau)
        start = None if known is None else self.results_[0].warm_start()
        [result] = self._solve([problem], [start], settings)
        result = moments.completed(result, rest, lost, intercept)
        self._take(Checked(design, target, [target], weight, problem.loss), [result])
        self._moments = moments, self.results_
        return self
