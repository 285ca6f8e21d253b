"""CrossValidatedModel: choice of norm and alpha by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import get_scorer
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _raise_for_params,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import _check_method_params

from atomlearn._support import check_share
from atomlearn.core import (
    Array,
    CrossValidation,
    End,
    Fold,
    Form,
    Groups,
    Norm,
    Problem,
    Result,
    Rows,
    Rule,
    Score,
    Settings,
    Status,
    WarmStart,
    as_loss,
    as_norm,
    check_levels,
    check_rows,
    cross_validate,
    held_out_loss,
    is_opened,
    level_grids,
    relaxed,
    training_part,
)
from atomlearn.estimators import matrices
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import (
    checked_design,
    checked_l1_ratio,
    checked_shares,
    norm_for,
    norm_on,
    table_groups,
)
from atomlearn.estimators.dependent_rows import splits
from atomlearn.estimators.lattice import search_lattice
from atomlearn.estimators.parameters import keeps_blas_single
from atomlearn.estimators.prediction_sets import OutOfFold
from atomlearn.estimators.targets import Checked, filled_for, joint_loss, offset_of
from atomlearn.maps.features import features_named


@dataclass(eq=False, repr=False)
class CrossValidatedModel(AtomicModel):
    """Base class of estimators that choose norm and alpha; not for direct use.

    The parameters are documented in ``AtomicRegressorCV``. ``_searched`` is the status of the
    search. ``_out_of_fold`` holds the fits without each fold, at the chosen norm and alpha, for
    prediction intervals.
    """

    norms: str | Norm | Sequence[str | Norm] = "l1"
    alphas: Any = None
    _: KW_ONLY
    form: Form | None = None
    n_alphas: int = 20
    alpha_ratio: float | None = None
    cv: Any = 5
    scoring: str | Callable[..., float] | None = None
    selection: Rule = "best"
    refit: bool = True
    n_jobs: int | None = None
    until: End | None = None
    _out_of_fold: OutOfFold | None = field(default=None, init=False)

    #: The estimator with one norm and one alpha.
    _one_level: ClassVar[type[AtomicModel]]

    def without_search(self) -> AtomicModel:
        """Return an unfitted estimator with the norm, alpha and shares that ``fit`` chose."""
        form = self._form_of(self.norm_)
        parameters = self.get_params(deep=False) | {
            "norm": self.norm_,
            "radius" if form == "constrained" else "alpha": self.alpha_,
            "form": form,
            "l1_ratio": self.l1_ratio_,
            "relax": self.relax_,
        }
        names = self._one_level().get_params(deep=False)
        return self._one_level(**{name: parameters[name] for name in names if name in parameters})

    def get_metadata_routing(self) -> MetadataRouter:
        """Return the routing of metadata to the splitter and the scorer."""
        router = MetadataRouter(owner=self).add_self_request(self)
        fit_to_split = MethodMapping().add(caller="fit", callee="split")
        router.add(splitter=self.cv, method_mapping=fit_to_split)
        if (scorer := self._scorer()) is not None:
            mapping = MethodMapping().add(caller="fit", callee="score")
            mapping.add(caller="score", callee="score")
            router.add(scorer=scorer, method_mapping=mapping)
        return router

    def _scorer(self) -> Any:
        """Return the scorer of scikit-learn, or None if the loss itself gives the score."""
        if self.scoring is None:
            return None
        loss = as_loss(self.loss)
        is_default_concordance = loss.task == "survival" and self.scoring == "concordance"
        return None if is_default_concordance else get_scorer(self.scoring)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, **params: Any
    ) -> float:
        """Return the value of ``scoring`` on (X, y); accuracy or R^2 if it is None.

        ``sample_weight`` is the weight of each row, or None, and ``offset`` added to the
        predictions, or None.
        """
        _raise_for_params(params, self, "score")
        if (scorer := self._scorer()) is None:
            value: float = super().score(X, y, sample_weight, offset)
            return value
        if offset is not None:
            raise ValueError(f"scoring={self.scoring!r} takes no offset; score predict(X, offset)")
        if sample_weight is not None:
            params["sample_weight"] = sample_weight
        if _routing_enabled():
            params = process_routing(self, "score", **params).scorer.score
        return float(scorer(self, X, y, **params))

    def _route(
        self, sample_weight: Any, groups: Any, params: dict[str, Any]
    ) -> tuple[dict[str, Any], Any]:
        """Return the keyword arguments of the splitter and those of the scorer.

        sample_weight, groups : arguments of ``fit``. params : further arguments, which
        scikit-learn's metadata routing distributes.
        """
        _raise_for_params(params, self, "fit")
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        group_arguments = {} if groups is None else {"groups": groups}
        if not _routing_enabled():
            return group_arguments, weights
        routed = process_routing(self, "fit", **weights, **group_arguments, **params)
        return routed.splitter.split, routed.scorer.score if self._scorer() is not None else {}

    def _regularized_by(self) -> tuple[str | Norm, float, float]:
        """Return the norm, its amount and l1_ratio that the search chose."""
        return self.norm_, self.alpha_, self.l1_ratio_

    def _score_by(self, data: Checked, params: dict[str, Any]) -> Score:
        """Return the function (decisions, rows) -> score of these rows, by ``scoring``.

        data : the checked data of the fit. params : arguments of the scorer for all rows. A name
        such as "concordance" is the score of the loss; others are scorers of scikit-learn.
        """
        loss = data.loss
        y = data.y
        scorer = self._scorer()
        if scorer is None:
            return lambda decisions, test: loss.score(
                y[test], np.ravel(decisions), data.weight[test]
            )
        # Scorers of scikit-learn call a model on X. They receive a model that maps decisions to
        # themselves, with the decisions as X.
        identity_model: Any = copy(self)
        identity_model.features = "linear"
        identity_model.n_features_in_ = len(data.targets)
        identity_model.coef_ = np.eye(len(data.targets))
        identity_model.intercept_ = 0.0 if y.ndim == 1 else np.zeros(y.shape[1])
        if data.classes is not None:
            identity_model.classes_ = data.classes
        vars(identity_model).pop("feature_names_in_", None)

        def score(decisions: Array, test: Rows) -> float:
            """Return the score by scikit-learn's scorer of decisions for rows ``test``."""
            params_of_fold = _check_method_params(y, params, indices=test)
            return float(scorer(identity_model, decisions, y[test], **params_of_fold))

        return score

    def _form_of(self, norm: Norm) -> Form:
        """Return the parameter ``form``, or the usual form of the first candidate norm."""
        return self.form or self._candidates()[0].usual_form

    def _candidates(self) -> list[Norm]:
        """Return the candidate norms as objects.

        For "groups", the groups are the columns of each curve, surface, kernel or category.
        """
        norms: Any = self.norms
        norms = list(norms) if isinstance(norms, (list, tuple)) else [norms]
        if not norms:
            raise ValueError("norms is empty; give at least one norm, for example norms='l1'")
        unit = features_named(self.features).kind.unit
        if unit is None and table_groups(self) is not None:
            unit = "inputs"
        return [Groups(unit) if unit and norm == "groups" else as_norm(norm) for norm in norms]

    @keeps_blas_single
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        groups: Any = None,
        order: Any = None,
        **params: Any,
    ) -> Self:
        """Choose norm and alpha, and fit to all of X and y if ``refit``.

        ``offset`` (n_samples,) is added to the predictions, also to held-out ones. Rows with the
        same value of ``groups`` (n_samples,), such as one patient, are in the same fold. With
        ``order`` (n_samples,), dates or positions of a series, rows are predicted from earlier rows
        only. ``params`` are routed metadata. ``sample_weight`` is the weight of each row, or None.
        """
        settings = self._settings()
        for_splitter, for_scorer = self._route(sample_weight, groups, params)
        data = self._checked(X, y, sample_weight, offset)
        folds = self._folds(X, data.y, groups, order, for_splitter)
        score = None if self.scoring is None else self._score_by(data, for_scorer)
        # Several outputs with a joint loss have their own search.
        joint = joint_loss(self.multi_class, data)
        if joint is not None:
            matrices.search_jointly(self, data, joint, folds, score, settings)
            return self
        final, results = self._search(data, folds, score, settings)
        if self.relax_:
            results = [relaxed(*pair, self.relax_) for pair in zip(final, results, strict=True)]
        search_passes = self.n_passes_
        self._set_fitted(data, results)
        self.status_ = self._searched if self.status_.is_converged else self.status_
        self.n_passes_ += search_passes
        if self._out_of_fold is not None:
            self._out_of_fold = self._out_of_fold.counted(len(data.y), groups, order)
        return self

    def predict(self, X: Any, offset: Any = None, interval: float | None = None) -> Any:
        r"""Return predictions, and intervals or sets that cover a share of targets.

        Parameters
        ----------
        X : (n_samples, n_features)
        offset : (n_samples,), optional
        interval : float in (0, 1), optional
            The share, such as 0.9. The result is (prediction, lower, upper) for numbers and counts.
            It is (label, set) for classes: set (n_samples, n_classes) is True for the possible
            labels among ``classes_``. Rows that are hard to classify have more of them. For
            survival it is (log hazard ratio, lower): the share of events at or after the times
            ``lower``.

        Notes
        -----
        Intervals use the fits of the search without each fold. Let m_i be the fit without the fold
        of row i, and q(x) the values |y_i - m_i(x_i)| + m_i(x) for all rows i. The upper end is the
        quantile of q(x) at the share: this is CV+, or the jackknife+ with ``cv=LeaveOneOut()``, or
        the split conformal interval with ``refit=False``. Errors of counts and amounts are divided
        by the square root of the predicted mean.

        The share holds on average over data and new rows of the same distribution, not for each x,
        class or part of the rows (for these see ``findings.prediction_sets``). With ``groups=`` it
        holds for new groups. The theorem guarantees only 2 share - 1, and assumes that the folds
        were not used to choose alpha and norm, as they are here. In practice the coverage is close
        to the share. With ``order=`` a warning is given if errors grow along the series.

        For survival the error of an event at time T is log H(T) + risk, with H the cumulative
        baseline hazard. Its distribution is about the same at every risk. Each event is weighted by
        the inverse of the probability not to be censored before it, from a Cox model of censoring
        whose only column is the risk. For many rows the share is right if censoring depends on the
        times at most through the risk. For few rows nothing is proved.

        References
        ----------
        R. F. Barber, E. J. Candes, A. Ramdas, R. J. Tibshirani. Predictive inference with the
        jackknife+. Annals of Statistics 49 (2021) 486-507. Y. Romano, M. Sesia, E. J. Candes.
        Classification with valid and adaptive coverage. NeurIPS 2020. E. Candes, L. Lei, Z. Ren.
        Conformalized survival analysis. JRSS B 85 (2023) 24-45. Y. Gui, R. Hore, Z. Ren, R. F.
        Barber. Conformalized survival analysis with adaptive cutoffs. Biometrika 111 (2024)
        459-477.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from atomlearn import AtomicRegressorCV
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = AtomicRegressorCV(n_alphas=10).fit(X[:300], y[:300])
        >>> prediction, lower, upper = model.predict(X[300:], interval=0.9)
        >>> bool(0.8 < ((lower <= y[300:]) & (y[300:] <= upper)).mean() < 1)
        True
        """
        predicted = super().predict(X, offset)
        if interval is None:
            return predicted
        check_share("interval", interval, 0.9)
        out_of_fold = self._out_of_fold
        if out_of_fold is None:
            raise ValueError(
                f"{type(self).__name__} has no intervals: the search was cut short, the norm is "
                "one of matrices, y has several targets, the loss has no probabilities, or times "
                "have strata or late entries; use another norm or loss, or a longer time_limit"
            )
        if out_of_fold.drift <= 0.05:
            warnings.warn(
                f"{type(self).__name__}: errors of held-out rows grow along order (p = "
                f"{out_of_fold.drift:.2g}), so intervals made from earlier rows cover fewer than "
                f"{interval:.3g} of later targets",
                UserWarning,
                stacklevel=2,
            )
        design = self._expanded(checked_design(self, X, reset=False))
        shift = (
            None
            if offset is None
            else offset_of(offset, (len(predicted), out_of_fold.intercepts.shape[1]))
        )
        if out_of_fold.loss.task == "classification":
            return predicted, out_of_fold.sets(design, interval, shift)
        # The errors of held-out rows give one or two ends, in the shape of the predictions.
        ends = out_of_fold.interval(design, interval, shift)
        return predicted, *(end.reshape(predicted.shape) for end in ends)

    def _search(
        self, data: Checked, folds: Sequence[Fold], score: Score | None, settings: Settings
    ) -> tuple[list[Problem], list[Result]]:
        """Choose norm and alpha by held-out scores; return the final problems and their results.

        data : the checked data. folds : (training rows, held-out rows) of each. score : the
        function that scores decisions, None for the loss. settings : those of all fits.
        """
        # A norm without k becomes a family of norms, one for each k; other norms stay as they are.
        candidates = self._candidates()
        norms = [norm_for(self, norm, data.design) for norm in candidates]
        families = [norm.candidates(*data.design.shape) for norm in norms]
        has_free_k = [family[0] is not norm for family, norm in zip(families, norms, strict=True)]
        if len(norms) == 1:
            [norms] = families
        elif any(has_free_k):
            raise ValueError(
                f"norms: {candidates[has_free_k.index(True)]!r} has no k, so it must be the only "
                "candidate; pass only this norm, or give each candidate its k"
            )
        norms = [
            norm_on(norm, data.design) if norm.matrix_shape is not None else norm for norm in norms
        ]
        # Passes over the columns are counted. In each fold, gaps of a table are filled with values
        # from its training rows.
        counted_data, counted = data.counted()
        problems = self._problems(counted_data, norms[0], 1.0, 1.0)
        for norm in norms[1:]:
            norm.on(data.design.shape[1])
        score = score or held_out_loss(problems)  # minus the mean loss of held-out rows
        problems_of_folds = [
            self._problems(data_of_fold, norms[0], 1.0, 1.0)
            for data_of_fold in filled_for(data, folds)
        ]
        search = problems, norms, folds, score, settings, has_free_k[0], problems_of_folds
        chosen, starts = self._choose(*search)
        if self._out_of_fold is not None and data.units is not None:
            self._out_of_fold = self._out_of_fold.in_data_units(data.units)
        final = self._problems(data, norms[chosen], self.alpha_, self.l1_ratio_)
        if not self.refit:  # keep the fit of the one training part
            final = [training_part(problem_of_output, folds[0][0]) for problem_of_output in final]
        results = self._solve(final, starts, settings)
        if has_free_k[0]:
            self.norm_ = filled(candidates[0], norms[chosen])
        else:
            self.norm_ = clone(candidates[chosen], safe=False)
        self.n_passes_ = counted.passes
        return final, results

    def _choose(
        self,
        problems: Sequence[Problem],
        norms: Sequence[Norm],
        folds: Sequence[Fold],
        score: Score,
        settings: Settings,
        has_free_k: bool,
        problems_of_folds: Sequence[Sequence[Problem]],
    ) -> tuple[int, list[WarmStart | None]]:
        """Choose norm, l1_ratio, alpha and the share of an unpenalized refit.

        problems : one per output, over all rows. problems_of_folds : the same for each fold. norms
        : the candidates. has_free_k : whether they are one norm with different k. score : the
        function that scores decisions. Returns the index of the norm, and warm starts of the final
        fits. ``folds`` are (training rows, held-out rows) of each fold and ``settings`` the options
        of the fits.
        """
        # One row of the grid for each pair of an l1_ratio and a norm. A level is alpha * l1_ratio:
        # the weight of the norm.
        shares = checked_shares(self.relax)
        trial_settings = settings.within(0.5)  # half of the time limit
        ratios = self._l1_ratios()
        row_ratios = np.repeat(ratios, len(norms))[:, None]
        if self.alphas is None:
            levels = level_grids(problems, norms, self.n_alphas, self.alpha_ratio)
            levels = np.tile(levels, (len(ratios), 1))
            alphas = levels / row_ratios
        else:
            form = problems[0].regularizer.form
            alphas = np.tile(check_levels(self.alphas, form, "alphas"), (row_ratios.size, 1))
            levels = alphas * row_ratios
        # The columns that paths have used, which later paths of the search share.
        pools: dict[int, Any] = {}

        def scored(norms: Sequence[Norm], levels: Array, l1_ratios: Array) -> CrossValidation:
            """Cross-validate norms (m,) with their levels (m, n_levels) and l1_ratios (m,)."""
            positional = folds, score, trial_settings, self.n_jobs, shares, self.until, pools
            keywords = {"l1_ratios": l1_ratios.tolist(), "of_folds": problems_of_folds}
            return cross_validate(problems, norms, levels, *positional, **keywords)

        # Norms that differ in k only: a search over k and alpha that skips most pairs. It cannot
        # compare several shares of a refit, which need the whole grid.
        if has_free_k and len(shares) == 1:
            scores = search_lattice(scored, norms, levels, ratios)
        else:
            scores = scored([*norms] * len(ratios), levels, row_ratios.ravel())
        chosen, position = scores.choose(self.selection)
        self._record_search(scores, alphas.reshape(len(ratios), len(norms), -1))
        self.alpha_ = float(alphas[chosen, position])
        self.l1_ratio_ = float(row_ratios[chosen, 0])
        # The chosen fits without each fold are kept: intervals of predictions are made from them.
        self._out_of_fold = None
        if scores.status.is_converged:
            level = float(scores.levels[chosen, position])
            self._out_of_fold = OutOfFold.from_paths(
                problems, folds, scores.paths[chosen], level, self.relax_, problems_of_folds
            )
        return chosen % len(norms), scores.warm_starts(chosen, position)

    def _record_search(self, scores: CrossValidation, alphas: Array) -> None:
        """Set ``alphas_``, ``relax_`` and ``cv_results_``; warn if the search was cut short.

        scores : the held-out scores of all candidates. ``alphas`` has shape (n_l1_ratios, n_norms,
        n_alphas).
        """
        # Leave out an axis of length 1.
        self.alphas_ = alphas[tuple(0 if size == 1 else slice(None) for size in alphas.shape[:2])]
        self.relax_ = scores.relax
        self.cv_results_ = scores.table()
        self._searched = scores.status
        if not scores.status.is_converged:
            cause = "Ctrl-C" if scores.status is Status.INTERRUPTED else "the time limit"
            progress = f"{np.isfinite(scores.mean).sum()} of {scores.mean.size} candidates"
            warnings.warn(
                f"{type(self).__name__}: the search was cut short by {cause}; alpha is chosen "
                f"among {progress}",
                ConvergenceWarning,
                stacklevel=6,
            )

    def _l1_ratios(self) -> list[float]:
        """Return the candidates for l1_ratio, checked."""
        ratios = [checked_l1_ratio(ratio) for ratio in np.ravel(self.l1_ratio).tolist()]
        if 0.0 in ratios or not ratios:
            raise ValueError(
                f"l1_ratio of a search must be above 0, got {self.l1_ratio!r}; without a norm "
                "use RidgeCV or LogisticRegressionCV of scikit-learn"
            )
        return ratios

    def _strata(self, y: NDArray[Any]) -> tuple[NDArray[Any], bool]:
        """Return the target that the splitter receives, and whether folds are stratified by it.

        y : the target. Subclasses override this: survival times are stratified by their events.
        """
        return y, is_classifier(self)

    def _folds(self, X: Any, y: Any, groups: Any, order: Any, params: dict[str, Any]) -> list[Fold]:
        """Return (training rows, held-out rows) of each fold, checked.

        X, y : the data. groups, order : dependence of the rows, see ``fit``. params : further
        arguments of the splitter. Raises ValueError for several folds with ``refit=False``.
        """
        rows = np.zeros((len(y), 1)) if is_opened(X) else X
        all_folds = splits(self.cv, rows, *self._strata(y), groups, order, params)
        folds = [(check_rows(train, len(y)), check_rows(test, len(y))) for train, test in all_folds]
        if not self.refit and len(folds) != 1:
            raise ValueError(
                f"refit=False keeps the fit of the one training part, but cv gives {len(folds)}; "
                "pass cv=[(train, validation)] or ShuffleSplit(n_splits=1), or refit=True"
            )
        return folds


def filled(norm: Any, chosen: Any) -> Norm:
    """Return a norm whose missing k, also of a norm inside it, is that of the chosen norm.

    norm : the candidate with k=None. chosen : the norm of the family that cross-validation chose.
    """
    values: Any = chosen.get_params()
    parameters = norm.get_params().items()
    # The names of all parameters k without a value, such as "k" or "norm__k" of a norm inside it.
    ks = [name for name, value in parameters if value is None and name.split("__")[-1] == "k"]
    complete: Norm = clone(norm).set_params(**{name: values[name] for name in ks})
    return complete
