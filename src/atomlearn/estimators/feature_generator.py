"""FeatureGenerator: select n features by generation in blocks, and predict with them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import ClassifierTags, RegressorTags

from atomlearn._support import Deadline, check_weight, positive
from atomlearn.core import (
    MAX_ITER,
    TOLERANCE,
    Columns,
    Design,
    Loss,
    Observer,
    PrintProgress,
    Problem,
    Result,
    Settings,
    Status,
    StoppingRule,
    as_loss,
    enter,
    has_probabilities,
)
from atomlearn.estimators.checks import checked_design, expanded, input_names, loss_task, whole
from atomlearn.estimators.coefficients import coefficient_rows, single_row
from atomlearn.estimators.encoded import was_encoded
from atomlearn.estimators.generation import ScaledModel, Selected, Selections, debiased, problem_of
from atomlearn.estimators.generation_trials import (
    RISING,
    SCORED_GAP,
    STRENGTHS,
    Choice,
    Trials,
    sizes_of,
)
from atomlearn.estimators.parameters import keeps_blas_single
from atomlearn.estimators.targets import checked_targets
from atomlearn.estimators.units import units_of
from atomlearn.maps.feature_map import map_of
from atomlearn.maps.features import features_named
from atomlearn.papers.feature_generation import FeatureGeneration
from atomlearn.papers.generated import FINISHED, generated


class FeatureGenerator(ScaledModel):
    """min over d, w, b of  1/2 sum_j w_j^2 / d_j + C sum_i s_i loss(y_i, x_i'w + b).

    d scales the features; it is in [0, 1] with sum d <= batch, and sparse at the optimum. Each pass
    over the data adds the ``batch`` best features as a new block and re-fits, until ``n_features``
    are selected [1]_. ``C`` controls the fit, separately from the sparsity (``n_features``,
    ``batch``), so the selected features are less biased than those of l1.

    Parameters
    ----------
    n_features : int or "auto", default=50
        Number of features to select (of groups, if ``groups`` is given); all if X has fewer.
        "auto": the smallest number that is as good on held-out rows as the best, within 1.5
        standard errors of their difference, or a hundredth of the gain of the best over none. The
        score is minus the log loss if there are probabilities, at the best C for each number. If
        hardly any fold gains, none is selected, with a warning. ``size_choice_`` has the scores.
    batch : "auto" or int, default="auto"
        Features (or groups) added in one pass, B of the paper. A small batch selects better
        features, a large one is faster. "auto": a tenth of ``n_features``, at least 1 and at most
        10, or a 25th if that is more than 10.
    C : float, pair of floats or "auto", default="auto"
        Weight of the loss. A pair: C of the selection, raised tenfold up to 10 until there are
        ``n_features``, and C of the coefficients. "auto": held-out rows choose both by log loss or
        R^2. The features are selected with C from 0.01, 0.1, 1, 10, raised until there are
        ``n_features`` (with 1 if their number is chosen). The coefficients have the smallest C of
        0.003, 0.01, 0.03, ..., 10 within one standard error of the best, over the features of each
        fold; values next to the best one are tried until the score falls. This takes about 15
        times as long as a given C. C is 10 if a class has one row, or there are no probabilities.
    loss : str or Loss, default="logistic"
        "logistic" (with ``predict_proba``) and "squared_hinge" (the loss of the paper) make this a
        classifier. "squared", "poisson" and other losses for numbers make it a regressor. With
        "cox" it models survival: y is structured, and ``predict`` returns the log hazard ratio.
        More than two classes share the selected features: "logistic" is then the softmax, and other
        losses are summed over each class against the rest.
    features : str or (str, dict), default="linear"
        Features to select from. "linear": the columns of X. "polynomial": also all squares and
        products of two columns, scaled as in the kernel (x'y + 1)^2 [1]_. "interactions": the
        columns and products x_i x_j, i < j, not scaled; "quadratic": the squares, too. Products are
        never stored: each pass searches all of them exactly (``designs.Polynomial``).
        "intersection", "additive_gaussian", "additive_chi2" and "splines" select whole inputs, for
        a sum of curves (``designs.Additive(X, normalize=True)``); ``curve(j)`` returns the curve of
        input j. "anova" selects curves of an input and surfaces of two inputs (``designs.Anova``),
        and searches all of them; ``surface(i, j)`` returns one. "cubic": products of up to three
        columns, scaled as in (x'y + 1)^3 (``designs.Cubic``). A pair has settings of the map, as in
        ("intersection", {"exponent": 2}) for the general intersection kernel of [1]_.
    groups : list of lists of columns, array of labels (n_features_in_,), or norm, optional
        Groups of columns of X, each selected as a whole; not with products or "anova". Lists may
        overlap: a feature then has a copy in each of its groups. A norm such as
        ``norms.Trees(...)`` gives its sets as groups (``norms.LatentKSupport``). ``n_features`` and
        ``batch`` count groups.
    encode : bool, default=True
        Whether a data frame with words, categories, dates or gaps is encoded: a column for each
        label but the first, such as "stage=4"; days since the first date; for gaps the median or
        the most frequent label of the training rows. False: such tables are refused.
    tol : float, default=1e-6
        Relative duality gap at which a solution with fewer features counts as optimal.
    selected_tol : float or None, default=5e-7
        Relative gap of the last re-fit, over the selected features only: the accuracy of the
        coefficients of these features. None: a tenth, as in earlier passes.
    max_iter : int, default=1000
        Maximum number of passes.
    verbose : int, default=0
        If above 0, print one line for each pass.
    standardize : bool, default=False
        Whether to divide features by their standard deviations for the selection (and to center
        dense ones, if there is an intercept); coefficients are in the units of X in any case.
        Products are divided by their own deviations, or by those of their columns if there are more
        than 2^22 products. Curves have variance 1 in any case.
    fit_intercept : bool, default=True
        Whether to fit an intercept, which is not penalized.
    observers : sequence of callables, default=None
        ``observer(progress)`` is called after each step.
    stop : StoppingRule, default=None
        A rule that ends the fit in addition to ``tol`` and ``max_iter``, such as
        ``solvers.stopping.Passes(20)``.
    time_limit : float, default=None
        Seconds after which the whole fit ends with the best point so far.
    unpenalized : columns by number, mask or name, default=None
        Covariates that are always in the model, without penalty, and not counted in ``n_features``.
    cv : int or splitter, default=5
        Folds that choose the parameters that are "auto". Levels, knots and scales of curves are
        those of all rows; other features are standardized by the training rows of a fold.
    gamma, r : float > 0, default=1.0
        Parameters of the kernel (gamma x'y + r)^2 of ``features="polynomial"``, and of
        (gamma x'y + r)^3 of ``features="cubic"``.
    outer_tol : float, default=None
        The stop epsilon_c of the paper: the fit ends with the first pass that lowers the objective
        by at most this share of its first value.
    max_blocks : int, default=None
        The stop T of the paper: the fit ends after this number of passes.
    debias : float, default=None
        C of a re-fit over the selected features with only a ridge as penalty, as in section 5.3 of
        the paper [1]_. ``coef_`` has its coefficients and ``debiased_`` its Result; ``objective_``
        and ``gap_`` are those of the selection.

    Attributes
    ----------
    selected_ : (n_selected,) ndarray of int64
        The selected columns in the order of selection, best first. ``get_support()`` returns the
        mask. With products these are columns of the map, in which the columns of X come first. With
        "anova" they are terms, in which the inputs come first; the mask and ``transform`` have the
        inputs of the selected terms.
    selected_names_ : list of str
        The names of the selected columns, products as "age:dose" and squares as "dose^2".
    pairs_ : (n_selected, 2) ndarray of int64
        With products and "anova", the columns (i, j) of X of each term: i = j for a square, j = -1
        for a column of X.
    rounds_ : (n_selected,) ndarray of int64
        The pass that found each selected column, counted from 1.
    n_wanted_ : int
        The requested number of features; ``size_choice_`` has the scores of its choice.
    C_, selected_at_ : float
        C of ``coef_`` and ``objective_``, and of the selection; ``C_choice_`` has the scores of the
        choice. With a small C some features have coefficient 0; reports call them "considered".
    n_selected_ : int
        Number of selected features (or groups): ``n_features``, unless the optimum has fewer.
    scaling_ : (n_features_in_,) ndarray
        The scaling d of the features; zero if not selected.
    coef_ : (1, n_features_in_) ndarray; (n_features_in_,) for regression; float64
        (n_classes, n_features_in_) for more than two classes. With products and curves it has all
        columns of ``feature_map_``, as a csr_array with one row if there are more than 2^26.
    intercept_ : (1,) ndarray; float for regression
    classes_ : (n_classes,) ndarray, for classification
    moments_ : tuple (columns, means, scales)
        The selected columns, and the means and scales by which the selection standardized them.
    scaled_by_ : str
        How the columns were scaled for the selection, in words.
    objective_, gap_ : float
        The objective of the fit, and a proved bound on its distance to the optimum over *all*
        features: the possible loss from stopping at ``n_features``.
    selected_gap_ : float or None
        A proved bound on the relative distance to the optimum over the selected features; None if
        there are none.
    status_ : Status
        COLUMN_LIMIT if ``n_features`` was reached, CONVERGED if the optimum is proved.
    n_passes_ : float
        Passes over the data.
    n_iter_ : int
        Points whose gap was computed, the starting point included.
    history_ : list of Record
        One record for each point whose gap was computed.
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
    For more than two classes w is a matrix W (n_features, n_classes), and w_j^2 is the sum over the
    classes. A feature is selected for all classes, by the l2 norm of its scores. ``C`` multiplies
    the *sum* of the losses, as in the paper and in LIBLINEAR. So the problem is that of
    ``solve(..., norm=KSupport(batch), form="squared", alpha=1 / (C * n_samples))``.

    References
    ----------
    .. [1] M. Tan, I. W. Tsang, L. Wang. Towards ultrahigh dimensional feature selection for big
       data. Journal of Machine Learning Research 15 (2014) 1371-1429.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from atomlearn import FeatureGenerator
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> selector = FeatureGenerator(n_features=5, standardize=True).fit(X, y)
    >>> selector.transform(X).shape
    (569, 5)
    """

    def __init__(
        self,
        n_features: int | str = 50,
        batch: int | str = "auto",
        C: float | tuple[float, float] | str = "auto",
        loss: str | Loss = "logistic",
        features: str = "linear",
        groups: Any = None,
        fit_intercept: bool = True,
        *,
        standardize: bool = False,
        tol: float = TOLERANCE,
        selected_tol: float | None = 5e-7,
        max_iter: int = MAX_ITER,
        verbose: int = 0,
        observers: Sequence[Observer] | None = None,
        stop: StoppingRule | None = None,
        time_limit: float | None = None,
        gamma: float = 1.0,
        r: float = 1.0,
        outer_tol: float | None = None,
        max_blocks: int | None = None,
        debias: float | None = None,
        unpenalized: Any = None,
        cv: Any = 5,
        encode: bool = True,
    ) -> None:
        """Store the parameters, unchecked, as attributes of the same names."""
        arguments = locals()
        del arguments["self"]
        self.__dict__.update(arguments)

    #: Several classes are one problem.
    multi_class = "multinomial"
    #: None if C, or the number of features, was passed by the user.
    C_choice_: Choice | None = None
    size_choice_: Choice | None = None

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags, of a classifier or a regressor by the task of the loss."""
        tags = super().__sklearn_tags__()
        if loss_task(self) in ("regression", "survival"):
            tags.estimator_type = "regressor"
            tags.regressor_tags = RegressorTags()
        else:
            tags.estimator_type = "classifier"
            tags.classifier_tags = ClassifierTags()
        return tags

    def without_search(self) -> FeatureGenerator:
        """Return an unfitted model with the number of features and C that ``fit`` chose."""
        model: FeatureGenerator = clone(self)
        if self.C_choice_ and self.size_choice_:
            size, selection_C = self.size_choice_.chosen
            model.set_params(n_features=size, C=(selection_C[0], self.C_))
        return model

    @keeps_blas_single
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        offset: Any = None,
        groups: Any = None,
        order: Any = None,
    ) -> FeatureGenerator:
        """Select features of X (n_samples, n_features_in) for y, weighted by ``sample_weight``.

        ``offset`` (n_samples,) is added to X w + b. ``groups`` and ``order`` keep rows together
        when held-out rows choose "auto" parameters: see ``AtomicRegressorCV.fit``.
        """
        settings = self._settings()
        selection_Cs, strength = self._values_of_C()
        for name, count in (("n_features", self.n_features), ("batch", self.batch)):
            if count != "auto":
                whole(name, count)
        features_named(self.features)
        inputs = checked_design(self, X, reset=True)
        loss = as_loss(self.loss)
        # C of the coefficients changes their scale. A score that ignores the scale, such as
        # accuracy, cannot choose it; for survival times the choice takes too long.
        scale_matters = loss.task == "regression" or has_probabilities(loss)
        chooses_C = self.C == "auto" and scale_matters and self.debias is None
        self.C_choice_ = self.size_choice_ = None
        weight = check_weight(sample_weight, inputs.shape[0])
        # Check all rows before some are held out.
        offset = checked_targets(self, inputs, y, weight, loss, offset).offset
        # A candidate: a number of features, and the values of C at which they are selected, which
        # rise until there are enough. If the number is given, only the first C varies. Otherwise it
        # is the second-largest one: the largest one selects irrelevant features.
        candidates = [(self.n_features, RISING[start:]) for start in range(len(RISING))]
        if self.n_features == "auto":
            candidates = [
                (size, RISING[-2:-1] if chooses_C else selection_Cs) for size in sizes_of(inputs)
            ]
        rows = (y, sample_weight, offset, groups, order)
        with settings.deadline.kept():
            design = expanded(inputs, self.features, weight, (self.gamma, self.r))
        if chooses_C or self.n_features == "auto":
            trials = self._trials(inputs, rows, design, settings)
            choices = trials.choose(candidates, STRENGTHS if chooses_C else (strength,), strength)
            self.size_choice_, self.C_choice_ = choices
            selection_Cs = choices[0].chosen[1]  # of the chosen (number, values of C)
            strength = choices[1].chosen
        selections = self.selections(inputs, y, sample_weight, offset, settings, design)
        self.take(selections, selection_Cs, strength)
        return self

    def _trials(
        self, inputs: Design, rows: Sequence[Any], design: Design, settings: Settings
    ) -> Trials:
        """Return the cross-validation that chooses C, and the number of features.

        Parameters
        ----------
        inputs : Design
            The checked columns of X.
        rows : sequence
            The arguments y, sample_weight, offset, groups and order of ``fit``.
        design : Design
            The features made of all rows. Folds take their rows of curves: levels, knots and scales
            are those of all rows, as y has no part in them. They make other features again, as
            these are standardized, and missing entries imputed, by the rows of a fold.
        settings : Settings
            Gap and deadline of the whole fit. Half of the time left is for the trials, the other
            half for the final fit.
        """
        trial_settings = replace(
            settings,
            tol=max(settings.tol, SCORED_GAP),
            observers=(),
            deadline=Deadline.after(0.5 * settings.deadline.left),
            search=True,
        )
        is_shared = map_of(design).unit is not None and not was_encoded(inputs)
        return Trials(self, inputs, rows, self.cv, trial_settings, design if is_shared else None)

    def _values_of_C(self) -> tuple[tuple[float, ...], float]:
        """Return the increasing values of C for the selection, and C of the coefficients, checked.

        A single C is used for both, and "auto" is the largest of ``RISING``, unless ``fit`` chooses
        C by trials.
        """
        if np.ndim(self.C) == 0:
            C = RISING[-1] if self.C == "auto" else positive("C", self.C, "weight of the loss")
            return (C,), C
        if len(self.C) != 2:
            raise ValueError(
                "C must be a positive number, a pair (of the selection, of the coefficients) or "
                f"'auto', got {self.C!r}; leave the rest out"
            )
        selection_C, strength = (positive("C", C, "weight of the loss") for C in self.C)
        # If the selection has too few features at its C, it is tried at larger values of
        # ``RISING``.
        return (selection_C, *(C for C in RISING if selection_C < C)), strength

    def selections(
        self,
        inputs: Design,
        y: Any,
        sample_weight: Any,
        offset: Any,
        settings: Settings,
        design: Design | None = None,
    ) -> Selections:
        """Return the selections from these rows, from which ``take`` makes the fitted model.

        inputs : the checked columns of X. y : the target. ``sample_weight`` and ``offset`` are
        (n_samples,) or None. settings : gap, deadline and observers of the fits. design : the
        features of these rows, None if they are still to be made. It sets ``n_wanted_`` and
        ``feature_map_``, but selects nothing yet: the result runs the selection when it is needed.
        """
        weight = check_weight(sample_weight, inputs.shape[0])
        data = checked_targets(self, inputs, y, weight, as_loss(self.loss), offset)
        self.n_wanted_ = self.size_choice_.chosen[0] if self.size_choice_ else self.n_features
        if design is None:
            with settings.deadline.kept():
                design = expanded(inputs, self.features, weight, (self.gamma, self.r))
        self.feature_map_ = map_of(design)
        units = units_of(self, design, weight)
        problem, n_units = problem_of(self, replace(data, design=units.design))
        problem = replace(problem, deadline=settings.deadline)
        if self.n_wanted_ > n_units:
            remedy = "give a smaller number, or n_features='auto'"
            message = f"n_features={self.n_wanted_} of {n_units} candidates selects all; {remedy}"
            warnings.warn(message, UserWarning, stacklevel=4)
        # If groups overlap, the solver sees a copy of each column for each of its groups (the
        # lift).
        lifted, lift = enter(problem, lifts=True)
        n_wanted = min(self.n_wanted_, n_units)
        # If all may be selected there is no limit, and the run ends at the optimum.
        column_limit = n_wanted if n_wanted < n_units else None
        observers = (*settings.observers, *((PrintProgress(every=1),) if self.verbose else ()))
        # With the stopping rules of the paper, the run also starts at zero, as in the paper.
        paper_stops = self.outer_tol is not None or self.max_blocks is not None
        solver = FeatureGeneration(
            outer_tol=self.outer_tol,
            max_blocks=self.max_blocks,
            from_zero=paper_stops,
            proves_all=not settings.search,
        )
        # Where a run ends: gap, iterations, observers, stopping rule, gap of the selected columns.
        ends = (settings.tol, settings.max_iter, observers, settings.stop, self.selected_tol)

        def generate(problem_at_C: Problem) -> Result:
            """Return the result of feature generation for the problem at one C."""
            finish = settings.tol if settings.search else FINISHED
            return generated(problem_at_C, column_limit, n_wanted, *ends, solver, finish)

        # Relative gaps of later fits of the coefficients: over all features, over the selected
        # ones.
        gaps = (settings.tol, self.selected_tol)
        takes_all = column_limit is None
        proves_all = not settings.search
        return Selections(
            data, units, problem, lifted, lift, n_wanted, takes_all, generate, gaps, proves_all
        )

    def take(self, selections: Selections, rising: Sequence[float], strength: float) -> None:
        """Set the attributes of the model that selects features, and fits them, at given C.

        ``rising`` are increasing values of C for the selection. The first one that selects the
        requested number of features is used; if none does, the last one. ``strength`` is C of the
        coefficients. ``selections`` are the selections from the rows of the fit.
        """
        problem = selections.problem
        lift = selections.lift
        n_outputs = len(selections.data.targets)
        self.selected_at_, selection = selections.first(rising)
        self.C_ = strength
        result = selections.fitted(self.selected_at_, strength, selection)
        # If groups overlap, the columns of ``result`` are lifted; those of ``own_result`` are not.
        state = result.state
        selected = Selected.of(selections.lifted, state, lift, self.feature_map_, n_outputs)
        self.n_selected_ = int(state.units)
        self.selected_gap_ = state.selected_gap()
        own_result = replace(result if lift is None else result.lowered(lift), state=None)
        self.debiased_ = None
        if self.debias is not None:
            refit_C = positive("debias", self.debias, "C of the re-fit")
            self.debiased_ = debiased(problem, own_result, refit_C, self.tol)
        fit = self.debiased_ or own_result
        self._take_scaled(problem, fit, selections.units, selections.data.classes)
        self._record_selection(selected)
        self._report_selection(own_result, selection, selections.wanted)

    def _record_selection(self, selected: Selected) -> None:
        """Set ``selected_``, ``rounds_``, ``selected_names_``, ``pairs_`` and ``scaling_``.

        selected : the selected terms, with the pass that found each and the scaling factors.
        """
        map = self.feature_map_
        self.selected_ = selected.terms
        self.rounds_ = selected.rounds
        self.selected_names_ = map.term_names(self.selected_, input_names(self))
        if map.has_pairs:
            self.pairs_ = map.inputs_of(self.selected_)
        of_terms = [(selected.scaled, selected.scaling)]
        rows = coefficient_rows(of_terms, map.n_terms, map.implicit)
        self.scaling_ = single_row(rows)

    def _report_selection(self, result: Result, selection: Result, n_wanted: int) -> None:
        """Set the convergence attributes; warn if the fit ended early or selected too few features.

        Parameters
        ----------
        result : Result
            The final fit of the coefficients, whose convergence is reported. Its status becomes
            that of the cross-validation if this was interrupted or ran out of time.
        selection : Result
            The result of feature generation, which selected the features.
        n_wanted : int
            The requested number of features, at most the number of candidates.
        """
        # A cross-validation that ended early gives its status to the final fit.
        is_cut = selection.status is Status.INTERRUPTED
        if self.C_choice_ and self.C_choice_.cut:
            result.status = self.C_choice_.cut
            is_cut = True
        # No warning of an early end if the selection itself is complete.
        is_complete = selection.converged or selection.status is Status.SELECTED
        self._report(
            [result], complete=(self.n_selected_ >= n_wanted and not is_cut) or is_complete
        )
        if not n_wanted:
            warnings.warn(
                "no number of features predicts held-out rows better than no features, so none is "
                "selected; give n_features to select some",
                UserWarning,
                stacklevel=4,
            )
        if self.n_selected_ < n_wanted and selection.converged and self.n_features != "auto":
            warnings.warn(
                f"the optimum has only {self.n_selected_} of the {n_wanted} requested features; "
                "raise C or batch to select more",
                UserWarning,
                stacklevel=4,
            )

    def _terms_selected(self) -> Columns:
        """Return the numbers of the selected terms of the feature map, ``selected_``."""
        return self.selected_
