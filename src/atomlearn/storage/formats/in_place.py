"""Files that are used where they lie: column stores and PLINK .bed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.arrays import target_from_file
from atomlearn.storage.formats.sources import About, ColumnSource
from atomlearn.storage.formats.table import DataTable, Request, Schema
from atomlearn.storage.intake.columns import plan_of
from atomlearn.storage.store import store_file as store
from atomlearn.storage.store.on_disk import OnDisk
from atomlearn.storage.store.plink import PlinkBed, read_variants
from atomlearn.storage.store.store_file import READING
from atomlearn.storage.store.stored_columns import cut


def read_store(path: Path, request: Request) -> DataTable:
    """Return the table of a column store, whose X reads the store as it goes."""
    design = OnDisk(path)
    y, name = _target(design, path, request)
    plans = tuple(plan_of(item, f"a column in the schema of {path}") for item in design.plans)
    names = None if design.feature_names is None else tuple(design.feature_names)
    schema = Schema(design.shape[1], names, design.manifest.first_index, plans)
    return DataTable(design, y, schema, name, str(path))


def read_bed(path: Path, request: Request) -> DataTable:
    """Return the table of a PLINK .bed, whose X reads the file as it goes."""
    design = PlinkBed(path)
    y, name = _target(design, path, request)
    phenotype = design.samples.phenotype
    if y is None and request.missing and np.isfinite(phenotype).any():
        y = phenotype
    schema = Schema(design.shape[1], tuple(design.variants.names))
    return DataTable(
        design, y, schema, name, str(path), variants=design.variants, samples=design.samples
    )


def _target(
    design: OnDisk | PlinkBed, path: Path, request: Request
) -> tuple[NDArray[Any] | None, str]:
    """Return the target and its name: the file's own by default, else a .npy file."""
    if request.target is None:
        return design.target, "target"
    return target_from_file(request.target, path), request.target


def names_of_store(path: Path) -> list[str] | None:
    """Return the names of the columns of a store, without opening its values."""
    return store.read_names(path, store.read_manifest(path))


def names_of_bed(path: Path) -> list[str]:
    """Return the names of the variants, without counting their alleles."""
    return read_variants(path.with_suffix(".bim")).names


class BedColumns(ColumnSource):
    """The genotypes of a PLINK .bed, packed as they are."""

    packed = True

    def __init__(self, path: Path, request: Request) -> None:
        self._design = PlinkBed(path)
        self.y = _target(self._design, path, request)[0]
        self.shape = self._design.shape
        self.about = About(self._design.feature_names, False, np.dtype(np.uint8))
        self._column = (self.shape[0] + 3) // 4

    def columns(self, start: int, stop: int) -> NDArray[np.uint8]:
        return self._design.packed(start, stop)

    def widths(self, piece_bytes: int) -> NDArray[np.int64]:
        return cut(self.shape[1], self._column, max(piece_bytes, READING.chunk_bytes))
