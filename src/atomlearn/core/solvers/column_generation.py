"""Column generation: find the best new columns, re-fit all weights, prove the gap.

Also called fully corrective Frank-Wolfe. The columns found span a subspace. There the master solves
the *same* problem exactly, with the norm restricted to it. [V] Algorithm 1, [T]
Algorithm 1 with the exact master, [L] with subspaces for atoms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from atomlearn.core.data.cached_block import CachedBlock, distinct_columns
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.standardized import affine_block
from atomlearn.core.interfaces import Array, Block, Columns, WarmStart
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.choose import candidates_for_free, choose_master
from atomlearn.core.masters.master import Master, Refit, certified
from atomlearn.core.problem.problem import (
    Problem,
    loss_at_zero,
    negligible_objective,
    objective_at,
    optimal_intercept,
    restrict,
    shrink_inside,
)
from atomlearn.core.problem.proof import Pricing, prove
from atomlearn.core.problem.rounding import Lengths, counted, measured
from atomlearn.core.solvers.solver import INNER_RATIO, TOLERANCE, Solver, State

#: Entries of a block up to which the time of an exact re-fit is not measurable next to a pass. All
#: columns of such a design enter at once, so that one pass proves the optimum.
SMALL = 2**15
#: Powers of ten between the first useful level and that of the problem beyond which a fit from zero
#: goes through levels in between: masters are slow far from the optimum, or fail.
FAR = 3.0
#: Largest factor between the smallest level at which the point would stay and that of a re-fit, for
#: losses that couple predictions. Newton steps from far away add columns that the optimum does not
#: have, and take most of the time. A factor of 4 takes a tenth longer.
NEARER = 3.0


@dataclass(slots=True)
class ActiveState(State):
    """State with the active block.

    Attributes
    ----------
    block : Block
        The data of ``columns``, minus the offsets of ``lengths``.
    lengths : Lengths
    candidates : (m,)
        Columns to add in the next step, none of them active.
    refit_gap : float
        Certified gap of the restricted problem at this point.
    free : int
        Candidates that a pass may add at no cost to the master.
    """

    block: Block | None = None
    lengths: Lengths = field(default_factory=Lengths.none)
    candidates: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    refit_gap: float = np.inf
    free: int = 0


@dataclass(frozen=True, slots=True)
class ColumnGeneration(Solver):
    """Column generation over subspaces, for every norm that can be restricted.

    Parameters
    ----------
    master : Master, optional
        Re-fits the weights over the active columns. Default: that of ``choose_master``.
    batch : int, optional
        About the number of columns that enter after a pass. Default: twice the number in use, but
        at least 100 and a hundredth of all (for implicit columns, the number that fits in half a
        GB), or the number that costs the master no time, which then solves exactly. A norm gives
        at least the columns of its best atom; the first pass takes twice that number. 1 takes only
        the columns of the best atom.
    inner_ratio : float
        Share of the outer gap to which the master solves: the next columns move the point anyway.
    tol : float
        Relative gap to prove; the master does not solve to much less.

    Notes
    -----
    A step, the algorithm of [V] (Algorithm 1) with subspaces in the place of atoms:

    1. the candidates of the last pass join the active columns;
    2. the master re-fits all their weights: the *same* problem, restricted to these columns;
    3. columns without weight leave, once they are most of the block;
    4. one pass over the data prices the point: the scores z = X'v of the dual point v = -f'(Xw + b)
       give the certificate and the next candidates, the columns of the best atoms that would not
       stay at zero.

    A warm start is first re-fitted over its columns, and then priced. All columns of a small design
    enter at once.

    Each step takes O(n p) time for the pass, and O(n m) memory for m active columns.

    References
    ----------
    [V] Vinyes, Obozinski 2017, Algorithm 1. [L] Liu et al. 2016, with subspaces for atoms.
    [T] Tan, Tsang, Wang 2014, Algorithm 1 with an exact subproblem.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import solve, solvers
    >>> X, y = np.eye(4), np.array([3.0, 0.5, -2.0, 0.0])
    >>> solver = solvers.ColumnGeneration(batch=1)
    >>> result = solve(X, y, alpha=0.25, fit_intercept=False, solver=solver)
    >>> result.coef.round(6).tolist()
    [2.0, 0.0, -1.0, 0.0]
    """

    master: Master | None = None
    batch: int | None = None
    inner_ratio: float = INNER_RATIO
    tol: float = TOLERANCE

    def start(self, problem: Problem, warm: WarmStart | None = None) -> ActiveState:
        warm = warm or WarmStart(np.zeros(0, dtype=np.int64), np.zeros(0))
        columns = warm.columns
        weights = warm.weights
        # All columns of a small design cost less than a pass to choose among them.
        few = math.prod(problem.design.shape) <= SMALL and problem.design.listable
        takes_all = few and self.batch is None and not problem.deadline.passed
        if takes_all:
            columns = np.arange(problem.design.shape[1])
            weights = np.zeros(columns.size)
            weights[warm.columns] = warm.weights
        state = self._fitted(problem, columns, weights, warm.intercept)
        if not (takes_all or self.batch or self.master):
            state.free = candidates_for_free(problem)
        return self._price(problem, state)

    def _fitted(
        self, problem: Problem, columns: Columns, weights: Array, intercept: float
    ) -> ActiveState:
        """Return the state of only these columns, re-fitted and not yet priced."""
        gathered, lengths = centered_columns(problem, columns)
        weights = shrink_inside(problem, columns, weights)
        block = CachedBlock(gathered)
        steps = 0
        intercept += float(lengths.offsets.dot(weights))
        if columns.size:
            restricted = restrict(problem, block, columns)
            weights, intercept, steps = self._first_fit(restricted, weights, intercept)
        linear = block.predict(weights)
        intercept = optimal_intercept(problem, linear, intercept)
        return ActiveState(
            columns=columns,
            weights=weights,
            intercept=intercept - float(lengths.offsets.dot(weights)),
            prediction=linear + intercept,
            lengths=lengths,
            certificate=None,  # type: ignore[arg-type]  # _price sets it
            block=block,
            master_steps=steps,
        )

    def _first_fit(
        self, restricted: Problem, weights: Array, intercept: float
    ) -> tuple[Array, float, int]:
        """Return the optimum over the columns of a start, whose gap is not known."""
        master = self.master or choose_master(restricted)
        weights, intercept, before = self._led_down(restricted, master, weights, intercept)
        guess = master.guess(restricted, weights, intercept)
        if guess is not None:
            return guess[0], guess[1], before + guess[2]
        enough = 0.5 * self.tol * loss_at_zero(restricted)
        if math.prod(restricted.design.shape) <= SMALL:
            enough *= 1e-4
        refit = master.solve(restricted, weights, intercept, enough)
        return refit.weights, refit.intercept, before + refit.steps

    def _led_down(
        self, restricted: Problem, master: Master, weights: Array, intercept: float
    ) -> tuple[Array, float, int]:
        """Return a start near the optimum, by a path of levels if zero is far from it."""
        penalty = restricted.regularizer
        steps = 0
        if weights.any() or penalty.form == "constrained":
            return weights, intercept, steps
        at = certified(restricted, weights, None, intercept)
        level = restricted.regularizer.norm.polar(ArrayScores(at.scores))
        if penalty.form == "squared":  # the level at which a fit explains about half of the loss
            level *= level / (2.0 * at.refit.objective or math.inf)
        count = math.log10(level / penalty.amount) if 0.0 < level < math.inf else 0.0
        if count > FAR:
            for amount in np.geomspace(level, penalty.amount, math.ceil(count), endpoint=False)[1:]:
                part = replace(restricted, regularizer=replace(penalty, amount=float(amount)))
                linear = part.design.predict(weights) + intercept
                enough = 1e-3 * objective_at(part, weights, linear)
                refit = master.solve(part, weights, intercept, enough)
                weights = refit.weights
                intercept = refit.intercept
                steps = steps + refit.steps
        return weights, intercept, steps

    def step(self, problem: Problem, state: ActiveState) -> ActiveState:
        """Add the candidates, re-fit, drop idle columns, price: one pass over the data."""
        assert state.block is not None
        block = state.block
        columns = state.columns
        weights = state.weights
        lengths = state.lengths
        if state.candidates.size:
            gathered, more = centered_columns(problem, state.candidates)
            block, lengths = appended(block, lengths, gathered, more)
            columns = np.concatenate([columns, state.candidates])
            weights = np.concatenate([weights, np.zeros(state.candidates.size)])
        restricted = restrict(problem, block, columns)
        refit = self._refit(restricted, weights, state, problem.design.shape[1])
        prediction = refit.prediction
        if restricted.design is not block:  # its predictions are not those of the samples
            prediction = block.predict(refit.weights)
        following = ActiveState(
            columns=columns,
            weights=refit.weights,
            intercept=refit.intercept - float(lengths.offsets @ refit.weights),
            prediction=prediction,
            lengths=lengths,
            certificate=state.certificate,
            iteration=state.iteration + 1,
            block=block,
            refit_gap=refit.gap,
            master_steps=state.master_steps + refit.steps,
            free=state.free,
        )
        return self._price(problem, self._without_idle(following))

    def moved(self, problem: Problem, state: ActiveState) -> ActiveState:
        """Return the same state: the next step re-fits it, and its pass prices it."""
        state.refit_gap = np.inf
        state.exhausted = None
        return state

    def _refit(
        self, restricted: Problem, weights: Array, state: ActiveState, n_features: int
    ) -> Refit:
        """Re-fit to a part of the gap if there are many columns and more will enter."""
        couples = restricted.loss.coupled != 1
        # A Newton step with the whole Hessian costs as much as several passes.
        wanted = (0.1 if couples else self.inner_ratio) * state.certificate.gap
        target = self._gap_target(state, weights.size, n_features, wanted)
        penalty = restricted.regularizer
        level = state.certificate.polar / NEARER
        far = penalty.form == "penalized" and penalty.amount < level < math.inf
        if far and couples and not self.batch:
            # Go down to the level of the problem in several steps.
            restricted = replace(restricted, regularizer=replace(penalty, amount=level))
            target = wanted
        target = max(target, negligible_objective(restricted))
        intercept = state.intercept + float(state.lengths.offsets @ state.weights)
        master = self.master or choose_master(restricted)
        return master.solve(restricted, weights, intercept, target)

    def _gap_target(self, state: ActiveState, size: int, n_features: int, wanted: float) -> float:
        """Return the gap of a re-fit of ``size`` columns: ``wanted`` for most of them."""
        certificate = state.certificate
        enough = 0.5 * self.tol * abs(certificate.objective)
        if not state.candidates.size:
            # Nothing new to add: only a more exact re-fit can close the gap, down to rounding.
            return max(min(0.3 * state.refit_gap, enough), 0.1 * certificate.rounding)
        if state.prediction.size * size <= SMALL:
            # The last digits cost a step or two. Equal problems (weights or repeated samples, any
            # order of columns) then differ only by rounding.
            return max(1e-2 * enough, 0.1 * certificate.rounding)
        # An exact re-fit saves a pass near the end. It costs less than a pass if the Hessian of the
        # columns does, or if the columns cost the master no time.
        many = size > max(4 * state.free, np.sqrt(n_features))
        return wanted if wanted > 1000 * enough and many else enough

    def _without_idle(self, state: ActiveState) -> ActiveState:
        """Drop columns without weight once they are most of the block."""
        used = np.flatnonzero(state.weights)
        if state.columns.size <= 4 * used.size + 1000:
            return state
        assert state.block is not None
        state.block = state.block.gather(used)
        state.lengths = state.lengths.take(used)
        state.columns = state.columns[used]
        state.weights = state.weights[used]
        return state

    def _price(self, problem: Problem, state: ActiveState) -> ActiveState:
        """Add certificate and candidates to a state, by one pass over the data."""
        price = prove(
            problem, state.columns, state.weights, state.prediction, lengths=state.lengths
        )
        state.certificate = price.certificate
        state.candidates = self._candidates(problem, state, price)
        state.patience = math.inf if state.candidates.size else 3
        return state

    def _candidates(self, problem: Problem, state: ActiveState, price: Pricing) -> Columns:
        """Return the best columns that are not active and would enter."""
        n_samples, n_features = problem.design.shape
        if state.columns.size == n_features:
            return np.zeros(0, dtype=np.int64)
        n_used = int(np.count_nonzero(state.weights))
        norm = price.norm
        # Few solutions have more columns than samples.
        share = min(n_features // 100, n_samples, LIMITS.most_dense // n_samples)
        # If n_features is not much larger, gathering all free columns costs much of a pass.
        free = state.free if n_features <= 2 * state.free else min(state.free, n_features // 10)
        count = self.batch or max(100, 2 * n_used, share, free)
        best = norm.best_columns(price.scores, count)
        if not n_used and not state.free and best.size >= count and self.batch != 1:
            # The best atom may have more columns: take its neighbors too.
            best = norm.best_columns(price.scores, 2 * best.size)
        return price.entering(best)


def centered_columns(problem: Problem, columns: Columns) -> tuple[Block, Lengths]:
    """Return these columns with large means removed if f allows it, and their lengths.

    Only dense columns whose mean exceeds their spread are centered: others gain nothing.

    With an intercept, f(X w + b) is f((X - 1 m')w + b') with b = b' - m'w, for any m: the same
    problem. The values of a year or an altitude are hundreds of times their spread; once centered,
    such columns need no more steps and lose no more digits than others. If adding a number to all
    predictions changes nothing (Cox), the intercept needs no correction.
    """
    gathered = problem.design.gather(columns)
    block, places = distinct_columns(gathered)
    used = counted(problem.weight)
    distinct = measured(block, used, columns)
    nothing = np.zeros(columns.size)
    lengths = distinct[places]
    squares = distinct * distinct
    # Scores of columns that the design centers are sums over the original columns.
    scored = lengths + np.sqrt(block.shape[0]) * problem.design.taken_off(columns)
    if block.traits.is_sparse or block.traits.bytes_an_entry < 4.0 or block.stored() is None:
        return gathered, Lengths(scored, scored, nothing)
    allowed = problem.fit_intercept or problem.loss.task == "survival"
    if not (allowed and columns.size):
        return gathered, Lengths(scored, lengths, nothing)
    means = block.scores(problem.weight).full() / float(problem.weight.sum())
    # With sample weights the mean may not be the nearest constant: a few more columns are centered.
    large = 2.0 * block.shape[0] * means * means > squares
    if not large.any():
        return gathered, Lengths(scored, lengths, nothing)
    offsets = np.where(large, means, 0.0)
    centered = affine_block(CachedBlock.of(gathered).inner, offsets[places], np.ones(places.size))
    taken_up = offsets[places] if problem.fit_intercept else nothing
    summed = np.sqrt(centered.squared_norms(used))
    return centered, Lengths(scored, summed, taken_up)


def appended(
    block: Block, lengths: Lengths, more: Block, further: Lengths
) -> tuple[Block, Lengths]:
    """Return the columns followed by others, and the lengths of both.

    A feature that the block has already stays the same column, with the same offset. The offset of
    a new copy may differ in its last bit.
    """
    block = block.append(more)
    lengths = lengths.append(further)
    distinct, places = distinct_columns(block)
    first = np.zeros(distinct.shape[1], dtype=np.int64)
    first[places[::-1]] = np.arange(places.size)[::-1]
    return block, lengths.take(first[places])
