"""Tables of phenotypes and covariates, joined to samples by their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.table import near_names
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.kinds import is_id_name

#: What PLINK writes for an unknown phenotype.
UNKNOWN = -9.0


@dataclass(frozen=True, slots=True)
class Samples:
    """Names of rows: ``families`` (or None) and ``names``."""

    names: Sequence[str]
    families: Sequence[str] | None = None


def keys_of(frame: Frame) -> tuple[list[str], list[str]]:
    """Return the columns that name the samples: FID and IID, or one; and the other columns."""
    folded = {name.lstrip("#").casefold(): name for name in frame.header}
    if "iid" in folded:
        keys = [folded[key] for key in ("fid", "iid") if key in folded]
    else:
        named = [name for name in frame.header if is_id_name(name)]
        keys = [named[0] if named else frame.header[0]]
    return keys, [name for name in frame.header if name not in keys]


def joined(frame: Frame, samples: Samples, path: Path) -> tuple[Frame, int]:
    """Return the frame with one row a sample, all missing where there is none; how many have one.

    By FID and IID where both have them, else by the names of samples alone.
    """
    keys, _ = keys_of(frame)
    both = len(keys) == 2 and samples.families is not None
    names = frame.cells(keys[-1]).tolist()
    known: dict[tuple[str, ...], int] = {}
    families: Sequence[str] = frame.cells(keys[0]).tolist() if both else names
    for row, key in enumerate(zip(*((families, names) if both else (names,)), strict=True)):
        if key in known:
            raise ValueError(
                f"{path} has sample {' '.join(key)!r} on two lines, the second on "
                f"{frame.line(row)}; keep one of them"
            )
        known[key] = row
    families = samples.families if both and samples.families is not None else samples.names
    own = zip(families, samples.names, strict=True) if both else zip(samples.names, strict=True)
    places = np.array([known.get(key, -1) for key in own], dtype=np.int64)
    found = places >= 0
    if not found.any():
        raise ValueError(
            f"no sample of {path} ({names[0]!r}, ...) is one of the data ({samples.names[0]!r}, "
            "...); both need the same names: give --id for the column of the data that has them"
        )
    rows = frame.rows(np.maximum(places, 0)) if frame.n_rows else frame
    numbers = np.array(rows.numbers, order="F")
    numbers[~found] = np.nan
    if len(keys) == 2:
        numbers[numbers == UNKNOWN] = np.nan
    texts = {}
    for name, cells in rows.texts.items():
        texts[name] = np.where(found, cells, "").astype(object)
    slots = rows.slots
    joined = Frame(path, frame.header, slots, numbers, texts, len(places), line=rows.line)
    return joined, int(found.sum())


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
    return name, frame.texts[name] if frame.is_text(name) else frame.values(name)
