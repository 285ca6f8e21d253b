"""Tables of phenotypes and covariates, joined to samples by their names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.registry import format_of
from atomlearn.storage.formats.table import near_names
from atomlearn.storage.intake.cells import TextForm, number_of
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.kinds import is_id_name
from atomlearn.storage.intake.limits import INTAKE
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.text import read_text


@dataclass(frozen=True, slots=True)
class Samples:
    """Names of rows: ``families`` (or None) and ``names``; ``columns`` : of a table, for errors."""

    names: Sequence[str]
    families: Sequence[str] | None = None
    columns: Sequence[str] = ()


def keys_of(frame: Frame) -> tuple[list[str], list[str]]:
    """Return the columns that name the samples: FID and IID, or one; and the other columns."""
    folded = {name.lstrip("#").casefold(): name for name in frame.header}
    if "iid" in folded:
        keys = [folded[key] for key in ("fid", "iid") if key in folded]
    else:
        named = [name for name in frame.header if is_id_name(name)]
        keys = [named[0] if named else frame.header[0]]
    return keys, [name for name in frame.header if name not in keys]


def with_keys(read: Callable[[TextForm], Frame], form: TextForm) -> Frame:
    """Return what ``read`` gives of a form with a header, names of samples as they are written."""
    first = read(form := replace(form, header=True))
    keys, others = keys_of(first)
    if others and all(number_of(name, form) is not None for name in others):
        raise ValueError(
            f"{first.path} begins with {' '.join(first.header[:4])!r}, where names of columns are "
            "expected; write a first line, such as: FID IID trait"
        )
    return read(replace(form, labels=frozenset(keys)))


def named_frame(file: Path) -> Frame:
    """Return the frame of a file of phenotypes or covariates; what has no known ending is text."""
    kind = format_of(file) if file.suffix in (".csv", ".tsv", ".parquet", ".xlsx") else None
    frame = None if kind is None else kind.frame
    if frame is None:
        return with_keys(lambda form: read_text(file, form), TextForm())
    return with_keys(lambda form: frame(file, form, None), TextForm())


def joined(frame: Frame, samples: Samples, path: Path) -> tuple[Frame, int]:
    """Return the frame with one row a sample, all missing where there is none; how many have one.

    By FID and IID where both have them, else by the names of samples alone.
    """
    keys, _ = keys_of(frame)
    both = len(keys) == 2 and samples.families is not None
    own = [samples.names] if not both else [samples.families or (), samples.names]
    theirs = [frame.cells(key).tolist() for key in (keys if both else keys[-1:])]
    names = theirs[-1]
    known: dict[tuple[str, ...], int] = {}
    for row, key in enumerate(zip(*theirs, strict=True)):
        if key in known:
            raise ValueError(
                f"{path} has sample {' '.join(key)!r} on two lines, the second on "
                f"{frame.line(row)}; keep one of them"
            )
        known[key] = row
    places = _places(own, known)
    if (places < 0).all():
        # 007 of one file may be 7 in the other, where a spreadsheet was in between.
        short = {tuple(map(_without_zeros, key)): row for key, row in known.items()}
        if len(short) == len(known):
            places = _places([list(map(_without_zeros, part)) for part in own], short)
    found = places >= 0
    if not found.any():
        remedy = "both need the same names: give --id for the column of the data that has them"
        if not set(names).isdisjoint(samples.columns):
            remedy = "samples are columns of the data: type --transpose"
        raise ValueError(
            f"no sample of {path} ({names[0]!r}, ...) is one of the data ({samples.names[0]!r}, "
            f"...); {remedy}"
        )
    rows = frame.rows(np.maximum(places, 0)) if frame.n_rows else frame
    numbers = np.array(rows.numbers, order="F")
    numbers[~found] = np.nan
    if keys[-1].lstrip("#").casefold() == "iid":  # as PLINK writes them
        numbers[numbers == INTAKE.unknown] = np.nan
    texts = {}
    for name, cells in rows.texts.items():
        texts[name] = np.where(found, cells, "").astype(object)
    slots = rows.slots
    joined = Frame(path, frame.header, slots, numbers, texts, len(places), line=rows.line)
    return joined, int(found.sum())


def covariates_in(frame: Frame, reading: Reading, notes: list[str]) -> list[str]:
    """Return the columns of a covariate file to use: those asked for, else all but the target."""
    columns, target = keys_of(frame)[1], reading.pheno_name or reading.role("target")
    if reading.covariates:
        return [name for name in columns if name in reading.covariates]
    if target in columns:
        notes.append(f"{target!r} of {frame.path.name} is the target, and no covariate")
    return [name for name in columns if name != target]


def _places(own: Sequence[Sequence[str]], known: dict[tuple[str, ...], int]) -> NDArray[np.int64]:
    """Return the row of each sample, -1 where there is none."""
    return np.array([known.get(key, -1) for key in zip(*own, strict=True)], dtype=np.int64)


def _without_zeros(name: str) -> str:
    return (name.lstrip("0") or "0") if name.isdecimal() else name


def phenotype(frame: Frame, name: str | None) -> tuple[str, NDArray[np.generic]]:
    """Return the name of a phenotype of a joined file, by default its only one, and its values."""
    _, others = keys_of(frame)
    if name is None:
        if len(others) != 1:
            shown = ", ".join(repr(other) for other in others[:6])
            raise ValueError(
                f"{frame.path} has {len(others)} phenotypes ({shown}); give --pheno-name"
            )
        name = others[0]
    if name not in frame.header:
        raise ValueError(f"{frame.path} has no phenotype {name!r}{near_names(name, others)}")
    return name, frame.held(name)
