"""write_plink: an array of genotypes as .bed, .bim and .fam."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.storage.formats.limits import LIMITS
from atomlearn.storage.store.encoding import encode_values, pack
from atomlearn.storage.store.plink import MAGIC


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
    """Write ``path`` (.bed) with .bim and .fam of copies 0, 1, 2 and NaN, (n_samples, n_features).

    Alleles are written as 1 (the one counted) and 2; unknown phenotypes (NaN, or none given) as -9.
    """
    file, (n_samples, n_features) = Path(path), X.shape
    names = [f"v{j}" for j in range(n_features)] if names is None else names
    samples = [f"s{i}" for i in range(n_samples)] if samples is None else samples
    chromosomes = [1] * n_features if chromosomes is None else chromosomes
    positions = range(1, n_features + 1) if positions is None else positions
    values = np.full(n_samples, np.nan) if phenotype is None else phenotype
    with file.open("wb") as stream:
        stream.write(MAGIC)
        width = max(1, LIMITS.piece_bytes // n_samples)
        for start in range(0, n_features, width):
            part = encode_values(X[:, start : start + width], "genotype", 0, start)
            stream.write(pack(part).tobytes())
    lines = zip(chromosomes, names, positions, strict=True)
    file.with_suffix(".bim").write_text(
        "".join(f"{chromosome}\t{name}\t0\t{place}\t1\t2\n" for chromosome, name, place in lines),
        encoding="utf-8",
    )
    people = zip(samples, np.where(np.isnan(values), -9.0, values).tolist(), strict=True)
    file.with_suffix(".fam").write_text(
        "".join(f"{name} {name} 0 0 0 {value!r}\n" for name, value in people),
        encoding="utf-8",
    )
