"""PLINK's .bed, .bim and .fam, read in place: two bits for each genotype."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn import _kernels
from atomlearn.storage.store.on_disk import StreamedDesign
from atomlearn.storage.store.store_file import READING, ByteFile, StoreError
from atomlearn.storage.store.stored_columns import Checks, GenotypeColumns, cut

#: First bytes of a .bed whose columns are variants (SNP-major), the usual order.
MAGIC = b"\x6c\x1b\x01"


@dataclass(frozen=True, slots=True)
class Variants:
    """The content of a .bim file.

    Attributes
    ----------
    names, chromosomes : list of str
        Name and chromosome of each variant.
    positions : (p,) int64
        Positions in base pairs.
    counted, other : list of str
        Alleles; X counts the copies of the first.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn.storage.store.plink import Variants
    >>> variants = Variants(["a", "b"], ["1", "1"], np.array([10, 90]), ["A", "C"], ["G", "T"])
    >>> variants.windows(100)
    [array([0, 1]), array([1])]
    """

    names: list[str]
    chromosomes: list[str]
    positions: NDArray[np.int64]
    counted: list[str]
    other: list[str]

    def windows(self, width: int) -> list[NDArray[np.int64]]:
        """Return the columns in overlapping sliding windows along each chromosome.

        A window has ``width`` base pairs and starts half a width after the one before, so that each
        variant is in two windows (in one at the beginning). Windows without variants are left out.
        The result has the column numbers of each window.
        """
        if width < 2:
            raise ValueError(f"width must be at least 2 base pairs, got {width}")
        groups: dict[tuple[str, int], list[int]] = {}
        # Each chromosome is cut into cells of half a width; window c has the cells c and c + 1.
        radius = width // 2
        cells = (self.positions // radius).tolist()
        for column, (chromosome, cell) in enumerate(zip(self.chromosomes, cells, strict=True)):
            for window in {max(cell - 1, 0), cell}:
                groups.setdefault((chromosome, window), []).append(column)
        return [np.array(columns, dtype=np.int64) for columns in groups.values()]


def read_variants(path: str | os.PathLike[str]) -> Variants:
    """Return the variants in the .bim file ``path``; refuse positions that are no whole numbers."""
    fields = _fields(Path(path), "chromosome, name, centimorgans, position and two alleles")
    try:
        positions = np.array([int(line[3]) for line in fields], dtype=np.int64)
    except (ValueError, OverflowError) as error:
        raise StoreError(
            f"{path} has a position that is no whole number of 64 bits: {error}"
        ) from error
    chromosomes = [line[0] for line in fields]
    # The fields 1, 4 and 5 of a line are the name and the two alleles.
    names, counted, other = ([line[k] for line in fields] for k in (1, 4, 5))
    return Variants(names, chromosomes, positions, counted, other)


@dataclass(frozen=True, slots=True)
class Samples:
    """The content of a .fam file.

    Attributes
    ----------
    family, name : list of str
        Family and name of each sample.
    phenotype : array
        Phenotype of each sample; NaN if it is unknown. The file says -9 or NA for an unknown one,
        or 0 if the known ones are 1 and 2.
    """

    family: list[str]
    name: list[str]
    phenotype: NDArray[np.float64]


def read_samples(path: str | os.PathLike[str]) -> Samples:
    """Return the samples in the .fam file ``path``, with NaN for unknown phenotypes."""
    fields = _fields(Path(path), "family, name, father, mother, sex and phenotype")
    values = np.full(len(fields), np.nan)
    for number, line in enumerate(fields):
        try:
            values[number] = float(line[5])
        except ValueError:
            if line[5] != "NA":
                raise StoreError(
                    f"{path} has the phenotype {line[5]!r} in line {number + 1}; expected a "
                    "number, -9 or NA"
                ) from None
    values[values == -9] = np.nan
    # If a phenotype has the codes 1 (control) and 2 (case), PLINK's 0 means unknown.
    finite = values[np.isfinite(values)]
    if np.isin(finite, (0, 1, 2)).all() and (finite == 2).any():
        values[values == 0] = np.nan
    return Samples([line[0] for line in fields], [line[1] for line in fields], values)


def _fields(path: Path, description: str) -> list[list[str]]:
    """Return the six fields of each line of ``path``, a .bim or .fam; refuse other lines.

    ``description`` lists the fields, for messages.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}, which belongs to the .bed beside it")
    with path.open(encoding="utf-8", errors="replace") as stream:
        fields = [line.split() for line in stream if line.strip()]
    for number, line in enumerate(fields, start=1):
        if len(line) != 6:
            raise StoreError(
                f"line {number} of {path} has {len(line)} fields; expected 6: {description}"
            )
    if not fields:
        raise StoreError(f"{path} is empty; expected a line with {description} each")
    return fields


class PlinkBed(StreamedDesign):
    """An out-of-core design: X has the genotypes of a PLINK .bed, read in place.

    The entry x_ij is the number of copies (0, 1 or 2) that sample i has of the first allele of
    variant j in the .bim.

    Parameters
    ----------
    path : file
        ``study.bed``, next to ``study.bim`` and ``study.fam``.

    Attributes
    ----------
    variants : Variants
        Names, chromosomes, positions and alleles of the columns.
    samples : Samples
        Names of the rows and their phenotype.
    copies : (n_features,) int64
        Copies of the first allele among all samples.
    missing : (n_features,) int64
        Missing genotypes of each column. They count as the mean of the others, which centering
        (``designs.Standardized``) makes zero; a column without any known genotype is zero.

    Notes
    -----
    A pass reads n p / 4 bytes, unpacks them in registers and sums in float64. Creating the design
    takes one pass, which counts alleles. Columns are gathered in float32 if that is exact (without
    missing genotypes), else in float64. To solve many problems over the same data, convert them to
    a store (``atomlearn convert``), which has the counts, and checksums as well.

    References
    ----------
    .. [1] C. C. Chang, C. C. Chow, L. C. Tellier, S. Vattikuti, S. M. Purcell, J. J. Lee,
       "Second-generation PLINK: rising to the challenge of larger and richer datasets",
       GigaScience 4 (2015), doi:10.1186/s13742-015-0047-8.

    Examples
    --------
    >>> from atomlearn.designs import PlinkBed
    >>> design = PlinkBed("study.bed")  # doctest: +SKIP
    >>> design.variants.chromosomes[:2], design.missing.sum()  # doctest: +SKIP
    (['1', '1'], 1207)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Open the .bed ``path``, read the files next to it, and count the alleles in one pass."""
        file = Path(path)
        self.variants = read_variants(file.with_suffix(".bim"))
        self.samples = read_samples(file.with_suffix(".fam"))
        n_samples = len(self.samples.name)
        n_features = len(self.variants.names)
        opened = _checked(file, n_samples, n_features)
        chunks = cut(n_features, (n_samples + 3) // 4, READING.chunk_bytes)
        columns = GenotypeColumns(opened, len(MAGIC), n_samples, chunks, Checks(None))
        super().__init__(columns, n_features, file)
        # One pass counts the alleles, from which the means for missing genotypes follow.
        operations = READING.operations_per_byte * columns.n_bytes
        _kernels.share_out(columns.count, chunks.size - 1, operations)
        columns.set_counts(columns.counts)
        self.copies: NDArray[np.int64] = columns.counts[:, 0]
        self.missing: NDArray[np.int64] = columns.counts[:, 1]

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to open the file again: a pickle has the path, not the data."""
        return PlinkBed, (os.path.abspath(self.path),)

    def __repr__(self) -> str:
        """Return a text with path and shape."""
        return f"PlinkBed({str(self.path)!r}: {self.shape})"

    def packed(self, start: int, stop: int) -> NDArray[np.uint8]:
        """Return columns start, ..., stop - 1 in PLINK's two-bit code, as one array of bytes."""
        column_bytes = (self.shape[0] + 3) // 4
        buffer = np.empty((stop - start) * column_bytes, dtype=np.uint8)
        opened = self._columns.file
        opened.read_into(len(MAGIC) + start * column_bytes, buffer)
        return buffer

    @property
    def names(self) -> list[str]:
        """The names of the variants."""
        return self.variants.names

    @property
    def target(self) -> NDArray[np.float64] | None:
        """The phenotype, or None if it is unknown for any sample."""
        phenotype = self.samples.phenotype
        return phenotype if np.isfinite(phenotype).all() else None


def _checked(file: Path, n_samples: int, n_features: int) -> ByteFile:
    """Return the open .bed ``file`` after a check of its first bytes and its size.

    The first bytes say that columns are variants. The size follows from the numbers ``n_samples``
    of rows and ``n_features`` of columns.
    """
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file}")
    opened = ByteFile(file)
    # A column has four genotypes in a byte; a third byte of 0 means the sample-major order.
    expected = len(MAGIC) + n_features * ((n_samples + 3) // 4)
    head = np.zeros(min(3, opened.size), dtype=np.uint8)
    opened.read_into(0, head)
    if head.tobytes() == MAGIC[:2] + b"\x00":
        raise StoreError(
            f"{file} is in sample-major order; rewrite it with `plink --bfile ... --make-bed`"
        )
    if head.tobytes() != MAGIC:
        raise StoreError(f"{file} is not a PLINK .bed: it begins with {head.tobytes()!r}")
    if opened.size != expected:
        raise StoreError(
            f"{file} has {opened.size:,} bytes; {n_samples:,} samples (.fam) and {n_features:,} "
            f"variants (.bim) take {expected:,}: the file is cut off, or the three do not belong "
            "together"
        )
    return opened
