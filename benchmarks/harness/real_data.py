"""Real data sets of the benchmarks, the experiments and the tests, read by name.

The files are in the folder that ``ATOMLEARN_DATA`` names, by default ``../shared/data`` if it
exists, else ``data``, both from the root of the repository: public data as CSV or .npz (with the
keys that ``atomlearn.datasets.read`` expects, and ``n_train`` if the first rows are the training
part). The repository contains none of them.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from atomlearn.storage.formats.messages import require_name
from atomlearn.storage.formats.numpy_files import Archive
from atomlearn.storage.formats.table import tidy_target
from atomlearn.storage.intake.read import read

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, eq=False)
class RealData:
    """A data set as it was published.

    Attributes
    ----------
    name : str
        Name under which ``load`` finds it.
    X, y : array
        The data, or the training part of them.
    feature_names : tuple of str, optional
        Names of the columns of X.
    X_test, y_test : array, optional
        The published test part.
    target_names : tuple of str, optional
        Meanings of the values 0, 1, ... of y.
    """

    name: str
    X: Any
    y: NDArray[Any]
    feature_names: tuple[str, ...] | None = None
    X_test: Any = None
    y_test: NDArray[Any] | None = None
    target_names: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class _Source:
    """A file of the data folder, the page that publishes it, and its reader."""

    file: str
    home: str
    read: Callable[[Path], RealData]


def names() -> tuple[str, ...]:
    """Return the names of all data sets, sorted."""
    return tuple(sorted(_SOURCES))


def load(name: str, *, dtype: DTypeLike = np.float64) -> RealData:
    """Return a data set with X of type ``dtype``, dense or CSR as it was published.

    Raises ValueError if ``names()`` does not have the name, and FileNotFoundError if its file is
    not in the data folder.
    """
    require_name(name, names(), "there is no data set")
    source = _SOURCES[name]
    path = data_file(source.file)
    if not path.is_file():
        raise FileNotFoundError(
            f"the data set {name!r} is not on this machine: there is no file {path}. Set "
            f"ATOMLEARN_DATA to the folder that contains {source.file}; it was published by "
            f"{source.home}"
        )
    data = source.read(path)

    def cast(X: Any) -> Any:
        return None if X is None else X.astype(dtype, copy=False)

    return replace(data, name=name, X=cast(data.X), X_test=cast(data.X_test))


def data_file(name: str) -> Path:
    """Return the path of a file of the data folder; the file may be absent."""
    shared = ROOT.parent / "shared" / "data"
    usual = shared if shared.is_dir() else ROOT / "data"
    return Path(os.environ.get("ATOMLEARN_DATA", usual)) / name


def _csv(target: str, *exclude: str) -> Callable[[Path], RealData]:
    """Read a CSV file with a target column, leaving out some columns."""

    def of_table(path: Path) -> RealData:
        table = read(path, target, drop=exclude)
        assert table.y is not None
        return RealData("", table.X, table.y, table.feature_names)

    return of_table


def _npz(path: Path) -> RealData:
    """Read an .npz file as ``read`` does: the first ``n_train`` rows train, ``scale`` divides X."""
    arrays = Archive(path)
    table = read(path, "y")
    X = table.X
    y = table.y
    feature_names = table.feature_names
    assert y is not None
    if "scale" in arrays:
        X = X / arrays["scale"]
    meanings = tuple(arrays["target_names"].tolist()) if "target_names" in arrays else None
    if "n_train" not in arrays:
        return RealData("", X, y, feature_names, target_names=meanings)
    n = int(arrays["n_train"])
    return RealData("", X[:n], y[:n], feature_names, X[n:], y[n:], meanings)


def _images(scale: float) -> Callable[[Path], RealData]:
    """Read ``x_train, y_train, x_test, y_test``: images as rows of pixels over ``scale``."""

    def read(path: Path) -> RealData:
        arrays = Archive(path)
        X, X_test = (
            arrays[key].reshape(len(arrays[key]), -1) / scale for key in ("x_train", "x_test")
        )
        y, y_test = (tidy_target(arrays[key], str(path)) for key in ("y_train", "y_test"))
        return RealData("", X, y, None, X_test, y_test)

    return read


def _last_column(path: Path) -> RealData:
    """Read ``data_int / scale``, whose last column is the target; ``columns`` names them all."""
    arrays = Archive(path)
    values = arrays["data_int"] / arrays["scale"]
    columns = tuple(arrays["columns"].tolist())
    X = np.ascontiguousarray(values[:, :-1])
    return RealData("", X, tidy_target(values[:, -1], str(path)), columns[:-1])


def _genotypes(path: Path) -> RealData:
    """Read genotypes ``G`` with the body mass index of the mice that have one as target."""
    arrays = Archive(path)
    phenotypes = path.with_name("mice_pheno.csv.gz")
    table = read(phenotypes, "Obesity.BMI", id="SUBJECT.NAME", missing="median")
    assert table.ids is not None
    assert table.y is not None
    known = dict(zip(table.ids, table.y.tolist(), strict=True))
    names = arrays["ids"].tolist()
    rows = np.flatnonzero([name in known for name in names])
    y = np.array([known[names[row]] for row in rows])
    return RealData("", arrays["G"][rows].astype(np.float64), y, tuple(arrays["snp"].tolist()))


#: Pages that publish several data sets.
_HOMES = {
    "esl": "https://hastie.su.domains/ElemStatLearn/data.html",
    "libsvm": "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/",
    "uci": "https://archive.ics.uci.edu/datasets",
    "microarray": "https://github.com/ramhiser/datamicroarray",
}

_SOURCES: dict[str, _Source] = {
    "20news": _Source("20news/20news_counts.npz", "http://qwone.com/~jason/20Newsgroups/", _npz),
    "a9a": _Source("a9a/a9a.npz", _HOMES["libsvm"], _npz),
    "alon": _Source("microarray/alon.npz", _HOMES["microarray"], _npz),
    "california": _Source(
        "california/california.npz", "StatLib, houses.zip (Pace and Barry 1997)", _last_column
    ),
    "dorothea": _Source("dorothea/dorothea.npz", _HOMES["uci"], _npz),
    "golub": _Source("microarray/golub.npz", _HOMES["microarray"], _npz),
    "imdb": _Source("imdb/imdb_counts.npz", "https://ai.stanford.edu/~amaas/data/sentiment/", _npz),
    "khan": _Source("microarray/khan.npz", _HOMES["microarray"], _npz),
    "leukemia3051": _Source("microarray/leukemia3051.npz", "the R package plsgenomics", _npz),
    "madelon": _Source("madelon/madelon.npz", _HOMES["uci"], _npz),
    "mice": _Source("gwas_mice_bglr/mice_geno.npz", "the R package BGLR", _genotypes),
    "mnist": _Source("mnist/mnist.npz", "http://yann.lecun.com/exdb/mnist/", _images(255.0)),
    "prostate6033": _Source("microarray/prostate6033.npz", "the R package spls", _npz),
    "rcv1_small": _Source("rcv1_small/rcv1_small.npz", _HOMES["libsvm"], _npz),
    "riboflavin": _Source("riboflavin/riboflavin.npz", "the R package hdi", _npz),
    "saheart": _Source("saheart/SAheart.csv", _HOMES["esl"], _csv("chd", "row.names")),
    "shipp": _Source("microarray/shipp.npz", _HOMES["microarray"], _npz),
    "singh": _Source("microarray/singh.npz", _HOMES["microarray"], _npz),
    "usps": _Source("usps/usps.npz", _HOMES["esl"], _images(1000.0)),
    "w8a": _Source("w8a/w8a.npz", _HOMES["libsvm"], _npz),
    "west": _Source("microarray/west.npz", _HOMES["microarray"], _npz),
}
