"""The names that ``features=`` accepts, and the design of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from atomlearn.core import Array, Design, loaded
from atomlearn.maps.feature_map import FeatureMap, Inputs, map_of


@dataclass(frozen=True, slots=True)
class FeatureEntry:
    """One entry of the table: the class of the map, known without data, and its maker.

    Attributes
    ----------
    kind : type
        Class of the map.
    make : callable
        ``make(X, sample_weight)`` returns the design of the rows from which the map is made.
    scaled : callable, optional
        ``scaled(X, gamma, r)`` returns the design of the kernel (gamma x'y + r)^degree; None for
        maps without one.
    """

    kind: type[FeatureMap]
    make: Callable[[Design, Array | None], Design]
    scaled: Callable[[Design, float, float], Design] | None = None


#: The names that ``features=`` accepts; an entry whose module is not loaded is "module:attribute".
FEATURES: dict[str, FeatureEntry | str] = {
    "linear": FeatureEntry(Inputs, lambda X, weight: X),
    "interactions": "atomlearn.maps.pairs.polynomial:INTERACTIONS",
    "quadratic": "atomlearn.maps.pairs.polynomial:QUADRATIC",
    "polynomial": "atomlearn.maps.pairs.polynomial:POLYNOMIAL",
    "splines": "atomlearn.maps.additive:SPLINES",
    "intersection": "atomlearn.maps.additive:INTERSECTION",
    "additive_gaussian": "atomlearn.maps.additive:GAUSSIAN",
    "additive_chi2": "atomlearn.maps.additive:CHI2",
    "anova": "atomlearn.maps.anova:ANOVA",
}


def features_named(name: object) -> FeatureEntry:
    """Return the entry of a name; the error lists the known names."""
    if name not in list(FEATURES):
        raise ValueError(f"features must be one of {sorted(FEATURES)}, got {name!r}")
    entry: FeatureEntry = loaded(FEATURES[str(name)])
    return entry


def explicit(X: Design) -> Design:
    """Return the inputs of a map of products, refused if they are products already."""
    if map_of(X).implicit:
        raise ValueError("X is a Polynomial design already; pass its inputs, or features='linear'")
    return X
