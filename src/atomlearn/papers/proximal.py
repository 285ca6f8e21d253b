"""The proximal map of tau/2 ||x||^2 + R(x), ours or one of the papers' named k-support proxes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

from atomlearn import _kernels
from atomlearn.core.interfaces import Array
from atomlearn.core.norms.ksupport import KSupport
from atomlearn.core.problem.problem import Problem

#: (v, step) -> argmin_x 1/2 ||x - v||^2 + step * (tau/2 ||x||^2 + R(x))
Proximal = Callable[[Array, float], Array]

#: BN [L], BS (Lai 2014), AS (Eriksson 2015), and the search of [A] Algorithm 1.
NamedProx = Literal["box_norm", "binary_search", "two_step", "exhaustive"]


def proximal_of(problem: Problem, owner: str, name: NamedProx | None, tau: float) -> Proximal:
    """Return the proximal map of the problem's penalty with this tau, checked before any work."""
    if name is not None and name not in get_args(NamedProx):
        raise ValueError(
            f"{owner}: prox must be None (the norm's own) or one of {get_args(NamedProx)}, "
            f"got {name!r}"
        )
    regularizer = problem.regularizer
    norm = regularizer.norm
    if not norm.proximal:
        raise TypeError(
            f"{owner} needs a norm with a prox, {type(norm).__name__} has none; "
            "use a solver over its atoms"
        )
    if not problem.design.listable:
        raise TypeError(
            f"{owner} works on all columns and needs a design that lists them, "
            f"{type(problem.design).__name__} does not; use ColumnGeneration"
        )
    if name is None:
        return lambda v, step: regularizer.prox_point(v, step, tau).point
    if not isinstance(norm, KSupport) or norm.groups is not None or regularizer.form != "squared":
        raise ValueError(
            f"{owner}: prox={name!r} is the squared k-support norm's; got {norm!r} in form "
            f"{regularizer.form!r}. Use norms.KSupport(k) without groups and form='squared', "
            "or prox=None"
        )
    kernel: Callable[..., Any] = {
        "box_norm": _kernels.ksupport_prox_box_norm,
        "binary_search": _kernels.ksupport_prox_binary_search,
        "two_step": _kernels.ksupport_prox_two_step,
        "exhaustive": _kernels.ksupport_prox_exhaustive,
    }[name]
    k, level = min(norm.k, problem.design.shape[1]), regularizer.amount

    def proximal(v: Array, step: float) -> Array:
        shrink = 1.0 / (1.0 + step * tau)
        point: Array = kernel(v * shrink, k, step * shrink * level)[0]
        return point

    return proximal
