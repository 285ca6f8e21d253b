"""``atomlearn predict``: a model and a file in; a CSV of predictions out."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from atomlearn.cli.errors import CommandError
from atomlearn.reports.atomic_write import write_text
from atomlearn.reports.cells import inert
from atomlearn.reports.model import SavedModel
from atomlearn.reports.model_file import read_model
from atomlearn.storage.formats.registry import format_of
from atomlearn.storage.formats.table import Request, Schema

Array = NDArray[np.float64]


def predict(options: argparse.Namespace) -> int:
    """Run the command; return 0."""
    model = read_model(options.model)
    scores = model.scores(read_inputs(model, Path(options.data)))
    if not np.isfinite(scores).all():
        row = int(np.flatnonzero(~np.isfinite(scores).all(axis=1))[0])
        raise CommandError(
            f"the prediction of row {row} (counted from 0) is not a finite number; its values "
            "are far outside of what the model was fitted to: check that row"
        )
    text = predictions_csv(model, scores)
    if options.out is None:
        sys.stdout.write(text)
    else:
        write_text(options.out, text)
        print(f"{len(scores):,} predictions written to {options.out}", file=sys.stderr)
    return 0


def read_inputs(model: SavedModel, path: Path) -> Any:
    """Return the columns that the model reads, in the order of ``model.inputs``."""
    schema = Schema(model.n_inputs, first_index=model.first_index)
    if model.is_named:
        names = tuple(item.name for item in model.inputs)
        schema = Schema(len(names), names, model.categories, model.first_index)
    form = format_of(path)
    table = form.table(path, Request(schema=schema))
    places = _places(model, table.schema, path)
    if form.in_place:
        return table.X.gather(np.array(places, dtype=np.int64)).dense()
    return table.X[:, places]


def _places(model: SavedModel, schema: Schema, path: Path) -> list[int]:
    """Return where the inputs stand in an array: by name where both have names, else by number."""
    if model.is_named and schema.names is not None:
        known = {name: place for place, name in enumerate(schema.names)}
        for item in model.inputs:
            if item.name not in known:
                raise CommandError(
                    f"{path} has no column {item.name!r}, which the model reads; give data with "
                    "the columns that the model was fitted to"
                )
        return [known[item.name] for item in model.inputs]
    if schema.n_features != model.n_inputs:
        raise CommandError(
            f"{path} has {schema.n_features:,} columns, and the model was fitted to "
            f"{model.n_inputs:,}; give data with the same columns"
        )
    return [item.index for item in model.inputs]


def predictions_csv(model: SavedModel, scores: Array) -> str:
    """Return the CSV: prediction, then scores and (logistic loss) probabilities of the classes."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    labels = model.predict(scores)
    if model.classes is None:
        writer.writerow(["prediction"])
        writer.writerows([label] for label in labels)
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
    writer.writerow(map(inert, header))
    for label, row in zip(labels, columns.tolist(), strict=True):
        writer.writerow([inert(label), *row])
    return stream.getvalue()
