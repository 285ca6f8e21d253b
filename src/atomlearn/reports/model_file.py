"""The model file: a JSON text that holds numbers and names only, and a strict reader of it.

Nothing in the file is ever executed or imported. Floats are written as Python's ``repr``, which
reads back to the very same bits. The reader accepts exactly what the writer writes and says
what is wrong with anything else.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.problem.result import Status
from atomlearn.reports.atomic_write import write_text
from atomlearn.reports.model import ModelFeature, SavedModel
from atomlearn.storage.intake.columns import ColumnPlan, plan_of

FORMAT = "atomlearn-model"
VERSION = 1

#: What JSON text is read into. ``bool`` is an int to Python, and never one here.
_WORDS: dict[Any, str] = {
    str: "a text",
    bool: "true or false",
    int: "a whole number of at least 0",
    float: "a finite number",
    list: "a list",
    dict: "an object",
}


def write_model(path: str | Path, model: SavedModel) -> None:
    """Write the model file; an existing file is replaced as a whole or not at all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from atomlearn.reports import ModelCertificate, ModelFeature, ModelInput, SavedModel
    >>> from atomlearn.reports import read_model, write_model
    >>> model = SavedModel(
    ...     task="regression", loss="squared", target="price", classes=None, n_features=3,
    ...     n_inputs=3, inputs=(ModelInput(1, "area"),), features=(ModelFeature(1, "area", (0,)),),
    ...     is_named=True, first_index=0, coefficients=np.array([[2.0]]),
    ...     intercepts=np.array([5.0]),
    ...     certificates=(ModelCertificate("CONVERGED", 1.0, 1e-7, 1e-7, 3.0),),
    ... )
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "model.json"
    >>> write_model(file, model)
    >>> read_model(file).scores(np.array([[10.0], [20.0]])).tolist()
    [[25.0], [45.0]]
    """
    content = {"format": FORMAT, "version": VERSION, **asdict(model)}
    content["columns"] = [plan.portable() for plan in model.columns]
    text = json.dumps(
        content, indent=1, allow_nan=False, ensure_ascii=False, default=lambda array: array.tolist()
    )
    # What cannot be read back must not be written: the reader checks the writer.
    parse_model(text, str(path))
    write_text(path, text + "\n")


def read_model(path: str | Path) -> SavedModel:
    """Read a model file, or raise ValueError that names the file, the fault and the remedy."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path} is not a model file: it is not UTF-8 text; "
            "pass the model.json that `atomlearn select` wrote"
        ) from error
    return parse_model(text, str(path))


def parse_model(text: str, name: str) -> SavedModel:
    """Return the model that a text describes; ``name`` is the file named in errors."""
    try:
        content = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{name} is not a model file: {error or type(error).__name__}; "
            "pass the model.json that `atomlearn select` wrote"
        ) from error
    return _model(content, name)


def _no_constant(value: str) -> NoReturn:
    raise ValueError(f"it holds {value}, and a model has finite numbers only")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        keys = [key for key, _ in pairs]
        twin = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twin!r} stands there twice")
    return content


def _model(content: Any, name: str) -> SavedModel:
    """Return the model of a JSON value, every part of it checked."""
    if type(content) is not dict or content.get("format") != FORMAT:
        raise ValueError(
            f'{name} is not a model file: it has no "format": "{FORMAT}"; '
            "pass the model.json that `atomlearn select` wrote"
        )
    version = content.get("version")
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"{name} is a model file of version {version!r}, and this atomlearn reads "
            f"version {VERSION}; update atomlearn, or write the model again with it"
        )
    reader = _Reader(name)
    model: SavedModel = reader.record(
        "", {key: content[key] for key in content if key not in ("format", "version")}, SavedModel
    )
    reader.check(model)
    return model


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads values as the fields of records are annotated; a fault names the file and the place."""

    name: str

    def fail(self, place: str, expected: str, received: object) -> NoReturn:
        shown = repr(received)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise ValueError(
            f"{self.name}: {place} must be {expected}, found {shown}; the file is damaged or was "
            "edited: write it again with `atomlearn select`"
        )

    # --- values by their types --------------------------------------------------------------

    def record(self, place: str, value: object, kind: Any) -> Any:
        hints = get_type_hints(kind)
        keys = sorted(self.of_type(place or "the file", value, dict))
        if keys != sorted(hints):
            told = f"an object with the keys {', '.join(hints)}"
            self.fail(place or "the file", told, keys)
        dot = f"{place}." if place else ""
        found = {key: self.value(f"{dot}{key}", value[key], hints[key]) for key in hints}  # type: ignore[index]
        return kind(**found)

    def value(self, place: str, value: object, kind: Any) -> Any:
        """Return a value of an annotated kind, as a record keeps it."""
        kinds = get_args(kind)
        if get_origin(kind) is np.ndarray:
            return self.array(place, value)
        if kind is ColumnPlan:
            return self.column(place, value)
        if is_dataclass(kind):
            return self.record(place, value, kind)
        if get_origin(kind) is tuple:
            items = enumerate(self.of_type(place, value, list))
            return tuple(self.value(f"{place}[{at}]", item, kinds[0]) for at, item in items)
        if get_origin(kind) is dict:
            return self.settings(place, value)
        if type(None) in kinds:
            return None if value is None else self.value(place, value, kinds[0])
        if kinds:
            if type(value) not in kinds:
                self.fail(place, f"one of {', '.join(_WORDS[one] for one in kinds)}", value)
            return value
        return self.number(place, value) if kind is float else self.of_type(place, value, kind)

    def of_type(self, place: str, value: object, kind: Any) -> Any:
        if type(value) is not kind or (kind is int and value < 0):  # type: ignore[operator]
            self.fail(place, _WORDS[kind], value)
        return value

    def number(self, place: str, value: object) -> float:
        if type(value) not in (int, float):
            self.fail(place, _WORDS[float], value)
        try:
            number = float(value)  # type: ignore[arg-type]
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail(place, _WORDS[float], value)
        return number

    def array(self, place: str, value: object) -> Array:
        def numbers(place: str, value: object, depth: int) -> Any:
            if depth and type(value) is list:
                return [numbers(f"{place}[{at}]", one, depth - 1) for at, one in enumerate(value)]
            return self.number(place, value)

        found = numbers(place, self.of_type(place, value, list), 2)
        try:
            return np.array(found, dtype=np.float64)
        except ValueError:
            self.fail(place, "lists of one length", value)

    def column(self, place: str, value: object) -> ColumnPlan:
        try:
            return plan_of(value, place)
        except ValueError as error:
            raise ValueError(
                f"{self.name}: {error}; write it again with `atomlearn select`"
            ) from error

    def settings(self, place: str, value: object) -> dict[str, Any]:
        found: dict[str, Any] = self.of_type(place, value, dict)
        for key, item in found.items():
            if key in ("baseline_times", "baseline_hazard"):
                times = self.of_type(f"{place}.baseline_times", found.get("baseline_times"), list)
                self.shape(f"{place}.{key}", self.array(f"{place}.{key}", item), len(times))
            elif item is not None and type(item) not in (str, bool):
                self.number(f"{place}.{key}", item)
        return found

    # --- what values have to do with each other ----------------------------------------------

    def shape(self, place: str, array: Any, *shape: int) -> None:
        if np.shape(array) != shape:
            lists = " of lists".join(f" of length {length}" for length in shape)
            self.fail(place, f"a list{lists}", np.shape(array))

    def below(self, place: str, value: int, bound: int, least: int = 0) -> None:
        if not least <= value < bound:
            self.fail(place, f"a whole number of at least {least} and below {bound}", value)

    def different(self, place: str, items: list[Any]) -> None:
        if len(set(items)) != len(items):
            self.fail(place, f"a list of different {place.replace('inputs', 'columns')}", items)

    def check(self, model: SavedModel) -> None:
        tasks = ("classification", "regression", "survival")
        if model.task not in tasks:
            self.fail("task", f"one of {', '.join(tasks)}", model.task)
        classes, are_classes = model.classes, model.task == "classification"
        if are_classes != (classes is not None):
            self.fail("classes", "a list for a classification, else null", classes)
        if classes is not None and len(classes) < 2:
            self.fail("classes", "a list of at least two labels", classes)
        if len({(type(label), label) for label in classes or ()}) != len(classes or ()):
            self.fail("classes", "a list of different labels", classes)
        n_outputs = 1 if classes is None or len(classes) == 2 else len(classes)
        for key, size in (("n_inputs", model.n_inputs), ("n_features", model.n_features)):
            if size < 1:
                self.fail(key, "a whole number of at least 1", size)
        self.below("first_index", model.first_index, 2)
        for at, item in enumerate(model.inputs):
            self.below(f"inputs[{at}].index", item.index, model.n_inputs)
        self.different("inputs", [item.index for item in model.inputs])
        for at, feature in enumerate(model.features):
            self.below(f"features[{at}].index", feature.index, model.n_features)
            self.check_feature(f"features[{at}]", feature, len(model.inputs), n_outputs)
        self.different("features", [feature.index for feature in model.features])
        self.shape("coefficients", model.coefficients, n_outputs, len(model.features))
        self.shape("intercepts", model.intercepts, n_outputs)
        # Classes that were fitted together have one certificate.
        together = model.settings.get("classes") == "together"
        statuses = [certificate.status for certificate in model.certificates]
        self.shape("certificates", statuses, 1 if together else n_outputs)
        for at, status in enumerate(statuses):
            if status not in Status.__members__:
                told = f"one of {', '.join(Status.__members__)}"
                self.fail(f"certificates[{at}].status", told, status)

    def check_feature(
        self, place: str, feature: ModelFeature, n_inputs: int, n_outputs: int
    ) -> None:
        factors, curve = feature.factors, feature.curve
        if not 1 <= len(factors) <= 2:
            self.fail(f"{place}.factors", "one or two positions in inputs", factors)
        for factor in factors:
            self.below(f"{place}.factors", factor, n_inputs)
        if curve is None:
            return
        if len(factors) != 1:
            self.fail(f"{place}.factors", "one position in inputs for a curve", factors)
        levels = curve.levels
        # Codes of levels are bytes.
        if levels.ndim != 1 or not 1 <= levels.size <= 256 or (np.diff(levels) <= 0).any():
            self.fail(f"{place}.curve.levels", "1 to 256 increasing numbers", levels.tolist())
        self.shape(f"{place}.curve.values", curve.values, n_outputs, levels.size)
