"""Some mutated files of every format in each run of the suite; ``make fuzz N=...`` for more."""

import pytest

from tests.fuzz.campaign import prepared, try_one
from tests.fuzz.corpus import targets

#: As many as take a second or two in all; the seeds of the campaign are others, and more.
SEEDS = range(1_000_000, 1_000_040)


@pytest.mark.parametrize("target", targets().values(), ids=str)
def test_a_changed_file_is_read_or_refused_in_one_line(target, tmp_path):
    path, contents = prepared(target, tmp_path / "files")
    target.read(path)
    for seed in SEEDS:
        try_one(target, path, contents, seed)


@pytest.mark.parametrize(
    ("name", "seed"),
    # What campaigns found once: seeds are stable as long as the corpus is.
    [
        ("checkpoint", 7),
        ("npy", 752),  # no columns, and the last of them is the target
        ("h5ad", 334),  # a heap that HDF5 walks for ever
        ("h5ad", 395),
        ("csv", 10),  # UTF-16 marks: a gigabyte was asked for to end a line
        ("numbers.csv.bz2", 5015),
        ("numbers.csv.bz2", 5740),
        ("convert-numbers.csv.bz2", 5236),
        ("convert-numbers.csv.bz2", 21013),  # a name of 16,000 digits
        ("checkpoint", 20965),  # a key is lost
        ("checkpoint", 29074),  # a part that is no array, which NumPy gives as bytes
        ("npy", 13576),  # a header of four gigabytes
        ("npz-sparse", 14194),  # indptr that falls below zero
        ("convert-npz-sparse", 7208),  # four million columns of forty entries
    ],
)
def test_what_campaigns_found(name, seed, tmp_path):
    target = targets()[name]
    path, contents = prepared(target, tmp_path / "files")
    try_one(target, path, contents, seed)
