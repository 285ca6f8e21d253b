"""The result of a best-subset search, with its certificate of optimality."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, Columns, Result, Status
from atomlearn.subsets.near import NearModels, NearSubset


class SubsetStatus(StrEnum):
    """Reason for the end of a search for the best subset.

    OPTIMAL if and only if the reported gap is at most the requested one.
    """

    OPTIMAL = "optimal: no subset is better by more than the requested gap"
    PERFECT_FIT = "the fit is perfect: the objective of the subset is 0 up to rounding"
    TIME_LIMIT = "time limit reached; no subset is better by more than the reported gap"
    NODE_LIMIT = "limit of branches reached; no subset is better by more than the reported gap"
    INTERRUPTED = "interrupted from the keyboard; the gap is the one proved until then"
    ROUNDING = (
        "the rest of the gap is rounding; no subset is better by more than the reported gap; "
        "request a larger gap, or use a larger ridge"
    )
    NOT_LISTED = (
        "there are too many columns to list, and the first bound leaves too many of them open; "
        "no subset is better by more than the reported gap; a larger ridge proves more"
    )

    @property
    def is_proof(self) -> bool:
        """Whether no other subset can be better by more than the requested gap, or rounding."""
        return self in (SubsetStatus.OPTIMAL, SubsetStatus.PERFECT_FIT)


@dataclass(frozen=True, slots=True)
class SubsetRecord:
    """Progress of a search: seconds since its start, nodes bounded, upper and lower bound."""

    seconds: float
    nodes: int
    objective: float
    lower_bound: float


@dataclass(slots=True, repr=False)
class SubsetResult:
    """The outcome of ``solve_subset``.

    Attributes
    ----------
    fitted : Result
        The ridge fit of the subset and the unpenalized columns; its gap is objective - lower_bound.
    columns : (m,) int64
        Numbers of the selected columns, or of the columns of selected groups, in increasing order.
    groups : (k,) int64 or None
        Numbers of the selected groups; None without groups.
    weights, intercept : (m,) float64, float
        The coefficients of ``columns``, and the intercept. The coefficients of unpenalized columns
        are in ``coef``.
    objective : float
        The mean loss plus l2 / 2 ||w||^2 of the fit.
    lower_bound : float
        Proved lower bound on the objectives of all subsets of at most n_features columns (groups).
    gap : float
        Relative gap (objective - lower_bound) / |objective|.
    status : SubsetStatus
        OPTIMAL if and only if ``gap`` is at most the requested one, ``fitted.tol``, else ``ended``;
        ``str(status)`` is a sentence.
    ended : SubsetStatus
        The reason for the end of the search, if it was not the proof.
    n_features : int
        Largest size of a subset: the argument of ``solve_subset``.
    l2 : float
        Weight of the ridge.
    proved_in : (m,) int64
        Columns (or groups) that are proved to be in every best subset.
    n_proved_out : int
        Number of columns (or groups) that are proved to be in no best subset.
    open_columns : (m,) int64 or None
        Columns (or groups) that are not proved out; None if they are too many to list.
    near_models : NearModels or None
        All models within the requested share of the best one: their subsets, the columns that are
        in all, in some and in none of them, and the ranges of their coefficients and predictions;
        None if no share was requested.
    swap_optimal : bool
        Whether no exchange of one column of the subset for another one lowers the objective; if f
        is not quadratic, only the best exchanges of a quadratic model are tried. False if a limit
        came first, and for groups, which are not exchanged.
    nodes : int
        Number of branch-and-bound nodes that were bounded.
    passes, seconds : float
        Passes over X, and seconds.
    history : list of SubsetRecord
    """

    fitted: Result
    columns: Columns
    groups: Columns | None
    weights: Array
    lower_bound: float
    ended: SubsetStatus
    n_features: int
    l2: float
    proved_in: Columns
    n_proved_out: int
    open_columns: Columns | None
    near_models: NearModels | None
    swap_optimal: bool
    nodes: int
    history: list[SubsetRecord] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Set the status of ``fitted`` to the one that corresponds to ``status``."""
        self.fitted.status = _AS_FIT[self.status]

    @property
    def status(self) -> SubsetStatus:
        """Reason for the end of the search, from the reported and the requested gap."""
        return SubsetStatus.OPTIMAL if self.gap <= self.fitted.tol else self.ended

    @property
    def objective(self) -> float:
        """The objective of the subset."""
        return self.fitted.objective

    @property
    def near(self) -> list[NearSubset] | None:
        """All subsets of k columns within the requested share, the best one first."""
        return None if self.near_models is None else self.near_models.subsets

    @property
    def near_complete(self) -> bool:
        """Whether ``near`` is proved to be complete."""
        return self.near_models is not None and self.near_models.complete

    @property
    def intercept(self) -> Any:
        """The intercept; with several targets one for each; 0 if no intercept was fitted."""
        return self.fitted.intercept

    @property
    def passes(self) -> float:
        """Passes over X; passes over copied columns are not counted."""
        return self.fitted.passes

    @property
    def seconds(self) -> float:
        """Seconds of the search."""
        return self.fitted.seconds

    @property
    def gap(self) -> float:
        """The largest share of the objective by which another subset can be better."""
        return self.fitted.relative_gap

    @property
    def coef(self) -> Array:
        """All coefficients, (n_features,), including those of unpenalized columns."""
        return np.asarray(self.fitted.coef)

    def predict(self, X: object) -> Array:
        """Return the predictions X w + b for new samples X (n, n_features), (n,)."""
        return self.fitted.predict(X)

    def twins(self) -> dict[int, NDArray[np.int64]]:
        """Return, for each column of the best subset, the columns that can replace it.

        If a subset of ``near`` differs from the best one in one column only, its new column is a
        twin of the column that it replaces. The keys of the result are columns of the best subset.
        """
        if self.near is None:
            raise ValueError("no near subsets were asked for; pass within=0.01, for example")
        first, *others = self.near
        best = set(first.columns.tolist())
        twins: dict[int, list[int]] = {column: [] for column in sorted(best)}
        for subset in others:
            chosen = set(subset.columns.tolist())
            removed = best - chosen
            added = chosen - best
            if len(removed) == len(added) == 1:
                twins[removed.pop()].append(added.pop())
        return {column: np.array(found, dtype=np.int64) for column, found in twins.items()}

    def __repr__(self) -> str:
        """Return three lines: the status, the subset with its gap, and the work of the search."""
        what = "groups" if self.groups is not None else "columns"
        chosen = self.columns if self.groups is None else self.groups
        total = self.n_proved_out + (0 if self.open_columns is None else self.open_columns.size)
        note = f"{self.n_proved_out} of {total} {what} are in no best subset"
        return (
            f"SubsetResult: {self.status}\n"
            f"  {what} {chosen.tolist()}, objective {self.objective:.6g}, no subset is better by "
            f"more than {100.0 * self.gap:.3g}%; {note}; {self.nodes} branches, "
            f"{self.passes:g} passes, {self.seconds:.3g} s"
        )


#: Maps the status of a search to the status of the fit in ``SubsetResult.fitted``.
_AS_FIT = {
    SubsetStatus.OPTIMAL: Status.CONVERGED,
    SubsetStatus.PERFECT_FIT: Status.PERFECT_FIT,
    SubsetStatus.TIME_LIMIT: Status.TIME_LIMIT,
    SubsetStatus.NODE_LIMIT: Status.ITERATION_LIMIT,
    SubsetStatus.INTERRUPTED: Status.INTERRUPTED,
    SubsetStatus.NOT_LISTED: Status.STALLED,
    SubsetStatus.ROUNDING: Status.STALLED,
}
