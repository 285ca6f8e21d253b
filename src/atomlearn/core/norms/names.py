"""Names of columns in the parameters of norms: groups given by name or by pattern."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atomlearn.core.interfaces.norm import Norm
from atomlearn.lifting.membership import needs_names, resolved


def named(norm: Norm, names: Sequence[str] | None) -> Norm:
    """Return the norm with names of columns replaced by their indices; itself where none are.

    ``names`` None: the columns have no names; norms that need them say so when they are checked.
    """
    return norm if names is None else norm.with_names(list(names))


def named_groups(groups: Any, names: Sequence[str], owner: str) -> Any:
    """Return disjoint groups by index, from groups by name; what needs no names is left alone."""
    if groups is None or not needs_names(groups):
        return groups
    found = resolved(groups, names, owner)
    return list(found.values()) if isinstance(found, dict) else found
