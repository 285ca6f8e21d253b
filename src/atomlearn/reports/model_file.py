"""The model file: a JSON text that holds numbers and names only, and a strict reader of it.

Nothing in the file is ever executed or imported. Floats are written as Python's ``repr``, which
reads back to the very same bits. The reader accepts exactly what the writer writes and says
what is wrong with anything else.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from dataclasses import asdict, is_dataclass
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
        raise _no_model(str(path), "it is not UTF-8 text") from error
    return parse_model(text, str(path))


def _no_model(name: str, why: object) -> ValueError:
    remedy = "pass the model.json that `atomlearn select` wrote"
    return ValueError(f"{name} is not a model file: {why}; {remedy}")


def parse_model(text: str, name: str) -> SavedModel:
    """Return the model that a text describes; ``name`` is the file named in errors."""
    try:
        content = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_no_twins)
    except (ValueError, RecursionError) as error:
        raise _no_model(name, error or type(error).__name__) from error
    if type(content) is not dict or content.pop("format", None) != FORMAT:
        raise _no_model(name, f'it has no "format": "{FORMAT}"')
    version = content.pop("version", None)
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"{name} is a model file of version {version!r}, and this atomlearn reads "
            f"version {VERSION}; update atomlearn, or write the model again with it"
        )
    try:
        model: SavedModel = _record("", content, SavedModel)
        _check(model)
    except ValueError as error:
        raise ValueError(
            f"{name}: {error}; the file is damaged or was edited: write it again with "
            "`atomlearn select`"
        ) from error
    return model


def _no_constant(value: str) -> NoReturn:
    raise ValueError(f"it holds {value}, and a model has finite numbers only")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if twins := [key for key in keys if keys.count(key) > 1]:
        raise ValueError(f"the key {twins[0]!r} stands there twice")
    return dict(pairs)


def _fail(place: str, expected: str, received: object) -> NoReturn:
    shown = repr(received)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise ValueError(f"{place} must be {expected}, found {shown}")


# Values, as the fields of records are annotated.


def _record(place: str, value: object, kind: Any) -> Any:
    hints = get_type_hints(kind)
    found = _of_type(place or "the file", value, dict)
    if found.keys() != hints.keys():
        told = f"an object with the keys {', '.join(hints)}"
        _fail(place or "the file", told, sorted(found))
    dot = f"{place}." if place else ""
    return kind(**{key: _value(f"{dot}{key}", found[key], hints[key]) for key in hints})


def _value(place: str, value: object, kind: Any) -> Any:
    """Return a value of an annotated kind, as a record keeps it."""
    origin, kinds = get_origin(kind), get_args(kind)
    if origin is np.ndarray:
        return _array(place, value)
    if kind is ColumnPlan:
        return plan_of(value, place)
    if is_dataclass(kind):
        return _record(place, value, kind)
    if origin is tuple:
        items = enumerate(_of_type(place, value, list))
        return tuple(_value(f"{place}[{at}]", item, kinds[0]) for at, item in items)
    if origin is dict:
        return _settings(place, value)
    if type(None) in kinds:
        return None if value is None else _value(place, value, kinds[0])
    if kinds and type(value) not in kinds:
        _fail(place, f"one of {', '.join(_WORDS[one] for one in kinds)}", value)
    if kinds:
        return value
    return _number(place, value) if kind is float else _of_type(place, value, kind)


def _of_type(place: str, value: Any, kind: Any) -> Any:
    if type(value) is not kind or (kind is int and value < 0):
        _fail(place, _WORDS[kind], value)
    return value


def _number(place: str, value: Any) -> float:
    # Whole numbers of Python may be larger than any float.
    if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
        _fail(place, _WORDS[float], value)
    return float(value)


def _array(place: str, value: object) -> Array:
    def numbers(place: str, value: object, depth: int) -> Any:
        if depth and type(value) is list:
            return [numbers(f"{place}[{at}]", one, depth - 1) for at, one in enumerate(value)]
        return _number(place, value)

    found = numbers(place, _of_type(place, value, list), 2)
    try:
        return np.array(found, dtype=np.float64)
    except ValueError:
        _fail(place, "lists of one length", value)


def _settings(place: str, value: object) -> dict[str, Any]:
    found: dict[str, Any] = _of_type(place, value, dict)
    for key, item in found.items():
        if key in ("baseline_times", "baseline_hazard"):
            times = _of_type(f"{place}.baseline_times", found.get("baseline_times"), list)
            _shape(f"{place}.{key}", _array(f"{place}.{key}", item), len(times))
        elif item is not None and type(item) not in (str, bool):
            _number(f"{place}.{key}", item)
    return found


# What values have to do with each other.


def _shape(place: str, array: Any, *shape: int) -> None:
    if np.shape(array) != shape:
        lists = " of lists".join(f" of length {length}" for length in shape)
        _fail(place, f"a list{lists}", np.shape(array))


def _below(place: str, value: int, bound: int) -> None:
    if value >= bound:
        _fail(place, f"a whole number below {bound}", value)


def _one_of(place: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        _fail(place, f"one of {', '.join(known)}", value)


def _different(place: str, items: list[Any], what: str) -> None:
    if len(set(items)) != len(items):
        _fail(place, f"a list of different {what}", items)


def _check(model: SavedModel) -> None:
    _one_of("task", model.task, ("classification", "regression", "survival"))
    classes = model.classes
    if (model.task == "classification") != (classes is not None):
        _fail("classes", "a list for a classification, else null", classes)
    if classes is not None and len(classes) < 2:
        _fail("classes", "a list of at least two labels", classes)
    _different("classes", [(type(label), label) for label in classes or ()], "labels")
    n_outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    _below("first_index", model.first_index, 2)
    for at, item in enumerate(model.inputs):
        _below(f"inputs[{at}].index", item.index, model.n_inputs)
    _different("inputs", [item.index for item in model.inputs], "columns")
    for at, feature in enumerate(model.features):
        _below(f"features[{at}].index", feature.index, model.n_features)
        _check_feature(f"features[{at}]", feature, len(model.inputs), n_outputs)
    _different("features", [feature.index for feature in model.features], "features")
    _shape("coefficients", model.coefficients, n_outputs, len(model.features))
    _shape("intercepts", model.intercepts, n_outputs)
    # Classes that were fitted together have one certificate.
    together = model.settings.get("classes") == "together"
    _shape("certificates", [0] * len(model.certificates), 1 if together else n_outputs)
    for at, certificate in enumerate(model.certificates):
        _one_of(f"certificates[{at}].status", certificate.status, Status.__members__)


def _check_feature(place: str, feature: ModelFeature, n_inputs: int, n_outputs: int) -> None:
    factors, curve = feature.factors, feature.curve
    most, told = 2, "one or two positions in inputs"
    if curve is not None:
        most, told = 1, "one position in inputs for a curve"
    if not 1 <= len(factors) <= most:
        _fail(f"{place}.factors", told, factors)
    for factor in factors:
        _below(f"{place}.factors", factor, n_inputs)
    if curve is not None:
        levels = curve.levels
        # Codes of levels are bytes.
        if levels.ndim != 1 or not 1 <= levels.size <= 256 or (np.diff(levels) <= 0).any():
            _fail(f"{place}.curve.levels", "1 to 256 increasing numbers", levels.tolist())
        _shape(f"{place}.curve.values", curve.values, n_outputs, levels.size)
