"""Names of columns in the parameters of norms: groups given by name or by pattern."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from atomlearn._support import all_text


def named_columns(columns: Any, names: Sequence[str] | None, owner: str) -> Any:
    """Return columns by index, given by names and patterns; indices and masks are unchanged.

    names : the names of all columns, or None. owner : the parameter that the columns are for, which
    begins the message of an error.
    """
    if hasattr(columns, "tolist"):  # an index of pandas is no sequence
        columns = np.asarray(columns)
    if not _has_strings(columns):
        return columns
    if names is None:
        raise ValueError(
            f"{owner}: {columns!r} names columns, but those of X have no names; pass a data frame, "
            "or indices"
        )
    position = {name: number for number, name in enumerate(names)}
    return np.array(_resolve(columns, "", position, owner, "error"), dtype=np.int64)


def named_groups(groups: Any, names: Sequence[str], owner: str) -> Any:
    """Return disjoint groups by index, given by name; groups without names are unchanged.

    names : the names of all columns. owner : the norm, which begins the message of an error.
    """
    by_index = resolved(groups, names, owner)
    is_mapping = by_index is not groups and isinstance(by_index, dict)
    return list(by_index.values()) if is_mapping else by_index


def needs_names(groups: Any) -> bool:
    """Return whether these groups refer to columns by name: lists, a mapping, or a data frame."""
    if _is_frame(groups):
        return True
    if isinstance(groups, Mapping):
        return any(map(_has_strings, groups.values()))
    # A flat list of strings has one label for each feature: it is a partition, not names of
    # columns.
    flat = not isinstance(groups, Sequence) or all_text(groups)
    return not flat and any(map(_has_strings, groups))


def _is_frame(groups: Any) -> bool:
    """Return whether ``groups`` is a data frame of any library."""
    return hasattr(groups, "columns") and hasattr(groups, "to_numpy")


def _has_strings(group: Any) -> bool:
    """Return whether ``group`` is a string, or a sequence, set or array that contains one."""
    if isinstance(group, np.ndarray) and group.dtype != object:
        return group.dtype.kind in "US"
    items = group if isinstance(group, Sequence | np.ndarray | set | frozenset) else ()
    return any(isinstance(item, str) for item in items)


def resolved(groups: Any, names: Sequence[str], owner: str, missing: str = "error") -> Any:
    """Return groups with names and patterns of columns replaced by their indices.

    Groups without names are returned themselves.

    A string with ``*``, ``?`` or ``[`` is a shell pattern over ``names``, the names of all columns.
    A mapping keeps its keys, and other groups become a list. A data frame becomes a mapping: either
    a long table with two columns (group, feature), as in .gmt files, or a boolean matrix with one
    row for each feature, named by its index, and one column for each group. owner : the norm, for
    errors.

    missing : "error", or "ignore" to leave out names that X does not have. A mapping then loses
    groups that become empty, while a list keeps them.
    """
    if not needs_names(groups):
        return groups
    if missing not in ("error", "ignore"):
        raise ValueError(f"{owner}: missing must be 'error' or 'ignore', got {missing!r}")
    position = {name: number for number, name in enumerate(names)}
    if _is_frame(groups):
        groups = _frame_sets(groups, owner)
    if isinstance(groups, Mapping):
        groups_by_index = {
            str(name): _resolve(group, str(name), position, owner, missing)
            for name, group in groups.items()
        }
        return {
            name: group for name, group in groups_by_index.items() if group or missing == "error"
        }
    return [_resolve(group, str(n), position, owner, missing) for n, group in enumerate(groups)]


def _resolve(
    group: Any, label: str, position: dict[str, int], owner: str, missing: str
) -> list[int]:
    """Return the distinct column numbers of one group of names, patterns and numbers.

    label : the name of the group, for errors. position : the number of each column name.
    owner : the norm, for errors. missing : "ignore" leaves out names that no column has.
    """
    entries = [group] if isinstance(group, str) else list(group)
    # A dictionary without values is an ordered set.
    result: dict[int, None] = {}
    remedy = f" of group {label!r}; correct it, or pass missing='ignore'" if label else ""
    for entry in entries:
        if not isinstance(entry, str):
            result[int(entry)] = None
        elif entry in position:
            result[position[entry]] = None
        elif any(mark in entry for mark in "*?["):
            # A pattern, if it is not the name of a column.
            matches = fnmatch.filter(position, entry)
            if not matches and missing == "error":
                raise ValueError(f"{owner}: no column matches the pattern {entry!r}{remedy}")
            result.update(dict.fromkeys(position[name] for name in matches))
        elif missing == "error":
            raise ValueError(f"{owner}: X does not have the column {entry!r}{remedy}")
    return list(result)


def _frame_sets(frame: Any, owner: str) -> dict[str, list[str]]:
    """Return the features of each group of a data frame, by name.

    frame : long with two columns (group, feature), or boolean (features x groups). owner : the
    norm, for errors.
    """
    columns = [str(column) for column in frame.columns]
    values = frame.to_numpy()
    if values.dtype == np.bool_ and hasattr(frame, "index"):
        # A membership matrix: one column for each group.
        features = [str(feature) for feature in frame.index]
        return {
            column: [features[j] for j in np.flatnonzero(values[:, number])]
            for number, column in enumerate(columns)
        }
    if len(columns) != 2:
        raise ValueError(
            f"{owner}: a data frame of groups has two columns (group, feature), or is boolean with "
            f"the features as its index; got the columns {columns[:6]}"
        )
    # A long table: one row for each member of a group.
    result: dict[str, list[str]] = {}
    for group, feature in values:
        result.setdefault(str(group), []).append(str(feature))
    return result
