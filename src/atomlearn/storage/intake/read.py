"""read: return X and y of any data file, with its columns interpreted and described."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn._support import is_anndata, refuse_unknown
from atomlearn.storage.formats.format import Format, MatrixColumns
from atomlearn.storage.formats.held import enough, refuse_changed, within
from atomlearn.storage.formats.table import DataTable
from atomlearn.storage.intake.annotated import of_anndata
from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.columns import ROLES
from atomlearn.storage.intake.frame import Frame, TableFile, transposed
from atomlearn.storage.intake.matrices import matrix_table, read_matrix
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.registry import format_of
from atomlearn.storage.intake.tables import encoded_table
from atomlearn.storage.intake.typed import frame_of

#: An option in a message, with the next word as its value, unless this word is of the sentence.
_OPTION = re.compile(
    r"--(?P<name>[a-z]+(?:-[a-z]+)*)(?:[ =](?!(?:for|or|and|says|what|keeps|are|to|asks)\b)"
    r"(?P<value>(?:'[^']*'|\"[^\"]*\"|[^\s();'\"])+))?"
)


def read(path: str | PathLike[str] | Any, target: str | None = None, **options: Any) -> DataTable:
    """Return X and y of a data file or a data frame, as the command line reads it.

    Parameters
    ----------
    path : file, folder of a column store, data frame (pandas, polars, Arrow), or AnnData
        CSV, TSV and other delimited text (delimiter, decimal mark, encoding and compression are
        detected), Excel, Parquet, Arrow, Feather, Stata, SPSS and SAS files, ARFF, JSON lines,
        BIOM, series matrices of GEO, libsvm, .npz, .npy, .mat, AnnData .h5ad and
        .zarr, 10x .h5, PLINK .bed and .pgen, column stores.
    target : str, optional
        The column (or key, or .npy file) to predict. Rows without a target are left out.
    **options
        As on the command line, with _ for -: missing ("refuse", "median", "indicator", "drop"), id,
        drop, covariates, roles, pheno, pheno_name, covar, transpose, sheet, form, text, dates,
        categories, keep_codes, schema, names, layer, pseudobulk, memory_limit (bytes; larger files
        are refused: convert them into a column store first, by ``convert``); for text files
        delimiter, decimal, encoding, header, header_row, na, limits; and columns for weights,
        offset, exposure, time, event, split, rows_of, order.

    Returns
    -------
    DataTable
        With ``schema.columns``, the plan of each column of the file, and ``notes``, remarks for the
        user. With ``time`` and ``event``, y is None and both are in ``extras``: the target is
        ``losses.survival_target(table.extras["event"], table.extras["time"])``.

    Raises
    ------
    FileNotFoundError, ValueError
        With all faults in one message, and their remedies.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from atomlearn.datasets import read
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = file.write_text("dose;smoker;ill\\n1,5;yes;1\\n;no;0\\n2,5;no;1\\n")
    >>> table = read(file, "ill", missing="median")
    >>> table.feature_names, table.X.tolist(), table.y.tolist()
    (('dose', 'smoker=yes'), [[1.5, 1.0], [2.0, 0.0], [2.5, 0.0]], [1, 0, 1])
    """
    # Options for text files and for roles may be given directly, next to those of Reading. ROLES
    # maps each role of a column to the help text of its option. The roles without a help text,
    # "target" and "id", are no such options: ``target`` is a parameter, and ``id`` one of Reading.
    names_of_options = [field.name for field in fields(Reading)]
    text = {field.name for field in fields(TextForm)} & options.keys()
    roles = {role for role, help_text in ROLES.items() if help_text} & options.keys()
    refuse_unknown("datasets.read", {*options} - text - roles, [*names_of_options, *text, *roles])
    if text:
        form = options.pop("form", TextForm())
        options["form"] = replace(form, **{name: options.pop(name) for name in text})
    if roles:
        role_columns = options.pop("roles", {})
        options["roles"] = role_columns | {role: options.pop(role) for role in roles}
    # Errors and notes are written for the command line, so their options are renamed.
    try:
        table = read_as(path, Reading(target=target, **options))
    except ValueError as error:
        raise ValueError(in_python(str(error))) from error
    return replace(table, notes=tuple(map(in_python, table.notes)))


def in_python(text: str) -> str:
    """Return the message ``text`` with parameters of ``read`` in place of command line options.

    For example, "type --missing median" becomes "type missing='median'".
    """
    # Default values show which options take no value, and which take several.
    defaults = {field.name: field.default for kind in (Reading, TextForm) for field in fields(kind)}
    defaults |= dict.fromkeys(ROLES)

    def parameter(match: re.Match[str]) -> str:
        """Return a matched option as a parameter; unchanged if ``read`` does not have it."""
        name = match["name"].replace("-", "_")
        value = "".join(shlex.split(match["value"] or ""))
        if name == "no_header":
            return "header=False"
        if name not in defaults:
            return match[0]
        if defaults[name] is False:
            return f"{name}=True"
        setting = value.split(",") if value and defaults[name] == () else value
        return f"{name}={setting!r}" if value else f"{name}="

    return _OPTION.sub(parameter, text)


def read_as(path: Any, reading: Reading) -> DataTable:
    """Return the table of ``path``, read as ``reading`` says, within its limit of memory.

    ``path`` is a file, a data frame or an AnnData object.
    """
    with within(reading.memory_limit), enough(path):
        return _read(path, reading)


def _read(path: Any, reading: Reading) -> DataTable:
    """Return the table of ``path``, read as ``reading`` says, without a limit of memory.

    Matrices and tables are read by different functions: the columns of a table have to be
    interpreted first, as numbers, categories or dates.
    """
    if is_anndata(path):
        matrix, rows = of_anndata(path, reading.layer)
        return matrix_table(matrix, reading, rows)
    # A data frame in memory has no file format.
    file_format = format_of(path) if isinstance(path, str | PathLike) else None
    refuse_layers(file_format, path, reading)
    if file_format is None:
        return encoded_table(frame_of(path).tidied(reading.text_form()), reading, None)
    file = Path(path)
    status = file.stat()
    if file_format.cells is None:
        table = read_matrix(file_format, file, reading)
    else:
        table = read_table(file_format.cells(file, reading.text_form(), reading.sheet), reading)
    refuse_changed(file, status)
    return table


def refuse_layers(form: Format | None, path: Any, reading: Reading) -> None:
    """Refuse the options layer and pseudobulk of ``reading`` for data that are no AnnData.

    ``form`` is the format of the file ``path``, or None for a data frame.
    """
    if (reading.layer or reading.pseudobulk) and (form is None or form.rows is None):
        subject = "this table" if form is None else path
        raise ValueError(
            f"--layer and --pseudobulk are for AnnData, and {subject} is none; leave them out"
        )


def framed(file: TableFile, reading: Reading) -> tuple[Frame, list[str] | None]:
    """Return the cells of an open table file, a row for each sample, and the row names or None.

    The table is transposed if ``reading`` says so, and then the names of its columns are known.
    """
    frame = file.frame()
    return transposed(frame) if reading.transpose and file.transposes else (frame, None)


def read_table(file: TableFile, reading: Reading) -> DataTable:
    """Return the table of an open file whose columns are interpreted as ``reading`` says."""
    frame, ids = framed(file, reading)
    return encoded_table(frame, reading, ids)


def table_columns(
    form: Format, path: Path, reading: Reading
) -> tuple[MatrixColumns, tuple[str, ...]]:
    """Return the encoded columns of a table file as a source for ``convert``, and notes.

    ``form`` is the format of the file ``path``, and ``reading`` has the choices of the user. The
    source names the narrowest type that holds the numbers of all columns in the file.
    """
    assert form.cells is not None
    status = path.stat()
    file = form.cells(path, reading.text_form(), reading.sheet)
    table = read_table(file, reading)
    refuse_changed(path, status)
    # Imputed values, such as a median of integers, need float64.
    dtypes = [
        file.dtypes.get(plan.name, np.float64) if plan.fill is None else np.float64
        for plan in table.schema.columns
        if plan.is_used
    ]
    return MatrixColumns(table.X, table.schema, table.y, np.result_type(*dtypes)), table.notes
