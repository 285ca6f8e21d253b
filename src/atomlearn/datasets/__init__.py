"""Data: synthetic problems with known solutions, public data sets, and readers of data files."""

from atomlearn.datasets.conversion import Conversion, convert
from atomlearn.datasets.gene_sets import read_gene_sets
from atomlearn.datasets.loaders import RealData, load, names
from atomlearn.datasets.plink import write_plink
from atomlearn.datasets.readers import read_table
from atomlearn.datasets.synthetic import (
    Synthetic,
    make_correlated,
    make_feature_generation,
    make_groups,
    make_k_support_logistic,
    make_text_like_sparse,
    make_zou_hastie,
)
from atomlearn.datasets.table import DataTable, Schema

__all__ = [
    "Conversion",
    "DataTable",
    "RealData",
    "Schema",
    "Synthetic",
    "convert",
    "load",
    "make_correlated",
    "make_feature_generation",
    "make_groups",
    "make_k_support_logistic",
    "make_text_like_sparse",
    "make_zou_hastie",
    "names",
    "read_gene_sets",
    "read_table",
    "write_plink",
]
