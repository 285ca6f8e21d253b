"""Column generation over matrices: a fully corrective conditional gradient method.

Each iteration adds the rank-one atoms with the largest scores and re-fits all atoms. This is [V]
Algorithm 1 (Vinyes, Obozinski 2017), with one improvement for trace norms: instead of weights of
single atoms it re-fits the matrix S of W = U S V' (active subspaces, Hsieh, Olsen 2014). Terms with
sparse rank-one atoms and terms given by entries are re-fitted at the same time. The dense matrix W
is never formed.
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
    is_quadratic,
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
    """Starting point of a re-fit: its objective, duality gap and intercept."""

    objective: float
    gap: float
    intercept: float


@dataclass(frozen=True, slots=True)
class MatrixGeneration(Solver):
    """Fully corrective column generation for min f(X vec(W) + b) + R(gauge(W)), W a matrix.

    f is the loss, b the intercept, R the regularizer. Each iteration makes one pass over the data,
    for the matrix of scores Z (the negative gradient of f with respect to W). For a trace norm with
    W = U S V', the top singular vectors of Z, the gradient directions Z V and Z'U, and the factors
    of the previous iteration extend U and V. For norms with sparse atoms the atoms with the
    largest scores become active, for norms of vectors the entries. Then all coordinates (S, the
    weights of the sparse atoms, the entries) are re-fitted together, a small vector problem, and
    those at zero are removed. Objective and duality gap use the sum of the norms of the terms. A
    ridge term tau > 0 requires a single ``TraceNorm`` or ``PSD``, for which ||W||_F = ||S||_F.

    Parameters
    ----------
    master : Master, optional
        Method that re-fits the coordinates. None: the active-set method of [V] if all terms have
        sparse atoms, a semismooth Newton method if some have, else accelerated proximal gradient,
        whose proximal operator for a trace norm is singular value thresholding of S.
    batch : int
        Number of atoms to add per iteration for each matrix norm.
    columns : int
        Minimum number of entries to add per iteration for a norm of vectors; four times the number
        of active entries, or 1% of all entries, if that is more.
    inner_ratio : float
        Duality gap of a re-fit as a fraction of the gap before it.
    tol : float
        Relative duality gap of the whole fit.

    Notes
    -----
    Memory: the design, the predictions, and O((p + q) r) for rank r, twice that within an
    iteration. For tensors the scores of every unfolding are computed from the same gradient.

    References
    ----------
    [V] Algorithm 1; Laue 2012; Hsieh, Olsen 2014; Zhang, Yu, Schuurmans 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import designs, norms, solve, solvers
    >>> noisy = np.diag([3.0, 2.0, 0.5])
    >>> design, solver = designs.Identity((3, 3)), solvers.MatrixGeneration(batch=1)
    >>> penalty = {"norm": norms.TraceNorm(), "alpha": 1 / 9}
    >>> fit = solve(design, noisy.ravel(), fit_intercept=False, solver=solver, **penalty)
    >>> np.diag(fit.coef).round(4).tolist()
    [2.0, 1.0, 0.0]
    """

    lifts: ClassVar[bool] = False

    state_format: ClassVar[str] = "MatrixGeneration"

    master: Master | None = None
    batch: int = 10
    columns: int = 1000
    inner_ratio: float = INNER_RATIO
    tol: float = TOLERANCE

    def start(self, problem: Problem, warm: WarmStart | None = None) -> MatrixState:
        """Return the initial state: W = 0, or the terms of ``warm`` if its norms are of this kind.

        If ``warm`` contains the atoms found in its last pass, they are added and re-fitted first:
        scores do not depend on the regularization parameter, so that no new pass is needed.
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
        linear = SideBySide([term.block() for term in terms]).predict(_values(terms))
        ahead = [part.ahead for part in parts if part.ahead is not None]
        if len(ahead) < len(terms):
            return self._priced(problem, terms, linear, intercept, np.inf)
        terms = [term.expanded(candidates) for term, candidates in zip(terms, ahead, strict=True)]
        objective = loss_value(problem, linear, intercept)
        objective += problem.regularizer.value(gauge)
        aim = Aim(objective, SETTINGS.loose * abs(objective), intercept)
        small, linear, refit = self._moved(problem, aim, terms)
        return self._priced(problem, small, linear, refit.intercept, SETTINGS.loose)

    def saved(self, state: MatrixState) -> dict[str, NDArray[Any]]:
        """Return the factors and entries of the terms, for a checkpoint."""
        arrays: dict[str, NDArray[Any]] = {"intercept": np.array(state.intercept)}
        for number, part in enumerate(state.matrix_parts()):
            fields: dict[str, Any] = {"columns": part.columns, "weights": part.weights}
            if part.factored is not None:
                factored = part.factored
                fields = {
                    "left": factored.left,
                    "weights": factored.weights,
                    "right": factored.right,
                }
            arrays |= {f"{name}{number}": array for name, array in fields.items()}
        return arrays

    def restored(self, problem: Problem, arrays: dict[str, NDArray[Any]]) -> MatrixState:
        """Return the state at the point of a checkpoint; one pass computes its certificate."""
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
        no_entries = np.zeros(0, dtype=np.int64), np.zeros(0)
        warm = WarmStart(*no_entries, float(arrays["intercept"]), matrix_parts=tuple(parts))
        return self.start(problem, warm)

    def step(self, problem: Problem, state: MatrixState) -> MatrixState:
        """Return the next state: add the atoms found, re-fit, drop zeros, search for new atoms.

        The search makes the only pass over the data.
        """
        certificate = state.certificate
        aim = Aim(certificate.objective, certificate.closable, state.intercept)
        pairs = zip(state.terms, state.found, strict=True)
        terms = [term.expanded(found.wanting) for term, found in pairs]
        small, linear, refit = self._moved(problem, aim, terms)
        before = certificate.relative_gap
        following = self._priced(problem, small, linear, refit.intercept, before)
        following.master_steps = state.master_steps + refit.steps
        following.iteration = state.iteration + 1
        hard = any(term.hard for term in following.terms)
        if hard and following.certificate.leaves_open(self.tol):
            following.exhausted = Status.SEARCH_RELATIVE
        return following

    def _moved(
        self, problem: Problem, aim: Aim, terms: list[Coordinates]
    ) -> tuple[list[Coordinates], Array, Refit]:
        """Return the re-fitted terms without zeros, their predictions without intercept, the Refit.

        No pass over the data is needed. After the re-fit, better sparse atoms on the active
        supports are added, and low-rank terms are improved by alternating minimization.
        """
        small, refit = self._refitted(problem, aim, terms)
        if not problem.deadline.passed and any(term.hard and term.x.size for term in small):
            improved, gain = self._turned(problem, small, refit)
            if gain > self._target(aim):
                small, refit = self._refitted(problem, aim, improved)
        linear = refit.prediction
        if refit.intercept:
            linear = linear - refit.intercept
        sufficient = 1e-4 * self.tol * abs(aim.objective)
        for number, term in enumerate(small):
            if term.rank and term.sweeps(problem) and not problem.deadline.passed:
                small[number], linear = term.swept(problem, linear, refit.intercept, sufficient)
        return small, linear, refit

    def _turned(
        self, problem: Problem, small: list[Coordinates], refit: Refit
    ) -> tuple[list[Coordinates], float]:
        """Return the terms with better sparse atoms on the active supports added.

        The second result bounds the decrease of the objective that these atoms can bring.
        """
        v = negative_gradient(problem, refit.prediction)
        gauge = sum(term.gauge for term in small)
        inner = float(v @ (refit.prediction - refit.intercept))
        multiplier = problem.regularizer.multiplier(gauge, inner)
        improved = [term.turned(v, multiplier) for term in small]
        return [term for term, _ in improved], max(gain for _, gain in improved) * gauge

    def _target(self, aim: Aim) -> float:
        """Return the absolute duality gap at which a re-fit stops."""
        return max(self.inner_ratio * aim.gap, 0.1 * self.tol * abs(aim.objective))

    def _refitted(
        self, problem: Problem, aim: Aim, terms: list[Coordinates]
    ) -> tuple[list[Coordinates], Refit]:
        """Return the terms after a joint re-fit of all coordinates, and the Refit; drop zeros."""
        active = [term for term in terms if term.x.size]
        start = _values(terms)
        if not active:
            return terms, Refit(start, 0.0, np.zeros_like(problem.y), np.inf, np.inf)
        sizes = np.cumsum([0, *(term.x.size for term in active)])
        parts = [np.arange(a, b) for a, b in pairwise(sizes)]
        norms = [term.norm for term in active]
        norm: Norm = norms[0] if len(norms) == 1 else Blocks(norms, parts)
        blocks = [term.block() for term in active]
        block = blocks[0] if len(blocks) == 1 else SideBySide(blocks)
        regularizer = replace(problem.regularizer, norm=norm)
        restricted = replace(problem, design=block, regularizer=regularizer)
        # Bases that span the whole space cannot be extended by a pass, so that this re-fit has to
        # solve the problem.
        has_whole = any(term.is_whole for term in active)
        target = self._target(replace(aim, gap=0.0) if has_whole else aim)
        limit = None
        if any(term.sweeps(problem) for term in active):
            # Alternating ridge regressions are exact for least squares, so that gradient steps
            # only have to give new atoms a nonzero weight.
            exact = is_quadratic(problem.loss) and len(terms) == 1
            limit = SETTINGS.before_sweeps if exact else TUNING.inner_steps
        master = self.master or master_for(active, limit)
        refit = ModelNewton(master).solve(restricted, start, aim.intercept, target)
        pieces = np.split(refit.weights, np.cumsum([term.x.size for term in terms])[:-1])
        pairs = zip(terms, pieces, strict=True)
        return [replace(term, x=x).compressed() for term, x in pairs], refit

    def _priced(
        self,
        problem: Problem,
        terms: list[Coordinates],
        linear: Array,
        intercept: float,
        before: float,
    ) -> MatrixState:
        """Return the state at this point after one pass: new atoms, and the duality certificate.

        ``linear`` (n_samples,) are the predictions without intercept; ``before`` is the relative
        gap of the previous iteration, which determines the accuracy of the polar bounds.
        """
        intercept = optimal_intercept(problem, linear, intercept)
        prediction = linear + intercept if intercept else linear
        v = negative_gradient(problem, prediction)
        gauge = sum(term.gauge for term in terms)
        # The bases U and V are orthonormal, so that ||S||_F = ||W||_F in the ridge term.
        ridge = _values(terms) if problem.tau else np.zeros(0)
        inner = float(v @ linear) - problem.tau * float(ridge @ ridge)
        multiplier = problem.regularizer.multiplier(gauge, inner)
        accuracy = min(max(SETTINGS.loose * before, 0.05 * self.tol), SETTINGS.loose)
        scores = problem.design.scores(v)
        at = TermPricing(problem, v, scores, multiplier, self.batch, self.columns, accuracy)

        def searched(at: TermPricing) -> tuple[list[Searched], Certificate]:
            """Search for new atoms of all terms; return them and the duality certificate."""
            found = [term.searched(at) for term in terms]
            lower, upper = (
                max(one.bounds[side] / t.term.factor for one, t in zip(found, terms, strict=True))
                for side in (0, 1)
            )
            known = certify(problem, ridge, prediction, v, gauge, (lower, upper))
            return found, with_rounding(problem, known, ridge, prediction, v)

        found, certificate = searched(at)
        if certificate.leaves_open(self.tol) and not problem.deadline.passed:
            # The atoms found cannot close the gap. Another dual point may close it, ...
            other = self._closer(problem, terms, at, prediction, gauge)
            certificate = _tighter(certificate, other)
            if certificate.leaves_open(self.tol):
                # ... or tighter upper bounds on the polar.
                tolerance_left = 0.4 * (
                    self.tol - certificate.closable / abs(certificate.objective)
                )
                accuracy = max(tolerance_left, 0.02 * self.tol)
                found, certificate = searched(replace(at, accuracy=accuracy, thorough=True))
                certificate = _tighter(certificate, other)
        entries, weights = zip(*(term.entries() for term in terms), strict=True)
        columns, inverse = np.unique(np.concatenate(entries), return_inverse=True)
        sums = np.bincount(inverse, np.concatenate(weights), columns.size).astype(np.float64)
        return MatrixState(
            columns=columns,
            weights=sums,
            intercept=intercept,
            prediction=prediction,
            certificate=certificate,
            terms=tuple(terms),
            found=tuple(found),
        )

    def _closer(
        self,
        problem: Problem,
        terms: list[Coordinates],
        at: TermPricing,
        prediction: Array,
        gauge: float,
    ) -> Certificate | None:
        """Return the certificate of a dual point that the polar's bounds suit; None without one."""
        is_least_squares = (
            not problem.tau and not problem.fit_intercept and is_quadratic(problem.loss)
        )
        if len(terms) > 1 or not is_least_squares:
            return None
        v = negative_gradient(problem, np.zeros_like(prediction))
        start = replace(at, v=v, scores=problem.design.scores(v))
        closer = terms[0].closer_dual(start, 0.1 * self.tol)
        if closer is None:
            return None
        v, bound = closer
        none = np.zeros(0)  # weights of the ridge term
        proved = certify(problem, none, prediction, v, gauge, (bound, bound))
        return with_rounding(problem, proved, none, prediction, v)


def _tighter(certificate: Certificate, other: Certificate | None) -> Certificate:
    """Return the certificate with the gap of the other one, of the same point, if it is smaller."""
    if other is None or other.gap >= certificate.gap:
        return certificate
    return replace(certificate, gap=other.gap, rounding=other.rounding, shortfall=other.shortfall)


def _values(terms: list[Coordinates]) -> Array:
    """Return the concatenated coordinates of all terms."""
    return np.concatenate([term.x for term in terms])


def begun(problem: Problem) -> list[Coordinates]:
    """Return the terms at W = 0; raise for norms of vectors, and for a ridge term with several."""
    norm = problem.regularizer.norm
    terms = norm.terms()
    if norm.solver(1.0) is None:
        raise TypeError(
            f"MatrixGeneration is for norms of matrices, got {norm!r}; use "
            "solvers.ColumnGeneration() for norms of vectors"
        )
    if problem.tau and (len(terms) > 1 or not norm.proximal):
        # The ridge would couple terms of W, or rays, which are solved for separately.
        raise ValueError(
            f"MatrixGeneration: a ridge term mixes the terms of {norm!r}, which are "
            "solved for separately; use l1_ratio=1, only norms.TraceNorm() or norms.PSD(), or "
            "solvers.AtomGeneration() for small matrices"
        )
    return [at_zero(term, problem.design) for term in terms]


def at_zero(term: Term, design: Design) -> Coordinates:
    """Return the term at W_i = 0: ``Entrywise`` for norms of vectors, else as the norm defines."""
    if not term.norm.matrix_shape:
        return Entrywise(term, design, np.zeros(0), np.zeros(0, dtype=np.int64))
    norm: Any = term.norm
    coordinates: Coordinates = norm.at_zero(term, design)
    return coordinates


def master_for(terms: list[Coordinates], most: int | None = None) -> Master:
    """Return the default method for the re-fit of these terms; see ``MatrixGeneration``.

    Sparse atoms together with other terms are nearly collinear, so that first-order methods are
    slow and a semismooth Newton method is used. First-order methods are also slow for low-rank
    terms if columns have different scales; ``most`` limits their iterations, which suffices if
    alternating minimization follows.
    """
    if all(term.hard for term in terms):
        return SequentialQP()
    if any(term.hard for term in terms):
        return SemismoothNewton()
    return AcceleratedGradient() if most is None else AcceleratedGradient(max_iter=most)
