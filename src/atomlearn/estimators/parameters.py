"""Base classes of the estimators: shared parameters, solving, and attributes of a fit."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from atomlearn._kernels import single_threaded_blas
from atomlearn._support import Deadline, OwnParameters, positive
from atomlearn.core import (
    MAX_ITER,
    TOLERANCE,
    Array,
    Columns,
    Form,
    Norm,
    Observer,
    PrintProgress,
    Problem,
    Result,
    Settings,
    Solver,
    Status,
    StoppingRule,
    WarmStart,
    drive,
)
from atomlearn.estimators.checks import as_solver, whole
from atomlearn.estimators.coefficients import packed, unpacked


class PackedState(BaseEstimator):
    """An estimator that pickles arrays such as ``coef_`` without their zeros."""

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for pickling, in which zeros of numeric arrays are not stored."""
        return packed(super().__getstate__())

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state of ``__getstate__``, with all arrays in full."""
        super().__setstate__(unpacked(state))


@dataclass(eq=False, repr=False, kw_only=True)
class ProvedModel(OwnParameters, PackedState):
    """An estimator whose ``fit`` solves problems to a proved gap; not for direct use.

    The parameters, those of the solver, are documented in the subclasses.
    """

    tol: float = TOLERANCE
    max_iter: int = MAX_ITER
    solver: str | Solver = "auto"
    verbose: int = 0
    observers: Sequence[Observer] | None = None
    stop: StoppingRule | None = None
    time_limit: float | None = None

    n_jobs: int | None = field(default=None, init=False)

    def _settings(self) -> Settings:
        """Return the settings of the fit, whose time limit begins now."""
        tol = positive("tol", self.tol, "relative duality gap to prove, for example 1e-6")
        deadline = Deadline.limited(self.time_limit)
        solver = as_solver(self.solver, tol)
        steps = whole("max_iter", self.max_iter)
        observers = tuple(self.observers or ())
        return Settings(tol, steps, solver, self.stop, observers, deadline)

    def _solve(
        self, problems: Sequence[Problem], starts: Sequence[WarmStart | None], settings: Settings
    ) -> list[Result]:
        """Return a result for each problem; the solvers of the problems step in turns.

        So all problems share each pass over the data. starts : a warm start for each problem, or
        None. After Ctrl-C a problem without a result gets its starting point, with the status
        INTERRUPTED. ``settings`` are the options of the solver.
        """
        if self.verbose:
            settings = replace(settings, observers=(*settings.observers, PrintProgress(every=1)))
        tasks = []
        for problem, start in zip(problems, starts, strict=True):
            # A task is a path over strengths of the norm, here over a single one.
            strength = np.array([problem.regularizer.amount])
            tasks.append(settings.task(problem, strength, warm=start))
        drive(problems[0].design, tasks, self.n_jobs)
        if not any(task.results for task in tasks):
            raise KeyboardInterrupt("interrupted before the first point")
        # A problem without a result was interrupted before its first point.
        results = []
        for task, problem, start in zip(tasks, problems, starts, strict=True):
            if task.results:
                result = task.results[0]
            else:
                settings_at_start = replace(
                    settings, max_iter=0, observers=(), deadline=Deadline.after(0.0)
                )
                result = settings_at_start.run(problem, start)
                result.status = Status.INTERRUPTED
            result.state = None
            results.append(result)
        return results

    def _report(self, results: Sequence[Result], complete: bool | None = None) -> None:
        """Set the attributes of the fit, and warn unless it is complete.

        results : one per output. The objective and the gap are sums over outputs. complete :
        whether the fit needs no warning; None: only if the gap of every output is within ``tol``.
        """
        self.results_ = results
        self.parts_: Any = [result.parts for result in results]
        self.history_: Any = [result.history for result in results]
        self.gap_ = math.fsum([result.gap for result in results])
        self.objective_ = math.fsum([result.objective for result in results])
        self.n_passes_ = math.fsum([result.passes for result in results])
        self.n_iter_ = max(map(len, self.history_))
        # An interrupt comes first, then the reason of the first output without a proof.
        reasons = [result.status for result in results if result.status is not Status.CONVERGED]
        reasons.sort(key=lambda status: (status is not Status.INTERRUPTED, status.is_converged))
        self.status_ = [*reasons, Status.CONVERGED][0]
        if len(results) == 1:
            [self.parts_] = self.parts_
            [self.history_] = self.history_
        if not (self.status_.is_converged if complete is None else complete):
            relative = max(result.relative_gap for result in results)
            warnings.warn(
                f"{type(self).__name__}: {self.status_}. Relative gap proved: {relative:.2e}, "
                f"requested: tol={self.tol:.2e}",
                ConvergenceWarning,
                stacklevel=3,
            )


def entries_of(result: Result) -> tuple[Columns, Array]:
    """Return the columns with a coefficient and their weights, also for norms of matrices.

    ``result`` is the solution of one output.
    """
    if result.matrix_parts is None:
        return result.columns, result.weights
    entries = result.coef.ravel()
    columns = np.flatnonzero(entries)
    return columns, entries[columns]


@dataclass(eq=False, repr=False, kw_only=True)
class FitParameters(ProvedModel):
    """The parameters of the columns and the penalty; not for direct use.

    They are documented in the subclasses.
    """

    l1_ratio: Any = 1.0
    form: Form | None = "penalized"
    features: str = "linear"
    standardize: bool = False
    unpenalized: Any = None
    relax: Any = 0.0
    encode: bool = True


@dataclass(eq=False, repr=False)
class OneLevel(BaseEstimator):
    """The parameters of estimators with one norm and one alpha, documented in these estimators.

    Not for direct use.
    """

    norm: str | Norm = "l1"
    alpha: float = 1.0
    _: KW_ONLY
    radius: float = 1.0
    warm_start: bool = False


Fit = TypeVar("Fit", bound=Callable[..., Any])


def keeps_blas_single(fit: Fit) -> Fit:
    """Return a ``fit`` during which BLAS uses one thread.

    The checks of the data are included: threads that BLAS has started keep the cores busy after
    their work.
    """

    @functools.wraps(fit)
    def fitted(*args: Any, **kwargs: Any) -> Any:
        """Call ``fit`` with its arguments while BLAS is limited to one thread."""
        with single_threaded_blas():
            return fit(*args, **kwargs)

    return cast(Fit, fitted)
