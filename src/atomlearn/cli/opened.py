"""Stores, .bed and .h5ad on the command line: data that is not read into a table."""

from __future__ import annotations

from pathlib import Path

from atomlearn.cli.errors import CommandError
from atomlearn.core.data.convert import as_design, feature_names
from atomlearn.storage.conversion.hdf import open_h5ad
from atomlearn.storage.formats.arrays import target_of
from atomlearn.storage.formats.table import DataTable, Schema
from atomlearn.storage.store.on_disk import OnDisk
from atomlearn.storage.store.plink import PlinkBed

_SUFFIXES = (".bed", ".h5ad")


def is_opened_path(path: Path) -> bool:
    """Return whether the data at this path is opened as a design."""
    return path.is_dir() or path.suffix.lower() in _SUFFIXES


def open_table(path: Path, target: str | None, needs_target: bool = True) -> DataTable:
    """Return the data as a table whose X is a design; the target is the file's own by default.

    ``target`` : a .npy file of targets, or for .h5ad a column of obs.
    """
    design = as_design(path)
    y, name = None, target
    if target is not None and path.suffix.lower() == ".h5ad" and not target.endswith(".npy"):
        y = open_h5ad(path, target).target()
    elif target is not None:
        y = target_of({}, target, path)
    elif isinstance(design, (OnDisk, PlinkBed)) and needs_target:
        y, name = design.target, "target"
        if y is None:
            raise CommandError(
                f"{path} has no target (for every sample); give --target FILE.npy, or convert its "
                "source with --target"
            )
    if y is not None and y.shape != (design.shape[0],):
        raise CommandError(f"{path} has {design.shape[0]} samples but {y.size} targets")
    names = feature_names(path)
    first = design.manifest.first_index if isinstance(design, OnDisk) else 0
    schema = Schema(design.shape[1], None if names is None else tuple(names), first_index=first)
    return DataTable(design, y, schema, name, str(path))
