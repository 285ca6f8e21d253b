"""Free rows of matrices: the same problem with them partialled out."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from atomlearn import designs, losses, norms
from tests.core.problem.test_offset_and_free import data
from tests.oracles.sums import solve_sum

MATRIX = {"trace": norms.TraceNorm(), "rows": norms.RowGroups()}


@pytest.mark.parametrize("name", MATRIX)
def test_rows_of_a_matrix_are_free(name):
    X, y, _, offset = data(6, "squared")
    Y = np.column_stack([y, offset])
    off = np.eye(30) - X[:, :3] @ np.linalg.pinv(X[:, :3])
    plain = solve_sum(off @ X, off @ Y, norm=MATRIX[name], level=3.0, tol=1e-8)
    free = solve_sum(X, Y, norm=MATRIX[name], level=3.0, unpenalized=[0, 1, 2], tol=1e-7)
    assert free.converged
    assert free.coef.shape == (15, 2)
    assert_allclose(free.objective, plain.objective, rtol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_a_free_column_that_tells_a_class_leaves_those_samples_out(classes: int) -> None:
    """Its best coefficients are infinite; the least loss is that of the others, and is proved."""
    rng = np.random.default_rng(3)
    X, labels = rng.normal(size=(60, 8)), rng.integers(0, classes, 60)
    told = (labels == 0) & (rng.random(60) < 0.5)
    Y = np.eye(classes)[labels]
    loss, norm = losses.Multinomial(classes), norms.RowGroups()
    whole = solve_sum(
        designs.Tasks(np.column_stack([X, told]), classes), Y.ravel(), loss=loss, norm=norm,
        level=2.0, unpenalized=np.arange(8 * classes, 9 * classes), tol=1e-8, time_limit=20,
    )  # fmt: skip
    rest = solve_sum(
        designs.Tasks(X[~told], classes), Y[~told].ravel(), loss=loss, norm=norm, level=2.0,
        tol=1e-10,
    )  # fmt: skip
    assert whole.status.name == "CONVERGED"
    np.testing.assert_allclose(whole.objective, rest.objective, rtol=1e-8)
    found = np.asarray(whole.coef)[:8]
    np.testing.assert_allclose(found, np.asarray(rest.coef), atol=1e-4)
    assert np.abs(np.asarray(whole.coef)).max() < 100.0  # nothing drifts where nothing changes
