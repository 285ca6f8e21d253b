"""AtomicModel: what regressor and classifier share. It builds problems, runs them, reports."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from atomlearn.core.data.coefficients import coefficient_rows, nonzero_coefficients, single_row
from atomlearn.core.interfaces import Array, Deadline, Design, Form, Norm, Solver, WarmStart
from atomlearn.core.norms.names import named
from atomlearn.core.paths.relax import checked_shares
from atomlearn.core.paths.settings import Settings
from atomlearn.core.paths.shared import task_of
from atomlearn.core.problem.checks import positive
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.problem.result import Result, Status
from atomlearn.core.solvers.observers import PrintProgress
from atomlearn.core.solvers.progress import Observer, Progress
from atomlearn.core.solvers.schedule import drive
from atomlearn.core.solvers.stopping import StoppingRule, check_rule
from atomlearn.estimators.adaptive import adapted, blended, checked_power
from atomlearn.estimators.callbacks import CallbackSupport, Steps, classes_at_step
from atomlearn.estimators.checks import (
    amount_of,
    as_solver,
    checked_design,
    free_columns,
    grouped,
    input_names,
    names_of,
    whole,
)
from atomlearn.estimators.targets import Checked, offset_of
from atomlearn.maps.feature_map import FeatureMap, map_of
from atomlearn.norms import as_norm


class AtomicModel(CallbackSupport, BaseEstimator):
    """(1 / sum s) sum_i s_i loss_i + alpha * penalty: the shared part; not for direct use.

    Subclasses have the parameters norm, form, tol, max_iter, solver, fit_intercept and verbose.
    """

    norm: str | Norm
    form: Form
    fit_intercept: bool
    tol: float
    max_iter: int
    verbose: int
    #: scikit-learn's ``SelectFromModel`` asks by this name whether zeros are exact: then it keeps
    #: coefficients from 1e-5 on, and not those above the mean.
    penalty: ClassVar[str] = "l1"
    #: What the parameters of these names are where an estimator has none.
    observers: Sequence[Observer] | None = None
    stop: StoppingRule | None = None
    time_limit: float | None = None
    unpenalized: Any = None
    relax: Any = 0.0
    adaptive: float = 0.0
    solver: str | Solver = "auto"
    features: str = "linear"
    multi_class: str = "ovr"
    warm_start: bool = False
    n_jobs: int | None = None
    #: scikit-learn's callbacks, while a fit is told to them.
    _steps: Steps | None = None
    #: Of the last fit, if there was one.
    results_: Sequence[Result] = ()
    n_features_in_: int
    coef_: NDArray[Any]
    intercept_: Any
    feature_map_: FeatureMap
    classes_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _settings(self) -> Settings:
        """Return how problems are solved; the time limit of the fit begins now."""
        tol = positive("tol", self.tol, "relative duality gap to prove, for example 1e-6")
        solver = as_solver(self.solver, tol)
        if self.stop is not None:
            check_rule(self.stop)
        observers = () if self.observers is None else tuple(self.observers)
        limit, deadline = self.time_limit, Deadline.never()
        if limit is not None:
            deadline = Deadline.after(positive("time_limit", limit, "seconds, for example 60"))
        steps = whole("max_iter", self.max_iter)
        settings = Settings(tol, steps, solver, self.stop, observers, deadline)
        return settings if self._steps is None else self._steps.added_to(settings)

    def _at_step(self, problem: Problem, progress: Progress, y: Any) -> dict[str, Any] | None:
        """Return what this model would have, were it fitted at this step, for callbacks."""
        more = classes_at_step(y) if is_classifier(self) else {}
        if more is None or np.ndim(y) > 1:
            return None
        warm, design = progress.warm_start(), problem.design
        map = map_of(design)
        rows = coefficient_rows(
            [(warm.columns, warm.weights)], design.shape[1], design.dtype, map.implicit
        )
        coef = rows if more else single_row(rows)
        intercept = np.array([warm.intercept]) if more else warm.intercept
        return {"coef_": coef, "intercept_": intercept, "feature_map_": map, **more}

    def _problems(self, data: Checked, norm: str | Norm, amount: float) -> list[Problem]:
        """Return one checked problem an output; the parts are the same objects in all of them."""
        design = data.design
        the_norm = named(as_norm(grouped(norm, design)), input_names(self))
        if design.matrix_shape is None:  # W has one column, unless the norm knows its shape
            shape: Any = the_norm.matrix_shape or (design.shape[1], 1)
            the_norm = the_norm.on(design.shape[1], shape)
        penalty = Regularizer(the_norm, self.form, amount)
        first = Problem.of_checked(
            design, data.targets[0], data.weight, data.loss, penalty, self.fit_intercept
        )
        others = (replace(first, y=y) for y in data.targets[1:])
        free = free_columns(self, design)
        offsets = [None] * len(data.targets) if data.offset is None else data.offset.T
        return [
            problem.with_offset(offset).freed(free)
            for problem, offset in zip([first, *others], offsets, strict=True)
        ]

    def _regularized_by(self) -> tuple[str | Norm, float]:
        """Return the norm, and alpha or radius, of the fit."""
        return self.norm, amount_of(self)

    def _fit(self, data: Checked, settings: Settings) -> None:
        """Fit ``norm`` at ``alpha`` (or ``radius``) to checked data."""
        problems = self._problems(data, self.norm, amount_of(self))
        starts = self._starts(len(problems), data.design.shape[1], data.classes)
        power, [share] = checked_power(self.adaptive), checked_shares(self.relax)[:1]
        results = self._solve(problems, starts, settings)
        if power:
            self.first_results_ = results
            problems = [adapted(p, r, power) for p, r in zip(problems, results, strict=True)]
            starts = [result.warm_start() for result in results]
            results = self._solve(problems, starts, settings)
        self._take(data, blended(problems, results, share))

    def _starts(
        self, n_outputs: int, n_columns: int, classes: NDArray[Any] | None = None
    ) -> list[WarmStart | None]:
        """Return where the last fit ended, by output; None where that was of other things."""
        former = self.results_
        if (
            self.warm_start
            and len(former) == n_outputs
            and all(result.n_features == n_columns for result in former)
            and (classes is None or np.array_equal(self.classes_, classes))
        ):
            return [result.warm_start() for result in former]
        return [None] * n_outputs

    def _take(self, data: Checked, results: list[Result]) -> None:
        """Set what was fitted: coefficients and intercepts, in the shapes of the task."""
        coef = coefficients_of(results, data.design)
        if data.classes is not None:
            self.classes_ = data.classes
            self.coef_, self.intercept_ = coef, np.array([result.intercept for result in results])
        else:
            self.coef_ = single_row(coef)
            self.intercept_ = float(results[0].intercept)
        self._report(results, design=data.design)

    def _solve(
        self,
        problems: Sequence[Problem],
        warm: Sequence[WarmStart | None],
        settings: Settings,
    ) -> list[Result]:
        """Return one result a problem; they take their steps in turns.

        After Ctrl-C those that have no point yet only get their starting point.
        """
        if self.verbose:
            settings = replace(settings, observers=(*settings.observers, PrintProgress(every=1)))
        tasks = [
            task_of(problem, np.array([problem.regularizer.amount]), settings, warm=start)
            for problem, start in zip(problems, warm, strict=True)
        ]
        drive(problems[0].design, tasks, effective_n_jobs(self.n_jobs))
        results = [result for task in tasks for result in task.results]
        if not results:
            raise KeyboardInterrupt("interrupted before the first point")
        if len(results) < len(tasks):
            begun = replace(settings, max_iter=0, observers=(), deadline=Deadline.after(0.0))
            results = []
            for task, problem, start in zip(tasks, problems, warm, strict=True):
                result = next(iter(task.results), None) or begun.run(problem, start)
                result.status = result.status if task.results else Status.INTERRUPTED
                results.append(result)
        for result in results:
            result.state = None
        return results

    def _expanded(self, design: Design) -> Design:
        """Return the design of new rows, with the columns that the model was fitted to."""
        # A design that was made by the user comes made again.
        return design if self.features == "linear" else self.feature_map_.apply(design)

    def curve(self, feature: int | str, output: int = 0) -> tuple[Array, Array]:
        """Return values of one input and what the additive model adds at them.

        ``feature`` : its number, or its name in ``feature_names_in_``; ``output`` : the class, of
        more than two. The curve is 0 at the origin of the input; for models whose ``features`` are
        additive.
        """
        check_is_fitted(self)
        return self.feature_map_.curve(self._input(feature), self._coefficients_of(output))

    def _coefficients_of(self, output: int) -> Any:
        return (self.coef_[None] if self.coef_.ndim == 1 else self.coef_)[output]

    def _input(self, feature: int | str) -> int:
        return list(self.feature_names_in_).index(feature) if isinstance(feature, str) else feature

    def surface(
        self, first: int | str, second: int | str, output: int = 0
    ) -> tuple[Array, Array, Array]:
        """Return values of two inputs, and what their pair adds at them beyond the two curves.

        Inputs and ``output`` as in ``curve``; the last array is (n_values, n_values) and zero
        where the pair is not selected. For ``features="anova"``.
        """
        check_is_fitted(self)
        inputs = self._input(first), self._input(second)
        return self.feature_map_.surface(*inputs, self._coefficients_of(output))

    def _report(
        self, results: list[Result], complete: bool | None = None, design: Design | None = None
    ) -> None:
        """Set what is known of the fit; several outputs report the sum of their objectives.

        ``complete`` None means: where every gap is proved. Else the fit says so itself.
        ``design`` is that of the fit, whose columns the coefficients belong to.
        """
        several = len(results) > 1
        self.results_ = results
        self.parts_ = [result.parts for result in results] if several else results[0].parts
        if design is not None:
            self.feature_map_ = map_of(design)
            self.selected_ = np.unique(np.concatenate([nonzeros_of(r)[0] for r in results]))
            self.selected_names_ = names_of(self, self.feature_map_, self.selected_)
        self.gap_ = float(sum(result.gap for result in results))
        self.objective_ = float(sum(result.objective for result in results))
        self.status_ = _joint_status(results)
        self.n_passes_ = float(sum(result.passes for result in results))
        self.n_iter_ = max(len(result.history) for result in results)
        self.history_ = [r.history for r in results] if several else results[0].history
        if not (self.status_.is_converged if complete is None else complete):
            relative = max(result.relative_gap for result in results)
            warnings.warn(
                f"{type(self).__name__}: {self.status_}. Relative gap proved: {relative:.2e}, "
                f"asked for: tol={self.tol:.2e}",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _linear(self, X: Any, offset: Any = None) -> NDArray[Any]:
        """Return X coef' + intercept + offset, (n_samples, n_outputs), in the dtype of X."""
        check_is_fitted(self)
        design = self._expanded(checked_design(self, X, reset=False))
        columns, weights = nonzero_coefficients(self.coef_)
        if design.listable and 2 * columns.size > design.shape[1]:
            whole = np.zeros((weights.shape[0], design.shape[1]))
            whole[:, columns] = weights
            linear = [design.predict(row) for row in whole]
        else:
            block = design.gather(columns)
            linear = [block.dot(row) for row in weights]
        values = np.stack(linear, axis=1) + self.intercept_
        if offset is not None:
            values += offset_of(offset, values.shape)
        in_dtype: NDArray[Any] = values.astype(design.dtype, copy=False)
        return in_dtype


def coefficients_of(results: Sequence[Result], design: Design) -> Any:
    """Return the coefficients of all outputs, (n_outputs, n_columns), in the dtype of X."""
    parts = [nonzeros_of(result) for result in results]
    implicit = map_of(design).implicit
    return coefficient_rows(parts, results[0].n_features, results[0].dtype, implicit)


def nonzeros_of(result: Result) -> tuple[NDArray[np.int64], Array]:
    """Return the columns with a coefficient, and those; of a factored point its entries."""
    if result.matrix_parts is None:
        return result.columns, result.weights
    whole = np.sum([part.dense((result.n_features,)) for part in result.matrix_parts], axis=0)
    columns = np.flatnonzero(whole)
    return columns, whole[columns]


def _joint_status(results: Sequence[Result]) -> Status:
    """Return CONVERGED where all outputs are, INTERRUPTED where one is, else the first reason."""
    statuses = [result.status for result in results]
    if Status.INTERRUPTED in statuses:
        return Status.INTERRUPTED
    return next((status for status in statuses if not status.is_converged), Status.CONVERGED)
