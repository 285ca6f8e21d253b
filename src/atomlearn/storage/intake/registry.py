"""The table of file formats.

To add a format, write its reader in a new file and add one line to ``FORMATS``. Then
``datasets.read``, ``convert``, ``atomlearn select`` and ``atomlearn predict`` read it.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from atomlearn.storage.formats import hdf, matlab
from atomlearn.storage.formats.compressed import first_line, suffix_of
from atomlearn.storage.formats.flat import open_npy, open_npz
from atomlearn.storage.formats.format import Format
from atomlearn.storage.formats.libsvm import LibsvmRows, looks_like_libsvm, read_libsvm
from atomlearn.storage.formats.messages import near_names
from atomlearn.storage.formats.numpy_files import read_npy
from atomlearn.storage.formats.table import Request
from atomlearn.storage.intake import in_place
from atomlearn.storage.intake.in_place import bed_of
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
        "delimited",
        (".csv", ".tsv", ".tab"),
        cells=TextFile,
        recognizes=looks_delimited,
    ),
    Format(
        "parquet",
        (".parquet", ".pq"),
        cells=ParquetFile,
    ),
    Format(
        "arrow",
        (".arrow", ".feather", ".ipc"),
        cells=ArrowFile,
    ),
    Format("excel", (".xlsx", ".xlsm"), cells=ExcelFile),
    Format("mat", (".mat",), matlab.read_mat),
    Format(
        "h5ad",
        (".h5ad",),
        stream=hdf.open_h5ad,
        open=hdf.read_h5ad_matrix,
        names=lambda path: list(hdf.open_h5ad(path, Request()).about.names or ()),
        rows=hdf.observations,
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
    # Converted once into a .bed, which is then read.
    Format(
        "pgen",
        (".pgen",),
        lambda path, request: in_place.read_bed(bed_of(path), request),
        lambda path, request: in_place.BedColumns(bed_of(path), request),
        lambda path: PlinkBed(bed_of(path)),
        lambda path: in_place.names_of_bed(bed_of(path)),
        in_place=True,
    ),
)


def format_of(path: str | PathLike[str]) -> Format:
    """Return the format of a file or folder, by its ending, else by its first line.

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
    try:
        line = first_line(file)
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
