"""enrichment: sets of features with more selected members than expected by chance."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass

from scipy.stats import false_discovery_control, hypergeom


@dataclass(frozen=True, slots=True)
class EnrichedSet:
    """The selected members of one set.

    Attributes
    ----------
    name : str
        Name of the set.
    size : int
        Number of its members in the universe.
    members : tuple
        Its selected members, in the order of the selection.
    expected : float
        Number of selected members if as many features were drawn at random.
    p_value : float
        Probability of at least as many selected members in such a draw (hypergeometric).
    p_adjusted : float
        p-value adjusted for the number of sets by Benjamini and Hochberg's method.
    """

    name: str
    size: int
    members: tuple[Hashable, ...]
    expected: float
    p_value: float
    p_adjusted: float


def enrichment(
    selected: Collection[Hashable],
    universe: Collection[Hashable],
    sets: Mapping[str, Collection[Hashable]],
) -> list[EnrichedSet]:
    """Return the sets with selected members, the smallest p-value first.

    Parameters
    ----------
    selected : collection
        Selected features.
    universe : collection
        Features that could have been selected, ``selected`` included. Members of sets outside of
        the universe, such as genes that were not measured, do not count: too large a universe makes
        every set look enriched.
    sets : mapping
        Members of each set by its name, as ``datasets.read_gene_sets`` returns.

    Notes
    -----
    The p-values assume that the selected features are a random draw from the universe. Correlated
    features, such as genes of one pathway, are not selected independently. Therefore the p-values
    are only a guide. All sets with a member in the universe count in ``p_adjusted``.

    Examples
    --------
    >>> from atomlearn.findings import enrichment
    >>> sets = {"cycle": ["a", "b", "c"], "repair": ["d", "e", "f"], "other": ["x", "y"]}
    >>> found = enrichment(["a", "b"], "abcdefghij", sets)
    >>> [(one.name, one.size, one.members, round(one.p_value, 4)) for one in found]
    [('cycle', 3, ('a', 'b'), 0.0667)]
    """
    background = {*universe}
    distinct = list(dict.fromkeys(selected))
    if outside := [feature for feature in distinct if feature not in background]:
        raise ValueError(
            f"{outside[0]!r} is selected and not in the universe; give all features that could "
            "have been selected"
        )
    # Members that could have been selected, without empty sets.
    inside = {name: background.intersection(members) for name, members in sets.items()}
    inside = {name: members for name, members in inside.items() if members}
    overlaps = {
        name: tuple(feature for feature in distinct if feature in members)
        for name, members in inside.items()
    }
    # The hypergeometric probability of an overlap at least as large.
    tails = [
        float(hypergeom.sf(len(overlaps[name]) - 1, len(background), len(members), len(distinct)))
        for name, members in inside.items()
    ]
    rates = false_discovery_control(tails).tolist() if tails else []
    enriched = [
        EnrichedSet(
            name,
            len(members),
            overlaps[name],
            len(members) * len(distinct) / len(background),
            tail,
            float(rate),
        )
        for (name, members), tail, rate in zip(inside.items(), tails, rates, strict=True)
    ]
    return sorted(
        (each for each in enriched if each.members), key=lambda entry: (entry.p_value, entry.name)
    )
