"""Write and strictly validate the model file, a JSON text of numbers and names only.

Nothing in the file is ever executed or imported. Floats are written as Python's ``repr``, which is
read back to the same bits. The reader accepts the output of the writer only, and its error message
names the fault.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from atomlearn._support import write_text
from atomlearn.core import Status
from atomlearn.reports.exported import exported_model
from atomlearn.reports.model import ModelFeature, SavedModel
from atomlearn.storage.formats.records import (
    Readers,
    demand,
    finite_array,
    finite_number,
    of_type,
    record,
)
from atomlearn.storage.intake.columns import ColumnPlan, plan_of
from atomlearn.verification.bounds import claim_digest
from atomlearn.verification.models import proof_of_estimator

FORMAT = "atomlearn-model"
VERSION = 1


def write_model(
    path: str | Path,
    model: Any,
    target: str = "target",
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
) -> None:
    """Write the model file atomically: an existing file is replaced as a whole or not at all.

    Parameters
    ----------
    path : path
        The file, which ``read_model`` and ``atomlearn predict`` read.
    model : fitted estimator of this library, or SavedModel
        Linear models, products and curves. The encoding of a table is stored with the model.
    target : str, default="target"
        Name of the target of an estimator.
    X, y : optional
        The data of the fit. With them the file carries the proof that ``atomlearn.verify`` checks.
    sample_weight, offset : arrays, optional
        Those of the fit.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from atomlearn.reports import read_model, write_model
    >>> from atomlearn.reports.model import ModelCertificate, ModelFeature, ModelInput, SavedModel
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
    saved = model if isinstance(model, SavedModel) else exported_model(model, target)
    if X is not None and not isinstance(model, SavedModel):
        saved = replace(saved, proof=proof_of_estimator(model, X, y, sample_weight, offset))
    write_text(path, model_text(saved, str(path)))


def model_text(model: SavedModel, name: str) -> str:
    """Return the JSON text of a model file; ``name`` is the file name in error messages."""
    content = {"format": FORMAT, "version": VERSION, **asdict(model)}
    content["columns"] = [plan.portable() for plan in model.columns]

    def text_of(content: dict[str, Any]) -> str:
        """Return ``content`` as JSON text; arrays become lists."""
        array_to_list = np.ndarray.tolist
        return json.dumps(
            content, indent=1, allow_nan=False, ensure_ascii=False, default=array_to_list
        )

    # The hash is of the numbers that a reader finds in the text.
    text = text_of(content | {"sha256": claim_digest(json.loads(text_of(content)))})
    # The text is parsed before it is written, so that no invalid file is ever written.
    parse_model(text, name)
    return text + "\n"


def read_model(path: str | Path) -> SavedModel:
    """Return the model in a file; a ValueError names the file, the fault and the remedy."""
    if Path(path).exists() and not Path(path).is_file():  # reading a pipe may block forever
        raise _not_a_model(str(path), "it is a folder, a pipe or a device")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise _not_a_model(str(path), "it is not UTF-8 text") from error
    return parse_model(text, str(path))


def _not_a_model(name: str, reason: object) -> ValueError:
    """Return the error for a file that is not a model file, with the reason ``reason``.

    ``name`` is the file name.
    """
    remedy = "pass the model.json that `atomlearn select` wrote"
    return ValueError(f"{name} is not a model file: {reason}; {remedy}")


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the JSON object of these pairs; raise ValueError if a key occurs twice."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("a key occurs twice in one object")
    return content


def parse_model(text: str, name: str) -> SavedModel:
    """Return the model in a JSON text; ``name`` is the file name in error messages.

    Raises ValueError for a text that ``model_text`` does not write.
    """
    try:
        content = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError) as error:
        raise _not_a_model(name, str(error) or type(error).__name__) from error
    if type(content) is not dict or content.pop("format", None) != FORMAT:
        raise _not_a_model(name, f'it has no "format": "{FORMAT}"')
    content.pop("sha256", None)  # which ``verify`` compares
    version = content.pop("version", None)
    if type(version) is not int or version != VERSION:
        raise ValueError(
            f"{name} is a model file of version {version!r}, and this atomlearn reads "
            f"version {VERSION}; update atomlearn, or write the model again with it"
        )
    try:
        model: SavedModel = record(SavedModel, content, own=_OWN)
        _check(model)
    except ValueError as error:
        raise ValueError(
            f"{name}: {error}; the file is damaged or was edited: write it again with "
            "`atomlearn select`"
        ) from error
    return model


def _refuse_constant(value: str) -> NoReturn:
    """Raise ValueError for the JSON constants NaN and Infinity.

    ``value`` is the constant.
    """
    raise ValueError(f"it holds {value}, and a model has finite numbers only")


def _settings(place: str, value: object) -> dict[str, Any]:
    """Return the settings of a model, after checking that all numbers are finite.

    ``place`` is the position of the value in the file, for error messages.
    """
    settings: dict[str, Any] = of_type(place, value, dict)
    for key, item in settings.items():
        if key.endswith(("_times", "_hazard", "_errors")):
            finite_array(f"{place}.{key}", item)
        elif item is not None and type(item) not in (str, bool):
            finite_number(f"{place}.{key}", item)
    return settings


_OWN: Readers = {
    ColumnPlan: lambda place, value: plan_of(value, place),
    dict[str, Any]: _settings,
    # ``verify`` checks each number of a proof by its meaning.
    dict[str, object]: lambda place, value: of_type(place, value, dict),
}


def _check(model: SavedModel) -> None:
    """Raise ValueError if values of the model are inconsistent, such as shapes and classes."""
    labels = [(type(label), label) for label in model.classes or ()]
    n_outputs = len(labels) if len(labels) > 2 else 1
    # A joint multinomial fit of all classes has a single certificate.
    n_fits = 1 if model.settings.get("classes") == "together" else n_outputs
    inputs = [item.index for item in model.inputs]
    features = [feature.index for feature in model.features]
    numeric_tasks = ("regression", "survival")
    statuses = [certificate.status for certificate in model.certificates]
    has_known_task = model.task in numeric_tasks or (
        model.task == "classification" and model.classes is not None
    )
    shape = n_outputs, len(features)
    has_valid_classes = model.classes is None or len(set(labels)) == len(labels) >= 2
    # Each line: the condition, the place in the file, the expected and the received value.
    for is_valid, place, expected, received in (
        (
            has_known_task,
            "task",
            "classification (which has classes), regression or survival",
            model.task,
        ),
        (has_valid_classes, "classes", "at least two different labels, or null", model.classes),
        (model.first_index < 2, "first_index", "0 or 1", model.first_index),
        (_are_places(inputs, model.n_inputs), "inputs", "different columns of the data", inputs),
        (_are_places(features, model.n_features), "features", "different features", features),
        (model.coefficients.shape == shape, "coefficients", f"of shape {shape}", "another shape"),
        (model.intercepts.shape == shape[:1], "intercepts", f"{n_outputs} numbers", "others"),
        (len(statuses) == n_fits, "certificates", f"a list of length {n_fits}", statuses),
        (Status.__members__.keys() >= {*statuses}, "certificates", "of known statuses", statuses),
    ):
        demand(is_valid, place, expected, received)
    for index, feature in enumerate(model.features):
        _check_feature(f"features[{index}]", feature, len(inputs), n_outputs)


def _are_places(numbers: list[int], bound: int) -> bool:
    """Return whether the numbers are distinct and below ``bound``."""
    return len(set(numbers)) == len(numbers) and max(numbers, default=-1) < bound


def _check_feature(place: str, feature: ModelFeature, n_inputs: int, n_outputs: int) -> None:
    """Raise ValueError if the factors or the curve of a feature are invalid.

    ``place`` is the position of the feature in the file, for the error message. ``n_inputs`` is the
    number of inputs of the model and ``n_outputs`` the number of its outputs.
    """
    factors = feature.factors
    curve = feature.curve
    most_factors = 2 if curve is None else 1
    valid = 1 <= len(factors) <= most_factors and max(factors) < n_inputs
    demand(valid, f"{place}.factors", "one or two positions in inputs, of a curve one", factors)
    if curve is not None:
        levels = curve.levels
        # Level codes are stored as bytes, so a curve has at most 256 levels.
        valid = levels.ndim == 1 and 1 <= levels.size <= 256 and bool((np.diff(levels) > 0).all())
        valid = valid and curve.values.shape == (n_outputs, levels.size)
        expected = "a value of each output at 1 to 256 increasing levels"
        demand(valid, f"{place}.curve", expected, levels.tolist())
