"""gauge(w) from the oracle only: the minimum sum of weights of atoms whose combination is w.

min sum c subject to U c = w, c >= 0, is solved by the method of multipliers over the atoms found so
far, the columns of U. The oracle returns the best atom a of the norm, with the largest <a, z> for a
given vector z. This maximum is the polar gauge°(z). ``warm_atoms`` writes a warm start as a sum of
atoms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from atomlearn._support import l2_norm, power_of_two, to_float64
from atomlearn.core.data.sparse import identity
from atomlearn.core.interfaces import Array, Atom, Norm, WarmStart
from atomlearn.core.interfaces.scores import ArrayScores
from atomlearn.core.losses.registry import as_loss
from atomlearn.core.masters.sequential_qp import SequentialQP
from atomlearn.core.masters.tuning import TUNING
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.solvers.atoms import AtomSet, refit_on_rays


@dataclass(frozen=True, slots=True)
class Decomposition:
    """A vector w as a sum of atoms, w = U c up to rounding, with bounds on its gauge.

    Attributes
    ----------
    atoms : tuple of Atom
        The columns of U.
    weights : array (n_atoms,)
        c >= 0; its sum is an upper bound on gauge(w).
    lower : float
        A lower bound on gauge(w).
    error : float
        The distance ||U c - w||_2 that is left.
    """

    atoms: tuple[Atom, ...]
    weights: Array
    lower: float
    error: float


def gauge_by_generation(
    norm: Norm, w: Array, tol: float = 1e-8, max_iter: int = 2000
) -> tuple[float, float]:
    """Return gauge(w) = min { sum c : U c = w, c >= 0 } over all atoms U, and its duality gap.

    The method of multipliers is used. With a multiplier z and a step size eps > 0, the re-fit

        min over c >= 0 of  1/2 ||w + eps z - U c||^2 + eps sum c

    is a small problem over the atoms found so far. The oracle is called at z + (w - U c)/eps. It
    either gives a new atom, or proves that the re-fit is optimal over all atoms. In the latter
    case, this vector is the next multiplier, and eps is halved. Every z gives the lower bound
    <w, z>/gauge°(z). Once U c = w up to rounding, sum c is an upper bound.

    Parameters
    ----------
    norm : Norm
        Only its best atoms are used (``UserNorm``, or any other).
    w : array (p,)
    tol : float
        Relative gap at which to end.
    max_iter : int
        Maximum number of calls of the oracle.

    Returns
    -------
    value, gap : float
        value - gap <= gauge(w) <= value; U c and w may differ by 1e-8 ||w||_2. Both are infinite
        if no sum of atoms came that close to w: w is outside the cone of the atoms, or
        ``max_iter`` is too small.

    Notes
    -----
    O(p) memory for each atom in use, and one call of the oracle per iteration. If the oracle is a
    heuristic search, the lower bound uses an upper bound on the polar. For sparse rank-one atoms
    this upper bound is exact if branch and bound ends. It usually ends if the matrix with the
    entries w has at most 64 rows and columns in total.
    """
    w = to_float64(w)
    if not np.isfinite(w).all():
        position = int(np.flatnonzero(~np.isfinite(w))[0])
        raise ValueError(f"gauge_by_generation: w[{position}] is {w[position]}; w must be finite")
    norm.on(w.size)  # raises an error if a parameter of the norm does not fit this length
    if not w.any():
        return 0.0, 0.0
    decomposition = decompose(norm, w, tol, max_iter)
    # A sum of atoms this close to w equals w up to rounding.
    if decomposition.error > TUNING.rounding_share * l2_norm(w):
        return math.inf, math.inf
    value = float(decomposition.weights.sum())
    return value, max(value - decomposition.lower, 0.0)


def decompose(norm: Norm, w: Array, gap: float, max_iter: int) -> Decomposition:
    """Return atoms and weights whose sum is ``w``, a nonzero vector, by the method of multipliers.

    It stops when the relative duality gap of the sum of weights is ``gap``, or after ``max_iter``
    calls of the oracle of ``norm``. Each round calls the oracle at z + (w - U c) / eps, for the
    atoms U and weights c so far, the multiplier z and the step size eps. If there is no new useful
    atom, this vector is the next multiplier. Then c is fitted again. eps starts at a tenth of
    gauge°(w). It is halved with each new multiplier, down to a millionth of gauge°(w).
    """
    # Scale w to about 1, exactly, so that no square overflows.
    scale = power_of_two(w)
    if scale != 1.0:
        scaled = decompose(norm, w / scale, gap, max_iter)
        lower = scale * scaled.lower
        error = scale * scaled.error
        return Decomposition(scaled.atoms, scale * scaled.weights, lower, error)
    design = identity(w.size)
    length = l2_norm(w)
    # A polar of 0 means that no atom has a positive product with w: no sum of atoms is near w.
    polar = norm.polar(ArrayScores(w / length))
    if polar <= 0.0:
        return Decomposition((), np.zeros(0), 0.0, length)
    eps = 0.1 * length * polar
    # ``atoms`` are U, ``listed`` the same atoms as a list, ``shares`` the weights c,
    # ``combination`` the vector U c, ``multiplier`` is z, and ``lower`` a lower bound on gauge(w).
    atoms = AtomSet.empty(w.size, cached=True)
    listed = []
    shares = np.zeros(0)
    combination = np.zeros(w.size)
    multiplier = np.zeros(w.size)
    lower = 0.0
    for _ in range(max_iter):
        # The best atom at the next multiplier.
        next_multiplier = multiplier + (w - combination) / eps
        scores = ArrayScores(next_multiplier)
        atom = norm.best_atom(scores)
        is_useful = _is_useful(atom, next_multiplier, atoms, gap)
        lower_polar, upper_polar = norm.polar_bounds(scores)
        if lower_polar < upper_polar:
            # The oracle is a heuristic search. An atom that it found is used if it helps. Otherwise
            # compute a better upper bound, which may also find a better atom.
            upper_polar = math.inf if is_useful else norm.polar_bounds(scores, thorough=True)[1]
            atom = norm.best_atom(scores)
            is_useful = _is_useful(atom, next_multiplier, atoms, gap)
        # <w, z> / gauge°(z) is a lower bound on gauge(w) for every z.
        if upper_polar > 0.0:
            lower = max(lower, float(w @ next_multiplier) / upper_polar)
        is_closed = float(shares.sum()) - lower <= gap * max(lower, 0.0)
        if is_closed and l2_norm(w - combination) <= 0.1 * TUNING.rounding_share * length:
            break
        if is_useful:
            atoms = atoms.append(design, atom)
            shares = np.append(shares, 0.0)
            listed.append(atom)
        else:
            multiplier = next_multiplier
            eps = max(0.5 * eps, 1e-6 * length * polar)
        # Re-fit c: min 1/2 ||w + eps z - U c||^2 + eps sum c; drop atoms of weight 0; compute U c.
        R = Regularizer(norm, "penalized", eps)
        problem = Problem(as_loss("squared"), design, w + eps * multiplier, np.ones(w.size), R)
        fit = refit_on_rays(problem, SequentialQP(), atoms, shares, intercept=0.0, gap_target=0.0)
        positive = np.flatnonzero(fit.weights > 0)
        listed = [listed[number] for number in positive]
        atoms = atoms.take(positive)
        shares = fit.weights[positive]
        combination = np.zeros(w.size)
        combination[atoms.columns] = atoms.combine(shares)
    return Decomposition(tuple(listed), shares, lower, l2_norm(w - combination))


def _is_useful(atom: Atom, z: Array, atoms: AtomSet, gap: float) -> bool:
    """Return whether ``atom`` a is not in ``atoms`` yet and <a, z> > 1 by a tenth of ``gap``.

    With z = multiplier + (w - U c) / eps, <a, z> > 1 means that a would get a positive weight.
    """
    product = float(atom.values @ z[atom.columns])
    return product > 1.0 + 0.1 * gap and atoms.find(atom) < 0


def warm_atoms(
    problem: Problem, warm: WarmStart | None, cached: bool = False
) -> tuple[AtomSet, Array, float]:
    """Return the point of a warm start as atoms, their weights (n_atoms,), and the intercept.

    If the warm start has atoms, they are used. Otherwise the only atom is w / gauge(w) if the norm
    can compute its gauge. If it cannot (a ``UserNorm`` without a value), the atoms come from
    ``decompose``. For the constrained form, the weights are scaled down to the radius of
    ``problem`` if necessary. ``warm`` None: no atoms. ``cached`` : whether the set of atoms keeps
    its Gram matrix.
    """
    n_samples, n_features = problem.design.shape
    # A ridge term tau/2 ||U c||^2 needs the matrix U'U of the atoms U.
    atoms = AtomSet.empty(n_samples, gram=problem.tau > 0, cached=cached)
    weights = np.zeros(0)
    if warm is None:
        return atoms, weights, 0.0
    if warm.weights.any():
        for atom, weight in _weighted_atoms(problem.regularizer.norm, warm, n_features):
            atoms = atoms.append(problem.design, atom)
            weights = np.append(weights, weight)
    return atoms, problem.regularizer.inside(weights, float(weights.sum())), warm.intercept


def _weighted_atoms(norm: Norm, warm: WarmStart, n_features: int) -> list[tuple[Atom, float]]:
    """Return pairs (atom, weight) whose sum is the w of a warm start; [] if no such sum exists.

    ``norm`` is the norm of the problem, and ``n_features`` is the length of w.
    """
    if warm.atoms:
        return list(warm.atoms)
    support = np.flatnonzero(warm.weights)
    columns = warm.columns[support]
    weights = warm.weights[support]
    dense = np.zeros(n_features)
    dense[columns] = weights
    # The gauge over the nonzero columns only is cheaper than over all.
    restricted = norm.restrict(columns, n_features)
    try:
        gauge = norm.value(dense) if restricted is None else restricted.value(weights)
    except TypeError:  # a norm that only provides best atoms
        decomposition = decompose(norm, dense, gap=1e-9, max_iter=500)
        return list(zip(decomposition.atoms, decomposition.weights.tolist(), strict=True))
    if not math.isfinite(gauge):
        # w is outside of the cone of the atoms: start at zero.
        return []
    return [(Atom(columns, weights / gauge), gauge)]
