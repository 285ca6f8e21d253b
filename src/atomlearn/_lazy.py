"""Names of a package that are imported on first use (PEP 562)."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazy(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a package, which imports names on first use.

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    modules : mapping of str to str
        The modules, as seen from the package, and the names that the package offers of each,
        separated by spaces. A name that the module does not define is the module itself.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> Any:
        """Import the module of ``name``, set all its names in the package, and return the value."""
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(f"{package}.{homes[name]}")
        # All names are set at once, because the import has bound the name of the module itself, and
        # a function may have the same name.
        for name_of_module in modules[homes[name]].split():
            setattr(sys.modules[package], name_of_module, vars(module).get(name_of_module, module))
        return vars(sys.modules[package])[name]

    return get
