"""The names that ``features=`` accepts, and the design of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from atomlearn.core import Design, loaded
from atomlearn.maps.feature_map import FeatureMap, Inputs, map_of


@dataclass(frozen=True, slots=True)
class FeatureEntry:
    """One value of ``features=``: the class of its map, and the function that makes its design.

    Attributes
    ----------
    kind : type
        Class of the map.
    make : callable
        ``make(X, sample_weight, **settings)`` returns the design of the rows from which the map is
        made.
    settings : tuple of str
        Names of the settings that ``make`` takes.
    """

    kind: type[FeatureMap]
    make: Callable[..., Design]
    settings: tuple[str, ...] = ()

    def using(self, name: object, settings: Mapping[str, Any]) -> FeatureEntry:
        """Return the entry whose ``make`` has these settings.

        Raise ValueError for unknown ones; ``name`` is that of the features, for the message.
        """
        unknown = sorted(set(settings) - set(self.settings))
        if unknown:
            setting_names = ", ".join(self.settings) or "none"
            raise ValueError(
                f"features={name!r} has no setting {unknown[0]!r}; its settings are: "
                f"{setting_names}"
            )
        return replace(self, make=partial(self.make, **settings))


#: The names that ``features=`` accepts; an entry whose module is not loaded is "module:attribute".
FEATURES: dict[str, FeatureEntry | str] = {
    "linear": FeatureEntry(Inputs, lambda X, weight: X),
    "interactions": "atomlearn.maps.pairs.polynomial:INTERACTIONS",
    "quadratic": "atomlearn.maps.pairs.polynomial:QUADRATIC",
    "polynomial": "atomlearn.maps.pairs.polynomial:POLYNOMIAL",
    "cubic": "atomlearn.maps.cubic:CUBIC",
    "splines": "atomlearn.maps.additive:SPLINES",
    "intersection": "atomlearn.maps.additive:INTERSECTION",
    "additive_gaussian": "atomlearn.maps.additive:GAUSSIAN",
    "additive_chi2": "atomlearn.maps.additive:CHI2",
    "anova": "atomlearn.maps.anova:ANOVA",
}


def features_named(features: Any) -> FeatureEntry:
    """Return the entry for ``features``: a name, or a pair of a name and a dictionary of settings.

    Raise ValueError, which lists the known names, for other values.
    """
    is_pair = isinstance(features, tuple) and len(features) == 2
    name, settings = features if is_pair else (features, {})
    if name not in list(FEATURES) or not isinstance(settings, Mapping):
        raise ValueError(
            f"features must be one of {sorted(FEATURES)}, or a pair of such a name and a "
            f"dictionary of settings; got {features!r}"
        )
    entry: FeatureEntry = loaded(FEATURES[name])
    return entry.using(name, settings) if settings else entry


def explicit(X: Design) -> Design:
    """Return X, the inputs of a map of products; raise ValueError if X has products already."""
    if map_of(X).implicit:
        raise ValueError("X is a Polynomial design already; pass its inputs, or features='linear'")
    return X
