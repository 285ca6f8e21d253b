"""Rows that belong together, on the command line: recognized, named, ordered, and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atomlearn.cli import main
from atomlearn.datasets import read
from tests.oracles.commands import written

Columns = dict[str, Any]
GENES = 20


def noise(own: float = 0.05, seed: int = 0) -> Columns:
    """30 patients of 5 visits each; a target of each patient that nothing tells."""
    rng = np.random.default_rng(seed)
    patient = rng.permutation(np.repeat(np.arange(30), 5))
    genes = np.sqrt(1 - own) * rng.standard_normal((30, GENES))[patient]
    genes += np.sqrt(own) * rng.standard_normal(genes.shape)
    columns: Columns = {f"g{j}": genes[:, j].round(5) for j in range(GENES)}
    columns["patient_id"] = [f"P{number:02d}" for number in patient]
    columns["ill"] = np.where(rng.permutation(30) % 2, "yes", "no")[patient]
    return columns


def select(data: Path, *words: object, code: int = 0) -> dict[str, Any]:
    out = data.parent / "out"
    given = ["select", data, "--out", out, "--quiet", *words]
    assert main([str(word) for word in given]) == code
    return dict(json.loads((out / "summary.json").read_text())) if code == 0 else {}


SAID = "150 rows of 30 different patient_id: rows of one are held out, folded and halved together"


def test_an_identifier_that_repeats_binds_its_rows(tmp_path: Path) -> None:
    columns = noise(own=0.2)
    columns["patient_id"] = [int(name[1:]) + 100 for name in columns["patient_id"]]
    data = written(columns, tmp_path / "visits.csv")
    found = select(data, "--target", "ill", "--norm", "l1", "--gap", 1e-3)
    assert found["verdict"] != "better"
    assert found["n_features"] == GENES
    assert any(SAID in note for note in found["notes"])
    assert SAID in (tmp_path / "out" / "report.html").read_text()
    by_rows = select(data, "--target", "ill", "--norm", "l1", "--rows-of", "none")
    assert by_rows["verdict"] == "better"  # it would be, if visits were independent
    assert main(["predict", str(tmp_path / "out" / "model.json"), str(data)]) == 0


@pytest.mark.parametrize("words", [["--n-features", "auto"], ["--fdr", 0.2]])
def test_each_way_to_select_takes_them(words: list[Any], tmp_path: Path) -> None:
    data = written(noise(), tmp_path / "visits.csv")
    found = select(data, "--target", "ill", *words)
    assert any(SAID in note for note in found["notes"])
    assert found["verdict"] != "better"


def test_rows_are_bound_by_a_column_named_or_left_out_by_hand(tmp_path: Path) -> None:
    columns = noise()
    columns["ward"] = np.repeat([f"ward {n}" for n in range(10)], 15)
    data = written(columns, tmp_path / "visits.csv")
    told = select(data, "--target", "ill", "--drop", "patient_id,ward", "--n-features", 2)["notes"]
    assert any(SAID in note for note in told)
    told = select(data, "--target", "ill", "--rows-of", "ward", "--n-features", 2)["notes"]
    assert any("150 rows of 10 different ward:" in note for note in told)
    assert "ward" not in json.dumps(json.loads((tmp_path / "out/model.json").read_text())["inputs"])


@pytest.mark.parametrize(
    ("name", "cells", "bound"),
    [
        ("subject", ["S1", "S2", "S3"], True),
        ("subject", ["math", "art", "music"], False),
        ("patient_id", [7, 8, 9], True),
        ("site_id", [1, 2, 3], False),
        ("donor", [0, 1, 1], False),
    ],
)
def test_which_columns_are_taken_for_identifiers(
    name: str, cells: list[Any], bound: bool, tmp_path: Path
) -> None:
    columns = {"x": np.arange(30) % 7, name: cells * 10, "y": np.arange(30) % 4}
    table = read(written(columns, tmp_path / "data.csv"), "y")
    assert ("rows_of" in table.extras) == bound
    assert (table.feature_names == ("x",)) == bound


def test_a_missing_identifier_is_one_of_its_own(tmp_path: Path) -> None:
    columns = noise()
    columns["patient_id"][:5] = [""] * 5
    found = select(written(columns, tmp_path / "visits.csv"), "--target", "ill", "--n-features", 2)
    assert found["n_rows"] == 150
    assert any("150 rows of 35 different patient_id" in note for note in found["notes"])


def test_the_end_of_a_series_is_held_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    when = rng.permutation(np.arange("2021-01-01", "2021-04-11", dtype="datetime64[D]"))
    columns = {"a": rng.standard_normal(100).round(4), "b": rng.standard_normal(100).round(4)}
    late = when >= np.datetime64("2021-03-17")
    # What is learned before the last quarter is wrong in it.
    y = np.where(late, -columns["a"], columns["a"]) + 0.1 * rng.standard_normal(100)
    data = written(columns | {"day": when, "y": y.round(4)}, tmp_path / "series.csv")
    words = ["--target", "y", "--norm", "l1", "--order", "day"]
    found = select(data, *words)
    assert found["score"] < -0.9
    assert any("the rows are a series by day: its end is held out" in n for n in found["notes"])
    assert select(data, *words[:-2])["score"] > 0.3
    assert main(["predict", str(tmp_path / "out" / "model.json"), str(data)]) == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--rows-of", "patient_id", "--order", "g0"], "give one"),
        (["--order", "patient_id"], "numbers or dates"),
        (["--rows-of", "one"], "one value only"),
        (["--rows-of", "nobody"], "no column"),
    ],
)
def test_what_cannot_bind_rows_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: Any
) -> None:
    data = written(noise() | {"one": ["a"] * 150}, tmp_path / "visits.csv")
    select(data, "--target", "ill", *words, code=2)
    assert said in capsys.readouterr().err


# --- numbers of rows -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "cells", "left_out"),
    [
        ("instant", np.arange(1, 41), True),
        ("line", np.arange(500, 540), True),
        ("age", np.sort(np.random.default_rng(0).integers(20, 80, 40)), False),
        ("even", 2 * np.arange(40), False),
        ("shuffled", np.random.default_rng(0).permutation(40) + 500, False),
    ],
)
def test_a_number_of_the_row_is_left_out_whatever_its_name(
    name: str, cells: Any, left_out: bool, tmp_path: Path
) -> None:
    columns = {"x": np.random.default_rng(1).standard_normal(40), name: cells}
    table = read(written(columns | {"y": np.arange(40) % 9}, tmp_path / "data.csv"), "y")
    assert (name not in (table.feature_names or ())) == left_out
    assert any(f"left out as index: {name!r}" in note for note in table.notes) == left_out


def test_a_column_store_says_what_it_does_not_hold(tmp_path: Path) -> None:
    data, store = written(noise(), tmp_path / "visits.csv"), tmp_path / "visits.store"
    assert main(["convert", str(data), str(store), "--target", "ill"]) == 0
    (note,) = [note for note in read(store).notes if "rows_of='FILE.npy'" in note]
    assert "'patient_id'" in note
    np.save(tmp_path / "whose.npy", np.array(noise()["patient_id"]))
    found = select(store, "--n-features", 2, "--rows-of", tmp_path / "whose.npy")
    assert any("150 rows of 30 different" in note for note in found["notes"])
