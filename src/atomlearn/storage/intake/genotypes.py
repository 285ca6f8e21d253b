"""Genotypes on the way in: names, filters of variants, and principal components as covariates."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds
from scipy.special import gammaln
from scipy.stats import chi2

from atomlearn.core.data.standardized import Standardized
from atomlearn.core.interfaces import Array, Design
from atomlearn.storage.intake.frame import distinct_names
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.store.plink import Variants

#: Of the variances of principal components, as ARPACK has it: covariates need no more digits.
TOLERANCE = 1e-3


def kept_variants(design: Any, reading: Reading) -> tuple[NDArray[np.int64], list[str]]:
    """Return the variants that pass --maf, --geno and --hwe, and notes about the others."""
    n_samples, missing = design.shape[0], design.missing.astype(np.float64)
    known, copies = n_samples - missing, design.copies.astype(np.float64)
    keep, notes = known > 0, []
    if not keep.all():
        notes.append(f"{int((~keep).sum())} variants without any genotype left out")
    means = np.divide(copies, known, out=np.zeros(known.size), where=known > 0)
    passed = dict[str, NDArray[np.bool_]]()
    if reading.geno is not None:
        passed[f"--geno {reading.geno:g}"] = missing <= reading.geno * n_samples
    if reading.maf is not None:
        passed[f"--maf {reading.maf:g}"] = np.minimum(means, 2 - means) >= 2 * reading.maf
    if reading.hwe is not None:
        # The design counts a missing genotype as the mean of its variant.
        squares = design.squared_norms() - missing * means**2
        both = np.rint((squares - copies) / 2)
        passed[f"--hwe {reading.hwe:g}"] = (
            hardy_weinberg(copies - 2 * both, both, known) >= reading.hwe
        )
    for option, enough in passed.items():
        notes.append(f"{option} leaves out {int((keep & ~enough).sum())} of {keep.sum()} variants")
        keep &= enough
    if not keep.any():
        raise ValueError("no variant passes --maf, --geno and --hwe; loosen them")
    return np.flatnonzero(keep), notes


def hardy_weinberg(one: Array, two: Array, known: Array) -> Array:
    """Return the p of the exact test, given how many have one and two copies, of how many.

    The chi-squared test where that is far from small; the exact one where it decides.

    References
    ----------
    J. E. Wigginton, D. J. Cutler, G. R. Abecasis. A note on exact tests of Hardy-Weinberg
    equilibrium. American Journal of Human Genetics 76 (2005) 887-893, doi:10.1086/429864.
    """
    share = (one + 2 * two) / (2 * np.maximum(known, 1))
    expected = 2 * share * (1 - share) * known
    excess = 1 - np.divide(one, expected, out=np.ones(known.size), where=expected > 0)
    p = np.asarray(chi2.sf(known * excess**2, 1))
    for place in np.flatnonzero((p < 0.05) | (expected < 10)):
        p[place] = _exact(int(one[place]), int(two[place]), int(known[place]))
    return p


def _exact(one: int, two: int, known: int) -> float:
    """Return the share of samples of these alleles that are at most as likely as this one."""
    rare = min(one + 2 * two, 2 * known - one - 2 * two)
    if rare == 0:
        return 1.0
    carriers = np.arange(rare % 2, rare + 1, 2, dtype=np.float64)
    homozygous = (rare - carriers) / 2
    others = known - carriers - homozygous
    logs = carriers * np.log(2.0) - gammaln(carriers + 1) - gammaln(homozygous + 1)
    logs -= gammaln(others + 1)
    chances = np.exp(logs - logs.max())
    mine = chances[np.searchsorted(carriers, one)]
    return float(chances[chances <= mine * (1 + 1e-9)].sum() / chances.sum())


def components(design: Design, count: int, seed: int = 0) -> Array:
    """Return the first principal components of standardized columns, (n_samples, count)."""
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
    start = np.random.default_rng(seed).standard_normal(min(design.shape))
    left, sizes, _ = svds(operator, count, v0=start, tol=TOLERANCE)
    found = (left * sizes)[:, ::-1]
    # The sign is of no meaning; this one is always the same.
    return np.asarray(found * np.sign(found[np.argmax(np.abs(found), axis=0), np.arange(count)]))


def distinct(variants: Variants) -> list[str]:
    """Return names of variants, those that are "." or repeated as chromosome:position:alleles."""
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
    """Return some of the variants."""

    def some(values: list[str]) -> list[str]:
        return [values[j] for j in columns.tolist()]

    return Variants(
        some(variants.names),
        some(variants.chromosomes),
        variants.positions[columns],
        some(variants.counted),
        some(variants.other),
    )
