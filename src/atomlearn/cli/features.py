"""Map the columns to features (columns and pairwise products), and read groups of columns."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from atomlearn.cli.options import CommandError
from atomlearn.core import Columns, ColumnSubset, Design, is_sparse
from atomlearn.datasets.gene_sets import read_gene_sets
from atomlearn.estimators.units import MOST_LISTED
from atomlearn.maps.feature_map import FeatureMap, Inputs
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.polynomial import PolynomialMap
from atomlearn.storage.formats.compressed import open_text
from atomlearn.storage.formats.messages import listing

_REGION = re.compile(r"(?:chr)?(?P<chromosome>\w+):(?P<start>[\d,]+)-(?P<stop>[\d,]+)$")
_WINDOWS = re.compile(r"windows:(?P<width>[\d.]+)(?P<unit>[kmb]|kb|mb|bp)?$", re.IGNORECASE)
_UNITS = {"k": 1e3, "m": 1e6}


@dataclass(frozen=True, slots=True)
class NamedColumns:
    """The columns of X by which groups of columns refer to them.

    ``names`` are the names of the columns, ``variants`` the variants of genotypes, or None, and
    ``symbols`` maps names of columns to gene symbols.
    """

    names: Sequence[str]
    variants: Any = None
    symbols: Mapping[str, str] = field(default_factory=dict)

    def columns_by_name(self) -> dict[str, list[int]]:
        """Return the columns of each name and each gene symbol."""
        columns = {name: [column] for column, name in enumerate(self.names)}
        columns_of_symbols: dict[str, list[int]] = {}
        for column, name in enumerate(self.names):
            if name in self.symbols:
                columns_of_symbols.setdefault(self.symbols[name], []).append(column)
        return columns_of_symbols | columns


def read_sets(text: str, known: NamedColumns) -> tuple[dict[str, Columns], list[str]]:
    """Return the columns of each set in a file, and notes on members that are no columns.

    Parameters
    ----------
    text : a .gmt file; or lines of a set and its members, by tabs or spaces (or commas)
        Members are columns, gene symbols, patterns such as ``age_*``, or regions ``chr:start-end``.
    known : the columns of X.
    """
    sets = read_gene_sets(text) if ".gmt" in Path(text).suffixes else _lines(Path(text))
    columns_of = known.columns_by_name()
    by_name = {}
    n_unknown = 0
    empty_sets = list[str]()
    # Members that are no columns are counted; sets without any column are left out.
    for label, members in sets.items():
        columns: set[int] = set()
        for member in members:
            named_columns = _members(member, columns_of, known)
            n_unknown += not named_columns
            columns.update(named_columns)
        if columns:
            by_name[label] = np.array(sorted(columns), dtype=np.int64)
        else:
            empty_sets.append(label)
    if not by_name:
        raise CommandError(
            f"{text}: none of the {n_unknown} members is a column of the data, such as "
            f"{known.names[0]!r}; give a file with a set and its columns on each line"
        )
    notes = []
    if empty_sets:
        notes.append(
            f"{len(empty_sets):,} groups have no column of the data: {listing(empty_sets)}"
        )
    if n_unknown:
        notes.append(f"{n_unknown:,} members of groups are no column of the data")
    return by_name, notes


def read_groups(text: str, known: NamedColumns) -> tuple[list[Columns], list[str], list[str]]:
    """Return groups of columns, their names, and notes for the report.

    ``text`` is a file as ``read_sets`` takes it, or ``windows:500kb`` for genotypes. ``known`` are
    the columns of X.
    """
    windows = _WINDOWS.match(text)
    if windows is not None:
        return *_windows(windows, known.variants), []
    if text.casefold().startswith("windows:"):
        raise CommandError(f"--groups {text}: expected a width, as in windows:500kb")
    sets, notes = read_sets(text, known)
    groups = list(sets.values())
    n_single = len(known.names) - np.unique(np.concatenate(groups)).size
    note = (
        f"{len(groups):,} groups of {min(map(len, groups))} to {max(map(len, groups))} columns; "
        f"{n_single:,} of {len(known.names):,} columns are in none, and each of them counts as one"
    )
    return groups, list(sets), [note, *notes]


def _lines(path: Path) -> dict[str, list[str]]:
    """Return a map from group name to members, read from a text file with one group per line.

    Fields are separated by tabs, commas, semicolons or spaces; lines with # are comments.
    """
    sets: dict[str, list[str]] = {}
    with open_text(path) as stream:
        for line in stream:
            fields = [part for part in re.split(r"[\t,; ]+", line.strip()) if part]
            if fields and not fields[0].startswith("#"):
                sets.setdefault(fields[0], []).extend(fields[1:])
    return sets


def _members(
    member: str, columns_of: Mapping[str, list[int]], known: NamedColumns
) -> Sequence[int]:
    """Return the columns that a member of a group file refers to.

    A member is the name or gene symbol of a column, the original column of dummy columns, a
    wildcard pattern, or a genomic region. ``columns_of`` maps names and symbols to columns.
    ``known`` are the columns of X.
    """
    names = known.names
    variants = known.variants
    if member in columns_of:
        return columns_of[member]
    region = _REGION.match(member)
    if region is not None and variants is not None:
        start, stop = (int(region[key].replace(",", "")) for key in ("start", "stop"))
        chromosome = region["chromosome"]
        in_range = (variants.positions >= start) & (variants.positions <= stop)
        is_inside = np.array([name == chromosome for name in variants.chromosomes]) & in_range
        return np.flatnonzero(is_inside).tolist()
    # One column of the file may be encoded as several columns of X: smoker becomes smoker=yes and
    # smoker=missing.
    prefixes = f"{member}=", f"{member}."
    columns = [column for column, name in enumerate(names) if name.startswith(prefixes)]
    if columns or not any(mark in member for mark in "*?["):
        return columns
    return [column for name in fnmatch.filter(columns_of, member) for column in columns_of[name]]


def _windows(match: re.Match[str], variants: Any) -> tuple[list[Columns], list[str]]:
    """Return groups of variants in windows of a fixed width in base pairs, and their names.

    ``match`` is the text such as windows:500kb, ``variants`` the variants, or None for other data.
    """
    if variants is None:
        raise CommandError("--groups windows:WIDTH is for genotypes (.bed, .pgen); give a file")
    width = int(float(match["width"]) * _UNITS.get((match["unit"] or "b").casefold()[0], 1.0))
    groups = variants.windows(width)
    labels = []
    for group in groups:
        first = variants.positions[group[0]]
        last = variants.positions[group[-1]]
        labels.append(f"{variants.chromosomes[int(group[0])]}:{first}-{last}")
    return groups, labels


def overlap(groups: Sequence[Columns]) -> bool:
    """Return whether a column belongs to more than one group.

    ``groups`` are the column indices of each group.
    """
    columns = np.concatenate(list(groups))
    return bool(np.unique(columns).size < columns.size)


@dataclass(frozen=True)
class KeptProducts(FeatureMap):
    """A map to a subset ``columns`` of the features of another map ``whole``, renumbered."""

    implicit = True
    has_pairs = True

    whole: FeatureMap
    columns: Columns

    @property
    def n_inputs(self) -> int:
        """The number of columns of X."""
        return self.whole.n_inputs

    @property
    def n_columns(self) -> int:
        """The number of features that were kept."""
        return int(self.columns.size)

    def apply(self, X: object) -> Design:
        """Return the design of the kept features of X."""
        return ColumnSubset(self.whole.apply(X), self.columns)

    def inputs_of(self, terms: ArrayLike) -> Columns:
        """Return the two inputs of each feature, shape (n_terms, 2).

        ``terms`` are the indices of the features.
        """
        return self.whole.inputs_of(self.columns[np.asarray(terms)])

    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        """Return the names of these features; ``names`` are the names of the inputs."""
        return self.whole.names(self.columns[np.asarray(columns)], names)


def features_of(X: Any, interactions: bool) -> FeatureMap:
    """Return the feature map: the columns or, with interactions, also all squares and products.

    Products are computed when needed and never stored. The square of a 0/1 column equals the
    column, so these squares are left out unless there are too many products to list.
    """
    n_columns = X.shape[1]
    if not interactions:
        return Inputs(n_columns)
    map = PolynomialMap.interactions(n_columns, squares=True)
    index = PairIndex(n_columns, squares=True)
    # For a design on disk, such as genotypes, the squares are kept: an allele count is rarely 0/1.
    if index.n_columns > MOST_LISTED or isinstance(X, Design):
        return map
    # x^2 - x is 0 in all rows exactly for a 0/1 column.
    differences = X.multiply(X) - X if is_sparse(X) else X * X - X
    binary = np.flatnonzero(np.asarray(abs(differences).sum(axis=0)).ravel() == 0)
    if not binary.size:
        return map
    # ``index.columns(i, j)`` returns the features that are products of the columns i and j.
    return KeptProducts(map, np.delete(np.arange(index.n_columns), index.columns(binary, binary)))
