"""One row, one column, none; very many groups and levels: an answer, or one line."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from atomlearn import AtomicRegressor, norms, solve
from atomlearn.cli import main
from atomlearn.paths import path

X = np.random.default_rng(0).standard_normal((30, 100_000))
Y = X[:, 7] + np.random.default_rng(1).standard_normal(30)


def test_a_hundred_thousand_groups_of_one_are_the_lasso():
    lasso = solve(X, Y, level=5.0, gap=1e-9).objective
    for norm in (norms.Groups([[j] for j in range(100_000)]), norms.Trees(range_of(100_000))):
        assert solve(X, Y, norm=norm, level=5.0, gap=1e-9).objective == pytest.approx(lasso)


def range_of(count):
    return [[j] for j in range(count)]


def test_ten_thousand_levels():
    levels = np.geomspace(10, 1e-3, 10_000)
    found = path(X[:, :20], Y, levels=levels, gap=1e-6)
    last = solve(X[:, :20], Y, level=1e-3, gap=1e-9)
    assert len(found.levels) == 10_000
    np.testing.assert_allclose(found.coefs[-1], last.coef, atol=1e-3)


@pytest.mark.parametrize("make", [np.array, csr_array])
@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1)])
def test_one_row_or_one_column(make, shape):
    x, y = X[: shape[0], : shape[1]], Y[: shape[0]]
    found = solve(make(x), y, level=0.1, gap=1e-9)
    # By hand: one coefficient, of the column that the residual agrees with most.
    best = np.argmax(np.abs(x.T @ y))
    z, square = x[:, best] @ y, x[:, best] @ x[:, best]
    expected = np.zeros(shape[1])
    expected[best] = np.sign(z) * max(abs(z) - 0.1, 0.0) / square
    np.testing.assert_allclose(found.coef, expected, atol=1e-6)
    model = AtomicRegressor("l1", alpha=0.1).fit(make(x), y)
    assert model.predict(make(x)).shape == y.shape


@pytest.mark.parametrize("make", [np.array, csr_array])
@pytest.mark.parametrize("shape", [(3, 0), (0, 3)])
def test_no_rows_or_no_columns(make, shape):
    for fit in (
        lambda: solve(make(np.zeros(shape)), Y[: shape[0]], level=0.1),
        lambda: AtomicRegressor("l1", alpha=0.1).fit(make(np.zeros(shape)), Y[: shape[0]]),
    ):
        with pytest.raises(ValueError, match="a minimum of 1 is required"):
            fit()


@pytest.mark.parametrize(
    ("rows", "columns", "alpha", "code"),
    [(1, 3, 0.1, 2), (5, 0, 0.1, 2), (12, 1, 0.1, 0), (12, 3, 1e6, 0)],
)
def test_the_same_on_the_command_line(rows, columns, alpha, code, tmp_path, capsys):
    np.savez(tmp_path / "t.npz", X=X[:rows, :columns], y=Y[:rows])
    words = ["select", str(tmp_path / "t.npz"), "--norm", "l1", "--alpha", str(alpha)]
    words += ["--test-fraction", "0", "--quiet", "--out", str(tmp_path / "out")]
    assert main(words) == code
    said = capsys.readouterr().err
    assert "Traceback" not in said
    if code:
        assert len([line for line in said.splitlines() if "error" in line]) == 1
        assert not (tmp_path / "out").exists()
    else:
        assert main(["predict", str(tmp_path / "out"), str(tmp_path / "t.npz")]) == 0
        assert len(capsys.readouterr().out.splitlines()) == rows + 1
