"""Every public class says where it comes from and shows how it is used."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

DOORS = ("designs", "losses", "masters", "norms", "paths", "problem", "reports", "solvers")
#: Classes that need neither a reference nor an example, each with the reason.
PLAIN: dict[str, str] = {}
BIBLIOGRAPHY = Path(__file__).resolve().parents[2] / "docs" / "bibliography.md"
SOURCES = Path(__file__).resolve().parents[2] / "src"


def public_classes() -> list[type]:
    found: dict[str, type] = {}
    for door in DOORS:
        module = importlib.import_module(f"atomlearn.{door}")
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value):
                found.setdefault(f"{value.__module__}.{value.__name__}", value)
    estimators = importlib.import_module("atomlearn.estimators")
    for name in estimators.__all__:
        value = getattr(estimators, name)
        if inspect.isclass(value):
            found.setdefault(f"{value.__module__}.{value.__name__}", value)
    return list(found.values())
