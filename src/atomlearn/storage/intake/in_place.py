"""Files that are read in place: column stores and PLINK .bed."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import whole_file, write_text
from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.format import About, ColumnSource
from atomlearn.storage.formats.held import LIMITS
from atomlearn.storage.formats.numpy_files import target_from_file
from atomlearn.storage.formats.table import DataTable, Request, Schema
from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.columns import plan_of
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.text import TextFile
from atomlearn.storage.store import store_file as store
from atomlearn.storage.store.encoding import MISSING, encode_values, pack
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

    X (n_samples, n_features) has allele copies 0, 1, 2, or NaN if missing. The counted
    allele is written as 1 and the other as 2; unknown phenotypes (NaN, or no phenotype) as -9.
    """
    file = Path(path)
    (n_samples, n_features) = X.shape
    names = [f"v{j}" for j in range(n_features)] if names is None else names
    samples = [f"s{i}" for i in range(n_samples)] if samples is None else samples
    chromosomes = [1] * n_features if chromosomes is None else chromosomes
    positions = range(1, n_features + 1) if positions is None else positions
    values = np.full(n_samples, np.nan) if phenotype is None else phenotype
    with whole_file(file) as stream:
        stream.write(MAGIC)
        width = max(1, LIMITS.piece_bytes // n_samples)
        for start in range(0, n_features, width):
            part = encode_values(X[:, start : start + width], "genotype", 0, start)
            stream.write(pack(part).tobytes())
    lines = zip(chromosomes, names, positions, strict=True)
    write_text(
        file.with_suffix(".bim"),
        "".join(f"{chromosome}\t{name}\t0\t{place}\t1\t2\n" for chromosome, name, place in lines),
    )
    people = zip(samples, np.where(np.isnan(values), -9.0, values).tolist(), strict=True)
    write_text(
        file.with_suffix(".fam"),
        "".join(f"{name} {name} 0 0 0 {value!r}\n" for name, value in people),
    )


@lru_cache(maxsize=8)
def bed_of(path: Path) -> Path:
    """Convert a PLINK 2 .pgen to a temporary .bed (.bim, .fam), deleted when the process ends.

    Copies of the alternate allele are counted; if there are several, of the first one.
    """
    pgenlib = imported("pgenlib", "genotypes", path)
    try:
        reader = pgenlib.PgenReader(str(path).encode())
    except RuntimeError as error:
        raise ValueError(f"{path} is not a readable .pgen file: {error}") from error
    n_samples = int(reader.get_raw_sample_ct())
    n_variants = int(reader.get_variant_ct())
    variants = _variants(path)
    samples = _samples(path)
    if len(variants) != n_variants or len(samples) != n_samples:
        raise ValueError(
            f"{path} has {n_samples} samples and {n_variants} variants, and its .psam and .pvar "
            f"{len(samples)} and {len(variants)}: they do not belong together"
        )
    folder = tempfile.TemporaryDirectory(prefix="atomlearn-pgen-")
    atexit.register(folder.cleanup)
    file = Path(folder.name) / f"{path.stem}.bed"
    with file.open("wb") as stream:
        stream.write(MAGIC)
        width = max(1, LIMITS.piece_bytes // n_samples)
        for start in range(0, n_variants, width):
            stop = min(start + width, n_variants)
            codes = np.empty((stop - start, n_samples), dtype=np.int8)
            reader.read_range(start, stop, codes)
            codes[codes < 0] = MISSING
            stream.write(pack(np.ascontiguousarray(codes.T)).tobytes())
    reader.close()
    file.with_suffix(".bim").write_text("".join("\t".join(line) + "\n" for line in variants))
    file.with_suffix(".fam").write_text("".join(" ".join(line) + "\n" for line in samples))
    return file


def _beside(path: Path, ending: str, names: Sequence[str], delimiter: str = "") -> Frame:
    """Return the frame of the .pvar or .psam of a .pgen, which must have these columns."""
    file = path.with_suffix(ending)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}, which belongs to the .pgen beside it")
    frame = TextFile(file, TextForm(delimiter=delimiter)).frame()
    frame.require(names)
    return frame


def _variants(path: Path) -> list[list[str]]:
    names = ("#CHROM", "ID", "POS", "ALT", "REF")
    frame = _beside(path, ".pvar", names, "tab")
    lines = zip(*(frame.cells(name).tolist() for name in names), strict=True)
    return [
        [chromosome, name or ".", "0", position, counted.split(",")[0], other]
        for chromosome, name, position, counted, other in lines
    ]


def _samples(path: Path) -> list[list[str]]:
    frame = _beside(path, ".psam", ())
    keys = [name for name in ("#FID", "#IID", "IID") if name in frame.columns] or ["IID"]
    frame.require(keys)
    known = (*keys, "SID", "PAT", "MAT", "SEX")
    traits = [name for name in frame.header if name not in known][:1]
    names = (keys[0], keys[-1], *traits)
    lines = zip(*(frame.cells(name).tolist() for name in names), strict=True)
    return [[family, own, "0", "0", "0", "".join(trait) or "-9"] for family, own, *trait in lines]


def read_store(path: Path, request: Request) -> DataTable:
    """Return the table of a column store; its X is an out-of-core design, ``OnDisk``."""
    design = OnDisk(path)
    y, name = _target(design, path, request)
    plans = tuple(plan_of(item, f"a column in the schema of {path}") for item in design.plans)
    names = None if design.feature_names is None else tuple(design.feature_names)
    schema = Schema(design.shape[1], names, design.manifest.first_index, plans)
    return DataTable(design, y, schema, name, str(path))


def read_bed(path: Path, request: Request) -> DataTable:
    """Return the table of a PLINK .bed; its X is an out-of-core design, ``PlinkBed``."""
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
    """Return the target and its name: that of the file by default, else a .npy file."""
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
    """The genotypes of a PLINK .bed in its two-bit code, as a source of columns for ``convert``."""

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
