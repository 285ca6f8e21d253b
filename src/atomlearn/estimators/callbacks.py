"""scikit-learn's callbacks (its version 1.9 and later) are told what observers are told."""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from atomlearn.core.data.coefficients import coefficient_rows, single_row
from atomlearn.core.solvers.stopping import Callback
from atomlearn.designs import map_of
from atomlearn.paths import Settings
from atomlearn.problem import Problem
from atomlearn.solvers import Progress, RunObserver

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks as torn_down
except ImportError:  # before scikit-learn 1.9 there is nothing to tell

    class CallbackSupport:  # type: ignore[no-redef]
        """Nothing."""

    def torn_down(fit: Any) -> Any:
        """Return the method as it is."""
        return fit


__all__ = ["CallbackSupport", "Steps", "torn_down"]


@dataclass(slots=True)
class Steps(RunObserver):
    """Tells each step of each run as a task "step" of the fit; a callback may ask to stop there.

    context : scikit-learn's, of the whole fit; given : the estimator, X and y; asked : whether one
    asked to stop, which ends all runs; problem : the one that is solved now.
    """

    context: Any
    given: dict[str, Any]
    asked: bool = False
    problem: Any = None

    def begin(self, problem: Problem, solver: Any) -> None:
        self.problem = problem

    def __call__(self, progress: Progress) -> None:
        task = self.context.subcontext(task_name="step")
        task.call_on_fit_task_begin(**self.given)
        whole = self.problem.design.shape[0] == len(self.given["y"])  # no fold, no half
        point = functools.partial(self._fitted_here, progress) if whole else None
        self.asked |= task.call_on_fit_task_end(**self.given, reconstruction_attributes=point)

    def _fitted_here(self, progress: Progress) -> dict[str, Any] | None:
        """Return what the model would have, were it fitted at this step; None of several outputs.

        None too where steps are not of the columns of X, as those of ``FeatureGenerator``.
        """
        estimator, y, design = self.given["estimator"], self.given["y"], self.problem.design
        labels = np.unique(y) if is_classifier(estimator) else None
        if (
            not estimator.steps_are_fits
            or np.ndim(y) > 1
            or (labels is not None and labels.size > 2)
        ):
            return None
        warm, map = progress.warm_start(), map_of(design)
        parts = [(warm.columns, warm.weights)]
        rows = coefficient_rows(parts, design.shape[1], design.dtype, map.implicit)
        if labels is None:
            coef, intercept = single_row(rows), warm.intercept
            return {"coef_": coef, "intercept_": intercept, "feature_map_": map}
        found = {"coef_": rows, "intercept_": np.array([warm.intercept]), "feature_map_": map}
        return {**found, "classes_": labels}

    def added_to(self, settings: Settings) -> Settings:
        """Return the settings with these callbacks among observers and stopping rules."""
        rule = Callback(lambda progress: self.asked)
        stop = rule if settings.stop is None else settings.stop | rule
        return replace(settings, observers=(*settings.observers, self), stop=stop)
