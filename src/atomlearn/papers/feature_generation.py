"""Feature generation, [T] Algorithm 1: each pass takes the B best features as one new block.

Tan, Tsang, Wang 2014. The whole problem is min_w,b (lambda / 2) (||w||_k^sp)^2 + f(X w + b), with
the k-support norm for k = B and lambda = 1. The subproblem (31) is over the blocks h of columns
X_h that were found so far. Its penalty is the squared norm of ``Groups``:

    min over omega, b   (lambda / 2) (sum_h ||omega_h||)^2 + f(sum_h X_h omega_h + b)

A feature in two blocks is two coordinates of omega, and w_j is their sum. C of the paper multiplies
the loss: it is given as sample weights (``sample_weight=C``). The squared hinge loss has [T]'s
factor 1/2, so the objective is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from atomlearn.core import (
    PATIENCE,
    Array,
    Arrays,
    Block,
    CachedBlock,
    Columns,
    Groups,
    KSupport,
    Master,
    Partition,
    Problem,
    Regularizer,
    RepeatedBlock,
    Scores,
    Solver,
    State,
    Status,
    WarmStart,
    choose_master,
    loss_gradient,
    loss_value,
    negligible_objective,
    objective_at,
    optimal_intercept,
    prove,
    restrict,
)


class WeightedBlocks(NamedTuple):
    """Blocks of columns with their weights: the coordinates of the subproblem.

    Attributes
    ----------
    members : (m,) int64
        The column of each coordinate.
    labels : (m,) int64
        The block of each coordinate.
    omega : (m,) float64
        The weight of each coordinate.
    intercept : float
        The intercept of the problem with centered targets.
    """

    members: Columns
    labels: Columns
    omega: Array
    intercept: float


@dataclass(slots=True)
class GenerationState(State):
    """State with blocks: w_j is the sum of omega over the coordinates of column j.

    Attributes
    ----------
    block : Block, optional
        Data of the active blocks' coordinates, one next to the other.
    members : (m,) int64
        Column of each coordinate.
    labels : (m,) int64
        Its block, 0, ..., t - 1.
    omega : (m,) float64
        Its weight.
    candidate : Columns
        The columns of the next block.
    units : int
        Number of distinct features (or groups) in the active blocks; ``n_features`` limits it.
    found : dict[int, int]
        The round that first took each column, in the order of selection.
    restricted_objective : float
        F of the subproblem.
    restricted_gap : float
        Its duality gap.
    first_objective : float
        F_0 of [T] (38): the loss of the best constant prediction.
    patience : float
        Number of steps without progress after which the run ends as stalled.
    """

    block: Block | None = None
    members: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    labels: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    omega: Array = field(default_factory=lambda: np.zeros(0))
    candidate: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    units: int = 0
    found: dict[int, int] = field(default_factory=dict)
    restricted_objective: float = np.inf
    restricted_gap: float = np.inf
    first_objective: float = np.inf
    patience: float = PATIENCE

    def merit(self) -> float:
        """Return the value that the solver minimizes: F of the subproblem."""
        return self.restricted_objective

    @property
    def n_blocks(self) -> int:
        """The number t of active blocks."""
        return int(self.labels.max(initial=-1)) + 1

    @property
    def blocks(self) -> list[Columns]:
        """The columns of each active block, in decreasing order of their scores."""
        return [self.members[self.labels == h] for h in range(self.n_blocks)]

    @property
    def mu(self) -> Array:
        """The kernel weights of [T] (30), mu_h = ||omega_h|| / sum_i ||omega_i||, shape (t,)."""
        # One l2 norm for each block.
        norms = np.sqrt(np.bincount(self.labels, self.omega**2, minlength=self.n_blocks))
        total = float(norms.sum())
        return norms / total if total > 0 else norms

    def weighted(self) -> WeightedBlocks:
        """Return the active blocks with their weights."""
        return WeightedBlocks(self.members, self.labels, self.omega, self.intercept)

    def selected_gap(self) -> float | None:
        """Return the relative duality gap of the subproblem over the active columns, or None."""
        if not self.columns.size:
            return None
        return self.restricted_gap / max(abs(self.restricted_objective), 1e-300)

    def scaling(self, norm: KSupport, n_features: int) -> tuple[Columns, Array]:
        """Return the active columns, and the scaling vector d that is optimal for their weights w.

        d minimizes sum_j w_j^2 / d_j over 0 <= d <= 1, sum d <= B, so d_j = min(c |w_j|, 1) with c
        such that sum d = B. With groups, all columns of a group have the same d. ``norm`` is the
        norm of the problem, whose k is B, over ``n_features`` features.
        """
        plain: Any = KSupport(norm.k)
        if norm.groups is None:
            return self.columns, plain.scaling(self.weights)
        partition, _ = norm.partition(n_features).restrict(self.columns)
        return self.columns, plain.scaling(partition.norms(self.weights))[partition.labels]

    def selection(self) -> tuple[Columns, Columns]:
        """Return the columns in the order of selection, and the round that found each."""
        selected = np.fromiter(self.found, dtype=np.int64, count=len(self.found))
        rounds = np.fromiter(self.found.values(), dtype=np.int64, count=len(self.found))
        kept = np.isin(selected, self.columns)
        return selected[kept], rounds[kept]


@dataclass(frozen=True, slots=True)
class FeatureGeneration(Solver):
    """min f(X w + b) + (lambda/2) (||w||_k^sp)^2, k = B, by [T] Algorithm 1; one pass per step.

    The norm of the problem must be ``KSupport(k=B)``, or ``KSupport(k=B, groups=...)`` for blocks
    of the B best groups. The form must be "squared", and there must be no ridge term. The
    certificate is that of the whole problem at w. ``state`` of the result has the blocks, the
    scaling vector d and the order of selection. In the notation of the paper, b is minus our
    intercept, and B is ``k`` of the norm. C is the sample weight at ``alpha`` = 1 / sum of weights,
    and the paper's dual variables alpha_i are our dual point.

    With ``from_zero``, as in the paper, the first block has the best scores at the dual point
    alpha_i = C, which belongs to predictions of 0. With an intercept the first certificate needs
    another dual point, that of the best constant, so classifications begin with one more pass. If
    classes differ in size and columns are not centered, the first block has columns of large means.
    Without ``from_zero`` the first block has the best scores at the best constant.

    Parameters
    ----------
    master : Master or None
        Solves the subproblem. None: the default master. ``AcceleratedGradient`` is that of [T]; its
        stopping rule (41), a small decrease in one step, may hold far from the optimum. Each pass
        then finds few new features.
    inner_tol : float
        Relative gap of the subproblem; it is lowered as the gap of the whole problem decreases.
        [T] 5.4.2 stops by relative decreases of 1e-3 (inexact FGM) and 1e-6 (exact FGM) instead.
    tol : float or None
        Relative gap of the subproblem once ``n_features`` are selected; None: ``inner_tol``.
    outer_tol : float or None
        eps_c: stop once (F_t-1 - F_t) / F_0 is at most this, [T] (38).
    max_blocks : int or None
        T: stop after this many rounds, so with at most T B features.
    from_zero : bool
        Whether the first block has the best scores at predictions of zero.
    n_features : int or None
        Stop with exactly this many distinct features, or groups if the norm has groups; the last
        block is truncated. The optimum may have fewer: then the run ends by its gap.
    blocks : WeightedBlocks or None
        A selection made earlier: no blocks are added, only the weights of these are computed.
    proves_all : bool
        Whether the gap of a final selection is over all columns, by a pass over the data. False:
        over the selected columns, which is enough for a fit that is only scored on held-out rows.

    References
    ----------
    [T] Tan, Tsang, Wang 2014, Towards ultrahigh dimensional feature selection for big data,
    Algorithm 1; (30), (31), (38) and (41) are theirs.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms, solve, solvers
    >>> X, y = np.eye(4), np.array([3.0, 0.5, -2.0, 0.1])
    >>> solver = solvers.FeatureGeneration(n_features=2)
    >>> penalty = {"norm": norms.KSupport(2), "form": "squared", "alpha": 0.25}
    >>> result = solve(X, y, fit_intercept=False, solver=solver, **penalty)
    >>> result.columns.tolist()
    [0, 2]
    """

    state_format: ClassVar[str] = "FeatureGeneration"

    master: Master | None = None
    inner_tol: float = 0.1
    tol: float | None = None
    outer_tol: float | None = None
    max_blocks: int | None = None
    n_features: int | None = None
    from_zero: bool = True
    blocks: WeightedBlocks | None = None
    proves_all: bool = True

    def start(self, problem: Problem, warm: WarmStart | None = None) -> GenerationState:
        """Return the first state of ``problem``, certified by one pass.

        It is at w = 0, at the point of ``warm``, or at the blocks of the solver if there are any.
        """
        norm = _check(problem)
        members = np.zeros(0, dtype=np.int64)
        omega = np.zeros(0)
        intercept = 0.0
        labels = members
        if warm is not None:
            # The columns of a warm start form blocks of B, by decreasing weight.
            intercept = warm.intercept
            order = np.argsort(-np.abs(warm.weights), kind="stable")
            order = order[warm.weights[order] != 0]
            members = warm.columns[order].astype(np.int64)
            omega = warm.weights[order]
            labels = _blocks_of(groups_of_columns(problem, members), norm.k)
        if self.blocks is not None:
            members, labels, omega, intercept = self.blocks
        state = self._state_of_blocks(problem, members, labels, omega, intercept)
        if self.blocks is not None:
            self._refit(problem, state, self.tol or self.inner_tol)
        return self._price(problem, state)

    def _state_of_blocks(
        self, problem: Problem, members: Columns, labels: Columns, omega: Array, intercept: float
    ) -> GenerationState:
        """Return the state of these blocks with the best intercept, before its certificate.

        ``members``, ``labels`` and ``omega`` (m,) are the column, block and weight of each
        coordinate; ``intercept`` is the first guess of the intercept.
        """
        block = _gathered(problem, members)
        linear = block.predict(omega)
        intercept = optimal_intercept(problem, linear, intercept)
        best_constant = optimal_intercept(problem, np.zeros_like(problem.weight), intercept)
        state = GenerationState(
            columns=members,
            weights=omega,
            intercept=intercept,
            prediction=linear + intercept,
            certificate=None,  # type: ignore[arg-type]  # _price sets it
            block=block,
            members=members,
            labels=labels,
            omega=omega,
            found=dict.fromkeys(members.tolist(), 0),
            first_objective=loss_value(problem, np.full(problem.y.shape[0], best_constant)),
        )
        restricted = self._subproblem(problem, state)
        state.restricted_objective = objective_at(restricted, omega, state.prediction)
        return state

    def saved(self, state: GenerationState) -> Arrays:
        """Return blocks, weights and order of selection of ``state``, for a checkpoint."""
        return {
            "members": state.members,
            "labels": state.labels,
            "omega": state.omega,
            "found": np.array(list(state.found.items()), dtype=np.int64).reshape(-1, 2),
            "intercept": np.array(state.intercept),
            "restricted_gap": np.array(state.restricted_gap),
        }

    def restored(self, problem: Problem, arrays: Arrays) -> GenerationState:
        """Return the state that was saved as ``arrays``, with a certificate by one pass.

        ``problem`` is the problem of the saved state.
        """
        members, labels = (arrays[name].astype(np.int64) for name in ("members", "labels"))
        omega = arrays["omega"].astype(np.float64)
        state = self._state_of_blocks(problem, members, labels, omega, float(arrays["intercept"]))
        state.found = {int(column): int(step) for column, step in arrays["found"]}
        state.restricted_gap = float(arrays["restricted_gap"])
        return self._price(problem, state)

    def step(self, problem: Problem, state: GenerationState) -> GenerationState:
        """Add the block, solve the subproblem, drop blocks of weight zero, find the next block.

        The block is the candidate of ``state``. One pass over the data of ``problem`` certifies the
        point and finds the next candidate.
        """
        starts_at_intercept = problem.fit_intercept and problem.loss.task == "classification"
        if self.from_zero and starts_at_intercept and not state.members.size:
            # The first block of the paper: scores at predictions of zero, where alpha_i = C, and
            # not at the best intercept.
            scores = problem.design.scores(-loss_gradient(problem, np.zeros_like(problem.y)))
            state = replace(state, candidate=self._candidate(problem, state, scores))
        following = self._with_block(problem, state)
        self._refit(problem, following, self.inner_tol)
        with_idle = replace(following)
        limit = self.n_features
        final_tol = self.tol
        self._drop_idle(following)
        if (
            limit
            and _count(problem, with_idle) >= limit
            and _count(problem, following) == state.units
        ):
            # Without its idle blocks, the state has as many features as before the step. The next
            # truncated block could be dropped in the same way, forever. So keep them.
            following = with_idle
        if final_tol is not None and limit and _count(problem, following) >= limit:
            # The selection is final, so a more accurate fit of the weights cannot change it.
            self._refit(problem, following, min(final_tol, self.inner_tol))
        return self._price(problem, following, state)

    def _refit(self, problem: Problem, state: GenerationState, accuracy: float) -> None:
        """Solve the subproblem to a relative duality gap; store its solution in ``state``.

        ``accuracy`` is the relative gap, and ``problem`` is the whole problem.
        """
        restricted = self._subproblem(problem, state)
        master = self.master or choose_master(restricted)
        # If an unpenalized column equals the target, the objective is 0 up to rounding. A gap below
        # that rounding cannot be proved.
        target = max(self._gap_target(state, accuracy), negligible_objective(restricted))
        refit = master.solve(restricted, state.omega, state.intercept, target)
        # The objective may now be much smaller than the one from which the target was computed.
        tighter_target = max(accuracy * abs(refit.objective), negligible_objective(restricted))
        if tighter_target < refit.gap <= target:
            refit = master.solve(restricted, refit.weights, refit.intercept, tighter_target)
        state.omega = refit.weights
        state.intercept = refit.intercept
        state.prediction = refit.prediction
        state.restricted_objective = refit.objective
        state.restricted_gap = refit.gap

    def _with_block(self, problem: Problem, state: GenerationState) -> GenerationState:
        """Return ``state`` after one more step, with its candidate appended as a block of weight 0.

        The data of the block comes from the design of ``problem``.
        """
        following = replace(state, iteration=state.iteration + 1, found=dict(state.found))
        if state.candidate.size:
            assert state.block is not None
            following.block = state.block.append(_gathered(problem, state.candidate))
            following.members = np.concatenate([state.members, state.candidate])
            label = np.full(state.candidate.size, state.n_blocks)
            following.labels = np.concatenate([state.labels, label])
            following.omega = np.concatenate([state.omega, np.zeros(state.candidate.size)])
            # A column keeps the round in which it was found first.
            for column in state.candidate.tolist():
                following.found.setdefault(column, following.iteration)
        return following

    def _subproblem(self, problem: Problem, state: GenerationState) -> Problem:
        """Return the subproblem [T] (31): the squared group norm over the active blocks.

        ``state`` has the blocks, and ``problem`` is the whole problem.
        """
        assert state.block is not None
        n_blocks = state.n_blocks
        groups = Groups(Partition(state.labels, n_blocks, n_blocks))
        regularizer = Regularizer(groups, "squared", problem.regularizer.amount)
        return replace(problem, design=state.block, regularizer=regularizer)

    def _gap_target(self, state: GenerationState, accuracy: float) -> float:
        """Return the absolute duality gap to which the subproblem of ``state`` is solved.

        ``accuracy`` is the relative gap that is sufficient while the whole problem is far from
        solved.
        """
        target = accuracy * abs(state.restricted_objective)
        if self.blocks is not None:
            return target
        target = min(target, 0.1 * state.certificate.gap)
        if not state.candidate.size:
            # No new block: only a more exact subproblem can close the remaining gap.
            target = min(target, 0.1 * state.restricted_gap)
        return target

    def _drop_idle(self, state: GenerationState) -> None:
        """Drop the blocks of ``state`` without weight: n_features counts only columns in use."""
        is_used = np.bincount(state.labels, state.omega != 0, minlength=state.n_blocks) > 0
        if not is_used.all():
            assert state.block is not None
            kept = np.flatnonzero(is_used[state.labels])
            state.block = state.block.gather(kept)
            state.members = state.members[kept]
            state.omega = state.omega[kept]
            # Number the blocks that are left 0, 1, ...
            state.labels = (np.cumsum(is_used) - 1)[state.labels[kept]]

    def _price(
        self, problem: Problem, state: GenerationState, before: GenerationState | None = None
    ) -> GenerationState:
        """Compute the certificate of w and the next block ([T], Algorithm 2) in one pass.

        ``state`` is changed and returned. ``before`` is the state before this step, which the
        stopping rules compare with; None at the start.
        """
        # A column in several blocks has the sum of their weights.
        state.columns, position = np.unique(state.members, return_inverse=True)
        weights = np.bincount(position, state.omega, minlength=state.columns.size)
        # For an empty array bincount returns integers.
        state.weights = weights.astype(np.float64)
        state.units = _count(problem, state)
        state.exhausted = self._reason(state, before)
        point = state.weights, state.prediction
        # A final selection that is only scored needs no pass: its gap is over its own columns.
        if state.exhausted is Status.COLUMN_LIMIT and not self.proves_all:
            data = problem.design.gather(state.columns)
            selected = restrict(problem, data, state.columns)
            state.certificate = prove(selected, None, *point).certificate
            state.candidate = state.members[:0]
            return state
        proof = prove(problem, state.columns, *point)
        state.certificate = proof.certificate
        state.candidate = self._candidate(problem, state, proof.scores)
        return state

    def _candidate(self, problem: Problem, state: GenerationState, scores: Scores) -> Columns:
        """Return the columns of the B features (or groups) with the largest scores, best first.

        ``scores`` are those of ``state``. The block is truncated so that at most ``n_features``
        features are selected, and empty if it equals an active block.
        """
        best: Columns = _check(problem).best_columns(scores, 1)
        best = best[scores.at(best) != 0]
        if self.n_features is not None:
            # Of the features that are not active, keep as many as the limit leaves, best first.
            active = groups_of_columns(problem, state.columns)
            group_of_best = groups_of_columns(problem, best)
            new, first = np.unique(group_of_best, return_index=True)
            new = new[np.argsort(first, kind="stable")]
            new = new[~np.isin(new, active)][: max(self.n_features - state.units, 0)]
            best = best[np.isin(group_of_best, new) | np.isin(group_of_best, active)]
        block_sorted = np.sort(best)
        is_known = any(np.array_equal(np.sort(block), block_sorted) for block in state.blocks)
        return best[:0] if is_known else best

    def _reason(self, state: GenerationState, previous: GenerationState | None) -> Status | None:
        """Return the status if a stopping rule of the solver itself holds, else None.

        ``state`` is the state after a step, and ``previous`` the one before it, None at the start.
        """
        if self.blocks is not None or (
            self.n_features is not None and state.units >= self.n_features
        ):
            return Status.COLUMN_LIMIT
        if previous is None:
            return None
        if self.max_blocks is not None and state.iteration >= self.max_blocks:
            return Status.SELECTED
        # [T] (38): stop if the objective of the subproblem fell by little.
        gain = previous.restricted_objective - state.restricted_objective
        limit = self.outer_tol
        if limit is not None and gain <= limit * state.first_objective:
            return Status.SELECTED
        return None


def _gathered(problem: Problem, members: Columns) -> CachedBlock:
    """Return the data of the columns ``members``, each stored only once if blocks share it.

    ``problem`` has the design.
    """
    columns, positions = np.unique(members, return_inverse=True)
    return CachedBlock(RepeatedBlock(problem.design.gather(columns), columns, positions))


def _count(problem: Problem, state: GenerationState) -> int:
    """Return the number of distinct features (or groups) in the active blocks of ``state``.

    The groups are those of the norm of ``problem``.
    """
    return np.unique(groups_of_columns(problem, state.members)).size


def groups_of_columns(problem: Problem, columns: Columns) -> Columns:
    """Return the group number of each of ``columns``; without groups, the column number itself.

    The groups are those of the norm of ``problem``.
    """
    norm = _check(problem)
    if norm.groups is None:
        return columns
    return norm.partition(problem.design.shape[1]).labels[columns]


def _blocks_of(features: Columns, count: int) -> Columns:
    """Return a block label (m,) for each entry, with ``count`` distinct features a block, in order.

    ``features`` (m,) has the feature of each entry, or its group if the norm has groups.
    """
    _, first, position = np.unique(features, return_index=True, return_inverse=True)
    # The rank of a feature is the order in which it first occurs.
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(first.size)
    return rank[position] // count


def _check(problem: Problem) -> KSupport:
    """Return the k-support norm of ``problem``; raise ValueError if the solver does not apply."""
    norm = problem.regularizer.norm
    form = problem.regularizer.form
    if not isinstance(norm, KSupport) or form != "squared":
        raise ValueError(
            f"FeatureGeneration solves the squared k-support norm, k the batch B; got {norm!r} in "
            f"form {form!r}. Use norms.KSupport(k=B) with form='squared', or ColumnGeneration"
        )
    if problem.tau:
        raise ValueError(
            f"FeatureGeneration has no ridge term, got one of weight {problem.tau:g}; use "
            "l1_ratio=1, or ColumnGeneration, which takes it"
        )
    return norm
