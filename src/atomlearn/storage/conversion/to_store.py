"""convert: write any data file as a column store, in one pass and in limited memory."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from atomlearn._support import own_parameters
from atomlearn.storage.conversion.journal import PIECES, Workplace
from atomlearn.storage.conversion.transpose import Transposition
from atomlearn.storage.conversion.writer import StoreWriter
from atomlearn.storage.formats.format import ColumnSource, Format, MatrixColumns, RowSource
from atomlearn.storage.formats.held import refuse_changed, within
from atomlearn.storage.formats.table import Request
from atomlearn.storage.intake.read import read_as, table_columns
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.registry import format_of
from atomlearn.storage.store.encoding import encode_values
from atomlearn.storage.store.store_file import VALUE_TYPES, Manifest, read_manifest


@dataclass(frozen=True, slots=True)
class Conversion:
    """A store that was written.

    Attributes
    ----------
    path : Path
        Folder of the store.
    shape : (int, int)
        Rows and columns.
    layout : {"dense", "csc", "genotypes"}
        How the values are stored.
    dtype : str
        Type of the values.
    n_bytes : int
        Bytes of the values.
    resumed : bool
        Whether the work of an earlier run was used.
    notes : tuple of str
        Remarks on reading the file.
    """

    path: Path
    shape: tuple[int, int]
    layout: str
    dtype: str
    n_bytes: int
    resumed: bool
    notes: tuple[str, ...]


@own_parameters
def convert(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    target: str | None = None,
    drop: Sequence[str] = (),
    dtype: str = "auto",
    memory: int = 2**30,
) -> Conversion:
    """Write the column store ``out`` of a data file, to be read as ``designs.OnDisk(out)``.

    Parameters
    ----------
    source : file
        libsvm, CSV or TSV (also .gz, .bz2, .xz), .npy, .npz, Parquet, PLINK .bed, AnnData .h5ad.
    out : folder
        Must not exist. It appears when everything is written; until then the files are in
        ``out.partial``. A conversion that was killed resumes there when it is started again.
    target : str, optional
        Where the target y is. It is a column of a CSV or Parquet file, a key of an .npz ("y" by
        default), a column of obs of an .h5ad, or an .npy file if the source is an .npy. It is kept
        as ``OnDisk.target``. Labels of libsvm files and phenotypes of .fam files are always kept.
    drop : sequence of str
        Names of CSV or Parquet columns to leave out.
    dtype : {"auto", "float64", "float32", "float16", "int8", "genotype"}
        Type of the values. "auto" keeps float32, float16, int8 and PLINK's genotypes; other small
        integers become float32, everything else float64. "genotype" packs 0, 1, 2 and missing into
        two bits.
    memory : int
        Bytes of working memory, in addition to a vector over the samples and a few over the
        columns.

    Returns
    -------
    Conversion

    Raises
    ------
    ValueError, OSError
        The message has the place of the first fault and a remedy. After an OSError, such as a full
        disk, the work so far is kept for a second attempt.

    Notes
    -----
    Rows become columns by two passes over temporary files of the size of the store; the source
    itself is read once. Sources that have columns are copied in pieces.
    """
    return convert_as(source, out, Reading(target=target, drop=tuple(drop)), dtype, memory)


def convert_as(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    reading: Reading,
    dtype: str,
    memory: int,
) -> Conversion:
    """Write the column store ``out`` of the data file ``source``, and return its description.

    ``reading`` has the choices of how the file is read (target, missing values, names), ``dtype``
    is the type of the stored values or "auto", and ``memory`` is in bytes. The command line calls
    this function, which takes more choices than ``convert``.
    """
    file = Path(source)
    folder = Path(out)
    _check(file, folder, dtype, memory)
    file_format = format_of(file)
    # Size and time of the file: if they change during the conversion, the store is refused.
    status = file.stat()
    with within(memory):
        opened, notes = _open_source(file_format, file, reading)
    kind = _kind(opened, dtype)
    # Only a run with the same file and options may resume the work of a killed one.
    fingerprint = {
        "source": str(file.resolve()),
        "bytes": status.st_size,
        "modified": status.st_mtime_ns,
        "target": reading.target,
        "drop": list(reading.drop),
        "dtype": kind,
        "version": 1,
    }
    with Workplace(folder, fingerprint) as work:
        # An earlier run may have been killed after it had written all files, before the renaming.
        if work.is_complete:
            manifest = read_manifest(work.folder)
        elif isinstance(opened, ColumnSource):
            manifest = _copy(opened, work, kind, memory, file.name)
        else:
            manifest = _transpose(opened, work, kind, memory, file.name)
        refuse_changed(file, status)
        work.finish()
        n_bytes = manifest.sizes()["values.bin"]
        shape = manifest.n_samples, manifest.n_features
        stored = (folder, shape, manifest.layout, manifest.dtype, n_bytes)
        return Conversion(*stored, work.resumed, tuple(notes))


def _check(file: Path, folder: Path, dtype: str, memory: int) -> None:
    """Raise ValueError unless a conversion from ``file`` to ``folder`` can begin.

    The source must be a file, the folder must be new, ``dtype`` must be a type of stores, and
    ``memory`` a positive number of bytes.
    """
    if file.is_dir():
        raise ValueError(f"{file} is a directory; expected a data file")
    if folder.exists():
        raise ValueError(f"{folder} exists; remove it, or give another name")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"there is no folder {folder.absolute().parent}; make it first")
    if dtype not in ("auto", *VALUE_TYPES):
        raise ValueError(f"dtype must be 'auto' or one of {VALUE_TYPES}, got {dtype!r}")
    if memory < 1:
        raise ValueError(f"memory must be a number of bytes, got {memory}")


def _open_source(
    file_format: Format, file: Path, reading: Reading
) -> tuple[RowSource | ColumnSource, Sequence[str]]:
    """Return the data of a file as a source that is read in pieces, and remarks on reading it.

    ``file_format`` is the format of ``file``. Tables are encoded column by column. Other files are
    read whole if ``reading`` has a choice that changes values or their order, and else in pieces.
    """
    if file_format.cells is not None:
        return table_columns(file_format, file, reading)
    # These choices need the values of the whole file.
    if (
        reading.text
        or reading.missing != "refuse"
        or reading.transpose
        or reading.dates
        or reading.schema
        or reading.names
        or reading.sheet
        or reading.layer
    ):
        table = read_as(file, reading)
        return MatrixColumns(table.X, table.schema, table.y), table.notes
    if reading.drop:
        raise ValueError(
            f"columns of {file_format.name} files cannot be excluded by name; leave that out of "
            f"{file}, or write it as CSV, whose columns have names"
        )
    source = file_format.source(file, Request(reading.target))
    # Files with facts about their rows (AnnData) also have a symbol for each gene.
    if file_format.rows is not None:
        source.about = replace(source.about, symbols=file_format.rows(file).symbols)
    return source, ()


def _kind(source: RowSource | ColumnSource, dtype: str) -> str:
    """Return the type of the values in the store: ``dtype``, or that of the source for "auto".

    For "auto" it is the smallest of the types of stores that represents each value of the source
    type exactly, or float64 if none does. Genotypes that the source has packed stay packed.
    """
    if source.packed:
        if dtype not in ("auto", "genotype"):
            raise ValueError(f"genotypes of a .bed stay two bits each, got dtype={dtype!r}")
        return "genotype"
    if dtype == "genotype" and source.about.sparse:
        raise ValueError("two-bit genotypes are dense: convert a dense file, or choose int8")
    if dtype != "auto":
        return dtype
    # "auto": float types and bytes are kept; integers become float32 if it holds all of them.
    source_dtype = source.about.dtype
    if source_dtype.kind == "f" and source_dtype.itemsize <= 8:
        return str(source_dtype.newbyteorder("=").name)
    if source_dtype == np.int8 or source_dtype == np.bool_:
        return "int8"
    return "float32" if np.can_cast(source_dtype, np.float32, "safe") else "float64"


def _copy(source: ColumnSource, work: Workplace, kind: str, memory: int, name: str) -> Manifest:
    """Write a column-major source to the store, one group of columns after the other.

    ``work`` is the folder of the conversion, ``kind`` the type of the stored values, ``memory`` the
    number of bytes to use, and ``name`` the file name of the source. Returns the manifest (shape,
    layout and checksums) of the store.
    """
    writer = StoreWriter(work, source.shape[0], kind, source.about.sparse)
    # A group takes a part of the memory: its encoded copy needs memory too.
    for start, stop in pairwise(source.widths(max(memory // PIECES, 1)).tolist()):
        group = source.columns(start, stop)
        if source.about.sparse:
            # Entries need their row and column, which messages about unfit values give.
            group.sum_duplicates()
            columns = np.repeat(np.arange(start, stop), np.diff(group.indptr))
            values = encode_values(group.data, kind, group.indices, columns)
            writer.entries(values, group.indices, group.indptr.astype(np.int64))
        elif source.packed:
            writer.packed(group)
        else:
            writer.dense(encode_values(group, kind, 0, start))
    facts = source.about
    return writer.finish(
        facts.names, source.target(), name, plans=facts.plans, symbols=facts.symbols
    )


def _transpose(source: RowSource, work: Workplace, kind: str, memory: int, name: str) -> Manifest:
    """Write a row-major source to the store by external transposition, see ``Transposition``.

    ``work`` is the folder of the conversion, ``kind`` the type of the stored values, ``memory`` the
    number of bytes to use, and ``name`` the file name of the source. Returns the manifest of the
    store.
    """
    # First pass: all rows go to temporary files.
    rows = Transposition(work, source, kind, memory)
    rows.collect()
    # The targets come with the rows (libsvm), or the source has all of them (``source.target``).
    if not rows.n_samples:
        raise ValueError(f"{name} has no rows of data; expected one line a sample")
    target = rows.targets() if source.target() is None else source.target()
    if target is not None and target.size != rows.n_samples:
        raise ValueError(f"{name} has {rows.n_samples} samples but {target.size} targets")
    # Second pass: the temporary files are read by columns.
    writer = StoreWriter(work, rows.n_samples, kind, source.about.sparse)
    if not source.about.sparse:
        rows.write_dense(writer)
        facts = source.about
        return writer.finish(facts.names, target, name, plans=facts.plans, symbols=facts.symbols)
    # Column 0 is dropped if it is empty and the format is libsvm, which counts from 1.
    starts, dropped = rows.starts(source.about.drops_first)
    # Formats other than libsvm declare the number of columns, and all may be zero.
    if source.about.drops_first and not starts[-1]:
        raise ValueError(f"{name} has no entries; expected lines of 'label index:value ...'")
    rows.write_sparse(writer, starts, dropped)
    del starts
    symbols = source.about.symbols
    return writer.finish(source.about.names, target, name, dropped, symbols=symbols)
