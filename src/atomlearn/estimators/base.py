"""AtomicModel: the base of all linear models. It builds problems, runs them, reports, predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from atomlearn._support import check_weight, normalized
from atomlearn.core import (
    Array,
    Design,
    Form,
    Loss,
    Norm,
    Problem,
    Result,
    Settings,
    Task,
    WarmStart,
    as_loss,
    as_norm,
    changed,
    has_link,
    loaded,
    of_checked_data,
    relaxed,
    unwrapped,
)
from atomlearn.estimators import matrices
from atomlearn.estimators.checks import (
    amount_of,
    available_if,
    check_probabilities,
    checked_design,
    checked_l1_ratio,
    checked_shares,
    expanded,
    input_names,
    loss_task,
    norm_for,
    norm_on,
    penalty_of,
    unpenalized_columns,
)
from atomlearn.estimators.coefficients import coefficient_rows, nonzero_coefficients, single_row
from atomlearn.estimators.encoded import was_encoded
from atomlearn.estimators.parameters import FitParameters, entries_of, keeps_blas_single
from atomlearn.estimators.probabilities import log_probabilities
from atomlearn.estimators.targets import (
    Checked,
    checked_labels,
    checked_targets,
    is_text,
    joint_loss,
    offset_of,
    target_of,
)
from atomlearn.estimators.units import units_of
from atomlearn.maps.feature_map import FeatureMap, map_of


def _has_decisions(estimator: Any) -> bool:
    """Return True if the estimator has a decision function, else raise AttributeError."""
    if loss_task(estimator) != "regression" or has_link(as_loss(estimator.loss)):
        return True
    raise AttributeError(f"the loss {estimator.loss!r} has no link: predict returns X w + b itself")


class AtomicModel(FitParameters):
    """Base class of linear models with a mean loss plus alpha * penalty; not for direct use.

    Subclasses add the parameters norm, alpha (or a grid of them) and loss.
    """

    #: scikit-learn's ``SelectFromModel`` reads this name. For "l1" it keeps coefficients of at
    #: least 1e-5, instead of those above the mean.
    penalty: ClassVar[str] = "l1"
    #: The required task of the loss.
    task: ClassVar[Task] = "regression"
    several_targets: ClassVar[bool] = False
    #: Values of the parameters that some estimators do not have.
    fit_intercept: bool = True
    multi_class: str = "ovr"
    class_weight: Any = None
    warm_start: bool = False
    #: Results of the last fit.
    results_: Sequence[Result] = ()
    norm: str | Norm
    loss: str | Loss
    n_features_in_: int
    coef_: NDArray[Any]
    intercept_: Any
    feature_map_: FeatureMap
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        """Return scikit-learn's tags: X may be sparse, y is required and may be a matrix."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = self.several_targets
        return tags

    # --- fitting ----------------------------------------------------------------------------

    def skip_proof(self) -> Self:
        """Skip the proof of optimality if it is long and not needed; by default nothing is done."""
        return self

    def without_search(self) -> AtomicModel:
        """Return an unfitted model with the parameters that ``fit`` chose; by default a clone."""
        model: AtomicModel = clone(self)
        return model

    @keeps_blas_single
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Fit to X (n_samples, n_features) and y (n_samples,), weighted by ``sample_weight``.

        y has numbers, labels, or a structured array for survival, depending on the class.
        ``offset`` (n_samples,), or (n_samples, n_outputs) for several outputs, is added to
        X w + b, such as the logarithm of an exposure.
        """
        settings = self._settings()
        with settings.deadline.kept():
            data = self._checked(X, y, sample_weight, offset)
        joint = joint_loss(self.multi_class, data)
        if joint is not None:
            self._fit_jointly(data, joint, settings)
            return self
        problems = self._problems(data, *self._regularized_by())
        starts = self._starts(len(problems), data.design.shape[1], data.classes)
        share = checked_shares(self.relax)[0]
        results = self._solve(problems, starts, settings)
        # ``relax`` mixes the penalized fit with an unpenalized one of its columns.
        if share:
            results = [relaxed(*pair, share) for pair in zip(problems, results, strict=True)]
        self._set_fitted(data, results)
        return self

    def _fit_jointly(self, data: Checked, loss: Loss, settings: Settings) -> None:
        """Fit all outputs by one problem over a matrix of coefficients.

        data : the checked data. loss : the joint loss of all outputs. settings : those of the
        solver.
        """
        task = matrices.joint_problem(self, data, loss, *self._regularized_by())
        starts = self._starts(1, task.problem.design.shape[1], data.classes)
        results = self._solve([task.problem], starts, settings)
        coef, intercepts = matrices.joint_coefficients(task, results[0], data)
        self._set_coefficients(data, coef, intercepts)
        self._report(results)

    def _checked(self, X: Any, y: Any, sample_weight: Any, offset: Any = None) -> Checked:
        """Return the checked data of a fit, with weights of sum 1.

        X, y, sample_weight, offset : the arguments of ``fit``. Columns are expanded by
        ``features`` (products, curves). With ``standardize``, the result has the means and scales
        of the columns, too (``units``).
        """
        inputs = checked_design(self, X, reset=True)
        loss = as_loss(self.loss)
        if loss.task != self.task:
            kinds = {"classification": "Classifier", "regression": "Regressor"}
            other = f"use Atomic{kinds.get(loss.task, 'Survival')}, or change loss"
            raise ValueError(f"loss={loss.name!r} is a loss for {loss.task}; {other}")
        y, sample_weight = loss.one_target(y, sample_weight)
        weight = normalized(sample_weight, inputs.shape[0])
        data = checked_targets(self, inputs, y, weight, loss, offset)
        if was_encoded(inputs) and unwrapped(inputs).encoding.imputed:
            data.table = inputs
        # Sample weights, but not class weights, decide where the curves of an input have knots.
        data.design = self._columns(inputs, weight)
        if self.standardize:
            for norm in self._candidates():
                if norm.bounds_coefficients:
                    raise ValueError(
                        f"standardize=True scales the columns, and {norm!r} constrains "
                        "coefficients in their units; use standardize=False, with weights in "
                        "norms.L1 if columns are to count by their scale"
                    )
            data.units = units_of(self, data.design, data.weight)
        return data

    def _columns(self, inputs: Design, weight: Array) -> Design:
        """Return the design of the fit: ``inputs`` expanded by ``features``.

        weight : sample weights, from which curves are made.
        """
        linear = self.features == "linear"
        return inputs if linear else expanded(inputs, self.features, weight)

    def _regularized_by(self) -> tuple[str | Norm, float, float]:
        """Return the norm, its amount (alpha, or the radius if constrained), and l1_ratio."""
        return self.norm, amount_of(self), checked_l1_ratio(self.l1_ratio)

    def _problems(
        self, data: Checked, norm: str | Norm, amount: float, l1_ratio: float
    ) -> list[Problem]:
        """Return one problem for each output; they share the design, the norm and the loss.

        data : the checked data. norm : the norm of the penalty. amount : alpha, or the radius if
        constrained. l1_ratio : the share of the norm in the penalty; the rest is squares.
        """
        design = data.design
        norm_of_columns = norm_on(norm_for(self, norm, design), design)
        penalty, tau = penalty_of(norm_of_columns, self._form_of(norm_of_columns), amount, l1_ratio)
        first = of_checked_data(
            data.fitted_design, data.targets[0], data.weight, data.loss, penalty, self.fit_intercept
        )
        free = unpenalized_columns(self, design)
        problems = []
        for output, y in enumerate(data.targets):
            offset = None if data.offset is None else data.offset[:, output]
            problem = replace(first, y=y, tau=tau)
            columns = () if free is None else free
            problems.append(changed(problem, offset=offset, unpenalized=columns))
        return problems

    @property
    def has_matrix_norm(self) -> bool:
        """Whether a candidate norm is of matrices: y of shape (n, 1) then keeps its shape."""
        return any(norm.matrix_shape is not None for norm in self._candidates())

    def _candidates(self) -> list[Norm]:
        """Return the norms of the model, or those from which a search chooses.

        The name "groups" without lists is left out: its groups are those of the table.
        """
        return [] if self.norm == "groups" else [as_norm(self.norm)]

    def _form_of(self, norm: Norm) -> Form:
        """Return the form of the regularizer: ``form``, or the usual one of the norm."""
        return self.form or norm.usual_form

    def _starts(
        self, n_outputs: int, n_columns: int, classes: NDArray[Any] | None = None
    ) -> list[WarmStart | None]:
        """Return a warm start for each output from the last fit, or None for each.

        They are used with ``warm_start`` if the last fit had the same outputs, columns and classes.
        ``n_outputs`` is the number of outputs and ``n_columns`` the number of columns of the
        design.
        """
        former = self.results_
        if (
            self.warm_start
            and len(former) == n_outputs
            and former[0].n_features == n_columns
            and (classes is None or np.array_equal(self.classes_, classes))
        ):
            return [result.warm_start() for result in former]
        return [None] * n_outputs

    def _set_fitted(self, data: Checked, results: list[Result]) -> None:
        """Set the fitted attributes from the result of each output.

        ``coef_`` is (n_features,) for numbers, (n_outputs, n_features) for classes, in the units of
        X. ``data`` is the checked data and ``results`` the solver result of each output.
        """
        entries = []
        intercepts = []
        for result in results:
            columns, weights = entries_of(result)
            intercept = result.intercept
            if data.units is not None:
                weights, intercept = data.units.to_data(columns, weights, intercept)
            entries.append((columns, weights))
            intercepts.append(intercept)
        coef = coefficient_rows(entries, results[0].n_features, map_of(data.design).implicit)
        if data.classes is None:
            self._set_coefficients(data, single_row(coef), float(intercepts[0]))
        else:
            self._set_coefficients(data, coef, np.array(intercepts))
        self._report(results)

    def _set_coefficients(self, data: Checked, coef: Any, intercept: Any) -> None:
        """Set coefficients, intercepts, classes and the columns that are selected.

        coef, intercept : in the units of X and the shapes of the fitted attributes. ``data`` is the
        checked data.
        """
        self.coef_ = coef
        self.intercept_ = intercept
        self.feature_map_ = map_of(data.design)
        if data.classes is not None:
            self.classes_ = data.classes
        self.selected_ = nonzero_coefficients(coef)[0]
        self.selected_names_ = self.feature_map_.names(self.selected_, input_names(self))

    # --- predictions ------------------------------------------------------------------------

    def _expanded(self, design: Design) -> Design:
        """Return the design of new rows, with the columns that the model was fitted to."""
        # If the user made the design, the new rows are expanded already.
        return design if self.features == "linear" else self.feature_map_.apply(design)

    def _linear(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return X coef' + intercept + offset, (n_samples, n_outputs), in the dtype of X."""
        check_is_fitted(self)
        design = self._expanded(checked_design(self, X, reset=False))
        columns, weights = nonzero_coefficients(self.coef_)
        # If most columns are used, X is multiplied by whole rows of coefficients, else only its
        # used columns are multiplied.
        if design.listable and (design.traits.is_sparse or 2 * columns.size > design.shape[1]):
            dense_rows = np.zeros((weights.shape[0], design.shape[1]))
            dense_rows[:, columns] = weights
            linear = [design.predict(row) for row in dense_rows]
        else:
            linear = list(design.product(weights.T, columns).T)
        values = np.stack(linear, axis=1) + self.intercept_
        if offset is not None:
            values += offset_of(offset, values.shape)
        in_dtype: NDArray[Any] = values.astype(design.dtype, copy=False)
        return in_dtype

    @available_if(_has_decisions)
    def decision_function(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return X w + b (+ offset), (n_samples,), or (n_samples, n_outputs) of several outputs.

        Regressors have this method only if their loss has a link, such as Poisson. Otherwise it
        would be the same as ``predict``, and scikit-learn does not expect it.
        """
        values = self._linear(X, offset)
        return values if values.shape[1] > 1 else values[:, 0]

    def predict(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return the label of the largest decision, or the expected target.

        With z = X w + b (+ offset), the expected target is z for the squared loss, and the mean
        that the link assigns to z for other losses, such as exp(z). For survival it is the log
        hazard ratio z; larger means earlier events.
        """
        values = self._linear(X, offset)
        loss = as_loss(self.loss)
        if loss.task != "classification":
            means = loss.mean(values)
            return means if np.ndim(self.intercept_) else means[:, 0]
        has_outputs = values.shape[1] > 1
        codes = np.argmax(values, axis=1) if has_outputs else (values[:, 0] > 0).astype(np.int64)
        labels: NDArray[Any] = self.classes_[codes]
        return labels

    @available_if(check_probabilities)
    def predict_proba(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return P(class | x), shape (n_samples, n_classes); for the logistic loss.

        Two classes: 1 / (1 + exp(-decision)). More classes: the one-vs-rest probabilities,
        normalized to sum 1, or the softmax if the loss is multinomial. ``offset`` is added to the
        decisions, (n_samples,) or None.
        """
        probabilities: NDArray[Any] = np.exp(self.predict_log_proba(X, offset))
        return probabilities

    @available_if(check_probabilities)
    def predict_log_proba(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return log P(class | x), shape (n_samples, n_classes); for the logistic loss.

        ``offset`` is added to the decisions, (n_samples,) or None.
        """
        joint = self.multi_class == "multinomial"
        return log_probabilities(as_loss(self.loss), self._linear(X, offset), joint)

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Return the accuracy of a classifier, or the score of the loss, which is 1 at best.

        The score is R^2 for the squared loss, the concordance for survival, and D^2 for other
        losses: the share of the deviance of the best constant that the model explains. For several
        targets it is the mean of their scores. ``sample_weight`` is the weight of each row, and
        ``offset`` is added to the decisions; each may be None.
        """
        loss = as_loss(self.loss)
        if loss.task == "classification":
            labels = self.predict(X, offset)
            true_labels, known, _ = checked_labels(self, y, len(labels))
            if is_text(known) != is_text(self.classes_):
                raise ValueError(
                    f"y holds labels such as {known[:1].tolist()}, and the classes of the model "
                    f"are {self.classes_[:5].tolist()}; pass labels of one type"
                )
            weight = check_weight(sample_weight, len(labels))
            return float(np.average(true_labels == labels, weights=weight))
        # Numbers and survival times: the score of the loss, averaged over the targets.
        decisions = self._linear(X, offset).astype(np.float64)
        y, sample_weight = loss.one_target(y, sample_weight)
        weight = check_weight(sample_weight, len(decisions))
        targets = target_of(self, y, len(decisions), loss).reshape(decisions.shape)
        scores = [
            loss.score(loss.check_target(target), decision, weight)
            for target, decision in zip(targets.T, decisions.T, strict=True)
        ]
        return float(np.mean(scores))

    def summary(
        self,
        X: Any = None,
        y: Any = None,
        *,
        estimates: Any = None,
        confidence: float = 0.95,
        sample_weight: Any = None,
        groups: Any = None,
    ) -> Any:
        """Return a table of the coefficients, in the units of the data, with intervals.

        It prints as text, shows itself in notebooks, and ``to_frame()`` is a data frame. Rows are
        the intercept, covariates, selected columns, and the reference levels of categories.

        Parameters
        ----------
        X, y : optional
            The data of the fit, from which ``findings.estimates`` computes the intervals. Without
            data the table has coefficients only.
        estimates : Estimates, optional
            A result of ``findings.estimates`` to use instead, such as one for columns that were
            named beforehand.
        confidence : float, default=0.95
            Coverage of the intervals.
        sample_weight : (n_samples,), optional
            The weights of the fit.
        groups : (n_samples,), optional
            Rows that belong together.

        Returns
        -------
        Summary
            With the proved gap, and the condition of the intervals or the reason for none.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from atomlearn import AtomicRegressor
        >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
        >>> summary = AtomicRegressor(alpha=1.5).fit(X, y).summary()
        >>> [row.name for row in summary.rows]
        ['intercept', 'bmi', 's5']
        """
        options: dict[str, Any] = {"estimates": estimates, "confidence": confidence}
        options |= {"sample_weight": sample_weight, "groups": groups}
        return loaded("atomlearn.findings.summary:summary_of")(self, X, y, **options)

    @property
    def partial_fit(self) -> NoReturn:
        """Not available: the optimum depends on all rows together."""
        raise AttributeError(
            f"{type(self).__name__} has no partial_fit, because its optimum depends on all rows; "
            "fit again with warm_start=True, or fit to data on disk: fit('data.store', y) with a "
            "store made by `atomlearn convert`"
        )

    def curve(self, feature: int | str, output: int = 0) -> tuple[Array, Array]:
        """Return values of one input and the curve of the additive model at them.

        ``feature`` is the number of the input, or its name in ``feature_names_in_``. ``output`` is
        the number of the class if there are more than two. The curve is 0 at the origin of the
        input. Only models with additive ``features`` have curves.
        """
        check_is_fitted(self)
        return self.feature_map_.curve(self._input(feature), np.atleast_2d(self.coef_)[output])

    def surface(
        self, first: int | str, second: int | str, output: int = 0
    ) -> tuple[Array, Array, Array]:
        """Return values of two inputs and the surface of their pair, without the two curves.

        ``first``, ``second`` and ``output`` are as in ``curve``. The surface has shape (n_values,
        n_values); it is zero if the pair is not selected. For ``features="anova"``.
        """
        check_is_fitted(self)
        inputs = self._input(first), self._input(second)
        return self.feature_map_.surface(*inputs, np.atleast_2d(self.coef_)[output])

    def _input(self, feature: int | str) -> int:
        """Return the index of the input ``feature``, which is an index or a name."""
        return list(self.feature_names_in_).index(feature) if isinstance(feature, str) else feature
