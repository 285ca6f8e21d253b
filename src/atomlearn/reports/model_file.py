"""The model file: a JSON text that holds numbers and names only, and a strict reader of it.

Nothing in the file is ever executed or imported. Floats are written as Python's ``repr``, which
reads back to the very same bits. The reader accepts exactly what the writer writes and says
what is wrong with anything else.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn, cast

import numpy as np
from numpy.typing import NDArray

from atomlearn.core.problem.result import Status
from atomlearn.reports.atomic_write import write_text
from atomlearn.reports.model import (
    Allele,
    Label,
    ModelCertificate,
    ModelCurve,
    ModelFeature,
    ModelInput,
    SavedModel,
)
from atomlearn.storage.intake.columns import ColumnPlan, plan_of

FORMAT = "atomlearn-model"
VERSION = 1

#: What JSON text is read into: the words for each kind of value, and its types. ``bool`` is an
#: int to Python, and never one here.
_KINDS: dict[str, tuple[type, ...]] = {
    "a text": (str,),
    "true or false": (bool,),
    "a finite number": (int, float),
    "a list": (list,),
    "an object": (dict,),
}


@dataclass(frozen=True, slots=True)
class _Limits:
    """What a model file may hold at most.

    factors : inputs that a feature is the product of; levels : of a curve, whose codes are bytes;
    shown : letters of a wrong value that a message repeats.
    """

    factors: int = 2
    levels: int = 256
    shown: int = 60


_LIMITS = _Limits()


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
    content = {"format": FORMAT, "version": VERSION, "created_with": model.created_with}
    content |= {field.name: getattr(model, field.name) for field in fields(model)}
    content["columns"] = [plan.portable() for plan in model.columns]
    text = json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False, default=_portable)
    # What cannot be read back must not be written: the reader checks the writer.
    parse_model(text, str(path))
    write_text(path, text + "\n")


def _portable(value: Any) -> Any:
    """Return arrays as lists and records as objects; those of a curve are part of its feature."""
    if hasattr(value, "tolist"):
        return value.tolist()
    content = {field.name: getattr(value, field.name) for field in fields(value)}
    curve = content.pop("curve", None)
    return content if curve is None else content | _portable(curve)


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
    return _Reader(name).model(content)


def _no_constant(value: str) -> NoReturn:
    raise ValueError(f"it holds {value}, and a model has finite numbers only")


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        keys = [key for key, _ in pairs]
        twin = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twin!r} stands there twice")
    return content


class _Reader:
    """Checks every value on its way in; a fault names the file and the place in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fail(self, place: str, expected: str, received: object) -> NoReturn:
        shown, most = repr(received), _LIMITS.shown
        shown = shown if len(shown) <= most else shown[: most - 3] + "..."
        raise ValueError(
            f"{self.name}: {place} must be {expected}, found {shown}; the file is damaged or was "
            "edited: write it again with `atomlearn select`"
        )

    # --- the whole --------------------------------------------------------------------------

    def model(self, content: object) -> SavedModel:
        known = type(content) is dict and content.get("format") == FORMAT
        if not known:
            raise ValueError(
                f'{self.name} is not a model file: it has no "format": "{FORMAT}"; '
                "pass the model.json that `atomlearn select` wrote"
            )
        content = cast(dict[str, Any], content)
        version = content.get("version")
        if type(version) is not int or version != VERSION:
            raise ValueError(
                f"{self.name} is a model file of version {version!r}, and this atomlearn reads "
                f"version {VERSION}; update atomlearn, or write the model again with it"
            )
        self.keys("the file", content, ["format", "version", *_names(SavedModel)])
        task = self.text("task", content["task"])
        if task not in ("classification", "regression", "survival"):
            self.fail("task", "one of classification, regression, survival", task)
        classes = self.classes(content["classes"], task)
        n_outputs = 1 if classes is None or len(classes) == 2 else len(classes)
        sizes = (self.whole(key, content[key], least=1) for key in ("n_inputs", "n_features"))
        n_inputs, n_features = sizes
        inputs = self.inputs(content["inputs"], n_inputs)
        features = self.features(content["features"], n_features, len(inputs), n_outputs)
        coefficients = self.coefficients(content["coefficients"], n_outputs, len(features))
        settings = self.settings(content["settings"])
        # Classes that were fitted together have one certificate.
        n_certificates = 1 if settings.get("classes") == "together" else n_outputs
        return SavedModel(
            task=task,
            loss=self.text("loss", content["loss"]),
            target=self.text("target", content["target"]),
            classes=classes,
            n_features=n_features,
            n_inputs=n_inputs,
            inputs=inputs,
            features=features,
            is_named=self.kind("is_named", content["is_named"], "true or false"),
            first_index=self.whole("first_index", content["first_index"], below=2),
            coefficients=coefficients,
            intercepts=np.array(self.numbers("intercepts", content["intercepts"], n_outputs)),
            certificates=self.certificates(content["certificates"], n_certificates),
            settings=settings,
            created_with=self.text("created_with", content["created_with"]),
            columns=self.columns(content["columns"]),
            alleles=self.alleles(content["alleles"]),
        )

    def coefficients(self, value: object, n_outputs: int, count: int) -> NDArray[np.float64]:
        rows = [
            self.numbers(f"coefficients[{row}]", values, count)
            for row, values in enumerate(self.items("coefficients", value, n_outputs))
        ]
        return np.array(rows, dtype=np.float64).reshape(n_outputs, -1)

    # --- its parts --------------------------------------------------------------------------

    def classes(self, value: object, task: str) -> tuple[Label, ...] | None:
        if task != "classification":
            if value is not None:
                self.fail("classes", f"null for a {task}", value)
            return None
        labels = self.items("classes", value)
        if len(labels) < 2:
            self.fail("classes", "a list of at least two labels", value)
        for position, label in enumerate(labels):
            if type(label) not in (str, int, float, bool):
                self.fail(f"classes[{position}]", "a text, a number or a truth value", label)
        if len({(type(label), label) for label in labels}) != len(labels):
            self.fail("classes", "a list of different labels", value)
        return tuple(labels)

    def inputs(self, value: object, n_inputs: int) -> tuple[ModelInput, ...]:
        found = []
        for position, item in enumerate(self.items("inputs", value)):
            place = f"inputs[{position}]"
            self.keys(place, item, _names(ModelInput))
            index = self.whole(f"{place}.index", item["index"], below=n_inputs)
            found.append(ModelInput(index, self.text(f"{place}.name", item["name"])))
        if len({item.index for item in found}) != len(found):
            self.fail("inputs", "a list of different columns", value)
        return tuple(found)

    def features(
        self, value: object, n_features: int, n_inputs: int, n_outputs: int
    ) -> tuple[ModelFeature, ...]:
        found = []
        for position, item in enumerate(self.items("features", value)):
            place = f"features[{position}]"
            curved = "levels" in self.kind(place, item, "an object")
            names = [name for name in _names(ModelFeature) if name != "curve"]
            self.keys(place, item, names + (_names(ModelCurve) if curved else []))
            factors = self.items(f"{place}.factors", item["factors"])
            if not 1 <= len(factors) <= _LIMITS.factors:
                self.fail(f"{place}.factors", "one or two positions in inputs", factors)
            found.append(
                ModelFeature(
                    index=self.whole(f"{place}.index", item["index"], below=n_features),
                    name=self.text(f"{place}.name", item["name"]),
                    factors=tuple(
                        self.whole(f"{place}.factors", factor, below=n_inputs) for factor in factors
                    ),
                    curve=self.curve(place, item, n_outputs) if curved else None,
                )
            )
            if curved and len(factors) != 1:
                self.fail(f"{place}.factors", "one position in inputs for a curve", factors)
        if len({item.index for item in found}) != len(found):
            self.fail("features", "a list of different features", value)
        return tuple(found)

    def curve(self, place: str, item: dict[str, Any], n_outputs: int) -> ModelCurve:
        given = self.items(f"{place}.levels", item["levels"])
        levels = np.array(self.numbers(f"{place}.levels", given, len(given)))
        if not 1 <= levels.size <= _LIMITS.levels or (np.diff(levels) <= 0).any():
            self.fail(f"{place}.levels", f"1 to {_LIMITS.levels} increasing numbers", given)
        rows = self.items(f"{place}.values", item["values"], n_outputs)
        values = [
            self.numbers(f"{place}.values[{n}]", row, len(given)) for n, row in enumerate(rows)
        ]
        return ModelCurve(levels, np.array(values))

    def columns(self, value: object) -> tuple[ColumnPlan, ...]:
        found = []
        for position, item in enumerate(self.items("columns", value)):
            try:
                found.append(plan_of(item, f"columns[{position}]"))
            except ValueError as error:
                raise ValueError(
                    f"{self.name}: {error}; write it again with `atomlearn select`"
                ) from error
        return tuple(found)

    def alleles(self, value: object) -> tuple[Allele, ...]:
        found = []
        for position, item in enumerate(self.items("alleles", value)):
            place = f"alleles[{position}]"
            self.keys(place, item, _names(Allele))
            texts = {
                key: self.text(f"{place}.{key}", item[key])
                for key in ("name", "chromosome", "counted", "other")
            }
            where = self.whole(f"{place}.position", item["position"])
            mean = self.number(f"{place}.mean", item["mean"])
            found.append(Allele(position=where, mean=mean, **texts))
        return tuple(found)

    def certificates(self, value: object, n_outputs: int) -> tuple[ModelCertificate, ...]:
        found = []
        names = _names(ModelCertificate)
        for position, item in enumerate(self.items("certificates", value, n_outputs)):
            place = f"certificates[{position}]"
            self.keys(place, item, names)
            status = self.text(f"{place}.status", item["status"])
            if status not in Status.__members__:
                self.fail(f"{place}.status", f"one of {', '.join(Status.__members__)}", status)
            found.append(
                ModelCertificate(
                    status, *(self.number(f"{place}.{key}", item[key]) for key in names[1:])
                )
            )
        return tuple(found)

    def settings(self, value: object) -> dict[str, Any]:
        found: dict[str, Any] = self.kind("settings", value, "an object")
        for key, item in found.items():
            if key in ("baseline_times", "baseline_hazard"):
                length = len(self.items("settings.baseline_times", found.get("baseline_times")))
                self.numbers(f"settings.{key}", item, length)
            elif item is not None and type(item) not in (str, bool):
                self.number(f"settings.{key}", item)
        return found

    # --- single values ----------------------------------------------------------------------

    def kind(self, place: str, value: object, expected: str) -> Any:
        if type(value) not in _KINDS[expected]:
            self.fail(place, expected, value)
        return value

    def keys(self, place: str, item: object, expected: list[str]) -> None:
        received = sorted(self.kind(place, item, "an object"))
        if received != sorted(expected):
            self.fail(place, f"an object with the keys {', '.join(expected)}", received)

    def items(self, place: str, value: object, length: int | None = None) -> list[Any]:
        found: list[Any] = self.kind(place, value, "a list")
        if length is not None and len(found) != length:
            self.fail(place, f"a list of length {length}", value)
        return found

    def text(self, place: str, value: object) -> str:
        return str(self.kind(place, value, "a text"))

    def whole(self, place: str, value: object, least: int = 0, below: int | None = None) -> int:
        bound = "" if below is None else f" and below {below}"
        expected = f"a whole number of at least {least}{bound}"
        found = value if type(value) is int else self.fail(place, expected, value)
        if found < least or (below is not None and found >= below):
            self.fail(place, expected, value)
        return found

    def number(self, place: str, value: object) -> float:
        try:
            number = float(self.kind(place, value, "a finite number"))
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail(place, "a finite number", value)
        return number

    def numbers(self, place: str, value: object, length: int) -> list[float]:
        return [
            self.number(f"{place}[{position}]", item)
            for position, item in enumerate(self.items(place, value, length))
        ]


def _names(record: type[Any]) -> list[str]:
    """Return the names of the fields of a record, which are its keys in the file."""
    return [field.name for field in fields(record)]
