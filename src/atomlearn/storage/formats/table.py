"""DataTable and Schema: the content of a data file, and how to read another one like it."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.formats.held import LIMITS, fits

#: Number of columns that are listed in notebooks.
MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Schema:
    """Description of the columns of X, with which another file is read into the same columns.

    Attributes
    ----------
    n_features : int
        Number of columns.
    names : tuple of str, optional
        Names of the columns. Columns without names are called x0, x1, ..., counted from
        ``first_index``.
    first_index : int
        1 for a libsvm file that counts from one, else 0.
    columns : tuple of ColumnPlan
        Description of each column of the file and of the columns made of it, if it is known.
    origin : mapping
        For AnnData: the "layer", the columns of "pseudobulk", and the kind of "values". For tables:
        "na" and "limits", as ``TextForm`` has them.
    symbols : mapping
        Gene symbols of columns, by the names of the columns.
    """

    n_features: int
    names: tuple[str, ...] | None = None
    first_index: int = 0
    columns: tuple[Any, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    symbols: Mapping[str, str] = field(default_factory=dict)

    def name(self, column: int) -> str:
        """Return the name of column number ``column`` of X; unnamed columns are x0, x1, ..."""
        return f"x{column + self.first_index}" if self.names is None else self.names[column]

    def restricted_to(self, columns: Sequence[int] | NDArray[np.int64]) -> Schema:
        """Return the schema of the columns with these numbers, for a model that uses no others.

        Only named columns can be read separately, so a schema without names is refused.
        """
        if self.names is None:
            raise ValueError("only a schema with column names can be restricted; keep it whole")
        names = tuple(self.names[column] for column in columns)
        used_names = set(names)
        # A column of the file stays if any column made of it is used.
        plans = tuple(
            plan for plan in self.columns if plan.is_used and not used_names.isdisjoint(plan.made())
        )
        return Schema(len(names), names, self.first_index, plans, self.origin, self.symbols)


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """The table obs of AnnData, which describes its samples (rows).

    Attributes
    ----------
    names : tuple of str
        Names of the rows.
    header : tuple of str
        Columns of ``obs``.
    cells : callable
        Returns a column by name: floats with NaN for missing values, or text with "".
    layers : tuple of str
        Matrices that can be read in place of X.
    symbols : mapping
        Gene symbols of columns of X, by the names of the columns.
    """

    names: tuple[str, ...]
    header: tuple[str, ...]
    cells: Callable[[str], NDArray[Any]]
    layers: tuple[str, ...]
    symbols: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class DataTable:
    """A data file in memory.

    Attributes
    ----------
    X : array or CSR/CSC matrix (n_samples, n_features)
        Finite floats.
    y : array (n_samples,), optional
        Target as int64, float64 or strings; None if no target was named.
    target_name : str, optional
        Column or key of the target.
    schema : Schema
        Columns of X.
    source : str
        Name of the file.
    groups : array (n_features,), optional
        Number of the column of the file from which each column of X is made; None if they are the
        same.
    ids : tuple of str, optional
        Names of the rows.
    covariates : tuple of int
        Columns of X without penalty.
    rows : array (n_samples,), optional
        Row numbers in the file.
    extras : mapping
        Other numbers of the rows by role, such as "weights", "offset" or "time".
    notes : tuple of str
        Remarks for the user about the reading.
    variants : Variants, optional
        For genotypes: the variants that the first columns of X count.
    samples : Samples, optional
        For genotypes: the content of the .fam file.
    components : Components, optional
        Principal components of genotypes among the covariates, with which new samples are
        projected.
    gaps : tuple of Gap
        The columns of the file whose missing values were filled by those of all rows; fits fill
        them by the values of their own rows.
    """

    X: Any
    y: NDArray[Any] | None
    schema: Schema
    target_name: str | None
    source: str
    groups: NDArray[np.int64] | None = None
    ids: tuple[str, ...] | None = None
    covariates: tuple[int, ...] = ()
    rows: NDArray[np.int64] | None = None
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    variants: Any = None
    samples: Any = None
    components: Any = None
    gaps: tuple[Any, ...] = ()

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the columns of X, or None."""
        return self.schema.names

    def __str__(self) -> str:
        """Return a text on how the file was read, with a line for each of its columns."""
        lines = [f"{plan.name}: {' '.join(cells[1:])}" for plan, cells in self._columns()]
        return "\n".join([self._headline(), *lines, *self.notes])

    def _repr_html_(self) -> str:
        """Return the HTML that notebooks show: how the file was read, as a table."""
        rows = [("column", "kind", "read as", "gaps"), *(cells for _, cells in self._columns())]
        table = "".join(
            f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
            for cells in rows
        )
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<p><b>{html.escape(self._headline())}</b></p><table>{table}</table>{notes}"

    def _headline(self) -> str:
        """Return one line with source, shape and target of the table."""
        target = "" if self.target_name is None else f", target {self.target_name!r}"
        n_rows, n_columns = self.X.shape
        return f"{self.source}: X has {n_rows:,} rows and {n_columns:,} columns{target}"

    def _columns(self) -> list[tuple[Any, tuple[str, ...]]]:
        """Return the first columns of the file, each as a plan (how it was read) and four cells.

        The cells describe it in a table: name, kind, columns made of it, and missing values.
        """
        columns = list[tuple[Any, tuple[str, ...]]]()
        for plan in self.schema.columns[:MOST_SHOWN]:
            made_names = plan.made()
            use = plan.use if not plan.is_used else f"{plan.use}: {', '.join(made_names[:4])}"
            use += f", ... ({len(made_names)} columns)" if len(made_names) > 4 else ""
            gaps = f"{plan.missing} missing" if plan.missing else ""
            columns.append((plan, (plan.name, plan.kind, use, gaps)))
        return columns


@dataclass(frozen=True, slots=True)
class Request:
    """Choices for reading a data file.

    Attributes
    ----------
    target : str, optional
        Column, key or .npy file of the target; None: the default of the format.
    schema : Schema, optional
        Columns that a model knows; None: all columns.
    missing : bool
        Whether X may contain NaN, which the caller fills in.
    layer : str, optional
        Layer of AnnData to read as X.
    """

    target: str | None = None
    schema: Schema | None = None
    missing: bool = False
    layer: str | None = None


def finite_matrix(X: Any, path: Path, missing: bool = False) -> Any:
    """Return X, dense or sparse, as float32 or float64; refuse values that are not finite.

    A sparse X becomes a CSR or CSC matrix. ``path`` is the file, for messages. ``missing`` allows
    NaN.
    """
    if 0 in X.shape:
        raise ValueError(f"{path} has shape {X.shape}: it is empty")
    if bool(sp.issparse(X)):
        container = sp.csr_matrix if X.format == "csr" else sp.csc_matrix
        return container((finite_values(X.data, path, missing), X.indices, X.indptr), shape=X.shape)
    return finite_values(X, path, missing)


def sparse_size(path: object, shape: tuple[int, int], entries: int, rows_bound: int) -> None:
    """Refuse a sparse matrix with far more columns than entries, or with more than int64 can count.

    Fits make vectors over all columns, so that one wrong index could take all memory.

    Parameters
    ----------
    path : Path
        File to name in messages.
    shape : (int, int)
        Rows and columns.
    entries : int
        Number of stored entries.
    rows_bound : int
        Largest row or column number to expect; int64 must be able to hold it.
    """
    # Sizes below 2^62 leave room for small factors in int64.
    n_rows, n_columns = shape
    if n_rows < 0 or n_columns < 0 or rows_bound >= 2**62:
        raise ValueError(f"{path} is a broken sparse matrix: its shape is {n_rows} x {n_columns}")
    limit = max(LIMITS.sparse_columns, LIMITS.unpacked * entries)
    if n_columns > limit:
        raise ValueError(
            f"{path} has {n_columns:,} columns and {entries:,} entries that are not zero: is an "
            f"index wrong? At most {limit:,} columns are read with so few entries"
        )
    fits(path, "vectors over its columns", 8 * LIMITS.copies * n_columns)


def finite_values(values: NDArray[Any], path: Path, missing: bool = False) -> NDArray[Any]:
    """Return entries of X as float32 or float64; refuse values that are no finite real numbers.

    ``path`` is the file, for messages. ``missing`` allows NaN.
    """
    if values.dtype.kind not in "biuf":
        raise ValueError(f"X of {path} has type {values.dtype}; expected real numbers")
    # Half precision becomes single precision, integers become double precision.
    is_low_precision = values.dtype in (np.float32, np.float16)
    values = values.astype(np.float32 if is_low_precision else np.float64, copy=False)
    # A finite sum proves that every term is finite, and takes no memory. An infinite sum of finite
    # terms (overflow) passes the full check below.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return values
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        first = np.unravel_index(int(np.argmax(bad)), values.shape)
        position = (
            f"row {first[0]}, column {first[1]} (counting from 0)"
            if len(first) == 2
            else f"stored entry {first[0]}"
        )
        raise ValueError(
            f"X of {path} has {int(bad.sum())} values that are NaN or infinite, the first at "
            f"{position}; fill them in, or drop those samples"
        )
    return values


def tidy_target(values: NDArray[Any], where: str, missing: bool = False) -> NDArray[Any]:
    """Return the target ``values`` as int64 if all numbers are whole, else as float64.

    The result is (n_samples,). Strings are kept. ``where`` names the target in messages. NaN and
    infinite numbers raise ValueError; ``missing`` allows NaN.
    """
    if values.ndim == 2 and 1 in values.shape:
        values = values.ravel()
    if values.ndim != 1:
        raise ValueError(f"{where} has shape {values.shape}; expected one target per sample")
    if values.dtype.kind in "OUS":
        return values.astype(np.str_)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{where} has type {values.dtype}; expected numbers or strings")
    numbers = values.astype(np.float64)
    bad = np.isinf(numbers) if missing else ~np.isfinite(numbers)
    if bad.any():
        raise ValueError(
            f"{where} has {int(bad.sum())} values that are NaN or infinite, the first for sample "
            f"{int(np.argmax(bad))} (counting from 0); drop those samples or fill them in"
        )
    # Larger whole numbers are not exact in float64.
    if np.all(numbers == np.rint(numbers)) and np.all(np.abs(numbers) < 2.0**53):
        return numbers.astype(np.int64)
    return numbers
