"""Column generation: price the columns, add the best, re-fit all weights, certify the gap.

The method is also called fully corrective Frank-Wolfe, or an active-set (working-set) method. The
restricted master problem is the *same* problem with the norm restricted to the active columns,
which are in memory as a block. Its solver is called the master. To price the columns is to compute
their scores X'v, for the negative gradient v of the loss, by one pass over the data. The scores
give the certificate: objective and duality gap. The level is the strength of the penalty, and the
polar is the dual norm of the scores. This is [V] Algorithm 1, [T] Algorithm 1 with an exact master,
and [L] with subspaces in place of atoms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from atomlearn._support import counted, growth
from atomlearn.core.data.cached_block import CachedBlock, distinct_columns
from atomlearn.core.data.limits import LIMITS
from atomlearn.core.data.standardized import affine_block
from atomlearn.core.interfaces import Array, Block, Columns, WarmStart
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.masters.choose import cheap_candidates, choose_master
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
from atomlearn.core.problem.rounding import Lengths, measured
from atomlearn.core.solvers.solver import INNER_RATIO, PATIENCE, TOLERANCE, Solver, State

#: Number of entries of X up to which an exact re-fit takes negligible time next to a pass over the
#: data. All columns of such a design are active from the start: one pass certifies the optimum.
SMALL = 2**15
#: A cold start uses continuation (a path of decreasing levels) if w = 0 is optimal only at levels
#: more than 10^FAR times that of the problem. Masters are slow, or fail, if they start far from the
#: optimum.
FAR = 1.5
#: Continuation factor for losses that couple predictions (Cox): a re-fit uses a level of at least
#: 1/NEARER times the polar of the scores. Newton steps from far away add columns that the optimum
#: does not have, and take most of the time. With a factor of 4, fits take 10% longer.
NEARER = 3.0


@dataclass(slots=True)
class ActiveState(State):
    """State of column generation: the iterate and the data of its active columns.

    Attributes
    ----------
    block : Block
        The active columns of X, (n_samples, m), with the offsets in ``lengths`` subtracted.
    lengths : Lengths
        Euclidean norms of the active columns, and the offsets that center some of them.
    candidates : (m_new,)
        Columns that join the active ones in the next step.
    refit_gap : float
        Certified duality gap of the restricted master problem at this iterate.
    cheap : int
        Number of columns for which the time of the master is negligible, so that a pass may add
        this number of candidates.
    """

    block: Block | None = None
    lengths: Lengths = field(default_factory=Lengths.none)
    candidates: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    refit_gap: float = np.inf
    cheap: int = 0


@dataclass(frozen=True, slots=True)
class ColumnGeneration(Solver):
    """Column generation over subspaces, for every norm that can be restricted.

    Parameters
    ----------
    master : Master, optional
        Solver of the restricted master problem. Default: the choice of ``choose_master``.
    batch : int, optional
        Approximate number of columns that are added after a pass. The default is the largest of
        four numbers: 100, twice the number of columns in use, 1% of all columns, and the number for
        which the master needs negligible time. For implicit columns the 1% is limited to half a GB.
        Whole atoms are added, at least the columns of the best atom. By default the first pass adds
        twice that number. 1 adds only the columns of the best atom.
    inner_ratio : float
        Tolerance of the master, as a fraction of the outer duality gap. More accuracy would be
        wasted, because the next columns move the iterate.
    tol : float
        Relative duality gap to prove; the master's tolerance is never much smaller.

    Notes
    -----
    Each step is Algorithm 1 of [V] with subspaces in place of atoms:

    1. the candidates of the last pass join the active columns;
    2. the master re-fits all weights: the *same* problem, restricted to the active columns;
    3. columns of zero weight are dropped, once they are most of the block;
    4. one pass over the data prices the columns: with the negative gradient v = -f'(Xw + b), the
       scores z = X'v give the certificate and the next candidates. These are columns of the best
       atoms, those whose zero coefficients violate the optimality conditions.

    A warm start is re-fitted over its columns, and then priced. For a small design, all columns are
    active from the start.

    Each step takes O(n p) time for the pass, and O(n m) memory, for n samples, p features and m
    active columns.

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
        """Return the state after a fit over the columns of ``warm``, certified by one pass.

        For a ``problem`` of few data the fit is over all columns.
        """
        warm = warm or WarmStart(np.zeros(0, dtype=np.int64), np.zeros(0))
        n_features = problem.design.shape[1]
        # If the norm is infinite at the warm start, ``inside`` returns a point near it.
        columns, weights = problem.regularizer.norm.inside(warm.columns, warm.weights, n_features)
        # Re-fitting all columns of a small design costs less than a pass to choose among them. They
        # are not ``listable`` if they are implicit, and too many to make.
        is_small = math.prod(problem.design.shape) <= SMALL and problem.design.listable
        takes_all = is_small and self.batch is None and not problem.deadline.passed
        if takes_all:
            filled = np.zeros(n_features)
            filled[columns] = weights
            columns = np.arange(n_features)
            weights = filled
        state = self._fitted(problem, columns, weights, warm.intercept)
        if not (takes_all or self.batch or self.master):
            state.cheap = cheap_candidates(problem)
        return self._price(problem, state)

    def _fitted(
        self, problem: Problem, columns: Columns, weights: Array, intercept: float
    ) -> ActiveState:
        """Return the state after a re-fit over ``columns``, without a certificate yet.

        ``weights`` and ``intercept`` are the initial point of the re-fit.
        """
        # X w + b = (X - 1 offsets')w + (b + offsets'w): the second sum is over the centered block.
        gathered, lengths = centered_columns(problem, columns)
        # The constrained form needs a start within the radius.
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
        """Solve the first restricted problem; return weights, intercept and number of master steps.

        ``weights`` and ``intercept`` are the initial point. The duality gap over all columns is not
        known yet, so the tolerance is relative to the loss at w = 0.
        """
        master = self.master or choose_master(restricted)
        weights, intercept, steps = self._start_by_continuation(
            restricted, master, weights, intercept
        )
        # Some masters can guess the optimum at once, for example by an active set.
        guess = master.guess(restricted, weights, intercept)
        if guess is not None:
            return guess[0], guess[1], steps + guess[2]
        scale = loss_at_zero(restricted)
        sufficient = 0.5 * self.tol * scale
        if math.prod(restricted.design.shape) <= SMALL:
            # Near rounding, a master makes many steps for a gap that floating-point sums cannot
            # resolve.
            rounding = 0.1 * growth(restricted.y.size) * scale
            sufficient = max(1e-4 * sufficient, min(sufficient, rounding))
        refit = master.solve(restricted, weights, intercept, sufficient)
        return refit.weights, refit.intercept, steps + refit.steps

    def _start_by_continuation(
        self, restricted: Problem, master: Master, weights: Array, intercept: float
    ) -> tuple[Array, float, int]:
        """Return a start near the optimum: weights, intercept and number of master steps.

        Continuation solves the problem ``restricted`` at a geometric sequence of decreasing levels
        by ``master``, each warm-started from the previous one. Successive levels differ by a factor
        of 10, or of NEARER if the loss couples predictions, as Newton steps from far away take most
        of the time for such losses. The given start is returned without continuation if it is not
        w = 0, or if w = 0 is near the optimum.
        """
        penalty = restricted.regularizer
        steps = 0
        if weights.any() or penalty.form == "constrained":
            return weights, intercept, steps
        # The polar of the scores at w = 0 is the smallest level at which w = 0 is optimal.
        at_zero = certified(restricted, weights, None, intercept)
        level = penalty.norm.polar(ArrayScores(at_zero.scores))
        # For the squared form, polar^2 / (2 loss) is a level at which a fit explains about half of
        # the loss.
        if penalty.form == "squared":
            level *= level / (2.0 * at_zero.refit.objective or math.inf)
        decades = math.log10(level / penalty.amount) if 0.0 < level < math.inf else 0.0
        if decades > FAR:
            decades_per_step = math.log10(NEARER) if restricted.loss.coupled != 1 else 1.0
            count = math.ceil(decades / decades_per_step)
            # The first level is left out: w = 0 is its solution.
            for amount in np.geomspace(level, penalty.amount, count, endpoint=False)[1:]:
                intermediate = replace(
                    restricted, regularizer=replace(penalty, amount=float(amount))
                )
                linear = intermediate.design.predict(weights) + intercept
                sufficient = 1e-3 * objective_at(intermediate, weights, linear)
                refit = master.solve(intermediate, weights, intercept, sufficient)
                weights = refit.weights
                intercept = refit.intercept
                steps = steps + refit.steps
        return weights, intercept, steps

    def step(self, problem: Problem, state: ActiveState) -> ActiveState:
        """Add the candidates, re-fit, drop zero columns, and certify by one pass over the data.

        The candidates are those that the last pass left in ``state``; the result is the state of
        ``problem`` after the step.
        """
        assert state.block is not None
        block = state.block
        columns = state.columns
        weights = state.weights
        lengths = state.lengths
        # 1. The candidates join the active columns, with weight 0.
        if state.candidates.size:
            added, added_lengths = centered_columns(problem, state.candidates)
            block, lengths = appended(block, lengths, added, added_lengths)
            columns = np.concatenate([columns, state.candidates])
            weights = np.concatenate([weights, np.zeros(state.candidates.size)])
        # 2. The master re-fits all weights.
        restricted = restrict(problem, block, columns)
        refit = self._refit(restricted, weights, state, problem.design.shape[1])
        prediction = refit.prediction
        # If the rows are on other machines, the restricted problem has sums over rows in place of
        # samples. Then the predictions of the samples are computed here.
        if restricted.design is not block:
            prediction = block.predict(refit.weights)
        # 3. Make the new state, drop zero columns, and price by one pass.
        following = ActiveState(
            columns=columns,
            weights=refit.weights,
            # The intercept for the columns of X, which are not centered.
            intercept=refit.intercept - float(lengths.offsets @ refit.weights),
            prediction=prediction,
            lengths=lengths,
            certificate=state.certificate,
            iteration=state.iteration + 1,
            block=block,
            refit_gap=refit.gap,
            master_steps=state.master_steps + refit.steps,
            cheap=state.cheap,
        )
        return self._price(problem, self._without_idle(following))

    def moved(self, problem: Problem, state: ActiveState) -> ActiveState:
        """Return ``state`` unchanged: the next step re-fits and certifies it for the new loss.

        ``problem`` has the new loss. Only the gap of the last re-fit, which was for the old loss,
        is set to infinity.
        """
        state.refit_gap = np.inf
        state.exhausted = None
        return state

    def _refit(
        self, restricted: Problem, weights: Array, state: ActiveState, n_features: int
    ) -> Refit:
        """Solve the restricted problem from ``weights`` to the tolerance of ``_gap_target``.

        ``state`` is the state before the step, and ``n_features`` is the number of all columns.
        """
        # Whether the loss of a sample depends on the predictions of others (Cox).
        couples = restricted.loss.coupled != 1
        # A Newton step with the whole Hessian costs as much as several passes.
        gap = (0.1 if couples else self.inner_ratio) * state.certificate.gap
        target = self._gap_target(state, weights.size, n_features, gap)
        # Far from the optimum, the polar of the scores is much larger than the level.
        penalty = restricted.regularizer
        level = state.certificate.polar / NEARER
        is_distant = penalty.form == "penalized" and penalty.amount < level < math.inf
        if is_distant and couples and not self.batch:
            # Continuation: this step solves for a higher level, the polar / NEARER, for which the
            # inexact tolerance is enough.
            restricted = replace(restricted, regularizer=replace(penalty, amount=level))
            target = gap
        target = max(target, negligible_objective(restricted))
        # The intercept for the centered columns.
        intercept = state.intercept + float(state.lengths.offsets @ state.weights)
        master = self.master or choose_master(restricted)
        return master.solve(restricted, weights, intercept, target)

    def _gap_target(self, state: ActiveState, size: int, n_features: int, target: float) -> float:
        """Return the absolute duality gap to which the master solves for ``size`` columns.

        It is ``target``, the inexact tolerance, if there are many columns and the outer gap is far
        from ``tol``; otherwise it is near the final tolerance, or less. ``state`` is the state
        before the step, and ``n_features`` is the number of all columns.
        """
        certificate = state.certificate
        sufficient = 0.5 * self.tol * abs(certificate.objective)
        if not state.candidates.size:
            # There is no new column to add: only a more exact re-fit can close the gap, down to
            # rounding.
            return max(min(0.3 * state.refit_gap, sufficient), 0.1 * certificate.rounding)
        if state.prediction.size * size <= SMALL:
            # Solving to the last digits takes one or two more steps. Equivalent problems (weights
            # or repeated samples, any order of columns) then differ only by rounding.
            return max(1e-2 * sufficient, 0.1 * certificate.rounding)
        # An exact re-fit saves a pass near the end. It costs less than a pass if there are at most
        # sqrt(n_features) columns, or if the master needs negligible time for them.
        is_costly = size > max(4 * state.cheap, np.sqrt(n_features))
        return target if target > 1000 * sufficient and is_costly else sufficient

    def _without_idle(self, state: ActiveState) -> ActiveState:
        """Drop the columns of zero weight from ``state`` once they are most of the block."""
        # Columns that were dropped too early would have to be gathered again.
        support = np.flatnonzero(state.weights)
        if state.columns.size <= 4 * support.size + 1000:
            return state
        assert state.block is not None
        state.block = state.block.gather(support)
        state.lengths = state.lengths.take(support)
        state.columns = state.columns[support]
        state.weights = state.weights[support]
        return state

    def _price(self, problem: Problem, state: ActiveState) -> ActiveState:
        """Set the certificate and the candidates of ``state``, by one pass over the data.

        ``problem`` is the problem that ``state`` is a point of.
        """
        price = prove(
            problem, state.columns, state.weights, state.prediction, lengths=state.lengths
        )
        state.certificate = price.certificate
        state.candidates = self._candidates(problem, state, price)
        state.patience = math.inf if state.candidates.size else PATIENCE
        return state

    def _candidates(self, problem: Problem, state: ActiveState, price: Pricing) -> Columns:
        """Return the inactive columns of the best atoms that violate the optimality conditions.

        ``price`` has the scores and the certificate of ``state``, a state of ``problem``.
        """
        n_samples, n_features = problem.design.shape
        if state.columns.size == n_features:
            return np.zeros(0, dtype=np.int64)
        n_used = int(np.count_nonzero(state.weights))
        # F / level bounds the gauge of an optimum, since losses are bounded below by zero.
        best_columns = partial(
            problem.regularizer.best_columns,
            price.scores,
            gauge_bound=price.certificate.objective / problem.regularizer.amount,
        )
        # 1% of all columns, but at most n_samples, as few solutions have more columns than samples,
        # and at most as many as fit into memory.
        share = min(n_features // 100, n_samples, LIMITS.most_dense // n_samples)
        # The master needs negligible time for ``state.cheap`` columns. But gathering them costs
        # part of a pass: unless they are half of all columns or more, at most 10% of all are added.
        n_cheap = state.cheap
        if n_features > 2 * n_cheap:
            n_cheap = min(n_cheap, n_features // 10)
        count = self.batch or max(100, 2 * n_used, share, n_cheap)
        best = best_columns(count)
        if not n_used and not state.cheap and best.size >= count and self.batch != 1:
            # In the first pass, add twice the columns of the best atom.
            best = best_columns(2 * best.size)
        return price.entering(best)


def centered_columns(problem: Problem, columns: Columns) -> tuple[Block, Lengths]:
    """Return ``columns`` of X as a block, with large means subtracted, and their Lengths.

    Only dense columns whose mean exceeds their standard deviation are centered, and only if the
    problem has an intercept or the loss is invariant to it (Cox).

    With an intercept b, f(X w + b) = f((X - 1 m')w + b') for b = b' - m'w and any vector m of
    column offsets, so the problem is the same. Without centering, a column such as a year or an
    altitude, whose mean is hundreds of times its spread, would cost more steps and more digits than
    other columns. The Cox loss is invariant to a constant, so that its offsets are 0.
    """
    # A Lengths has column norms for the errors of scores (``scored``), and for the errors of
    # predictions (``lengths``), and the offsets. Overlapping groups repeat columns: each distinct
    # column is measured once.
    gathered = problem.design.gather(columns)
    block, positions = distinct_columns(gathered)
    has_weight = counted(problem.weight)
    distinct_lengths = measured(block, has_weight, columns)
    zeros = np.zeros(columns.size)
    lengths = distinct_lengths[positions]
    squares = distinct_lengths * distinct_lengths
    # If the design centers columns, it computes their scores from the original columns. Their
    # lengths, at most ||x_j|| + sqrt(n) |mean|, determine the rounding errors of the scores.
    scored = lengths + np.sqrt(block.shape[0]) * problem.design.subtracted_offsets(columns)
    # Centering would fill sparse columns, packed columns, and columns that are computed when used.
    # Their predictions are computed from the original columns, too.
    if block.traits.is_sparse or block.traits.bytes_an_entry < 4.0 or block.stored() is None:
        return gathered, Lengths(scored, scored, zeros)
    may_center = problem.fit_intercept or problem.loss.task == "survival"
    if not (may_center and columns.size):
        return gathered, Lengths(scored, lengths, zeros)
    means = block.scores(problem.weight).full() / float(problem.weight.sum())
    # n mean^2 > ||x||^2 / 2 is the same as mean > standard deviation. With sample weights the mean
    # may not be the nearest constant, and a few more columns are centered.
    is_far_from_zero = 2.0 * block.shape[0] * means * means > squares
    if not is_far_from_zero.any():
        return gathered, Lengths(scored, lengths, zeros)
    offsets = np.where(is_far_from_zero, means, 0.0)
    # (x_j - offset_j) * 1 for each column, from the block without its cache of products. The norms
    # of the centered columns are measured anew.
    centered = affine_block(
        CachedBlock.of(gathered).inner, offsets[positions], np.ones(positions.size)
    )
    reported_offsets = offsets[positions] if problem.fit_intercept else zeros
    summed = np.sqrt(centered.squared_norms(has_weight))
    return centered, Lengths(scored, summed, reported_offsets)


def appended(
    block: Block, lengths: Lengths, added: Block, added_lengths: Lengths
) -> tuple[Block, Lengths]:
    """Return ``block`` followed by the columns of ``added``, and the Lengths of both.

    ``lengths`` are those of ``block``, and ``added_lengths`` those of ``added``. If a feature
    occurs in both blocks (overlapping groups), both copies get the Lengths and the offset of the
    first one. The offset computed for the second copy may differ in its last bit.
    """
    block = block.append(added)
    lengths = lengths.append(added_lengths)
    distinct, positions = distinct_columns(block)
    # The first position of each distinct column. NumPy keeps the last of several assignments to one
    # index, so the positions are assigned in reverse order.
    first = np.zeros(distinct.shape[1], dtype=np.int64)
    first[positions[::-1]] = np.arange(positions.size)[::-1]
    return block, lengths.take(first[positions])
