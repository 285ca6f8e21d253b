"""One row, one column, none; very many groups and levels: an answer, or one line."""

import zlib

import numpy as np
import pytest
from scipy.sparse import csr_array

from atomlearn import AtomicRegressor, norms
from atomlearn.cli import main
from atomlearn.designs import OnDisk
from atomlearn.paths import path
from atomlearn.storage.store.on_disk import StreamedDesign
from atomlearn.storage.store.store_file import CHUNKS, MANIFEST, VALUES, ByteFile, Manifest
from atomlearn.storage.store.stored_columns import Checks, DenseColumns
from tests.oracles.sums import solve_sum

X = np.random.default_rng(0).standard_normal((30, 100_000))
Y = X[:, 7] + np.random.default_rng(1).standard_normal(30)


def test_a_hundred_thousand_groups_of_one_are_the_lasso():
    lasso = solve_sum(X, Y, level=5.0, tol=1e-9).objective
    for norm in (norms.Groups([[j] for j in range(100_000)]), norms.Trees(range_of(100_000))):
        assert solve_sum(X, Y, norm=norm, level=5.0, tol=1e-9).objective == pytest.approx(lasso)


def range_of(count):
    return [[j] for j in range(count)]


def test_ten_thousand_levels():
    levels = np.geomspace(10, 1e-3, 10_000) / len(Y)
    found = path(X[:, :20], Y, alphas=levels, tol=1e-6, fit_intercept=False)
    last = solve_sum(X[:, :20], Y, level=1e-3, tol=1e-9)
    assert len(found.alphas) == 10_000
    np.testing.assert_allclose(found.coefs[-1], last.coef, atol=1e-3)


WIDE = 2**31 + 10


def test_more_columns_than_two_to_the_31_are_refused(tmp_path):
    parts = np.ones(2), np.array([0, WIDE - 1]), np.array([0, 1, 2])
    with pytest.raises(ValueError, match="X has 2,147,483,658 columns, and at most"):
        solve_sum(csr_array(parts, shape=(2, WIDE)), Y[:2], level=0.1)
    # A store of one row: a file with a hole, which takes no disk.
    chunks = np.array([0, WIDE], dtype="<i8").tobytes() + bytes(4)
    manifest = Manifest("dense", "int8", 1, WIDE, 1, checksums={CHUNKS: zlib.crc32(chunks)})
    (tmp_path / CHUNKS).write_bytes(chunks)
    (tmp_path / MANIFEST).write_text(manifest.to_json())
    with (tmp_path / VALUES).open("wb") as file:
        file.truncate(WIDE)
    with pytest.raises(ValueError, match="X has 2,147,483,658 columns, and at most"):
        OnDisk(tmp_path)


def test_more_stored_entries_than_two_to_the_31(tmp_path):
    n, p = 2**20, 2**11 + 1
    with (tmp_path / "values").open("wb") as file:
        file.seek(n * (p - 1))
        file.write(np.full(n, 3, dtype=np.int8).tobytes())
    chunks = np.arange(p + 1)
    held = DenseColumns(ByteFile(tmp_path / "values"), n, np.dtype(np.int8), chunks, Checks(None))
    design, w = StreamedDesign(held, p, tmp_path), np.zeros(p)
    w[-1] = 2.0
    assert (design.gather(np.array([p - 1])).dense() == 3.0).all()
    assert (design.predict(w) == 6.0).all()


def test_a_tree_ten_thousand_deep_is_refused():
    with pytest.raises(ValueError, match="the groups have more than 33,554,432 members in all"):
        norms.Trees.from_parents(np.arange(10_000) - 1)


@pytest.mark.parametrize("make", [np.array, csr_array])
@pytest.mark.parametrize("shape", [(1, 3), (3, 1), (1, 1)])
def test_one_row_or_one_column(make, shape):
    x, y = X[: shape[0], : shape[1]], Y[: shape[0]]
    found = solve_sum(make(x), y, level=0.1, tol=1e-9)
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
        lambda: solve_sum(make(np.zeros(shape)), Y[: shape[0]], level=0.1),
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
