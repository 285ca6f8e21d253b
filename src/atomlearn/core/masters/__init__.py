"""Masters: the re-fit over the active columns. A master is loaded when it is chosen."""

from atomlearn._lazy import lazy

__getattr__ = lazy(
    __name__,
    {
        "model_newton": "ModelNewton",
        "pattern_newton": "PatternNewton pattern_of",
        "scaling_newton": "ScalingNewton cheap_columns is_group_problem",
        "working_sets": "WorkingSets",
    },
)
