"""The certificate of a point by a dual point: Fenchel's inequality, one formula for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atomlearn.core.interfaces import Array
from atomlearn.core.problem.result import Certificate
from atomlearn.core.problem.rounding import growth, of_loss

if TYPE_CHECKING:
    from atomlearn.core.interfaces.excess import Excess
    from atomlearn.core.problem.problem import Problem


def certified(
    problem: Problem,
    weights: Array,
    prediction: Array,
    v: Array,
    gauge: float,
    polar: tuple[float, float],
    excess: Excess | None,
) -> Certificate:
    """Return the certificate of ``Problem.certificate``, from which no gap differs by its formula.

    The gap is that at the dual point -v, or at it scaled into feasibility, whichever is less.
    """
    square = float(weights @ problem.ridge_slope(weights)) if problem.tau else 0.0
    smooth = problem.loss_value(prediction)
    objective = smooth + 0.5 * square + problem.regularizer.value(gauge)
    conjugate = _conjugate(problem, smooth, prediction, v, 1.0)
    level = problem.regularizer.amount
    scales = not problem.tau and problem.regularizer.form == "penalized"

    def gap(polar: float) -> float:
        # F >= level * gauge at the optimum, because losses are bounded below by zero.
        found = objective + 0.5 * square + conjugate
        found += problem.regularizer.conjugate(polar, objective / level, excess)
        if scales and polar > level:
            # The classical alternative: the dual point scaled into gauge°(z) <= level.
            factor = level / polar
            feasible = objective + _conjugate(problem, smooth, prediction, v, factor)
            if excess is not None:
                feasible += excess.scaled(factor).at(level)
            found = min(found, feasible)
        # F itself bounds F - F*, as losses and norms are bounded below by zero.
        return min(found, objective) if found == found else objective

    low, high = polar
    found = gap(high)
    # Where the best atom is only searched for, the gap it would give is told apart.
    searched = max(gap(low), 0.0) if low < high else None
    terms = weights, gauge, polar, excess
    return Certificate(
        objective, max(found, 0.0), high, searched, shortfall=max(-found, 0.0), terms=terms
    )


def _conjugate(problem: Problem, value: float, prediction: Array, v: Array, factor: float) -> float:
    """Return f*(-factor v), or raise where f(z) + f*(u) < <u, z>, which no conjugate allows."""
    found = problem.loss_conjugate(v, -factor, prediction)
    inner = -factor * float(v @ prediction)
    short = inner - value - found
    if short > growth(v.size) * (abs(value) + abs(inner)):
        lost = of_loss(problem, prediction, v, abs(value) + abs(found))
        if short > 4.0 * lost:
            name = problem.loss.name
            raise ValueError(
                f"the loss {name!r} proves nothing: its value f(z) = {value:.6g} and conjugate "
                f"f*(u) = {found:.6g} add up to less than <u, z> = {inner:.6g}, for u = "
                f"{factor:.6g} times the gradient; check conjugate(y, u, weight), which must be "
                "the supremum of <u, z> - value(y, z, weight) over z"
            )
    return found
