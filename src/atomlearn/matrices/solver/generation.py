"""Generation over matrices: the best rank-one atoms in, everything re-fitted within their span.

[V] Algorithm 1 (Vinyes, Obozinski 2017) with a corrective step that is not over rays where it can
be over spans: W = U S V' with all of S re-fitted under the trace norm (active subspaces, Hsieh,
Olsen 2014), beside sparse rank-one rays and entries under norms of vectors. W is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Master, Norm, Refit, Solver, State
from atomlearn.core.interfaces.matrix import Factored
from atomlearn.core.interfaces.solver import WarmStart
from atomlearn.core.losses.pieces import shifted
from atomlearn.core.masters.accelerated_gradient import AcceleratedGradient
from atomlearn.core.masters.coupled_newton import CoupledNewton
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.sequential_qp import SequentialQP
from atomlearn.core.norms.blocks import Blocks
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Certificate, MatrixPart, Status
from atomlearn.matrices.designs.factor_blocks import SideBySide
from atomlearn.matrices.designs.score_matrix import LessFactored
from atomlearn.matrices.norms.base import MatrixNorm
from atomlearn.matrices.norms.sparse import joined
from atomlearn.matrices.solver.problem import check_problem, shape_of, view_of
from atomlearn.matrices.solver.ray_search import Placed, found_near, turned_rays
from atomlearn.matrices.solver.state import (
    MatrixState,
    Pricing,
    apart,
    compressed,
    inside,
    scores_of,
    summed_entries,
    with_candidates,
)
from atomlearn.matrices.solver.sweeps import can_sweep, swept
from atomlearn.matrices.solver.terms import (
    Coordinates,
    Entrywise,
    Rays,
    Span,
    empty,
    from_part,
    usable,
)

Array = NDArray[np.float64]
Columns = NDArray[np.int64]

#: Steps without progress after which a run has stalled.
PATIENCE = 8
#: A search near the rays in use is enough where it promises this share of the first one in a row.
LAZY = 0.1
#: Re-fits of rays that turn on their supports, between two passes.
TURNS = 5
#: Entries up to which a span at once holds a whole matrix, and its longer side up to which.
WHOLE, LONGEST = 1024, 256
#: Share of the last relative gap, and of 1, that the bounds on the polar may leave open.
LOOSE = 0.1
#: Coordinates of spans beside rays up to which Newton steps pay.
NEWTON_SIZE = 400


@dataclass(frozen=True, slots=True)
class MatrixGeneration(Solver):
    """min f(X vec(W) + b) + R(gauge(W)) for gauges of matrices, W kept as factors and entries.

    A step is one pass over the data. The best atoms at W join the span of each trace norm, with
    the directions Z V and Z'U in which its factors turn and the factors a step earlier; the best
    sparse atoms join the rays, the best entries those in use; then all coordinates are re-fitted
    together, which is a vector problem over a small block with the norms of S, c and w side by
    side; and what carries no weight leaves. Objective and gap are those of the sum of the gauges
    of the terms. A ridge term tau > 0 goes with one trace norm or PSD alone, where ||W||_F is that
    of S.

    Parameters
    ----------
    master : Master, optional
        Re-fits the coordinates. None: accelerated proximal gradient where there are spans, whose
        proximal map is an SVD of S; semismooth Newton for rays beside others where they are few;
        the active-set method of [V] for rays alone.
    batch : int
        Atoms one pass asks of each matrix norm.
    columns : int
        Entries one pass asks of a norm of vectors, at least; four times those in use, or one in a
        hundred of all, if more.
    inner_ratio : float
        The master is asked for this fraction of the outer gap.
    tolerance : float
        Relative gap that will be asked of the whole.

    Notes
    -----
    Memory: the design, the predictions, and O((p + q) r) for rank r, twice that within a step.
    For tensors the scores of each mode are read off one product with the same v.
    """

    lifts: ClassVar[bool] = False

    state_format: ClassVar[str] = "MatrixGeneration"

    master: Master | None = None
    batch: int = 10
    columns: int = 1000
    inner_ratio: float = 0.05
    tolerance: float = 1e-6

    def start(self, problem: Problem, warm: WarmStart | None = None) -> MatrixState:
        """Begin at zero, or at the terms of an earlier fit with the same kinds of norms."""
        check_problem(problem)
        shape = shape_of(problem)
        terms: list[Coordinates] = []
        values: list[Array] = []
        for term in problem.regularizer.norm.terms():
            at_zero = empty(term, view_of(problem.design, term, shape))
            terms.append(at_zero)
            values.append(np.zeros(at_zero.size))
        intercept = 0.0 if warm is None else warm.intercept
        parts = None if warm is None else warm.matrix_parts
        if parts is not None and len(parts) == len(terms):
            for number, part in enumerate(parts):
                known = from_part(terms[number], part)
                if known is not None:
                    terms[number], values[number] = known
        terms, values = inside(problem, terms, values)
        linear = SideBySide([term.block() for term in terms]).dot(np.concatenate(values))
        return self._priced(problem, terms, values, linear, intercept, np.inf)

    def saved(self, state: State) -> dict[str, NDArray[Any]]:
        """Return the factors and entries of the terms, for a checkpoint."""
        assert isinstance(state, MatrixState)
        arrays: dict[str, NDArray[Any]] = {"intercept": np.array(state.intercept)}
        for number, part in enumerate(state.matrix_parts()):
            held: dict[str, Any] = {"columns": part.columns, "weights": part.weights}
            if part.factored is not None:
                factored = part.factored
                held = {"left": factored.left, "weights": factored.weights, "right": factored.right}
            arrays |= {f"{name}{number}": array for name, array in held.items()}
        return arrays

    def restored(self, problem: Problem, arrays: dict[str, NDArray[Any]]) -> MatrixState:
        """Return the state of a checkpoint, priced anew: one pass."""
        parts = []
        for number, term in enumerate(problem.regularizer.norm.terms()):
            left, weights = arrays.get(f"left{number}"), arrays[f"weights{number}"]
            if left is None:
                columns = arrays[f"columns{number}"]
                part = MatrixPart(term.norm, term.factor, 0.0, columns=columns, weights=weights)
            else:
                factored = Factored(left, weights, arrays[f"right{number}"])
                part = MatrixPart(term.norm, term.factor, 0.0, factored=factored)
            parts.append(part)
        nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        warm = WarmStart(*nothing, float(arrays["intercept"]), matrix_parts=tuple(parts))
        return self.start(problem, warm)

    def step(self, problem: Problem, state: State) -> MatrixState:
        """Let the candidates in, re-fit all coordinates, drop zeros, price: one pass."""
        assert isinstance(state, MatrixState)
        terms, values = with_candidates(state)
        refit = self._refitted(problem, state, terms, values)
        small = compressed(terms, refit)
        for _ in range(TURNS):
            if (turned := self._turned(problem, state, small, refit)) is None:
                break
            refit = self._refitted(problem, state, *turned)
            small = compressed(turned[0], refit)
        del terms, values  # the wide bases of the re-fit, before the search for the next atoms
        linear = shifted(refit.prediction, -refit.intercept)
        small, linear = self._swept(problem, state, small, linear, refit.intercept)
        following = self._priced(
            problem,
            *apart(small),
            linear,
            refit.intercept,
            state.certificate.relative_gap,
            state.nearby,
        )
        following.master_steps = state.master_steps + refit.steps
        return self._judged(following, state)

    def _turned(
        self, problem: Problem, state: MatrixState, small: list[Placed], refit: Refit
    ) -> tuple[list[Coordinates], list[Array]] | None:
        """Return the terms with better rays on the supports in use, None where they gain little."""
        if not any(isinstance(term, Rays) and term.size for term, _ in small):
            return None
        v = problem.negative_gradient(refit.prediction)
        gauge = sum(term.norm.value(x) for term, x in small if x.size)
        inner = float(v @ (refit.prediction - refit.intercept))
        turned, gain = turned_rays(small, v, problem.regularizer.multiplier(gauge, inner))
        enough = self._target(state)
        return apart(turned) if gain * gauge > enough else None

    def _swept(
        self,
        problem: Problem,
        state: MatrixState,
        small: list[Placed],
        linear: Array,
        intercept: float,
    ) -> tuple[list[Placed], Array]:
        """Return the terms and their predictions after sweeps over the factors of spans."""
        for number, (term, x) in enumerate(small):
            if can_sweep(problem, term):
                assert isinstance(term, Span)
                enough = 0.01 * self.tolerance * abs(state.certificate.objective)
                term, x, linear = swept(problem, term, x, linear, intercept, enough)
                small[number] = term, x
        return small, linear

    def _target(self, state: MatrixState) -> float:
        """Return the gap that re-fits are asked for."""
        certificate = state.certificate
        enough = 0.1 * self.tolerance * abs(certificate.objective)
        return max(self.inner_ratio * certificate.closable, enough)

    def _refitted(
        self,
        problem: Problem,
        state: MatrixState,
        terms: list[Coordinates],
        values: list[Array],
    ) -> Refit:
        """Return the coordinates of all terms, side by side, re-fitted together."""
        used = [term for term in terms if term.size]
        start = np.concatenate(values)
        if not used:
            return Refit(start, 0.0, np.zeros_like(problem.y), np.inf, np.inf)
        sizes = np.cumsum([0, *(term.size for term in used)])
        parts = [np.arange(a, b) for a, b in pairwise(sizes)]
        norms = [term.norm for term in used]
        norm: Norm = norms[0] if len(norms) == 1 else Blocks(norms, parts)
        blocks = [term.block() for term in used]
        block = blocks[0] if len(blocks) == 1 else SideBySide(blocks)
        regularizer = replace(problem.regularizer, norm=norm)
        restricted = replace(problem, design=block, regularizer=regularizer)
        # Where spans are whole, nothing new comes with a pass: once all the way, and it is done.
        whole = any(isinstance(term, Span) and term.is_whole for term in used)
        enough = 0.1 * self.tolerance * abs(state.certificate.objective)
        target = enough if whole else self._target(state)
        master = master_for(used) if self.master is None else self.master
        return master.solve(restricted, start, state.intercept, target)

    def _priced(
        self,
        problem: Problem,
        terms: list[Coordinates],
        values: list[Array],
        linear: Array,
        intercept: float,
        before: float,
        nearby: float = 0.0,
    ) -> MatrixState:
        """One pass: scores, candidates of every term, and the certificate of this very point."""
        intercept = problem.optimal_intercept(linear, intercept)
        prediction = shifted(linear, intercept)
        v = problem.negative_gradient(prediction)
        scores = problem.design.scores(v)
        gauge = sum(term.norm.value(x) for term, x in zip(terms, values, strict=True) if x.size)
        # The factors of a span are orthonormal: its coordinates have the Frobenius norm of W.
        ridge = np.concatenate(values) if problem.tau else np.zeros(0)
        inner = float(v @ linear) - problem.tau * float(ridge @ ridge)
        multiplier = problem.regularizer.multiplier(gauge, inner)
        accuracy = min(max(LOOSE * before, 0.05 * self.tolerance), LOOSE)
        bounds: list[tuple[float, float]] = []
        candidates: list[Any] = []
        promised: list[float] = []

        def search(accuracy: float, thorough: bool) -> None:
            bounds[:], candidates[:], promised[:] = [], [], []
            least = max(LAZY * nearby, 10.0 * self.tolerance)
            for term, x in zip(terms, values, strict=True):
                pricing = Pricing(scores, v, problem.tau, multiplier, accuracy, thorough, least)
                found, wanting, near = self._searched(term, x, pricing)
                bounds.append((found[0] / term.term.factor, found[1] / term.term.factor))
                candidates.append(wanting)
                promised.append(near)

        search(accuracy, thorough=False)

        def certified() -> Certificate:
            known = max(low for low, _ in bounds), max(high for _, high in bounds)
            return problem.certificate(ridge, prediction, v, gauge, known)

        certificate = certified()
        searched, enough = certificate.search_gap, self.tolerance * abs(certificate.objective)
        if searched is not None and searched <= enough < certificate.gap:
            # Nothing better is found: now the bound from above is worth more work, as close as
            # leaves the gap below the tolerance.
            room = 0.4 * (enough - searched) / abs(certificate.objective)
            search(max(room, 0.02 * self.tolerance), thorough=True)
            certificate = certified()
        columns, weights = summed_entries(terms, values)
        return MatrixState(
            columns=columns,
            weights=weights,
            intercept=intercept,
            prediction=prediction,
            certificate=certificate,
            terms=tuple(terms),
            values=tuple(values),
            candidates=tuple(candidates),
            nearby=max(promised) if nearby == 0.0 or not any(promised) else nearby,
        )

    def _searched(
        self,
        term: Coordinates,
        x: Array,
        at: Pricing,
    ) -> tuple[tuple[float, float], Any, float]:
        """Return bounds on the polar of a term's norm, what may enter, what ``found_near`` says."""
        norm, multiplier = term.term.norm, at.multiplier
        if isinstance(term, Entrywise):
            # A share of all entries at least: passes are dearer than idle columns.
            count = max(self.columns, 4 * term.size, at.scores.n_columns // 100)
            return norm.polar_bounds(at.scores), term.wanting(x, at.scores, count, multiplier), 0.0
        assert isinstance(norm, MatrixNorm)
        matrix = scores_of(term, at.scores, at.v)
        if at.tau and isinstance(term, Span) and x.size:
            S = x.reshape(term.left.shape[1], -1)
            matrix = LessFactored(matrix, at.tau, term.left, S, term.right)
        level = 0.0 if at.thorough else multiplier * term.term.factor
        found, promised = found_near(term, matrix, level, at.nearby)
        if not promised:
            count = self.batch
            if isinstance(term, Span):  # a large rank is not reached in many small steps
                count = max(count, term.left.shape[1] // 2)
            everywhere = norm.found(matrix, count, at.accuracy, at.thorough)
            found = everywhere if found is None else joined(everywhere, found)
        assert found is not None
        left, right = usable(found, multiplier * term.term.factor * (1 + 1e-12))
        if isinstance(term, Span) and is_small(matrix.shape):
            left, right = np.eye(matrix.shape[0]), np.eye(matrix.shape[1])
        elif isinstance(term, Span) and x.size:
            turned = term.turns(matrix)
            left, right = np.hstack([turned[0], left]), np.hstack([turned[1], right])
        return (found.lower, found.upper), (left, right), promised

    def _judged(self, state: MatrixState, before: MatrixState) -> MatrixState:
        """Count the step, and say whether a further one can change anything."""
        state.iteration = before.iteration + 1
        certificate = state.certificate
        lower = certificate.objective < before.certificate.objective * (1 - 1e-13)
        target = self.tolerance * abs(certificate.objective)
        searched = certificate.search_gap
        # What the bound from above leaves open is no lack of progress.
        gap = certificate.closable
        closer = gap <= 0.9 * before.milestone
        state.stalled = 0 if closer or lower else before.stalled + 1
        state.milestone = gap if closer else before.milestone
        hard = any(isinstance(term, Rays) for term in state.terms)
        if hard and searched is not None and searched <= target < certificate.gap:
            state.exhausted = Status.SEARCH_RELATIVE
        elif state.stalled >= PATIENCE:
            state.exhausted = Status.STALLED
        return state


def is_small(shape: tuple[int, int]) -> bool:
    """Return whether a matrix is so small that a span may as well hold all of it."""
    return shape[0] * shape[1] <= WHOLE and max(shape) <= LONGEST


def master_for(terms: list[Coordinates]) -> Master:
    """Return the master that suits the kinds of coordinates."""
    if all(isinstance(term, Rays) for term in terms):
        return SequentialQP()
    size = sum(term.size for term in terms)
    rays = any(isinstance(term, Rays) for term in terms)
    # Rays lie close together, which takes second order; the Jacobian over a span is (r s)^2.
    if any(isinstance(term, Span) for term in terms) and not (rays and size <= NEWTON_SIZE):
        return CoupledNewton(AcceleratedGradient())
    return CoupledNewton(SemismoothNewton())
