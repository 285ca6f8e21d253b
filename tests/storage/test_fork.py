"""Reading text in a fork of a process that has read text: its threads did not come along."""

import multiprocessing

import numpy as np
import pytest

from atomlearn.datasets import read

pytestmark = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="needs fork"
)


def _values(path, sending):
    data = read(path, target="y") if path.suffix == ".csv" else read(path)
    sending.send(np.asarray(data.X.toarray() if path.suffix == ".svm" else data.X))


@pytest.mark.parametrize("suffix", [".csv", ".svm"])
def test_a_child_reads_what_its_parent_read_before(tmp_path, suffix):
    pytest.importorskip("polars").read_csv(b"a,b\n1,2\n" * 1000)  # its threads are running
    path = tmp_path / f"table{suffix}"
    X = np.random.default_rng(0).standard_normal((300, 4)).round(6)
    if suffix == ".csv":
        rows = [",".join(map(str, row)) for row in np.column_stack([X, X[:, 0]])]
        path.write_text("\n".join(["a,b,c,d,y", *rows]) + "\n")
    else:
        cells = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row in X]
        path.write_text("\n".join(f"{row[0]} {text}" for row, text in zip(X, cells, strict=True)))
    fork = multiprocessing.get_context("fork")
    receiving, sending = fork.Pipe(duplex=False)
    child = fork.Process(target=_values, args=(path, sending))
    child.start()
    try:
        assert receiving.poll(60), "the child waits for ever"
        np.testing.assert_array_equal(receiving.recv(), X)
    finally:
        child.kill()
        child.join()
