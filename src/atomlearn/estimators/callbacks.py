"""scikit-learn's callbacks (its version 1.9 and later) are told what observers are told."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from atomlearn._kernels import single_threaded_blas
from atomlearn.core.paths.settings import Settings
from atomlearn.core.problem.problem import Problem
from atomlearn.core.solvers.progress import Progress, RunObserver
from atomlearn.core.solvers.stopping import Callback

try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupport
    from sklearn.callback import with_callbacks as torn_down
except ImportError:  # before scikit-learn 1.9 there is nothing to tell

    class CallbackSupport:  # type: ignore[no-redef]
        """Nothing."""

    def torn_down(fit: Any) -> Any:
        """Return the method as it is."""
        return fit


__all__ = ["CallbackSupport", "Steps", "classes_at_step", "with_callbacks"]

Fit = TypeVar("Fit", bound=Callable[..., Any])


@dataclass(slots=True)
class Steps(RunObserver):
    """Tells each step of each run as a task "step" of the fit; a callback may ask to stop there.

    context : scikit-learn's, of the whole fit; given : the estimator, X and y; asked : whether one
    asked to stop, which ends all runs; problem : the one that is solved now.
    """

    context: Any
    given: dict[str, Any]
    asked: bool = False
    problem: Problem | None = None

    def begin(self, problem: Problem, solver: Any) -> None:
        self.problem = problem

    def __call__(self, progress: Progress) -> None:
        problem, estimator = self.problem, self.given["estimator"]
        assert problem is not None
        task = self.context.subcontext(task_name="step")
        task.call_on_fit_task_begin(**self.given)
        whole = problem.design.shape[0] == len(self.given["y"])  # no fold, no half
        point = functools.partial(estimator._at_step, problem, progress, self.given["y"])
        self.asked |= task.call_on_fit_task_end(
            **self.given, reconstruction_attributes=point if whole else None
        )

    def added_to(self, settings: Settings) -> Settings:
        """Return the settings with these callbacks among observers and stopping rules."""
        rule = Callback(lambda progress: self.asked)
        stop = rule if settings.stop is None else settings.stop | rule
        return replace(settings, observers=(*settings.observers, self), stop=stop)


@contextmanager
def _told(estimator: Any, X: Any, y: Any) -> Iterator[None]:
    context = estimator._init_callback_context(max_subtasks=None)
    given = {"estimator": estimator, "X": X, "y": y}
    context.call_on_fit_task_begin(**given)
    estimator._steps = Steps(context, given)
    try:
        yield
    finally:
        del estimator._steps
    context.call_on_fit_task_end(**given, reconstruction_attributes=dict)


def with_callbacks(fit: Fit) -> Fit:
    """Return the ``fit`` of an estimator, told to the callbacks that were set, if any were.

    BLAS keeps to one thread from the first check on: its others, once woken, take the cores.
    """

    @functools.wraps(fit)
    def fitted(self: Any, X: Any, y: Any, *more: Any, **named: Any) -> Any:
        with single_threaded_blas():
            if not (hasattr(self, "_skl_callbacks") or hasattr(self, "_parent_callback_ctx")):
                return fit(self, X, y, *more, **named)
            with _told(self, X, y):
                return fit(self, X, y, *more, **named)

    made: Fit = torn_down(fitted)
    return made


def classes_at_step(y: Any) -> dict[str, Any] | None:
    """Return the attributes of a classifier beside its coefficients; None for several classes."""
    classes = np.unique(y)
    return {"classes_": classes} if classes.size == 2 else None
