"""Files that are read in place, in every pass over the data: column stores and PLINK .bed."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn._support import whole_file, write_text
from atomlearn.storage.formats.format import About, ColumnSource
from atomlearn.storage.formats.held import LIMITS
from atomlearn.storage.formats.numpy_files import target_from_file
from atomlearn.storage.formats.table import DataTable, Request, Schema
from atomlearn.storage.intake.columns import plan_of
from atomlearn.storage.store import store_file as store
from atomlearn.storage.store.encoding import encode_values, pack
from atomlearn.storage.store.on_disk import OnDisk
from atomlearn.storage.store.plink import MAGIC, PlinkBed, read_variants
from atomlearn.storage.store.store_file import READING
from atomlearn.storage.store.stored_columns import cut


def write_plink(
    path: str | PathLike[str],
    X: NDArray[Any],
    *,
    names: Sequence[str] | None = None,
    chromosomes: Sequence[object] | None = None,
    positions: Sequence[int] | None = None,
    samples: Sequence[str] | None = None,
    phenotype: NDArray[np.float64] | None = None,
) -> None:
    """Write a PLINK fileset (.bed, .bim and .fam) of genotypes X.

    The counted allele is written as 1 and the other as 2.

    Parameters
    ----------
    path : file
        The .bed to write; the .bim and the .fam are next to it.
    X : (n_samples, n_features) array
        Allele copies 0, 1, 2, or NaN if missing.
    names : sequence of str, optional
        Names of the variants; by default v0, v1, ...
    chromosomes : sequence, optional
        Chromosome of each variant; by default 1.
    positions : sequence of int, optional
        Position of each variant in base pairs; by default 1, 2, ...
    samples : sequence of str, optional
        Names of the samples; by default s0, s1, ...
    phenotype : (n_samples,) array, optional
        Phenotypes; unknown ones (NaN, or all by default) are written as -9.
    """
    file = Path(path)
    n_samples, n_features = X.shape
    names = [f"v{j}" for j in range(n_features)] if names is None else names
    samples = [f"s{i}" for i in range(n_samples)] if samples is None else samples
    chromosomes = [1] * n_features if chromosomes is None else chromosomes
    positions = range(1, n_features + 1) if positions is None else positions
    values = np.full(n_samples, np.nan) if phenotype is None else phenotype
    # Columns are packed and written in groups of limited size.
    with whole_file(file) as stream:
        stream.write(MAGIC)
        width = max(1, LIMITS.piece_bytes // n_samples)
        for start in range(0, n_features, width):
            codes = encode_values(X[:, start : start + width], "genotype", 0, start)
            stream.write(pack(codes).tobytes())
    # Fields of .bim: chromosome, name, centimorgans, position, two alleles. Of .fam: family, name,
    # father, mother, sex, phenotype.
    lines = zip(chromosomes, names, positions, strict=True)
    write_text(
        file.with_suffix(".bim"),
        "".join(
            f"{chromosome}\t{name}\t0\t{position}\t1\t2\n" for chromosome, name, position in lines
        ),
    )
    people = zip(samples, np.where(np.isnan(values), -9.0, values).tolist(), strict=True)
    write_text(
        file.with_suffix(".fam"),
        "".join(f"{name} {name} 0 0 0 {value!r}\n" for name, value in people),
    )


def read_store(path: Path, request: Request) -> DataTable:
    """Return the table of a column store; its X is an out-of-core design, ``OnDisk``.

    Only the target of the ``request`` matters: None, or an .npy file.
    """
    design = OnDisk(path)
    y, name = _target(design, path, request)
    plans = tuple(plan_of(item, f"a column in the schema of {path}") for item in design.plans)
    names = None if design.feature_names is None else tuple(design.feature_names)
    first = design.manifest.first_index
    schema = Schema(design.shape[1], names, first, plans, symbols=design.symbols)
    return DataTable(design, y, schema, name, str(path))


def read_bed(path: Path, request: Request) -> DataTable:
    """Return the table of a PLINK .bed; its X is an out-of-core design, ``PlinkBed``.

    Only target and ``missing`` of the ``request`` matter, see ``genotype_table``.
    """
    return genotype_table(PlinkBed(path), path, request)


def genotype_table(design: Any, path: Path, request: Request) -> DataTable:
    """Return the table of a design of genotypes: an X that is read from its file in every pass.

    ``path`` is the file. The target of the ``request`` is an .npy file; by default it is the
    phenotype next to the genotypes. A phenotype with unknown values is the target only if the
    request allows missing ones.
    """
    y, name = _target(design, path, request)
    phenotype = design.samples.phenotype
    if y is None and request.missing and np.isfinite(phenotype).any():
        y = phenotype
    # The user did not name a target: a note says which file it is from.
    notes: tuple[str, ...] = ()
    if request.target is None:
        name = "phenotype"
        file = ".psam" if path.suffix == ".pgen" else "column 6 of the .fam"
        notes = (f"the target is the phenotype in {file} next to {path.name}",) * (y is not None)
    schema = Schema(design.shape[1], tuple(design.variants.names))
    return DataTable(
        *(design, y, schema, name, str(path)),
        notes=notes,
        variants=design.variants,
        samples=design.samples,
    )


def _target(design: Any, path: Path, request: Request) -> tuple[NDArray[Any] | None, str]:
    """Return the target (n_samples,) or None, and its name.

    If the ``request`` has no target, it is that of the design. Else it is an .npy file, which may
    be next to ``path``, the file of the design.
    """
    if request.target is None:
        return design.target, "target"
    return target_from_file(request.target, path), request.target


def names_of_store(path: Path) -> list[str] | None:
    """Return the names of the columns of the store ``path``, or None; values are not read."""
    return store.read_names(path, store.read_manifest(path))


def names_of_bed(path: Path) -> list[str]:
    """Return the names of the variants of the .bed ``path``; genotypes are not read."""
    return read_variants(path.with_suffix(".bim")).names


class BedColumns(ColumnSource):
    """The genotypes of a PLINK .bed in its two-bit code, as a source of columns for ``convert``.

    Parameters
    ----------
    path : Path
        The .bed.
    request : Request
        Its target may be an .npy file; by default the phenotypes of the .fam are the target.
    """

    packed = True

    def __init__(self, path: Path, request: Request) -> None:
        """Open the .bed ``path``; the target is that of ``request``, or the phenotype."""
        self._design = PlinkBed(path)
        self.y = _target(self._design, path, request)[0]
        self.shape = self._design.shape
        self.about = About(self._design.feature_names, False, np.dtype(np.uint8))
        self._column_bytes = (self.shape[0] + 3) // 4

    def columns(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return columns ``start``, ..., ``stop`` - 1, packed, one after the other."""
        return self._design.packed(start, stop)

    def widths(self, piece_bytes: int) -> NDArray[np.int64]:
        """Return the boundaries of groups of columns of about ``piece_bytes``, at least a chunk."""
        return cut(self.shape[1], self._column_bytes, max(piece_bytes, READING.chunk_bytes))
