"""Tests for changes that once went unnoticed (``known.py`` has them)."""

import errno
import json
import os
import types
import zlib

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import AtomicClassifier, norms, solve, solvers
from atomlearn.core.losses.shift import without_surplus
from atomlearn.core.problem.regularizer import Regularizer
from atomlearn.core.solvers import checkpoint as checkpoint_module
from atomlearn.core.solvers.run import WarmStart
from atomlearn.datasets import convert, read_table, write_plink
from atomlearn.designs import ArrayScores, OnDisk, as_design
from atomlearn.maps.pairs.search import ErrorBound
from atomlearn.result import Status
from atomlearn.solvers import ColumnGeneration
from atomlearn.storage.conversion.writer import StoreWriter
from atomlearn.storage.store.store_file import COUNTS, MANIFEST, VALUES, StoreError, digest
from atomlearn.testing.tolerances import ORACLE


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return X, X[:, 0] - X[:, 1] + 0.3 * rng.normal(size=60)


def test_columns_of_latent_groups_come_best_first():
    norm = norms.LatentGroups([[0], [1], [2, 3]])
    assert norm.best_columns(ArrayScores(np.array([1.0, 5.0, 3.0, 3.0])), 4).tolist()[0] == 1
    assert norm.best_columns(ArrayScores(np.array([1.0, 5.0, 9.0, 9.0])), 4).tolist()[:2] == [2, 3]


def test_blanks_around_categories_make_no_other_category(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("where,x,y\nnorth,1.5,2\n north ,0.5,3\nsouth,3.5,4\nsouth  ,4.5,5\n")
    table = read_table(file, "y")
    assert table.feature_names == ("where=south", "x")
    assert table.X[:, 0].tolist() == [0, 0, 1, 1]


def test_class_weights_do_not_move_the_knots_of_curves(table):
    X, y = table
    plain, heavy = (
        AtomicClassifier(features="splines", class_weight=weight, tol=1e-2).fit(X, y > 0)
        for weight in (None, {False: 1.0, True: 1e3})
    )
    grid = np.linspace(-2, 2, 300)[:, None] * np.ones(5)
    first, second = (model._expanded(as_design(grid)) for model in (plain, heavy))
    columns = np.arange(first.shape[1])
    assert_array_equal(first.gather(columns).dense(), second.gather(columns).dense())


# --- conversions that were interrupted --------------------------------------------------------


def interrupted(source, out, monkeypatch):
    """Convert until all rows are spilled; return the folder that is left."""
    with monkeypatch.context() as patch:
        patch.setattr(StoreWriter, "finish", lambda *_, **__: (_ for _ in ()).throw(OSError("cut")))
        with pytest.raises(OSError, match="cut"):
            convert(source, out)
    folder = out.with_name(out.name + ".partial")
    assert "rows" in json.loads((folder / "journal.json").read_bytes())["state"]
    return folder


def test_a_conversion_does_not_go_on_from_that_of_another_source(tmp_path, monkeypatch):
    mine, theirs = np.arange(12.0).reshape(4, 3), -np.ones((4, 3))
    for name, X in (("mine", mine), ("theirs", theirs)):
        np.save(tmp_path / f"{name}.npy", X)
    interrupted(tmp_path / "theirs.npy", tmp_path / "s", monkeypatch)
    made = convert(tmp_path / "mine.npy", tmp_path / "s")
    assert not made.resumed
    assert_array_equal(OnDisk(tmp_path / "s").gather(np.arange(3)).dense(), mine)


def test_a_damaged_journal_is_not_gone_on_from(tmp_path, monkeypatch):
    X = np.arange(12.0).reshape(4, 3)
    np.save(tmp_path / "x.npy", X)
    folder = interrupted(tmp_path / "x.npy", tmp_path / "s", monkeypatch)
    journal = json.loads((folder / "journal.json").read_bytes())
    journal["state"]["rows"]["n"] = 3
    journal["state"]["rows"]["blocks"] = [[3, 3]]
    (folder / "journal.json").write_text(json.dumps(journal))
    made = convert(tmp_path / "x.npy", tmp_path / "s")
    assert not made.resumed
    assert_array_equal(OnDisk(tmp_path / "s").gather(np.arange(3)).dense(), X)


# --- checkpoints ------------------------------------------------------------------------------


def test_a_checkpoint_that_could_not_be_written_leaves_the_last_one(tmp_path, table, monkeypatch):
    X, y = table
    keeper = [solvers.Checkpoint(tmp_path, every_s=0)]
    first = solve(X, y, level=1.0, observers=keeper)

    def full(handle):
        os.ftruncate(handle, 10)
        raise OSError(errno.ENOSPC, "no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="no space"):
            solve(X, y, level=1.0, observers=keeper)
    again = solve(X, y, level=1.0, observers=keeper)
    assert_allclose(again.coef, first.coef, atol=1e-9)


def test_a_checkpoint_is_written_once_an_interval(tmp_path, table, monkeypatch):
    X, y = table
    now, written = [0.0], []
    clock = types.SimpleNamespace(monotonic=lambda: now[0])
    monkeypatch.setattr(checkpoint_module, "time", clock)
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda a, b: (written.append(now[0]), replace(a, b)))

    def tick(_):
        now[0] += 0.4

    solve(X, y, level=0.01, norm="l2", solver=solvers.FISTA(), max_iter=20, gap=1e-14,
          observers=[tick, solvers.Checkpoint(tmp_path, every_s=1.0)])  # fmt: skip
    *between, _at_the_end = written
    assert len(between) >= 5
    assert (np.diff(between) >= 1.0 - 1e-9).all()


# --- searches, losses, forms ------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 100, 512, 100_000])
def test_the_bound_of_single_precision_is_no_less_than_that_of_its_sums(n):
    terms, unit = min(n, 512), 2.0**-24
    assert ErrorBound.of(n, 1.0, True).relative >= terms * unit / (1 - terms * unit)


def test_a_surplus_is_taken_from_the_side_that_outweighs():
    for v in (np.array([3.0, 1.0, -1.0]), np.array([-3.0, -1.0, 1.0]), np.array([1.0, -0.25])):
        left = without_surplus(v.copy())
        assert abs(left.sum()) <= 1e-15
        assert (np.abs(left) <= np.abs(v)).all()
        assert (left * v >= 0).all()


@pytest.mark.parametrize("form", ["penalized", "squared", "constrained"])
def test_the_jacobian_of_a_prox_with_a_ridge_is_its_derivative(form):
    regularizer = Regularizer(norms.KSupport(k=2), form, 0.7)
    v, step, tau, h = np.array([2.0, -1.2, 0.9, 0.1]), 0.5, 3.0, 1e-6
    at = regularizer.prox_point(v, step, tau)
    J = at.jacobian().dense()
    for j, unit in enumerate(np.eye(4)):
        ahead = regularizer.prox_point(v + h * unit, step, tau).point
        behind = regularizer.prox_point(v - h * unit, step, tau).point
        assert_allclose(J[:, j], (ahead - behind) / (2 * h), atol=1e-6)


def test_a_nearly_exact_fit_is_not_taken_for_a_perfect_one():
    """Whether its gap can be proved depends on the last bits of the processor; its optimum not."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 5))
    y = X @ np.ones(5) + 1e-7 * rng.normal(size=40)
    result = solve(X, y, level=1e-13, gap=0.1, form="squared", norm="l2")
    assert result.status in (Status.CONVERGED, Status.STALLED)
    stacked = np.vstack([X, np.sqrt(1e-13) * np.eye(5)])
    residual = np.append(y, np.zeros(5))
    residual -= stacked @ np.linalg.lstsq(stacked, residual, rcond=None)[0]
    assert_allclose(result.objective, 0.5 * residual @ residual, rtol=ORACLE)


# --- estimators -------------------------------------------------------------------------------


def test_balanced_classes_count_the_weights_of_samples(table):
    X, y = table
    labels, weight = (y > 0.5).astype(int), np.ones(60)
    weight[:20] = 2.0
    repeated = np.concatenate([np.arange(60), np.arange(20)])
    options = {"alpha": 0.01, "tol": 1e-10, "class_weight": "balanced"}
    one = AtomicClassifier(**options).fit(X, labels, sample_weight=weight)
    two = AtomicClassifier(**options).fit(X[repeated], labels[repeated])
    assert_allclose(one.coef_, two.coef_, atol=1e-5)
    assert_allclose(one.intercept_, two.intercept_, atol=1e-5)


def test_weights_of_classes_do_not_move_the_knots_of_curves(table):
    X, y = table
    labels = (y > 0.5).astype(int)
    options = {"alpha": 0.05, "features": "intersection"}
    plain = AtomicClassifier(**options).fit(X, labels)
    weighted = AtomicClassifier(class_weight={0: 1.0, 1: 7.0}, **options).fit(X, labels)
    one, other = plain.feature_map_.levels, weighted.feature_map_.levels
    assert_array_equal(one.values, other.values)
    assert_array_equal(one.starts, other.starts)


def test_names_of_an_earlier_fit_are_forgotten(table):
    pandas = pytest.importorskip("pandas")
    X, y = table
    model = AtomicClassifier(alpha=0.05).fit(pandas.DataFrame(X, columns=list("abcde")), y > 0)
    assert model.feature_names_in_.tolist() == list("abcde")
    model.fit(X, y > 0)
    assert not hasattr(model, "feature_names_in_")
    model.predict(X)


def test_a_fit_to_other_classes_does_not_begin_where_the_last_one_ended():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 900))  # too many columns to take all at once
    letters = np.digitize(X[:, 0] - X[:, 1], [-0.5, 0.5])
    options = {"alpha": 0.02, "tol": 1e-8}
    fresh = AtomicClassifier(**options).fit(X, letters + 5).n_passes_
    model = AtomicClassifier(warm_start=True, **options).fit(X, letters)
    assert model.fit(X, letters).n_passes_ < fresh
    assert model.fit(X, letters + 5).n_passes_ == fresh


def test_a_fit_that_is_right_to_eight_digits_is_not_called_perfect():
    fit = solve(np.ones((2, 1)), np.array([1.0 + 1e-8, 1.0 - 1e-8]), level=1e-18)
    assert fit.objective > 1e-17
    assert fit.status is not Status.PERFECT_FIT


# --- what solve refuses, and where it begins --------------------------------------------------


def test_a_column_twice_in_a_warm_start(table):
    X, y = table
    warm = WarmStart(np.array([1, 1]), np.array([0.5, 0.5]))
    with pytest.raises(ValueError, match="distinct"):
        solve(X, y, level=1.0, warm_start=warm)


def test_weights_that_leave_every_sample_out(table):
    X, y = table
    with pytest.raises(ValueError, match="zero for every sample"):
        solve(X, y, level=1.0, sample_weight=np.zeros(60))


def test_the_intercept_of_a_start_is_the_best_one(table):
    X, y = table
    warm = WarmStart(np.zeros(0, dtype=np.int64), np.zeros(0), 1000.0)
    result = solve(
        X,
        y,
        level=1.0,
        intercept=True,
        max_iter=0,
        warm_start=warm,
        solver=ColumnGeneration(batch=1),
    )
    assert_allclose(result.intercept, y.mean())
    assert_allclose(result.objective, 0.5 * np.sum((y - y.mean()) ** 2))


# --- damaged stores ---------------------------------------------------------------------------


def genotypes(tmp_path):
    X = np.random.default_rng(0).integers(0, 3, size=(30, 8)).astype(float)
    write_plink(tmp_path / "g.bed", X)
    convert(tmp_path / "g.bed", tmp_path / "g.store")
    return tmp_path / "g.store"


def test_more_copies_than_there_can_be(tmp_path):
    folder = genotypes(tmp_path)
    counts = np.frombuffer((folder / COUNTS).read_bytes(), dtype="<i8").copy()
    for copies, fits in ((60, True), (61, False)):
        counts[0] = copies
        (folder / COUNTS).write_bytes(counts.tobytes())
        manifest = json.loads((folder / MANIFEST).read_bytes())
        manifest.pop("crc32")
        manifest["checksums"][COUNTS] = zlib.crc32(counts.tobytes())
        manifest["crc32"] = digest(manifest)
        (folder / MANIFEST).write_text(json.dumps(manifest))
        if fits:
            OnDisk(folder)
        else:
            with pytest.raises(StoreError, match="cannot be"):
                OnDisk(folder)


def dense_store(tmp_path):
    X = np.random.default_rng(1).normal(size=(50, 20))
    np.save(tmp_path / "x.npy", X)
    convert(tmp_path / "x.npy", tmp_path / "x.store")
    return tmp_path / "x.store", X


def test_a_store_that_is_cut_off_while_it_is_open(tmp_path):
    folder, X = dense_store(tmp_path)
    design, v = OnDisk(folder), np.ones(50)
    assert_allclose(design.scores(v).full(), X.T @ v)
    os.truncate(folder / VALUES, 50 * 20 * 8 - 4096)
    with pytest.raises(StoreError, match="cut off"):
        design.scores(v).full()


def test_verify_looks_at_what_was_read_before(tmp_path):
    folder, X = dense_store(tmp_path)
    design, v = OnDisk(folder), np.ones(50)
    assert_allclose(design.scores(v).full(), X.T @ v)
    design.verify()
    with (folder / VALUES).open("r+b") as stream:
        stream.seek(1000)
        stream.write(b"damage!!")
    with pytest.raises(StoreError, match="checksum"):
        design.verify()
