"""``atomlearn predict``: a model and a file in; a CSV of predictions out."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn._support import write_text
from atomlearn.cli.arguments import reading_of
from atomlearn.cli.genotypes import Harmonizer, notes_on, projected, read_components
from atomlearn.cli.options import CommandError
from atomlearn.cli.remarks import remarks_on
from atomlearn.cli.source import given_offset
from atomlearn.cli.targets import labels_in
from atomlearn.core import Array, Mask, Rows, as_design
from atomlearn.reports.model import SavedModel, baseline_keys, times_of
from atomlearn.reports.model_file import read_model
from atomlearn.reports.tables import csv_text, inert
from atomlearn.storage.formats.messages import MANY, clipped, listing, require_name
from atomlearn.storage.formats.table import DataTable, Observations, Request, Schema
from atomlearn.storage.intake.annotated import annotated
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.encode import encoded_again
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.genotypes import OF_VARIANTS, distinct
from atomlearn.storage.intake.join import NamedRows, joined_to_samples, named_frame
from atomlearn.storage.intake.read import framed
from atomlearn.storage.intake.reading import Reading
from atomlearn.storage.intake.registry import format_of


def predict(options: argparse.Namespace) -> int:
    """Run ``atomlearn predict``: write the predictions, and explanations if requested; return 0.

    ``options`` is the parsed command line.
    """
    path = Path(options.model)
    model = read_model(path / "model.json" if path.is_dir() else path)
    inputs = read_inputs(model, Path(options.data), options)
    # ``remarks`` (one a row) go into the CSV. ``inputs.notes`` (on reading the data) and ``doubts``
    # (on the values of columns, and on the risks) are printed to the terminal.
    remarks, doubts = remarks_on(model, inputs.X, inputs.filled, inputs.ids)
    times = options.at or times_of(model.settings)
    if times and model.settings.get("other_events"):
        doubts.append(
            f"events {model.settings['other_events']} were censored: risks are those of a world "
            "without them; run `atomlearn select --competing` to model them as competing events"
        )
    for note in [*inputs.notes, *doubts]:
        print(f"atomlearn: {note}", file=sys.stderr)
    scores = model.scores(inputs.X)
    if inputs.offset is not None:
        scores = scores + inputs.offset[:, None]
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
        raise CommandError(
            f"the prediction of row {row} (counted from 0) is not a finite number; its values "
            "are far outside of the range that the model was fitted to: check that row"
        )
    # Contributions explain features only, so no offset may be given.
    if options.explain is not None:
        if inputs.offset is not None:
            raise CommandError("--explain is of features alone; leave --offset and --exposure out")
        if options.explain == options.out:
            raise CommandError(f"--out and --explain are two files, and both are {options.out}")
        write_text(options.explain, explanations_csv(model, inputs.X, inputs.header, inputs.ids))
        print(f"{len(scores):,} explanations written to {options.explain}", file=sys.stderr)
    id_columns = inputs.header, inputs.ids
    risks = model.risks(scores, times, inputs.strata) if times else None
    text = predictions_csv(model, scores, *id_columns, options.interval, times, remarks, risks)
    if options.out is None:
        sys.stdout.write(text)
    else:
        write_text(options.out, text)
        print(f"{len(scores):,} predictions written to {options.out}", file=sys.stderr)
    return 0


def explanations_csv(
    model: SavedModel,
    inputs: Any,
    names: Sequence[str] = (),
    ids: Sequence[Sequence[str]] | None = None,
) -> str:
    """Return a CSV with the contribution of each feature to the score, per row and output.

    The columns are the ids of the row (or its number), the output, its score, the base value, and
    one contribution per feature. A feature contributes its term in this row minus the mean of that
    term over all given rows; base plus contributions equal the score. For additive models these are
    the Shapley values under independent inputs. A product of two columns counts as one feature.
    ``inputs`` has shape (n_rows, len(model.inputs)); ``names`` are the headers of the columns
    ``ids``.
    """
    terms = model.parts(inputs)
    outputs = [model.target] if model.classes is None else [str(label) for label in model.classes]
    if model.task == "survival":
        outputs = ["log hazard"]
    outputs = outputs[1:] if len(outputs) == 2 else outputs
    # base + contributions = score, for each row and output.
    means = terms.mean(axis=0)
    scores = terms.sum(axis=1) + model.intercepts
    base = means.sum(axis=0) + model.intercepts
    id_names, identifiers = (
        (["row"], [[row] for row in range(len(scores))]) if ids is None else (names, ids)
    )
    header = [*id_names, "output", "score", "base", *(feature.name for feature in model.features)]
    rows = [
        [*name, output, *contribution]
        for row, (name, score) in enumerate(zip(identifiers, scores, strict=True))
        for output, *contribution in zip(
            outputs, score.tolist(), base.tolist(), *(terms[row] - means).tolist(), strict=True
        )
    ]
    return csv_text([header, *rows])


@dataclass(slots=True)
class ModelData:
    """The inputs of a saved model, read from new data.

    ``X``, shape (n_rows, len(model.inputs)), has its columns in the order of ``model.inputs``.
    ``header`` and ``ids`` are the titles and the row identifiers, or ids is None if rows have no
    names. ``notes`` are printed to the terminal. ``offset``, shape (n_rows,), is added to the
    scores, or is None. ``strata`` are the strata of the rows, or None. ``filled`` maps a column to
    the mask of its missing cells and the value that replaces them.
    """

    X: Any
    header: Sequence[str] = ()
    ids: Sequence[Sequence[str]] | None = None
    notes: list[str] = field(default_factory=list)
    offset: Array | None = None
    strata: list[str] | None = None
    filled: dict[str, tuple[Mask, Any]] = field(default_factory=dict)


def read_inputs(model: SavedModel, path: Path, options: argparse.Namespace) -> ModelData:
    """Return the columns that the model reads, in the order of ``model.inputs``.

    The file at ``path`` may be a table, a matrix, genotypes or AnnData; tables are encoded again
    with the categories and imputation values of the training data. ``options`` is the parsed
    command line.
    """
    reading = reading_of(options)
    reading = replace(reading, form=reading.form.with_meanings(model.settings))
    file_format = format_of(path)
    # Files of numbers: AnnData, whose rows have annotations, or a matrix or genotypes.
    if file_format.cells is None:
        if reading.roles and file_format.rows is None:
            raise CommandError(
                f"--offset and --exposure name a column of a table, and {path} is none"
            )
        names = tuple(item.name for item in model.inputs) if model.is_named else None
        width = len(model.inputs) if model.is_named else model.n_inputs
        reading = replace(reading, layer=reading.layer or model.settings.get("layer"))
        request = Request(
            schema=Schema(width, names, model.first_index),
            missing=bool(model.columns),
            layer=reading.layer,
        )
        table = replace(file_format.table(path, request), source=str(path))
        if file_format.rows is not None:
            return _cell_inputs(model, path, table, file_format.rows(path), reading)
        model_path = Path(options.model)
        folder = model_path if model_path.is_dir() else model_path.parent
        return _matrix_inputs(model, path, table, reading, folder)
    # Tables of cells: columns are found by name, or by position if the model has no names.
    id_column = reading.id or model.settings.get("id")
    cells = file_format.cells(path, replace(reading, id=id_column).text_form(), reading.sheet)
    frame, ids = framed(cells, reading)
    if ids is None and id_column is not None and (reading.id or id_column in frame.header):
        frame.require([id_column])
        ids = frame.cells(id_column).tolist()
    if not model.is_named and len(frame.header) != model.n_inputs:
        raise _other_width(model, path, len(frame.header))
    return _table_inputs(model, frame, ids, reading)


def _table_inputs(
    model: SavedModel, frame: Frame, ids: list[str] | None, reading: Reading
) -> ModelData:
    """Return the model inputs encoded from the cells of a table and of the --covar file.

    ``ids`` are the row identifiers or None; columns that the table lacks are joined from --covar by
    these identifiers. Rows without a covariate are left out, filled in or refused, by --missing.
    ``frame`` are the cells of the table and ``reading`` the options for reading files.
    """
    plans = [plan for plan in model.columns if plan.is_used]
    # An input that is not made by encoding is a numeric column, which is read unchanged.
    encoded_names = {name for plan in plans for name in plan.made()}
    plans += [ColumnPlan(item.name) for item in model.inputs if item.name not in encoded_names]
    notes = list[str]()
    columns = dict[str, Array]()
    # Columns that must come from the file of --covar.
    from_covar = [plan for plan in plans if plan.name not in frame.header]
    if from_covar and reading.covar is not None and ids is not None:
        columns, rows = _sample_covariates(from_covar, NamedRows(ids), reading, notes)
        plans = [plan for plan in plans if plan not in from_covar]
        frame, ids = frame.rows(rows), [ids[row] for row in rows.tolist()]
    columns |= encoded_again(frame, plans)
    roles = reading.roles
    frame.require(list(roles.values()))
    # One of the two suffices: log(exposure) is an offset.
    for role, neutral in (("offset", 0), ("exposure", 1)):
        if role in model.settings and not roles:
            notes.append(
                f"the model was fitted with --{role} {model.settings[role]}, and none is given "
                f"here: predictions are for an {role} of {neutral}"
            )
    return ModelData(
        _side_by_side(model, columns, frame.n_rows),
        ["id"] if ids else (),
        None if ids is None else [(name,) for name in ids],
        notes,
        given_offset({role: frame.columns[name] for role, name in roles.items()}),
        _strata(model, frame),
        {
            plan.name: (frame.missing(plan.name), plan.fill)
            for plan in plans
            if plan.fill is not None and plan.name in frame.columns
        },
    )


def _strata(model: SavedModel, frame: Frame) -> list[str] | None:
    """Return the stratum of each row as text; None if the model or the table has no strata.

    ``frame`` are the cells of the table.
    """
    name = model.settings.get("stratum")
    # A key without a stratum means one baseline hazard for all rows.
    if name not in frame.columns or baseline_keys()[0] in model.settings:
        return None
    return labels_in(frame.columns[name])


def _cell_inputs(
    model: SavedModel, path: Path, table: DataTable, rows: Observations, reading: Reading
) -> ModelData:
    """Return the model inputs of AnnData, aggregated to pseudobulk as in the training data.

    If the model was fitted to pseudobulk profiles (cells summed per sample), the cells of the new
    data are aggregated by the same columns. ``rows`` are the annotations of the cells (``obs``). A
    note warns if the values, such as raw counts, differ from those that the model was fitted to.
    ``path`` is the path of the file, ``table`` the file as it was read, and ``reading`` are the
    options for reading files.
    """
    notes = list[str]()
    covariates = tuple(plan.name for plan in model.columns if plan.name in rows.header)
    pseudobulk_columns = model.settings.get("pseudobulk")
    reading = replace(reading, covariates=covariates, pseudobulk=pseudobulk_columns)
    table, frame, _ = annotated(table, rows, reading, notes)
    values = table.schema.origin["values"]
    fitted_values = model.settings.get("values")
    if fitted_values not in (None, values):
        notes.append(f"the model was fitted to {fitted_values}: give such a layer, by --layer NAME")
    restricted_model, cells = _cells(model, path, table, frame)
    inputs = _table_inputs(restricted_model, cells, list(table.ids or ()), reading)
    return replace(inputs, notes=[*notes, *inputs.notes])


def _matrix_inputs(
    model: SavedModel, path: Path, table: DataTable, reading: Reading, folder: Path
) -> ModelData:
    """Return the model inputs of a numeric matrix or of genotypes.

    ``table`` is the file at ``path``, read with the options ``reading``. The alleles of genotypes
    are harmonized with those of the model: swapped alleles are recoded and those of the opposite
    strand are flipped. Covariates come from the --covar file, and principal components from the
    loadings next to the model, in ``folder``.
    """
    samples = table.samples
    kept_rows = np.arange(table.X.shape[0])
    # Genotypes with the alleles of the model; otherwise a matrix of numbers.
    if model.alleles and table.variants is not None:
        harmonizer = Harmonizer(table.variants, distinct(table.variants), table.X)
        X, recodings = harmonizer.counts(model.alleles)
        notes = notes_on(recodings)
        columns = {allele.name: X[:, number] for number, allele in enumerate(model.alleles)}
        other_inputs = {item.name for item in model.inputs} - set(columns)
        plans = [plan for plan in model.columns if not other_inputs.isdisjoint(plan.made())]
        if any(plan.why == OF_VARIANTS for plan in plans):
            columns |= _components(folder / "components.tsv", harmonizer, notes)
        plans = [plan for plan in plans if plan.name not in columns]
        named_samples = NamedRows(samples.name, samples.family)
        covariates, kept_rows = _sample_covariates(plans, named_samples, reading, notes)
        columns = {name: values[kept_rows] for name, values in columns.items()} | covariates
        data = ModelData(_side_by_side(model, columns, kept_rows.size), notes=notes)
    else:
        data = _table_inputs(*_cells(model, path, table), None, reading)
    if samples is not None:
        data.header = "FID", "IID"
        data.ids = [(samples.family[row], samples.name[row]) for row in kept_rows.tolist()]
    return data


def _components(file: Path, new: Harmonizer, notes: list[str]) -> dict[str, Array]:
    """Return the principal components of new samples by name; {} without the file of loadings.

    ``new`` has the genotypes of these samples, and notes are appended to ``notes``.
    """
    return projected(read_components(file), new, notes) if file.is_file() else {}


def _cells(
    model: SavedModel, path: Path, table: DataTable, rows: Frame | None = None
) -> tuple[SavedModel, Frame]:
    """Return the model restricted to available columns, and a table of the columns it reads.

    ``table`` is the file at ``path``. A column store holds encoded columns and may lack the
    original columns they were encoded from, so encoding plans without their original column are
    dropped. ``rows`` holds annotation columns of the rows, or is None.
    """
    schema = table.schema
    design = as_design(table.X)
    column_of_name = {schema.name(column): column for column in range(schema.n_features)}
    # A model of gene symbols finds them in data whose columns are named by Ensembl identifiers.
    symbol_counts = Counter(schema.symbols.values())
    name_of_symbol = {
        symbol: name for name, symbol in schema.symbols.items() if symbol_counts[symbol] == 1
    }
    column_of_name = {
        symbol: column_of_name[name]
        for symbol, name in name_of_symbol.items()
        if name in column_of_name
    } | column_of_name
    # Without names on both sides, columns are matched by position.
    if not model.columns and not (model.is_named and schema.names is not None):
        if schema.n_features != model.n_inputs:
            raise _other_width(model, path, schema.n_features)
        column_of_name = {item.name: item.index for item in model.inputs}
    columns = {} if rows is None else dict(rows.columns)
    plans = tuple(plan for plan in model.columns if plan.name in (column_of_name | columns))
    model = replace(model, columns=plans)
    annotations = {*columns}
    # Maps each encoded input to the column that it is made of; other inputs are columns themselves.
    source_of = {name: plan.name for plan in model.columns for name in plan.made()}
    for name in dict.fromkeys(source_of.get(item.name, item.name) for item in model.inputs):
        if name in annotations:
            continue
        require_name(name, column_of_name, f"{path} has no column")
        columns[name] = design.gather(np.array([column_of_name[name]])).dense()[:, 0]
    return model, Frame(path, columns, design.shape[0])


def _other_width(model: SavedModel, path: Path, width: int) -> CommandError:
    """Return the error for data with a different number of columns than the model.

    ``path`` is the path of the data and ``width`` its number of columns.
    """
    return CommandError(
        f"{path} has {width:,} columns, and the model was fitted to {model.n_inputs:,}; give data "
        "with the same columns"
    )


def _side_by_side(model: SavedModel, columns: dict[str, Any], n_rows: int) -> Array:
    """Return the input columns as a matrix, shape (n_rows, n_inputs), in model order.

    ``columns`` has the values (n_rows,) of each input by name.
    """
    names = [item.name for item in model.inputs]
    missing = next((name for name in names if name not in columns), None)
    if missing is not None:  # the model file was edited or is damaged
        raise CommandError(
            f"the model needs {clipped(missing)!r}, and no column of these data gives it; "
            "give data of the format it was fitted to, or fit again with `atomlearn select`"
        )
    return np.column_stack([np.zeros((n_rows, 0)), *(columns[name] for name in names)])


def _sample_covariates(
    plans: Sequence[ColumnPlan], samples: NamedRows, reading: Reading, notes: list[str]
) -> tuple[dict[str, Array], Rows]:
    """Return the covariates of the samples from the --covar file, and the rows that have them all.

    Principal components without their loadings are set to their mean, 0. ``plans`` say how each
    covariate is encoded; notes are appended to ``notes``. Rows without a covariate are kept if its
    plan has a value to fill in, left out with --missing drop, and refused otherwise. ``reading``
    are the options for reading files.
    """
    components = [plan.name for plan in plans if plan.why == OF_VARIANTS]
    if components:
        notes.append(
            f"{len(components)} principal components are taken as 0: there is no components.tsv "
            "next to the model"
        )
    all_rows = np.arange(len(samples.names))
    from_file = [plan for plan in plans if plan.name not in components]
    if not from_file:
        return {name: np.zeros(all_rows.size) for name in components}, all_rows
    path = reading.covar
    if path is None:
        names = ", ".join(plan.name for plan in from_file[:6])
        raise CommandError(f"the model has the covariates {names}; give --covar FILE with them")
    frame, count = joined_to_samples(named_frame(path), samples, path)
    frame.require([plan.name for plan in from_file])
    notes.append(f"{count} of {all_rows.size} samples are in {path.name}")
    is_lacking = np.any([frame.missing(plan.name) for plan in from_file], axis=0)
    lacking_samples = [samples.names[row] for row in np.flatnonzero(is_lacking).tolist()]
    can_fill = all(plan.fill is not None for plan in from_file)
    words = f"{len(lacking_samples)} of {all_rows.size} samples lack a covariate in {path.name}: "
    words += listing(lacking_samples, MANY)
    # Samples that lack a covariate: dropped, refused, or filled in.
    kept_rows = all_rows
    if reading.missing == "drop":
        kept_rows = np.flatnonzero(~is_lacking)
        if lacking_samples:
            notes.append(f"{words}; they have no prediction")
        if not kept_rows.size:
            raise CommandError(f"{words}; nobody is left to predict")
    elif lacking_samples and not can_fill:
        raise CommandError(
            f"{words}; type --missing drop to predict the others, or select with --missing median, "
            "which fills in"
        )
    elif lacking_samples:
        notes.append(f"{words}; filled in as when the model was fitted")
    columns = {name: np.zeros(kept_rows.size) for name in components}
    return columns | encoded_again(frame.rows(kept_rows), from_file), kept_rows


def predictions_csv(
    model: SavedModel,
    scores: Array,
    header: Sequence[str] = (),
    ids: Sequence[Sequence[str]] | None = None,
    interval: float | None = None,
    times: Sequence[float] = (),
    remarks: Sequence[str] = (),
    risks: Array | None = None,
) -> str:
    """Return a CSV with one row per prediction: label or value, scores, probabilities.

    ``scores`` has shape (n_rows, n_outputs); scores and, for losses with probabilities such as the
    logistic loss, class probabilities are written for classification only. ``header`` and ``ids``
    are the titles and values of leading identifier columns. ``interval`` is the coverage of
    prediction intervals, such as 0.9, which are written as the columns "lower" and "upper"; for
    survival times only "lower" is written, the time after which this share of the events occurs.
    Survival models have the column "log_hazard_ratio", against a row with the mean score, and
    ``risks``, shape (n_rows, n_times), of an event by each time of ``times``. ``remarks`` are
    written if there are any. Cells that a spreadsheet would execute as formulas are prefixed with
    an apostrophe. ``model`` is the saved model.
    """
    labels = model.predict(scores)
    names = [()] * len(labels) if ids is None else ids
    columns = np.zeros((len(labels), 0))
    titles = ["prediction"]
    if model.task == "survival":
        titles = ["log_hazard_ratio"]
        center = model.settings.get("baseline_score", 0.0)
        labels = (scores[:, 0] - center).tolist()
    if interval is not None:
        columns = model.interval(scores, interval)
        titles += ["lower", "upper"][: columns.shape[1]]
    if model.classes is not None:
        # Two classes have a single score: positive values predict the second class.
        scored_classes = model.classes[1:] if len(model.classes) == 2 else model.classes
        titles += [f"score[{label}]" for label in scored_classes]
        columns = scores
        probabilities = model.probabilities(scores)
        if probabilities is not None:
            titles += [f"probability[{label}]" for label in model.classes]
            columns = np.hstack([scores, probabilities])
    if risks is not None:
        titles += [f"risk by {time:g}" for time in times]
        columns = np.hstack([columns, risks])
    remark_cells = [[remark] for remark in remarks] if any(remarks) else [[] for _ in labels]
    titles += ["remark"] if any(remarks) else []
    rows = zip(names, labels, columns.tolist(), remark_cells, strict=True)
    return csv_text(
        [
            [*map(inert, (*header, *titles))],
            *(
                [*map(inert, (*name, label)), *numbers, *map(inert, text)]
                for name, label, numbers, text in rows
            ),
        ]
    )
