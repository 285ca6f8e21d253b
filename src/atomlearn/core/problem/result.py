"""Result: what a fit found, how close to optimal it is proved to be, and why it stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.data.convert import as_design
from atomlearn.core.interfaces import TINY, Array, Columns, Lift, Norm, WarmStart
from atomlearn.core.interfaces.certificate import Status
from atomlearn.core.interfaces.factored import Factored, MatrixPart
from atomlearn.core.problem.verification import Verification, verification


@dataclass(frozen=True, slots=True)
class Record:
    """One line of a fit's history.

    Attributes
    ----------
    iteration : int
        Number of steps so far.
    passes : float
        Number of passes over the data so far.
    seconds : float
        Wall time since the start.
    objective, gap, relative_gap : float
        Of the point after this step.
    n_columns : int
        Number of its columns with a weight.
    skipped : float, optional
        The share of the work so far that upper bounds made unnecessary; None without a search. The
        work is counted in multiplications for implicit pairs of columns, and in columns for trees
        of groups.
    vectors : int
        The number of points that shared the last pass over the data.
    """

    iteration: int
    passes: float
    seconds: float
    objective: float
    gap: float
    relative_gap: float
    n_columns: int
    skipped: float | None = None
    vectors: int = 1


@dataclass(slots=True, repr=False)
class Result:
    """The outcome of ``solve``.

    Attributes
    ----------
    columns : (m,) int64
        Columns of X with a non-zero coefficient, increasing.
    weights : (m,) float64
        Their coefficients.
    intercept : float, or array (n_targets,)
        Unpenalized intercept, one for each target; 0.0 if none was fitted.
    objective, gap : float
        F at this point and the proved bound on F - F*, of the mean loss.
    status : Status
        Why the fit ended; ``str(status)`` is a sentence. CONVERGED if and only if it ended because
        ``relative_gap`` is at most ``tol``.
    tol : float
        The requested relative duality gap.
    passes : float
        Passes over the data: one X'v or one dense X w over all columns is one pass.
    seconds : float
        Wall time of the loop.
    history : list of Record
        One record for each step.
    parts : list of Part, or None
        For norms of overlapping sets of columns (latent groups), the terms that add up to w. Each
        set in use has one term, with its number, name, columns and weights.
    lifted : (columns, weights), or None
        For these norms, the coefficients of all terms in one vector u with w = L u, for warm
        starts.
    shape : tuple of int, or None
        Shape of ``coef`` if the columns are the entries of a matrix or a tensor.
    matrix_parts : tuple of MatrixPart, or None
        For matrix norms: the terms whose sum is W, one for each norm of a union. ``columns`` and
        ``weights`` then contain only the terms under norms of vectors; ``low_rank`` is the rest.
    search_gap : float or None
        For norms whose best atom is found by a heuristic search: the gap that would hold if no
        better atom exists.
    sent : (int, int)
        For rows on other machines (Dask, Sites): the number of rounds of requests, and the bytes of
        requests and answers, added up over all machines. (0, 0) for data in this process.
    slopes : (n_samples,) float64, or None
        For losses with kinks: the dual point that proves the gap. The coefficients alone do not
        determine it.
    norm : Norm or None
        The norm of the problem, for ``warm_start``.
    problem : Problem or None
        For ``solve``: the problem with its data, for ``verify`` and ``dual``. Pickles do not
        contain it.
    proved_by : Result or None
        Another point, whose dual point gives a better lower bound on the optimum. It is set by
        solvers that keep their best lower bound (``KFCFW``).

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve
    >>> X, y = np.eye(4), np.array([3.0, 0.5, -2.0, 0.0])
    >>> result = solve(X, y, alpha=0.25, fit_intercept=False)
    >>> result.columns.tolist(), result.converged
    ([0, 2], True)
    >>> result.predict(np.ones((1, 4))).round(6).tolist()
    [1.0]
    >>> nearby = solve(X, y, alpha=0.2, fit_intercept=False, warm_start=result)
    """

    columns: Columns
    weights: Array
    intercept: Any
    objective: float
    gap: float
    status: Status
    tol: float
    passes: float
    seconds: float
    n_features: int
    iterations: int
    history: list[Record] = field(default_factory=list)
    parts: list[Any] | None = None
    lifted: tuple[Columns, Array] | None = None
    shape: tuple[int, ...] | None = None
    matrix_parts: tuple[MatrixPart, ...] | None = None
    search_gap: float | None = None
    sent: tuple[int, int] = (0, 0)
    slopes: Array | None = field(default=None, repr=False)
    norm: Norm | None = field(default=None, repr=False)
    state: Any = field(default=None, repr=False)
    problem: Any = field(default=None, repr=False)
    proved_by: Result | None = field(default=None, repr=False)

    #: Number of features above which ``coef`` raises; use ``columns`` and ``weights`` instead.
    MAX_DENSE = 2**31

    def __post_init__(self) -> None:
        """Check that the status CONVERGED is claimed only if the gap is small enough."""
        proved = self.status is not Status.CONVERGED or self.relative_gap <= self.tol
        assert proved, f"{self!r} is no fit to the relative gap {self.tol:g}: only such converge"

    @property
    def relative_gap(self) -> float:
        """The gap divided by abs(objective), or by the smallest normal float if that is larger."""
        return self.gap / max(abs(self.objective), TINY)

    @property
    def coef(self) -> NDArray[Any]:
        """Coefficients as a dense float64 array: (n_features,), or ``shape``.

        They are not rounded to the dtype of X, so that objective and gap hold for them.
        """
        if self.n_features > self.MAX_DENSE:
            raise ValueError(
                f"coef would need {self.n_features} entries; use result.columns and result.weights"
            )
        # A matrix is the sum of its terms, some of which are kept as factors.
        if self.matrix_parts is not None and self.shape is not None:
            total = np.zeros(self.shape)
            for part in self.matrix_parts:
                total += part.dense(self.shape)
            return total
        dense = np.zeros(self.n_features)
        dense[self.columns] = self.weights
        return dense if self.shape is None else dense.reshape(self.shape)

    @property
    def low_rank(self) -> Factored:
        """The sum of the factored terms of a matrix fit: W without the entries of other terms."""
        parts = [part.factored for part in self.matrix_parts or () if part.factored is not None]
        if not parts or any(part.tensor for part in self.matrix_parts or ()):
            raise ValueError(
                "this fit has no factored matrix: it is of vectors, of single entries, or of a "
                "tensor; use result.coef, or the terms in result.matrix_parts"
            )
        return Factored(
            np.hstack([part.left for part in parts]),
            np.concatenate([part.weights for part in parts]),
            np.hstack([part.right for part in parts]),
        )

    def warm_start(self) -> WarmStart:
        """Return this point as the start of another solve, with its atoms and terms.

        The atoms are included only if this result still has the state of the solver. They are used
        only for a problem of the same norm.
        """
        has_state = self.state is not None
        return WarmStart(
            self.columns,
            self.weights,
            # The loss fits the intercepts of several targets at any point.
            self.intercept if np.ndim(self.intercept) == 0 else 0.0,
            self.lifted,
            self.state.parts() if has_state else (),
            self.state.warm_parts() if has_state else self.matrix_parts,
            self.norm,
        )

    def __getstate__(self) -> Any:
        """Return the content of a pickle: all but the solver's state and the problem, with data."""
        return object.__getstate__(replace(self, state=None, problem=None))

    @property
    def dual(self) -> Array:
        """The dual point of the certificate, (n_samples,), computed from X, y and coefficients."""
        return verification(self.problem, self).dual

    def verify(self) -> Verification:
        """Compute both bounds on the optimum again, from X, y and the coefficients; print them.

        Examples
        --------
        >>> import numpy as np
        >>> from atomlearn import solve
        >>> result = solve(np.eye(2), np.array([3.0, 1.0]), alpha=0.5, fit_intercept=False)
        >>> found = result.verify()  # doctest: +ELLIPSIS
        objective of these coefficients   1.5
        no coefficients have less than    1.4999999999999...
        gap ..., relative ...; of it ... for rounding
        >>> found.dual
        array([0.5, 0.5])
        """
        bounds = verification(self.problem, self)
        print(bounds)
        return bounds

    def lowered(self, lift: Lift) -> Result:
        """Return this result of lifted coordinates u as a result over the features, w = L u.

        ``lift`` has the linear map L. The coordinates u are kept in ``lifted``, and the terms of w
        in ``parts``.
        """
        features, weights = lift.lowered(self.columns, self.weights)
        return replace(
            self,
            columns=features,
            weights=weights,
            n_features=lift.expansion.shape[0],
            parts=lift.parts(self.columns, self.weights),
            lifted=(self.columns, self.weights),
        )

    def with_free(self, free: Columns | None, coefficients: Array, intercept: float) -> Result:
        """Return the result with the coefficients of the unpenalized columns, and their intercept.

        ``free`` are the unpenalized columns of X; None: no columns. ``coefficients`` are first the
        coefficients of these columns, then the intercepts of several targets. ``intercept`` is
        added if there is only one target.
        """
        intercepts = coefficients[0 if free is None else free.size :]
        total = self.intercept + (intercepts if intercepts.size else intercept)
        if free is None:
            return replace(self, intercept=total)
        # Add both sets of coefficients, and keep the nonzero ones.
        columns = np.union1d(self.columns, free)
        weights = np.zeros(columns.size)
        weights[np.searchsorted(columns, self.columns)] = self.weights
        weights[np.searchsorted(columns, free)] += coefficients[: free.size]
        nonzero = np.flatnonzero(weights)
        # A matrix is a sum of terms: the free coefficients are one more term, without a penalty.
        parts = self.matrix_parts
        if parts is not None:
            parts = (
                *parts,
                MatrixPart(None, 1.0, 0.0, columns=free, weights=coefficients[: free.size]),
            )
        return replace(
            self,
            columns=columns[nonzero],
            weights=weights[nonzero],
            intercept=total,
            matrix_parts=parts,
        )

    def predict(self, X: object, offset: object = None) -> Array:
        """Return X w + b (+ offset) for new samples: (n,), or (n, n_tasks) for several targets.

        ``X`` has the columns of the fit, and ``offset`` is a number or has the shape of the
        predictions. These are linear predictors; the inverse link of the loss maps them to means.
        """
        linear = self._linear(X)
        if offset is None:
            return linear
        numbers = np.asarray(offset, dtype=np.float64)
        if numbers.shape not in ((), linear.shape):
            raise ValueError(
                f"offset must have shape {linear.shape}, as predictions have; got {numbers.shape}"
            )
        return linear + numbers

    def _linear(self, X: object) -> Array:
        """Return X w + b for new rows, (n,), or (n, n_tasks) for targets that share the columns.

        ``X`` has as many columns as the fit, or as W has rows if the coefficients are a matrix W.
        """
        design = as_design(X)
        n_features = design.shape[1]
        if n_features == self.n_features:
            if self.matrix_parts is None:
                linear = design.product(self.weights[:, None], self.columns)[:, 0]
            else:
                linear = design.predict(self.coef.reshape(-1).astype(np.float64))
            # With several targets, the predictions for a row of X are consecutive.
            rows = linear.reshape(-1, np.size(self.intercept))
            return np.asarray(rows + self.intercept).reshape(-1)
        has_rows = self.shape is not None and len(self.shape) == 2 and n_features == self.shape[0]
        if not has_rows:
            raise ValueError(
                f"X has {n_features} columns, and the fit was to {self.n_features} columns; give "
                "the same columns, in the same order"
            )
        # Each column of W has the coefficients of one task.
        by_task = np.asarray(self.coef, dtype=np.float64).T
        return np.asarray(np.column_stack([design.predict(w) for w in by_task]) + self.intercept)

    def __str__(self) -> str:
        """Return a short summary."""
        # The gap if the search for atoms was exhaustive, for norms whose atoms are searched.
        searched = "" if self.search_gap is None else f" (by search {self.search_gap:.3g})"
        lines = [
            f"{self.status}",
            f"objective     {self.objective:.10g}",
            f"gap           {self.gap:.3g}{searched}, relative {self.relative_gap:.3g}",
            f"columns       {self.columns.size:,} of {self.n_features:,} in use",
            f"intercept     {np.array2string(np.asarray(self.intercept), precision=6)}",
            f"cost          {self.iterations:,} steps, {self.passes:.6g} passes, "
            f"{self.seconds:.3g} seconds",
        ]
        if self.sent[0]:
            lines.append(f"sent          {self.sent[1]:,} bytes in {self.sent[0]:,} rounds")
        if self.matrix_parts is not None:
            ranks = [p.factored.weights.size for p in self.matrix_parts if p.factored is not None]
            lines.insert(4, f"matrix        {self.shape}, terms of rank or atoms {ranks}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Return status, objective, relative gap and number of columns on one line."""
        return (
            f"<Result {self.status.name}: objective {self.objective:.6g}, relative gap "
            f"{self.relative_gap:.2g}, {self.columns.size:,} of {self.n_features:,} columns>"
        )

    @property
    def active(self) -> Columns:
        """The selected columns: those with a non-zero coefficient."""
        return self.columns

    @property
    def converged(self) -> bool:
        """Whether the requested gap is proved at this point."""
        return self.status.is_converged


def together(results: Sequence[Result], *more: Columns) -> tuple[Columns, Array]:
    """Return the union of the results' columns and ``more``, and the coefficients of each result.

    ``more`` are arrays of further columns. The coefficients have shape (n_results, n_columns). For
    matrix norms they include only entries under norms of vectors, not the factored terms.
    """
    used = [result.columns for result in results]
    columns = np.unique(np.concatenate([*used, *more]))
    weights = np.zeros((len(results), columns.size))
    if results:
        rows = np.repeat(np.arange(len(results)), [each.size for each in used])
        places = np.searchsorted(columns, np.concatenate(used))
        weights[rows, places] = np.concatenate([result.weights for result in results])
    return columns, weights
