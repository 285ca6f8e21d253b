"""Threads: one for BLAS while a solver runs, and several for large products, cut into pieces.

Solvers call many small BLAS functions between this package's own threaded kernels. OpenBLAS wakes
its threads even for a dot product of 10,000 numbers, and lets them spin for milliseconds
afterwards. They occupy the cores that the kernels need: a product of 26 MB then takes four times as
long. Large matrix products are therefore cut into pieces, one for each thread of this package. Each
thread multiplies its piece by single-threaded BLAS.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

import atomlearn._kernels._native as _native

Array = NDArray[np.float64]

#: Number of multiplications for which starting a Python thread pays off: a millisecond of BLAS.
WORTH_A_THREAD = 5e7


#: Routines that the kernels call, from scipy.linalg.cython_blas and cython_lapack.
_ROUTINES = {
    "cython_blas": ("dtrsm", "dsyrk", "dgemv", "dgemm"),
    "cython_lapack": ("dpotrf", "dpotri", "dpotrs", "dsyev"),
}


class _Holders:
    """A context manager that keeps BLAS to one thread until the last ``with`` block has ended.

    ``holders`` is the number of open blocks, of all threads. ``before`` lists the libraries that
    had more threads, with their numbers of threads. Entering the context managers of threadpoolctl
    or contextlib instead would take as long as a small pass over data.
    """

    def __init__(self) -> None:
        """Begin with no open block."""
        self.lock = threading.Lock()
        self.holders = 0
        self.before: list[tuple[Any, int]] = []

    def __enter__(self) -> None:
        """Count one more block; the first one sets all BLAS libraries to one thread."""
        with self.lock:
            self.holders += 1
            if self.holders == 1:
                for library in _blas():
                    if (threads := library.get_num_threads()) != 1:
                        self.before.append((library, threads))
                        _set_blas(library, 1)

    def __exit__(self, *error: object) -> None:
        """Count one block less; the last one restores the numbers of threads.

        ``error`` is the exception of the block, which is not handled.
        """
        with self.lock:
            self.holders -= 1
            if not self.holders:
                while self.before:
                    _set_blas(*self.before.pop())


_limit: _Holders


def _reset_limit() -> None:
    """Make a new record of blocks: at import, and in the child process of a fork."""
    # Another thread of the parent may have held the lock; it does not exist in the child process.
    global _limit
    _limit = _Holders()


_reset_limit()
if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_reset_limit)


@cache
def _blas() -> list[Any]:
    """Return threadpoolctl's controllers of the BLAS libraries of this process."""
    # Created at first use: by then NumPy and SciPy have loaded their BLAS libraries, which have
    # separate thread pools.
    import scipy.linalg  # noqa: F401

    libraries = ThreadpoolController().lib_controllers
    return [library for library in libraries if library.user_api == "blas"]


def _set_blas(library: Any, threads: int) -> None:
    """Set the number of threads of one BLAS library, from any Python thread.

    ``library`` is its controller in threadpoolctl.
    """
    # From version 3.8 on, threadpoolctl lets only the first thread that sets a limit change it.
    # Releasing the library before and after allows any thread to do so.
    release = getattr(library, "clear_controlling_thread", lambda **_: None)
    release(force=True)
    library.set_num_threads(threads)
    release(force=True)


def single_threaded_blas() -> AbstractContextManager[None]:
    """Return a context manager that keeps BLAS to one thread.

    The limit applies to the whole process until the last open block ends, because sums over another
    number of threads differ in their last bits.
    """
    return _limit


def max_threads() -> int:
    """Return the number of threads that kernels may use: OMP_NUM_THREADS, or threadpoolctl's limit.

    The child of a fork uses one: OpenMP's threads do not survive the fork.
    """
    return int(_native.max_threads())


def sum_of_pieces(product: Callable[[slice], Array], count: int, operations: float) -> Array:
    """Return the sum of product(piece) over slices ``piece`` of range(count), one slice a thread.

    ``operations`` is the number of multiplications of all slices together. It decides how many
    threads work.
    """
    threads = min(_native.max_threads(), count, int(operations / WORTH_A_THREAD))
    if threads <= 1:
        return product(slice(0, count))
    # The products are added in the order of the slices, so that the rounding is reproducible.
    cuts = np.linspace(0, count, threads + 1).astype(int).tolist()
    products: dict[int, Array] = {}

    def work(piece: int) -> None:
        """Compute the product of slice number ``piece``."""
        products[piece] = product(slice(cuts[piece], cuts[piece + 1]))

    share_out(work, threads, operations)
    total = products[0]
    for piece in range(1, threads):
        total += products[piece]
    return total


def share_out(
    work: Callable[[int], None], count: int, operations: float, most: int | None = None
) -> None:
    """Call work(0), ..., work(count - 1), each once, on several threads if that pays.

    Meanwhile BLAS uses one thread, and kernels inside a call use their share of the threads. A free
    thread makes the next call, in the order of the numbers. After an exception no further call
    begins, and it is raised here. ``operations`` is the number of multiplications of all calls
    together, which decides how many threads work. ``most`` is the maximum number of threads; None:
    as many as kernels may use.
    """
    allowed = _native.max_threads()
    threads = int(min(allowed, count, most or allowed, operations / WORTH_A_THREAD))
    if threads <= 1:
        for piece in range(count):
            work(piece)
        return
    numbers = iter(range(count))
    lock = threading.Lock()
    stopped = threading.Event()

    def run() -> None:
        """Take the next number and call ``work`` on it, until none is left or a call failed."""
        _native.set_threads(allowed // threads)
        while not stopped.is_set():
            with lock:
                piece = next(numbers, None)
            if piece is None:
                return
            try:
                work(piece)
            except BaseException:
                stopped.set()
                raise

    # This thread works too, so the pool needs one thread less.
    with single_threaded_blas(), ThreadPoolExecutor(threads - 1) as pool:
        others = [pool.submit(run) for _ in range(threads - 1)]
        try:
            run()
            for other in others:
                other.result()
        finally:
            stopped.set()
            _native.set_threads(allowed)


@cache
def load_blas() -> None:
    """Give the kernels the BLAS and LAPACK routines of SciPy; raise ImportError if it has none."""
    import scipy.linalg

    for module, names in _ROUTINES.items():
        # SciPy exports the addresses of these routines for other compiled code.
        exported: dict[str, Any] = getattr(scipy.linalg, module).__pyx_capi__
        if not all(_native.provide_blas(name, exported.get(name)) for name in names):
            raise ImportError(
                f"atomlearn needs {', '.join(names)} with 32-bit integers from "
                f"scipy.linalg.{module}, which this SciPy does not export; install SciPy from PyPI "
                "or conda-forge"
            )
