"""Columns of categories for knockoffs: a group of 0/1 columns each, which is told as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from sklearn.utils.validation import validate_data

from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.data.convert import readable
from atomlearn.core.data.frames import as_table, is_table
from atomlearn.core.interfaces import Array, Columns
from atomlearn.storage.intake.columns import INTAKE, ColumnPlan
from atomlearn.storage.intake.encode import encode_columns
from atomlearn.storage.intake.typed import frame_of

#: Eigenvalues of correlations below this share of the largest are those of dependent columns.
DEPENDENT = 1e-8


def numbers_of(estimator: Any, X: Any) -> tuple[Array, Columns | None]:
    """Return X as an array, and which columns of it are of one column of X; None: each its own.

    Sets what scikit-learn's ``validate_data`` sets.
    """
    table = as_table(X)
    if is_table(table) and len(getattr(table, "shape", ())) == 2 and 0 not in table.shape:
        frame = frame_of(table)
        labels = {name: set(frame.cells(name)) for name in filter(frame.is_text, frame.header)}
        if labels:
            return _encoded(estimator, X, frame, labels)
    array: Any = validate_data(
        estimator, readable(X), dtype=np.float64, accept_sparse="csc", ensure_min_samples=2
    )
    return (array.toarray() if is_sparse(array) else array), None


def _encoded(
    estimator: Any, X: Any, frame: Any, labels: dict[str, set[str]]
) -> tuple[Array, Columns]:
    validate_data(estimator, X, skip_check_array=True)
    many = [name for name in labels if len(labels[name]) > INTAKE.many_values]
    gaps = [name for name in frame.header if frame.missing(name).any()]
    for names, what, remedy in (
        (many, f"more than {INTAKE.many_values} different values", "group them, or leave it out"),
        (gaps, "missing values", "fill them in, for example by datasets.read(missing='median')"),
    ):
        if names:
            raise ValueError(f"column {names[0]!r} of X has {what}; {remedy}")
    plans = [
        ColumnPlan(name, "category", "category", tuple(sorted(labels[name])))
        if name in labels
        else ColumnPlan(name)
        for name in frame.header
    ]
    made = encode_columns(frame, plans)
    own = np.arange(len(plans))
    return made.X, np.repeat(own, [len(plan.made()) for plan in plans])


def independent(X: Array, labels: Columns) -> tuple[sp.csc_array, Columns]:
    """Return what makes columns of each group uncorrelated where they depend on each other.

    X : (n, p) standardized; labels : (p,) groups. The k indicators of a category sum to one, so
    that no knockoff could differ from its column. They become k - 1 columns of variance one that
    span the same. Returns the map (p, q), and the groups of the q columns.
    """
    parts, rows, found = list[Array](), list[Columns](), list[int]()
    for label in np.unique(labels):
        mine = np.flatnonzero(labels == label)
        part = np.eye(mine.size)
        if 1 < mine.size < len(X):
            sizes, vectors = la.eigh(X[:, mine].T @ X[:, mine] / len(X))
            kept = sizes > DEPENDENT * sizes[-1]
            if kept.any() and not kept.all():
                part = vectors[:, kept] / np.sqrt(sizes[kept])
        parts.append(part)
        rows.append(mine)
        found += [int(label)] * part.shape[1]
    order = np.concatenate(rows)
    back = np.argsort(order)
    return sp.csc_array(sp.block_diag(parts, "csr")[back]), np.array(found)
