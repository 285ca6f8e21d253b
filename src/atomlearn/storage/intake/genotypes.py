"""Genotypes: names and filters of variants, and principal components as covariates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, svds

from atomlearn._support import TINY
from atomlearn.core import Array, Design, Standardized
from atomlearn.storage.intake.frame import distinct_names
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.store.plink import Variants

#: Origin of principal components in the plan of their column.
OF_VARIANTS = "of the variants"
#: ARPACK's tolerance for the variances of principal components; covariates need no more digits.
TOLERANCE = 1e-3


def kept_variants(design: Any, reading: Reading) -> tuple[NDArray[np.int64], list[str]]:
    """Return the columns of ``design`` that pass the quality filters, and notes about the others.

    ``design`` has the genotypes X and their counts. ``reading.maf`` is the minimum frequency of the
    rarer allele, ``reading.geno`` the maximum share of missing genotypes of a variant. Variants
    without any genotype are always left out.
    """
    n_samples = design.shape[0]
    missing = design.missing.astype(np.float64)
    n_known = n_samples - missing
    copies = design.copies.astype(np.float64)
    keep = n_known > 0
    notes = []
    if not keep.all():
        notes.append(f"{int((~keep).sum())} variants without any genotype left out")
    # The mean number of copies is twice the frequency of the counted allele.
    means = np.divide(copies, n_known, out=np.zeros(n_known.size), where=n_known > 0)
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


@dataclass(frozen=True, slots=True, eq=False)
class Components:
    """Principal components of the genotypes of some samples, with which others are projected.

    Attributes
    ----------
    variants : Variants
        The variants, with the names of the columns of X.
    means, scales : (n_variants,) arrays
        Means and standard deviations of the allele counts.
    loadings : (n_variants, n_components) array
        Right singular vectors of the standardized allele counts.
    sizes : (n_components,) array
        Singular values, in decreasing order.
    """

    variants: Variants
    means: Array
    scales: Array
    loadings: Array
    sizes: Array

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the components: PC1, PC2, ..."""
        return tuple(f"PC{number}" for number in range(1, self.sizes.size + 1))

    def projected(self, along: Array, squares: Array) -> Array:
        """Return the scores of new samples, (n_samples, n_components).

        V are the loadings. The plain projection V'x of a new sample x is too near to zero, because
        the components fit the noise of the known samples. Therefore x is added to the known
        samples, and the singular value decomposition of all is computed from the small matrix
        [diag(sizes), 0; V'x, r] with r = sqrt(x'x - ||V'x||^2). Its scores are rotated and scaled
        so that those of the known samples match their own scores before [1]_.

        Parameters
        ----------
        along : (n_samples, n_components) array
            The plain projections V'x of the standardized samples.
        squares : (n_samples,) array
            Their squared norms x'x.

        References
        ----------
        .. [1] D. Zhang, R. Dey, S. Lee, "Fast and robust ancestry prediction using principal
           component analysis", Bioinformatics 36 (2020), doi:10.1093/bioinformatics/btaa152.
        """
        n_components = self.sizes.size
        scores = np.empty_like(along)
        for row, (plain, square) in enumerate(zip(along, squares.tolist(), strict=True)):
            padded = np.zeros((n_components + 1, n_components + 1))
            padded[:n_components, :n_components] = np.diag(self.sizes)
            padded[n_components, :n_components] = plain
            padded[n_components, n_components] = np.sqrt(max(square - float(plain @ plain), 0.0))
            vectors, sizes, _ = np.linalg.svd(padded)
            new_scores = (vectors * sizes)[:, :n_components]
            # The best rotation and scale of the known samples back to their own scores, the rows of
            # diag(sizes): the orthogonal Procrustes problem.
            known_scores = new_scores[:n_components]
            left_vectors, overlaps, right_vectors = np.linalg.svd(known_scores.T * self.sizes)
            scale = overlaps.sum() / max(float(np.sum(known_scores**2)), TINY)
            scores[row] = scale * (new_scores[n_components] @ left_vectors @ right_vectors)
        return scores


def components(
    design: Design, count: int, variants: Variants, names: Sequence[str], rng: int = 0
) -> tuple[Array, Components]:
    """Return the scores of the samples on the first principal components, and the components.

    ARPACK computes a truncated singular value decomposition of the standardized columns.

    Parameters
    ----------
    design : Design
        The genotypes X, wherever they are stored.
    count : int
        Number of components.
    variants : Variants
        The variants that the columns count.
    names : sequence of str
        Names of the columns.
    rng : int
        Seed of the starting vector.

    Returns
    -------
    scores : (n_samples, count) array
        Left singular vectors times singular values.
    components : Components
        The decomposition, with which new samples are projected.
    """
    scaled = Standardized(design)
    if not 1 <= count < min(design.shape):
        raise ValueError(
            f"--pcs must be from 1 to {min(design.shape) - 1}, fewer than samples and variants"
        )
    # ARPACK needs only the products Xw and X'v with the standardized X, which is never copied.
    operator = LinearOperator(
        design.shape,
        matvec=lambda w: scaled.predict(np.ravel(w)),
        rmatvec=lambda v: scaled.scores(np.ravel(v)).full(),
        dtype=np.float64,
    )
    start = np.random.default_rng(rng).standard_normal(min(design.shape))
    vectors, sizes, right = svds(operator, count, v0=start, tol=TOLERANCE)
    order = np.argsort(-sizes)
    vectors, sizes, right = vectors[:, order], sizes[order], right[order]
    # The sign is arbitrary; this choice makes it reproducible.
    signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(count)])
    renamed = replace(variants, names=list(names))
    model = Components(
        renamed, scaled.means, scaled.scales, right.T * signs, np.asarray(sizes, dtype=np.float64)
    )
    return vectors * (sizes * signs), model


def distinct(variants: Variants) -> list[str]:
    """Return distinct names of variants.

    A variant with the name "." or a repeated one becomes chromosome:position:counted:other, with
    its two alleles.
    """
    counts = Counter(variants.names)
    texts = [
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
    return distinct_names(texts)[0]


def taken(variants: Variants, columns: NDArray[np.int64]) -> Variants:
    """Return the variants of the columns of X with the numbers ``columns``."""

    def entries_of(values: list[str]) -> list[str]:
        """Return the entries of ``values`` for these variants."""
        return [values[j] for j in columns.tolist()]

    return Variants(
        entries_of(variants.names),
        entries_of(variants.chromosomes),
        variants.positions[columns],
        entries_of(variants.counted),
        entries_of(variants.other),
    )
