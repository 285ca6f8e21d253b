"""The features that are selected from: columns of the file, and products of two of them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from atomlearn.cli.options import CommandError
from atomlearn.core.data.compressed import is_sparse
from atomlearn.core.data.parts import ColumnSubset
from atomlearn.core.interfaces import Columns, Design
from atomlearn.datasets.gene_sets import read_gene_sets
from atomlearn.estimators.units import MOST_LISTED
from atomlearn.maps.feature_map import FeatureMap, Inputs
from atomlearn.maps.pairs.index import PairIndex
from atomlearn.maps.pairs.polynomial import PolynomialMap
from atomlearn.storage.formats.compressed import open_text

_REGION = re.compile(r"(?:chr)?(?P<chromosome>\w+):(?P<start>[\d,]+)-(?P<stop>[\d,]+)$")
_WINDOWS = re.compile(r"windows:(?P<width>[\d.]+)(?P<unit>kb|mb|bp)?$", re.IGNORECASE)
_UNITS = {"kb": 1e3, "mb": 1e6, "bp": 1.0, "": 1.0}


def read_groups(text: str, names: Sequence[str], variants: Any) -> tuple[list[Columns], list[str]]:
    """Return groups of columns and their names.

    Parameters
    ----------
    text : a file, or ``windows:500kb``
        A .gmt file; or lines of a group and its members, by tabs or spaces (or commas). Members
        are columns, patterns such as ``age_*``, or regions ``chr:start-end``.
    names : of the columns of X.
    variants : of genotypes, None for other data.
    """
    windows = _WINDOWS.match(text)
    if windows is not None:
        return _windows(windows, variants)
    sets = read_gene_sets(text) if ".gmt" in Path(text).suffixes else _lines(Path(text))
    place = {name: column for column, name in enumerate(names)}
    found, labels, lost = [], [], 0
    for label, members in sets.items():
        columns: set[int] = set()
        for member in members:
            mine = _members(member, place, names, variants)
            lost += not mine
            columns.update(mine)
        if columns:
            found.append(np.array(sorted(columns), dtype=np.int64))
            labels.append(label)
    if not found:
        raise CommandError(
            f"--groups {text}: none of the {lost} members is a column of the data, such as "
            f"{names[0]!r}; give a file with a group and its columns on each line"
        )
    return _with_rest(found, labels, names)


def _lines(path: Path) -> dict[str, list[str]]:
    sets: dict[str, list[str]] = {}
    with open_text(path) as stream:
        for line in stream:
            fields = [part for part in re.split(r"[\t,; ]+", line.strip()) if part]
            if fields and not fields[0].startswith("#"):
                sets.setdefault(fields[0], []).extend(fields[1:])
    return sets


def _members(
    member: str, place: dict[str, int], names: Sequence[str], variants: Any
) -> Sequence[int]:
    if member in place:
        return [place[member]]
    region = _REGION.match(member)
    if region is not None and variants is not None:
        start, stop = (int(region[key].replace(",", "")) for key in ("start", "stop"))
        chromosome = region["chromosome"]
        inside = (variants.positions >= start) & (variants.positions <= stop)
        mine = np.array([name == chromosome for name in variants.chromosomes]) & inside
        return [place[names[j]] for j in np.flatnonzero(mine).tolist() if names[j] in place]
    # One column of the file is several of X: smoker is smoker=yes, smoker=missing.
    made = [place[name] for name in names if name.startswith((f"{member}=", f"{member}."))]
    if made or not any(mark in member for mark in "*?["):
        return made
    return [place[name] for name in fnmatch.filter(names, member)]


def _windows(match: re.Match[str], variants: Any) -> tuple[list[Columns], list[str]]:
    if variants is None:
        raise CommandError("--groups windows:WIDTH is for genotypes (.bed, .pgen); give a file")
    width = int(float(match["width"]) * _UNITS[(match["unit"] or "").casefold()])
    groups = variants.windows(width)
    labels = []
    for group in groups:
        first, last = variants.positions[group[0]], variants.positions[group[-1]]
        labels.append(f"{variants.chromosomes[int(group[0])]}:{first}-{last}")
    return groups, labels


def _with_rest(
    groups: list[Columns], labels: list[str], names: Sequence[str]
) -> tuple[list[Columns], list[str]]:
    """Return the groups, and one for each column that is in none."""
    inside = np.zeros(len(names), dtype=bool)
    for group in groups:
        inside[group] = True
    alone = np.flatnonzero(~inside)
    return (
        [*groups, *(np.array([column]) for column in alone.tolist())],
        [*labels, *(names[column] for column in alone.tolist())],
    )


def overlap(groups: Sequence[Columns]) -> bool:
    """Tell whether a column is in two groups."""
    columns = np.concatenate(list(groups))
    return bool(np.unique(columns).size < columns.size)


@dataclass(frozen=True)
class Kept(FeatureMap):
    """Some columns of a map of products, numbered anew."""

    implicit = True
    has_pairs = True

    whole: FeatureMap
    columns: Columns

    @property
    def n_inputs(self) -> int:
        return self.whole.n_inputs

    @property
    def n_columns(self) -> int:
        return int(self.columns.size)

    def apply(self, X: object) -> Design:
        return ColumnSubset(self.whole.apply(X), self.columns)

    def inputs_of(self, terms: ArrayLike) -> Columns:
        return self.whole.inputs_of(self.columns[np.asarray(terms)])

    def names(self, columns: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        return self.whole.names(self.columns[np.asarray(columns)], names)

    def term_names(self, terms: ArrayLike, names: Sequence[str] | None = None) -> list[str]:
        return self.names(terms, names)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What is selected from: X, (n_samples, n_inputs), the names of its columns, and their map.

    Products are never stored; squares of 0/1 columns, which are those columns, may be left out.
    """

    X: Any
    names: list[str]
    map: FeatureMap

    @property
    def n_features(self) -> int:
        """Number of features: p, or p + p (p + 1) / 2 less those left out."""
        return self.map.n_columns

    @property
    def interactions(self) -> bool:
        """Whether products are among them."""
        return self.map.has_pairs

    def design(self) -> Design:
        """Return the features as a design."""
        return self.map.apply(self.X)

    def factors(self, index: int) -> tuple[int, ...]:
        """Return the one or two columns of the file that feature ``index`` is the product of."""
        return tuple(int(column) for column in self.map.inputs_of([index])[0] if column >= 0)

    def name(self, index: int) -> str:
        """Return ``a``, ``a^2`` or ``a:b``."""
        return self.map.term_names([index], self.names)[0]


def plain_columns(X: Any, names: list[str]) -> Candidates:
    """Return the columns as they are."""
    return Candidates(X, names, Inputs(len(names)))


def with_products(X: Any, names: list[str]) -> Candidates:
    """Return columns, then products: (0, 0), (0, 1), ..., (p, p)."""
    return Candidates(X, names, PolynomialMap.interactions(len(names), squares=True))


def with_interactions(X: Any, names: list[str]) -> Candidates:
    """Return columns and products, squares of 0/1 columns left out where products can be listed."""
    binary, whole, index = _binary(X), with_products(X, names), PairIndex(len(names), squares=True)
    if not binary.size or index.n_columns > MOST_LISTED:
        return whole
    kept = np.delete(np.arange(index.n_columns), index.columns(binary, binary))
    return Candidates(X, names, Kept(whole.map, kept))


def _binary(X: Any) -> NDArray[np.int64]:
    """Return the columns that hold 0 and 1 only."""
    if is_sparse(X):
        entries = X.tocsc()
        other = np.add.reduceat(
            np.append(entries.data != 1, False), np.minimum(entries.indptr[:-1], entries.nnz)
        )
        return np.flatnonzero((other == 0) | (np.diff(entries.indptr) == 0))
    return np.flatnonzero([bool(np.isin(X[:, j], (0, 1)).all()) for j in range(X.shape[1])])
