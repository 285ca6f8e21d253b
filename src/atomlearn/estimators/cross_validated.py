"""AtomicRegressorCV and AtomicClassifierCV: norm and alpha chosen by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import MetadataRouter, process_routing

from atomlearn.core.data.parts import check_rows
from atomlearn.core.data.wrappers import Counted
from atomlearn.core.interfaces import Array, Form, Loss, Norm, Solver, WarmStart
from atomlearn.core.norms.groups import Groups
from atomlearn.core.norms.names import named
from atomlearn.core.paths.criteria import CRITERIA, criterion_scores
from atomlearn.core.paths.cross_validation import Rule, cross_validate
from atomlearn.core.paths.ends import End
from atomlearn.core.paths.folds import Fold, Score, held_out_loss, training_part
from atomlearn.core.paths.levels import check_levels, level_grids
from atomlearn.core.paths.relax import checked_shares
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Result
from atomlearn.core.solvers.progress import Observer
from atomlearn.core.solvers.stopping import StoppingRule
from atomlearn.designs import is_opened
from atomlearn.estimators.adaptive import blended, checked_power, dense
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.callbacks import with_callbacks
from atomlearn.estimators.checks import grouped, keep, warn_of_cut
from atomlearn.estimators.classifier import LinearClassifier
from atomlearn.estimators.decided import score_by
from atomlearn.estimators.dependent_rows import splits
from atomlearn.estimators.regressor import LinearRegressor
from atomlearn.estimators.routing import raise_unless_routed, router_of, routing_enabled
from atomlearn.estimators.selects_columns import SelectsColumns
from atomlearn.estimators.targets import Checked
from atomlearn.maps.features import features_named
from atomlearn.norms import as_norm

Norms = str | Norm | Sequence[str | Norm]


class CrossValidatedModel(AtomicModel):
    """The search over (norm, alpha) that both estimators share; not for direct use."""

    norms: Norms
    alphas: Any
    n_alphas: int
    alpha_ratio: float | None
    loss: str | Loss
    cv: Any
    scoring: str | Callable[..., float] | None
    selection: Rule
    refit: bool
    n_jobs: int | None
    until: End | None

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing: fit to the splitter and the scorer, score to the scorer."""
        return router_of(self)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, **params: Any
    ) -> float:
        """Return the value of ``scoring`` on (X, y); accuracy or R^2 where that is None."""
        raise_unless_routed(params, self, "score")
        if self.scoring is None:
            value: float = super().score(X, y, sample_weight, offset)
            return value
        if offset is not None:
            raise ValueError(f"scoring={self.scoring!r} takes no offset; score predict(X, offset)")
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        if routing_enabled():
            params = process_routing(self, "score", **params).scorer.score
        return float(get_scorer(self.scoring)(self, X, y, **params))

    def _route(
        self, sample_weight: Any, groups: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], Any]:
        """Return what goes to the splitter and what goes to the scorer."""
        raise_unless_routed(params, self, "fit")
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        of_rows = {} if groups is None else {"groups": groups}
        if not routing_enabled():
            return of_rows, weights
        routed = process_routing(self, "fit", **weights, **of_rows, **params)
        scorer = routed.scorer.score if self.scoring is not None else {}
        return routed.splitter.split, scorer

    def _candidates(self) -> list[Norm]:
        norms: Any = self.norms
        given = list(norms) if isinstance(norms, (list, tuple)) else [norms]
        if not given:
            raise ValueError("norms is empty; give at least one norm, for example norms='l1'")
        unit = features_named(self.features).kind.unit
        if unit is not None:
            own = Groups(unit)
            given = [own if norm == "groups" else norm for norm in given]
        return [as_norm(norm) for norm in given]

    def _grids(self, problems: Sequence[Problem], norms: Sequence[Norm]) -> Array:
        """Return the levels of each norm, shape (n_norms, n_levels)."""
        if self.alphas is not None:
            return np.tile(check_levels(self.alphas, self.form, "alphas"), (len(norms), 1))
        return level_grids(problems, norms, self.n_alphas, self.alpha_ratio)

    @with_callbacks
    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, groups: Any = None,
        order: Any = None, **params: Any,
    ) -> Self:  # fmt: skip
        """Choose norm and alpha, fit to all of X and y (``refit``); ``params`` are routed metadata.

        ``offset`` (n_samples,) is added to the predictions, held-out ones too. Rows with one value
        of ``groups`` (n_samples,), as of one patient, are in one fold; with ``order`` (n_samples,),
        dates or positions of a series, rows are predicted from earlier ones only.
        """
        settings = self._settings()
        for_splitter, for_scorer = self._route(sample_weight, groups, params)
        data = self._checked(X, y, sample_weight).with_offset(offset)
        folds = self._folds(X, data.y, groups, order, for_splitter)
        score = None if self.scoring is None else score_by(self.scoring, data, for_scorer)
        results = self._search(data, folds, score, settings)
        searched = self.n_passes_
        self._take(data, results)
        self.status_ = self._searched if self.status_.is_converged else self.status_
        self.n_passes_ += searched
        return self

    def _search(
        self,
        data: Checked,
        folds: Sequence[Fold],
        score: Score | None,
        settings: Settings,
    ) -> list[Result]:
        """Choose norm and alpha by held-out scores; return the results of the final fit."""
        candidates = self._candidates()
        names = getattr(self, "feature_names_in_", None)
        norms = [named(as_norm(grouped(norm, data.design)), names) for norm in candidates]
        counted = Counted(data.design)
        problems = [replace(p, design=counted) for p in self._problems(data, norms[0], 1.0)]
        for norm in norms[1:]:
            norm.check(data.design.shape[1])
        power, score = checked_power(self.adaptive), score or held_out_loss(problems)
        self.n_passes_ = 0.0
        chosen, starts = self._choose(problems, norms, folds, score, settings)
        self.norm_ = clone(candidates[chosen], safe=False)
        final = self._final(data, norms[chosen], folds)
        results = self._solve(final, starts, self.n_jobs, settings)
        if power:
            if len(final) > 1:
                raise ValueError(
                    "adaptive: several classes, one against rest, have no weights in common; use "
                    "AtomicClassifier, or one class at a time"
                )
            self.first_results_ = results
            self.norm_ = final[0].regularizer.norm.adapted(dense(results[0]), power)
            _, starts = self._choose(problems, [self.norm_], folds, score, settings)
            final = self._final(data, self.norm_, folds)
            results = self._solve(final, starts, self.n_jobs, settings)
        self.n_passes_ += counted.passes
        return blended(final, results, self.relax_)

    def _choose(
        self,
        problems: Sequence[Problem],
        norms: Sequence[Norm],
        folds: Sequence[Fold],
        score: Score,
        settings: Settings,
    ) -> tuple[int, list[WarmStart | None]]:
        """Choose alpha and the share of a refit; return the number of the norm, and starts."""
        levels, shares = self._grids(problems, norms), checked_shares(self.relax)
        half, rule, more = settings.within(0.5), self.selection, (problems, norms, levels)
        if rule in CRITERIA:
            scores = criterion_scores(*more, rule, half, shares, self.until)
        else:
            scores = cross_validate(*more, folds, score, half, self.n_jobs, shares, self.until)
        chosen, position = scores.choose(rule)
        self.relax_, self.alpha_ = scores.relax, float(levels[chosen, position])
        self.alphas_ = levels[0] if len(norms) == 1 else levels
        self.cv_results_ = scores.table()
        self._searched = scores.status
        warn_of_cut(self, scores.mean, scores.status)
        return chosen, scores.warm_starts(chosen, position)

    def _final(self, data: Checked, norm: Norm, folds: Sequence[Fold]) -> list[Problem]:
        """Return the problems whose solution is kept: over all rows, or the one training part."""
        problems = self._problems(data, norm, self.alpha_)
        return problems if self.refit else [training_part(p, folds[0][0]) for p in problems]

    def _strata(self, y: NDArray[Any]) -> tuple[NDArray[Any], bool]:
        """Return what splitters see, and whether each fold has its part of the values."""
        return y, is_classifier(self)

    def _folds(self, X: Any, y: Any, groups: Any, order: Any, params: dict[str, Any]) -> list[Fold]:
        if self.selection in CRITERIA and self.refit:
            return []
        rows = np.zeros((len(y), 1)) if is_opened(X) else X
        found = splits(self.cv, rows, *self._strata(y), groups, order, params)
        folds = [(check_rows(train, len(y)), check_rows(test, len(y))) for train, test in found]
        if not self.refit and len(folds) != 1:
            raise ValueError(
                f"refit=False keeps the fit of the one training part, but cv gives {len(folds)}; "
                "pass cv=[(train, validation)] or ShuffleSplit(n_splits=1), or refit=True"
            )
        return folds


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
