"""Dask collections: the same design in chunks, on threads and on a cluster that loses workers."""

from __future__ import annotations

import contextlib
import functools
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from atomlearn import (
    AtomicClassifier,
    AtomicRegressor,
    FeatureGenerator,
    norms,
    solvers,
)
from atomlearn.core import Array, Design, SparseBlock, feature_names
from atomlearn.designs import Dask, LostDataError, Standardized, as_design
from atomlearn.storage.spread import waiting
from atomlearn.testing.designs import DesignChecks
from tests.oracles.arrays import N_FEATURES, N_SAMPLES, normal
from tests.oracles.sums import solve_sum

#: Seconds within which a cluster notices a killed worker, whatever else keeps the cores busy.
PATIENCE = 300.0

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")


@pytest.mark.parametrize(
    ("dtype", "chunks"), [(np.float64, (2, 41)), (np.float64, (23, 6)), (np.float32, (8, 15))]
)
class TestDense(DesignChecks):
    @pytest.fixture(autouse=True)
    def _setting(self, dtype: type, chunks: tuple[int, int]) -> None:
        self.dtype, self.chunks = dtype, chunks

    def build(self) -> tuple[Design, Array]:
        X = normal().astype(self.dtype)
        design = Dask(da.from_array(X, chunks=self.chunks))
        return design, X.astype(np.float64)


class TestSmallIntegers(DesignChecks):
    def build(self) -> tuple[Design, Array]:
        X = np.random.default_rng(0).integers(-9, 9, (30, 12)).astype(np.int8)
        return Dask(da.from_array(X, chunks=(11, 5)), persist=False), X.astype(np.float64)


class _Sparse(DesignChecks):
    density = 0.1
    container: Any = sp.csr_array

    def build(self) -> tuple[Design, Array]:
        X = sp.random_array((120, 40), density=self.density, rng=np.random.default_rng(2))
        array = da.from_array(X.toarray(), chunks=(50, 15)).map_blocks(self.container)
        return Dask(array), X.toarray()


class TestSparse(_Sparse):
    pass


class TestNearlyFullSparse(_Sparse):
    density = 0.5


def _sparse_below(block: Array, block_info: Any) -> Any:
    return sp.csc_array(block) if block_info[0]["chunk-location"][0] else block


class TestMixed(DesignChecks):
    """Some chunks dense, others sparse."""

    def build(self) -> tuple[Design, Array]:
        X = np.where(normal(shape=(24, 40)) > 0.8, 1.5, 0.0)
        array = da.from_array(X, chunks=(12, 10))
        return Dask(da.map_blocks(_sparse_below, array, meta=np.zeros((0, 0)))), X


@functools.cache
def _table() -> tuple[Design, Array]:
    dd = pytest.importorskip("dask.dataframe")
    X = normal(shape=(40, 12)).astype(np.float32)
    table = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    table["c7"] = np.arange(40) % 2 == 0
    parts = dd.from_pandas(table, npartitions=3)
    first = parts.partitions[[0]]
    # An empty partition in between.
    together = dd.concat([parts, parts[parts["c0"] > 1e9], first])
    array = table.astype(np.float64).to_numpy()
    return Dask(together), np.vstack([array, array[: len(first)]])


class TestTable(DesignChecks):
    def build(self) -> tuple[Design, Array]:
        return _table()


class TestStandardized(DesignChecks):
    gathers_exactly = False

    def build(self) -> tuple[Design, Array]:
        X = normal(3)[:, :20]
        design = Standardized(Dask(da.from_array(X, chunks=(9, 7))))
        scales = X.std(axis=0)
        return design, (X - X.mean(axis=0)) / np.where(np.ptp(X, axis=0) == 0, 1.0, scales)

    def magnitude(self) -> Array:
        X = normal(3)[:, :20]
        scales = np.where(np.ptp(X, axis=0) == 0, 1.0, X.std(axis=0))
        return 4.0 * (np.abs(X) + np.abs(X.mean(axis=0)) + 1.0) / scales


def test_lengths_that_dask_does_not_know() -> None:
    X = normal()
    array = da.from_array(X, chunks=(6, 20))
    kept = array[array[:, 0] > 0]
    assert np.isnan(kept.shape[0])
    design = as_design(kept)
    assert_array_equal(design.gather(np.arange(N_FEATURES)).dense(), X[X[:, 0] > 0])
    assert np.isnan(kept.shape[0])  # the user's array is as it was


def test_sparse_columns_come_back_sparse() -> None:
    X = sp.random_array((4000, 90), density=0.01, rng=np.random.default_rng(0)).tocsr()
    rows = [dask.delayed(X[start : start + 1000]) for start in range(0, 4000, 1000)]
    array = da.concatenate([da.from_delayed(part, (1000, 90), dtype=X.dtype) for part in rows])
    block = Dask(array).gather(np.arange(90)[::-1])
    assert isinstance(block, SparseBlock)
    assert_array_equal(block.dense(), X.toarray()[:, ::-1])


# --- what is refused ------------------------------------------------------------------------------


def test_what_is_no_table_of_numbers() -> None:
    dd = pytest.importorskip("dask.dataframe")
    for X, error, words in (
        (da.zeros(5), ValueError, "2-d"),
        (da.zeros((2, 3, 4)), ValueError, "2-d"),
        (da.zeros((0, 3)), ValueError, r"0 sample"),
        (da.zeros((3, 0)), ValueError, r"0 feature"),
        (da.zeros((3, 2), dtype=complex), TypeError, "complex"),
        (da.from_array(np.array([["a"]])), TypeError, "must hold numbers"),
        (dask.delayed(np.ones)((3, 2)), TypeError, "from_delayed"),
        (dd.from_pandas(pd.DataFrame({"a": ["x"]}), npartitions=1), TypeError, "numeric"),
        (dd.from_pandas(pd.DataFrame({"a": [1.0]}), npartitions=1)["a"], ValueError, "to_frame"),
    ):
        with pytest.raises(error, match=words):
            as_design(X)
    with pytest.raises(TypeError, match="from_array"):
        Dask(np.ones((3, 2)))


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_entries_that_are_not_finite_are_named_by_their_place_in_all_of_X(
    container: Any, value: float
) -> None:
    X = normal()
    X[17, 33] = value
    design = Dask(da.from_array(X, chunks=(5, 9)).map_blocks(container))
    with pytest.raises(ValueError, match=r"\(17, 33\)"):
        design.scores(np.ones(N_SAMPLES))
    with pytest.raises(ValueError, match=r"\(17, 33\)"):
        design.gather(np.array([33]))


def test_chunks_of_another_shape_than_announced() -> None:
    wrong = da.from_delayed(dask.delayed(np.ones)((4, 3)), (5, 3), dtype=float)
    with pytest.raises(ValueError, match=r"row 0, column 0 .* \(4, 3\)"):
        Dask(wrong).scores(np.ones(5))


def test_wrong_columns_and_weights() -> None:
    design = Dask(da.from_array(normal(), chunks=9))
    with pytest.raises(IndexError, match="columns must be in"):
        design.gather(np.array([41]))
    with pytest.raises(ValueError, match="weights must have shape"):
        design.predict(np.ones(40))
    assert_array_equal(design.predict(np.zeros(41)), np.zeros(23))


# --- what travels and what is kept ----------------------------------------------------------------


def counted(array: Any) -> tuple[Any, list[int]]:
    """Return the array and a list that grows with each chunk that is made."""
    made: list[int] = []

    def note(block: Array) -> Array:
        made.append(1)
        return block

    return array.map_blocks(note, meta=np.zeros((0, 0))), made


@pytest.mark.parametrize("persist", [True, False])
def test_chunks_are_made_once_where_they_are_kept(persist: bool) -> None:
    array, made = counted(da.from_array(normal(), chunks=(23, 11)))
    design = Dask(array, persist=persist)
    assert not made
    design.gather(np.array([0, 12]))
    assert len(made) == 2  # a prediction with few columns reads their chunks only
    for _ in range(3):
        design.scores(np.ones(23))
        design.gather(np.array([40]))
    assert len(made) == (2 + 4 if persist else 2 + 3 * 5)


# --- estimators -----------------------------------------------------------------------------------


def problem(n: int = 90, p: int = 30) -> tuple[Array, Array]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, p))
    return X, X[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(n)


def test_estimators_take_collections() -> None:
    X, y = problem()
    array = da.from_array(X, chunks=(40, 11))
    model = AtomicRegressor("l1", alpha=0.1, tol=1e-9).fit(array, da.from_array(y, chunks=30))
    plain = AtomicRegressor("l1", alpha=0.1, tol=1e-9).fit(X, y)
    assert_allclose(model.coef_, plain.coef_, atol=1e-6)
    assert_allclose(model.predict(array), plain.predict(X), atol=1e-6)
    assert model.score(array, y) == pytest.approx(plain.score(X, y), abs=1e-8)
    labels = np.where(y > 1, "high", np.where(y < -1, "low", "middle"))
    several = AtomicClassifier(alpha=0.02, n_jobs=2, tol=1e-9).fit(array, labels)
    expected = AtomicClassifier(alpha=0.02, tol=1e-9).fit(X, labels)
    assert_array_equal(several.predict(array), expected.predict(X))
    assert_allclose(several.predict_proba(array), expected.predict_proba(X), atol=1e-6)
    chosen = FeatureGenerator(4, standardize=True).fit(array, y > 0)
    assert_array_equal(
        chosen.selected_, FeatureGenerator(4, standardize=True).fit(X, y > 0).selected_
    )
    assert chosen.transform(array).shape == (90, 4)
    with pytest.raises(ValueError, match="30 features"):
        model.predict(array[:, :7])


def test_names_of_tables() -> None:
    dd = pytest.importorskip("dask.dataframe")
    X, y = problem()
    table = pd.DataFrame(X, columns=[f"gene{j}" for j in range(30)])
    parts = dd.from_pandas(table, npartitions=4)
    assert feature_names(parts) == list(table.columns)
    assert feature_names(Dask(parts)) == list(table.columns)
    assert feature_names(da.zeros((2, 2))) is None
    model = AtomicRegressor("l1", alpha=0.3).fit(parts, y)
    assert model.selected_names_ == ["gene0", "gene1", "gene2", "gene3"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(parts[list(table.columns)[::-1]])


# --- a cluster ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    settings = {
        "distributed.comm.timeouts.connect": "60s",
        "distributed.scheduler.worker-ttl": None,
        "distributed.scheduler.no-workers-timeout": "300s",
        "distributed.admin.tick.limit": "1h",
    }
    with (
        dask.config.set(settings),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as local,
        distributed.Client(local) as client,
    ):
        # Replaces workers whose nannies gave up, as the managers of real clusters do.
        local.adapt(minimum=2, maximum=2)
        yield client


def kill_a_worker(client: Any, stop: threading.Event) -> None:
    """End the process of one worker; its nanny starts another.

    Of one that is some seconds old: nannies of workers that die while they start give up.
    """
    psutil = pytest.importorskip("psutil")
    while not stop.wait(0.1):
        for pid in client.run(os.getpid, on_error="ignore").values():
            with contextlib.suppress(psutil.NoSuchProcess):
                if time.time() - psutil.Process(pid).create_time() > 4.0:
                    os.kill(pid, signal.SIGKILL)
                    return


@pytest.mark.filterwarnings("default")
def test_a_cluster_gives_the_same_answer(cluster: Any) -> None:
    X, y = problem()
    array = da.from_array(X, chunks=(40, 11))
    expected = solve_sum(X, y, norm=norms.KSupport(5), level=3.0, tol=1e-10)
    for design in (Dask(array, client=cluster), Dask(array)):
        found = solve_sum(design, y, norm=norms.KSupport(5), level=3.0, tol=1e-10)
        assert found.converged
        assert_allclose(found.coef, expected.coef, atol=1e-8)
    copy = pickle.loads(pickle.dumps(design))
    assert_allclose(copy.scores(y).full(), X.T @ y, rtol=1e-12, atol=1e-12)


@pytest.mark.filterwarnings("default")
def test_killed_workers_change_nothing(cluster: Any) -> None:
    X, y = problem(200, 400)
    expected = solve_sum(X, y, level=2.0, tol=1e-9)
    design = Dask(da.from_array(X, chunks=(70, 150)), client=cluster)
    kept = design.scores(y)
    stop = threading.Event()
    killer = threading.Thread(target=kill_a_worker, args=(cluster, stop))
    killer.start()
    try:
        while killer.is_alive():
            found = solve_sum(design, y, level=2.0, tol=1e-9)
            assert found.converged
            assert_allclose(found.coef, expected.coef, atol=1e-7)
    finally:
        stop.set()
        killer.join()
    # Chunks and scores of the lost worker are made again.
    found = solve_sum(design, y, level=2.0, tol=1e-9)
    assert_allclose(found.coef, expected.coef, atol=1e-7)
    assert_allclose(kept.full(), X.T @ y, rtol=1e-11, atol=1e-11)


def pids_of(cluster: Any) -> dict[str, int]:
    """Return the processes of both workers; the scheduler may still count one that was killed."""
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends:
        cluster.wait_for_workers(2)
        found = cluster.run(os.getpid, on_error="ignore")
        if len(found) == 2:
            return dict(found)
        time.sleep(0.1)
    raise AssertionError(f"a killed worker was not started again within {PATIENCE:.0f} seconds")


@pytest.mark.filterwarnings("default")
def test_kills_at_random_moments_of_solves_over_sums(cluster: Any) -> None:
    """Each solve ends in time, with the answer or with an error that says what was lost."""
    rng = np.random.default_rng()
    X, y = problem(300, 150)
    of: dict[str, Any] = {"loss": "logistic", "level": 2.0, "tol": 1e-8, "fit_intercept": True}
    expected = solve_sum(X, np.sign(y), **of)
    array = da.from_array(X, chunks=(100, 60))
    took = 1.0
    for _ in range(3):
        pid = list(pids_of(cluster).values())[rng.integers(2)]
        design = Dask(array, client=cluster)
        killer = threading.Timer(rng.uniform(0.0, took), os.kill, (pid, signal.SIGKILL))
        killer.start()
        began = time.monotonic()
        try:
            found = solve_sum(design, np.sign(y), **of)
            while killer.is_alive():  # the moment was after the end: solve on until it comes
                found = solve_sum(design, np.sign(y), **of)
            assert found.converged
            assert found.sent[0] > found.passes
            assert found.objective == pytest.approx(expected.objective, rel=1e-7)
        except LostDataError:
            continue  # what it says is tested below
        finally:
            killer.join()
        assert time.monotonic() - began < PATIENCE


@pytest.mark.filterwarnings("default")
def test_data_that_cannot_be_made_again(cluster: Any) -> None:
    X, _ = problem()
    pids = pids_of(cluster)
    workers = sorted(pids)
    halves = [
        cluster.scatter(X[:45], workers=workers[:1]),
        cluster.scatter(X[45:], workers=workers[1:]),
    ]
    array = da.concatenate([da.from_delayed(half, (45, 30), dtype=float) for half in halves])
    design = Dask(array, client=cluster)
    assert_allclose(design.scores(np.ones(90)).full(), X.sum(axis=0), atol=1e-12)
    os.kill(pids[workers[0]], signal.SIGKILL)

    def until_noticed() -> None:
        ends = time.monotonic() + PATIENCE
        while time.monotonic() < ends:
            design.scores(np.ones(90))
            time.sleep(0.1)

    with pytest.raises(LostDataError, match=r"(?s)a worker was lost.*Checkpoint.*of X") as told:
        until_noticed()
    print(told.value)


@pytest.mark.filterwarnings("ignore")
def test_a_cluster_that_loses_all_workers_ends_and_another_goes_on(tmp_path: Path) -> None:
    """The solve ends with what to do; its checkpoint resumes on another cluster, or on none."""
    distributed = pytest.importorskip("distributed")
    X, y = problem(300, 120)
    array = da.from_array(X, chunks=(100, 120))
    kept = tmp_path / "kept"

    def end_it(progress: Any) -> None:
        if progress.passes == 2:
            local.scale(0)
            while client.nthreads():
                time.sleep(0.05)

    of: dict[str, Any] = {"loss": "huber", "level": 40.0, "tol": 1e-9}
    of["solver"] = solvers.ColumnGeneration(batch=1)
    timeout = {"distributed.scheduler.no-workers-timeout": "2s"}
    with (
        dask.config.set(timeout),
        distributed.LocalCluster(
            n_workers=1, processes=False, dashboard_address=None, silence_logs=50
        ) as local,
        distributed.Client(local) as client,
    ):
        design = Dask(array, client=client)
        with pytest.raises(LostDataError, match=r"no workers for .* Checkpoint"):
            solve_sum(design, y, observers=[solvers.Checkpoint(kept), end_it], **of)
    found = solve_sum(Dask(array), y, observers=[solvers.Checkpoint(kept)], **of)
    assert found.converged
    assert found.history[0].passes >= 1
    expected = solve_sum(X, y, loss="huber", level=40.0, tol=1e-9)
    assert found.objective == pytest.approx(expected.objective, rel=1e-9)


def test_results_of_a_worker_that_is_lost_on_the_way_are_not_awaited_forever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(distributed, "wait", lambda futures, timeout: None)
    waited: list[float] = []

    class Client:
        def gather(self) -> None:
            raise AssertionError

        def nthreads(self) -> dict[str, int]:
            return {"worker": 1}

        def sync(self, call: Any, callback_timeout: float) -> list[int]:
            waited.append(callback_timeout)
            if len(waited) < 3:
                raise TimeoutError
            return [7]

    assert waiting.awaited(Client(), ["a future"]) == [7]
    assert waited == [2.0, 4.0, 8.0]
