"""The names that ``features=`` accepts, and the design of each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from atomlearn.core.interfaces import Array, Design
from atomlearn.maps.additive import Additive, AdditiveMap
from atomlearn.maps.anova import Anova, AnovaMap
from atomlearn.maps.feature_map import FeatureMap, Inputs, map_of
from atomlearn.maps.pairs.polynomial import Polynomial, PolynomialMap


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


def _curves(kernel: str, X: Design, weight: Array | None) -> Design:
    return Additive(X, kernel, normalize=True, sample_weight=weight)


def _products(squares: bool | None, X: Design, weight: Array | None) -> Design:
    """Return unscaled products, with squares or without; None: scaled as in [T]."""
    X = _inputs(X)
    return Polynomial(X) if squares is None else Polynomial.interactions(X, squares=squares)


def _inputs(X: Design) -> Design:
    if map_of(X).implicit:
        raise ValueError("X is a Polynomial design already; pass its inputs, or features='linear'")
    return X


#: The names that ``features=`` accepts. To add a map, add one line.
FEATURES = {
    "linear": FeatureEntry(Inputs, lambda X, weight: X),
    "interactions": FeatureEntry(PolynomialMap, partial(_products, False)),
    "quadratic": FeatureEntry(PolynomialMap, partial(_products, True)),
    "polynomial": FeatureEntry(
        PolynomialMap,
        partial(_products, None),
        lambda X, gamma, r: Polynomial(_inputs(X), gamma=gamma, r=r),
    ),
    "splines": FeatureEntry(AdditiveMap, partial(_curves, "splines")),
    "intersection": FeatureEntry(AdditiveMap, partial(_curves, "intersection")),
    "additive_gaussian": FeatureEntry(AdditiveMap, partial(_curves, "gaussian")),
    "additive_chi2": FeatureEntry(AdditiveMap, partial(_curves, "chi2")),
    "anova": FeatureEntry(
        AnovaMap, lambda X, weight: Anova(X, normalize=True, sample_weight=weight)
    ),
}


def features_named(name: object) -> FeatureEntry:
    """Return the entry of a name; the error lists the known names."""
    if name not in list(FEATURES):
        raise ValueError(f"features must be one of {sorted(FEATURES)}, got {name!r}")
    return FEATURES[str(name)]
