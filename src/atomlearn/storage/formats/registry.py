"""The table of file formats, and read_table, which reads any of them.

A new format is its reader in a file of its own and one line in ``FORMATS``. It is then read by
``read_table``, ``convert``, ``atomlearn select`` and ``atomlearn predict``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from os import PathLike
from pathlib import Path

from atomlearn.storage.formats import hdf, in_place, matlab, pgen
from atomlearn.storage.formats.arrays import read_npy, read_npz
from atomlearn.storage.formats.compressed import first_line, suffix_of
from atomlearn.storage.formats.delimited import DelimitedRows, looks_delimited, read_delimited
from atomlearn.storage.formats.flat import open_npy, open_npz
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.libsvm import LibsvmRows, looks_like_libsvm, read_libsvm
from atomlearn.storage.formats.parquet import ParquetColumns
from atomlearn.storage.formats.table import DataTable, Request, Schema, near_names
from atomlearn.storage.intake import tables
from atomlearn.storage.intake.strict import read_as_table
from atomlearn.storage.intake.text import read_text
from atomlearn.storage.store.on_disk import OnDisk
from atomlearn.storage.store.plink import PlinkBed

#: A folder is a column store.
STORE = Format(
    "a column store",
    read=in_place.read_store,
    open=OnDisk,
    names=in_place.names_of_store,
    in_place=True,
)
FORMATS = (
    Format("npz", (".npz",), read_npz, open_npz),
    Format("npy", (".npy",), read_npy, open_npy),
    Format(
        "libsvm",
        (".libsvm", ".svm", ".svmlight"),
        read_libsvm,
        LibsvmRows,
        recognizes=lambda suffix, line: looks_like_libsvm(line),
    ),
    Format(
        "delimited",
        (".csv", ".tsv", ".tab"),
        read_delimited,
        DelimitedRows,
        frame=lambda path, form, sheet: read_text(path, form),
        recognizes=looks_delimited,
        named=True,
    ),
    Format(
        "parquet",
        (".parquet", ".pq"),
        stream=ParquetColumns,
        frame=lambda path, form, sheet: tables.read_parquet(path),
        named=True,
    ),
    Format(
        "arrow",
        (".arrow", ".feather", ".ipc"),
        read=partial(read_as_table, lambda path: tables.read_arrow(path)),
        frame=lambda path, form, sheet: tables.read_arrow(path),
        named=True,
    ),
    Format(
        "excel",
        (".xlsx", ".xlsm"),
        read=partial(read_as_table, lambda path: tables.read_excel(path)),
        frame=lambda path, form, sheet: tables.read_excel(path, sheet),
        named=True,
    ),
    Format("mat", (".mat",), matlab.read_mat),
    Format(
        "h5ad",
        (".h5ad",),
        stream=hdf.open_h5ad,
        open=hdf.read_matrix,
        names=hdf.names_of_h5ad,
    ),
    Format(
        "bed",
        (".bed",),
        in_place.read_bed,
        in_place.BedColumns,
        PlinkBed,
        in_place.names_of_bed,
        in_place=True,
    ),
    Format(
        "pgen",
        (".pgen",),
        pgen.read_pgen,
        pgen.columns_of_pgen,
        pgen.open_pgen,
        pgen.names_of_pgen,
        in_place=True,
    ),
)


def format_of(path: str | PathLike[str]) -> Format:
    """Return the format of a file or folder, by its ending, else by its first line.

    Raises
    ------
    FileNotFoundError, ValueError
        Where there is no such file, it is empty, or its format is not known.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from atomlearn.storage.formats.registry import format_of
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "counts.txt"
    >>> _ = file.write_text("1 3:2.5 7:1\\n")
    >>> format_of(file).name
    'libsvm'
    """
    file = Path(path)
    if file.is_dir():
        return STORE
    if file.exists() and not file.is_file():
        raise ValueError(f"{file} is no file but a pipe or a device; write its content to a file")
    if not file.is_file():
        siblings = [entry.name for entry in file.parent.iterdir()] if file.parent.is_dir() else []
        hint = near_names(file.name, siblings)
        raise FileNotFoundError(
            f"there is no file {file}" + (hint if hint.startswith("; did you mean") else "")
        )
    if file.stat().st_size == 0:
        raise ValueError(f"{file} is empty")
    suffix = suffix_of(file)
    for form in FORMATS:
        if suffix in form.suffixes:
            return form
    # Files of these endings hold no plain table, whatever their first line looks like.
    refused = suffix in (".xls", ".json", ".zip", ".pkl", ".vcf", ".bgen")
    try:
        line = "" if refused else first_line(file)
    except UnicodeDecodeError:
        line = ""
    for form in FORMATS:
        if form.recognizes is not None and form.recognizes(suffix, line):
            return form
    if suffix in (".vcf", ".bgen", ".bcf"):
        raise ValueError(
            f"{suffix} files are not read; make a .bed of it: plink2 --{suffix[1:]} {file.name} "
            "--make-bed --out study, and give study.bed"
        )
    raise ValueError(
        f"the format of {file} is not known; expected one of the endings "
        f"{', '.join(suffix for form in FORMATS for suffix in form.suffixes)}. Convert it, or "
        "rename it to the ending of its format"
    )


def read_table(
    path: str | PathLike[str],
    target: str | None = None,
    *,
    schema: Schema | None = None,
    exclude: Sequence[str] = (),
) -> DataTable:
    """Return X, y and the names of the columns of a data file, read into memory.

    Parameters
    ----------
    path : file
        The format follows from the ending (.csv, .tsv, .tab; .libsvm, .svm, .svmlight; .npz;
        .npy; .parquet; .arrow, .feather; .xlsx; .mat; .h5ad), else from the
        first line. Text may be compressed (.gz, .bz2, .xz).
    target : str, optional
        The column of a CSV or Parquet file; the key of an .npz ("y" by default, where there is
        one); ``last``, the number of a column, or another .npy file for an .npy; the column of
        obs, or another .npy file, for an .h5ad. A libsvm file implies it.
    schema : Schema, optional
        That of the table a model was fitted to: X gets the same columns in the same order. CSV
        columns are found by name, so the file may have others besides.
    exclude : names of columns of a CSV or Parquet file to leave out of X.

    Text columns of a CSV with at most 20 distinct values become one column ``name=value`` for
    each value, and for two values one column for the second in alphabetical order.

    Raises
    ------
    FileNotFoundError, ValueError
        With the line and the column of the first fault, and a remedy. Missing values are refused,
        never filled in.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from atomlearn.datasets import read_table
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("age,smoker,ill\\n61,yes,1\\n35,no,0\\n")
    >>> table = read_table(file, "ill")
    >>> table.feature_names, table.X.tolist(), table.y.tolist()
    (('age', 'smoker=yes'), [[61.0, 1.0], [35.0, 0.0]], [1, 0])
    """
    file, request = Path(path), Request(target, schema, tuple(exclude))
    form = format_of(file)
    if form.in_place:
        what = "a directory" if file.is_dir() else "not read into memory"
        raise ValueError(
            f"{file} is {what}; pass the path itself to an estimator or `atomlearn select`, which "
            f"use it where it lies (`atomlearn convert` makes a store of a file)"
        )
    table = form.table(file, request)
    if schema is not None:
        _check_columns(table, schema)
    return table


def _check_columns(table: DataTable, schema: Schema) -> None:
    """Refuse a table whose columns are not those that a model was fitted to."""
    names, width = table.schema.names, table.X.shape[1]
    other_names = bool(schema.names and names and names != schema.names)
    if width != schema.n_features or other_names:
        difference = "other column names" if width == schema.n_features else f"{width} columns"
        raise ValueError(
            f"{table.source} has {difference}; the model was fitted to {schema.n_features} columns"
        )
