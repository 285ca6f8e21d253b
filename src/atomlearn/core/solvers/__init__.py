"""Solvers, and the one loop that runs them. Parts that few fits need are loaded on first use."""

from atomlearn._lazy import lazy

__getattr__ = lazy(
    __name__,
    {
        "atom_generation": "AtomGeneration",
        "checkpoint": "Checkpoint",
        "smoothing": "SmoothedSteps",
    },
)
