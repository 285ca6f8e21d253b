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
    """One line of a fit's history. Seconds since the start; passes over the data so far.

    skipped : over implicit pairs of columns, the share of the multiplications so far that bounds
    made unnecessary; None where nothing was searched. vectors : how many points the last reading of
    the data was shared by.
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
    intercept : float
        Unpenalized intercept; 0.0 if none was fitted.
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
        For norms with latent parts: the terms that add up to w, one for each set in use, with its
        number, name, columns and weights.
    lifted : (columns, weights), or None
        The same point in lifted coordinates, for warm starts.
    shape : tuple of int, or None
        Shape of ``coef`` where the columns are the entries of a matrix or a tensor.
    matrix_parts : tuple of MatrixPart, or None
        For matrix norms: the terms that W is the sum of, one for each norm of a union. ``columns``
        and ``weights`` are then the entries under norms of vectors only, and ``low_rank`` the rest.
    search_gap : float or None
        The gap if the search for atoms was exhaustive, for norms whose oracle is a search.
    sent : (int, int)
        For rows on other machines (Dask, Sites): the number of rounds of requests, and the bytes of
        requests and answers, added up over all machines. (0, 0) for data in this process.
    norm : Norm or None
        The norm of the problem, for ``warm_start``.
    problem : Problem or None
        Of ``solve``: what was solved, with its data, for ``verify`` and ``dual``. A pickle leaves
        it out.

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
    intercept: float
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
    norm: Norm | None = field(default=None, repr=False)
    state: Any = field(default=None, repr=False)
    problem: Any = field(default=None, repr=False)

    #: Above this many features ``coef`` is refused and ``columns``/``weights`` are the answer.
    MAX_DENSE = 2**31

    def __post_init__(self) -> None:
        proved = self.status is not Status.CONVERGED or self.relative_gap <= self.tol
        assert proved, f"{self!r} is no fit to the relative gap {self.tol:g}: only such converge"

    @property
    def relative_gap(self) -> float:
        """The gap divided by abs(objective), or by the least normal number."""
        return self.gap / max(abs(self.objective), TINY)

    @property
    def coef(self) -> NDArray[Any]:
        """Coefficients as a dense float64 array: (n_features,), or ``shape``.

        Whatever the type of X: they are the very numbers that objective and gap are of.
        """
        if self.n_features > self.MAX_DENSE:
            raise ValueError(
                f"coef would need {self.n_features} entries; use result.columns and result.weights"
            )
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
        """The sum of the factored terms of a matrix fit: W without its entries, never formed."""
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
        """Return this point as the place where another solve can begin, in all its parts.

        The atoms that w is the sum of are among them as long as the state of the solver is kept;
        they are used for a problem of the very same norm only.
        """
        kept = self.state is not None
        return WarmStart(
            self.columns,
            self.weights,
            self.intercept,
            self.lifted,
            self.state.parts() if kept else (),
            self.state.warm_parts() if kept else self.matrix_parts,
            self.norm,
        )

    def __getstate__(self) -> Any:
        """Return what a pickle holds: everything but the solver's state, which holds data."""
        return object.__getstate__(replace(self, state=None, problem=None))

    @property
    def dual(self) -> Array:
        """The dual point of the proof, (n_samples,), computed from X, y and the coefficients."""
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
        found = verification(self.problem, self)
        print(found)
        return found

    def lowered(self, lift: Lift) -> Result:
        """Return the result over the features, w = L u, with u in ``lifted`` and its ``parts``."""
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
        """Return the result with the coefficients of the free columns, and their intercept.

        ``free`` None: the intercept alone. ``coefficients`` : those of columns of X come first.
        """
        if free is None:
            return replace(self, intercept=self.intercept + intercept)
        columns = np.union1d(self.columns, free)
        weights = np.zeros(columns.size)
        weights[np.searchsorted(columns, self.columns)] = self.weights
        weights[np.searchsorted(columns, free)] += coefficients[: free.size]
        used = np.flatnonzero(weights)
        parts = self.matrix_parts
        if parts is not None:
            parts = (*parts, MatrixPart(None, 1.0, 0.0, columns=free, weights=coefficients))
        return replace(
            self,
            columns=columns[used],
            weights=weights[used],
            intercept=self.intercept + intercept,
            matrix_parts=parts,
        )

    def predict(self, X: object, offset: object = None) -> Array:
        """Return X w + b (+ offset) for new samples: (n,), or (n, n_tasks) for a column a task.

        These are the predictions that the loss is of: its inverse link makes means of them.
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
        design = as_design(X)
        n_features = design.shape[1]
        if n_features == self.n_features:
            if self.matrix_parts is None:
                return design.product(self.weights[:, None], self.columns)[:, 0] + self.intercept
            return design.predict(self.coef.reshape(-1).astype(np.float64)) + self.intercept
        tasks = self.shape is not None and len(self.shape) == 2 and n_features == self.shape[0]
        if not tasks:
            raise ValueError(
                f"X has {n_features} columns, and the fit was to {self.n_features} columns; give "
                "the same columns, in the same order"
            )
        columns = np.asarray(self.coef, dtype=np.float64).T
        return np.column_stack([design.predict(w) for w in columns]) + self.intercept

    def __str__(self) -> str:
        """Return a short summary."""
        searched = "" if self.search_gap is None else f" (by search {self.search_gap:.3g})"
        lines = [
            f"{self.status}",
            f"objective     {self.objective:.10g}",
            f"gap           {self.gap:.3g}{searched}, relative {self.relative_gap:.3g}",
            f"columns       {self.columns.size:,} of {self.n_features:,} in use",
            f"intercept     {self.intercept:.6g}",
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
        """True where the requested gap is proved at this point."""
        return self.status.is_converged


def together(results: Sequence[Result], *more: Columns) -> tuple[Columns, Array]:
    """Return the union of the results' columns and ``more``, and the coefficients of each result.

    The coefficients have shape (n_results, n_columns). For matrix norms they include only entries
    under norms of vectors, not the factored terms.
    """
    columns = np.unique(np.concatenate([*(result.columns for result in results), *more]))
    weights = np.zeros((len(results), columns.size))
    for row, result in zip(weights, results, strict=True):
        row[np.searchsorted(columns, result.columns)] = result.weights
    return columns, weights
