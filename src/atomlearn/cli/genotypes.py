"""Save the counted alleles of genotypes with a model, and harmonize new data with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from atomlearn.cli.options import CommandError
from atomlearn.cli.source import Dataset
from atomlearn.core import Array, Design, moments_of
from atomlearn.reports.model import Allele, SavedModel
from atomlearn.storage.formats.held import LIMITS
from atomlearn.storage.formats.messages import listing
from atomlearn.storage.intake.genotypes import Components
from atomlearn.storage.store.plink import Variants

#: Maps the relation between the alleles of the data and of the model to the text of a note.
_CHANGES = {
    "renamed": "under another name, and found by chromosome and position",
    "swapped": "alleles swapped, and recoded",
    "flipped": "on the other strand, and flipped",
    "flipped swapped": "on the other strand with alleles swapped, and flipped and recoded",
    "ambiguous": "A/T or C/G with alleles swapped, which strand or coding is not known: "
    "taken as the mean",
    "absent": "not in the data: taken as the mean",
    "different": "other alleles than the model has: taken as the mean",
}
_OPPOSITE = {"A": "T", "T": "A", "C": "G", "G": "C"}


def alleles_of(source: Dataset, columns: Sequence[int]) -> tuple[Allele, ...]:
    """Return the counted alleles of the genotype columns ``columns``, () for other data.

    Each allele includes the mean allele count, which imputes variants that new data lacks.
    """
    variants = source.variants
    if variants is None:
        return ()
    of_variants = np.array(
        [column for column in columns if column < len(variants.names)], dtype=np.int64
    )
    means = moments_of(source.design(), of_variants)[0] if of_variants.size else np.zeros(0)
    return tuple(
        Allele(
            source.names[column],
            variants.chromosomes[column],
            int(variants.positions[column]),
            variants.counted[column],
            variants.other[column],
            float(mean),
        )
        for column, mean in zip(of_variants.tolist(), means.tolist(), strict=True)
    )


def score_text(model: SavedModel) -> str:
    """Return the weights as ``plink2 --score score.tsv header-read`` reads them.

    The header is ID, A1 and a name for each output; each variant with a weight has one line. The
    text is empty without genotypes, and for products of two variants, which PLINK cannot score.
    """
    counted_alleles = {allele.name: allele.counted for allele in model.alleles}
    if any(len(feature.factors) > 1 for feature in model.features):
        return ""
    lines = [
        "\t".join([feature.name, counted_alleles[feature.name], *map(repr, weights)])
        for feature, weights in zip(model.features, model.coefficients.T.tolist(), strict=True)
        if feature.name in counted_alleles and any(weights)
    ]
    if not lines:
        return ""
    labels = [re.sub(r"\W+", "_", str(label)) for label in model.classes or ()]
    outputs = [f"WEIGHT_{label}" for label in labels] if len(labels) > 2 else ["WEIGHT"]
    return "\n".join(["\t".join(["ID", "A1", *outputs]), *lines]) + "\n"


#: Columns of components.tsv before the loadings.
_VARIANT = ("ID", "CHR", "POS", "A1", "A2", "MEAN", "SD")


def components_text(fitted: Components | None) -> str:
    """Return the text of components.tsv, "" without components.

    The first line has the singular values, and each other line a variant with its mean and standard
    deviation in the training data and its loadings, with seven digits.
    """
    if fitted is None:
        return ""
    numbers = np.column_stack([fitted.means, fitted.scales, fitted.loadings])
    variants = fitted.variants
    lines = zip(
        *(variants.names, variants.chromosomes, variants.positions.tolist()),
        *(variants.counted, variants.other, numbers.tolist()),
        strict=True,
    )
    head = "##SIZES\t" + "\t".join(map(repr, fitted.sizes.tolist()))
    rows = [
        "\t".join([*map(str, identity), *(f"{x:.7g}" for x in values)])
        for *identity, values in lines
    ]
    return "\n".join([head, "\t".join([*_VARIANT, *fitted.names]), *rows]) + "\n"


def read_components(path: Path) -> Components:
    """Return the components in a file that ``select --pcs`` wrote."""
    try:
        head, header, *lines = path.read_text(encoding="utf-8").splitlines()
        sizes = np.array(head.split("\t")[1:], dtype=np.float64)
        fields = [line.split("\t") for line in lines]
        names, chromosomes, places, counted, other = (
            [line[position] for line in fields] for position in range(5)
        )
        numbers = np.array([line[5:] for line in fields], dtype=np.float64)
        positions = np.array(places, dtype=np.int64)
    except (ValueError, IndexError) as error:
        raise CommandError(f"{path} is damaged: {error}; select again with --pcs") from error
    width = len(_VARIANT) + sizes.size
    if len(header.split("\t")) != width or numbers.shape[1] != sizes.size + 2:
        raise CommandError(f"{path} is damaged: it lacks columns; select again with --pcs")
    variants = Variants(names, chromosomes, positions, counted, other)
    return Components(variants, numbers[:, 0], numbers[:, 1], numbers[:, 2:], sizes)


def projected(fitted: Components, new: Harmonizer, notes: list[str]) -> dict[str, Array]:
    """Return the principal components of new samples by name, with notes on lacking variants."""
    variants = fitted.variants
    alleles = [
        Allele(*fields)
        for fields in zip(
            *(variants.names, variants.chromosomes, variants.positions.tolist()),
            *(variants.counted, variants.other, fitted.means.tolist()),
            strict=True,
        )
    ]
    along = np.zeros((new.n_rows, fitted.sizes.size))
    squares = np.zeros(new.n_rows)
    n_lost = 0
    block = max(1, LIMITS.piece_bytes // (8 * new.n_rows))
    for start in range(0, len(alleles), block):
        samples = slice(start, start + block)
        X, ways = new.counts(alleles[samples])
        n_lost += sum(len(ways.get(way, ())) for way in ("absent", "ambiguous", "different"))
        scaled = (X - fitted.means[samples]) / fitted.scales[samples]
        along += scaled @ fitted.loadings[samples]
        squares += np.sum(scaled**2, axis=1)
    notes.append(
        f"{fitted.sizes.size} principal components are projected from {len(alleles) - n_lost:,} of "
        f"their {len(alleles):,} variants"
    )
    return dict(zip(fitted.names, fitted.projected(along, squares).T, strict=True))


def about(source: Dataset, columns: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Return the position and alleles of variants as (header, value) pairs, () if it has none.

    ``columns`` are the one or two columns of a feature; the values of two are joined by colons.
    """
    variants = source.variants
    if variants is None or any(column >= len(variants.names) for column in columns):
        return ()
    facts = {
        "chromosome": variants.chromosomes,
        "position": variants.positions,
        "counted_allele": variants.counted,
        "other_allele": variants.other,
    }
    return tuple(
        (head, ":".join(str(values[column]) for column in columns))
        for head, values in facts.items()
    )


class Harmonizer:
    """Allele counts of new data, harmonized with those of a model.

    A variant is matched by name, else by chromosome and position. Swapped alleles are recoded as 2
    - x, and alleles of the opposite strand are flipped. Palindromic variants (A/T and C/G) read the
    same on both strands: they are used if the alleles agree, and replaced by the mean of the
    training data if they are swapped, because the strand is then ambiguous. Variants that are
    absent or have other alleles are replaced by the mean, too. ``names`` are the names of the
    columns of ``design``.
    """

    def __init__(self, variants: Variants, names: Sequence[str], design: Design) -> None:
        self._variants = variants
        self._design = design
        self._columns = {name: column for column, name in enumerate(names)}
        places = map(_place, variants.chromosomes, variants.positions.tolist())
        self._at = {position: column for column, position in enumerate(places)}
        self.n_rows = design.shape[0]

    def counts(self, alleles: Sequence[Allele]) -> tuple[Array, dict[str, list[str]]]:
        """Return the counts (n_rows, n_alleles), and the names of variants by what was done."""
        X = np.zeros((self.n_rows, len(alleles)))
        variants = self._variants
        ways = dict[str, list[str]]()
        read = dict[int, int]()
        for number, allele in enumerate(alleles):
            column = self._columns.get(allele.name)
            if column is None:
                column = self._at.get(_place(allele.chromosome, allele.position))
                if column is not None:
                    ways.setdefault("renamed", []).append(allele.name)
            way = "absent"
            if column is not None:
                way = _relation_of_alleles(allele, variants.counted[column], variants.other[column])
            if way != "same":
                ways.setdefault(way, []).append(allele.name)
            if column is None or way in ("ambiguous", "different"):
                X[:, number] = allele.mean
            else:
                read[number] = column
        values = self._design.gather(np.array([*read.values()], dtype=np.int64)).dense()
        X[:, [*read]] = values
        turned = {name for way, names in ways.items() if way.endswith("swapped") for name in names}
        swapped = [number for number in read if alleles[number].name in turned]
        X[:, swapped] = 2.0 - X[:, swapped]
        return X, ways


def _place(chromosome: str, position: int) -> tuple[str, int]:
    """Return the place of a variant; chr1 and 1 are the same chromosome."""
    return chromosome.casefold().removeprefix("chr"), position


def notes_on(ways: Mapping[str, Sequence[str]]) -> list[str]:
    """Return notes that count and name the variants that were not used as they are."""
    return [
        f"{len(ways[way])} variants {text} ({listing(ways[way])})"
        for way, text in _CHANGES.items()
        if way in ways
    ]


def _relation_of_alleles(allele: Allele, counted: str, other: str) -> str:
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
    letters = [letter for letter in data if letter != "0"]
    if "0" in data and letters and letters[0] in model:
        swapped = data.index(letters[0]) != model.index(letters[0])
        return "ambiguous" if swapped and palindromic else "swapped" if swapped else "same"
    return "different"
