"""The complete best-subset algorithm: root relaxation, screening, heuristic, branch and bound."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from atomlearn._kernels import max_threads
from atomlearn._support import Deadline, Work
from atomlearn.core import (
    LIMITS,
    ArrayScores,
    Callback,
    Columns,
    Counted,
    Problem,
    Result,
    Scores,
    Settings,
    Status,
    center_targets,
    changed,
    free_part,
    loss_at_zero,
    negative_gradient,
    optimal_intercept,
    restrict,
)
from atomlearn.subsets.exchange import Subset
from atomlearn.subsets.norm import IN, OUT, BranchNorm, Choices
from atomlearn.subsets.partial import PartialRelaxation, near_models
from atomlearn.subsets.relaxation import (
    ACCURACY,
    Bound,
    Relaxation,
    RelaxedPoint,
    dual_value,
    largest_norm,
    rounding_of_scores,
)
from atomlearn.subsets.result import SubsetRecord, SubsetResult, SubsetStatus
from atomlearn.subsets.search import Search

#: Default relative gap, of the relaxation over all columns and of a search.
GAP = 1e-4
#: Relative gap of a relaxation that is only the warm start of the relaxation with a price.
LOOSE_GAP = 0.1
#: Largest number of steps of the master problems of the root relaxation. They may end early,
#: because any dual point gives a valid bound.
ROOT_WORK = 300
#: Share of the requested gap at which nodes are pruned, so that the final gap, with rounding, is
#: at most the requested one.
AIM = 1.0 - 1e-6
#: Largest number of columns, or groups, in the local search before the screening.
FIRST = 300
#: Share of the columns of X that may be copied, so that a relaxation over few columns does not read
#: all of X. More columns are copied if they fit into one block of ``LIMITS.piece_entries`` numbers.
COPIED = 0.05
#: If the objective is below this share of the objective of the empty subset, the ridge is not
#: strengthened, because rounding errors would be too large for a proof.
SMALL = 1e-4
#: Share of the ridge that rounding errors may consume if the ridge is strengthened: FINE times the
#: requested gap, or NEAR_FINE if near-optimal subsets, compared to about 4e-9, are listed.
FINE = 1e-3
NEAR_FINE = 2e-9
#: No columns.
NONE: Columns = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Parameters of a search, see ``solve_subset``."""

    tol: float
    within: float | None
    max_near: int
    max_nodes: float
    deadline: Deadline
    watch: Sequence[Callable[[SubsetRecord], object]] = ()


class Hunt:
    """Solver of one best-subset problem; a unit is a column, or a group of columns.

    The root relaxation is the convex problem with the squared k-support norm in place of "at most k
    units". v is its dual point: the negative gradient of the loss at its solution. The rating of a
    column x_j is |x_j'v|, and the rating of a group is the norm of the scores x_j'v of its columns.

    Parameters
    ----------
    problem : Problem
        The loss with the squared k-support norm, k the largest number of units.
    settings : SearchSettings
        Tolerance, limits and observers.
    price : float
        Added to the objective for each selected unit (an l0 penalty).

    Attributes
    ----------
    lower : float
        Lower bound on all subsets from the root relaxation, over all columns.
    dual : float
        The dual objective of the root relaxation. If a unit is fixed, a difference of squared
        ratings is added to it.
    root : RelaxedPoint
        The solution of the root relaxation.
    """

    def __init__(self, problem: Problem, settings: SearchSettings, price: float = 0.0) -> None:
        """Center the targets, set the limits on memory, and solve the root relaxation."""
        self.began = time.monotonic()
        self.counted = Counted.of(problem.design)  # counts the passes over X
        problem = changed(replace(problem, design=self.counted), deadline=settings.deadline)
        self.problem = center_targets(problem)
        self.settings = settings
        self.level = problem.regularizer.amount
        self.price = price
        self.units = Choices(problem)
        self.k = self.units.norm.k
        (n_samples, self.n_features) = problem.design.shape
        # Limits on memory: the largest numbers of columns of X in one copy, and in one relaxation.
        self._most_copied = max(int(COPIED * self.n_features), LIMITS.piece_entries // n_samples)
        self._most_in_use = max(self._most_copied, LIMITS.most_dense // n_samples)
        self.history: list[SubsetRecord] = []
        self.interrupted = False
        self._relax(problem)

    # --- over all columns -------------------------------------------------------------------

    def _relax(self, uncentered: Problem) -> None:
        """Solve the root relaxation over all columns; set ``root``, the ratings and ``lower``.

        ``uncentered`` is the problem before its targets were centered. The default solver runs on
        it. The number of its steps is limited by ROOT_WORK, because any dual point gives a valid
        bound. ``state`` has the columns in use and their weights.
        """
        problem = self.problem
        gap = GAP
        if self._adds_price:
            # This solution is only a warm start of the relaxation with the price. With k = 1, the
            # norm is the l1 norm, and the solution has few columns.
            uncentered = changed(uncentered, norm=self.units.norm.replaced(k=1))
            gap = LOOSE_GAP
        deadline = self._half_deadline.sooner(Deadline(work=Work(ROOT_WORK)))
        # With a weak ridge the relaxation may use most columns. It stops before that, because the
        # columns in use are copied.
        callback = Callback(lambda progress: 3 * progress.n_columns > self._most_in_use)
        result = Settings(tol=gap, deadline=deadline, stop=callback).run(uncentered)
        self.interrupted = result.status is Status.INTERRUPTED
        state = result.state
        result.state = None  # its memory is not needed after this method
        self._root_result = result
        # The primal point: the columns with nonzero weights, in increasing order.
        support = np.flatnonzero(state.weights)
        support = support[np.argsort(state.columns[support])]
        columns = state.columns[support]
        weights = state.weights[support]
        # The state lacks the predictions of rows that are on other machines.
        linear = np.zeros(problem.y.size)
        for part in LIMITS.pieces(columns.size, linear.size):
            linear += problem.design.gather(columns[part]).predict(weights[part])
        intercept = optimal_intercept(problem, linear, state.intercept)
        prediction = linear + intercept
        self.root = RelaxedPoint(columns, weights, intercept)
        # The dual point v gives the ratings of all units, and with them the lower bound.
        dual = negative_gradient(problem, prediction)
        self._store_ratings(self.units.norm.ratings(problem.design.scores(dual)))
        # A bound on the rounding errors of scores, for the columns whose scores ``dual`` needs.
        candidates = np.union1d(columns, self.units.columns(self._first))
        largest = largest_norm(problem, self.units, candidates)
        self.error_of_score = rounding_of_scores(dual, largest)
        # The bound depends only on the k largest ratings, which are among the units ``_first``.
        all_free = np.zeros(self._first.size, dtype=np.int8)
        norm = BranchNorm(self.k, all_free, None, self.price, self.level)
        squares = np.square(self._ratings.at(self._first))
        self.dual = dual_value(problem, norm, prediction, dual, squares, self.error_of_score)
        self.lower = max(self.dual, 0.0)

    @property
    def _half_deadline(self) -> Deadline:
        """A deadline after half of the remaining time; the other half is for branch and bound."""
        deadline = self.settings.deadline
        return deadline.sooner(Deadline.after(0.5 * deadline.left))

    @property
    def _adds_price(self) -> bool:
        """Whether ``run`` also solves the relaxation with the l0 price of each unit.

        The relaxation without the price is its warm start. It needs columns that can be listed.
        """
        return self.price > 0.0 and self.problem.design.listable

    def _improve_root_bound(self, cutoff: float) -> None:
        """Improve the root bound by the relaxation with the price.

        The relaxation ends early if its bound reaches ``cutoff``, an objective, which proves that
        no subset is better. This method replaces ``root``, ``lower``, ``dual``, ``error_of_score``
        and the ratings, unless the deadline passes first.
        """
        relaxation = self._relaxation(changed(self.problem, deadline=self._half_deadline))
        # All units are free, except those of unpenalized columns, which do not count toward k.
        fixed = np.zeros(self.units.count, dtype=np.int8)
        if self.problem.free is not None:
            fixed[self.units.of(self.problem.free)] = OUT
        norm = relaxation.norm(self.k, fixed)
        (bound,) = relaxation.bounds([(norm, self.root, self.root.columns, cutoff)])
        if bound is None:
            return
        self.root = bound.point
        self.lower = bound.lower
        self.dual = bound.dual
        self.error_of_score = bound.error_of_score
        self._store_ratings(ArrayScores(np.sqrt(bound.squares)))

    def _store_ratings(self, ratings: Scores) -> None:
        """Store the ``ratings`` of all units, and in ``_first`` the best penalized units.

        ``_first`` has the numbers of the units with the largest ratings, the largest one first.
        """
        # Scores of unpenalized columns are zero up to rounding, but they may be among the best, so
        # ``n_free`` more units are requested.
        limit = max(min(FIRST, self._most_copied // self.units.largest), 2 * self.k)
        first, _ = ratings.top(limit + self.units.n_free)
        self._first = self._penalized(first)
        self._ratings = ratings

    def _penalized(self, units: Columns) -> Columns:
        """Return ``units`` without the units of unpenalized columns, in the same order."""
        free = self.problem.free
        return units if free is None else units[~np.isin(units, self.units.of(free))]

    def _part(self, units: Columns) -> PartialRelaxation:
        """Return the relaxation restricted to ``units``, over a copy of their columns of X.

        If these columns are too many to copy, the relaxation is over all columns, and the other
        units are fixed out.
        """
        columns = np.sort(self.units.columns(units))
        if columns.size > self._most_copied:
            everything = np.arange(self.units.count)
            return PartialRelaxation(
                self._relaxation(self.problem), np.arange(self.n_features), everything, units
            )
        problem = restrict(self.problem, self.counted.gather(columns), columns)
        return PartialRelaxation(self._relaxation(problem), columns, units, units)

    def _relaxation(self, problem: Problem) -> Relaxation:
        """Return the relaxation solver of a problem over all or some columns.

        Its loss is already minimized over the unpenalized columns. So ``free``, the numbers of
        unpenalized columns in X, is None.
        """
        accuracy = min(ACCURACY, 0.1 * self.settings.tol)
        return Relaxation(replace(problem, free=None), self.price, accuracy, self._most_in_use)

    # --- the search -------------------------------------------------------------------------

    def run(self, starts: Sequence[Columns] = ()) -> SubsetResult:
        """Run the whole algorithm and return its result.

        The local search starts at the root relaxation, at the empty set and at ``starts``, which
        are sets of unit numbers. Safe screening then uses the root bound to eliminate units that
        are in no best subset, and in no near-optimal one if these are listed. Branch and bound runs
        over the other units. It prunes sets of subsets whose bound is at least ``cutoff``. If the
        ridge is strengthened before, rounding errors may consume only a small share of it.
        """
        # Step 1, local search for a good subset. Its units are numbered within ``neighborhood``,
        # the problem restricted to promising units.
        local_search, neighborhood = self._first_set(starts)
        if self._adds_price and local_search.best is not None:
            try:
                self._improve_root_bound(local_search.cutoff)
                previous_best = neighborhood.numbers[local_search.best.units]
                local_search, neighborhood = self._first_set([previous_best])
            except KeyboardInterrupt:
                self.interrupted = True
        assert local_search.best is not None
        best = neighborhood.numbers[local_search.best.units]
        # Step 2, safe screening: the units that may be in a better (or near-optimal) subset.
        limit = local_search.upper if self.settings.within is None else local_search.cutoff
        open_units = self._unscreened(limit, best)
        if open_units is not None and self.units.columns(open_units).size > self._most_copied:
            # A tighter root bound may screen out more units.
            try:
                self._improve_root_bound(local_search.cutoff)
            except KeyboardInterrupt:
                self.interrupted = True
            open_units = self._unscreened(limit, best)
        if open_units is None:
            # There are too many columns to list after screening, so branch and bound is skipped,
            # and only the root bound holds for all subsets.
            return self._result(local_search, neighborhood, None, self.lower)
        # Step 3: a stronger ridge tightens the bounds. It is not worth its cost if the gap is
        # proved already, and not safe if the objective is tiny.
        part = self._part(open_units)
        least = SMALL * loss_at_zero(self.problem)
        if self.lower < local_search.cutoff and local_search.upper > least:
            part = part.strengthened(
                FINE * self.settings.tol if self.settings.within is None else NEAR_FINE
            )
        # Step 4: branch and bound over the open units.
        search = self._search(part)
        search.floor = self.lower
        bound = None
        try:
            search.offer(part.places(best))
            search.improve()
            bound = search.begin(part.point(self.root), part.fixed)
            self._add_record(search)
            for _ in search.run(max_threads(), lambda: self._stops(search)):
                self._add_record(search)
        except KeyboardInterrupt:
            self.interrupted = True
        return self._result(search, part, bound)

    def _search(self, part: PartialRelaxation) -> Search:
        """Return the branch and bound over the units of ``part``, before its root is bounded."""
        barred = np.flatnonzero(part.fixed == OUT)
        gap = AIM * self.settings.tol
        return Search(part.relaxation, self.k, gap, self.settings.within, barred)

    def _first_set(self, starts: Sequence[Columns]) -> tuple[Search, PartialRelaxation]:
        """Run the local search among the most promising units.

        These are the units of the root relaxation, the units with the best ratings, and the units
        of ``starts``. Return the search, whose ``best`` is the best subset found, and the part of
        the problem with these units.
        """
        units = np.concatenate([self.units.of(self.root.columns), self._first, *starts])
        units = self._penalized(np.unique(units).astype(np.int64))
        part = self._part(units)
        search = self._search(part)
        # The units of a start come first. Without a price it is extended to k units: by those with
        # the largest weights in the root relaxation, then by those with the best ratings.
        unit_norms = part.relaxation.unit_norms(part.point(self.root))
        squares = np.square(self._ratings.at(part.numbers))
        for start in [np.zeros(0, dtype=np.int64), *starts]:
            priority = unit_norms.copy()
            priority[part.places(start)] += 1.0 + unit_norms.max()
            n_units = start.size if self.price else self.k
            search.exchange(search.offer(np.lexsort((-squares, -priority))[:n_units]))
        return search, part

    def _unscreened(self, limit: float, best: Columns) -> Columns | None:
        """Return the units that safe screening by the root bound does not eliminate.

        A subset with an objective below ``limit`` has only these units. The units ``best`` of the
        best known subset are always included. The result is None if the units are too many to list.

        Let r_(k)^2 be the k-th largest squared rating. Subsets with unit j have objectives of at
        least dual + (r_(k)^2 - r_j^2) / (2 level), see ``Search.fix``. So unit j is eliminated if
        this exceeds ``limit``, that is if r_j^2 < r_(k)^2 - 2 level (limit - dual).
        """
        slack = 2.0 * self.level * (limit - self.dual)
        squares = np.square(self._ratings.at(self._first[: self.k]))
        kth_square = float(squares[self.k - 1]) if squares.size == self.k else 0.0
        # With a price, the bound depends only on squared ratings above 2 price level. If fewer than
        # k ratings are above it, this number replaces the k-th square.
        kth_square = max(kth_square, 2.0 * self.price * self.level)
        error = self.error_of_score
        rounding = 1e-9 * kth_square + 4.0 * error * (math.sqrt(kth_square) + error)
        # A unit remains if its squared rating is at least this.
        least_square = kth_square - slack * (1.0 + 1e-9) - rounding
        if least_square > 0.0:
            units = self._ratings.above(math.sqrt(least_square))[0]
        elif self.problem.design.listable:
            units = np.arange(self.units.count)
        else:
            return None
        return np.union1d(self._penalized(units), best)

    def _stops(self, search: Search) -> bool:
        """Return whether a limit ends ``search``: nodes, time, Ctrl-C or a perfect fit.

        If more than ``max_near`` near-optimal subsets are found, their listing ends.
        """
        settings = self.settings
        within = search.within
        if within is not None and len(search.near_subsets(within)) > settings.max_near:
            search.end_list()
        at_limit = search.nodes >= settings.max_nodes or settings.deadline.use_step()
        return at_limit or self.interrupted or search.is_perfect

    def _end_reason(self, search: Search, listed: bool) -> SubsetStatus:
        """Return the reason for the end of ``search`` if the requested gap is not proved.

        ``listed`` is False if there were too many columns for branch and bound.
        """
        if search.is_perfect:
            return SubsetStatus.PERFECT_FIT
        if self.interrupted:
            return SubsetStatus.INTERRUPTED
        if not listed:
            return SubsetStatus.NOT_LISTED
        if self.settings.deadline.passed:
            return SubsetStatus.TIME_LIMIT
        if search.nodes >= self.settings.max_nodes:
            return SubsetStatus.NODE_LIMIT
        return SubsetStatus.ROUNDING

    def _add_record(self, search: Search) -> None:
        """Append a record of ``search`` to the history, and pass it to the observers.

        After Ctrl-C the observers are not called any more.
        """
        seconds = time.monotonic() - self.began
        record = SubsetRecord(seconds, search.nodes, search.upper, search.lower)
        self.history.append(record)
        for observer in () if self.interrupted else self.settings.watch:
            observer(record)

    # --- the result -------------------------------------------------------------------------

    def _result(
        self,
        search: Search,
        part: PartialRelaxation,
        bound: Bound | None,
        lower: float | None = None,
    ) -> SubsetResult:
        """Return the result of ``search``, with column numbers of the whole X.

        ``part`` is the part of the problem that was searched; it maps its column and unit numbers
        to those of X. ``bound`` is the bound of the root node of ``search``, for screening, or
        None. ``lower`` is the lower bound if branch and bound was skipped, else None.
        """
        assert search.best is not None
        best = part.fitted(search.best)
        listed = lower is None
        if lower is None:
            self._add_record(search)
            lower = max(search.lower, self.lower)
        # Rounding may raise a lower bound above the objective.
        lower = min(lower, best.objective)
        open_units, proved_in = self._proved(search, part, bound) if listed else (None, NONE)
        choices = self.units.count - self.units.n_free
        return SubsetResult(
            fitted=self._fitted(best, part, lower, search.nodes),
            columns=part.columns[best.point.columns],
            groups=None if self.units.partition is None else part.numbers[best.units],
            weights=best.point.weights,
            lower_bound=lower,
            ended=self._end_reason(search, listed),
            n_features=self.k,
            l2=self.level,
            proved_in=proved_in,
            n_proved_out=0 if open_units is None else choices - open_units.size,
            open_columns=open_units,
            near_models=near_models(
                part, search, self.problem, self.settings.within, self.price, listed
            ),
            swap_optimal=listed and search.is_local_minimum,
            nodes=search.nodes,
            history=self.history,
        )

    def _proved(
        self, search: Search, part: PartialRelaxation, bound: Bound | None
    ) -> tuple[Columns, Columns]:
        """Return the units that may be in a best subset, and those that are in every best subset.

        The units are numbered in the whole problem. ``part`` is the part of the problem that was
        searched, and ``bound`` the bound of the root node of ``search``, or None. A subset with an
        objective above ``limit`` is not a best subset.
        """
        fixed = part.fixed.copy()
        best = search.best
        limit = search.upper if self.settings.within is not None else search.limit
        # Three proofs: screening by the root bound, a best subset that is proved to be unique, and
        # only k units that remain: without a price, each best subset then has all of them.
        if bound is not None:
            search.fix(fixed, self.k, bound, limit)
        if search.is_unique and best is not None:
            fixed[:] = OUT
            fixed[best.units] = IN
        possible = fixed != OUT
        if np.count_nonzero(possible) == self.k and not self.price:
            fixed[possible] = IN
        return part.numbers[possible], part.numbers[fixed == IN]

    def _fitted(self, best: Subset, part: PartialRelaxation, lower: float, nodes: int) -> Result:
        """Return the ridge fit of the subset ``best`` as a ``Result`` over all columns.

        Its gap is the difference between its objective and ``lower``, the lower bound on all
        subsets. ``part`` maps column numbers to those of X, and ``nodes`` is the number of nodes
        that were bounded. All other fields are those of the result of the root relaxation.
        """
        problem = self.problem
        point = best.point
        gap = max(best.objective - lower, 0.0)
        intercept = point.intercept
        fitted = replace(
            self._root_result,
            columns=part.columns[point.columns],
            weights=point.weights,
            intercept=intercept + problem.origin,
            objective=best.objective,
            gap=gap,
            tol=self.settings.tol,
            status=Status.STALLED,  # until SubsetResult computes it from the gap
            passes=self.counted.passes,
            seconds=time.monotonic() - self.began,
            iterations=nodes,
            search_gap=None,
            history=[],
        )
        free = free_part(problem, part.plain.prediction(point))
        return fitted if free is None else fitted.with_free(problem.free, *free)
