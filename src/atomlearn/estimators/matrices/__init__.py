"""Estimators of matrices, and fits of several targets at once, loaded when there are any."""

from atomlearn._lazy import lazy

__getattr__ = lazy(__name__, {"tasks": "fit_tasks"})
