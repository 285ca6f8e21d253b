"""Best-first branch and bound over subsets of columns, with proved lower bounds."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Columns
from atomlearn.subsets.exchange import Exchange, Subset
from atomlearn.subsets.norm import IN, OUT
from atomlearn.subsets.relaxation import Bound, NodeTask, Relaxation, RelaxedPoint

#: Number of nodes that are bounded in one batch. It determines the order of the search, so it does
#: not depend on the number of processors. One pass over the data for eight dual points takes about
#: as long as a pass for one.
AT_ONCE = 8
#: Relative difference of objectives above which it is not due to rounding.
WORSE = 4e-9


@dataclass(order=True, slots=True)
class Branch:
    """A node of the tree: all subsets with the units fixed in and at most k of the free units.

    Attributes
    ----------
    bound : float
        Lower bound on the objectives of these subsets.
    number : int
        Creation number, which breaks ties between equal bounds.
    fixed : (n_units,) int8
        State of each unit: 1 fixed in, -1 fixed out, 0 free.
    k : int
        Largest number of free units in a subset.
    start : RelaxedPoint
        Warm start of the relaxation of the node.
    near : (m,) int64
        Columns of its first restricted problem.
    """

    bound: float
    number: int
    fixed: NDArray[np.int8] = field(compare=False)
    k: int = field(compare=False)
    start: RelaxedPoint = field(compare=False)
    near: Columns = field(compare=False)


class Search(Exchange):
    """Best-first branch and bound for the best subset of at most k units.

    A unit is a column, or a group of columns. A node is a set of subsets: those with its fixed
    units. A node is closed without branching if its lower bound reaches ``cutoff``. A unit of a
    node is fixed if the other choice has a bound above ``limit``. Both are objectives near
    ``upper``, the objective of the best subset so far; fitted subsets are in ``known``.

    Parameters
    ----------
    relaxation : Relaxation
        Solver of the convex relaxation of a node.
    k : int
        Largest number of units of a subset.
    gap : float
        Relative gap: a node is pruned if its bound is at least (1 - gap) times the objective of
        the best subset so far.
    within : float or None
        If given, find all subsets of k units whose objective is at most (1 + within) times the
        smallest one.
    barred : (m,) int64, optional
        Units that no subset may contain.

    Attributes
    ----------
    floor : float
        A lower bound on the objectives of all subsets, which the caller sets if it knows one.
    nodes : int
        Number of nodes that were bounded.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        k: int,
        gap: float = 1e-4,
        within: float | None = None,
        barred: Columns | None = None,
    ) -> None:
        """Start with an empty tree; ``begin`` adds the root."""
        super().__init__(relaxation, k, barred)
        self.gap = gap
        self.within = within
        self.floor = -math.inf
        #: 2 level price: the dual bound depends only on squared scores above this.
        self._price_square = 2.0 * relaxation.level * self.price
        self.nodes = 0
        self._open: list[Branch] = []
        # Nodes that are being bounded. They count as open, so the lower bound holds after Ctrl-C.
        self._batch: list[Branch] = []
        # Lower bound on all subsets of closed nodes: those pruned, or skipped at the deadline. It
        # is -inf before the root is bounded.
        self._closed_bound = -math.inf
        # Nodes that were skipped at the deadline, which may have subsets below ``cutoff``.
        self._skipped: list[Branch] = []
        #: The result of ``possible_units`` when the listing of near subsets ended early.
        self._final_masks: tuple[NDArray[np.bool_], NDArray[np.bool_]] | None = None
        self._numbers = itertools.count()

    # --- bounds and sets so far ---------------------------------------------------------------

    @property
    def lower(self) -> float:
        """A lower bound on the objectives of all subsets.

        It is the minimum of the bounds of open nodes, of closed nodes and of fitted subsets.
        ``floor`` replaces the bounds of the nodes if it is larger than their minimum.
        """
        return min(max(min(self._lowest_bound, self._closed_bound), self.floor), self.fitted)

    @property
    def _lowest_bound(self) -> float:
        """The smallest lower bound of all open nodes, inf if there are none."""
        return min((branch.bound for branch in (*self._open[:1], *self._batch)), default=math.inf)

    @property
    def is_open(self) -> bool:
        """Whether an open or skipped node may contain a subset below ``cutoff``."""
        return min(self._lowest_bound, self._closed_bound) < self.cutoff

    @property
    def is_unique(self) -> bool:
        """Whether the best subset is proved to be the unique optimum."""
        best = self.best
        if best is None or not (self.price or best.units.size == self.k):
            return False
        # No node is open, and all other subsets have larger bounds, by more than rounding.
        others = (point.lower for point in self.known.values() if point is not best)
        bound = min(self._closed_bound, min(others, default=math.inf))
        return self._lowest_bound == math.inf and bound > self.upper + 0.5 * WORSE * abs(self.upper)

    def near_subsets(self, within: float) -> list[Subset]:
        """Return the fitted subsets whose objective is at most (1 + within) times the smallest.

        The best one is first. They have k units; with a price they may have fewer.
        """
        limit = self.upper_within(within)
        points = [
            point for point in self._candidates() if point.objective <= limit + WORSE * abs(limit)
        ]
        return sorted(points, key=lambda each: each.objective)

    def is_complete(self, within: float) -> bool:
        """Return whether ``near_subsets(within)`` is proved complete.

        It is complete if no node is open, and if no fit that ended early may be below the limit.
        """
        limit = self.upper_within(within)
        rounded_limit = limit + WORSE * abs(limit)
        return not self.is_open and not any(
            point.lower <= limit and point.objective > rounded_limit for point in self._candidates()
        )

    def possible_units(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return two masks (n_units,) of the units in subsets with objectives below ``cutoff``.

        The first mask has the units that may be in some such subset, and the second one the units
        that are in all of them. After ``end_list`` the masks do not change any more. They remain
        valid, because the cutoff never rises.
        """
        if self._final_masks is not None:
            return self._final_masks
        count = self.relaxation.units.count
        limit = self.cutoff
        if self._closed_bound == -math.inf and not self._batch:
            # The root is not bounded yet, so nothing is proved.
            some = np.ones(count, dtype=bool)
            some[self._barred] = False
            return some, np.zeros(count, dtype=bool)
        some = np.zeros(count, dtype=bool)
        every = np.ones(count, dtype=bool)
        # A subset below the cutoff is in a node that is not pruned, or it is fitted.
        for branch in (*self._open, *self._batch, *self._skipped):
            if branch.bound < limit:
                some |= branch.fixed != OUT
                every &= branch.fixed == IN
        for subset in self._candidates():
            if subset.lower <= limit or subset.objective <= limit + WORSE * abs(limit):
                in_some = np.zeros(count, dtype=bool)
                in_some[subset.units] = True
                some |= in_some
                every &= in_some
        return some, every

    def end_list(self) -> None:
        """End the listing of near subsets: only the proof of the best one continues."""
        self._final_masks = self.possible_units()
        self.within = None

    def _candidates(self) -> list[Subset]:
        """Return the fitted subsets of k units; with a price, the fitted subsets of any size.

        Without a price, smaller subsets are not listed, as adding a unit never worsens the fit.
        """
        return [point for point in self.known.values() if self.price or point.units.size == self.k]

    def upper_within(self, share: float) -> float:
        """Return the best objective plus ``share`` of its absolute value; inf if nothing is fitted.

        ``share`` may be negative.
        """
        return self.upper + share * abs(self.upper) if self.best is not None else math.inf

    @property
    def cutoff(self) -> float:
        """The objective at which nodes are pruned: those with a bound at least this large."""
        return self.upper_within(-self.gap if self.within is None else self.within)

    @property
    def limit(self) -> float:
        """The objective for fixing units: a unit is fixed if the alternative has a larger bound."""
        return self.upper_within(WORSE if self.within is None else self.within)

    # --- the search -------------------------------------------------------------------------

    def improve(self) -> None:
        """Run the local search from the best subset, then from the empty set.

        From the empty set it is forward selection followed by replacements. This second search is
        skipped if ``floor`` already proves that the best subset is good enough.
        """
        self.descend()
        if self.floor < self.cutoff:
            self.exchange(self.offer(np.zeros(0, dtype=np.int64)))
            self.descend()

    def begin(self, start: RelaxedPoint, fixed: NDArray[np.int8]) -> Bound | None:
        """Bound the root node and branch on it; return its bound, None after the deadline.

        ``start`` is the warm start of the relaxation. ``fixed`` (n_units,) is -1 for units that are
        fixed out, else 0.
        """
        root = Branch(-math.inf, next(self._numbers), fixed, self.k, start, start.columns)
        self._batch.append(root)
        self._closed_bound = math.inf  # no node is closed yet
        (bound,) = self.relaxation.bounds([self._bound_arguments(root)])
        self._process(root, bound)
        self._batch.remove(root)
        self.descend()
        return bound

    def run(self, threads: int, stop: Callable[[], bool]) -> Iterator[None]:
        """Bound open nodes in batches until no node is open or ``stop()`` is true.

        It yields None after each batch. ``threads`` is the number of threads for one batch.
        """
        with ThreadPoolExecutor(threads) as pool:
            while self._open and not stop():
                self._next_batch()
                batch = list(self._batch)
                # The relaxations of a batch run together; small nodes are enumerated instead.
                relaxed = [node for node in batch if not self._is_enumerated(node)]
                branches = [self._bound_arguments(node) for node in relaxed]
                node_bounds = self.relaxation.bounds(branches, pool if threads > 1 else None)
                bounds = iter(node_bounds)
                for branch in batch:
                    if branch in relaxed:
                        self._process(branch, next(bounds))
                    else:
                        self._enumerate(branch)
                    self._batch.remove(branch)
                # The local search starts again if a node has a new best subset.
                self.descend()
                yield

    def _next_batch(self) -> None:
        """Move the nodes with the smallest bounds from the heap to the batch.

        Nodes with a bound of at least ``cutoff`` are pruned instead.
        KeyboardInterrupt may occur between any two lines. Each node is added to its new place
        before it is removed from the heap, so that the lower bound always counts it.
        """
        while self._open and len(self._batch) < AT_ONCE:
            branch = self._open[0]
            if branch.bound < self.cutoff:
                self._batch.append(branch)
            else:
                self._closed_bound = min(self._closed_bound, branch.bound)
            heapq.heappop(self._open)

    def _bound_arguments(self, branch: Branch) -> NodeTask:
        """Return norm, warm start, first columns and cutoff of the relaxation of ``branch``."""
        norm = self.relaxation.norm(branch.k, branch.fixed)
        return norm, branch.start, branch.near, self.cutoff

    def _is_enumerated(self, branch: Branch) -> bool:
        """Return whether the subsets of the node ``branch`` are enumerated instead of relaxed.

        A node with k <= 1, at most one free unit in a subset, has few subsets. For k = 1 a
        quadratic model bounds their objectives. So the loss f must be quadratic, without groups.
        """
        relaxation = self.relaxation
        is_exact = relaxation.quadratic and relaxation.units.partition is None
        return branch.k == 0 or (branch.k == 1 and is_exact)

    def _process(self, branch: Branch, bound: Bound | None) -> None:
        """Fit the rounded subset of a bounded node, then prune the node or branch on it.

        The rounded subset is near the solution of the relaxation. ``bound`` is the bound of the
        node, None if the deadline passed before it was computed.
        """
        if bound is None:
            self._closed_bound = min(self._closed_bound, branch.bound)
            self._skipped.append(branch)
            return
        self.nodes += 1
        # The bound of the parent holds as well.
        bound.lower = max(bound.lower, branch.bound)
        subset = self._rounded_fit(branch, bound) if bound.lower < self.limit else None
        if bound.lower >= self.cutoff:
            self._closed_bound = min(self._closed_bound, self._bound_without(branch, bound, subset))
        else:
            self._branch(branch, bound)

    def _bound_without(self, branch: Branch, bound: Bound, subset: Subset | None) -> float:
        """Return a lower bound on all subsets of the node ``branch`` except the fitted ``subset``.

        ``bound`` is the bound of the node. The result exceeds it only if the k best units of the
        relaxation are exactly those of ``subset``.
        """
        paying, last, following, after = self._ranked(branch.fixed, branch.k, bound)
        if subset is None or not branch.k:
            return bound.lower
        if set(subset.units) != {*paying, *np.flatnonzero(branch.fixed == IN)}:
            return bound.lower
        # Every other subset lacks one of the paying units, or has a unit that does not pay.
        least_paying = bound.squares[paying].min(initial=math.inf) - self._price_square
        growth = min(float(least_paying) - following, last - after) - self._rounding_bound(
            last, bound
        )
        return max(bound.lower, bound.dual + max(growth, 0.0) / (2.0 * self.relaxation.level))

    def _ranked(
        self, fixed: NDArray[np.int8], k: int, bound: Bound
    ) -> tuple[Columns, float, float, float]:
        """Rank the free units by worth; return the best paying units, and three worths.

        The worth of a unit is its squared score in ``bound`` minus 2 level price. The unit is
        paying if its worth is positive. ``fixed`` (n_units,) is 0 for free units. The result is
        (paying, last, following, after): ``paying`` has the paying units among the k best
        free ones, best first. ``last`` is the k-th largest worth and ``following`` the next
        one; if fewer than k units pay, both are 0. ``after`` is the largest worth after the
        paying units, -inf if there is none.
        """
        free = np.flatnonzero(fixed == 0)
        # Only the k + 1 best units are needed.
        if k + 1 < free.size:
            free = free[np.argpartition(-bound.squares[free], k)[: k + 1]]
        free = free[np.argsort(-bound.squares[free], kind="stable")]
        worth = bound.squares[free] - self._price_square
        n_paying = int(np.count_nonzero(worth[:k] > 0.0))
        after = float(worth[n_paying]) if n_paying < free.size else -math.inf
        if n_paying < k:
            return free[:n_paying], 0.0, 0.0, after
        return free[:k], float(worth[k - 1]) if k else 0.0, max(after, 0.0), after

    def _rounded_fit(self, branch: Branch, bound: Bound) -> Subset:
        """Round the solution of the relaxation of ``branch`` to a subset, and return its ridge fit.

        ``bound`` has this solution. The subset has the units fixed in, and the free units with the
        largest weights, at most k units in total. If there are fewer and no price, the free units
        with the largest squared scores are added up to k.
        """
        unit_norms = self.relaxation.unit_norms(bound.point)
        threshold = (
            0.5 * self.relaxation.norm(branch.k, branch.fixed).entry_threshold(unit_norms)
            if self.price
            else 0.0
        )
        unit_norms[branch.fixed == IN] = math.inf
        top = np.argsort(-unit_norms, kind="stable")[: self.k]
        # With a price, units whose share, norm / entry threshold, is below 1/2 are rounded to 0.
        top = top[unit_norms[top] > threshold]
        if top.size < self.k and not self.price:
            others = np.where((branch.fixed == 0) & (unit_norms == 0.0), bound.squares, -1.0)
            added = np.argsort(-others, kind="stable")[: self.k - top.size]
            top = np.append(top, added[others[added] >= 0.0])
        return self.offer(top)

    def _enumerate(self, branch: Branch) -> None:
        """Enumerate the node ``branch``: fit its subsets that may be below ``cutoff``.

        It has k <= 1. Its subsets are the units fixed in, and for k = 1 also these units with one
        free unit more.
        """
        self.nodes += 1
        fixed_units = np.flatnonzero(branch.fixed == IN)
        base = self.offer(fixed_units)
        if branch.k == 0:
            return
        # The quadratic model bounds the objective of each larger subset without a fit.
        free = np.flatnonzero(branch.fixed == 0)
        model, dual = self.model(base)
        gap = max(base.objective - base.lower, 0.0)
        gains = model.most_added(gap, dual)[free]
        bounds = base.lower + self.price - gains * (1.0 + 1e-9) - 1e-12 * abs(base.objective)
        # The bounds are tried in increasing order. So after the first one above ``cutoff`` all
        # others exceed it as well.
        for position in np.argsort(bounds, kind="stable"):
            if np.sort(np.append(fixed_units, free[position])).tobytes() in self.known:
                continue
            if bounds[position] >= self.cutoff or self.relaxation.problem.deadline.use_step():
                # The bound of the node holds as well. It may be larger if ``base`` was fitted only
                # roughly, at the deadline.
                model_bound = float(bounds[position])
                self._closed_bound = min(self._closed_bound, max(model_bound, branch.bound))
                if bounds[position] < self.cutoff:
                    self._skipped.append(branch)
                break
            self.offer(np.append(fixed_units, free[position]))

    def _branch(self, branch: Branch, bound: Bound) -> None:
        """Fix units of the bounded node ``branch`` by their scores, and open its child nodes.

        ``bound`` has the lower bound, the solution of the relaxation and the scores. The share d_j
        of a free unit, from 0 to 1, is how much of the unit the relaxation uses (see
        ``BranchNorm``). For each unit of share 1, a child without the unit is opened, and the unit
        is fixed in. Then the node is split at the free unit with the largest share.
        """
        fixed = branch.fixed.copy()
        k = branch.k
        squares = bound.squares
        following = self._ranked(fixed, k, bound)[2]
        k -= self.fix(fixed, k, bound, self.limit)
        # Fixing a unit eliminates subsets, whose bounds are at least ``limit``.
        if np.count_nonzero(fixed) > np.count_nonzero(branch.fixed):
            self._closed_bound = min(self._closed_bound, self.limit)
        # The share is the weight of the unit divided by the weight of a full unit, at most 1.
        unit_norms = np.where(fixed == 0, self.relaxation.unit_norms(bound.point), 0.0)
        full = self.relaxation.norm(k, fixed).entry_threshold(unit_norms)
        shares = (
            np.minimum(unit_norms / full, 1.0) if full else (unit_norms > 0.0).astype(np.float64)
        )
        free = np.flatnonzero(fixed == 0)
        if not k or not free.size:
            self._open_branch(bound, fixed, 0)
            return
        # Without a unit of share 1 the dual bound grows by the difference between its worth and the
        # next worth, over 2 level. With the unit fixed in, the bound remains the same.
        used_in_full = np.flatnonzero(shares >= 1.0 - 1e-9)
        used_in_full = used_in_full[np.argsort(-squares[used_in_full], kind="stable")]
        for unit in used_in_full[:k]:
            without = fixed.copy()
            without[unit] = OUT
            worth = float(squares[unit]) - self._price_square
            growth = worth - following - self._rounding_bound(worth, bound)
            self._open_branch(bound, without, k, growth / (2.0 * self.relaxation.level))
            fixed[unit] = IN
            k = k - 1
        # The last two children: without the unit of the largest share, and with it. Among units of
        # equal shares it is the unit with the largest squared score.
        free = np.flatnonzero(fixed == 0)
        if k and free.size:
            largest = free[shares[free] == shares[free].max()]
            unit = largest[squares[largest].argmax()]
            without = fixed.copy()
            without[unit] = OUT
            self._open_branch(bound, without, k)
            fixed[unit] = IN
            k = k - 1
        self._open_branch(bound, fixed, k)

    def fix(self, fixed: NDArray[np.int8], k: int, bound: Bound, limit: float) -> int:
        """Fix free units in or out by safe screening; return the number of units fixed in.

        The worth s_j of a free unit is its squared score minus 2 level price, and s_(k) the k-th
        largest worth. If unit j must be in, the dual bound of the node grows by
        (s_(k) - s_j) / (2 level); if it must be out, by (s_j - s_(k+1)) / (2 level). A unit is
        fixed if the other choice raises the bound above ``limit``, an objective. If fewer than k
        units have a positive worth, s_(k) and s_(k+1) are 0.

        ``fixed`` (n_units,) is changed in place. ``k`` is the largest number of free units that a
        subset may have, and ``bound`` has the dual objective and the squared scores of the node.
        """
        if not k:
            return 0
        paying, last, following, _ = self._ranked(fixed, k, bound)
        worth = bound.squares - self._price_square
        # A growth of the bound by ``needed`` / (2 level) reaches the limit, also with rounding.
        needed = 2.0 * self.relaxation.level * (limit - bound.dual)
        needed = needed * (1.0 + 1e-9) + self._rounding_bound(last, bound)
        fixed[(fixed == 0) & (worth < last - needed)] = OUT
        least = following + needed + 1e-9 * bound.squares[paying]
        forced = paying[worth[paying] > least]
        fixed[forced] = IN
        return int(forced.size)

    def _rounding_bound(self, worth: float, bound: Bound) -> float:
        """Return a bound on the rounding error of a difference of squared scores.

        ``worth`` is the larger square minus 2 level price. ``bound`` has the bound e on the error
        of one score z; the square z^2 has an error of at most 2 e |z| + e^2.
        """
        square = worth + self._price_square
        return 1e-9 * square + 4.0 * bound.error_of_score * (
            math.sqrt(square) + bound.error_of_score
        )

    def _open_branch(
        self, bound: Bound, fixed: NDArray[np.int8], k: int, cost: float = 0.0
    ) -> None:
        """Add a child node to the heap, or prune it if its bound is at least ``cutoff``.

        ``bound`` is the bound of the parent. The dual bound of the child is larger by ``cost``,
        because of the units that are fixed. ``fixed`` (n_units,) has the state of each unit in the
        child: 1 in, -1 out, 0 free. ``k`` is the largest number of free units in a subset of the
        child.
        """
        lower = max(bound.lower, bound.dual + max(cost, 0.0))
        if lower >= self.cutoff:
            self._closed_bound = min(self._closed_bound, lower)
            return
        if k == 0:
            fixed[fixed == 0] = OUT
        child = Branch(lower, next(self._numbers), fixed, k, bound.point, bound.near)
        heapq.heappush(self._open, child)
