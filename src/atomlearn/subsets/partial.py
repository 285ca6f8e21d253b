"""A relaxation restricted to some columns, its stronger ridge, and the near-best models found."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import Array, Columns, Problem
from atomlearn.subsets.diagonal import strengthened
from atomlearn.subsets.exchange import Subset
from atomlearn.subsets.near import LevelSet, NearModels, NearSubset
from atomlearn.subsets.norm import OUT
from atomlearn.subsets.relaxation import Relaxation, RelaxedPoint
from atomlearn.subsets.search import Search


@dataclass(slots=True)
class PartialRelaxation:
    """A relaxation restricted to some units of the problem.

    ``columns`` and ``numbers`` are the numbers of its columns and units in the whole problem, in
    increasing order; ``searched`` are the units, numbered in the whole problem, that a subset may
    contain. If the ridge was strengthened, ``original`` is the relaxation before that, and
    ``factors`` are those of the weights.
    """

    relaxation: Relaxation
    columns: Columns
    numbers: Columns
    searched: Columns
    original: Relaxation | None = None
    factors: Array | None = None

    @property
    def plain(self) -> Relaxation:
        """The relaxation in the units of the problem."""
        return self.original or self.relaxation

    def strengthened(self, max_share: float) -> PartialRelaxation:
        """Return the part with a stronger ridge, see ``diagonal``, or itself.

        ``max_share`` is the largest share of the ridge that rounding may take.
        """
        if self.searched.size < self.numbers.size:
            return self
        r = self.relaxation
        problem = strengthened(r, np.arange(self.columns.size), max_share)
        if problem is None:
            return self
        other = Relaxation(problem[0], r.price, r.accuracy, r.room)
        return replace(self, relaxation=other, original=r, factors=problem[1])

    def fitted(self, subset: Subset) -> Subset:
        """Return a subset of the search with its fit in the units of the problem."""
        if self.original is None:
            return subset
        return Subset(subset.units, *self.original.fit(subset.units))

    def places(self, units: Columns) -> Columns:
        """Return the positions in the part of units, numbered in the whole problem."""
        return np.searchsorted(self.numbers, units)

    @property
    def fixed(self) -> NDArray[np.int8]:
        """The state of each unit at the root: OUT if it is not in ``searched``, else 0 (free)."""
        fixed = np.full(self.numbers.size, OUT, dtype=np.int8)
        fixed[self.places(self.searched)] = 0
        return fixed

    def point(self, point: RelaxedPoint) -> RelaxedPoint:
        """Return a point restricted to the columns of the part."""
        is_inside = np.isin(point.columns, self.columns)
        places = np.searchsorted(self.columns, point.columns[is_inside])
        weights = point.weights[is_inside]
        if self.factors is not None:
            weights = weights * self.factors[places]
        return replace(point, columns=places, weights=weights)


def near_models(
    part: PartialRelaxation,
    search: Search,
    whole: Problem,
    within: float | None,
    price: float,
    listed: bool,
) -> NearModels | None:
    """Return the models within a share of the best one, None without a share.

    Parameters
    ----------
    whole : Problem
        That over all columns.
    price : float
        What each unit of a subset adds to the objective.
    listed : bool
        Whether the search listed all subsets within reach of its bounds.
    """
    if within is None:
        return None
    models = [part.fitted(subset) for subset in search.within_reach(within)]
    relaxation = part.plain
    complete = listed and search.within is not None and search.is_complete(within)
    columns = np.unique(np.concatenate([subset.point.columns for subset in models]))
    units = np.unique(np.concatenate([subset.units for subset in models]))
    undecided = None
    in_all: Columns = np.zeros(0, dtype=np.int64)
    if listed:
        in_some, every = search.reach()
        in_all = np.flatnonzero(every)
        undecided = part.numbers[np.setdiff1d(np.flatnonzero(in_some), units)]
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
