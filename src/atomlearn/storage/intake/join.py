"""Left joins of phenotype and covariate tables to the samples of the data, by sample name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.messages import listing, require_name
from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.kinds import is_id_name
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.registry import format_of
from atomlearn.storage.intake.text import TextFile


@dataclass(frozen=True, slots=True)
class NamedRows:
    """Names of the rows of a table.

    Attributes
    ----------
    names : sequence of str
        Name of each row.
    families : sequence of str, optional
        Family of each row.
    columns : sequence of str
        Columns of the table, for error messages.
    """

    names: Sequence[str]
    families: Sequence[str] | None = None
    columns: Sequence[str] = ()


def keys_of(header: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the columns that name the samples, and the other columns.

    They are PLINK's FID and IID (family and individual), or the first column of ``header`` whose
    name says that it has identifiers, or simply the first column.
    """
    folded = {name.lstrip("#").casefold(): name for name in header}
    if "iid" in folded:
        keys = [folded[key] for key in ("fid", "iid") if key in folded]
    else:
        keys = [next(filter(is_id_name, header), header[0])]
    return keys, [name for name in header if name not in keys]


def named_frame(file: Path, form: TextForm | None = None) -> Frame:
    """Return the frame of a file of phenotypes or covariates; unknown endings are read as text.

    ``form`` says how text is written. A file without names of columns is refused.
    """
    # ``format_of`` raises the error about a file that does not exist.
    is_table = file.suffix in (".csv", ".tsv", ".parquet", ".xlsx") or not file.is_file()
    opened_table = (format_of(file).cells if is_table else None) or TextFile
    form = replace(form or TextForm(), header=True)
    header = opened_table(file, form, None).header
    keys, others = keys_of(header)
    if others and all(form.number(name) is not None for name in others):
        raise ValueError(
            f"{file} begins with {' '.join(header[:4])!r}, where names of columns are "
            "expected; write a first line, such as: FID IID trait"
        )
    # Names of samples are kept as they are written.
    return opened_table(file, replace(form, labels=frozenset(keys)), None).frame()


def frame_of_samples(
    file: Path,
    samples: NamedRows | None,
    path: Path,
    notes: list[str],
    form: TextForm | None = None,
) -> Frame:
    """Return a phenotype or covariate file with one row for each sample of the data.

    Parameters
    ----------
    file : Path
        The phenotypes or covariates.
    samples : NamedRows, optional
        Names of the samples of the data; None is an error.
    path : Path
        File of the data, for messages.
    notes : list of str
        Receives a note on the number of samples that were found.
    form : TextForm, optional
        How text is written.
    """
    if samples is None:
        raise ValueError(
            f"{file} is joined by names of samples, and {path} has none: type --id NAME for a "
            "column of names (or --transpose, where samples are columns)"
        )
    joined, count = joined_to_samples(named_frame(file, form), samples, file)
    notes.append(f"{count} of {len(samples.names)} samples are in {file.name}")
    return joined


def joined_to_samples(frame: Frame, samples: NamedRows, path: Path) -> tuple[Frame, int]:
    """Left join: return the rows of ``frame`` in the order of the samples, and the matched number.

    Samples without a row get missing values. Samples are matched by FID and IID (PLINK's family and
    individual identifiers) if both tables have them, else by name. If no name matches, names are
    compared again in shorter forms. ``path`` is the file of ``frame``, for messages.
    """
    keys, _ = keys_of(frame.header)
    has_families = len(keys) == 2 and samples.families is not None
    # The key of a sample is its name, or its family and its name.
    sample_parts = [samples.names] if not has_families else [samples.families or (), samples.names]
    frame_parts = [frame.cells(key).tolist() for key in (keys if has_families else keys[-1:])]
    names = frame_parts[-1]
    row_of: dict[tuple[str, ...], int] = {}
    for row, key in enumerate(zip(*frame_parts, strict=True)):
        if key in row_of:
            raise ValueError(
                f"{path} has sample {' '.join(key)!r} on two lines, the second on "
                f"{frame.line(row)}; keep one of them (names are taken from {' and '.join(keys)})"
            )
        row_of[key] = row
    # The row of each sample in the frame, -1 without one.
    places = _rows_of(sample_parts, row_of)
    if (places < 0).all():
        # Retry without leading zeros, because a spreadsheet may have turned 007 into 7.
        short = {tuple(map(_without_zeros, key)): row for key, row in row_of.items()}
        if len(short) == len(row_of):
            places = _rows_of([list(map(_without_zeros, part)) for part in sample_parts], short)
    if (places < 0).all():
        # Retry without folders and suffixes, because sequencing tools name samples by their files.
        short = {tuple(map(_file_stem, key)): row for key, row in row_of.items()}
        if len(short) == len(row_of):
            places = _rows_of([list(map(_file_stem, part)) for part in sample_parts], short)
    is_known = places >= 0
    if not is_known.any():
        remedy = "both need the same names: give --id for the column of the data that has them"
        if not set(names).isdisjoint(samples.columns):
            remedy = "samples are columns of the data: type --transpose"
        raise ValueError(
            f"no sample of {path} ({names[0]!r}, ...) is one of the data ({samples.names[0]!r}, "
            f"...); {remedy}"
        )
    # Rows in the order of the samples, "" or NaN for samples without a row.
    columns = {}
    for name, cells in frame.columns.items():
        if frame.is_text(name):
            columns[name] = np.where(is_known, cells[places], "")
        elif keys[-1].lstrip("#").casefold() == "iid":
            # PLINK writes -9 for unknown values.
            columns[name] = np.where(is_known & (cells[places] != -9), cells[places], np.nan)
        else:
            columns[name] = np.where(is_known, cells[places], np.nan)
    joined = Frame(path, columns, places.size, line=lambda row: frame.line(int(places[row])))
    return joined, int(is_known.sum())


def covariates_in(frame: Frame, reading: Reading, notes: list[str]) -> list[str]:
    """Return the columns of a covariate file to use: those requested, else all but the target.

    ``frame`` is the content of the file, and ``reading`` has the choices of the user. A note is
    added to ``notes`` if the target is left out.
    """
    columns = keys_of(frame.header)[1]
    target = reading.pheno_name or reading.role("target")
    if reading.covariates:
        return [name for name in columns if name in reading.covariates]
    if target in columns:
        notes.append(f"{target!r} of {frame.path.name} is the target, and no covariate")
    return [name for name in columns if name != target]


def _rows_of(
    parts: Sequence[Sequence[str]], row_of: dict[tuple[str, ...], int]
) -> NDArray[np.int64]:
    """Return the row number of each sample in a table, -1 if it has no row.

    ``parts`` are the names of the samples, or their families and names. ``row_of`` has the row of
    the table by such a key.
    """
    return np.array([row_of.get(key, -1) for key in zip(*parts, strict=True)], dtype=np.int64)


def _without_zeros(name: str) -> str:
    """Return a name of digits without leading zeros; other names are unchanged."""
    return (name.lstrip("0") or "0") if name.isdecimal() else name


#: Endings of files of reads, which tools append to the name of a sample.
_ENDINGS = re.compile(
    r"(_?Aligned)?(\.(bam|sam|cram|fastq|fq|sort(ed)?|out|sortedByCoord|markdup|dedup|counts?|txt|cel|"
    r"gz))+$",
    re.IGNORECASE,
)


def _file_stem(name: str) -> str:
    """Return the sample name in a file name, such as s1 in /data/s1Aligned.out.bam."""
    return _ENDINGS.sub("", name.replace("\\", "/").rpartition("/")[2])


def phenotype(
    reading: Reading, samples: NamedRows | None, path: Path, notes: list[str]
) -> tuple[str, NDArray[np.generic]]:
    """Return the name and the values of the phenotype to predict, one for each sample.

    The file is ``reading.pheno``; by default it has only one phenotype. ``samples`` are the names
    of the rows of the data in ``path``. Notes for the user are added to ``notes``.
    """
    assert reading.pheno is not None
    frame = frame_of_samples(reading.pheno, samples, path, notes, reading.form)
    counts = Counter(samples.names if samples else ())
    repeated = [name for name, count in counts.items() if count > 1]
    if repeated:
        notes.append(f"samples on several rows, all with the same target: {listing(repeated)}")
    # The phenotype that the user names, or the only one.
    others = keys_of(frame.header)[1]
    name = reading.pheno_name or reading.target
    if name is None:
        if len(others) != 1:
            raise ValueError(
                f"{frame.path} has {len(others)} phenotypes ({listing(others)}); give --pheno-name"
            )
        name = others[0]
    require_name(name, frame.header, f"{frame.path} has no phenotype")
    other_names = [other for other in others if other != name]
    hint = f"; there are also {listing(other_names)} (--pheno-name NAME)" if other_names else ""
    notes.append(f"the target is the phenotype {name!r} of {frame.path.name}{hint}")
    return name, frame.columns[name]
