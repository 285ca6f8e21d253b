"""Columns that make up the target: named, all of them and no others; and rows of report()."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from atomlearn import AtomicRegressor, report
from atomlearn.designs import as_design
from atomlearn.reports.suspects import adding_up, aggregates, suspects

RNG = np.random.default_rng(0)
PARTS = RNG.poisson([5.0, 20.0, 3.0, 9.0, 1.0], (60, 5)).astype(float)
NAMES = ["casual", "registered", "wind", "heat", "rain"]


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        ([1, 1, 0, 0, 0], "casual + registered = cnt: these columns add up"),
        ([0, 1, 1, 1, 0], "registered + wind + heat = cnt"),
        ([0, 0, 2, 0, -1], "cnt can be computed exactly from wind, rain"),
        ([0, 0, 0, 3, 0], None),  # a column by itself is looked for elsewhere
    ],
)
def test_parts_of_a_total_are_named(weights: list[int], said: str | None) -> None:
    y = PARTS @ np.array(weights) + 7.0
    found = adding_up(PARTS, y, NAMES, "cnt")
    assert len(found) == (said is not None)
    assert said is None or found[0].startswith(said)
    assert adding_up(PARTS, y + 1e-3 * RNG.standard_normal(60), NAMES, "y") == []


def test_copies_of_parts_are_left_out_and_many_columns_need_many_rows() -> None:
    y = PARTS[:, 0] + PARTS[:, 1]
    twice = np.column_stack([PARTS, PARTS[:, 0]])
    (found,) = adding_up(twice, y, [*NAMES, "copy"], "cnt")
    assert found.startswith("casual + registered = cnt")
    wide = np.hstack([PARTS, RNG.standard_normal((60, 55))])  # as good as any target
    names = [*NAMES, *map(str, range(55))]
    assert adding_up(wide[:, 5:], y, names, "cnt") == []
    (found,), _ = suspects(as_design(wide), y, None, [0, 1, 2, 9], names, "cnt")
    assert found.startswith("casual + registered = cnt")


def test_a_report_names_them_and_holds_out_groups(tmp_path: Path) -> None:
    y = PARTS[:, 0] + PARTS[:, 1]
    model = AtomicRegressor(alpha=0.1).fit(PARTS, y)
    found = report(model, PARTS, y, tmp_path / "r.html", feature_names=NAMES, target="cnt")
    assert "casual + registered = cnt" in found.warnings[0]
    kept = AtomicRegressor(alpha=0.1).fit(PARTS, y)
    groups = np.repeat(np.arange(12), 5)
    found = report(kept, PARTS, y, tmp_path / "r.html", groups=groups, n_resamples=2)
    assert found.held_out is not None
    assert found.held_out.n_test == 15


def test_counts_of_a_rare_class_are_no_means_of_it() -> None:
    """Most levels of a sparse column have no row of a rare class, and look alike by chance."""
    rng = np.random.default_rng(3)
    X = np.where(rng.random((600, 40)) < 0.15, rng.normal(2.0, 0.3, (600, 40)), 0.0)
    codes = (np.arange(600) < 9) * 1
    names = [f"gene{j}" for j in range(40)]
    assert aggregates(X, codes, ["other", "rare"], names, "kind") == []
    city = rng.integers(0, 20, 600)
    ill = (rng.random(600) < 0.3) * 1
    encoded = (np.bincount(city, ill) / np.bincount(city))[city][:, None]
    (found,) = aggregates(encoded, ill, ["well", "ill"], ["city"], "state")
    assert found.startswith("city has one value in each of")
