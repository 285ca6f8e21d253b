"""Column generation over matrices: a fully corrective conditional gradient method.

Each iteration adds the rank-one atoms with the largest scores and re-fits all atoms. This is [V]
Algorithm 1 (Vinyes, Obozinski 2017), with one improvement. For trace norms it re-fits the matrix S
of W = U S V' instead of weights of single atoms (active subspaces, Hsieh, Olsen 2014). For a
union of norms W is a sum of terms, one for each norm. Terms with sparse rank-one atoms and terms
given by entries are re-fitted at the same time. The dense matrix W is never formed.
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
    certificate_of,
    is_quadratic,
    loss_value,
    negative_gradient,
    optimal_intercept,
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
class RefitStart:
    """Objective, duality gap and intercept of the point at which a re-fit starts.

    ``gap`` sets the accuracy of the re-fit. It is the part of the duality gap that new atoms can
    close (``Certificate.closable``), or an estimate of it.
    """

    objective: float
    gap: float
    intercept: float


@dataclass(frozen=True, slots=True)
class MatrixGeneration(Solver):
    """Fully corrective column generation for min f(X vec(W) + b) + R(gauge(W)), W a matrix.

    f is the loss, b the intercept, R the regularizer. Each iteration makes one pass over the data,
    for the matrix of scores Z (the negative gradient of f with respect to W). For a trace norm with
    W = U S V', the bases U and V are extended by the top singular vectors of Z, the gradient
    directions Z V and Z'U, and the factors of the previous iteration. For norms with sparse atoms
    the atoms with the largest scores become active, for norms of vectors the entries with the
    largest scores. Then all coordinates (S, the weights of the sparse atoms, the entries) are
    re-fitted together, a small vector problem, and coordinates at zero are removed. Objective and
    duality gap use the sum of the norms of the terms. A ridge term tau > 0 requires a single
    ``TraceNorm`` or ``PSD``, for which ||W||_F = ||S||_F.

    Parameters
    ----------
    master : Master, optional
        Method that re-fits the coordinates. None: the active-set method of [V] if all terms have
        sparse atoms, a semismooth Newton method if some have, else accelerated proximal gradient.
        Its proximal operator for a trace norm is singular value thresholding of S.
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
        """Return the initial state: W = 0, or the terms of ``warm``, the result of another fit.

        A term of ``warm`` is used if its norm is of the same kind and its shape agrees. If ``warm``
        contains the atoms found in its last pass, they are added and re-fitted first. Scores do not
        depend on the regularization parameter, so that no new pass is needed for them.
        """
        terms = terms_at_zero(problem)
        intercept = 0.0 if warm is None else warm.intercept
        parts = () if warm is None or warm.matrix_parts is None else warm.matrix_parts
        parts = parts if len(parts) == len(terms) else ()
        if parts:
            terms = [t.with_value_of(part) or t for t, part in zip(terms, parts, strict=True)]
        gauge = sum(term.gauge for term in terms)
        # A constrained problem needs a feasible start.
        if problem.regularizer.form == "constrained" and gauge > problem.regularizer.amount:
            share = problem.regularizer.amount / gauge
            terms = [replace(term, x=share * term.x) for term in terms]
            gauge = share * gauge
        linear = SideBySide([term.block() for term in terms]).predict(_values(terms))
        # The atoms that the last pass of ``warm`` found, for each term.
        ahead = [part.ahead for part in parts if part.ahead is not None]
        if len(ahead) < len(terms):
            return self._state_after_pass(problem, terms, linear, intercept, np.inf)
        # A re-fit with these atoms, to a share of the objective, since no duality gap is known.
        terms = [term.expanded(candidates) for term, candidates in zip(terms, ahead, strict=True)]
        objective = loss_value(problem, linear, intercept)
        objective += problem.regularizer.value(gauge)
        initial = RefitStart(objective, SETTINGS.loose * abs(objective), intercept)
        new_terms, linear, refit = self._refitted_and_improved(problem, initial, terms)
        return self._state_after_pass(problem, new_terms, linear, refit.intercept, SETTINGS.loose)

    def saved(self, state: MatrixState) -> dict[str, NDArray[Any]]:
        """Return the factors and entries of the terms of ``state``, for a checkpoint.

        The arrays of term number t are named "left", "weights", "right" (or "columns", "weights"
        for entries), each followed by t.
        """
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
        """Return the state of a checkpoint, whose ``arrays`` are those that ``saved`` returned.

        One pass over the data computes its certificate (objective and duality gap).
        """
        # Terms without factors are given by their entries. The state is that of a warm start.
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

        The search makes the only pass over the data. If the search for atoms is heuristic and its
        bounds leave the gap open, the state says that nothing more can be proved.
        """
        certificate = state.certificate
        # A heuristic search also leaves a gap between its bounds on the polar. No re-fit can close
        # that part, so only ``closable``, the rest of the gap, sets the accuracy of the re-fit.
        initial = RefitStart(certificate.objective, certificate.closable, state.intercept)
        pairs = zip(state.terms, state.found, strict=True)
        terms = [term.expanded(found.to_add) for term, found in pairs]
        # The terms after the re-fit, their predictions, and the Refit: its intercept and steps.
        new_terms, linear, refit = self._refitted_and_improved(problem, initial, terms)
        gap = certificate.relative_gap
        following = self._state_after_pass(problem, new_terms, linear, refit.intercept, gap)
        following.master_steps = state.master_steps + refit.steps
        following.iteration = state.iteration + 1
        is_heuristic = any(term.hard for term in following.terms)
        if is_heuristic and following.certificate.leaves_open(self.tol):
            following.exhausted = Status.SEARCH_RELATIVE
        return following

    def _refitted_and_improved(
        self, problem: Problem, initial: RefitStart, terms: list[Coordinates]
    ) -> tuple[list[Coordinates], Array, Refit]:
        """Return the re-fitted terms without zeros, their predictions without intercept, the Refit.

        No pass over the data is needed. ``terms`` have the new atoms at weight zero, and
        ``initial`` describes their point. The re-fitted terms are improved in two ways. If better
        sparse atoms on the active supports help enough, they are added and re-fitted. Low-rank
        terms are changed by alternating minimization, which the Refit does not include.
        """
        refitted, refit = self._refitted(problem, initial, terms)
        # A second re-fit, if atoms on the active supports can decrease the objective enough.
        if not problem.deadline.passed and any(term.hard and term.x.size for term in refitted):
            improved, gain = self._with_atoms_on_supports(problem, refitted, refit)
            if gain > self._target(initial):
                refitted, refit = self._refitted(problem, initial, improved)
        linear = refit.prediction
        if refit.intercept:
            linear = linear - refit.intercept
        # Alternating minimization ends when a sweep decreases the objective by less than this.
        sufficient = 1e-4 * self.tol * abs(initial.objective)
        for number, term in enumerate(refitted):
            if term.rank and term.sweeps(problem) and not problem.deadline.passed:
                refitted[number], linear = term.swept(problem, linear, refit.intercept, sufficient)
        return refitted, linear, refit

    def _with_atoms_on_supports(
        self, problem: Problem, refitted: list[Coordinates], refit: Refit
    ) -> tuple[list[Coordinates], float]:
        """Return the terms ``refitted`` with better sparse atoms on the active supports added.

        ``refit`` has their predictions. The second result bounds the decrease of the objective that
        these atoms can bring: the gauge times the largest amount by which a score exceeds the
        Lagrange multiplier of the gauge.
        """
        v = negative_gradient(problem, refit.prediction)
        gauge = sum(term.gauge for term in refitted)
        inner = float(v @ (refit.prediction - refit.intercept))
        multiplier = problem.regularizer.multiplier(gauge, inner)
        improved = [term.with_atoms_on_supports(v, multiplier) for term in refitted]
        return [term for term, _ in improved], max(gain for _, gain in improved) * gauge

    def _target(self, initial: RefitStart) -> float:
        """Return the absolute duality gap at which a re-fit that starts at ``initial`` stops."""
        return max(self.inner_ratio * initial.gap, 0.1 * self.tol * abs(initial.objective))

    def _refitted(
        self, problem: Problem, initial: RefitStart, terms: list[Coordinates]
    ) -> tuple[list[Coordinates], Refit]:
        """Return the terms after a joint re-fit of all coordinates, and the Refit.

        Coordinates that become zero are dropped. ``initial`` is the point where the re-fit starts.
        """
        active = [term for term in terms if term.x.size]
        start = _values(terms)
        # Without coordinates there is nothing to fit, and nothing is proved.
        if not active:
            return terms, Refit(start, 0.0, np.zeros_like(problem.y), np.inf, np.inf)
        # The vector problem: the coordinates of all terms side by side, each with its norm.
        starts = np.cumsum([0, *(term.x.size for term in active)])
        positions = [np.arange(a, b) for a, b in pairwise(starts)]
        norms = [term.norm for term in active]
        norm: Norm = norms[0] if len(norms) == 1 else Blocks(norms, positions)
        blocks = [term.block() for term in active]
        block = blocks[0] if len(blocks) == 1 else SideBySide(blocks)
        regularizer = problem.regularizer.of(norm)
        restricted = replace(problem, design=block, regularizer=regularizer)
        # Bases that span the whole space cannot be extended by a pass, so that this re-fit has to
        # solve the problem.
        has_whole = any(term.is_whole for term in active)
        target = self._target(replace(initial, gap=0.0) if has_whole else initial)
        limit = None
        if any(term.sweeps(problem) for term in active):
            # Alternating ridge regressions are exact for least squares, so that gradient steps
            # only have to give new atoms a nonzero weight.
            exact = is_quadratic(problem.loss) and len(terms) == 1
            limit = SETTINGS.before_sweeps if exact else TUNING.inner_steps
        master = self.master or master_for(active, limit)
        refit = ModelNewton(master).solve(restricted, start, initial.intercept, target)
        # The new coordinates of each term.
        pieces = np.split(refit.weights, np.cumsum([term.x.size for term in terms])[:-1])
        pairs = zip(terms, pieces, strict=True)
        return [replace(term, x=x).compressed() for term, x in pairs], refit

    def _state_after_pass(
        self,
        problem: Problem,
        terms: list[Coordinates],
        linear: Array,
        intercept: float,
        previous_gap: float,
    ) -> MatrixState:
        """Return the state at this point after one pass: new atoms, and the duality certificate.

        terms : W as a sum of terms, each with its norm and the coordinates of W in its bases.
        linear : (n_samples,), the predictions without intercept.
        previous_gap : the relative gap of the previous iteration, which determines the accuracy of
        the bounds on the polar (the dual norm of the scores).
        """
        intercept = optimal_intercept(problem, linear, intercept)
        prediction = linear + intercept if intercept else linear
        v = negative_gradient(problem, prediction)
        gauge = sum(term.gauge for term in terms)
        # The bases U and V are orthonormal, so that ||S||_F = ||W||_F in the ridge term.
        ridge = _values(terms) if problem.tau else np.zeros(0)
        # Atoms whose score exceeds ``multiplier``, that of the gauge at W, improve W.
        inner = float(v @ linear) - problem.tau * float(ridge @ ridge)
        multiplier = problem.regularizer.multiplier(gauge, inner)
        # While the gap is large, rough bounds on the polar suffice.
        accuracy = min(max(SETTINGS.loose * previous_gap, 0.05 * self.tol), SETTINGS.loose)
        scores = problem.design.scores(v)
        pricing = TermPricing(problem, v, scores, multiplier, self.batch, self.columns, accuracy)

        def searched(pricing: TermPricing) -> tuple[list[Searched], Certificate]:
            """Search for new atoms of all terms; return them and the duality certificate.

            The polar of a sum of norms is the largest polar of a norm divided by its factor.
            """
            found = [term.searched(pricing) for term in terms]
            lower, upper = (
                max(each.bounds[side] / t.term.factor for each, t in zip(found, terms, strict=True))
                for side in (0, 1)
            )
            return found, certificate_of(problem, ridge, prediction, v, gauge, (lower, upper))

        found, certificate = searched(pricing)
        if certificate.leaves_open(self.tol) and not problem.deadline.passed:
            # Only the gap of the bounds on the polar is left. Another dual point may close it.
            other = self._certificate_of_other_dual(problem, terms, pricing, prediction, gauge)
            certificate = _tighter(certificate, other)
            if certificate.leaves_open(self.tol):
                # Tighter upper bounds on the polar may close it, too. New atoms can still close the
                # part ``closable``. The bounds may keep 40% of the rest of the tolerance open.
                share = certificate.closable / abs(certificate.objective)
                accuracy = max(0.4 * (self.tol - share), 0.02 * self.tol)
                found, certificate = searched(replace(pricing, accuracy=accuracy, thorough=True))
                certificate = _tighter(certificate, other)
        # Entries that are in several terms are summed.
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

    def _certificate_of_other_dual(
        self,
        problem: Problem,
        terms: list[Coordinates],
        pricing: TermPricing,
        prediction: Array,
        gauge: float,
    ) -> Certificate | None:
        """Return the certificate of another dual point, whose polar has tighter bounds.

        Only the dual point differs: the primal point has the predictions ``prediction`` and
        the norm ``gauge``. ``pricing`` has the settings of the search at the usual dual
        point. The result is None unless there is one term, its norm offers such a point,
        and the problem is least squares without an intercept and a ridge.
        """
        is_least_squares = (
            not problem.tau and not problem.fit_intercept and is_quadratic(problem.loss)
        )
        if len(terms) > 1 or not is_least_squares:
            return None
        v = negative_gradient(problem, np.zeros_like(prediction))
        start = replace(pricing, v=v, scores=problem.design.scores(v))
        closer = terms[0].closer_dual(start, 0.1 * self.tol)
        if closer is None:
            return None
        v, bound = closer
        no_ridge = np.zeros(0)  # weights of the ridge term
        return certificate_of(problem, no_ridge, prediction, v, gauge, (bound, bound))


def _tighter(certificate: Certificate, other: Certificate | None) -> Certificate:
    """Return ``certificate``, with the gap of ``other`` if that is smaller.

    Both certificates are of the same point. ``other`` may be None.
    """
    if other is None or other.gap >= certificate.gap:
        return certificate
    return replace(certificate, gap=other.gap, rounding=other.rounding, shortfall=other.shortfall)


def _values(terms: list[Coordinates]) -> Array:
    """Return the concatenated coordinates x of all terms, (m,)."""
    return np.concatenate([term.x for term in terms])


def terms_at_zero(problem: Problem) -> list[Coordinates]:
    """Return the terms of the norm of the problem, each at W_i = 0.

    Raise TypeError for a norm of vectors, and ValueError for a ridge that this solver cannot
    separate by terms.
    """
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
    """Return the coordinates of a term at W_i = 0, for the design of the problem.

    They are ``Entrywise`` for norms of vectors; a norm of matrices has its own kind.
    """
    if not term.norm.matrix_shape:
        return Entrywise(term, design, np.zeros(0), np.zeros(0, dtype=np.int64))
    norm: Any = term.norm
    coordinates: Coordinates = norm.at_zero(term, design)
    return coordinates


def master_for(terms: list[Coordinates], most: int | None = None) -> Master:
    """Return the default method for the re-fit of these terms; see ``MatrixGeneration``.

    Sparse atoms together with other terms are nearly collinear, so that first-order methods are
    slow and a semismooth Newton method is used. First-order methods are also slow for low-rank
    terms if columns have different scales. ``most`` limits the number of their iterations, which
    suffices if alternating minimization follows; None is no limit.
    """
    if all(term.hard for term in terms):
        return SequentialQP()
    if any(term.hard for term in terms):
        return SemismoothNewton()
    return AcceleratedGradient() if most is None else AcceleratedGradient(max_iter=most)
