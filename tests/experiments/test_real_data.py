"""Real data sets: the folder they are read from, and their published statistics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks.harness.real_data import data_file, load, names

#: name: shape, shape of the test part, and classes with their counts or the mean of y.
PUBLISHED = {
    "20news": ((11314, 130107), (7532, 130107), None),
    "a9a": ((32561, 123), (16281, 123), {1: 7841, -1: 24720}),
    "alon": ((62, 2000), None, {"t": 40, "n": 22}),
    "california": ((20640, 8), None, 206855.81690891474),
    "dorothea": ((800, 100000), (350, 100000), {1: 78, -1: 722}),
    "golub": ((72, 7129), None, {"ALL": 47, "AML": 25}),
    "imdb": ((25000, 74849), (25000, 74849), {0: 12500, 1: 12500}),
    "khan": ((63, 2308), None, {"BL": 8, "EWS": 23, "NB": 12, "RMS": 20}),
    "leukemia3051": ((38, 3051), None, {1: 27, 2: 11}),
    "madelon": ((2600, 500), None, {1: 1300, -1: 1300}),
    "mice": ((1814, 10346), None, None),
    "mnist": ((60000, 784), (10000, 784), None),
    "prostate6033": ((102, 6033), None, {0: 50, 1: 52}),
    "rcv1_small": ((1000, 47236), (500, 47236), None),
    "riboflavin": ((71, 4088), None, -7.159432),
    "saheart": ((462, 9), None, {1: 160, 0: 302}),
    "shipp": ((77, 7129), None, {"DLBCL": 58, "FL": 19}),
    "singh": ((102, 12600), None, {"Normal": 50, "Tumor": 52}),
    "usps": ((7291, 256), (2007, 256), None),
    "w8a": ((49749, 300), None, {1: 1479, -1: 48270}),
    "west": ((49, 7129), None, {"negative": 25, "positive": 24}),
}


def test_every_data_set_is_checked_here() -> None:
    assert sorted(PUBLISHED) == list(names())


@pytest.mark.parametrize("name", sorted(PUBLISHED))
def test_published_statistics(name: str) -> None:
    try:
        data = load(name, dtype=np.float32)
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    shape, test_shape, statistic = PUBLISHED[name]
    assert data.X.shape == shape
    assert data.y.shape == shape[:1]
    assert data.X.dtype == np.float32
    assert (data.X_test is None) == (test_shape is None)
    if test_shape is not None:
        assert data.y_test is not None
        assert data.X_test.shape == test_shape
        assert data.y_test.shape == test_shape[:1]
    if isinstance(statistic, dict):
        values, counts = np.unique(data.y, return_counts=True)
        assert dict(zip(values.tolist(), counts.tolist(), strict=True)) == statistic
    elif statistic is not None:
        assert data.y.mean() == pytest.approx(statistic, rel=1e-6)
    if data.feature_names is not None:
        assert len(data.feature_names) == shape[1]


def test_statistics_of_the_entries() -> None:
    try:
        news, digits, heart = load("20news"), load("mnist"), load("saheart")
        mail, mice = load("usps"), load("mice")
    except FileNotFoundError as missing:
        pytest.skip(str(missing))
    assert news.X.nnz == 1_787_565
    assert news.target_names is not None
    assert news.target_names[0] == "alt.atheism"
    assert digits.X.mean() == pytest.approx(0.13066, abs=1e-5)
    assert digits.X.std() == pytest.approx(0.30811, abs=1e-5)
    assert (mail.X.min(), mail.X.max()) == (-1.0, 1.0)
    means = dict(zip(heart.feature_names or (), heart.X.mean(axis=0), strict=True))
    assert means["sbp"] == pytest.approx(138.327, abs=1e-3)
    assert means["famhist=Present"] == pytest.approx(192 / 462)
    shares = np.bincount(mice.X.astype(np.int64).ravel()) / mice.X.size
    assert shares == pytest.approx([0.445, 0.363, 0.193], abs=1e-3)
    assert np.isfinite(mice.y).all()


@pytest.fixture
def data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ATOMLEARN_DATA", str(tmp_path))
    return tmp_path


def test_a_missing_set_names_its_file(data_home: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        load("madelon")
    message = str(caught.value)
    assert str(data_home / "madelon" / "madelon.npz") in message
    assert "ATOMLEARN_DATA" in message
    assert "it was published by https://" in message


def test_the_default_folder_is_shared_data_or_in_the_repository(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ATOMLEARN_DATA", raising=False)
    root = Path(__file__).resolve().parents[2]
    shared = root.parent / "shared" / "data"
    assert data_file("a.npz") == (shared if shared.is_dir() else root / "data") / "a.npz"


def test_arrays_are_read_in_the_type_asked_for(data_home: Path) -> None:
    (data_home / "madelon").mkdir()
    file = data_home / "madelon" / "madelon.npz"
    np.savez(file, X=np.eye(3, 2, dtype=np.int16), y=[1, -1, 1])
    data = load("madelon")
    assert data.X.tolist() == np.eye(3, 2).tolist()
    assert data.X.dtype == np.float64


def test_unknown_names_get_a_suggestion() -> None:
    with pytest.raises(ValueError, match="did you mean 'saheart'"):
        load("sa-heart")


def test_the_conventions_of_the_files(data_home: Path) -> None:
    """Sparse with a single stored one, ``n_train``, ``scale`` and ``classes``, made here."""
    matrix = sp.random(9, 7, density=0.4, random_state=0, format="csr")
    (data_home / "a9a").mkdir()
    np.savez(
        data_home / "a9a" / "a9a.npz",
        data=np.ones(1, np.uint8), indices=matrix.indices, indptr=matrix.indptr,
        shape=matrix.shape, y=np.tile([1, -1, 1], 3), n_train=6,
    )  # fmt: skip
    data = load("a9a")
    pattern = (matrix.toarray() != 0).astype(float)
    assert data.X.toarray().tolist() == pattern[:6].tolist()
    assert data.X_test.toarray().tolist() == pattern[6:].tolist()
    (data_home / "microarray").mkdir()
    np.savez(
        data_home / "microarray" / "alon.npz",
        X=np.array([[123, 456], [789, 12]]), scale=100, y=np.array([1, 0], np.uint8),
        classes=np.array(["n", "t"]), features=np.array(["g1", "g2"]),
    )  # fmt: skip
    genes = load("alon")
    assert genes.X.tolist() == [[1.23, 4.56], [7.89, 0.12]]
    assert genes.y.tolist() == ["t", "n"]
    assert genes.feature_names == ("g1", "g2")
