"""Block coordinate descent for the group lasso: one group after the other, the rest held fixed.

Yuan, Lin 2006; Qin, Scheinberg, Goldfarb 2013 (the exact step by Newton's method, and the hybrid
with majorized steps for large groups); [V] section 2.2.2 compares with both.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from atomlearn.core.interfaces import Array, Block, Columns, Scores, WarmStart
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.problem.problem import Problem, negative_gradient, optimal_intercept, restrict
from atomlearn.core.problem.proof import prove, prove_from
from atomlearn.core.solvers.solver import Solver, State
from experiments.rivals.group_step import Spectrum, exact_step, majorized_step

#: Sweeps between two certificates of the active groups.
SWEEPS_TOGETHER = 10


@dataclass(slots=True)
class ActiveGroup:
    """One group in memory. Constants of the problem but for ``weights``.

    number : which group; columns : (s,) of X; block : X_g; level : its own penalty weight;
    spectrum : of the majorizer M >= Hessian of the smooth part in w_g (equal for the squared
    loss, with the intercept minimised over), or its largest eigenvalue alone.
    """

    number: int
    columns: Columns
    block: Block
    level: float
    spectrum: Spectrum
    weights: Array


@dataclass(slots=True)
class GroupState(State):
    """State with the groups in use.

    groups : those in memory; entering : numbers of the groups whose scores want them in; sweeps :
    sweeps over the active groups so far.
    """

    groups: tuple[ActiveGroup, ...] = ()
    entering: Columns = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sweeps: int = 0
    patience: float = 3


@dataclass(frozen=True, slots=True)
class BlockCoordinateDescent(Solver):
    """min f(X w + b) + tau/2 ||w||^2 + level sum_g weight_g ||w_g||_2, group by group, cyclic.

    For ``norms.Groups`` and ``norms.L1`` in the penalized form. A step: the groups whose scores
    exceed their level join the active set, sweeps over the active groups, with the residual kept
    up to date, until the certificate of the active problem has come down to a fraction of the
    gap, then one pass over all groups for the next candidates and the certificate. Groups that
    would stay at zero are thus never gathered.

    A visit to a group minimises a majorizer of f in w_g, with b minimised over at the same time:
    for the squared loss f itself, for others the quadratic with loss'' at its bound.

    Parameters
    ----------
    newton : bool
        True: the majorizer has the matrix M = L X_g'S X_g + tau I and is minimised exactly, by
        Newton's method for the one unknown ||w_g|| (for the squared loss the exact group step of
        Qin et al.). False: it has the multiple of I above M, whose step is a soft threshold
        (their ISTA-BC; a plain block proximal gradient step).
    largest : int
        Groups above this size take the soft threshold in any case, which is the hybrid of Qin et
        al.: an exact step multiplies by the eigenvectors, the square of the size, at each visit.
    inner_ratio : float
        Sweeps go on until the active problem is solved to this fraction of the outer gap.
    max_sweeps : int
        Bound on the sweeps of one step.
    tol : float
        Relative gap that will be asked of the whole; sweeps do not aim much lower.

    References
    ----------
    Yuan, Lin 2006; Qin, Scheinberg, Goldfarb 2013; [V] section 2.2.2 compares with both.

    Examples
    --------
    >>> import numpy as np
    >>> from tests.oracles.sums import solve_sum
    >>> from experiments.rivals import BlockCoordinateDescent
    >>> X, y = np.eye(3), np.array([3.0, 0.5, -2.0])
    >>> result = solve_sum(X, y, norm="l1", level=1.0, solver=BlockCoordinateDescent())
    >>> result.coef.round(4).tolist()
    [2.0, 0.0, -1.0]
    """

    newton: bool = True
    largest: int = 500
    inner_ratio: float = 0.1
    max_sweeps: int = 2000
    tol: float = 1e-6

    def start(self, problem: Problem, warm: WarmStart | None = None) -> GroupState:
        """Begin at zero or at the groups of the warm start: one pass."""
        partition = GroupTable.of(problem)
        dense = np.zeros(problem.design.shape[1])
        intercept = 0.0
        if warm is not None:
            dense[warm.columns], intercept = warm.weights, warm.intercept
        numbers = np.unique(partition.labels[np.flatnonzero(dense)])
        groups = tuple(self._gathered(problem, partition, numbers))
        for group in groups:
            group.weights = dense[group.columns]
        linear = _linear(problem, groups)
        intercept = optimal_intercept(problem, linear, intercept)
        return self._price(problem, partition, groups, linear, intercept, None)

    def step(self, problem: Problem, state: GroupState) -> GroupState:
        """Let groups in, sweep until the active problem is solved, price: one pass."""
        partition = GroupTable.of(problem)
        new = self._gathered(problem, partition, state.entering)
        # Copies: the state before stays what it was.
        groups = tuple(replace(group) for group in (*state.groups, *new))
        linear, intercept = state.prediction - state.intercept, state.intercept
        objective = state.certificate.objective
        target = max(self.inner_ratio * state.certificate.gap, 0.1 * self.tol * objective)
        if not len(new):
            target = min(target, self.inner_ratio * state.certificate.gap)
        sweeps = 0
        while sweeps < self.max_sweeps:
            before = [group.weights for group in groups]
            linear, intercept = self._sweep(problem, groups, linear, intercept)
            sweeps += 1
            if all(np.array_equal(w, g.weights) for w, g in zip(before, groups, strict=True)):
                break
            if sweeps % SWEEPS_TOGETHER == 0 or sweeps == 1:
                linear = _linear(problem, groups)  # rounding must not pile up
                if _active_gap(problem, groups, linear, intercept) <= target:
                    break
        used = tuple(group for group in groups if group.weights.any())
        following = self._price(problem, partition, used, _linear(problem, used), intercept, state)
        following.sweeps = state.sweeps + sweeps
        return following

    def _sweep(
        self, problem: Problem, groups: tuple[ActiveGroup, ...], linear: Array, intercept: float
    ) -> tuple[Array, float]:
        """Visit every group once: O(n_samples s) each; b follows at once."""
        for group in groups:
            v = negative_gradient(problem, linear + intercept)
            pull = group.block.scores(v).full() - problem.tau * group.weights
            if self._is_exact(group.columns.size):
                q = pull + group.spectrum.apply(group.weights)
                weights = exact_step(group.spectrum, q, group.level)
            else:
                q = pull + group.spectrum.largest * group.weights
                weights = majorized_step(group.spectrum.largest, q, group.level)
            change = weights - group.weights
            if change.any():
                group.weights = weights
                linear = linear + group.block.predict(change)
                intercept = optimal_intercept(problem, linear, intercept)
        return linear, intercept

    def _is_exact(self, size: int) -> bool:
        return self.newton and size <= self.largest

    def _gathered(
        self, problem: Problem, partition: GroupTable, numbers: Columns
    ) -> list[ActiveGroup]:
        """Return the groups of these numbers, at zero, with their majorizers: O(n s^2) each."""
        result = []
        for number in numbers:
            columns = partition.members(number)
            block = problem.design.gather(columns)
            matrix = _majorizer(problem, block)
            if self._is_exact(columns.size):
                spectrum = Spectrum.of(matrix)
            else:
                # Only the bound on the curvature is needed, not its directions.
                largest = float(np.linalg.eigvalsh(matrix)[-1])
                spectrum = Spectrum(np.array([max(largest, 0.0)]), np.zeros((0, 0)))
            level = problem.regularizer.amount * float(partition.weights[number])
            result.append(
                ActiveGroup(int(number), columns, block, level, spectrum, np.zeros(columns.size))
            )
        return result

    def _price(
        self,
        problem: Problem,
        partition: GroupTable,
        groups: tuple[ActiveGroup, ...],
        linear: Array,
        intercept: float,
        before: GroupState | None,
    ) -> GroupState:
        """One pass over the data: the groups that want in, the certificate of this very point."""
        intercept = optimal_intercept(problem, linear, intercept)
        prediction = linear + intercept
        columns, weights = _joined(groups)
        price = prove(problem, columns, weights, prediction)
        certificate = price.certificate
        active = np.array([group.number for group in groups], dtype=np.int64)
        state = GroupState(
            columns=columns,
            weights=weights,
            intercept=intercept,
            prediction=prediction,
            certificate=certificate,
            groups=groups,
            entering=partition.entering(price.scores, problem.regularizer.amount, active),
        )
        if before is not None:
            state.iteration = before.iteration + 1
        return state


@dataclass(frozen=True, slots=True)
class GroupTable:
    """The groups of the norm: labels (p,), members by number, weights (n_groups,)."""

    labels: Columns
    order: Columns
    starts: Columns
    weights: Array

    @classmethod
    def of(cls, problem: Problem) -> GroupTable:
        """Return the groups of the problem, or say why there are none to descend along."""
        norm, n_features = problem.regularizer.norm, problem.design.shape[1]
        groups = norm.as_groups(n_features)
        if groups is None:
            raise TypeError(
                f"BlockCoordinateDescent works on norms.Groups or norms.L1, got {norm!r}; use "
                "ColumnGeneration, or AtomGeneration"
            )
        if problem.regularizer.form != "penalized":
            raise ValueError(
                "BlockCoordinateDescent needs form='penalized', where groups are separate; got "
                f"form={problem.regularizer.form!r}. Use ColumnGeneration, or form='penalized'"
            )
        if not np.isfinite(problem.loss.curvature_bounds[1]):
            raise TypeError(
                f"BlockCoordinateDescent needs a loss of bounded curvature, got "
                f"{problem.loss.name!r}; use ColumnGeneration"
            )
        order = np.argsort(groups.labels, kind="stable")
        sizes = np.bincount(groups.labels, minlength=groups.weights.size)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        return cls(groups.labels, order, starts, groups.weights)

    def members(self, number: int) -> Columns:
        """Return the columns of one group."""
        return self.order[self.starts[number] : self.starts[number + 1]]

    def entering(self, scores: Scores, level: float, active: Columns) -> Columns:
        """Return the groups that are not active and would not stay at zero, best first."""
        norms = scores.group_norms(self.labels, self.weights.size) / self.weights
        norms[active] = 0.0
        wanting = np.flatnonzero(norms > level)
        return wanting[np.argsort(-norms[wanting], kind="stable")]


def _majorizer(problem: Problem, block: Block) -> Array:
    """Return L X_g'S (I - 1 s'/sum s) X_g + tau I: the centered part where b is free."""
    matrix = block.gram(problem.weight)
    if problem.fit_intercept:
        means = block.scores(problem.weight).full()
        matrix = matrix - np.outer(means, means) / float(problem.weight.sum())
    matrix = problem.loss.curvature_bounds[1] * matrix
    matrix[np.diag_indices_from(matrix)] += problem.tau
    return matrix


def _joined(groups: tuple[ActiveGroup, ...]) -> tuple[Columns, Array]:
    """Return the columns of all groups and their weights."""
    none = np.zeros(0, dtype=np.int64)
    columns = np.concatenate([none, *(group.columns for group in groups)])
    return columns, np.concatenate([np.zeros(0), *(group.weights for group in groups)])


def _linear(problem: Problem, groups: tuple[ActiveGroup, ...]) -> Array:
    linear = np.zeros(problem.design.shape[0])
    for group in groups:
        linear += group.block.predict(group.weights)
    return linear


def _active_gap(
    problem: Problem, groups: tuple[ActiveGroup, ...], linear: Array, intercept: float
) -> float:
    """Return the certified gap of the problem over the active groups: no pass over the data."""
    columns, weights = _joined(groups)
    restricted = restrict(problem, problem.design, columns)
    prediction = linear + optimal_intercept(problem, linear, intercept)
    v = negative_gradient(problem, prediction)
    scores = ArrayScores(np.concatenate([group.block.scores(v).full() for group in groups]))
    return prove_from(restricted, None, weights, prediction, v, scores).certificate.gap
