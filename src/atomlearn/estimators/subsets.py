"""SubsetRegressor and SubsetClassifier: the best subset of columns, with a proof."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Never, Self

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin, clone
from sklearn.exceptions import ConvergenceWarning

from atomlearn._support import Deadline
from atomlearn.core import (
    Form,
    KSupport,
    Loss,
    Norm,
    Problem,
    Settings,
    Solver,
    StoppingRule,
    changed,
)
from atomlearn.estimators.base import AtomicModel
from atomlearn.estimators.checks import checked_design, input_names, whole
from atomlearn.estimators.generation import ScaledModel, problem_of
from atomlearn.estimators.generation_trials import Trials
from atomlearn.estimators.parameters import keeps_blas_single
from atomlearn.estimators.targets import Checked
from atomlearn.estimators.units import units_of
from atomlearn.maps.feature_map import map_of
from atomlearn.subsets.hunt import GAP
from atomlearn.subsets.result import SubsetRecord, SubsetResult
from atomlearn.subsets.solve import (
    MOST_NEAR,
    best_subset,
    checked_ridge,
    search_settings,
    usual_ridge,
)

#: Values of l2 that ``l2="cv"`` tries, as multiples of the default value.
FACTORS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
#: Time limit, in seconds, to prove that a model is the best.
SECONDS = 60.0
#: Share of the objective within which all subsets are listed.
NEAR = 0.01


class Absent:
    """A parameter of the base classes that these models do not have, so that it is not set."""

    def __get__(self, instance: object, owner: type) -> Never:
        """Raise AttributeError with the parameter that replaces this one.

        The arguments are those of any descriptor: the object that is read, and its class.
        """
        raise AttributeError("best subsets have max_nodes instead of max_iter")


@dataclass(eq=False, repr=False)
class SubsetModel(ScaledModel):
    """Base class of the estimators of best subsets; not for direct use.

    The parameters are documented in ``SubsetRegressor``.
    """

    n_features: Any = 10
    l2: Any = None
    loss: str | Loss = "squared"
    groups: Any = None
    _: KW_ONLY
    fit_intercept: bool = True
    standardize: bool = False
    tol: float = GAP
    time_limit: float | None = SECONDS
    max_nodes: int | None = None
    within: Any = NEAR
    cv: int = 5
    # Parameters of other models, which are fixed here.
    max_iter: Any = field(default=Absent(), init=False)
    l1_ratio: Any = field(default=1.0, init=False)
    form: Form | None = field(default="squared", init=False)
    features: str = field(default="linear", init=False)
    relax: Any = field(default=0.0, init=False)
    solver: str | Solver = field(default="auto", init=False)
    stop: StoppingRule | None = field(default=None, init=False)

    #: Several classes share their columns.
    multi_class = "multinomial"
    #: ``problem_of`` reads these; the size of the subset is set afterwards.
    batch = 1
    n_wanted_ = 1
    status_: Any = field(init=False)

    def _candidates(self) -> list[Norm]:
        """Return no norm: best subsets have none."""
        return []

    @keeps_blas_single
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        groups: Any = None,
        order: Any = None,
    ) -> Self:
        """Find the best columns of X (n_samples, n_features) for y, weighted by ``sample_weight``.

        ``offset`` (n_samples,) is added to X w + b. ``groups`` and ``order`` (n_samples,) keep rows
        together if cross-validation chooses ``n_features`` or ``l2``: see
        ``AtomicRegressorCV.fit``.
        """
        request = search_settings(self.tol, self.within, MOST_NEAR, self.time_limit, self.max_nodes)
        data = self._checked(X, y, sample_weight, offset)
        problem, n_units, units = self._problem(data)
        l2 = usual_ridge(problem) if self.l2 in (None, "cv") else checked_ridge(self.l2)
        ridges = [l2 * factor for factor in FACTORS] if self.l2 == "cv" else [l2]
        # All pairs of a size k and a ridge l2; cross-validation chooses among several.
        choices = list(itertools.product(self._sizes(n_units), ridges))
        self.cv_scores_: dict[tuple[int, float], Any] | None = None
        k, l2 = choices[0]
        if len(choices) > 1:
            design = checked_design(self, X, reset=False)
            rows = (y, sample_weight, offset, groups, order)
            self.cv_scores_ = self._scored(choices, design, rows, request.deadline)
            means = {choice: np.mean(scores) for choice, scores in self.cv_scores_.items()}
            # There are no scores if the time ended during the first pair: the middle ridge.
            k, l2 = max(means, key=means.__getitem__, default=(k, ridges[len(ridges) // 2]))
        problem = changed(problem, amount=l2)
        # Observers of the search, and with ``verbose`` a line for each record.
        watch: tuple[Any, ...] = tuple(self.observers or ())
        if self.verbose:
            watch = (*watch, lambda record: print(f"{record.seconds:8.1f} s  {line_of(record)}"))
        request = replace(request, watch=watch)
        result = best_subset(problem, k, request)
        self._record(data, problem, result, units)
        # max_nodes = 0 asks for no proof.
        if not result.status.is_proof and self.max_nodes != 0:
            warnings.warn(
                f"{type(self).__name__}: {result.status}: {100 * result.gap:.2g}%. A larger l2 "
                "or fewer features prove more in the same time",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def _scored(
        self, choices: Sequence[tuple[int, float]], design: Any, rows: Any, deadline: Deadline
    ) -> dict[tuple[int, float], Any]:
        """Return the scores of sizes and ridges on held-out rows, within half of the time limit.

        choices : pairs (n_features, l2). design, rows : columns, and the other arguments of
        ``fit``. deadline : that of the whole fit. The scores (n_folds,) are by pair; after Ctrl-C
        some pairs are missing. In the folds subsets are improved by exchanges, without a proof.
        """
        model = clone(self).skip_proof()
        settings = Settings(deadline=deadline).within(0.5)
        trials = Trials(model, design, rows, self.cv, settings)
        if not trials.folds:
            raise ValueError(
                f"{type(self).__name__} chooses by cross-validation, which needs at least two "
                "rows of each class; give more rows, or one n_features and one l2"
            )
        scores = dict[tuple[int, float], Any]()
        for k, l2 in choices:
            try:
                scores[k, l2] = np.array(trials.score({"n_features": k, "l2": l2}))
            except KeyboardInterrupt:
                warnings.warn(
                    f"{type(self).__name__}: cross-validation ended after {len(scores)} of "
                    f"{len(choices)} pairs of n_features and l2; a longer time_limit tries more",
                    ConvergenceWarning,
                    stacklevel=4,
                )
                break
        return scores

    def skip_proof(self) -> Self:
        """Use the first subset found, improved by exchanges: see ``AtomicModel``."""
        self.set_params(max_nodes=0, within=None, verbose=0, observers=None)
        return self

    def unit_names(self, names: Sequence[str]) -> dict[int, str]:
        """Return the name of each unit of ``result_``: a column, or the columns of a group.

        names : the names of all columns. The keys are the numbers of the units. ``_units`` holds
        the number of each column's unit minus the index of the column.
        """
        unit_columns: dict[int, list[str]] = {}
        for column, (difference, name) in enumerate(zip(self._units.tolist(), names, strict=True)):
            unit_columns.setdefault(column + difference, []).append(name)
        return {unit: " and ".join(members) for unit, members in unit_columns.items()}

    def _sizes(self, n_units: int) -> list[int]:
        """Return the sizes to try, checked: the values of ``n_features`` up to ``n_units``.

        n_units : the number of columns (or groups) to choose from.
        """
        sizes = [whole("n_features", size) for size in np.ravel(self.n_features).tolist()]
        possible = [size for size in sizes if size <= n_units]
        if not possible:
            units = "columns" if self.groups is None else "groups"
            raise ValueError(
                f"n_features={self.n_features!r}, but X has {n_units} {units} to choose from, "
                f"without unpenalized ones; use n_features={n_units} or less, or several, such as "
                "range(1, 11), from which cross-validation chooses one"
            )
        return possible

    def _problem(self, data: Checked) -> tuple[Problem, int, Any]:
        """Return the problem, its number of features (or groups), and the scaling of the columns.

        data : the checked data. The scaling is a ``Units`` object. The method also sets
        ``feature_map_``, and ``_units``: the group of each column, for ``unit_names``.
        """
        self.feature_map_ = map_of(data.design)
        units = units_of(self, data.design, data.weight)
        problem, n_units = problem_of(self, replace(data, design=units.design))
        norm = problem.regularizer.norm
        size = problem.design.shape[1]
        if not isinstance(norm, KSupport):
            raise ValueError(
                "groups must be disjoint: each column in at most one group; remove columns from "
                "all other groups, or use FeatureGenerator(groups=...), whose groups may overlap"
            )
        labels = np.arange(size) if norm.groups is None else norm.partition(size).labels
        # With several classes each column has one coefficient per class, and all have its group.
        units_of_columns = labels[:: len(data.targets)]
        # Differences between group labels and column numbers: without groups they are zeros, which
        # take no space in a file.
        self._units = units_of_columns - np.arange(units_of_columns.size)
        return problem, n_units, units

    def _record(self, data: Checked, problem: Problem, result: SubsetResult, units: Any) -> None:
        """Set the attributes of the fit, in the units of the data.

        problem, result : the best-subset problem and its solution. units : the scaling of the
        columns. ``data`` is the checked data.
        """
        self._take_scaled(problem, result.fitted, units, data.classes)
        self.selected_ = np.unique(result.columns // len(data.targets))
        self.selected_names_ = self.feature_map_.names(self.selected_, input_names(self))
        self.result_ = result
        models = result.near_models
        if models is not None and len(data.targets) == 1:
            models.scales = units.of(models.columns)[1]
            models.around = units.around
        self.results_ = [result.fitted]
        self.status_ = result.status
        self.history_ = result.history
        self.parts_ = None
        self.objective_ = result.objective
        self.lower_bound_ = result.lower_bound
        self.gap_ = max(result.objective - result.lower_bound, 0.0)
        self.l2_ = result.l2
        self.n_selected_ = result.n_features
        self.n_passes_ = result.passes
        self.n_iter_ = max(result.nodes, 1)


def line_of(record: SubsetRecord) -> str:
    """Return the line that is printed for a record during a search."""
    gap = 1.0 - record.lower_bound / record.objective if record.objective else 0.0
    return (
        f"{record.nodes:,} branches, objective {record.objective:.6g}, at least "
        f"{record.lower_bound:.6g}: no subset is better by more than {100 * gap:.2g}%"
    )


@dataclass(eq=False, repr=False)
class SubsetRegressor(RegressorMixin, SubsetModel):
    """min over w, b of  (1 / sum s) sum_i s_i loss(y_i, x_i'w + b) + l2/2 ||w||^2, k columns.

    At most k = ``n_features`` entries of w are not zero: the best subset of columns, with a ridge.
    ``gap_`` bounds the improvement by any other subset.

    Parameters
    ----------
    n_features : int or several, default=10
        Number of columns of the subset (of groups, if ``groups`` is given). From several, such
        as ``range(1, 11)``, cross-validation chooses one.
    l2 : float, "cv" or None, default=None
        Weight of ||w||^2 / 2; the loss is a mean over samples. None: 0.1 times the curvature of the
        mean loss along a usual column, which is 0.1 for the squared loss and standardized columns.
        "cv": cross-validation chooses from 0.03 to 10 times that. A proof takes longer if l2 is
        small.
    loss : str or Loss, default="squared"
        A smooth loss for numbers: "squared", "poisson", ``losses.Huber()``, ...
    groups : list of lists of columns, or array of labels, default=None
        Disjoint groups, each of which is selected as a whole.
    standardize : bool, default=False
        Whether to divide columns by their standard deviations for the fit (and to center dense
        columns, if there is an intercept). Coefficients are in the units of X in any case. Curves
        have variance 1 in any case.
    unpenalized : indices, mask or names of columns, default=None
        Covariates that are in every subset, free of l2, and not counted.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    within : float or None, default=0.01
        List in ``result_.near`` all subsets with an objective within this share of the best one, up
        to 1000 of them. ``result_.near_models`` has the columns that are in all, in some and in
        none of them, and the ranges of coefficients and predictions.
    cv : int, default=5
        Number of folds that choose ``n_features`` and ``l2``, if there are several.
    encode : bool, default=True
        Whether a data frame with words, categories, dates or gaps is encoded as numbers. A category
        becomes a 0/1 column for each label but the first, such as "stage=4". A date becomes the
        number of days since the first date. Gaps are filled with the median, or the most frequent
        label, of the training rows. False: such tables are refused.
    tol : float, default=1e-4
        The search ends if no subset can be better by more than this share of the objective.
    max_nodes : int, default=None
        Maximum number of branches of the search. 0: the first subset, with its bound.
    verbose : int, default=0
        If above 0, print both bounds during the search.
    observers : sequence of callables, default=None
        Called with a ``subsets.SubsetRecord`` after every few branches.
    time_limit : float or None, default=60.0
        Seconds of the search, after which the best subset so far is taken.

    Attributes
    ----------
    coef_ : (n_features_in_,) ndarray
    intercept_ : float
    selected_, selected_names_ : ndarray of int, list of str
    objective_, lower_bound_, gap_ : float
        The objective, a lower bound on the objective of every subset, and their difference.
    l2_, n_selected_ : float, int
        The chosen ridge and size; ``cv_scores_`` has the scores of the choice.
    result_ : SubsetResult
        With ``proved_in``, ``n_proved_out``, ``open_columns``, ``near``.
    status_ : SubsetStatus
    history_, n_passes_, n_iter_, n_features_in_, feature_names_in_
    encoding_ : TableEncoding
        How a data frame with words, dates or gaps was encoded; absent for numbers.

    Notes
    -----
    The subset is best for the objective on these samples. Other samples may have another best
    subset.

    References
    ----------
    A. Argyriou, R. Foygel, N. Srebro. Sparse prediction with the k-support norm. NeurIPS 25, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from atomlearn import SubsetRegressor
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = SubsetRegressor(n_features=4, standardize=True).fit(X, y)
    >>> model.selected_names_
    ['bmi', 'bp', 's3', 's5']
    """

    score = AtomicModel.score


@dataclass(eq=False, repr=False)
class SubsetClassifier(ClassifierMixin, SubsetModel):
    """The classifier of the best ``n_features`` columns, with a proof over all subsets.

    Like ``SubsetRegressor``; several classes share their columns, with the softmax.

    Parameters
    ----------
    n_features : int or several, default=10
        Number of columns of the subset (of groups, if ``groups`` is given). From several, such
        as ``range(1, 11)``, cross-validation chooses one.
    l2 : float, "cv" or None, default=None
        Weight of ||w||^2 / 2; the loss is a mean over samples. None: 0.1 times the curvature of the
        mean loss along a usual column, which is 0.1 for the squared loss and standardized columns.
        "cv": cross-validation chooses from 0.03 to 10 times that. A proof takes longer if l2 is
        small.
    loss : {"logistic", "squared_hinge"} or Loss, default="logistic"
        A loss for classification. "squared_hinge" is max(0, 1 - y z)^2 / 2.
    groups : list of lists of columns, or array of labels, default=None
        Disjoint groups, each of which is selected as a whole.
    standardize : bool, default=False
        Whether to divide columns by their standard deviations for the fit (and to center dense
        columns, if there is an intercept). Coefficients are in the units of X in any case. Curves
        have variance 1 in any case.
    unpenalized : indices, mask or names of columns, default=None
        Covariates that are in every subset, free of l2, and not counted.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    within : float or None, default=0.01
        List in ``result_.near`` all subsets with an objective within this share of the best one, up
        to 1000 of them. ``result_.near_models`` has the columns that are in all, in some and in
        none of them, and the ranges of coefficients and predictions.
    cv : int, default=5
        Number of folds that choose ``n_features`` and ``l2``, if there are several.
    class_weight : dict, "balanced" or None, default=None
        Factors on the sample weights of each class; "balanced" gives all classes the same total
        weight. The loss is the mean under these weights.
    encode : bool, default=True
        Whether a data frame with words, categories, dates or gaps is encoded as numbers. A category
        becomes a 0/1 column for each label but the first, such as "stage=4". A date becomes the
        number of days since the first date. Gaps are filled with the median, or the most frequent
        label, of the training rows. False: such tables are refused.
    tol : float, default=1e-4
        The search ends if no subset can be better by more than this share of the objective.
    max_nodes : int, default=None
        Maximum number of branches of the search. 0: the first subset, with its bound.
    verbose : int, default=0
        If above 0, print both bounds during the search.
    observers : sequence of callables, default=None
        Called with a ``subsets.SubsetRecord`` after every few branches.
    time_limit : float or None, default=60.0
        Seconds of the search, after which the best subset so far is taken.

    Attributes
    ----------
    classes_ : (n_classes,) ndarray
    coef_ : (1, n_features_in_) or (n_classes, n_features_in_) ndarray
    intercept_ : (1,) or (n_classes,) ndarray
    result_ : SubsetResult
        Of several classes its columns are entries of W, feature after feature, and its groups are
        the features.

    References
    ----------
    A. Argyriou, R. Foygel, N. Srebro. Sparse prediction with the k-support norm. NeurIPS 25, 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from atomlearn import SubsetClassifier
    >>> X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    >>> model = SubsetClassifier(n_features=3, tol=0.05, standardize=True).fit(X, y)
    >>> len(model.selected_names_), model.gap_ <= 0.05 * model.objective_
    (3, True)
    """

    task = "classification"

    loss: str | Loss = "logistic"
    _: KW_ONLY
    class_weight: Any = None
    score = AtomicModel.score
