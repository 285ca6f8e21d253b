"""Save the counted alleles of genotypes with a model, and harmonize new data with them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from atomlearn.cli.options import CommandError
from atomlearn.cli.source import Dataset
from atomlearn.core import Array, Design, column_moments
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
    ``source`` is the data that was read.
    """
    variants = source.variants
    if variants is None:
        return ()
    variant_columns = np.array(
        [column for column in columns if column < len(variants.names)], dtype=np.int64
    )
    means = (
        column_moments(source.design(), columns=variant_columns)[0]
        if variant_columns.size
        else np.zeros(0)
    )
    return tuple(
        Allele(
            source.names[column],
            variants.chromosomes[column],
            int(variants.positions[column]),
            variants.counted[column],
            variants.other[column],
            float(mean),
        )
        for column, mean in zip(variant_columns.tolist(), means.tolist(), strict=True)
    )


def score_text(model: SavedModel) -> str:
    """Return the weights as ``plink2 --score score.tsv header-read`` reads them.

    The header is ID, A1 and a name for each output; each variant with a weight has one line. The
    text is empty without genotypes, and for products of two variants, which PLINK cannot score.
    ``model`` is the saved model.
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
    deviation in the training data and its loadings, with seven digits. ``fitted`` are the principal
    components of genotypes, or None.
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
        "\t".join([*map(str, identity), *(f"{number:.7g}" for number in values)])
        for *identity, values in lines
    ]
    return "\n".join([head, "\t".join([*_VARIANT, *fitted.names]), *rows]) + "\n"


def read_components(path: Path) -> Components:
    """Return the components in a file that ``select --pcs`` wrote.

    ``path`` is the path of the file.
    """
    try:
        sizes_line, header, *lines = path.read_text(encoding="utf-8").splitlines()
        sizes = np.array(sizes_line.split("\t")[1:], dtype=np.float64)
        fields = [line.split("\t") for line in lines]
        names, chromosomes, position_texts, counted, other = (
            [line[position] for line in fields] for position in range(5)
        )
        numbers = np.array([line[5:] for line in fields], dtype=np.float64)
        positions = np.array(position_texts, dtype=np.int64)
    except (ValueError, IndexError) as error:
        raise CommandError(f"{path} is damaged: {error}; select again with --pcs") from error
    # A lost column would shift the loadings, so the numbers of columns are checked.
    width = len(_VARIANT) + sizes.size
    if len(header.split("\t")) != width or numbers.shape[1] != sizes.size + 2:
        raise CommandError(f"{path} is damaged: it lacks columns; select again with --pcs")
    variants = Variants(names, chromosomes, positions, counted, other)
    return Components(variants, numbers[:, 0], numbers[:, 1], numbers[:, 2:], sizes)


def projected(fitted: Components, new: Harmonizer, notes: list[str]) -> dict[str, Array]:
    """Return the principal components of new samples by name.

    ``fitted`` has the loadings, ``new`` the genotypes of the samples. A note on lacking variants is
    appended to ``notes``. A component is the sum of loadings times standardized counts.
    """
    variants = fitted.variants
    alleles = [
        Allele(*fields)
        for fields in zip(
            *(variants.names, variants.chromosomes, variants.positions.tolist()),
            *(variants.counted, variants.other, fitted.means.tolist()),
            strict=True,
        )
    ]
    scores = np.zeros((new.n_rows, fitted.sizes.size))
    squares = np.zeros(new.n_rows)
    n_lost = 0
    # Variants are read in pieces that fit in memory.
    n_in_piece = max(1, LIMITS.piece_bytes // (8 * new.n_rows))
    for start in range(0, len(alleles), n_in_piece):
        piece = slice(start, start + n_in_piece)
        X, changes = new.counts(alleles[piece])
        n_lost += sum(
            len(changes.get(change, ())) for change in ("absent", "ambiguous", "different")
        )
        scaled = (X - fitted.means[piece]) / fitted.scales[piece]
        scores += scaled @ fitted.loadings[piece]
        squares += np.sum(scaled**2, axis=1)
    notes.append(
        f"{fitted.sizes.size} principal components are projected from {len(alleles) - n_lost:,} of "
        f"their {len(alleles):,} variants"
    )
    return dict(zip(fitted.names, fitted.projected(scores, squares).T, strict=True))


def about(source: Dataset, columns: Sequence[int]) -> tuple[tuple[str, str], ...]:
    """Return the position and alleles of variants as (header, value) pairs, () if it has none.

    ``columns`` are the one or two columns of a feature; the values of two are joined by colons.
    ``source`` is the data that was read.
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
        (header, ":".join(str(values[column]) for column in columns))
        for header, values in facts.items()
    )


class Harmonizer:
    """Allele counts of new data, harmonized with those of a model.

    A variant is matched by name, else by chromosome and position. Swapped alleles are recoded as 2
    - x, and alleles of the opposite strand are flipped. Palindromic variants (A/T and C/G) read the
    same on both strands: they are used if the alleles agree, and replaced by the mean of the
    training data if they are swapped, because the strand is then ambiguous. Variants that are
    absent or have other alleles are replaced by the mean, too. ``names`` are the names of the
    columns of ``design``. ``_columns`` and ``_column_of_position`` are the columns by name and by
    (chromosome, position).
    """

    def __init__(self, variants: Variants, names: Sequence[str], design: Design) -> None:
        """Index the columns of ``design`` by their names and by their positions.

        ``variants`` are the variants of the new data.
        """
        self._variants = variants
        self._design = design
        self._columns = {name: column for column, name in enumerate(names)}
        positions = map(_position_of, variants.chromosomes, variants.positions.tolist())
        self._column_of_position = {position: column for column, position in enumerate(positions)}
        self.n_rows = design.shape[0]

    def counts(self, alleles: Sequence[Allele]) -> tuple[Array, dict[str, list[str]]]:
        """Return the counts (n_rows, n_alleles), and the names of variants by their change.

        The keys of the second result are those of ``_CHANGES``; variants that were used as they
        are, are in none of its lists. ``alleles`` are the alleles that the model counts.
        """
        X = np.zeros((self.n_rows, len(alleles)))
        variants = self._variants
        changes = dict[str, list[str]]()
        column_of_allele = dict[int, int]()
        for number, allele in enumerate(alleles):
            # By name, else by chromosome and position.
            column = self._columns.get(allele.name)
            if column is None:
                column = self._column_of_position.get(
                    _position_of(allele.chromosome, allele.position)
                )
                if column is not None:
                    changes.setdefault("renamed", []).append(allele.name)
            change = "absent"
            if column is not None:
                change = _relation_of_alleles(
                    allele, variants.counted[column], variants.other[column]
                )
            if change != "same":
                changes.setdefault(change, []).append(allele.name)
            if column is None or change in ("ambiguous", "different"):
                X[:, number] = allele.mean
            else:
                column_of_allele[number] = column
        values = self._design.gather(np.array([*column_of_allele.values()], dtype=np.int64)).dense()
        X[:, [*column_of_allele]] = values
        swapped_names = {
            name
            for change, names in changes.items()
            if change.endswith("swapped")
            for name in names
        }
        swapped = [number for number in column_of_allele if alleles[number].name in swapped_names]
        # The data counts the other allele: 2 minus its count.
        X[:, swapped] = 2.0 - X[:, swapped]
        return X, changes


def _position_of(chromosome: str, position: int) -> tuple[str, int]:
    """Return the key (chromosome, position) of a variant; chr1 and 1 are the same chromosome."""
    return chromosome.casefold().removeprefix("chr"), position


def notes_on(changes: Mapping[str, Sequence[str]]) -> list[str]:
    """Return notes that count and name the variants that were not used as they are.

    ``changes`` are the names of variants by the change that was made.
    """
    return [
        f"{len(changes[change])} variants {text} ({listing(changes[change])})"
        for change, text in _CHANGES.items()
        if change in changes
    ]


def _relation_of_alleles(allele: Allele, counted: str, other: str) -> str:
    """Return how the alleles of the data relate to the ``allele`` of the model.

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
    opposite = tuple(_OPPOSITE.get(letter, letter) for letter in data)
    if opposite == model:
        return "flipped"
    if opposite == model[::-1]:
        return "flipped swapped"
    # PLINK writes 0 for an allele that was not observed in any sample.
    letters = [letter for letter in data if letter != "0"]
    if "0" in data and letters and letters[0] in model:
        swapped = data.index(letters[0]) != model.index(letters[0])
        return "ambiguous" if swapped and palindromic else "swapped" if swapped else "same"
    return "different"
