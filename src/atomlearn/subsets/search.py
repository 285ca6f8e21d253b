"""Search: branch and bound over sets of columns, with proved bounds."""

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
from atomlearn.subsets.relaxation import Asked, Bound, Relaxation, RelaxedPoint

#: Number of branches that are bounded together, on all processors. It decides the order of the
#: search, so that it is the same on every machine. A pass over the data for eight takes as long as
#: for one.
AT_ONCE = 8
#: Relative difference of objectives from which a set is worse in spite of rounding.
WORSE = 4e-9


@dataclass(order=True, slots=True)
class Branch:
    """Sets with all units fixed in, without those fixed out, and with at most k others.

    Attributes
    ----------
    bound : float
        Lower bound on their objectives.
    number : int
        Number that breaks ties.
    fixed : (n,) int8
        1 in, -1 out, 0 free.
    k : int
        Number of other units.
    start, near : RelaxedPoint, array of int64
        RelaxedPoint and columns at which its relaxation begins.
    """

    bound: float
    number: int
    fixed: NDArray[np.int8] = field(compare=False)
    k: int = field(compare=False)
    start: RelaxedPoint = field(compare=False)
    near: Columns = field(compare=False)


class Search(Exchange):
    """Best-first search with lower bounds on all open branches.

    Parameters
    ----------
    relaxation : Relaxation
        The relaxed problem.
    k : int
        Largest number of units of a set.
    gap : float
        Relative: a branch whose bound is within this gap of the best set so far is cut.
    within : float or None
        Look for all sets of k units whose objective is at most 1 + within times the best one.
    barred : (m,) int64, optional
        Units that are in no set.

    Attributes
    ----------
    floor : float
        A lower bound on all sets that the caller knows.
    """

    def __init__(
        self,
        relaxation: Relaxation,
        k: int,
        gap: float = 1e-4,
        within: float | None = None,
        barred: Columns | None = None,
    ) -> None:
        super().__init__(relaxation, k, barred)
        self.gap = gap
        self.within = within
        self.floor = -math.inf
        #: Amount that the price subtracts from a squared score.
        self._toll = 2.0 * relaxation.level * self.price
        self.nodes = 0
        self._open: list[Branch] = []
        # Branches that are being bounded; they are open, in case that is interrupted.
        self._batch: list[Branch] = []
        # Lower bound on all sets that were cut or skipped for lack of time; at first on all sets.
        self._cut = -math.inf
        self._numbers = itertools.count()

    # --- bounds and sets so far ---------------------------------------------------------------

    @property
    def lower(self) -> float:
        """The lower bound on the objectives of all sets."""
        return min(max(min(self._least, self._cut), self.floor), self.fitted)

    @property
    def _least(self) -> float:
        """The smallest bound of all open branches."""
        return min((branch.bound for branch in (*self._open[:1], *self._batch)), default=math.inf)

    @property
    def is_open(self) -> bool:
        """Whether a branch may contain a set that is looked for."""
        return min(self._least, self._cut) < self.cutoff

    @property
    def is_alone(self) -> bool:
        """Whether every other set of at most k units is proved to be worse than the best one."""
        best = self.best
        if best is None or not (self.price or best.units.size == self.k):
            return False
        others = (each.lower for each in self.known.values() if each is not best)
        rest = min(self._cut, min(others, default=math.inf))
        return self._least == math.inf and rest > self.upper + 0.5 * WORSE * abs(self.upper)

    def within_reach(self, within: float) -> list[Subset]:
        """Return all sets of k units within this share of the best one, best first.

        With a price, sets of any size count.
        """
        limit = self._above(within)
        found = [each for each in self._sized() if each.objective <= limit + WORSE * abs(limit)]
        return sorted(found, key=lambda each: each.objective)

    def is_complete(self, within: float) -> bool:
        """Return whether ``within_reach`` has all sets: no branch is open, no fit was cut short."""
        limit = self._above(within)
        beyond = limit + WORSE * abs(limit)
        return not self.is_open and not any(
            each.lower <= limit and each.objective > beyond for each in self._sized()
        )

    def _sized(self) -> list[Subset]:
        return [each for each in self.known.values() if self.price or each.units.size == self.k]

    def _above(self, share: float) -> float:
        return self.upper + share * abs(self.upper) if self.best is not None else math.inf

    @property
    def cutoff(self) -> float:
        """The bound from which a branch contains no set that is looked for."""
        return self._above(-self.gap if self.within is None else self.within)

    @property
    def limit(self) -> float:
        """The bound from which a column is proved in or out."""
        return self._above(WORSE if self.within is None else self.within)

    # --- the search -------------------------------------------------------------------------

    def improve(self) -> None:
        """Improve the best set by exchanges, and try a second start.

        The second start adds columns one by one. It is left out if the ``floor`` proves enough.
        """
        self.settle()
        if self.floor < self.cutoff:
            self.exchange(self.offer(np.zeros(0, dtype=np.int64)))
            self.settle()

    def begin(self, start: RelaxedPoint, fixed: NDArray[np.int8]) -> Bound | None:
        """Bound all sets without the units fixed out, and open their branches.

        The result is None if there is no time for it.
        """
        root = Branch(-math.inf, next(self._numbers), fixed, self.k, start, start.columns)
        self._batch.append(root)
        self._cut = math.inf
        (bound,) = self.relaxation.bounds([self._asked(root)])
        self._taken(root, bound)
        self._batch.remove(root)
        self.settle()
        return bound

    def run(self, threads: int, stop: Callable[[], bool]) -> Iterator[None]:
        """Bound branches until none is open; yield after each group of them."""
        with ThreadPoolExecutor(threads) as pool:
            while self._open and not stop():
                self._next()
                batch = list(self._batch)
                relaxed = [each for each in batch if not self._looks_through(each)]
                asked = [self._asked(each) for each in relaxed]
                found = self.relaxation.bounds(asked, pool if threads > 1 else None)
                bounds = iter(found)
                for branch in batch:
                    if branch in relaxed:
                        self._taken(branch, next(bounds))
                    else:
                        self._look_through(branch)
                    self._batch.remove(branch)
                self.settle()
                yield

    def _next(self) -> None:
        """Take the open branches with the lowest bounds; cut those that need no work.

        KeyboardInterrupt may come between any two lines: a branch is then in two places, never in
        none.
        """
        while self._open and len(self._batch) < AT_ONCE:
            branch = self._open[0]
            if branch.bound < self.cutoff:
                self._batch.append(branch)
            else:
                self._cut = min(self._cut, branch.bound)
            heapq.heappop(self._open)

    def _asked(self, branch: Branch) -> Asked:
        norm = self.relaxation.norm(branch.k, branch.fixed)
        return norm, branch.start, branch.near, self.cutoff

    def _looks_through(self, branch: Branch) -> bool:
        """Return whether a branch is enumerated set by set."""
        r = self.relaxation
        return branch.k == 0 or (branch.k == 1 and r.quadratic and r.units.partition is None)

    def _taken(self, branch: Branch, bound: Bound | None) -> None:
        if bound is None:
            self._cut = min(self._cut, branch.bound)
            return
        self.nodes += 1
        bound.lower = max(bound.lower, branch.bound)
        subset = self._rounded(branch, bound) if bound.lower < self.limit else None
        if bound.lower >= self.cutoff:
            self._cut = min(self._cut, self._of_others(branch, bound, subset))
        else:
            self._branch(branch, bound)

    def _of_others(self, branch: Branch, bound: Bound, subset: Subset | None) -> float:
        """Return the bound of a branch without the set that is fitted."""
        paying, last, following, after = self._ranked(branch.fixed, branch.k, bound)
        if subset is None or not branch.k:
            return bound.lower
        if set(subset.units) != {*paying, *np.flatnonzero(branch.fixed == IN)}:
            return bound.lower
        # The other sets lack a paying unit, or have one that does not pay.
        least = bound.squares[paying].min(initial=math.inf) - self._toll
        more = min(float(least) - following, last - after) - self._lost(last, bound)
        return max(bound.lower, bound.dual + max(more, 0.0) / (2.0 * self.relaxation.level))

    def _ranked(
        self, fixed: NDArray[np.int8], k: int, bound: Bound
    ) -> tuple[Columns, float, float, float]:
        """Return the paying units among the k best free ones, and three scores less the toll.

        A unit pays if its squared score exceeds the toll. The scores are that of the last of the k,
        that of its successor (both 0 if fewer than k pay), and that of the best unit after the
        paying ones.
        """
        free = np.flatnonzero(fixed == 0)
        if k + 1 < free.size:
            free = free[np.argpartition(-bound.squares[free], k)[: k + 1]]
        free = free[np.argsort(-bound.squares[free], kind="stable")]
        worth = bound.squares[free] - self._toll
        paying = int(np.count_nonzero(worth[:k] > 0.0))
        after = float(worth[paying]) if paying < free.size else -math.inf
        if paying < k:
            return free[:paying], 0.0, 0.0, after
        return free[:k], float(worth[k - 1]) if k else 0.0, max(after, 0.0), after

    def _rounded(self, branch: Branch, bound: Bound) -> Subset:
        """Return the set of the units that are in and the largest free ones."""
        sizes = self.relaxation.sizes(bound.point)
        half = 0.5 * self.relaxation.norm(branch.k, branch.fixed).bar(sizes) if self.price else 0.0
        sizes[branch.fixed == IN] = math.inf
        top = np.argsort(-sizes, kind="stable")[: self.k]
        top = top[sizes[top] > half]
        if top.size < self.k and not self.price:
            others = np.where((branch.fixed == 0) & (sizes == 0.0), bound.squares, -1.0)
            more = np.argsort(-others, kind="stable")[: self.k - top.size]
            top = np.append(top, more[others[more] >= 0.0])
        return self.offer(top)

    def _look_through(self, branch: Branch) -> None:
        """Fit the sets of a branch with one more column, or none, that may be looked for."""
        self.nodes += 1
        inside = np.flatnonzero(branch.fixed == IN)
        alone = self.offer(inside)
        if branch.k == 0:
            return
        free = np.flatnonzero(branch.fixed == 0)
        model, dual = self.model(alone)
        gap = max(alone.objective - alone.lower, 0.0)
        gains = model.most_added(gap, dual)[free]
        bounds = alone.lower + self.price - gains * (1.0 + 1e-9) - 1e-12 * abs(alone.objective)
        for at in np.argsort(bounds, kind="stable"):
            if np.sort(np.append(inside, free[at])).tobytes() in self.known:
                continue
            if bounds[at] >= self.cutoff or self.relaxation.problem.deadline.use_step():
                self._cut = min(self._cut, float(bounds[at]))
                break
            self.offer(np.append(inside, free[at]))

    def _branch(self, branch: Branch, bound: Bound) -> None:
        """Fix the units that the scores prove in or out, and open the remaining branches."""
        fixed = branch.fixed.copy()
        k = branch.k
        squares = bound.squares
        following = self._ranked(fixed, k, bound)[2]
        k -= self.fix(fixed, k, bound, self.limit)
        if np.count_nonzero(fixed) > np.count_nonzero(branch.fixed):
            self._cut = min(self._cut, self.limit)
        sizes = np.where(fixed == 0, self.relaxation.sizes(bound.point), 0.0)
        whole = self.relaxation.norm(k, fixed).bar(sizes)
        shares = np.minimum(sizes / whole, 1.0) if whole else (sizes > 0.0).astype(np.float64)
        free = np.flatnonzero(fixed == 0)
        if not k or not free.size:
            self._open_branch(bound, fixed, 0)
            return
        # The bound without a column of share 1 grows by its score; the bound with it stays.
        heavy = np.flatnonzero(shares >= 1.0 - 1e-9)
        heavy = heavy[np.argsort(-squares[heavy], kind="stable")]
        for unit in heavy[:k]:
            without = fixed.copy()
            without[unit] = OUT
            worth = float(squares[unit]) - self._toll
            more = worth - following - self._lost(worth, bound)
            self._open_branch(bound, without, k, more / (2.0 * self.relaxation.level))
            fixed[unit] = IN
            k = k - 1
        free = np.flatnonzero(fixed == 0)
        if k and free.size:
            likeliest = free[shares[free] == shares[free].max()]
            unit = likeliest[squares[likeliest].argmax()]
            without = fixed.copy()
            without[unit] = OUT
            self._open_branch(bound, without, k)
            fixed[unit] = IN
            k = k - 1
        self._open_branch(bound, fixed, k)

    def fix(self, fixed: NDArray[np.int8], k: int, bound: Bound, limit: float) -> int:
        """Fix units in and out for sets below a limit by their scores; return how many came in.

        With column j in, the bound of a branch grows by (z_k^2 - z_j^2) / (2 level), z_k the k-th
        largest free score; with it out, by (z_j^2 - z_k+1^2) / (2 level). A price is subtracted
        from each square; if fewer than k pay, 0 replaces z_k^2 and z_k+1^2.
        """
        if not k:
            return 0
        paying, last, following, _ = self._ranked(fixed, k, bound)
        worth = bound.squares - self._toll
        spare = 2.0 * self.relaxation.level * (limit - bound.dual)
        spare = spare * (1.0 + 1e-9) + self._lost(last, bound)
        fixed[(fixed == 0) & (worth < last - spare)] = OUT
        least = following + spare + 1e-9 * bound.squares[paying]
        forced = paying[worth[paying] > least]
        fixed[forced] = IN
        return int(forced.size)

    def _lost(self, worth: float, bound: Bound) -> float:
        """Return a bound on the rounding of a difference of squared scores up to this one."""
        square = worth + self._toll
        return 1e-9 * square + 4.0 * bound.off * (math.sqrt(square) + bound.off)

    def _open_branch(
        self, bound: Bound, fixed: NDArray[np.int8], k: int, cost: float = 0.0
    ) -> None:
        lower = max(bound.lower, bound.dual + max(cost, 0.0))
        if lower >= self.cutoff:
            self._cut = min(self._cut, lower)
            return
        if k == 0:
            fixed[fixed == 0] = OUT
        child = Branch(lower, next(self._numbers), fixed, k, bound.point, bound.near)
        heapq.heappush(self._open, child)
