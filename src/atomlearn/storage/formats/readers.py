"""read_table: one data file, whatever its format."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from atomlearn.storage.formats.arrays import read_npy, read_npz
from atomlearn.storage.formats.compressed import first_line
from atomlearn.storage.formats.delimited import read_delimited
from atomlearn.storage.formats.libsvm import looks_like_libsvm, read_libsvm
from atomlearn.storage.formats.table import DataTable, Schema, near_names

_DELIMITED = (".csv", ".tsv", ".tab")
_LIBSVM = (".libsvm", ".svm", ".svmlight")
_COMPRESSED = (".gz", ".bz2", ".xz")
_CONVERTED = {".parquet": "parquet", ".bed": "bed", ".h5ad": "h5ad"}
_REFUSED = (".xlsx", ".xls", ".json", ".mat", ".zip", ".pkl")


def read_table(
    path: str | PathLike[str],
    target: str | None = None,
    *,
    schema: Schema | None = None,
    exclude: Sequence[str] = (),
) -> DataTable:
    """Return X, y and the names of the columns from a CSV, TSV, libsvm, .npz or .npy file.

    Parameters
    ----------
    path : file
        The format follows from the ending (.csv, .tsv, .tab; .libsvm, .svm, .svmlight; .npz;
        .npy), else from the first line. Text may be compressed (.gz, .bz2; CSV also .xz).
    target : str, optional
        The column of a CSV; the key of an .npz ("y" by default, where there is one); ``last``,
        the number of a column, or another .npy file for an .npy. A libsvm file implies it.
    schema : Schema, optional
        That of the table a model was fitted to: X gets the same columns in the same order. CSV
        columns are found by name, so the file may have others besides.
    exclude : names of CSV columns to leave out of X.

    Text columns of a CSV with at most 20 distinct values become one column ``name=value`` for
    each value, and for two values one column for the second in alphabetical order.

    Raises
    ------
    FileNotFoundError, ValueError
        With the line and the column of the first fault, and a remedy. Missing values are refused,
        never filled in.
    """
    file = Path(path)
    if file.is_dir():
        raise ValueError(f"{file} is a directory; expected a data file")
    if not file.is_file():
        siblings = [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else []
        hint = near_names(file.name, siblings)
        raise FileNotFoundError(
            f"there is no file {file}" + (hint if hint.startswith("; did you mean") else "")
        )
    if file.stat().st_size == 0:
        raise ValueError(f"{file} is empty")
    kind = format_of(file)
    if kind in _CONVERTED.values():
        raise ValueError(
            f"{file} is not read as a table; convert it with `atomlearn convert {file} NAME.store`"
            ", which estimators and `atomlearn select` take as it is"
        )
    if exclude and kind != "delimited":
        raise ValueError(f"only CSV columns can be excluded by name; {file} is {kind}")
    if kind == "npz":
        return read_npz(file, target, schema)
    if kind == "npy":
        return read_npy(file, target, schema)
    if kind == "libsvm":
        return read_libsvm(file, target, schema)
    return read_delimited(file, target, schema, exclude)


def format_of(file: Path) -> str:
    """Return "npz", "npy", "libsvm", "delimited", "parquet", "bed" or "h5ad"; else ValueError."""
    suffixes = [suffix.lower() for suffix in file.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    suffix = suffixes[-1] if suffixes else ""
    if suffix in (".npz", ".npy"):
        return suffix[1:]
    if suffix in _CONVERTED:
        return _CONVERTED[suffix]
    if suffix in _LIBSVM:
        return "libsvm"
    if suffix in _DELIMITED:
        return "delimited"
    if suffix not in _REFUSED:
        try:
            line = first_line(file)
        except UnicodeDecodeError:
            line = ""
        if looks_like_libsvm(line):
            return "libsvm"
        if suffix in (".txt", ".dat", ".data") and any(mark in line for mark in ",\t;"):
            return "delimited"
    raise ValueError(
        f"the format of {file} is not known; expected CSV or TSV (.csv, .tsv), libsvm (.libsvm, "
        ".svm), .npz or .npy. Convert it, or rename it to the ending of its format"
    )
