"""Readers and writers of data files, and synthetic problems with known solutions."""

from atomlearn.datasets.gene_sets import read_gene_sets
from atomlearn.storage.conversion.to_store import convert
from atomlearn.storage.intake.in_place import write_plink
from atomlearn.storage.intake.read import read
from atomlearn.testing.synthetic import (
    make_correlated,
    make_feature_generation,
    make_text_like_sparse,
    make_zou_hastie,
)

__all__ = [
    "convert",
    "make_correlated",
    "make_feature_generation",
    "make_text_like_sparse",
    "make_zou_hastie",
    "read",
    "read_gene_sets",
    "write_plink",
]
