"""PLINK 2's .pgen, .pvar and .psam, through Pgenlib: unpacked once into a .bed, read as one."""

from __future__ import annotations

import atexit
import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np

from atomlearn.storage.formats.compressed import imported
from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.store.encoding import MISSING, pack
from atomlearn.storage.store.plink import MAGIC


@lru_cache(maxsize=8)
def bed_of(path: Path) -> Path:
    """Return a .bed (.bim, .fam) of the same genotypes, which lasts as long as the process.

    Copies of the alternate allele are counted; of variants with several, those of the first.
    """
    pgenlib = imported("pgenlib", "genotypes", path)
    try:
        reader = pgenlib.PgenReader(str(path).encode())
    except RuntimeError as error:
        raise ValueError(f"{path} is not a readable .pgen file: {error}") from error
    n_samples, n_variants = int(reader.get_raw_sample_ct()), int(reader.get_variant_ct())
    variants, samples = _variants(path.with_suffix(".pvar")), _samples(path.with_suffix(".psam"))
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


def _lines(path: Path, what: str) -> tuple[list[str], list[list[str]]]:
    """Return the header of a .pvar or .psam, without #, and its lines."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}, which belongs to the .pgen beside it")
    with path.open(encoding="utf-8", errors="replace") as stream:
        lines = [line.split() for line in stream if line.strip() and not line.startswith("##")]
    if not lines or not lines[0][0].startswith("#"):
        raise ValueError(f"{path} has no header line; expected {what}")
    header = [name.lstrip("#").upper() for name in lines[0]]
    for number, line in enumerate(lines[1:], start=2):
        if len(line) < len(header):
            raise ValueError(f"line {number} of {path} has {len(line)} fields of {len(header)}")
    return header, lines[1:]


def _variants(path: Path) -> list[list[str]]:
    header, lines = _lines(path, "#CHROM POS ID REF ALT")
    places = [header.index(name) for name in ("CHROM", "ID", "POS", "ALT", "REF")]
    chromosome, name, position, counted, other = places
    found = []
    for line in lines:
        first = line[counted].split(",")[0]
        found.append([line[chromosome], line[name], "0", line[position], first, line[other]])
    return found


def _samples(path: Path) -> list[list[str]]:
    header, lines = _lines(path, "#FID IID or #IID")
    own = header.index("IID")
    family = header.index("FID") if "FID" in header else own
    known = ("SID", "PAT", "MAT", "SEX", "FID", "IID")
    traits = [place for place, name in enumerate(header) if name not in known]
    return [
        [line[family], line[own], "0", "0", "0", line[traits[0]] if traits else "-9"]
        for line in lines
    ]
