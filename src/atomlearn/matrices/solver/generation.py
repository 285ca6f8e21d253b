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

from atomlearn.core import (
    INNER_RATIO,
    TOLERANCE,
    TUNING,
    AcceleratedGradient,
    Array,
    Blocks,
    Certificate,
    Design,
    Factored,
    Master,
    MatrixPart,
    ModelNewton,
    Norm,
    Problem,
    Refit,
    SemismoothNewton,
    SequentialQP,
    Solver,
    Status,
    Term,
    WarmStart,
    certify,
    loss_value,
    negative_gradient,
    optimal_intercept,
    with_rounding,
)
from atomlearn.matrices.designs.base import SideBySide
from atomlearn.matrices.settings import SETTINGS
from atomlearn.matrices.solver.coordinates import (
    Coordinates,
    Entrywise,
    MatrixState,
    Searched,
    TermPricing,
)


@dataclass(frozen=True, slots=True)
class Aim:
    """Where a re-fit begins: the objective, the gap that it may close, and the intercept."""

    objective: float
    gap: float
    intercept: float


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
        Re-fits the coordinates. None: the active-set method of [V] for rays alone, a
        semismooth Newton method for rays beside other terms, else accelerated proximal gradient,
        whose proximal map is an SVD of S where there are spans.
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

    References
    ----------
    [V] Algorithm 1; Laue 2012; Hsieh, Olsen 2014; Zhang, Yu, Schuurmans 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, norms, solve, solvers
    >>> noisy = np.diag([3.0, 2.0, 0.5])
    >>> design, solver = designs.Identity((3, 3)), solvers.MatrixGeneration(batch=1)
    >>> fit = solve(design, noisy.ravel(), norm=norms.TraceNorm(), level=1.0, solver=solver)
    >>> np.diag(fit.coef).round(4).tolist()
    [2.0, 1.0, 0.0]
    """

    lifts: ClassVar[bool] = False

    state_format: ClassVar[str] = "MatrixGeneration"

    master: Master | None = None
    batch: int = 10
    columns: int = 1000
    inner_ratio: float = INNER_RATIO
    tolerance: float = TOLERANCE

    def start(self, problem: Problem, warm: WarmStart | None = None) -> MatrixState:
        """Begin at zero, or at the terms of an earlier fit with the same kinds of norms.

        Where the last pass of that fit is known, this one begins with a re-fit over what it found:
        the scores at a point do not depend on the level, so that costs no pass.
        """
        terms = begun(problem)
        intercept = 0.0 if warm is None else warm.intercept
        parts = () if warm is None or warm.matrix_parts is None else warm.matrix_parts
        parts = parts if len(parts) == len(terms) else ()
        if parts:
            terms = [t.placed(part) or t for t, part in zip(terms, parts, strict=True)]
        gauge = sum(term.gauge for term in terms)
        if problem.regularizer.form == "constrained" and gauge > problem.regularizer.amount:
            share = problem.regularizer.amount / gauge
            terms = [replace(term, x=share * term.x) for term in terms]
            gauge = share * gauge
        linear = SideBySide([term.block() for term in terms]).dot(_values(terms))
        ahead = [part.ahead for part in parts if part.ahead is not None]
        if len(ahead) < len(terms):
            return self._priced(problem, terms, linear, intercept, np.inf)
        terms = [term.expanded(more) for term, more in zip(terms, ahead, strict=True)]
        objective = loss_value(problem, linear, intercept)
        objective += problem.regularizer.value(gauge)
        aim = Aim(objective, SETTINGS.loose * abs(objective), intercept)
        small, linear, refit = self._moved(problem, aim, terms)
        return self._priced(problem, small, linear, refit.intercept, SETTINGS.loose)

    def saved(self, state: MatrixState) -> dict[str, NDArray[Any]]:
        """Return the factors and entries of the terms, for a checkpoint."""
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
            left = arrays.get(f"left{number}")
            weights = arrays[f"weights{number}"]
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

    def step(self, problem: Problem, state: MatrixState) -> MatrixState:
        """Let the candidates in, re-fit all coordinates, drop zeros, price: one pass."""
        certificate = state.certificate
        aim = Aim(certificate.objective, certificate.closable, state.intercept)
        both = zip(state.terms, state.found, strict=True)
        terms = [term.expanded(found.wanting) for term, found in both]
        small, linear, refit = self._moved(problem, aim, terms)
        before = certificate.relative_gap
        following = self._priced(problem, small, linear, refit.intercept, before)
        following.master_steps = state.master_steps + refit.steps
        following.iteration = state.iteration + 1
        hard = any(term.hard for term in following.terms)
        if hard and following.certificate.leaves_open(self.tolerance):
            following.exhausted = Status.SEARCH_RELATIVE
        return following

    def _moved(
        self, problem: Problem, aim: Aim, terms: list[Coordinates]
    ) -> tuple[list[Coordinates], Array, Refit]:
        """Return re-fitted terms without zeros, and predictions without intercept: no pass."""
        small, refit = self._refitted(problem, aim, terms)
        if not problem.deadline.passed and any(term.hard and term.x.size for term in small):
            turned, gain = self._turned(problem, small, refit)
            if gain > self._target(aim):
                small, refit = self._refitted(problem, aim, turned)
        linear = refit.prediction
        if refit.intercept:
            linear = linear - refit.intercept
        enough = 1e-4 * self.tolerance * abs(aim.objective)
        for number, term in enumerate(small):
            if term.rank and term.sweeps(problem) and not problem.deadline.passed:
                small[number], linear = term.swept(problem, linear, refit.intercept, enough)
        return small, linear, refit

    def _turned(
        self, problem: Problem, small: list[Coordinates], refit: Refit
    ) -> tuple[list[Coordinates], float]:
        """Return the terms with better rays on the supports in use, and what they may gain."""
        v = negative_gradient(problem, refit.prediction)
        gauge = sum(term.gauge for term in small)
        inner = float(v @ (refit.prediction - refit.intercept))
        multiplier = problem.regularizer.multiplier(gauge, inner)
        turned = [term.turned(v, multiplier) for term in small]
        return [term for term, _ in turned], max(gain for _, gain in turned) * gauge

    def _target(self, aim: Aim) -> float:
        """Return the gap that re-fits are asked for."""
        return max(self.inner_ratio * aim.gap, 0.1 * self.tolerance * abs(aim.objective))

    def _refitted(
        self, problem: Problem, aim: Aim, terms: list[Coordinates]
    ) -> tuple[list[Coordinates], Refit]:
        """Return the terms with all their coordinates re-fitted together, without zeros."""
        used = [term for term in terms if term.x.size]
        start = _values(terms)
        if not used:
            return terms, Refit(start, 0.0, np.zeros_like(problem.y), np.inf, np.inf)
        sizes = np.cumsum([0, *(term.x.size for term in used)])
        parts = [np.arange(a, b) for a, b in pairwise(sizes)]
        norms = [term.norm for term in used]
        norm: Norm = norms[0] if len(norms) == 1 else Blocks(norms, parts)
        blocks = [term.block() for term in used]
        block = blocks[0] if len(blocks) == 1 else SideBySide(blocks)
        regularizer = replace(problem.regularizer, norm=norm)
        restricted = replace(problem, design=block, regularizer=regularizer)
        # Where spans are whole, nothing new comes with a pass: one re-fit goes all the way.
        whole = any(term.is_whole for term in used)
        target = self._target(replace(aim, gap=0.0) if whole else aim)
        most = None
        if any(term.sweeps(problem) for term in used):
            # A sweep is exact for least squares: gradient steps only let new atoms in.
            exact = problem.loss.is_quadratic and len(terms) == 1
            most = SETTINGS.before_sweeps if exact else TUNING.inner_steps
        master = self.master or master_for(used, most)
        refit = ModelNewton(master).solve(restricted, start, aim.intercept, target)
        pieces = np.split(refit.weights, np.cumsum([term.x.size for term in terms])[:-1])
        both = zip(terms, pieces, strict=True)
        return [replace(term, x=x).compressed() for term, x in both], refit

    def _priced(
        self,
        problem: Problem,
        terms: list[Coordinates],
        linear: Array,
        intercept: float,
        before: float,
    ) -> MatrixState:
        """One pass: scores, candidates of every term, and the certificate of this very point."""
        intercept = optimal_intercept(problem, linear, intercept)
        prediction = linear + intercept if intercept else linear
        v = negative_gradient(problem, prediction)
        gauge = sum(term.gauge for term in terms)
        # The factors of a span are orthonormal: its coordinates have the Frobenius norm of W.
        ridge = _values(terms) if problem.tau else np.zeros(0)
        inner = float(v @ linear) - problem.tau * float(ridge @ ridge)
        multiplier = problem.regularizer.multiplier(gauge, inner)
        accuracy = min(max(SETTINGS.loose * before, 0.05 * self.tolerance), SETTINGS.loose)
        scores = problem.design.scores(v)
        at = TermPricing(problem, v, scores, multiplier, self.batch, self.columns, accuracy)

        def searched(at: TermPricing) -> tuple[list[Searched], Certificate]:
            """Return what the searches of all terms found, and what that proves."""
            found = [term.searched(at) for term in terms]
            lower, upper = (
                max(one.bounds[side] / t.term.factor for one, t in zip(found, terms, strict=True))
                for side in (0, 1)
            )
            known = certify(problem, ridge, prediction, v, gauge, (lower, upper))
            return found, with_rounding(problem, known, ridge, prediction, v)

        found, certificate = searched(at)
        if certificate.leaves_open(self.tolerance) and not problem.deadline.passed:
            # Nothing better is found: now the bound from above is worth more work, as close as
            # leaves the gap below the tolerance.
            room = 0.4 * (self.tolerance - certificate.closable / abs(certificate.objective))
            accuracy = max(room, 0.02 * self.tolerance)
            found, certificate = searched(replace(at, accuracy=accuracy, thorough=True))
        entries, weights = zip(*(term.entries() for term in terms), strict=True)
        columns, places = np.unique(np.concatenate(entries), return_inverse=True)
        sums = np.bincount(places, np.concatenate(weights), columns.size).astype(np.float64)
        return MatrixState(
            columns=columns,
            weights=sums,
            intercept=intercept,
            prediction=prediction,
            certificate=certificate,
            terms=tuple(terms),
            found=tuple(found),
        )


def _values(terms: list[Coordinates]) -> Array:
    """Return the coordinates of all terms, one after the other."""
    return np.concatenate([term.x for term in terms])


def begun(problem: Problem) -> list[Coordinates]:
    """Return the terms of W = 0, or say why the problem cannot be solved term by term."""
    norm = problem.regularizer.norm
    terms = norm.terms()
    if norm.solver(1.0) is None:
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
    if term.norm.matrix_shape is None:
        return Entrywise(term, design, np.zeros(0), np.zeros(0, dtype=np.int64))
    norm: Any = term.norm
    coordinates: Coordinates = norm.at_zero(term, design)
    return coordinates


def master_for(terms: list[Coordinates], most: int | None = None) -> Master:
    """Return the method that re-fits these coordinates, as ``MatrixGeneration`` describes.

    Rays beside other terms lie close together, so first-order steps are slow there; so they are in
    spans of columns in other units, and where sweeps follow, ``most`` of them are enough.
    """
    if all(term.hard for term in terms):
        return SequentialQP()
    if any(term.hard for term in terms):
        return SemismoothNewton()
    return AcceleratedGradient() if most is None else AcceleratedGradient(max_iter=most)
