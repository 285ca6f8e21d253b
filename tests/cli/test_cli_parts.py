"""The parts of the command line on their own: targets, split, interactions, demo."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import PolynomialFeatures

from atomlearn.cli import main
from atomlearn.cli.features import features_of
from atomlearn.cli.scoring import split_rows
from atomlearn.cli.source import DataRoles
from atomlearn.cli.targets import prepare_target
from atomlearn.reports import read_model
from atomlearn.reports.held_out import held_out_scores


@pytest.mark.parametrize(
    ("values", "task", "classes"),
    [
        (np.array(["b", "a", "b"]), "classification", ("a", "b")),
        (np.arange(6) % 3, "classification", (0, 1, 2)),
        (np.arange(30), "regression", None),
        (np.array([0.1, 0.2, 0.4]), "regression", None),
        (np.array([True, False]), "classification", (False, True)),
    ],
)
def test_task_is_guessed_from_the_values(
    values: np.ndarray, task: str, classes: tuple[object, ...] | None
) -> None:
    target = prepare_target(values, "y", "auto", None)
    assert (target.task, target.classes) == (task, classes)
    assert target.guessed


def test_positive_label_with_a_comma_and_two_classes() -> None:
    target = prepare_target(np.array(["x, y", "z", "z"]), "y", "auto", "x, y")
    assert target.classes == ("z", "x, y")
    assert target.values.tolist() == [1, 0, 0]


@given(
    counts=st.lists(st.integers(1, 30), min_size=2, max_size=4),
    fraction=st.floats(0.1, 0.9),
    seed=st.integers(0, 10),
)
def test_split_keeps_shares_and_every_class(counts: list[int], fraction: float, seed: int) -> None:
    y = np.repeat(np.arange(len(counts)), counts)
    target = prepare_target(y, "y", "classification", None)
    if all(round(fraction * count) == 0 or count == 1 for count in counts):
        return
    train, test = split_rows(target, fraction, seed, DataRoles())
    assert sorted([*train, *test]) == list(range(y.size))
    assert np.all(np.diff(train) > 0)
    of_train, of_test = (
        np.bincount(target.values[rows], minlength=len(counts)) for rows in (train, test)
    )
    assert (of_train >= 1).all()
    for count, held_out in zip(counts, of_test, strict=True):
        assert held_out == min(round(fraction * count), count - 1)
    assert np.array_equal(test, split_rows(target, fraction, seed, DataRoles())[1])


def test_scores_stand_beside_an_honest_guess() -> None:
    trained, truth = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 1])
    decisions = np.array([[-1.0], [-2.0], [0.5], [3.0]])
    told = held_out_scores("classification", trained, truth, decisions, ["b"])
    accuracy, area = told["scores"]
    assert (accuracy.value, accuracy.baseline) == (0.75, 0.75)
    assert (area.value, area.baseline) == (1.0, 0.5)
    assert told["confusion"] == ((2, 1), (0, 1))
    numbers = np.array([0.0, 10.0]), np.array([2.0, 4.0]), np.array([[2.0], [4.0]])
    r2, rmse = held_out_scores("regression", *numbers, ["y"])["scores"]
    assert (r2.value, rmse.value) == (1.0, 0.0)
    assert rmse.baseline == pytest.approx(np.sqrt((3.0**2 + 1.0**2) / 2))
    assert r2.baseline == pytest.approx(1 - 10.0 / 2.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_interactions_are_those_of_scikit_learn(sparse: bool) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 7)) * (rng.random((9, 7)) < 0.6)
    names = list("abcdefg")
    X, made = (sp.csr_matrix(X) if sparse else X), PolynomialFeatures(2, include_bias=False)
    oracle = made.fit_transform(X.toarray() if sparse else X)
    map = features_of(X, interactions=True)
    every = np.arange(map.n_columns)
    np.testing.assert_allclose(map.apply(X).gather(every).dense(), oracle, rtol=1e-15)
    for inputs, powers in zip(map.inputs_of(every), made.powers_, strict=True):
        factors = [j for j, power in enumerate(powers) for _ in range(power)]
        assert [j for j in inputs if j >= 0] == factors
    assert map.term_names([0, 7, 8, every[-1]], names) == ["a", "a^2", "a:b", "g^2"]


def test_demo(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out)]) == 0
    captured = capsys.readouterr()
    assert "6 of 30 features were selected" in captured.out
    assert "verdict: better than a guess" in captured.out
    assert (out / "report.html").is_file()
    model = read_model(out / "model.json")
    assert len(model.features) == 6
    assert model.coefficients.all()
    assert model.n_features == 30
    summary = json.loads((out / "summary.json").read_text())
    assert len(summary["headline"]) <= 90
