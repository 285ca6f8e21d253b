"""Norm: the gauge of a convex hull of atoms, known by its value, its polar and its best columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from atomlearn._support import Array, Columns, OwnMethods
from atomlearn.core.interfaces.certificate import Excess
from atomlearn.core.interfaces.differences import best_by_differences
from atomlearn.core.interfaces.lift import Expansion, Part
from atomlearn.core.interfaces.proximal import ProxJacobian as ProxJacobian
from atomlearn.core.interfaces.proximal import ProxPoint as ProxPoint
from atomlearn.core.interfaces.scores import Scores, taking_arrays
from atomlearn.core.interfaces.warm_start import Atom, WarmStart

#: How the gauge enters the objective: level * gauge, (level / 2) * gauge^2, gauge <= radius.
Form = Literal["penalized", "squared", "constrained"]


@dataclass(frozen=True, slots=True)
class Term:
    """One scaled norm, factor * norm, of an infimal convolution (a union of sets of atoms).

    A union of terms has gauge(w) = inf { sum_i factor_i norm_i(w_i) : sum_i w_i = w }.

    Attributes
    ----------
    norm : Norm
    factor : float
    """

    norm: Norm
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class GroupWeights:
    """The norm gauge(w) = sum_g weight_g ||w_g||_2 over disjoint groups of columns.

    Attributes
    ----------
    labels : (n_features,) int64
        The group of each column.
    weights : (n_groups,) float64
        The weight of each group, > 0.
    """

    labels: Columns
    weights: Array


class Ratings:
    """Ratings of columns by their scores: how close each is to entering the active set.

    For the l1 norm the rating of column j is |z_j|. At an optimum all columns in use have about the
    same rating, the ``reference``, and other columns have smaller ratings.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> from atomlearn.interfaces import ArrayScores
    >>> z = ArrayScores(np.array([3.0, -1.0, 2.5]))
    >>> norm = norms.KSupport(k=2)
    >>> norm.reference(z), norm.rated(z, 0.8 * norm.reference(z))
    (2.5, array([0, 2]))
    """

    @property
    def scores_for_ratings(self) -> Literal["all", "large"] | None:
        """Which scores the polar and the ratings need; None: the norm does not rate columns.

        A norm rates columns if it knows ``reference`` and ``rated``; by default, if its class
        defines ``reference``. "all": the scores of all columns are needed. "large": only scores of
        at least 0.8 times the reference are needed; smaller ones may be left out. If a norm rates
        columns, several penalty strengths of a path may share a pass over the data. Otherwise they
        are solved one at a time.
        """
        return None if type(self).reference is Ratings.reference else "all"

    def reference(self, scores: Scores) -> float:
        """Return the rating, in the units of ``rated``, of the columns in use at an optimum.

        ``scores`` are z = X'v. The reference computed from some of the columns is at most the
        reference computed from all columns.
        """
        raise TypeError(f"{type(self).__name__} rates no columns; see scores_for_ratings")

    def rated(self, scores: Scores, bound: float) -> Columns:
        r"""Return the columns rated ``bound`` > 0 or more, best first; by default \|z_j\| rates.

        ``scores`` are z = X'v.
        """
        return scores.above(bound)[0]


class Norm(Ratings, OwnMethods, ABC):
    """An atomic norm: gauge(w) = inf { t >= 0 : w in t * conv(atoms) }, for w in R^n_features.

    A norm must have ``value``, ``polar`` and ``best_columns``. The default of every other method
    means "not known"; a norm that knows more overrides the method.

    Parameters are plain attributes under their constructor names; a norm never stores anything
    about one data set. ``class MyNorm(Parameters, Norm)`` has ``get_params``, ``set_params``,
    ``repr`` and ``==``, by which estimators clone it and grid searches reach ``norm__k``.

    Methods that take scores (``polar``, ``best_atom``, ...) also take an array.
    """

    #: The form in which the norm is used by default.
    usual_form: ClassVar[Form] = "penalized"
    #: Whether gauge(w) = gauge(|w|) and increases with each |w_j|, as ``Nonnegative`` requires.
    absolute: bool = False
    #: Whether the norm has a proximal map: by default, if a class has ``prox_point``.
    proximal: bool = False

    def __init_subclass__(cls, **settings: Any) -> None:
        """Let the methods of a new class take arrays for scores, and note if it has a proximal map.

        ``settings`` are those of the class statement.
        """
        super().__init_subclass__(**settings)
        defined = cls.__dict__.keys()
        for name in {"polar", "polar_bounds", "best_atom", "best_columns"} & defined:
            setattr(cls, name, taking_arrays(cls.__dict__[name]))
        # A class that defines its proximal map has one, unless it says otherwise.
        if "prox_point" in defined and "proximal" not in defined:
            cls.proximal = True

    @abstractmethod
    def value(self, w: Array) -> float:
        """Return gauge(w) for ``w`` (n_features,), infinite if w is no combination of atoms."""

    @abstractmethod
    def polar(self, scores: Scores) -> float:
        """Return gauge°(z) = max over atoms a of <a, z>, computed in float64; z = ``scores``.

        This is the dual norm.
        """

    @abstractmethod
    def best_columns(self, scores: Scores, count: int) -> Columns:
        """Return about ``count`` columns: those of the atoms a with the largest <a, z>, best first.

        z = ``scores``. Only whole atoms are returned, and at least the best one (so k columns for
        the k-support norm). If all columns of the best atom are active, then the polar over the
        active columns equals the polar over all columns.
        """

    # Preparation for data: names of columns, the shape of a matrix, the number of features.

    def with_names(self, names: Sequence[str]) -> Norm:
        """Return the same norm with column ``names`` in its parameters replaced by indices."""
        return self

    def on(self, n_features: int, shape: tuple[int, int] | None = None) -> Norm:
        """Return the same norm for ``n_features``, with its parameters checked and read.

        Problems use the returned norm, so that lists of groups are read only once. ``shape`` is the
        shape of the matrix of coefficients, if the columns are the entries of a matrix. It must
        agree with a shape that was given to the norm.

        Raises
        ------
        ValueError, TypeError
            If a parameter is unusable; the message names the remedy.
        """
        return self

    def candidates(self, n_samples: int, n_features: int) -> list[Norm]:
        """Return the norms from which cross-validation chooses; by default only this norm.

        The choice may depend on the shape of X, (n_samples, n_features).
        """
        return [self]

    @property
    def bounds_coefficients(self) -> bool:
        """Whether the norm constrains coefficients in the units of the columns."""
        return False

    # The oracle.

    def polar_bounds(self, scores: Scores, thorough: bool = False) -> tuple[float, float]:
        """Return a lower and an upper bound on the polar gauge°(z) at z = ``scores``.

        They are equal if the polar is exact. If the best atom is found by a heuristic search, the
        lower bound is <a, z> for an atom a that was found. ``thorough`` spends more time on the
        upper bound, for a last certificate.
        """
        polar = self.polar(scores)
        return polar, polar

    def polar_of_sizes(self, sizes: Scores) -> float:
        """Return the maximum of the polar over all scores z with |z_j| <= s_j, for s = ``sizes``.

        By default the polar of the sizes, which is right if the polar grows with each ``|z_j|``.
        """
        return self.polar(sizes)

    @taking_arrays
    def best_atom(self, scores: Scores) -> Atom:
        """Return a = argmax <a, z> over the atoms, so <a, z> = gauge°(z) and gauge(a) = 1.

        z = ``scores``. If no atom has <a, z> > 0 (z = 0, or a gauge without symmetry) the atom is
        empty. By default a part of z scaled to gauge 1 is tried, which is right for the l1, l2,
        group and k-support norms, and then the slope of the polar.

        Raises
        ------
        TypeError
            If neither attains the polar: value and polar are then not those of one norm.
        """
        # Try the scores of the best columns themselves, scaled to gauge 1.
        columns = self.best_columns(scores, 1)
        restricted = self.restrict(columns, scores.n_columns)
        if restricted is not None:
            values = scores.at(columns)
            gauge = restricted.value(values)
            if gauge == 0.0:
                return Atom(columns[:0], values[:0])
            atom = values / gauge
            # This atom attains the polar, up to rounding.
            if float(atom @ values) >= self.polar(scores) * (1 - 1e-9):
                return Atom(columns, atom)
        return Atom(*best_by_differences(self, columns, scores))

    # Fewer or more coordinates.

    def restrict(self, columns: Columns, n_features: int) -> Norm | None:
        """Return this norm restricted to vectors that are zero outside ``columns``.

        The result is a norm on R^len(columns): ``restrict(c, n).value(w[c]) == value(w)`` for every
        w of n = ``n_features`` entries that is zero outside c. None if the norm has no restriction.
        """
        return None

    def lift(self, n_features: int) -> Lift | None:
        """Return the latent formulation of this norm: a simpler norm over more coordinates.

        See ``Lift``; its map L has ``n_features`` rows. None if the norm needs no lift, as the l1
        norm.
        """
        return None

    def as_groups(self, n_features: int, nonnegative: bool = False) -> GroupWeights | None:
        """Return the groups and weights if this is a group norm; None for other norms.

        The l1 norm has ``n_features`` groups of one column, the l2 norm one group. ``nonnegative``:
        return groups also for a norm that equals a group norm only for w >= 0 and is infinite
        elsewhere.
        """
        return None

    # Proximal maps, which masters and FISTA need.

    def prox_point(self, w: Array, amount: float, form: Form) -> ProxPoint:
        """Return the proximal map at ``w``, with the gauge of the result and its Jacobian.

        The result x minimizes 1/2 ||x - w||^2 + amount * gauge(x) if ``form`` is "penalized", or
        1/2 ||x - w||^2 + (amount / 2) * gauge(x)^2 if it is "squared". If ``form`` is
        "constrained", x is the projection of w onto the ball gauge(x) <= amount. The Jacobian is
        computed only when it is called.
        """
        raise TypeError(
            f"{type(self).__name__} has no proximal map; use a solver over its atoms, such as "
            "solvers.AtomGeneration()"
        )

    # What is known of the coordinates.

    def thresholds(self, w: Array, columns: Columns, n_features: int) -> Array | float:
        """Return t_j, the largest |s_j| of a subgradient s of the gauge at w, for zeros w_j = 0.

        A zero coordinate with a score |z_j| <= lambda t_j remains 0 at the optimum, for lambda the
        derivative of the penalty in the gauge. ``w`` has the nonzero coordinates (zeros may be left
        out). j are the ``columns``, zeros among ``n_features`` coordinates. A single number is
        returned if all t_j are equal. The result 0 is always valid. It is returned if w is 0, if
        every coordinate may become nonzero, or if the norm does not know t.
        """
        return 0.0

    def excess(self, scores: Scores) -> Excess | None:
        """Return the term that constraints add to the conjugate of the penalty at z = ``scores``.

        None if the norm has no constraints on coefficients. See ``Excess``.
        """
        return None

    def inside(self, columns: Columns, weights: Array, n_features: int) -> tuple[Columns, Array]:
        """Return a point with a finite gauge near the given one, at which a solver may begin.

        The point has ``weights`` on ``columns`` of ``n_features``, and so has the result.
        """
        return columns, weights

    def without(self, columns: Columns, n_features: int) -> tuple[Columns, Norm]:
        """Return all unpenalized columns, and the norm to use for the other columns.

        The unpenalized columns are ``columns``, and those of all ``n_features`` columns that the
        norm itself does not penalize. The loss is minimized over their coefficients whenever it is
        evaluated, so that w is 0 for these columns. By default the norm does not change: the scores
        of these columns are 0, so that they are never selected.
        """
        return columns, self

    # Norms of matrices.

    @property
    def matrix_shape(self) -> tuple[int, ...] | None:
        """Shape of the matrix or tensor whose entries are the columns; () if not known yet.

        None if neither the norm nor a part of it is a norm of matrices or tensors.
        """
        return None

    def terms(self) -> list[Term]:
        """Return the terms whose union the norm is: itself, unless it is a union."""
        return [Term(self)]

    # Which solver.

    def solver(self, tol: float) -> object | None:
        """Return the ``Solver`` for this norm to the relative gap ``tol``; None: the usual one.

        The usual one is column generation, or, if the norm has neither ``restrict`` nor ``lift``,
        the generation of atoms. Norms of matrices name their own.
        """
        return None


def is_restrictable(norm: Norm, n_features: int) -> bool:
    """Return whether ``norm``, of ``n_features``, can be restricted to some of the columns."""
    return norm.restrict(np.zeros(0, dtype=np.int64), n_features) is not None


@dataclass(frozen=True, slots=True)
class Lift:
    """Latent formulation of a norm: gauge(w) = inf { norm(u) : L u = w }.

    Attributes
    ----------
    expansion : Expansion
        The linear map L from m lifted coordinates u to n_features coefficients w.
    norm : Norm
        A norm on R^m.
    labels : (m,) int64
        The index of the set (or of the term of a union) to which each coordinate of u belongs.
    names : tuple[str, ...], optional
        The user's names of the sets, "" for sets without a name.
    """

    expansion: Expansion
    norm: Norm
    labels: Columns
    names: tuple[str, ...] | None = None

    def start(self, warm: WarmStart) -> WarmStart:
        """Return the point ``warm`` in lifted coordinates, as the start of a solve.

        The lifted coordinates of an earlier fit are used if they give the same point; else each
        feature goes to its first set.
        """
        point = warm.lifted if self._fits(warm) else None
        if point is None:
            point = self.expansion.place(warm.columns, warm.weights)
        # Some lifts cannot place features; then the start is u = 0.
        if point is None:
            point = warm.columns[:0], warm.weights[:0]
        return WarmStart(*point, warm.intercept)

    def _fits(self, warm: WarmStart) -> bool:
        """Return whether the lifted coordinates u in ``warm`` give its coefficients w = L u.

        A difference of 1e-6 of the largest coefficient is allowed.
        """
        if warm.lifted is None:
            return False
        lifted, weights = warm.lifted
        # The coordinates may be those of another lift, which has more of them.
        if lifted.size and int(lifted.max()) >= self.expansion.shape[1]:
            return False
        features, sums = self.lowered(lifted, weights)
        if not np.array_equal(features, warm.columns):
            return False
        deviation = np.abs(sums - warm.weights).max(initial=0.0)
        return bool(deviation <= 1e-6 * np.abs(warm.weights).max(initial=0.0))

    def lowered(self, lifted: Columns, weights: Array) -> tuple[Columns, Array]:
        """Return the features and coefficients, none of them 0, of w = L u.

        u has the values ``weights`` at the coordinates ``lifted``, and is 0 elsewhere.
        """
        features, sums = self.expansion.apply(lifted, weights)
        support = np.flatnonzero(sums)
        return features[support], sums[support]

    def lowered_start(self, warm: WarmStart) -> WarmStart:
        """Return a start over the features, for ``warm`` in lifted coordinates; these are kept."""
        point = self.lowered(warm.columns, warm.weights)
        return WarmStart(*point, warm.intercept, (warm.columns, warm.weights))

    def parts(self, lifted: Columns, weights: Array) -> list[Part]:
        """Return the parts of w = L u that belong to the sets in use, by number of set.

        u has the values ``weights`` at the coordinates ``lifted``, and is 0 elsewhere.
        """
        # Each entry of L belongs to a pair (set, feature), numbered by a key. The products L_ij u_j
        # of each pair are added up, and pairs of sum 0 are dropped.
        touched = self.expansion.touched(lifted)
        n_rows = max(touched.features.size, 1)
        keys = self.labels[lifted][touched.owners] * n_rows + touched.rows
        distinct_keys, inverse = np.unique(keys, return_inverse=True)
        products = touched.values * weights[touched.owners]
        sums: Array = np.bincount(inverse, products, distinct_keys.size).astype(
            np.float64, copy=False
        )
        support = np.flatnonzero(sums)
        # Split the pairs by set. (Without any pairs, np.split returns one part, which is ignored.)
        groups, rows = np.divmod(distinct_keys[support], n_rows)
        sets, first = np.unique(groups, return_index=True)
        names = self.names or ()
        result = []
        for group, entries in zip(
            sets.tolist(), np.split(np.arange(support.size), first[1:]), strict=False
        ):
            name = names[group] if group < len(names) else ""
            result.append(
                Part(group, name or None, touched.features[rows[entries]], sums[support[entries]])
            )
        return result
