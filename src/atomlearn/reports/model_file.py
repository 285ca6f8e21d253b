"""The model file: a JSON text that holds numbers and names only, and a strict reader of it.

Nothing in the file is ever executed or imported. Floats are written as Python's ``repr``, which
reads back to the very same bits. The reader accepts exactly what the writer writes and says
what is wrong with anything else.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args, get_origin, get_type_hints

import numpy as np

from atomlearn.core.interfaces import Array
from atomlearn.core.interfaces.certificate import Status
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
    if Path(path).exists() and not Path(path).is_file():  # a pipe may be waited for without end
        raise _no_model(str(path), "it is a folder, a pipe or a device")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _no_model(str(path), "it is not UTF-8 text") from error
    return parse_model(text, str(path))


def _no_model(name: str, why: object) -> ValueError:
    remedy = "pass the model.json that `atomlearn select` wrote"
    return ValueError(f"{name} is not a model file: {why}; {remedy}")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return content


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


def _require(holds: bool, place: str, expected: str, received: object) -> None:
    """Raise ValueError where something does not hold."""
    if not holds:
        shown = repr(received)
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        raise ValueError(f"{place} must be {expected}, found {shown}")


# Values, as the fields of records are annotated.


def _record(place: str, value: object, kind: Any) -> Any:
    hints = get_type_hints(kind)
    found = _of_type(place or "the file", value, dict)
    told = f"an object with the keys {', '.join(hints)}"
    _require(found.keys() == hints.keys(), place or "the file", told, sorted(found))
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
    if kinds:
        told = f"one of {', '.join(_WORDS[one] for one in kinds)}"
        _require(type(value) in kinds, place, told, value)
        return value
    return _number(place, value) if kind is float else _of_type(place, value, kind)


def _of_type(place: str, value: Any, kind: Any) -> Any:
    fits = type(value) is kind and not (kind is int and value < 0)
    _require(fits, place, _WORDS[kind], value)
    return value


def _number(place: str, value: Any) -> float:
    # Whole numbers of Python may be larger than any float.
    finite = type(value) in (int, float) and abs(value) <= sys.float_info.max
    _require(finite, place, _WORDS[float], value)
    return float(value)


def _array(place: str, value: object) -> Array:
    expected = "lists of finite numbers, of one length"
    try:
        found = np.array(_of_type(place, value, list))
    except ValueError:
        found = np.array(None)
    _require(found.dtype.kind in "if" and bool(np.isfinite(found).all()), place, expected, value)
    return found.astype(np.float64)


def _settings(place: str, value: object) -> dict[str, Any]:
    found: dict[str, Any] = _of_type(place, value, dict)
    for key, item in found.items():
        if key.endswith(("_times", "_hazard", "_errors")):
            _array(f"{place}.{key}", item)
        elif item is not None and type(item) not in (str, bool):
            _number(f"{place}.{key}", item)
    return found


def _check(model: SavedModel) -> None:
    """Raise ValueError where values do not go together."""
    labels = [(type(label), label) for label in model.classes or ()]
    n_outputs = len(labels) if len(labels) > 2 else 1
    # Classes that were fitted together have one certificate.
    n_fits = 1 if model.settings.get("classes") == "together" else n_outputs
    columns = [item.index for item in model.inputs]
    numbers = [feature.index for feature in model.features]
    kinds, statuses = ("regression", "survival"), [one.status for one in model.certificates]
    known = model.task in kinds or (model.task == "classification" and model.classes is not None)
    shape = n_outputs, len(numbers)
    different = model.classes is None or len(set(labels)) == len(labels) >= 2
    for holds, place, expected, found in (
        (known, "task", "classification (which has classes), regression or survival", model.task),
        (different, "classes", "at least two different labels, or null", model.classes),
        (model.first_index < 2, "first_index", "0 or 1", model.first_index),
        (_are_places(columns, model.n_inputs), "inputs", "different columns of the data", columns),
        (_are_places(numbers, model.n_features), "features", "different features", numbers),
        (model.coefficients.shape == shape, "coefficients", f"of shape {shape}", "another shape"),
        (model.intercepts.shape == shape[:1], "intercepts", f"{n_outputs} numbers", "others"),
        (len(statuses) == n_fits, "certificates", f"a list of length {n_fits}", statuses),
        (Status.__members__.keys() >= {*statuses}, "certificates", "of known statuses", statuses),
    ):
        _require(holds, place, expected, found)
    for at, feature in enumerate(model.features):
        _check_feature(f"features[{at}]", feature, len(columns), n_outputs)


def _are_places(numbers: list[int], bound: int) -> bool:
    return len(set(numbers)) == len(numbers) and max(numbers, default=-1) < bound


def _check_feature(place: str, feature: ModelFeature, n_inputs: int, n_outputs: int) -> None:
    factors, curve = feature.factors, feature.curve
    most = 2 if curve is None else 1
    fits = 1 <= len(factors) <= most and max(factors) < n_inputs
    _require(fits, f"{place}.factors", "one or two positions in inputs, of a curve one", factors)
    if curve is not None:
        levels = curve.levels
        # Codes of levels are bytes.
        fits = levels.ndim == 1 and 1 <= levels.size <= 256 and bool((np.diff(levels) > 0).all())
        fits = fits and curve.values.shape == (n_outputs, levels.size)
        told = "a value of each output at 1 to 256 increasing levels"
        _require(fits, f"{place}.curve", told, levels.tolist())
