"""Changes of the fifth draw that nothing had noticed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from atomlearn import solve
from atomlearn.core.problem.card import HEIGHT, small_path
from atomlearn.designs import as_design
from atomlearn.losses import Huber
from atomlearn.norms import Groups
from atomlearn.solvers import Checkpoint
from atomlearn.storage.formats.numpy_files import load_npy


def test_norms_that_differ_in_one_of_several_groups_are_not_equal() -> None:
    assert Groups([[0, 1], [2]]) == Groups([[0, 1], [2]])
    assert Groups([[0, 1], [2]]) != Groups([[0, 1], [3]])


@pytest.mark.parametrize("key", ["format", "version"])
def test_checkpoints_of_another_format_or_version_alone_are_refused(
    key: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 600)), rng.standard_normal(20)
    solve(X, y, norm="l1", level=3.0, observers=[Checkpoint(tmp_path)])
    [file] = tmp_path.glob("*.npz")
    with np.load(file) as held:
        arrays = dict(held)
    about = json.loads(arrays["about"].item())
    about[key] = "another"
    np.savez(file, **(arrays | {"about": np.array(json.dumps(about))}))
    with pytest.raises(ValueError, match=r"cannot be read .*another.*remove it"):
        solve(X, y, norm="l1", level=3.0, observers=[Checkpoint(tmp_path)])


def test_a_prediction_on_a_kink_is_curved() -> None:
    curvature = Huber(1.0).curvature(np.zeros(4), np.array([-1.5, -1.0, 1.0, 1.5]), np.full(4, 2.0))
    assert curvature.tolist() == [0.0, 2.0, 2.0, 0.0]


def test_npy_files_of_the_second_version_are_read(tmp_path: Path) -> None:
    X, file = np.arange(6.0).reshape(3, 2), tmp_path / "X.npy"
    with file.open("wb") as stream:
        np.lib.format.write_array(stream, X, version=(2, 0))
    np.testing.assert_array_equal(load_npy(file), X)


def test_triplets_of_different_lengths_are_refused() -> None:
    broken = sp.coo_array(np.eye(3))
    broken.data = broken.data[:2]
    with pytest.raises(ValueError, match="3 rows, 3 columns and 2 values"):
        as_design(broken)


def test_the_small_picture_of_a_path_is_as_high_as_its_largest_coefficient() -> None:
    drawn = small_path([1.0, 0.1], [[0.0, 0.5], [0.0, 0.2]])
    assert f",{0.0:.1f}" in drawn
    assert f",{HEIGHT:.1f}" in drawn
