"""Algorithms of the papers that atomlearn builds on, and their rivals, loaded by name."""

from atomlearn._lazy import lazy

__all__ = [
    "FISTA",
    "KFCFW",
    "FeatureGeneration",
    "FrankWolfe",
]

__getattr__ = lazy(
    __name__,
    {
        "feature_generation": "FeatureGeneration",
        "fista": "FISTA",
        "frank_wolfe": "FrankWolfe",
        "kfcfw": "KFCFW",
    },
)
