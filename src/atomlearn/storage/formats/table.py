"""DataTable and Schema: what a data file holds, and how to read the next one like it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from atomlearn.storage.formats.held import LIMITS, fits


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of X: enough to read another file into the same columns.

    n_features : number of columns; names : their names, None where the file has none (they are
    then called x0, x1, ... counting from ``first_index``, which is 1 for a libsvm file that counts
    from one); columns : what each column of the file is and what is made of it (``ColumnPlan``),
    where that is known; origin : of AnnData the "layer", what "pseudobulk" pools by, and what the
    "values" look like.
    """

    n_features: int
    names: tuple[str, ...] | None = None
    first_index: int = 0
    columns: tuple[Any, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)

    def name(self, column: int) -> str:
        """Return the name of a column of X."""
        return f"x{column + self.first_index}" if self.names is None else self.names[column]

    def restricted_to(self, columns: Sequence[int] | NDArray[np.int64]) -> Schema:
        """Return the schema of these columns only: enough for a model that uses no others.

        Only named columns can be read without the rest, so a schema without names is refused.
        """
        if self.names is None:
            raise ValueError("only a schema with column names can be restricted; keep it whole")
        names = tuple(self.names[column] for column in columns)
        kept = set(names)
        plans = tuple(
            plan for plan in self.columns if plan.is_used and not kept.isdisjoint(plan.made())
        )
        return Schema(len(names), names, self.first_index, plans, self.origin)


@dataclass(frozen=True, slots=True, eq=False)
class Observations:
    """The rows of AnnData.

    names : of the rows; header : the columns of ``obs``; cells : name -> the column, floats with
    NaN or text with "" where it is missing; layers : what may be read in place of X.
    """

    names: tuple[str, ...]
    header: tuple[str, ...]
    cells: Callable[[str], NDArray[Any]]
    layers: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class DataTable:
    """A data file in memory.

    X : (n_samples, n_features) float array or CSR/CSC matrix, all finite; y : (n_samples,) as the
    file has it (int64, float64 or strings), None where no target was asked for; target_name : the
    column or key it came from; schema : the columns of X; source : the file. What ``read`` adds:
    groups : (n_features,) the column of the file that each column of X is made of, None where each
    is its own; ids : names of the rows; covariates : columns of X that no penalty is to touch;
    rows : (n_samples,) their places in the file; extras : other numbers of the rows, by role
    ("weights", "offset", "time", ...); notes : what was done that one should know; variants : of
    genotypes, what the leading columns of X count (``designs.Variants``); samples : of genotypes,
    what the .fam says of the rows.
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

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the columns of X, None where the file has none."""
        return self.schema.names


@dataclass(frozen=True, slots=True)
class Request:
    """What is asked of a data file.

    target : the column, key or .npy file of the target, None for the one that the format implies;
    schema : the columns that a model knows, None for all;
    missing : whether X may have NaN, for whoever fills them in; layer : what of AnnData is X.
    """

    target: str | None = None
    schema: Schema | None = None
    missing: bool = False
    layer: str | None = None


def finite_matrix(X: Any, path: Path, missing: bool = False) -> Any:
    """Return a dense or sparse matrix as float32 or float64; refuse what is not a finite number.

    ``missing``: NaN may stay.
    """
    if 0 in X.shape:
        raise ValueError(f"{path} has shape {X.shape}: it is empty")
    if bool(sp.issparse(X)):
        container = sp.csr_matrix if X.format == "csr" else sp.csc_matrix
        return container((finite_values(X.data, path, missing), X.indices, X.indptr), shape=X.shape)
    return finite_values(X, path, missing)


def sparse_size(path: object, shape: tuple[int, int], entries: int, rows_bound: int) -> None:
    """Refuse a sparse matrix of far more columns than it has entries, or of more than int64.

    Fits make vectors over all columns; a wrong index in a file of a line asks for all of memory.
    rows_bound : the larger side, where sides are stored.
    """
    n_rows, n_columns = shape
    if n_rows < 0 or n_columns < 0 or rows_bound >= 2**62:
        raise ValueError(f"{path} is a broken sparse matrix: its shape is {n_rows} x {n_columns}")
    most = max(LIMITS.sparse_columns, LIMITS.unpacked * entries)
    if n_columns > most:
        raise ValueError(
            f"{path} has {n_columns:,} columns and {entries:,} entries that are not zero: is an "
            f"index wrong? At most {most:,} columns are read with so few entries"
        )
    fits(path, "vectors over its columns", 8 * LIMITS.copies * n_columns)


def finite_values(values: NDArray[Any], path: Path, missing: bool = False) -> NDArray[Any]:
    """Return entries of X as float32 or float64; refuse what is not a finite real number.

    ``missing``: NaN may stay.
    """
    if values.dtype.kind not in "biuf":
        raise ValueError(f"X of {path} has type {values.dtype}; expected real numbers")
    # Half precision is read as single, whole numbers as double.
    single = values.dtype in (np.float32, np.float16)
    values = values.astype(np.float32 if single else np.float64, copy=False)
    # A sum is finite only if every term is, and needs no temporary; overflow is looked at again.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return values
    bad = np.isinf(values) if missing else ~np.isfinite(values)
    if bad.any():
        first = np.unravel_index(int(np.argmax(bad)), values.shape)
        where = (
            f"row {first[0]}, column {first[1]} (counting from 0)"
            if len(first) == 2
            else f"stored entry {first[0]}"
        )
        raise ValueError(
            f"X of {path} has {int(bad.sum())} values that are NaN or infinite, the first at "
            f"{where}; fill them in, or drop those samples"
        )
    return values


def tidy_target(values: NDArray[Any], where: str, missing: bool = False) -> NDArray[Any]:
    """Return a target as int64 where all numbers are whole, else float64, or strings as they are.

    Raises ValueError where a number is NaN or infinite; where ``missing``, NaN may stay.
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
    if np.all(numbers == np.rint(numbers)) and np.all(np.abs(numbers) < 2.0**53):
        return numbers.astype(np.int64)
    return numbers
