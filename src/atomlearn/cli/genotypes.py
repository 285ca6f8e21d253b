"""Save the counted alleles of genotypes with a model, and harmonize new data with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from atomlearn.cli.source import Dataset
from atomlearn.core import Array, Design, moments_of
from atomlearn.reports.model import Allele, SavedModel
from atomlearn.storage.formats.messages import listing
from atomlearn.storage.store.plink import Variants

#: Maps the relation between the alleles of the data and of the model to the text of a note.
_CHANGES = {
    "swapped": "alleles swapped, and recoded",
    "flipped": "on the other strand, and flipped",
    "flipped swapped": "on the other strand with alleles swapped, and flipped and recoded",
    "ambiguous": "A/T or C/G with alleles swapped, which strand or coding is not known: "
    "taken as the mean",
    "absent": "not in the data: taken as the mean",
    "different": "other alleles than the model has: taken as the mean",
}
_OPPOSITE = {"A": "T", "T": "A", "C": "G", "G": "C"}


def alleles_of(source: Dataset, used: Sequence[int]) -> tuple[Allele, ...]:
    """Return the counted alleles of the genotype columns ``used``, () for other data.

    Each allele includes the mean allele count, which imputes variants that new data lacks.
    """
    variants = source.variants
    if variants is None:
        return ()
    mine = np.array([column for column in used if column < len(variants.names)], dtype=np.int64)
    means = moments_of(source.design(), mine)[0] if mine.size else np.zeros(0)
    return tuple(
        Allele(
            source.names[column],
            variants.chromosomes[column],
            int(variants.positions[column]),
            variants.counted[column],
            variants.other[column],
            float(mean),
        )
        for column, mean in zip(mine.tolist(), means.tolist(), strict=True)
    )


def score_text(model: SavedModel) -> str:
    """Return the weights in the format of ``plink2 --score``, "" without genotypes.

    Each variant has one line: its name, the counted allele, and one weight per output.
    """
    counted = {allele.name: allele.counted for allele in model.alleles}
    lines = [
        "\t".join([feature.name, counted[feature.name], *map(repr, weights)])
        for feature, weights in zip(model.features, model.coefficients.T.tolist(), strict=True)
        if feature.name in counted
    ]
    return "".join(line + "\n" for line in lines)


def about(source: Dataset, column: int) -> tuple[tuple[str, str], ...]:
    """Return the position and alleles of a variant as (header, value) pairs, () if it has none."""
    variants = source.variants
    if variants is None or column >= len(variants.names):
        return ()
    return (
        ("chromosome", variants.chromosomes[column]),
        ("position", str(int(variants.positions[column]))),
        ("counted_allele", variants.counted[column]),
        ("other_allele", variants.other[column]),
    )


def harmonized(
    alleles: Sequence[Allele], variants: Variants, names: Sequence[str], design: Design
) -> tuple[Array, list[str]]:
    """Return the allele counts harmonized with the model, (n_rows, n_alleles), and notes.

    A variant is matched by name, else by chromosome and position. Swapped alleles are recoded as 2
    - x, and alleles of the opposite strand are flipped. Palindromic variants (A/T and C/G) read the
    same on both strands: they are used if the alleles agree, and replaced by the mean of the
    training data if they are swapped, because the strand is then ambiguous. Variants that are
    absent or have other alleles are replaced by the mean, too. ``names`` are the names of the
    columns of ``design``.
    """
    place = {name: column for column, name in enumerate(names)}
    where = {
        (chromosome, int(position)): column
        for column, (chromosome, position) in enumerate(
            zip(variants.chromosomes, variants.positions.tolist(), strict=True)
        )
    }
    X = np.zeros((design.shape[0], len(alleles)))
    ways = dict[str, list[str]]()
    for number, allele in enumerate(alleles):
        column = place.get(allele.name, where.get((allele.chromosome, allele.position)))
        way = "absent"
        if column is not None:
            way = _way(allele, variants.counted[column], variants.other[column])
        if way != "same":
            ways.setdefault(way, []).append(allele.name)
        if column is None or way in ("ambiguous", "different"):
            X[:, number] = allele.mean
            continue
        values = np.asarray(design.gather(np.array([column])).dense()[:, 0], dtype=np.float64)
        X[:, number] = 2.0 - values if way.endswith("swapped") else values
    notes = [
        f"{len(ways[way])} variants {text} ({listing(ways[way])})"
        for way, text in _CHANGES.items()
        if way in ways
    ]
    return X, notes


def _way(allele: Allele, counted: str, other: str) -> str:
    """Return how the alleles of the data relate to those of the model.

    The result is "same" or a key of ``_CHANGES``; ``counted`` and ``other`` are the alleles of the
    data.
    """
    model = (allele.counted.upper(), allele.other.upper())
    data = (counted.upper(), other.upper())
    palindromic = _OPPOSITE.get(model[0]) == model[1]
    if data == model:
        return "same"
    if data == model[::-1]:
        return "ambiguous" if palindromic else "swapped"
    turned = tuple(_OPPOSITE.get(letter, letter) for letter in data)
    if turned == model:
        return "flipped"
    if turned == model[::-1]:
        return "flipped swapped"
    # PLINK writes 0 for an allele that was not observed in any sample.
    known = [letter for letter in data if letter != "0"]
    if "0" in data and known and known[0] in model:
        swapped = data.index(known[0]) != model.index(known[0])
        return "ambiguous" if swapped and palindromic else "swapped" if swapped else "same"
    return "different"
