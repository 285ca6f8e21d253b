"""Union of atomic sets (infimal convolution of norms): w is a sum with one term for each norm."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import (
    Atom,
    Blocks,
    Expansion,
    Groups,
    GroupWeights,
    Lift,
    Norm,
    Partition,
    Scores,
    Term,
    checked_norm,
    refuse_free,
)
from atomlearn.lifting.latent import Image, LiftedNorm


class Union(LiftedNorm):
    """Infimal convolution: gauge(w) = inf { sum_i norm_i(w_i) : sum_i w_i = w }.

    The atomic set is the union of the atomic sets of all norms, such as single features and whole
    groups. The polar at z is max_i norm_i°(z), norm_i° the polar of norm_i. ``Scaled`` sets the
    weights of the norms: Union([Scaled(L1(), 2.0), Groups(...)]). [V] section 2.1.

    Parameters
    ----------
    norms : list of Norm
        Norms with a proximal operator, or lifted norms such as ``LatentGroups``.

    References
    ----------
    [V] section 2.1, unions of atomic sets.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norm = norms.Union([norms.L1(), norms.Groups([[0, 1, 2]])])
    >>> round(norm.value(np.array([3.0, 0.0, 4.0])), 6)
    5.0
    """

    def __init__(self, norms: Sequence[Norm]) -> None:
        """Store the parameters, which the class documents."""
        self.norms = norms

    def lift(self, n_features: int) -> Lift:
        """Return L = [L_1, L_2, ...] of the lifts of the norms, and the sum of their inner norms.

        Each L_i maps lifted coordinates to ``n_features`` coefficients. The inner norm is one group
        norm if all of them are group norms, else ``Blocks`` of one norm each.
        """
        norms = list(self.norms)
        if not norms:
            raise ValueError("Union needs at least one norm, got none")
        for norm in norms:
            checked_norm("Union", norm).on(n_features)
            if norm.lift(n_features) is None and not norm.proximal:
                raise TypeError(
                    f"Union: {norm!r} has no proximal map, so that the parts cannot be re-fitted; "
                    "use a UserNorm whose oracle returns the best of both atoms"
                )
        # Stack the lifted coordinates of all norms.
        lifts = [_lift_of(norm, n_features) for norm in norms]
        sizes = [lift.expansion.shape[1] for lift in lifts]
        expansion = Expansion.stacked([lift.expansion for lift in lifts])
        groups = [lift.norm.as_groups(size) for lift, size in zip(lifts, sizes, strict=True)]
        all_groups = [group for group in groups if group is not None]
        if len(all_groups) == len(groups):
            return _joint_lift(expansion, lifts, all_groups)
        columns = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
        inner = Blocks([lift.norm for lift in lifts], columns)
        return Lift(expansion, inner, np.repeat(np.arange(len(sizes)), sizes))

    def _has_rays(self) -> bool:
        """Return whether the union has a matrix norm without a tractable proximal operator.

        Such a norm is known by its best atoms only, and problems are solved over multiples (rays)
        of them.
        """
        return any(
            term.norm.matrix_shape is not None and not term.norm.proximal for term in self.terms()
        )

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """Return the union with each norm bound to ``n_features`` or ``shape``, after checks.

        A union of norms of vectors is returned with its lift computed.
        """
        norms = [checked_norm("Union", norm).on(n_features, shape) for norm in self.norms]
        for norm in norms:
            refuse_free("Union", norm, n_features, "; name it in unpenalized= instead")
        bound_union = Union(norms)
        if bound_union.matrix_shape is None:
            return Image(self, bound_union.lift(n_features))
        # The lift of a union with matrix norms is computed only to check its parameters.
        if not bound_union._has_rays():
            bound_union.lift(n_features)
        return bound_union

    @property
    def matrix_shape(self) -> tuple[int, ...] | None:
        """The shape of W if a norm knows it, () if not; None if no norm is a matrix norm."""
        shapes = [shape for norm in self.norms if (shape := norm.matrix_shape) is not None]
        return max(shapes, key=bool, default=None)

    def terms(self) -> list[Term]:
        """Return the terms of all norms in one list."""
        return [term for norm in self.norms for term in norm.terms()]

    def solver(self, tol: float) -> object | None:
        """Return the default solver of the first norm that names one, for the relative gap ``tol``.

        None if no norm names a solver.
        """
        solvers = (norm.solver(tol) for norm in self.norms)
        return next((solver for solver in solvers if solver is not None), None)

    def polar_bounds(self, scores: Scores, thorough: bool = False) -> tuple[float, float]:
        """Return a lower and an upper bound on the polar max_i norm_i°(z); z = ``scores``.

        ``thorough``: whether norms with NP-hard polars improve their bounds by branch and bound.
        """
        bounds = [norm.polar_bounds(scores, thorough) for norm in self.norms]
        return max(low for low, _ in bounds), max(high for _, high in bounds)

    def polar(self, scores: Scores) -> float:
        """Return max_i norm_i°(z), z = ``scores``, or the best upper bound if it is NP-hard."""
        return self.polar_bounds(scores, thorough=True)[1]

    def best_atom(self, scores: Scores) -> Atom:
        """Return the atom a of any of the norms with the largest <a, z>; z = ``scores``."""
        atoms = [norm.best_atom(scores) for norm in self.norms]
        values = [float(atom.values @ scores.at(atom.columns)) for atom in atoms]
        return atoms[int(np.argmax(values))]

    def value(self, w: NDArray[Any]) -> float:
        """Return gauge(w) for a vector ``w`` or a 2-d array, to a relative accuracy of 1e-8."""
        if np.ndim(w) == 2:
            return self.on(np.size(w), np.shape(w)).value(np.ravel(w))
        if self._has_rays():
            raise TypeError(
                f"the value of {self!r} is NP-hard; solvers.gauge_by_generation(norm, w) gives "
                "bounds on it"
            )
        return super().value(np.asarray(w))

    def with_names(self, names: Sequence[str]) -> Union:
        """Return the union with column ``names`` in its norms replaced by column indices."""
        return Union([norm.with_names(names) for norm in self.norms])


def _lift_of(norm: Norm, n_features: int) -> Lift:
    """Return the lift of ``norm`` for ``n_features``; without one, the identity as a lift.

    The identity has one copy of each feature, all of them in a single group, numbered 0.
    """
    lift = norm.lift(n_features)
    if lift is not None:
        return lift
    identity = Expansion.repeating(np.arange(n_features), n_features)
    return Lift(identity, norm, np.zeros(n_features, dtype=np.int64))


def _joint_lift(expansion: Expansion, lifts: list[Lift], groups: list[GroupWeights]) -> Lift:
    """Return the lift with one group norm over the concatenated coordinates of all norms.

    ``expansion`` is the stacked map of all ``lifts``; ``groups`` are the labels and weights of each
    norm's groups.
    """
    # Concatenate labels, weights and names; ``count`` is the number of groups so far.
    labels = []
    weights = []
    names = []
    count = 0
    for lift, norm_groups in zip(lifts, groups, strict=True):
        labels.append(norm_groups.labels + count)
        weights.append(norm_groups.weights)
        norm_names = list(lift.names or ())
        names += norm_names + [""] * (norm_groups.weights.size - len(norm_names))
        count += norm_groups.weights.size
    # Groups of later norms are numbered after those of earlier norms; "" is a group without name.
    partition = Partition(np.concatenate(labels), count, count)
    norm = Groups(partition, np.concatenate(weights))
    return Lift(expansion, norm, partition.labels, tuple(names) if any(names) else None)
