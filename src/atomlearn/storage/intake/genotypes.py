"""Genotypes: names and filters of variants, and principal components as covariates."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds

from atomlearn.core import Array, Design, Standardized
from atomlearn.storage.intake.frame import distinct_names
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.store.plink import Variants

#: ARPACK's tolerance for the variances of principal components; covariates need no more digits.
TOLERANCE = 1e-3


def kept_variants(design: Any, reading: Reading) -> tuple[NDArray[np.int64], list[str]]:
    """Return the variants that pass the quality filters, and notes about the others.

    ``reading.maf`` is the minimum minor-allele frequency, ``reading.geno`` the maximum share of
    missing genotypes of a variant.
    """
    n_samples = design.shape[0]
    missing = design.missing.astype(np.float64)
    known = n_samples - missing
    copies = design.copies.astype(np.float64)
    keep = known > 0
    notes = []
    if not keep.all():
        notes.append(f"{int((~keep).sum())} variants without any genotype left out")
    means = np.divide(copies, known, out=np.zeros(known.size), where=known > 0)
    passed = dict[str, NDArray[np.bool_]]()
    if reading.geno is not None:
        passed[f"--geno {reading.geno:g}"] = missing <= reading.geno * n_samples
    if reading.maf is not None:
        passed[f"--maf {reading.maf:g}"] = np.minimum(means, 2 - means) >= 2 * reading.maf
    for option, enough in passed.items():
        notes.append(f"{option} leaves out {int((keep & ~enough).sum())} of {keep.sum()} variants")
        keep &= enough
    if not keep.any():
        raise ValueError("no variant passes --maf and --geno; loosen them")
    return np.flatnonzero(keep), notes


def components(design: Design, count: int, rng: int = 0) -> Array:
    """Return the scores of the samples on the first principal components, (n_samples, count).

    A truncated singular value decomposition (ARPACK) of the standardized columns; ``rng`` is the
    seed of its starting vector.
    """
    scaled = Standardized(design)
    if not 1 <= count < min(design.shape):
        raise ValueError(
            f"--pcs must be from 1 to {min(design.shape) - 1}, fewer than samples and variants"
        )
    operator = LinearOperator(
        design.shape,
        matvec=lambda w: scaled.predict(np.ravel(w)),
        rmatvec=lambda v: scaled.scores(np.ravel(v)).full(),
        dtype=np.float64,
    )
    start = np.random.default_rng(rng).standard_normal(min(design.shape))
    left, sizes, _ = svds(operator, count, v0=start, tol=TOLERANCE)
    found = (left * sizes)[:, ::-1]
    # The sign is arbitrary; this choice makes it reproducible.
    return np.asarray(found * np.sign(found[np.argmax(np.abs(found), axis=0), np.arange(count)]))


def distinct(variants: Variants) -> list[str]:
    """Return distinct names of variants; "." and repeated names become position and alleles."""
    counts = Counter(variants.names)
    made = [
        f"{chromosome}:{position}:{counted}:{other}" if name == "." or counts[name] > 1 else name
        for name, chromosome, position, counted, other in zip(
            variants.names,
            variants.chromosomes,
            variants.positions.tolist(),
            variants.counted,
            variants.other,
            strict=True,
        )
    ]
    return distinct_names(made)[0]


def taken(variants: Variants, columns: NDArray[np.int64]) -> Variants:
    """Return the variants of these columns."""

    def some(values: list[str]) -> list[str]:
        return [values[j] for j in columns.tolist()]

    return Variants(
        some(variants.names),
        some(variants.chromosomes),
        variants.positions[columns],
        some(variants.counted),
        some(variants.other),
    )
