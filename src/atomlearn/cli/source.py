"""Read the data of a selection from the file that the command line names."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight

from atomlearn.cli.arguments import reading_of
from atomlearn.cli.features import features_of, overlap, read_groups
from atomlearn.cli.options import CommandError
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.settings import SelectionSettings
from atomlearn.cli.targets import Target, numbers_in, prepare_target, survival_of
from atomlearn.core import Array, Design, Rows, as_loss, is_sparse
from atomlearn.findings.copies import joined, repeated_rows
from atomlearn.maps.feature_map import FeatureMap
from atomlearn.reports.suspects import repeating
from atomlearn.storage.formats.table import DataTable, Schema
from atomlearn.storage.intake.columns import absent
from atomlearn.storage.intake.kinds import days_of
from atomlearn.storage.intake.read import read_as
from atomlearn.storage.intake.registry import format_of


def belonging(
    table: DataTable, options: argparse.Namespace, held: NDArray[np.bool_] | None
) -> tuple[Rows | None, Rows | None, list[str]]:
    """Return the group of each row or its position in a series (or None), and notes.

    held : rows that a column of the data holds out.
    """
    if "order" in table.extras:
        if options.rows_of:
            raise CommandError("--rows-of and --order are two ways to hold rows out; give one")
        order = _places(table.extras["order"], options.order)
        name = options.order
        told = f"the rows are a series by {name}: its end is held out, and each fold lies after "
        return None, order, [told + "the rows it is predicted from"]
    if "rows_of" not in table.extras:
        return None, None, []
    groups = _groups(table.extras["rows_of"])
    n_groups = int(groups.max()) + 1
    uses = {plan.use: plan.name for plan in table.schema.columns}
    name = options.rows_of or uses.get("rows_of") or uses.get("id")
    if n_groups == groups.size:
        return None, None, []
    if n_groups < 2:
        raise CommandError(f"--rows-of {name} has one value only; rows of it cannot be held out")
    said = (
        f"{groups.size:,} rows of {n_groups:,} different {name}: rows of one are held out, folded "
        "and halved together (--rows-of NAME or none says otherwise)"
    )
    both = 0 if held is None else np.intersect1d(groups[held], groups[~held]).size
    if both:
        said += f"; but --split-column has rows of {both:,} {name} in both parts"
    return groups, None, [said]


def _groups(cells: NDArray[Any]) -> Rows:
    """Return the number of the group of each row; a row with an empty cell is a separate group."""
    gaps = absent(cells)
    codes = np.unique(cells.astype(str), return_inverse=True)[1].astype(np.int64)
    codes[gaps] = cells.size + np.arange(gaps.sum())
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _places(cells: NDArray[Any], name: str) -> Rows:
    """Return the place of each row in the series: equal dates or numbers have one place."""
    keys: Any = cells
    if cells.dtype.kind in "OUS":
        words = [str(cell) for cell in cells.tolist()]
        days = days_of(words)
        if days is None:
            raise CommandError(f"--order {name} must name a column of numbers or dates")
        times = [word.replace("T", " ").partition(" ")[2] for word in words]
        keys = [f"{day + 1e6:09.0f} {time:>32}" for day, time in zip(days, times, strict=True)]
    places = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    if places.max() == 0:
        raise CommandError(f"--order {name} has one value only; name another column")
    return places


@dataclass(frozen=True)
class DataRoles:
    """Weights, offsets, groups and other data in addition to X and y.

    weight, offset : (n_samples,) or None; groups : of columns, as ``FeatureGenerator`` takes them,
    or None; group_names : their names; overlap : whether a column is in several groups; covariates
    : columns without penalty; test_rows : mask of rows that a column of the data holds out, or
    None; on_disk : whether X is read from disk at each pass; row_groups, order : the group of each
    row and its position in a series, or None; repeated : a number shared by rows that repeat each
    other, or None; center : whether features are centered. With an intercept, centering changes
    only the rounding, so sparse data is scaled and not centered; notes : on groups.
    """

    weight: Array | None = None
    offset: Array | None = None
    groups: Sequence[NDArray[np.int64]] | NDArray[np.int64] | None = None
    group_names: tuple[str, ...] = ()
    overlap: bool = False
    covariates: tuple[int, ...] = ()
    test_rows: NDArray[np.bool_] | None = None
    on_disk: bool = False
    row_groups: NDArray[np.int64] | None = None
    order: NDArray[np.int64] | None = None
    repeated: NDArray[np.int64] | None = None
    center: bool = True
    notes: tuple[str, ...] = ()

    def terms(self, columns: Rows) -> Rows:
        """Return the numbers of the groups that columns are of, of overlapping ones the columns."""
        groups = self.groups
        if groups is None or self.overlap:
            return columns
        if isinstance(groups, np.ndarray):
            return np.unique(groups[columns])
        own = -1 - columns  # of a column in no group
        for number, members in enumerate(groups):
            own[np.isin(columns, members)] = number
        return np.unique(own)

    def rows(self, rows: NDArray[np.int64]) -> DataRoles:
        """Return the roles of these rows."""
        of_rows = ("weight", "offset", "row_groups", "order", "repeated")
        found = {name: vars(self)[name] for name in of_rows}
        kept = {name: values[rows] for name, values in found.items() if values is not None}
        return replace(self, test_rows=None, **kept)

    @property
    def dependence(self) -> dict[str, Any]:
        """The parameters ``groups`` and ``order`` of ``fit``; at most one of them is given."""
        return {"groups": self.row_groups, "order": self.order}


@dataclass(frozen=True, slots=True)
class Dataset:
    """The data of a selection: its file, columns and target.

    X : (n_samples, n_inputs), as it was read; names : of its columns; map : makes the features.
    """

    name: str
    X: Any
    names: list[str]
    map: FeatureMap
    schema: Schema
    target: Target
    command: str
    roles: DataRoles = field(default_factory=DataRoles)
    notes: tuple[str, ...] = ()
    variants: Any = None

    def design(self) -> Design:
        """Return the features as a design."""
        return self.map.apply(self.X)

    def feature(self, index: int) -> str:
        """Return ``a``, ``a^2`` or ``a:b``."""
        return self.map.term_names([index], self.names)[0]


def read_source(
    options: argparse.Namespace, settings: SelectionSettings, progress: ProgressPrinter
) -> Dataset:
    """Return the data of the file that the options name, and the target as they ask for it."""
    path = Path(options.data)
    form = format_of(path)
    if form.in_place and options.interactions:
        raise CommandError(
            f"--interactions need a table in memory, and {path} is opened as it is; leave that out"
        )
    table = read_as(path, reading_of(options))
    if table.y is None and not settings.is_survival:
        if form.cells is not None:
            raise CommandError(f"which column of {path} is to be predicted? Give --target NAME")
        raise CommandError(
            f"{path} has no target (for every sample); give --target NAME, --target FILE.npy, or "
            "--pheno FILE"
        )
    target = _target(table, options, settings)
    n_samples, n_features = table.X.shape
    on_disk = isinstance(table.X, Design)
    sparse = is_sparse(table.X)
    kind = "on disk" if on_disk else "sparse" if sparse else "dense"
    say = progress.say
    say(f"read {path.name}: {n_samples:,} rows, {n_features:,} columns, {kind}")
    task = f"{target.task}, as {target.guessed} (--task says otherwise)" if target.guessed else ""
    say(task)
    certain = target.guessed.endswith(("labels", "numbers", " 2 different values"))
    doubts = [task] if task and not certain else []
    settings.loss_for(target.task)
    names = [table.schema.name(column) for column in range(n_features)]
    features = features_of(table.X, options.interactions)
    if options.interactions:
        say(f"interactions: {features.n_columns:,} features")
    command = shlex.join(["atomlearn", *options.given])
    roles = _roles(table, options, target, names)
    told = list[str]()
    roles = _with_rows(table, options, roles, told)
    return Dataset(
        path.name,
        table.X,
        names,
        features,
        table.schema,
        target,
        command,
        replace(roles, on_disk=on_disk, center=not sparse),
        (*doubts, *told, *roles.notes, *_time_varying(options, told), *table.notes),
        table.variants,
    )


def _with_rows(
    table: DataTable, options: argparse.Namespace, roles: DataRoles, told: list[str]
) -> DataRoles:
    """Return the roles with the groups of rows, of the options and of repeated rows."""
    groups, order, said = belonging(table, options, roles.test_rows)
    told += said
    repeated = repeated_rows(table.X)
    if repeated is not None:
        together = joined(repeated.size, groups, repeated)
        several = together is not None and np.unique(together).size > 1
        groups = together if order is None and several else groups
        told.append(repeating(repeated, order is None))
    return replace(roles, row_groups=groups, order=order, repeated=repeated)


def _time_varying(options: argparse.Namespace, told: Sequence[str]) -> list[str]:
    """Return a note on rows that are intervals of time."""
    if options.entry is None:
        return []
    said = f"time-varying: a row is at risk after {options.entry} until {options.time}"
    return [said + ("" if told else "; if one person has several rows, give --rows-of NAME")]


def _target(table: DataTable, options: argparse.Namespace, settings: SelectionSettings) -> Target:
    """Return the target for the task."""
    if settings.is_survival:
        if not {"time", "event"} <= set(table.extras):
            raise CommandError(
                "--time and --event name columns of a table such as CSV or Parquet, and "
                f"{options.data} is none"
            )
        extras = table.extras
        more = extras.get("entry"), extras.get("stratum")
        return survival_of(extras["time"], extras["event"], options.time, options.event, *more)
    y = table.y
    assert y is not None
    task = options.task
    if (
        task == "auto"
        and settings.loss is not None
        and not options.positive
        and y.dtype.kind in "iuf"
    ):
        # Few whole numbers are taken for classes, and counts, say, are no classes.
        task = "regression" if as_loss(settings.loss).task == "regression" else task
    return prepare_target(y, table.target_name or "y", task, options.positive)


def _roles(
    table: DataTable,
    options: argparse.Namespace,
    target: Target,
    names: list[str],
) -> DataRoles:
    """Return weights, offset, groups and covariates."""
    extras = table.extras
    weight = None
    if "weights" in extras:
        weight = numbers_in(extras["weights"], "--weights", least=0.0)
    if options.class_weight is not None:
        balanced = _class_weights(options.class_weight, target)
        weight = balanced if weight is None else weight * balanced
    groups: Any = table.groups
    labels = tuple[str, ...]()
    notes = list[str]()
    if options.interactions:
        # A group has the columns of one category, and the columns are products of two here.
        groups = None
    if options.groups is not None:
        groups, listed, notes = read_groups(options.groups, names, table.variants)
        labels = tuple(listed)
    overlapping = isinstance(groups, list) and overlap(groups)
    return DataRoles(
        weight,
        given_offset(extras),
        groups,
        labels,
        overlapping,
        table.covariates,
        _test_rows(extras),
        notes=tuple(notes),
    )


def given_offset(columns: Mapping[str, NDArray[Any]]) -> Array | None:
    """Return the offset of the scores of each row: an offset plus the logarithm of an exposure."""
    least = {"offset": -np.inf, "exposure": np.nextafter(0.0, 1.0)}
    given = [role for role in least if role in columns]
    found = {role: numbers_in(columns[role], f"--{role}", least[role]) for role in given}
    if "exposure" not in found:
        return found.get("offset")
    return np.log(found["exposure"]) + found.get("offset", 0.0)


def _class_weights(text: str, target: Target) -> Array:
    """Return the weight of each row by its class: balanced, or LABEL=WEIGHT,..."""
    shown = target.labels
    if shown is None:
        raise CommandError("--class-weight is for a classification; use --weights NAME")
    if text == "balanced":
        return np.asarray(compute_sample_weight("balanced", target.values), dtype=np.float64)
    weights: dict[int, float] = {}
    for part in text.split(","):
        label, _, value = part.partition("=")
        if label not in shown:
            raise CommandError(
                f"--class-weight: {label!r} is no class; there are {', '.join(shown[:8])}"
            )
        try:
            weights[shown.index(label)] = float(value)
        except ValueError as error:
            raise CommandError(f"--class-weight: write {label}=2.5, got {part!r}") from error
    return np.asarray(compute_sample_weight(weights, target.values), dtype=np.float64)


_TEST = {"test", "holdout", "held-out", "2"}
_TRAIN = {"train", "training", "validation", "valid"}


def _test_rows(extras: Any) -> NDArray[np.bool_] | None:
    """Return which rows the split column holds out."""
    if "split" not in extras:
        return None
    words = [str(cell).strip().casefold() for cell in extras["split"].tolist()]
    held_out = np.array([word in _TEST for word in words])
    known = held_out | np.array([word in _TRAIN for word in words])
    if not held_out.any() or held_out.all() or not known.all():
        other = sorted({word for word in words if word not in _TEST | _TRAIN})
        raise CommandError(
            f"--split-column must say train, validation or test in each row, found {other[:4]} and "
            f"{int(held_out.sum())} test rows of {held_out.size}"
        )
    return held_out
