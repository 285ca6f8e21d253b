"""Estimators of matrices, and joint fits of several outputs, loaded on first use."""

from atomlearn._lazy import lazy

__getattr__ = lazy(
    __name__, {"joint_search": "search_jointly", "tasks": "joint_coefficients joint_problem"}
)
