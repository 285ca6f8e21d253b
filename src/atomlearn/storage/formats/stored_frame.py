"""Tables in trees of arrays: obs and var of AnnData, of every version of its format."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.held import understood
from atomlearn.storage.formats.messages import require_name
from atomlearn.storage.formats.tree import Node, text_of


class StoredFrame:
    """A table with named columns and an index, stored as a group or as an array of records.

    Parameters
    ----------
    node : Node
        Since version 0.7 a group with an array or a group for each column; before that, an array of
        records, whose first field is the index.
    categories : Node, optional
        Group that has the labels of ``name`` under ``name_categories``, as before version 0.7.

    Attributes
    ----------
    header : tuple of str
        Names of the columns, without the index.
    """

    def __init__(self, node: Node, categories: Node | None = None) -> None:
        """Read the names of the columns of the table ``node``, and their order.

        ``categories`` is the group of labels in files before version 0.7, or None.
        """
        self._node = node
        self._labels = categories
        # The fields of the records; () for a group.
        fields = node.fields
        self._index = fields[0] if fields else str(node.attribute("_index", "_index"))
        names = fields if fields else node.names()
        order = [text_of(name) for name in np.ravel(node.attribute("column-order", ()))]
        column_names = [name for name in names if name not in (self._index, "__categories")]
        # A group lists its members by name: the order of the table is an attribute. It is ignored
        # if it does not have the same names.
        self.header = tuple(
            sorted(column_names, key=order.index) if {*column_names} == {*order} else column_names
        )

    @cached_property
    def _records(self) -> NDArray[Any]:
        """The array of records, which is read as a whole."""
        return self._node.content()

    def index(self) -> list[str]:
        """Return the names of the rows."""
        if self._node.fields:
            return [text_of(name) for name in self._records[self._index].tolist()]
        return _without_mask(self._node.member(self._index)).texts()

    def cells(self, name: str) -> NDArray[Any]:
        """Return the column ``name`` (n_rows,): floats (NaN if missing) or text ("" if missing).

        The codes of a categorical column are replaced by its labels.
        """
        node = self._node
        require_name(name, self.header, f"{node.name.strip('/')} of {node.path} has no column")
        # ``gaps`` marks missing entries; ``labels`` is the node with the labels of codes.
        gaps: Any = False
        labels = None
        # Records: the labels are in another group, if at all. Else the column is a group of values
        # and mask, a group of codes and labels, or an array, whose labels may be in a common group.
        if node.fields:
            values = self._records[name]
            if self._labels is not None and self._labels.has(f"{name}_categories"):
                labels = self._labels.member(f"{name}_categories")
        else:
            column = node.member(name)
            if column.has("mask"):
                gaps = column.member("mask").content().astype(bool)
                column = column.member("values")
            elif column.is_group:
                labels = column.member("categories")
                column = column.member("codes")
            elif node.has("__categories") and node.member("__categories").has(name):
                labels = node.member("__categories").member(name)  # the format of version 0.7
            values = column.content()
        # Negative codes are missing; they index the "" that is appended to the labels.
        if labels is not None:
            label_texts = _without_mask(labels).texts()
            with understood(node.path, "table"):
                return np.array([*label_texts, ""], dtype=object)[np.where(values < 0, -1, values)]
        if values.dtype.kind not in "biuf":
            texts = np.array([text_of(entry) for entry in values.tolist()], dtype=object)
            return np.where(gaps, "", texts)
        return np.where(gaps, np.nan, values.astype(np.float64))


def _without_mask(column: Node) -> Node:
    """Return the node of the values of a column; refuse missing entries.

    Newer versions of the format store a column that may have gaps as a group of values and a mask.
    """
    if not column.has("mask"):
        return column
    if column.member("mask").content().any():
        raise ValueError(f"{column.path}: {column.name!r} has missing entries; drop those samples")
    return column.member("values")
