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
from atomlearn.cli.features import NamedColumns, features_of, overlap, read_groups, read_sets
from atomlearn.cli.options import CommandError
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.settings import SelectionSettings
from atomlearn.cli.targets import Target, numbers_in, prepare_target, survival_of
from atomlearn.core import Array, Design, Rows, as_loss, is_sparse
from atomlearn.estimators.file_tables import FileDesign
from atomlearn.findings.copies import joined, repeated_rows
from atomlearn.maps.feature_map import FeatureMap
from atomlearn.reports.suspects import repeating
from atomlearn.storage.formats.table import DataTable, Schema
from atomlearn.storage.intake.columns import absent
from atomlearn.storage.intake.gaps import Gap, gaps_filled
from atomlearn.storage.intake.read import read_as
from atomlearn.storage.intake.registry import format_of
from atomlearn.storage.intake.written import days_of


def belonging(
    table: DataTable, options: argparse.Namespace, test_rows: NDArray[np.bool_] | None
) -> tuple[Rows | None, Rows | None, list[str]]:
    """Return the group index of each row, its position in a series, and notes for the report.

    At most one of the two arrays, each of shape (n_rows,), is not None: the groups come from
    --rows-of or an identifier column, the positions from --order. ``test_rows`` is the mask of the
    rows that --split-column holds out, or None. ``table`` is the file as it was read. ``options``
    is the parsed command line.
    """
    if "order" in table.extras:
        if options.rows_of:
            raise CommandError("--rows-of and --order are two ways to hold rows out; give one")
        order = _positions_in_series(table.extras["order"], options.order)
        name = options.order
        reason = f"the rows are a series by {name}: its end is held out, and each fold lies after "
        return None, order, [reason + "the rows it is predicted from"]
    if "rows_of" not in table.extras:
        return None, None, []
    groups = _groups(table.extras["rows_of"])
    n_groups = int(groups.max()) + 1
    names_by_use = {plan.use: plan.name for plan in table.schema.columns}
    name = options.rows_of or names_by_use.get("rows_of") or names_by_use.get("id")
    if n_groups == groups.size:
        return None, None, []
    if n_groups < 2:
        raise CommandError(f"--rows-of {name} has one value only; rows of it cannot be held out")
    note = (
        f"{groups.size:,} rows of {n_groups:,} different {name}: rows of one are held out, folded "
        "and halved together (--rows-of NAME or none says otherwise)"
    )
    # A given split may cut a group in two, which is reported.
    n_cut = 0 if test_rows is None else np.intersect1d(groups[test_rows], groups[~test_rows]).size
    if n_cut:
        note += f"; but --split-column has rows of {n_cut:,} {name} in both parts"
    return groups, None, [note]


def _owners(table: DataTable, options: argparse.Namespace) -> tuple[str, NDArray[Any]] | None:
    """Return the column that says whose each row is, such as donors, and its cells, or None.

    All rows of one owner are held out together. ``table`` is the file as it was read. ``options``
    is the parsed command line.
    """
    # The column is named by the option, by the schema, or as the first one of --pseudobulk.
    pseudobulk_columns = table.schema.origin.get("pseudobulk", "")
    if "rows_of" in table.extras and options.rows_of != "none":
        plans = [plan.name for plan in table.schema.columns if plan.use == "rows_of"]
        return options.rows_of or [*plans, pseudobulk_columns.split(",")[0], "id"][0], table.extras[
            "rows_of"
        ]
    if pseudobulk_columns and "," not in pseudobulk_columns and table.ids is not None:
        return pseudobulk_columns, np.array(table.ids, dtype=object)
    return None


def _groups(cells: NDArray[Any]) -> Rows:
    """Return the group index of each row; a row with an empty cell is a group with one row.

    ``cells`` are the cells of a column.
    """
    is_missing = absent(cells)
    codes = np.unique(cells.astype(str), return_inverse=True)[1].astype(np.int64)
    # Each row with an empty cell gets a code that no other row has.
    codes[is_missing] = cells.size + np.arange(is_missing.sum())
    return np.unique(codes, return_inverse=True)[1].astype(np.int64)


def _positions_in_series(cells: NDArray[Any], name: str) -> Rows:
    """Return the position of each row in the time series, shape (n_rows,).

    Rows with equal dates or numbers share a position. ``name`` is the column that --order names.
    ``cells`` are the cells of a column.
    """
    keys: Any = cells
    if cells.dtype.kind in "OUS":
        keys = days_of([str(cell) for cell in cells.tolist()])
        if keys is None:
            raise CommandError(f"--order {name} must name a column of numbers or dates")
    positions = np.unique(keys, return_inverse=True)[1].astype(np.int64)
    if positions.max() == 0:
        raise CommandError(f"--order {name} has one value only; name another column")
    return positions


@dataclass(frozen=True)
class DataRoles:
    """Sample weights, offsets, groups and other data that a fit uses in addition to X and y.

    ``weight`` and ``offset`` have shape (n_samples,) or are None. ``groups`` are groups of columns
    in the format of ``FeatureGenerator``, or None; ``group_names`` are their names, and ``overlap``
    is whether a column belongs to several groups. ``covariates`` are the indices of unpenalized
    columns. ``test_rows`` is the mask of the rows that --split-column holds out, or None.
    ``on_disk`` is whether X is read from disk at each pass. ``row_groups`` and ``order`` hold the
    group of each row and its position in a series, or are None. ``repeated`` holds an index that is
    shared by duplicate rows, or is None. ``center`` is whether features are centered: with an
    intercept, centering changes only the rounding errors, so sparse data is scaled without
    centering. ``notes`` are sentences on the groups for the report.
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
        """Return the increasing indices of the groups that contain these columns.

        A column in no group has the index -1 - column. The columns are returned unchanged if there
        are no groups or if groups overlap.
        """
        groups = self.groups
        if groups is None or self.overlap:
            return columns
        if isinstance(groups, np.ndarray):
            return np.unique(groups[columns])
        group_of = -1 - columns  # group label of columns in no group
        for number, members in enumerate(groups):
            group_of[np.isin(columns, members)] = number
        return np.unique(group_of)

    def rows(self, rows: NDArray[np.int64]) -> DataRoles:
        """Return the roles restricted to the rows with these indices, without a split."""
        names_of_row_data = ("weight", "offset", "row_groups", "order", "repeated")
        roles = {name: vars(self)[name] for name in names_of_row_data}
        subset = {name: values[rows] for name, values in roles.items() if values is not None}
        return replace(self, test_rows=None, **subset)

    @property
    def dependence(self) -> dict[str, Any]:
        """The arguments ``groups`` and ``order`` of ``fit``; at least one of them is None."""
        return {"groups": self.row_groups, "order": self.order}


@dataclass(frozen=True, slots=True)
class Dataset:
    """The data of a selection: the matrix X, the names of its columns, and the target.

    ``name`` is the file name. ``X``, shape (n_samples, n_inputs), is the matrix as it was read, and
    ``names`` are the names of its columns. ``map`` is the feature map that builds the features from
    X, ``schema`` describes how columns were encoded, ``command`` is the command line, ``roles``
    holds weights, groups and covariates, ``variants`` holds the genetic variants of genotype data,
    else None, and ``components`` their principal components, if these are covariates. ``sets``
    are the columns of each set of --enrichment. ``owners`` are a column and its cells if rows of
    one value are held out together, such as those of a donor. ``gaps`` are the columns of the file
    whose missing values each fit fills by the values of its rows.
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
    components: Any = None
    sets: Mapping[str, Rows] = field(default_factory=dict)
    owners: tuple[str, NDArray[Any]] | None = None
    gaps: tuple[Gap, ...] = ()

    @property
    def titles(self) -> list[str]:
        """The names of the columns of X to display: with a gene symbol, if there is one."""
        symbols = self.schema.symbols
        return [f"{symbols[name]} ({name})" if name in symbols else name for name in self.names]

    def design(self) -> Design:
        """Return the design of the features, with one column per feature."""
        inputs = FileDesign.of(self.X, self.names, self.gaps) if self.gaps else self.X
        return self.map.apply(inputs)

    def learned(self, rows: Rows) -> Dataset:
        """Return the data set with missing values filled by the values of these rows."""
        gaps = tuple(gap.learned(rows) for gap in self.gaps)
        if [gap.plan.fill for gap in gaps] == [gap.plan.fill for gap in self.gaps]:
            return self
        return replace(self, X=gaps_filled(self.X, gaps), gaps=gaps)

    def permuted(self, order: Rows) -> Dataset:
        """Return the data set with the rows of X in this order; target and roles are unchanged."""
        gaps = tuple(gap.of_rows(order) for gap in self.gaps)
        return replace(self, X=self.X[order], gaps=gaps)

    def feature(self, index: int) -> str:
        """Return the name of the feature with this index: ``a``, ``a^2`` or ``a:b``."""
        return self.map.term_names([index], self.names)[0]


def read_source(
    options: argparse.Namespace, settings: SelectionSettings, progress: ProgressPrinter
) -> Dataset:
    """Return the data set that the options name, with its target, features and roles.

    The options name the file, the target and the roles of columns. A CommandError is raised if the
    file has no target or the options do not fit the format of the file. ``settings`` are the
    options of the selection and ``progress`` is the printer of progress.
    """
    path = Path(options.data)
    file_format = format_of(path)
    table = read_as(path, reading_of(options))
    if table.y is None and not settings.is_survival:
        if file_format.cells is not None:
            raise CommandError(f"which column of {path} is to be predicted? Give --target NAME")
        raise CommandError(
            f"{path} has no target (for every sample); give --target NAME, --target FILE.npy, or "
            "--pheno FILE"
        )
    target = target_from(table, options, settings)
    n_samples, n_features = table.X.shape
    on_disk = isinstance(table.X, Design)
    sparse = is_sparse(table.X)
    kind = "on disk" if on_disk else "sparse" if sparse else "dense"
    show = progress.say
    show(f"read {path.name}: {n_samples:,} rows, {n_features:,} columns, {kind}")
    # If the task is inferred from values that allow another one, a note asks the user to check it.
    task = f"{target.task}, as {target.guessed} (--task says otherwise)" if target.guessed else ""
    show(task)
    is_certain = target.guessed.endswith(("labels", "numbers", " 2 different values"))
    doubts = [task] if task and not is_certain else []
    if target.events is not None and not target.events.is_plain:
        doubts.append(target.events.words)
    settings.loss_for(target.task)  # an error if --loss does not fit the task
    # Names and kinds of the features, and the roles of other columns.
    names = [table.schema.name(column) for column in range(n_features)]
    features = features_of(table.X, options.interactions)
    if options.interactions:
        show(f"interactions: {features.n_columns:,} features")
    command = shlex.join(["atomlearn", *options.given])
    roles = _roles(table, options, target, names)
    row_notes = list[str]()
    roles = _with_rows(table, options, roles, row_notes)
    sets = dict[str, Rows]()
    set_notes = list[str]()
    if options.enrichment is not None:
        columns_by_name = NamedColumns(names, table.variants, table.schema.symbols)
        sets, set_notes = read_sets(options.enrichment, columns_by_name)
    notes = *doubts, *row_notes, *roles.notes, *_time_varying(options, row_notes), *set_notes
    return Dataset(
        path.name,
        table.X,
        names,
        features,
        table.schema,
        target,
        command,
        replace(roles, on_disk=on_disk, center=not sparse),
        (*notes, *table.notes),
        table.variants,
        table.components,
        sets,
        _owners(table, options),
        table.gaps,
    )


def _with_rows(
    table: DataTable, options: argparse.Namespace, roles: DataRoles, row_notes: list[str]
) -> DataRoles:
    """Return the roles with row groups, taken from the options and from duplicate rows.

    ``roles`` are those of the columns. Notes for the report are appended to ``row_notes``.
    ``table`` is the file as it was read.
    """
    groups, order, note = belonging(table, options, roles.test_rows)
    row_notes += note
    # Groups of rows that contain copies of the same row are joined, unless rows are a series.
    repeated = repeated_rows(table.X)
    if repeated is not None:
        joined_groups = joined(repeated.size, groups, repeated)
        has_several = joined_groups is not None and np.unique(joined_groups).size > 1
        groups = joined_groups if order is None and has_several else groups
        row_notes.append(repeating(repeated, order is None))
    return replace(roles, row_groups=groups, order=order, repeated=repeated)


def _time_varying(options: argparse.Namespace, row_notes: Sequence[str]) -> list[str]:
    """Return a note if rows are time intervals (counting process), else an empty list.

    ``row_notes`` are the notes on rows so far. ``options`` is the parsed command line.
    """
    if options.entry is None:
        return []
    note = f"time-varying: a row is at risk after {options.entry} until {options.time}"
    return [note + ("" if row_notes else "; if one person has several rows, give --rows-of NAME")]


def target_from(
    table: DataTable, options: argparse.Namespace, settings: SelectionSettings
) -> Target:
    """Return the target, prepared for the task that the options or its values imply.

    ``table`` is the file as it was read and ``settings`` are the options of the selection.
    """
    if settings.is_survival:
        if not {"time", "event"} <= set(table.extras):
            raise CommandError(
                "--time and --event name columns of a table such as CSV or Parquet, and "
                f"{options.data} is none"
            )
        extras = table.extras
        entry_and_stratum = extras.get("entry"), extras.get("stratum")
        columns = extras["time"], extras["event"], options.time, options.event
        target = survival_of(*columns, *entry_and_stratum, options.competing)
        last_time = float(target.values["time"].max())
        if max(settings.at, default=0.0) > last_time:
            raise CommandError(
                f"--at {max(settings.at):g} is beyond the last time of {options.time}, "
                f"{last_time:g}; nothing is known of later risks"
            )
        return target
    values = table.y
    assert values is not None
    task = options.task
    if (
        task == "auto"
        and settings.loss is not None
        and not options.positive
        and values.dtype.kind in "iuf"
    ):
        # A target with few distinct integers is taken as class labels by default. A loss for
        # regression, such as the Poisson loss for counts, rules that out.
        task = "regression" if as_loss(settings.loss).task == "regression" else task
    return prepare_target(values, table.target_name or "y", task, options.positive)


def _roles(
    table: DataTable, options: argparse.Namespace, target: Target, names: list[str]
) -> DataRoles:
    """Return the sample weights, offset, groups and covariates as ``DataRoles``.

    ``names`` are the names of the columns of X; ``target`` has the classes of --class-weight.
    ``table`` is the file as it was read. ``options`` is the parsed command line.
    """
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
        # These groups hold the dummy columns of a category, but the features are now products of
        # two columns, which no such group describes.
        groups = None
    if options.groups is not None:
        columns_by_name = NamedColumns(names, table.variants, table.schema.symbols)
        groups, listed, notes = read_groups(options.groups, columns_by_name)
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
    """Return the offset of each row's linear predictor, shape (n_rows,), or None.

    It is the sum of the column ``offset`` and the logarithm of the column ``exposure``, as far as
    ``columns`` has them.
    """
    smallest_values = {"offset": -np.inf, "exposure": np.nextafter(0.0, 1.0)}
    roles = [role for role in smallest_values if role in columns]
    values = {role: numbers_in(columns[role], f"--{role}", smallest_values[role]) for role in roles}
    if "exposure" not in values:
        return values.get("offset")
    return np.log(values["exposure"]) + values.get("offset", 0.0)


def _class_weights(text: str, target: Target) -> Array:
    """Return the sample weights that --class-weight implies, shape (n_rows,).

    ``text`` is "balanced", for weights inversely proportional to class frequencies, or
    LABEL=WEIGHT,LABEL=WEIGHT with weight 1 for the other classes. ``target`` is the target of all
    rows.
    """
    labels = target.labels
    if labels is None:
        raise CommandError("--class-weight is for a classification; use --weights NAME")
    if text == "balanced":
        return np.asarray(compute_sample_weight("balanced", target.values), dtype=np.float64)
    # Weights of single labels; other classes keep the weight 1.
    weights: dict[int, float] = {}
    for part in text.split(","):
        label, _, value = part.partition("=")
        if label not in labels:
            raise CommandError(
                f"--class-weight: {label!r} is no class; there are {', '.join(labels[:8])}"
            )
        try:
            weights[labels.index(label)] = float(value)
        except ValueError as error:
            raise CommandError(f"--class-weight: write {label}=2.5, got {part!r}") from error
    return np.asarray(compute_sample_weight(weights, target.values), dtype=np.float64)


_TEST = {"test", "holdout", "held-out", "2"}
_TRAIN = {"train", "training", "validation", "valid"}


def _test_rows(extras: Any) -> NDArray[np.bool_] | None:
    """Return the mask of the rows that --split-column holds out, or None without that column.

    ``extras`` are the columns with a role other than feature.
    """
    if "split" not in extras:
        return None
    words = [str(cell).strip().casefold() for cell in extras["split"].tolist()]
    held_out = np.array([word in _TEST for word in words])
    is_valid = held_out | np.array([word in _TRAIN for word in words])
    if not held_out.any() or held_out.all() or not is_valid.all():
        other = sorted({word for word in words if word not in _TEST | _TRAIN})
        raise CommandError(
            f"--split-column must say train, validation or test in each row, found {other[:4]} and "
            f"{int(held_out.sum())} test rows of {held_out.size}"
        )
    return held_out
