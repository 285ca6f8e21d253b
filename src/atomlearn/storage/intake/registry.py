"""The table of file formats.

To add a format, write its reader in a new file and add one line to ``FORMATS``. Then
``datasets.read``, ``convert``, ``atomlearn select`` and ``atomlearn predict`` read it.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from atomlearn.storage.formats import cell_files, matlab
from atomlearn.storage.formats.compressed import first_line, suffix_of
from atomlearn.storage.formats.flat import open_npy, open_npz
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.libsvm import LibsvmRows, looks_like_libsvm, read_libsvm
from atomlearn.storage.formats.messages import near_names
from atomlearn.storage.formats.numpy_files import read_npy
from atomlearn.storage.formats.zarr_tree import is_zarr
from atomlearn.storage.intake import in_place, pgen
from atomlearn.storage.intake.packaged import (
    ArffFile,
    JsonFile,
    StatisticsFile,
    read_biom,
    samples_of_biom,
)
from atomlearn.storage.intake.series_matrix import SeriesMatrix, looks_like_series_matrix
from atomlearn.storage.intake.text import TextFile, looks_delimited
from atomlearn.storage.intake.typed import ArrowFile, ExcelFile, ParquetFile
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
#: AnnData, in HDF5 or Zarr, and matrices of 10x Genomics.
CELLS = Format(
    "h5ad",
    (".h5ad", ".h5", ".zarr"),
    stream=cell_files.open_cells,
    open=cell_files.read_cells,
    names=cell_files.names_of_cells,
    rows=cell_files.observations,
)
FORMATS = (
    Format("npz", (".npz",), stream=open_npz),
    Format("npy", (".npy",), read_npy, open_npy),
    Format(
        "libsvm",
        (".libsvm", ".svm", ".svmlight"),
        read_libsvm,
        LibsvmRows,
        recognizes=lambda suffix, line: looks_like_libsvm(line),
    ),
    Format(
        "series matrix",
        cells=SeriesMatrix,
        recognizes=lambda suffix, line: looks_like_series_matrix(line),
    ),
    Format(
        "delimited",
        (".csv", ".tsv", ".tab", ".gct", ".pcl", ".cdt"),
        cells=TextFile,
        recognizes=looks_delimited,
    ),
    Format("statistics", tuple(StatisticsFile.readers), cells=StatisticsFile),
    Format("arff", (".arff",), cells=ArffFile),
    Format("json", (".jsonl", ".ndjson", ".json"), cells=JsonFile),
    Format("biom", (".biom",), read_biom, rows=samples_of_biom),
    Format("parquet", (".parquet", ".pq"), cells=ParquetFile),
    Format("arrow", (".arrow", ".feather", ".ipc"), cells=ArrowFile),
    Format("excel", (".xlsx", ".xlsm"), cells=ExcelFile),
    Format("mat", (".mat",), matlab.read_mat),
    CELLS,
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
        pgen.pgen_columns,
        pgen.open_pgen,
        pgen.names_of_pgen,
        in_place=True,
    ),
)


#: Remedies for files of other genotype formats and of R, to be formatted with file names.
_PLINK = (
    "convert it, with its dosages: plink2 --{kind} {{file}} {more} --make-pgen --out study, and "
    "give study.pgen"
)
_R = "in R, type write.csv(data, '{stem}.csv'), and give {stem}.csv"
#: File types that are not read, and how to convert them into types that are.
_REMEDIES = {
    ".vcf": _PLINK.format(kind="vcf", more="dosage=DS"),
    ".bcf": _PLINK.format(kind="bcf", more="dosage=DS"),
    ".bgen": _PLINK.format(kind="bgen", more="ref-first --sample FILE"),
    **dict.fromkeys((".rds", ".rdata", ".rda"), _R),
    ".xls": "save it as .xlsx, and give that",
    ".ods": "save it as .xlsx, and give that",
}


def format_of(path: str | PathLike[str]) -> Format:
    """Return the format of a file or folder, by its ending, else by its first line.

    Parameters
    ----------
    path : path
        The file or folder; a folder is a column store or a Zarr group.

    Returns
    -------
    Format

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, it is empty, or its format is not known.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from atomlearn.storage.intake.registry import format_of
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "counts.txt"
    >>> _ = file.write_text("1 3:2.5 7:1\\n")
    >>> format_of(file).name
    'libsvm'
    """
    file = Path(path)
    # Folders, and paths that are no file.
    if is_zarr(file):
        return CELLS
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
    # An ending decides; the first line is read only if the ending is not known.
    suffix = suffix_of(file)
    for file_format in FORMATS:
        if suffix in file_format.suffixes:
            return file_format
    line = first_line(file)
    for file_format in FORMATS:
        if file_format.recognizes is not None and file_format.recognizes(suffix, line):
            return file_format
    if suffix in _REMEDIES:
        remedy = _REMEDIES[suffix].format(file=file.name, stem=file.stem)
        raise ValueError(f"{suffix} files are not read; {remedy}")
    raise ValueError(
        f"the format of {file} is not known; expected one of the endings "
        f"{', '.join(suffix for form in FORMATS for suffix in form.suffixes)}. Convert it, or "
        "rename it to the ending of its format"
    )
