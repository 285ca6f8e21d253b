"""Numbers and dates as people write them are numbers and dates, and keep their unit."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn.datasets import read
from atomlearn.storage.intake.cells import TextForm
from atomlearn.storage.intake.encode import encoded_again
from atomlearn.storage.intake.kinds import suspicious, unknown_words
from atomlearn.storage.intake.text import TextFile
from atomlearn.storage.intake.written import days_of, numbers_written

N = 40


@pytest.mark.parametrize(
    ("cells", "values", "unit"),
    [
        (["45.2%", "3 %", ""], [45.2, 3, np.nan], "%"),
        (["$1,234.50", "$7", "8"], [1234.5, 7, 8], "$"),
        (["$ -", "($5.25)", "-$6", "$-7"], [0, -5.25, -6, -7], "$"),
        (["(1.5)", "2.5"], [-1.5, 2.5], ""),
        (["1.234,50 €", "7 €"], [1234.5, 7], "€"),
        (["1 234,5 €", "3 €"], [1234.5, 3], "€"),
        (["5'000 CHF", "3 CHF"], [5000, 3], "CHF"),
        (["€110.5M", "€565K"], [110.5e6, 565e3], "€"),
        (["60.1 kg", "7kg", "8"], [60.1, 7, 8], "kg"),
        (["36 months", "60 months"], [36, 60], "months"),
        (["5 mg/dL", "-6.1 mg/dL"], [5, -6.1], "mg/dL"),
        (["98.6°F", "1e2 °F"], [98.6, 100], "°F"),
        (["12:30", "1:45 PM", "0:00:36"], [12.5, 13.75, 0.01], "h:mm"),
    ],
)
def test_numbers_with_a_unit(cells: list[str], values: list[float], unit: str) -> None:
    found = numbers_written(cells)
    assert found is not None
    assert_allclose(found.values, values)
    assert (found.unit, found.strays) == (unit, ())


@pytest.mark.parametrize(
    "cells",
    [
        ["60 kg", "130 lb"],  # several units
        ["$5", "€5"],
        ["45%", "0.4"],  # a percentage, or a share?
        ["12A", "13A"],  # seats
        ["1st", "2nd"],
        ["1007_s_at", "1053_at"],
        ["1.5", "2"],  # plain numbers are read elsewhere
        ["1,2,3", "4"],
        ["18-25 years", "26-30 years"],
        ["120/80", "110/70"],
        ["3.5.2 kg"],
        ["-", ""],
        ["low", "high"],
    ],
)
def test_other_cells_are_no_numbers(cells: list[str]) -> None:
    assert numbers_written(cells) is None


def test_other_cells_among_numbers_with_a_unit_are_named() -> None:
    found = numbers_written(["60 kg", "unknown", "-", "7 kg"])
    assert found is not None
    assert found.strays == ("unknown", "-")
    assert_array_equal(np.isnan(found.values), [False, True, True, False])


@pytest.mark.parametrize(
    "cells",
    [
        ["7-Jan-18", "28-Feb-2019", "1-JAN-1970"],
        ["January 7, 2018", "Feb. 28 2019", "Jan 1, 1970"],
        ["Sunday, 7 January 2018", "28 Feb 2019", "1st January 1970"],
        ["2018-Jan-07", "2019-feb-28", "1970/Jan/1"],
        ["1/7/18", "2/28/19", "1/1/70"],
        ["2018-01-07T00:00:00Z", "2019-02-28 00:00", "1970-01-01"],
    ],
)
def test_dates_in_words_and_with_short_years(cells: list[str]) -> None:
    days = days_of([*cells, ""])
    assert days is not None
    # Of pandas: (pd.to_datetime(...) - pd.Timestamp(0)).days
    assert_array_equal(days, [17538, 17955, 0, np.nan])


def test_the_time_of_a_date_is_a_part_of_the_day() -> None:
    cells = [
        f"{day:02d}/{3 + day % 2:02d}/2021 {hour:02d}:30" for day in (5, 28) for hour in (0, 13)
    ]
    expected = pd.to_datetime(cells, format="%d/%m/%Y %H:%M")
    found = days_of(cells)
    assert found is not None
    assert_allclose(found, (expected - pd.Timestamp(0)) / pd.Timedelta(days=1))
    assert days_of(["March 5, 2021 1:30 PM"]) == days_of(["2021-03-05 13:30:00"])


def test_words_and_impossible_dates_are_no_dates() -> None:
    for cells in (["May", "June"], ["2021-13-01"], ["31-Feb-2020"], ["1.2.3"], ["10-20-30-40"]):
        assert days_of(cells) is None


def written(path: Path, unit: str = "kg", **columns: Any) -> Path:
    """Write a table of numbers as people write them."""
    rng = np.random.default_rng(0)
    table: dict[str, Any] = {
        "weight": [f"{value:.1f} {unit}" for value in 60 + rng.standard_normal(N)],
        "cost": [f"${value:,.2f}" for value in 1000 + 99 * rng.standard_normal(N)],
        "share": [f"{value:.1f}%" for value in 50 + rng.standard_normal(N)],
        "start": [f"{1 + i % 28}-Jan-{18 + i % 4}" for i in range(N)],
        "y": [f"{value:.2f} cm" for value in rng.standard_normal(N)],
    }
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow([*(table | columns)])
        writer.writerows(zip(*(table | columns).values(), strict=True))
    return path


def test_a_table_of_written_numbers_is_one_of_numbers(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv")
    table = read(path, "y", dates="elapsed")
    assert table.feature_names == ("weight", "cost", "share", "start")
    plain = pd.read_csv(path)
    assert_allclose(table.X[:, 0], plain.weight.str.removesuffix(" kg").astype(float))
    assert_allclose(table.X[:, 1], plain.cost.str.replace("[$,]", "", regex=True).astype(float))
    assert_allclose(table.y, plain.y.str.removesuffix(" cm").astype(float))
    frame = read(plain, "y", dates="elapsed")  # of pandas, too
    assert_array_equal(frame.X, table.X)
    assert_array_equal(frame.y, table.y)


def test_new_rows_have_the_unit_of_the_fit_or_none(tmp_path: Path) -> None:
    plans = read(written(tmp_path / "d.csv"), "y", dates="elapsed").schema.columns

    def again(path: Path) -> Any:
        return encoded_again(TextFile(path, TextForm()).frame(), plans)["weight"]

    weights = again(written(tmp_path / "same.csv"))
    assert_array_equal(again(written(tmp_path / "none.csv", unit="")), weights)
    with pytest.raises(ValueError, match=r"numbers of unit 'kg'.*found '60.1 lb' on line 2"):
        again(written(tmp_path / "other.csv", unit="lb"))


def test_several_units_are_no_number(tmp_path: Path) -> None:
    weights = [f"{60 + i % 23} {'kg' if i % 2 else 'lb'}" for i in range(N)]
    path = written(tmp_path / "d.csv", weight=weights)
    assert "weight" not in (read(path, "y").feature_names or ())


@pytest.mark.parametrize(
    ("values", "codes"),
    [
        ([31, 54, -9, 47], [-9]),
        ([31, 54, -9, -99, 0], [-99, -9]),
        ([1, 2, 3, 9, 9, 9, 9], [9]),
        ([20, 80, 999, 999], [999]),
        ([20, 80, 999], []),  # one may be a value
        ([20, 80, 99, 99, 99], []),  # not far above
        ([-9, 2, -1], []),  # other negative numbers
        ([-9, 0, -9], []),  # a code of two
        ([0.5, np.nan, 0.2], []),
    ],
)
def test_numbers_that_may_stand_for_a_missing_value(values: Any, codes: Any) -> None:
    assert suspicious(np.array(values, dtype=float)) == codes


def test_codes_are_asked_about_and_then_missing_or_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    age = rng.integers(20, 80, N)
    table = pd.DataFrame({"age": np.where(np.arange(N) % 5, age, -9), "b": rng.normal(size=N)})
    table["y"] = rng.normal(size=N)
    table.to_csv(tmp_path / "d.csv", index=False)
    for source in (tmp_path / "d.csv", table):
        with pytest.raises(ValueError, match=r"is -9 in 'age' a missing value\? If not, type keep"):
            read(source, "y")
        known = read(source, "y", na=["-9"], missing="median").X[:, 0]
        assert known[0] == np.median(age[np.arange(N) % 5 > 0])
        assert read(source, "y", keep_codes=True).X[0, 0] == -9
    # A rare one is a value in a file that has many negative numbers.
    assert read(table.assign(age=np.where(np.arange(N), age, -9)), "y").X[0, 0] == -9
    with pytest.raises(ValueError, match="is -9 in 'y' a missing value"):
        read(table.assign(y=table.age, age=age), "y")


def test_limits_of_detection_are_kept_on_request(tmp_path: Path) -> None:
    cells = ["<0.5" if i % 6 == 0 else str(i) for i in range(N)]
    path = written(tmp_path / "d.csv", lt=cells)
    with pytest.raises(
        ValueError, match=r"'<0.5' among .*: limits of detection\. Type limits=True$"
    ):
        read(path, "y")
    table = read(path, "y", limits=True)
    assert table.feature_names is not None
    assert table.X[0, table.feature_names.index("lt")] == 0.5
    both = written(tmp_path / "b.csv", lt=["n/k" if i % 9 == 1 else c for i, c in enumerate(cells)])
    with pytest.raises(ValueError, match=r"Type na=\['n/k'\] limits=True$"):
        read(both, "y")
    assert "lt" in (read(both, "y", na="n/k", limits=True, missing="drop").feature_names or ())
    labels = written(tmp_path / "l.csv", group=["<5" if i % 2 else ">=5" for i in range(N)])
    assert "group=>=5" in (read(labels, "y", limits=True).feature_names or ())


def test_words_for_unknown() -> None:
    labels = ["Unknown", "not done", "-", "unknown origin", "none", "No"]
    assert unknown_words(labels) == ["Unknown", "not done", "-"]


def test_words_of_frames_can_be_missing() -> None:
    rng = np.random.default_rng(2)
    values = [f"{value:.3f}" for value in rng.normal(size=N)]
    cells = [("?", "unknown", value, value)[i % 4] for i, value in enumerate(values)]
    table = pd.DataFrame({"a": cells, "y": rng.normal(size=N)})
    found = read(table, "y", na=["unknown"], missing="drop")
    assert found.feature_names == ("a",)
    assert_allclose(found.X[:, 0], [float(cell) for cell in cells if cell not in ("?", "unknown")])
