"""BLAS threads are set aside while a solver runs, and come back; pieces add up to the whole."""

import threading

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController

from atomlearn import _kernels as kernels
from tests.oracles.sums import solve_sum


@pytest.fixture
def two_threads():
    with ThreadpoolController().limit(limits=2):
        yield


def blas_threads():
    counts = [
        lib["num_threads"] for lib in ThreadpoolController().info() if lib["user_api"] == "blas"
    ]
    return max(counts, default=1)


def test_blocks_inside_blocks_restore_once(two_threads):
    before = blas_threads()
    with kernels.single_threaded_blas():
        with kernels.single_threaded_blas():
            assert blas_threads() == 1
        assert blas_threads() == 1
    assert blas_threads() == before


def test_concurrent_blocks_leave_the_threads_as_they_were(two_threads):
    before = blas_threads()
    inside, leave = threading.Event(), threading.Event()

    def other():
        with kernels.single_threaded_blas():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with kernels.single_threaded_blas():
        thread.start()
        inside.wait()
        assert blas_threads() == 1
    assert blas_threads() == 1, "the other thread is still at work"
    leave.set()
    thread.join()
    assert blas_threads() == before


def test_threads_beside_the_main_one_can_set_it_aside(two_threads):
    # threadpoolctl's limits do nothing in other threads than the first that set one.
    with kernels.single_threaded_blas():
        pass
    seen = []

    def other():
        with kernels.single_threaded_blas():
            seen.append(blas_threads())

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == [1]


def test_restored_after_an_error_in_an_observer(two_threads):
    before, seen = blas_threads(), []

    def observer(progress):
        seen.append(blas_threads())
        raise RuntimeError("from outside")

    X = np.random.default_rng(0).standard_normal((10, 5))
    with pytest.raises(RuntimeError, match="from outside"):
        solve_sum(X, X[:, 0], norm="l1", level=0.1, observers=[observer])
    assert seen == [1]
    assert blas_threads() == before


@pytest.mark.parametrize("operations", [1.0, 1e12])
@pytest.mark.parametrize("count", [1, 2, 7])
def test_pieces_add_up(two_threads, count, operations):
    matrix = np.random.default_rng(1).standard_normal((count, 4))
    seen = []

    def product(piece):
        seen.append(piece)
        return matrix[piece].T @ matrix[piece]

    total = kernels.sum_of_pieces(product, count, operations)
    np.testing.assert_allclose(total, matrix.T @ matrix, atol=1e-12)
    covered = sorted(i for piece in seen for i in range(piece.start, piece.stop))
    assert covered == list(range(count))
    assert len(seen) == (1 if operations == 1.0 else min(count, 2))


def test_shared_work_is_done_once_each(two_threads):
    done, lock, threads = [], threading.Lock(), set()
    both = threading.Barrier(2, timeout=20)

    def work(piece):
        if piece < 2:
            both.wait()  # two threads are at work, or this times out
        with lock:
            done.append(piece)
            threads.add(threading.get_ident())
        assert blas_threads() == 1

    before = blas_threads()
    kernels.share_out(work, 30, 1e12)
    assert sorted(done) == list(range(30))
    assert len(threads) == 2
    assert blas_threads() == before


@pytest.mark.parametrize("operations", [1.0, 1e12])
def test_an_error_in_shared_work_ends_it(two_threads, operations):
    done = []

    def work(piece):
        done.append(piece)
        if piece == 3:
            raise RuntimeError("piece 3")

    with pytest.raises(RuntimeError, match="piece 3"):
        kernels.share_out(work, 100_000, operations)
    assert len(done) < 100_000


def test_small_work_stays_on_this_thread(two_threads):
    threads = set()
    kernels.share_out(lambda piece: threads.add(threading.get_ident()), 10, 1e6)
    assert threads == {threading.get_ident()}


def test_kernels_keep_to_their_share_while_pieces_are_shared_out(two_threads):
    seen: list[int] = []
    kernels.share_out(lambda piece: seen.append(kernels.max_threads()), 8, 1e12)
    assert seen == [1] * 8
    assert kernels.max_threads() == 2
