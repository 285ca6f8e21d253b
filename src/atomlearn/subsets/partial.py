"""A relaxation restricted to some columns, its stronger ridge, and the near-best models found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, Columns, Problem
from atomlearn.subsets.diagonal import strengthened as strengthened_problem
from atomlearn.subsets.exchange import Subset
from atomlearn.subsets.near import LevelSet, NearModels, NearSubset
from atomlearn.subsets.norm import OUT
from atomlearn.subsets.relaxation import Relaxation, RelaxedPoint
from atomlearn.subsets.search import Search


@dataclass(slots=True)
class PartialRelaxation:
    """A relaxation restricted to some units (columns, or groups of columns): a part of the problem.

    Attributes
    ----------
    relaxation : Relaxation
        The solver over these units only. It numbers its columns and units from 0.
    columns, numbers : (m,) int64
        The numbers of its columns, and of its units, in the whole problem, in increasing order.
    searched : (m,) int64
        The units, numbered in the whole problem, that a subset may contain. The other units are
        fixed out: no subset contains them.
    original : Relaxation or None
        If the ridge was strengthened, the relaxation before that.
    factors : (m,) float64 or None
        The weights of the strengthened relaxation, divided by those of the original one.
    """

    relaxation: Relaxation
    columns: Columns
    numbers: Columns
    searched: Columns
    original: Relaxation | None = None
    factors: Array | None = None

    @property
    def plain(self) -> Relaxation:
        """The relaxation before the ridge was strengthened, with the weights of the problem."""
        return self.original or self.relaxation

    def strengthened(self, max_share: float) -> PartialRelaxation:
        """Return this part with a stronger ridge, or unchanged if that is not possible.

        A stronger ridge makes its bounds tighter, see the module ``diagonal``. ``max_share`` is the
        largest share of the ridge that rounding errors may consume.
        """
        # If some units are not searched, the part is over all columns, because the columns of the
        # searched units are too many to copy (``Hunt._part``). The strengthened problem has a copy
        # of its columns, so it is not made.
        if self.searched.size < self.numbers.size:
            return self
        plain = self.relaxation
        result = strengthened_problem(plain, np.arange(self.columns.size), max_share)
        if result is None:
            return self
        problem, factors = result
        other = Relaxation(problem, plain.price, plain.accuracy, plain.most_columns)
        return replace(self, relaxation=other, original=plain, factors=factors)

    def fitted(self, subset: Subset) -> Subset:
        """Return ``subset`` with the weights of the original problem.

        The weights of a strengthened relaxation are multiplied by ``factors``. So in this case the
        subset is fitted again in the original relaxation.
        """
        if self.original is None:
            return subset
        return Subset(subset.units, *self.original.fit(subset.units))

    def places(self, units: Columns) -> Columns:
        """Return the numbers in this part of ``units``, which are numbered in the whole problem."""
        return np.searchsorted(self.numbers, units)

    @property
    def fixed(self) -> NDArray[np.int8]:
        """The state of each unit at the root: OUT if it is not in ``searched``, else 0 (free)."""
        fixed = np.full(self.numbers.size, OUT, dtype=np.int8)
        fixed[self.places(self.searched)] = 0
        return fixed

    def point(self, point: RelaxedPoint) -> RelaxedPoint:
        """Return ``point`` of the whole problem, restricted to the columns of this part.

        Its columns are numbered in this part, and its weights are scaled by ``factors``.
        """
        is_inside = np.isin(point.columns, self.columns)
        positions = np.searchsorted(self.columns, point.columns[is_inside])
        weights = point.weights[is_inside]
        if self.factors is not None:
            weights = weights * self.factors[positions]
        return replace(point, columns=positions, weights=weights)


def near_models(
    part: PartialRelaxation,
    search: Search,
    whole: Problem,
    within: float | None,
    price: float,
    listed: bool,
) -> NearModels | None:
    """Return all near-optimal models that a search found, numbered in the whole problem.

    Parameters
    ----------
    part : PartialRelaxation
        The part of the problem that was searched.
    search : Search
        The finished branch and bound over this part.
    whole : Problem
        The problem over all columns.
    within : float or None
        The models have objectives of at most (1 + within) times the smallest one. If it is None,
        the result is None.
    price : float
        The l0 penalty that each unit of a subset adds to the objective.
    listed : bool
        Whether branch and bound ran; without it no statement on unlisted subsets is possible.
    """
    if within is None:
        return None
    # The listed subsets, their columns and their units, numbered in the part.
    models = [part.fitted(subset) for subset in search.near_subsets(within)]
    relaxation = part.plain
    complete = listed and search.within is not None and search.is_complete(within)
    columns = np.unique(np.concatenate([subset.point.columns for subset in models]))
    units = np.unique(np.concatenate([subset.units for subset in models]))
    # What holds for all near-optimal subsets, listed or not. ``in_all`` has the units that are in
    # each of them. ``undecided`` has the units that are in no listed subset, but may be in one that
    # is not listed.
    undecided = None
    in_all: Columns = np.zeros(0, dtype=np.int64)
    if listed:
        in_some, every = search.possible_units()
        in_all = np.flatnonzero(every)
        undecided = part.numbers[np.setdiff1d(np.flatnonzero(in_some), units)]
    # The models of each subset, over one copy of all their columns.
    A = relaxation.dense(columns)
    problem = replace(relaxation.problem, free=whole.free)
    sets = [
        LevelSet(
            problem,
            A,
            np.searchsorted(columns, subset.point.columns),
            subset,
            price * subset.units.size,
        )
        for subset in models
    ]
    return NearModels(
        subsets=[
            NearSubset(np.sort(part.numbers[subset.units]), subset.objective) for subset in models
        ],
        complete=complete,
        limit=models[0].objective + within * abs(models[0].objective),
        in_all=part.numbers[in_all],
        in_some=part.numbers[np.setdiff1d(units, in_all)],
        undecided=undecided,
        columns=part.columns[columns],
        n_features=whole.design.shape[1],
        level_sets=sets,
    )
