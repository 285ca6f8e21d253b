"""The model file: what is written reads back to the same bits, anything else is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from atomlearn.reports import read_model, write_model
from atomlearn.reports.model import ModelCertificate, ModelFeature, ModelInput, SavedModel
from atomlearn.reports.model_file import parse_model

CERTIFICATE = ModelCertificate("CONVERGED", 1.5, 1e-9, 7e-10, 4.0)


def make_model(classes: tuple[Any, ...] | None = ("no", "yes"), **changes: Any) -> SavedModel:
    n_outputs = 1 if classes is None or len(classes) == 2 else len(classes)
    parts: dict[str, Any] = {
        "task": "regression" if classes is None else "classification",
        "loss": "squared" if classes is None else "logistic",
        "target": "y",
        "classes": classes,
        "n_features": 27,
        "n_inputs": 6,
        "inputs": (ModelInput(0, "a"), ModelInput(4, "<b>")),
        "features": (ModelFeature(4, "<b>", (1,)), ModelFeature(9, "a:<b>", (0, 1))),
        "is_named": True,
        "first_index": 0,
        "coefficients": np.array([[0.1, -1e-300]] * n_outputs),
        "intercepts": np.linspace(-1, 1, n_outputs),
        "certificates": (CERTIFICATE,) * n_outputs,
        "settings": {"C": 10.0, "norm": "KSupport(k=4)", "seed": None},
        "created_with": "atomlearn 0",
    }
    return SavedModel(**{**parts, **changes})


@pytest.mark.parametrize("classes", [None, (0.5, "x", 2), (False, True)])
def test_round_trip(tmp_path: Path, classes: tuple[Any, ...] | None) -> None:
    model = make_model(classes)
    write_model(tmp_path / "m.json", model)
    again = read_model(tmp_path / "m.json")
    write_model(tmp_path / "again.json", again)
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()
    np.testing.assert_array_equal(again.coefficients, model.coefficients)
    if classes is not None:
        assert [type(label) for label in again.classes or ()] == [type(c) for c in classes]


@given(
    values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
    name=st.text(st.characters(exclude_categories=["Cs"])),
)
def test_every_float_and_every_name_survive(values: list[float], name: str) -> None:
    import tempfile

    inputs = (ModelInput(0, name), ModelInput(4, "b"))
    model = make_model(coefficients=np.array([values]), inputs=inputs)
    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "m.json", model)
        again = read_model(Path(folder) / "m.json")
    assert again.coefficients.tobytes() == model.coefficients.tobytes()
    assert again.inputs[0].name == name


def test_scores_are_products_of_the_inputs_dense_and_sparse() -> None:
    model = make_model(coefficients=np.array([[2.0, -3.0]]), intercepts=np.array([0.5]))
    X = np.array([[1.0, 2.0], [0.0, 5.0], [-1.0, 0.0]])
    expected = 2.0 * X[:, 1] - 3.0 * X[:, 0] * X[:, 1] + 0.5
    np.testing.assert_allclose(model.scores(X)[:, 0], expected, rtol=1e-15)
    np.testing.assert_allclose(model.scores(sparse.csr_matrix(X))[:, 0], expected, rtol=1e-15)
    assert model.predict(model.scores(X)) == ["no" if e <= 0 else "yes" for e in expected]
    with pytest.raises(ValueError, match="reads 2 columns and received 3"):
        model.scores(np.ones((2, 3)))


def test_a_model_without_features_gives_its_intercept() -> None:
    model = make_model(inputs=(), features=(), coefficients=np.zeros((1, 0)))
    assert model.scores(np.zeros((3, 0))).tolist() == [[-1.0]] * 3


def test_probabilities_do_not_overflow() -> None:
    two = make_model().probabilities(np.array([[1e4], [-1e4], [0.0]]))
    assert two is not None
    np.testing.assert_array_equal(two, [[0, 1], [1, 0], [0.5, 0.5]])
    many = make_model(("a", "b", "c")).probabilities(np.array([[-1e4, -1e4, -2e4]]))
    assert many is not None
    np.testing.assert_allclose(many, [[0.5, 0.5, 0.0]])
    assert make_model(loss="squared_hinge").probabilities(np.zeros((1, 1))) is None


def test_the_writer_refuses_what_the_reader_would(tmp_path: Path) -> None:
    for broken in (
        make_model(coefficients=np.array([[np.nan, 1.0]])),
        make_model(intercepts=np.array([np.inf])),
        make_model(settings={"x": [1]}),
    ):
        with pytest.raises(ValueError):
            write_model(tmp_path / "m.json", broken)
    assert not list(tmp_path.iterdir())


def content() -> dict[str, Any]:
    """Return the content of a valid file."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        write_model(Path(folder) / "m.json", make_model())
        loaded: dict[str, Any] = json.loads((Path(folder) / "m.json").read_text())
    return loaded


@pytest.mark.parametrize(
    ("place", "value", "expected"),
    [
        (("format",), "other", "not a model file"),
        (("version",), 2, "version 2"),
        (("task",), "clustering", "task"),
        (("loss",), 3, "loss must be a text"),
        (("classes",), ["a"], "at least two"),
        (("classes",), ["a", "a"], "different labels"),
        (("classes",), ["a", None], "classes[1]"),
        (("n_features",), 5, "different features"),
        (("inputs", 0, "index"), True, "inputs[0].index"),
        (("inputs", 0, "index"), 4, "different columns"),
        (("features", 0, "factors"), [], "one or two"),
        (("features", 0, "index"), 9, "different features"),
        (("features", 0, "code"), "import os", "keys"),
        (("features", 0), {"index": 4, "name": "a"}, "keys"),
        (("coefficients",), [[0.1]], "shape (1, 2)"),
        (("coefficients", 0, 0), "0.1", "coefficients must be lists of finite"),
        (("coefficients", 0, 0), 10**400, "finite"),
        (("certificates", 0, "status"), "PERFECT", "known statuses"),
        (("certificates",), [], "length 1"),
        (("settings", "C"), [1], "settings.C"),
        (("settings", "baseline_hazard"), 1.0, "settings.baseline_hazard"),
        (("is_named",), 1, "is_named"),
        (("first_index",), 2, "first_index"),
    ],
)
def test_a_damaged_file_is_refused_with_the_place(
    place: tuple[Any, ...], value: Any, expected: str
) -> None:
    damaged = content()
    inner: Any = damaged
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ValueError) as error:
        parse_model(json.dumps(damaged), "m.json")
    assert expected in str(error.value)
    assert "m.json" in str(error.value)


def test_other_texts_are_not_models() -> None:
    twice = '{"format": "atomlearn-model", "format": "atomlearn-model"}'
    for text in ("", "[]", twice, '{"version": NaN}', "[" * 100_000, "cos\nsystem\n(S'true'\ntR."):
        with pytest.raises(ValueError, match="not a model file"):
            parse_model(text, "m.json")


def test_a_binary_file_is_not_a_model(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_bytes(b"\x80\x04\x95\xff")
    with pytest.raises(ValueError, match="not a model file: it is not UTF-8"):
        read_model(tmp_path / "m.json")
