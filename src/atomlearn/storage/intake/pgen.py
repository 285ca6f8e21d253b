"""PLINK 2's .pgen, through Pgenlib: hard calls become a .bed, dosages stay numbers from 0 to 2."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from atomlearn.core import DenseDesign
from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.format import About, ColumnSource
from atomlearn.storage.formats.held import LIMITS, fits
from atomlearn.storage.formats.numpy_files import target_from_file
from atomlearn.storage.formats.table import DataTable, Request
from atomlearn.storage.intake import in_place
from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.text import TextFile
from atomlearn.storage.store.encoding import MISSING, pack
from atomlearn.storage.store.plink import MAGIC, PlinkBed, read_samples, read_variants


class _Pgen:
    """The open .pgen ``path`` with the content of its .pvar and .psam.

    ``variants`` and ``samples`` are their lines, in the form of a .bim and of a .fam.
    """

    def __init__(self, path: Path) -> None:
        """Open the .pgen ``path`` and read the two files of names next to it."""
        pgenlib = imported("pgenlib", "genotypes", path)
        try:
            self._reader = pgenlib.PgenReader(str(path).encode())
        except RuntimeError as error:
            raise ValueError(f"{path} is not a readable .pgen file: {error}") from error
        self.n_samples = int(self._reader.get_raw_sample_ct())
        self.n_variants = int(self._reader.get_variant_ct())
        self.variants = _variants(path)
        self.samples = _samples(path)
        # The three files must be of the same data.
        if len(self.variants) != self.n_variants or len(self.samples) != self.n_samples:
            raise ValueError(
                f"{path} has {self.n_samples} samples and {self.n_variants} variants, and its "
                f".psam and .pvar {len(self.samples)} and {len(self.variants)}: they do not belong "
                "together"
            )

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Yield ranges (start, stop) of variants; the dosages of each take a piece of memory."""
        width = max(1, LIMITS.piece_bytes // (4 * self.n_samples))
        for start in range(0, self.n_variants, width):
            yield start, min(start + width, self.n_variants)

    def codes(self, start: int, stop: int) -> NDArray[np.int8]:
        """Return the genotypes of variants start, ..., stop - 1, (n_samples, stop - start).

        They are 0, 1, 2 or MISSING: the hard calls, which are the most probable genotypes.
        """
        codes = np.empty((stop - start, self.n_samples), dtype=np.int8)
        self._reader.read_range(start, stop, codes)
        codes[codes < 0] = MISSING
        return np.ascontiguousarray(codes.T)

    def dosages(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return the dosages of variants start, ..., stop - 1, (stop - start, n_samples).

        A dosage is the expected number of allele copies, from 0 to 2; NaN if missing.
        """
        values = np.empty((stop - start, self.n_samples), dtype=np.float32)
        self._reader.read_dosages_range(start, stop, values)
        values[values < 0] = np.nan
        return values

    def has_dosages(self) -> bool:
        """Return whether any dosage is not a whole number."""
        pieces = (self.dosages(*limits) for limits in self.ranges())
        return any(bool((np.abs(values - np.rint(values)) > 1e-3).any()) for values in pieces)


@lru_cache(maxsize=8)
def bed_of(path: Path) -> Path | None:
    """Convert the genotypes of a .pgen to a temporary .bed, and return its path.

    The result is None if the file has dosages, which a .bed cannot hold. The .bim and .fam are next
    to the .bed. The files are deleted when the process ends. Copies of the (first) alternate allele
    are counted.
    """
    file = _Pgen(path)
    if file.has_dosages():
        return None
    folder = tempfile.TemporaryDirectory(prefix="atomlearn-pgen-")
    atexit.register(folder.cleanup)
    bed = Path(folder.name) / f"{path.stem}.bed"
    with bed.open("wb") as stream:
        stream.write(MAGIC)
        for start, stop in file.ranges():
            stream.write(pack(file.codes(start, stop)).tobytes())
    _write_names(file, bed)
    return bed


def _write_names(file: _Pgen, path: Path) -> None:
    """Write the variants and samples of ``file`` as a .bim and a .fam next to ``path``."""
    path.with_suffix(".bim").write_text("".join("\t".join(line) + "\n" for line in file.variants))
    path.with_suffix(".fam").write_text("".join(" ".join(line) + "\n" for line in file.samples))


class Dosages(DenseDesign):
    """A dense design (X in memory) of the dosages of a .pgen.

    Missing dosages are replaced by the mean of their variant.

    Parameters
    ----------
    path : Path
        The .pgen, next to its .pvar and .psam.

    Attributes
    ----------
    variants, samples : Variants, Samples
        Content of the .pvar and of the .psam, as ``PlinkBed`` has them.
    target : array, optional
        The phenotype, or None if it is unknown for any sample.
    copies, missing : (n_features,) arrays
        Sum of the known dosages of each variant, and the number of missing ones.
    """

    def __init__(self, path: Path) -> None:
        """Read all dosages of the .pgen ``path`` into memory, in float32."""
        source = PgenColumns(path)
        fits(path, "its dosages", 4 * source.shape[0] * source.shape[1])
        X = np.empty(source.shape, dtype=np.float32, order="F")
        for start, stop in source.file.ranges():
            X[:, start:stop] = source.columns(start, stop)
        super().__init__(X)
        self.variants, self.samples, self.target = source.variants, source.samples, source.y
        self.copies, self.missing = source.copies, source.missing


class PgenColumns(ColumnSource):
    """The dosages of a .pgen in float32, as a source of columns for ``convert``.

    Parameters
    ----------
    path : Path
        The .pgen, next to its .pvar and .psam.
    request : Request, optional
        Its target may be an .npy file; by default the phenotypes of the .psam are the target.
    """

    def __init__(self, path: Path, request: Request | None = None) -> None:
        """Open the .pgen ``path``; the target is that of ``request``, or the phenotype."""
        self.file = _Pgen(path)
        # The readers of .bim and .fam parse the names.
        with tempfile.TemporaryDirectory(prefix="atomlearn-pgen-") as folder:
            _write_names(self.file, Path(folder) / "names")
            self.variants = read_variants(Path(folder) / "names.bim")
            self.samples = read_samples(Path(folder) / "names.fam")
        phenotype = self.samples.phenotype
        self.y = phenotype if np.isfinite(phenotype).all() else None
        if request is not None and request.target is not None:
            self.y = target_from_file(request.target, path)
        self.shape = self.file.n_samples, self.file.n_variants
        self.about = About(self.variants.names, False, np.dtype(np.float32))
        self.copies = np.zeros(self.file.n_variants)
        self.missing = np.zeros(self.file.n_variants, dtype=np.int64)

    def columns(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return columns ``start``, ..., ``stop`` - 1, with the mean in place of missing dosages.

        The counts of copies and of missing dosages of these columns are filled in, too.
        """
        dosages = self.file.dosages(start, stop)
        gaps = np.isnan(dosages)
        self.missing[start:stop] = gaps.sum(axis=1)
        self.copies[start:stop] = np.nansum(dosages, axis=1, dtype=np.float64)
        n_known = np.maximum(self.file.n_samples - self.missing[start:stop], 1)
        means = (self.copies[start:stop] / n_known).astype(np.float32)
        return np.where(gaps, means[:, None], dosages).T


def open_pgen(path: Path) -> PlinkBed | Dosages:
    """Return the design (X with its products) of the .pgen ``path``.

    It has packed genotypes, or dosages in memory if the file has any.
    """
    bed = bed_of(path)
    return Dosages(path) if bed is None else PlinkBed(bed)


def read_pgen(path: Path, request: Request) -> DataTable:
    """Return the table of a .pgen; its X is the design of ``open_pgen``.

    Only target and ``missing`` of the ``request`` matter, see ``in_place.genotype_table``.
    """
    return in_place.genotype_table(open_pgen(path), path, request)


def pgen_columns(path: Path, request: Request) -> ColumnSource:
    """Return the columns of a .pgen for ``convert``: packed genotypes, or dosages if it has any.

    The target of the ``request`` may be an .npy file.
    """
    bed = bed_of(path)
    if bed is not None:
        return in_place.BedColumns(bed, request)
    return PgenColumns(path, request)


def names_of_pgen(path: Path) -> list[str]:
    """Return the names of the variants of the .pgen ``path``; genotypes are not read."""
    return [line[1] for line in _variants(path)]


def _companion_frame(path: Path, ending: str, names: Sequence[str], delimiter: str = "") -> Frame:
    """Return the frame of a file next to a .pgen, which must have the columns ``names``.

    ``ending`` is ".pvar" or ".psam". ``delimiter`` is that of the file; "": it is detected.
    """
    file = path.with_suffix(ending)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}, which belongs to the .pgen beside it")
    frame = TextFile(file, TextForm(delimiter=delimiter)).frame()
    frame.require(names)
    return frame


def _variants(path: Path) -> list[list[str]]:
    """Return the six .bim fields of each variant of a .pgen.

    They are chromosome, name, 0, position, counted allele (the first alternate) and other allele.
    """
    names = ("#CHROM", "ID", "POS", "ALT", "REF")
    frame = _companion_frame(path, ".pvar", names, "tab")
    lines = zip(*(frame.cells(name).tolist() for name in names), strict=True)
    return [
        [chromosome, name or ".", "0", position, counted.split(",")[0], other]
        for chromosome, name, position, counted, other in lines
    ]


def _samples(path: Path) -> list[list[str]]:
    """Return the six .fam fields of each sample of a .pgen.

    They are family, name, three zeros (father, mother, sex) and phenotype, which is the first
    column of the .psam that is no name, parent or sex, or -9 without one.
    """
    frame = _companion_frame(path, ".psam", ())
    keys = [name for name in ("#FID", "#IID", "IID") if name in frame.columns] or ["IID"]
    frame.require(keys)
    keys_with_parents = (*keys, "SID", "PAT", "MAT", "SEX")
    traits = [name for name in frame.header if name not in keys_with_parents][:1]
    names = (keys[0], keys[-1], *traits)
    lines = zip(*(frame.cells(name).tolist() for name in names), strict=True)
    return [
        [family, sample, "0", "0", "0", "".join(trait) or "-9"] for family, sample, *trait in lines
    ]
