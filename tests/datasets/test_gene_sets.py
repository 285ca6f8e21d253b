"""Gene set files: what they hold, compressed or not, and what is wrong with broken ones."""

from __future__ import annotations

import gzip

import pytest

from atomlearn.datasets import read_gene_sets

TEXT = "REPAIR\thttp://x\tBRCA1\tTP53\t\tBRCA1\n\nGROWTH\t\tMYC\tTP53\r\n"
SETS = {"REPAIR": ["BRCA1", "TP53"], "GROWTH": ["MYC", "TP53"]}


def test_plain_and_compressed(tmp_path):
    plain = tmp_path / "sets.gmt"
    plain.write_bytes(TEXT.encode())
    assert read_gene_sets(plain) == SETS
    packed = tmp_path / "sets.gmt.gz"
    packed.write_bytes(gzip.compress(TEXT.encode()))
    assert read_gene_sets(str(packed)) == SETS


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("A\td\tx\nA\td\ty\n", "line 2: set 'A' was there before"),
        ("A\tonly a description\n", "line 1: a set needs a name"),
        ("a,b,c\n", "is this a .gmt file"),
    ],
)
def test_broken_files(tmp_path, text, match):
    path = tmp_path / "sets.gmt"
    path.write_text(text)
    with pytest.raises(ValueError, match=match):
        read_gene_sets(path)
    with pytest.raises(FileNotFoundError):
        read_gene_sets(tmp_path / "absent.gmt")
