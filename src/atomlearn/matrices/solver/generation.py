"""Generation over matrices: the best rank-one atoms in, everything re-fitted within their span.

[V] Algorithm 1 (Vinyes, Obozinski 2017) with a corrective step that is not over rays where it can
be over spans: W = U S V' with all of S re-fitted under the trace norm (active subspaces, Hsieh,
Olsen 2014), beside sparse rank-one rays and entries under norms of vectors. W is never formed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.interfaces import Design, Master, Norm, Refit, Solver, State, Term
from atomlearn.core.interfaces.solver import WarmStart
from atomlearn.core.losses.pieces import shifted
from atomlearn.core.masters.accelerated_gradient import AcceleratedGradient
from atomlearn.core.masters.coupled_newton import CoupledNewton
from atomlearn.core.masters.newton import SemismoothNewton
from atomlearn.core.masters.sequential_qp import SequentialQP
from atomlearn.core.norms.blocks import Blocks
from atomlearn.core.problem.factored import Factored, MatrixPart
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Certificate, Status
from atomlearn.matrices.designs.factor_blocks import SideBySide
from atomlearn.matrices.solver.coordinates import Coordinates, Placed, Pricing, Searched
from atomlearn.matrices.solver.entrywise import Entrywise
from atomlearn.matrices.solver.spans import Span
from atomlearn.matrices.solver.state import (
    MatrixState,
    apart,
    compressed,
    inside,
    summed_entries,
    with_candidates,
)
from atomlearn.matrices.solver.sweeps import can_sweep, swept

if TYPE_CHECKING:
    from atomlearn.matrices.norms.base import MatrixNorm

Array = NDArray[np.float64]
Columns = NDArray[np.int64]

#: Steps without progress after which a run has stalled.
PATIENCE = 8
#: A search near the rays in use is enough where it promises this share of the first one in a row.
LAZY = 0.1
#: Re-fits of rays that turn on their supports, between two passes.
TURNS = 5
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
        terms = begun(problem)
        values = [np.zeros(term.size) for term in terms]
        intercept = 0.0 if warm is None else warm.intercept
        parts = None if warm is None else warm.matrix_parts
        if parts is not None and len(parts) == len(terms):
            for number, part in enumerate(parts):
                if (known := terms[number].placed(part)) is not None:
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
        if not any(term.kind == "rays" and term.size for term, _ in small):
            return None
        v = problem.negative_gradient(refit.prediction)
        gauge = sum(term.norm.value(x) for term, x in small if x.size)
        inner = float(v @ (refit.prediction - refit.intercept))
        multiplier = problem.regularizer.multiplier(gauge, inner)
        turned = [term.turned(x, v, multiplier) for term, x in small]
        gain = max(gain for _, gain in turned)
        return apart([term for term, _ in turned]) if gain * gauge > self._target(state) else None

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
            if not can_sweep(problem, term):
                continue
            enough = 0.01 * self.tolerance * abs(state.certificate.objective)
            term, x, linear = swept(problem, cast(Span, term), x, linear, intercept, enough)
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
        whole = any(term.is_whole for term in used)
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
        found: list[Searched] = []

        def search(accuracy: float, thorough: bool) -> Certificate:
            least = max(LAZY * nearby, 10.0 * self.tolerance)
            at = Pricing(
                scores, v, problem.tau, multiplier, accuracy, thorough, least,
                self.batch, self.columns,
            )  # fmt: skip
            found[:] = [term.searched(x, at) for term, x in zip(terms, values, strict=True)]
            factors = [term.term.factor for term in terms]
            bounds = [
                max(one.bounds[side] / factor for one, factor in zip(found, factors, strict=True))
                for side in (0, 1)
            ]
            return problem.certificate(ridge, prediction, v, gauge, (bounds[0], bounds[1]))

        certificate = search(accuracy, thorough=False)
        searched, enough = certificate.search_gap, self.tolerance * abs(certificate.objective)
        if searched is not None and searched <= enough < certificate.gap:
            # Nothing better is found: now the bound from above is worth more work, as close as
            # leaves the gap below the tolerance.
            room = 0.4 * (enough - searched) / abs(certificate.objective)
            certificate = search(max(room, 0.02 * self.tolerance), thorough=True)
        columns, weights = summed_entries(terms, values)
        promised = max(one.promised for one in found)
        return MatrixState(
            columns=columns,
            weights=weights,
            intercept=intercept,
            prediction=prediction,
            certificate=certificate,
            terms=tuple(terms),
            values=tuple(values),
            candidates=tuple(one.wanting for one in found),
            nearby=promised if nearby == 0.0 or promised == 0.0 else nearby,
        )

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
        hard = any(term.kind == "rays" for term in state.terms)
        if hard and searched is not None and searched <= target < certificate.gap:
            state.exhausted = Status.SEARCH_RELATIVE
        elif state.stalled >= PATIENCE:
            state.exhausted = Status.STALLED
        return state


def begun(problem: Problem) -> list[Coordinates]:
    """Return the terms of W = 0, or say why the problem cannot be solved term by term."""
    norm = problem.regularizer.norm
    terms = norm.terms()
    if not norm.of_matrices:
        raise TypeError(
            f"MatrixGeneration is for norms of matrices, got {norm!r}; use "
            "solvers.ColumnGeneration() for norms of vectors"
        )
    if problem.tau and (len(terms) > 1 or not norm.proximal):
        # The ridge would mix terms of W, or rays, which are solved for apart.
        raise ValueError(
            f"MatrixGeneration: tau > 0 mixes the terms of {norm!r}, which are "
            "solved for apart; use tau=0, norms.TraceNorm() or norms.PSD() alone, or "
            "solvers.AtomGeneration() for small matrices"
        )
    return [at_zero(term, problem.design) for term in terms]


def at_zero(term: Term, design: Design) -> Coordinates:
    """Return a term at zero, in the coordinates of its norm: entries where it is one of vectors."""
    if not term.norm.of_matrices:
        return Entrywise(term, design, np.zeros(0, dtype=np.int64))
    return cast("MatrixNorm", term.norm).at_zero(term, design)


def master_for(terms: list[Coordinates]) -> Master:
    """Return the master that suits the kinds of coordinates."""
    kinds = {term.kind for term in terms}
    if kinds == {"rays"}:
        return SequentialQP()
    size = sum(term.size for term in terms)
    # Rays lie close together, which takes second order; the Jacobian over a span is (r s)^2.
    if "span" in kinds and not ("rays" in kinds and size <= NEWTON_SIZE):
        return CoupledNewton(AcceleratedGradient())
    return CoupledNewton(SemismoothNewton())
