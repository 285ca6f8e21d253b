"""``atomlearn predict``: a model and a file in; a CSV of predictions out."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from atomlearn.cli.data_arguments import reading_options
from atomlearn.cli.errors import CommandError
from atomlearn.cli.genotypes import harmonized
from atomlearn.cli.source import offset_of
from atomlearn.core.interfaces import Array
from atomlearn.reports.atomic_write import write_text
from atomlearn.reports.cells import inert
from atomlearn.reports.model import SavedModel
from atomlearn.reports.model_file import read_model
from atomlearn.storage.formats.messages import shortened
from atomlearn.storage.formats.registry import format_of
from atomlearn.storage.formats.table import Request, Schema
from atomlearn.storage.intake.again import encoded_again, frame_again
from atomlearn.storage.intake.columns import ColumnPlan
from atomlearn.storage.intake.frame import Frame
from atomlearn.storage.intake.genotypes import distinct
from atomlearn.storage.intake.join import Samples, joined, named_frame

#: What ends the name of a column that tells where another one has no value.
_MISSING = "=missing"


def predict(options: argparse.Namespace) -> int:
    """Run the command; return 0."""
    given = Path(options.model)
    model = read_model(given / "model.json" if given.is_dir() else given)
    inputs = read_inputs(model, Path(options.data), options)
    for note in inputs.notes:
        print(f"atomlearn: {note}", file=sys.stderr)
    scores = model.scores(inputs.X)
    if inputs.offset is not None:
        scores = scores + inputs.offset[:, None]
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
        raise CommandError(
            f"the prediction of row {row} (counted from 0) is not a finite number; its values "
            "are far outside of what the model was fitted to: check that row"
        )
    if options.explain is not None:
        if options.explain == options.out:
            raise CommandError(f"--out and --explain are two files, and both are {options.out}")
        write_text(options.explain, explanations_csv(model, inputs.X))
        print(f"{len(scores):,} explanations written to {options.explain}", file=sys.stderr)
    text = predictions_csv(model, scores, inputs.ids)
    if options.out is None:
        sys.stdout.write(text)
    else:
        write_text(options.out, text)
        print(f"{len(scores):,} predictions written to {options.out}", file=sys.stderr)
    return 0


def explanations_csv(model: SavedModel, inputs: Any) -> str:
    """Return the CSV: row, output, score, base, and what each feature adds to the score.

    A feature adds what it is worth in this row less its mean over all rows given: for sums of
    features these are the exact Shapley values. A product of two columns is one feature here.
    """
    parts = model.parts(inputs)
    outputs = [model.target] if model.classes is None else [str(label) for label in model.classes]
    outputs = outputs[1:] if len(model.classes or ()) == 2 else outputs
    means = parts.mean(axis=0)
    base = means.sum(axis=0) + model.intercepts
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    names = [feature.name for feature in model.features]
    writer.writerow(["row", "output", "score", "base", *names])
    for row, values in enumerate(parts):
        score = values.sum(axis=0) + model.intercepts
        for place, output in enumerate(outputs):
            added = (values - means)[:, place].tolist()
            writer.writerow([row, output, float(score[place]), float(base[place]), *added])
    return stream.getvalue()


@dataclass(slots=True)
class Inputs:
    """What a model reads of new data: (n_samples, len(model.inputs)) columns, in its order; ids :
    header and names of the rows, where they have any; notes : what was done; offset : what is
    added to the scores of each row, or None."""

    X: Any
    ids: tuple[list[str], Sequence[tuple[str, ...]]] | None = None
    notes: list[str] = field(default_factory=list)
    offset: Array | None = None


def read_inputs(model: SavedModel, path: Path, options: argparse.Namespace) -> Inputs:
    """Return the columns that the model reads, in the order of ``model.inputs``."""
    plans = list(model.columns)
    if model.is_named and not plans:  # fitted to a matrix, whose columns have names
        plans = [ColumnPlan(given.name) for given in model.inputs]
    named = options.id or model.settings.get("id")
    table = None
    if plans and not model.alleles:
        form = reading_options(options)["form"]
        table = frame_again(path, form, options.sheet, options.transpose, named)
    if table is not None:
        return _of_table(model, plans, *table, named, options)
    if options.offset is not None or options.exposure is not None:
        raise CommandError(f"--offset and --exposure name a column of a table, and {path} is none")
    return _of_matrix(model, path, options)


def _of_table(
    model: SavedModel,
    plans: Sequence[ColumnPlan],
    frame: Frame,
    ids: list[str] | None,
    named: str | None,
    options: argparse.Namespace,
) -> Inputs:
    """Return what the plans make of the cells of a table, and of those of --covar."""
    if options.id is not None:
        frame.require([options.id])
    if ids is None and named is not None and named in frame.header:
        ids = frame.cells(named).tolist()
    beside = [plan for plan in plans if plan.is_used and plan.name not in frame.header]
    columns, notes = dict[str, Any](), list[str]()
    if beside and options.covar is not None and ids is not None:
        columns, notes = _from_file(Path(options.covar), beside, Samples(ids))
        plans = [plan for plan in plans if plan not in beside]
    again = encoded_again(frame, plans)
    offset, told = _offset(model, frame, options)
    return Inputs(
        _side_by_side(model, columns | again.columns, again.n_rows),
        None if ids is None else (["id"], [(name,) for name in ids]),
        notes + told,
        offset,
    )


def _offset(
    model: SavedModel, frame: Frame, options: argparse.Namespace
) -> tuple[Array | None, list[str]]:
    """Return what is added to the scores; a note where the model was fitted with some."""
    asked = {"offset": options.offset, "exposure": options.exposure}
    given = {role: name for role, name in asked.items() if name is not None}
    if given and options.explain is not None:
        raise CommandError(f"--explain is of features alone; leave it or --{min(given)} out")
    frame.require(list(given.values()))
    notes = [
        f"the model was fitted with --{role} {model.settings[role]}, and none is given here: "
        f"predictions are for an {role} of {neutral}"
        for role, neutral in (("offset", 0), ("exposure", 1))
        if role in model.settings and not given
    ]
    return offset_of({role: frame.held(name) for role, name in given.items()}), notes


def _of_matrix(model: SavedModel, path: Path, options: argparse.Namespace) -> Inputs:
    """Return the columns of data that are a matrix, genotypes counted as the model does."""
    schema = Schema(model.n_inputs, first_index=model.first_index)
    if model.is_named:
        names = tuple(item.name for item in model.inputs)
        schema = Schema(len(names), names, model.first_index)
    kind = format_of(path)
    table = kind.table(path, Request(schema=schema, missing=bool(model.columns)))
    samples, variants = table.samples, table.variants
    ids = None
    if samples is not None:
        ids = (["FID", "IID"], list(zip(samples.family, samples.name, strict=True)))
    if model.alleles and variants is not None:
        return _of_genotypes(model, table.X, variants, ids, options)
    if kind.in_place:
        places = np.array(_places(model, table.schema, path), dtype=np.int64)
        return Inputs(table.X.gather(places).dense(), ids)
    plans = {plan.name: plan for plan in model.columns}
    X = table.X[:, _places(model, table.schema, path, plans)]
    return Inputs(_filled(X, model, plans) if plans else X, ids)


def _filled(X: Any, model: SavedModel, plans: dict[str, ColumnPlan]) -> Array:
    """Return the columns with missing values as they counted when the model was fitted."""
    filled = np.array(X, dtype=np.float64)
    for column, item in zip(filled.T, model.inputs, strict=True):
        gaps, plan = np.isnan(column), plans.get(item.name.removesuffix(_MISSING))
        if plan is not None and plan.name != item.name:
            column[:] = gaps
        elif plan is not None and plan.fill is not None:
            column[gaps] = float(plan.fill)
    return filled


def _of_genotypes(
    model: SavedModel, design: Any, variants: Any, ids: Any, options: argparse.Namespace
) -> Inputs:
    """Return genotypes counted as the model counts them, beside covariates of another file."""
    names = distinct(variants)
    held = harmonized(model.alleles, variants, names, design)
    columns = {allele.name: held.X[:, n] for n, allele in enumerate(model.alleles)}
    notes = held.notes()
    others = [item.name for item in model.inputs if item.name not in columns]
    if others:
        found, told = _covariates(model, others, design, options)
        columns |= found
        notes += told
    return Inputs(_side_by_side(model, columns, design.shape[0]), ids, notes)


def _side_by_side(model: SavedModel, columns: dict[str, Any], n_rows: int) -> Array:
    """Return the columns that the model reads, in its order."""
    names = [item.name for item in model.inputs]
    _require(names, columns)
    return np.column_stack([np.zeros((n_rows, 0)), *(columns[name] for name in names)])


def _require(names: Sequence[str], made: Any) -> None:
    """Raise where the model reads a column that nothing of it makes: it was edited, or damaged."""
    lost = next((name for name in names if name not in made), None)
    if lost is not None:
        raise CommandError(
            f"the model reads {shortened(lost)!r}, which none of its columns makes of these data; "
            "give data of the format it was fitted to, or write it again with `atomlearn select`"
        )


def _covariates(
    model: SavedModel, names: list[str], design: Any, options: argparse.Namespace
) -> tuple[dict[str, Any], list[str]]:
    """Return covariates of the samples, from --covar; principal components at their mean."""
    made = {name: plan for plan in model.columns for name in plan.made()}
    n_samples = design.shape[0]
    _require(names, made)
    components = [name for name in names if made[name].why == "of the variants"]
    columns: dict[str, Any] = {name: np.zeros(n_samples) for name in components}
    notes = []
    if components:
        notes.append(
            f"{len(components)} principal components belong to the samples of the fit: taken as 0"
        )
    asked = [name for name in names if name not in components]
    if not asked:
        return columns, notes
    if options.covar is None:
        raise CommandError(
            f"the model has the covariates {', '.join(asked[:6])}; give --covar FILE with them"
        )
    plans = list({made[name].name: made[name] for name in asked}.values())
    samples = Samples(design.samples.name, design.samples.family)
    found, told = _from_file(Path(options.covar), plans, samples)
    return columns | found, notes + told


def _from_file(
    path: Path, plans: Sequence[ColumnPlan], samples: Samples
) -> tuple[dict[str, Any], list[str]]:
    """Return what these plans make of a file of covariates, one row a sample."""
    frame, count = joined(named_frame(path), samples, path)
    missing = len(samples.names) - count
    if missing and all(plan.fill is None for plan in plans):
        raise CommandError(
            f"{missing} of {len(samples.names)} samples are not in {path.name}, and the model has "
            "no rule for covariates that are missing: add them there, or fit with --missing median"
        )
    note = f"{count} of {len(samples.names)} samples are in {path.name}"
    return encoded_again(frame, plans).columns, [note]


def _places(
    model: SavedModel, schema: Schema, path: Path, flagged: Container[str] = ()
) -> list[int]:
    """Return where the inputs stand in an array: by name where both have names, else by number.

    flagged : columns whose missing values are another column of the model, made of these.
    """
    if model.is_named and schema.names is not None:
        known = {name: place for place, name in enumerate(schema.names)}
        wanted = [item.name for item in model.inputs]
        sources = [name.removesuffix(_MISSING) for name in wanted]
        wanted = [s if s in flagged else name for name, s in zip(wanted, sources, strict=True)]
        if lost := [name for name in wanted if name not in known]:
            raise CommandError(
                f"{path} has no column {lost[0]!r}, which the model reads; give data with "
                "the columns that the model was fitted to"
            )
        return [known[name] for name in wanted]
    if schema.n_features != model.n_inputs:
        raise CommandError(
            f"{path} has {schema.n_features:,} columns, and the model was fitted to "
            f"{model.n_inputs:,}; give data with the same columns"
        )
    return [item.index for item in model.inputs]


def predictions_csv(
    model: SavedModel,
    scores: Array,
    ids: tuple[list[str], Sequence[tuple[str, ...]]] | None = None,
) -> str:
    """Return the CSV: prediction, then scores and (logistic loss) probabilities of the classes.

    ``ids`` : header and names of the rows, which come first.
    """
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    labels = model.predict(scores)
    before, names = ids or ([], [()] * len(labels))
    if model.classes is None:
        writer.writerow([*before, "prediction"])
        writer.writerows([*name, label] for name, label in zip(names, labels, strict=True))
        return stream.getvalue()
    probabilities = model.probabilities(scores)
    header = ["prediction"]
    if len(model.classes) == 2:
        # One score for two classes: above zero it speaks for this one.
        header.append(f"score[{model.classes[1]}]")
    else:
        header += [f"score[{label}]" for label in model.classes]
    columns = scores
    if probabilities is not None:
        header += [f"probability[{label}]" for label in model.classes]
        columns = np.hstack([scores, probabilities])
    writer.writerow(map(inert, [*before, *header]))
    for name, label, row in zip(names, labels, columns.tolist(), strict=True):
        writer.writerow([*map(inert, name), inert(label), *row])
    return stream.getvalue()
