"""The rows of each fit and of each fold fill missing values, as the estimators do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold

from atomlearn import AtomicRegressorCV, FeatureGenerator
from atomlearn.cli.arguments import build_parser
from atomlearn.cli.fitting import fit_rows
from atomlearn.cli.progress import ProgressPrinter
from atomlearn.cli.scoring import design_of
from atomlearn.cli.settings import read_settings
from atomlearn.cli.source import read_source

QUIET = ProgressPrinter(quiet=True)


def _table(n_rows: int = 120) -> pd.DataFrame:
    """Return a table whose gaps have other medians and labels in other rows."""
    rng = np.random.default_rng(7)
    table = pd.DataFrame(rng.standard_normal((n_rows, 6)).round(3), columns=list("abcdef"))
    table["site"] = rng.choice(["east", "north", "west"], n_rows)
    table["y"] = (2 * table["a"] - table["b"] + (table["site"] == "west")).round(3)
    table["y"] += rng.standard_normal(n_rows).round(3)
    for name in ("a", "c", "site"):
        table.loc[rng.random(n_rows) < 0.3, name] = np.nan
    return table


def _read(folder: Path, table: pd.DataFrame, *words: str) -> tuple[Any, Any]:
    """Return the data set of a table as ``atomlearn select`` reads it, and its settings."""
    path = folder / "t.csv"
    table.to_csv(path, index=False)
    given = ["select", str(path), "--target", "y", *words, "--out", str(folder / "out")]
    options = build_parser().parse_args(given)
    options.given = given
    settings = read_settings(options)
    source = read_source(options, settings, QUIET)
    return source, settings.with_groups(source.roles.groups, source.roles.overlap)


def _fitted(folder: Path, rows: np.ndarray, *words: str) -> Any:
    """Return the selection on these rows of ``_table``."""
    source, settings = _read(folder, _table(), *words)
    design = design_of(source.learned(rows), settings)
    return fit_rows(design, source.target, rows, settings, QUIET, source.roles)


@pytest.mark.parametrize("way", ["median", "indicator"])
def test_the_rows_of_a_fit_fill_the_gaps(way: str, tmp_path: Path) -> None:
    rows = np.arange(50)
    source, _ = _read(tmp_path, _table(), "--missing", way)
    table = _table().drop(columns="y")
    expected = table.copy()
    for name, strategy in {"a": "median", "c": "median", "site": "most_frequent"}.items():
        imputer = SimpleImputer(strategy=strategy).fit(table.loc[rows, [name]])
        expected[name] = imputer.transform(table[[name]])[:, 0]
    found = pd.DataFrame(source.learned(rows).X, columns=source.names)
    assert table.loc[rows, "a"].median() != table["a"].median()
    for name in "abcdef":
        np.testing.assert_allclose(found[name], expected[name].astype(float))
    for label in ("east", "north", "west"):
        is_label = expected["site"] == label
        if way == "indicator":  # a missing label is a label
            is_label &= table["site"].notna()
            np.testing.assert_array_equal(found["site=missing"], table["site"].isna())
        np.testing.assert_array_equal(found[f"site={label}"], is_label)


def test_folds_fill_as_those_of_the_estimator(tmp_path: Path) -> None:
    """Cross-validation of the command chooses the level that the estimator chooses."""
    table = _table().drop(columns="site")
    rows = np.arange(len(table))
    for words in (("--no-standardize",), ()):
        fitted = _fitted(
            tmp_path, rows, "--missing", "median", "--drop", "site", "--norm", "l1", *words
        )
        model = AtomicRegressorCV(
            "l1", cv=KFold(5, shuffle=True, random_state=0), standardize=not words
        ).fit(table.drop(columns="y"), table["y"])
        np.testing.assert_allclose(
            fitted.model.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"]
        )
        assert fitted.columns.tolist() == np.flatnonzero(model.coef_).tolist()


def test_feature_generation_fills_as_the_estimator(tmp_path: Path) -> None:
    table = _table().drop(columns="site")
    rows = np.arange(len(table))
    fitted = _fitted(
        tmp_path, rows, "--missing", "median", "--drop", "site", "--n-features", "auto"
    )
    model = FeatureGenerator("auto", loss="squared", standardize=True)
    model.fit(table.drop(columns="y"), table["y"])
    assert fitted.columns.tolist() == np.sort(model.selected_).tolist()
    np.testing.assert_allclose(fitted.model.C_choice_.scores, model.C_choice_.scores)


def test_held_out_rows_do_not_fill_the_training_rows(tmp_path: Path) -> None:
    """Other values of the held-out rows change no coefficient of the model that is scored."""
    given = "--missing", "median", "--C", "1", "--n-features", "3"
    train = np.arange(90)
    found = []
    for shift in (0.0, 100.0):
        moved = _table()
        moved.loc[90:, ["a", "c"]] += shift
        source, settings = _read(tmp_path, moved, *given)
        design = design_of(source.learned(train), settings)
        found.append(fit_rows(design, source.target, train, settings, QUIET, source.roles))
    np.testing.assert_array_equal(found[0].coefficients, found[1].coefficients)
