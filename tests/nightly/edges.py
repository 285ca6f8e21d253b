"""Sizes at their edges that take gigabytes or minutes: each is an answer, or one line.

Each is tried in a process of its own, which may take 4 GB of memory and not more.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import resource
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from atomlearn import AtomicClassifier, norms
from atomlearn.core import SparseDesign
from tests.nightly.ledger import Row, command, quiet
from tests.oracles.sums import solve_sum

#: Bytes that the process of one size may take.
MOST = 4 * 2**30
WIDE = 2**31 + 5
RNG = np.random.default_rng(0)
Y = RNG.standard_normal(30)


def _wide() -> sp.csr_array:
    columns = np.array([0, WIDE - 1, 2**31, WIDE - 1])
    parts = np.array([1.0, 2.0, 3.0, 4.0]), columns, np.array([0, 2, 3, 4])
    return sp.csr_array(parts, shape=(3, WIDE))


def more_columns_than_two_to_the_31() -> str:
    """One score a column is 17 GB: refused."""
    return solve_sum(_wide(), np.array([1.0, 2.0, 3.0]), level=0.1).status.name


def the_same_on_the_command_line() -> str:
    with tempfile.TemporaryDirectory() as name:
        sp.save_npz(Path(name, "t.npz"), _wide())
        code, said = command(Path(name), "convert", Path(name, "t.npz"), Path(name, "t.store"))
        assert code == 2, (code, said)
        return said


def more_entries_than_two_to_the_31() -> str:
    """2^20 rows and 2,049 full columns, which lie on one another in memory: 16 MB, not 26 GB."""
    n, p = 2**20, 2049
    pool = RNG.standard_normal(2 * n).astype(np.float32)
    # Column j begins at another page of the pool each, so that no two of them are equal.
    shifts = [j % 1024 * 1024 for j in range(p)]
    data = _repeated(pool, [4 * shift for shift in shifts], 4 * n)
    rows = _repeated(np.arange(n), [0] * p, 8 * n)
    X = sp.csc_array((n, p), dtype=np.float32)
    X.data, X.indices = data, rows
    X.indptr = np.arange(p + 1, dtype=np.int64) * n
    X.has_canonical_format = True
    design, v = SparseDesign(X), RNG.standard_normal(n)
    assert design.nonzeros > 2**31
    z = design.scores(v).full()
    exact = [pool[shift : shift + n].astype(np.float64) @ v for shift in shifts]
    np.testing.assert_allclose(z, exact, atol=1e-6 * n)
    np.testing.assert_array_equal(design.gather(np.array([p - 1])).dense()[:, 0],
                                  pool[shifts[-1] : shifts[-1] + n])  # fmt: skip
    return f"{design.nonzeros:,} stored entries: each score is that of NumPy"


def _repeated(array: np.ndarray, starts: list[int], width: int) -> np.ndarray:
    """Return bytes made of windows of an array, each mapped from the same memory."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype, none = ctypes.c_void_p, ctypes.c_void_p
    libc.mmap.argtypes = [none, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    file = os.memfd_create("pool")
    os.write(file, array.tobytes())
    size, private = width * len(starts), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    place = libc.mmap(None, size, mmap.PROT_READ, private | 0x4000, -1, 0)  # MAP_NORESERVE
    for number, start in enumerate(starts):
        fixed = mmap.MAP_SHARED | 0x10  # MAP_FIXED
        at = libc.mmap(place + number * width, width, mmap.PROT_READ, fixed, file, start)
        assert at == place + number * width
    return np.frombuffer((ctypes.c_char * size).from_address(place), array.dtype)


def trees_ten_thousand_deep() -> str:
    """Groups of 1 to 10,000 features, each in the next: 50 million members, refused."""
    depth = 10_000
    X, weights = RNG.standard_normal((30, depth)), np.linspace(1, 2, depth)[::-1]
    norm = norms.Trees.from_parents(np.arange(depth) - 1, weights=weights)
    found = solve_sum(X, Y, norm=norm, level=0.9 * np.linalg.norm(X.T @ Y), max_iter=5)
    return f"{found.status.name}, relative gap {found.relative_gap:.1e}"


def a_hundred_thousand_groups_that_overlap() -> str:
    X = RNG.standard_normal((30, 100_000))
    groups = [[j, j + 1] for j in range(99_999)]
    return solve_sum(X, Y, norm=norms.LatentGroups(groups), level=5.0).status.name


def ten_thousand_classes() -> str:
    """One row a class: one problem a class, 10,000 at once."""
    X, classes = RNG.standard_normal((10_000, 5)), np.arange(10_000)
    model = AtomicClassifier("l1", alpha=0.5).fit(X, classes)
    return f"{model.coef_.shape[0]:,} classes"


SIZES: tuple[Callable[[], str], ...] = (
    more_columns_than_two_to_the_31,
    the_same_on_the_command_line,
    more_entries_than_two_to_the_31,
    trees_ten_thousand_deep,
    a_hundred_thousand_groups_that_overlap,
    ten_thousand_classes,
)


def tried(size: Callable[[], str]) -> Row:
    """Try a size once, in a process of its own."""
    row = Row(f"size: {size.__name__.replace('_', ' ')}")
    with tempfile.NamedTemporaryFile("r") as told:
        number = os.fork()
        if not number:
            code = 1
            try:
                code = _within_memory(size, Path(told.name))
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
        said = told.read()
    row.count(f"exit code {code}: {said}" if code else None, said)
    return row


def _within_memory(size: Callable[[], str], told: Path) -> int:
    """Write what a size leads to; return 1 where it is neither an answer nor one line."""
    limits = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (MOST, limits[1]))
    quiet()
    try:
        told.write_text(size())
    except (ValueError, MemoryError) as error:
        said = f"{type(error).__name__}: {error}"
        told.write_text(said)
        return int("\n" in said)
    except BaseException:
        told.write_text(traceback.format_exc())
        return 1
    return 0
