"""Stores and genotype files: the same design as in memory, and broken ones are refused."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import tempfile
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from sklearn.base import clone

from atomlearn import AtomicRegressorCV, norms
from atomlearn.core import LIMITS, Design, part_of
from atomlearn.datasets import convert, write_plink
from atomlearn.designs import Concatenated, OnDisk, PlinkBed, Standardized, StoreError, as_design
from atomlearn.storage.store import store_file as store
from atomlearn.storage.store.store_file import ReadingSizes
from atomlearn.testing.designs import DesignChecks
from tests.oracles.genotypes import filled, genotypes, naive_write_plink
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def folder() -> Path:
    # Not tmp_path: designs of the conformance suites are built outside of a test.
    return _FOLDER


_TEMPORARY = tempfile.TemporaryDirectory()
_FOLDER = Path(_TEMPORARY.name)


def _dense(n: int = 45, p: int = 31) -> Array:
    return np.random.default_rng(1).integers(-9, 9, (n, p)).astype(float)


def _store(name: str, X: object, dtype: str) -> Path:
    """Return the store of an array, made once."""
    out = _FOLDER / f"{name}.store"
    if not out.exists():
        source = _FOLDER / f"{name}.npz"
        if sp.issparse(X):
            sp.save_npz(source, X)
        else:
            np.savez(source, X=X)
        convert(source, out, dtype=dtype)
    return out


class _InStore(DesignChecks):
    dtype = "float64"

    def build(self) -> tuple[Design, Array]:
        X = _dense()
        return OnDisk(_store(f"dense-{self.dtype}", X, self.dtype)), X


class TestFloat64(_InStore):
    pass


class TestFloat16(_InStore):
    dtype = "float16"


class TestInt8(_InStore):
    dtype = "int8"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    # Some columns a chunk only, so that there are many.
    for module in ("atomlearn.storage.conversion.writer", "atomlearn.storage.store.plink"):
        monkeypatch.setattr(f"{module}.READING", ReadingSizes(chunk_bytes=256))


class TestSparseInStore(DesignChecks):
    density = 0.05

    def build(self) -> tuple[Design, Array]:
        X = sp.random_array((120, 40), density=self.density, rng=np.random.default_rng(2)).tocsc()
        return OnDisk(_store(f"sparse-{self.density}", X, "float64")), X.toarray()


class TestNearlyFullSparse(TestSparseInStore):
    density = 0.4


class TestPlinkBed(DesignChecks):
    missing = 0.1
    n_samples = 45

    def build(self) -> tuple[Design, Array]:
        X = genotypes(self.n_samples, 30, self.missing)
        path = _FOLDER / f"plink-{self.missing}-{self.n_samples}.bed"
        if not path.exists():
            naive_write_plink(path, X)
        return PlinkBed(path), filled(X)


class TestNothingMissing(TestPlinkBed):
    missing = 0.0


class TestSamplesInFours(TestPlinkBed):
    n_samples = 64


class TestGenotypesInStore(TestPlinkBed):
    def build(self) -> tuple[Design, Array]:
        design, array = super().build()
        assert isinstance(design, PlinkBed)
        out = design.path.with_suffix(".store")
        if not out.exists():
            convert(design.path, out)
        return OnDisk(out), array


class TestStandardizedGenotypes(TestPlinkBed):
    gathers_exactly = False

    def build(self) -> tuple[Design, Array]:
        design, array = super().build()
        means, scales = array.mean(axis=0), array.std(axis=0)
        constant = np.ptp(array, axis=0) == 0
        return Standardized(design), (array - means) / np.where(constant, 1.0, scales)

    def magnitude(self) -> Array:
        array = super().build()[1]
        scales = array.std(axis=0)
        constant = np.ptp(array, axis=0) == 0
        return (
            4.0
            * (np.abs(array) + np.abs(array.mean(axis=0)) + 1.0)
            / np.where(constant, 1.0, scales)
        )


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns stay packed, in several pieces, and are never all unpacked."""
    sizes = "atomlearn.storage.store.stored_columns.READING"
    monkeypatch.setattr(sizes, ReadingSizes(chunk_bytes=256, packed_from=0))
    limits = replace(LIMITS, piece_entries=256, most_dense=64)
    monkeypatch.setattr("atomlearn.storage.store.genotype_block.LIMITS", limits)


@pytest.mark.usefixtures("packed")
class TestPackedGenotypes(TestPlinkBed):
    def test_blocks_are_packed(self) -> None:
        block = self.build()[0].gather(np.arange(20))
        assert block.stored() is None
        assert block.append(block).traits.bytes_an_entry == 0.25


@pytest.mark.usefixtures("packed")
class TestPackedStandardized(TestStandardizedGenotypes):
    pass


# --- the same answers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("norm", "loss"),
    [
        (norms.KSupport(k=4), "squared"),
        (norms.LatentGroups([list(range(j, j + 4)) for j in range(0, 37, 2)]), "logistic"),
        (norms.L2(), "squared_hinge"),
    ],
)
def test_every_loss_and_norm_has_the_same_optimum_on_disk(
    loss: str, norm: norms.KSupport, folder: Path
) -> None:
    X = genotypes(90, 40, 0.05, seed=3)
    bed = folder / "answers.bed"
    if not bed.exists():
        naive_write_plink(bed, X)
        convert(bed, folder / "answers-bits.store")
        np.savez(folder / "answers.npz", X=filled(X))
        convert(folder / "answers.npz", folder / "answers-dense.store")
        sp.save_npz(folder / "answers-csr.npz", sp.csr_array(filled(X)))
        convert(folder / "answers-csr.npz", folder / "answers-csc.store")
    rng = np.random.default_rng(4)
    y = filled(X)[:, :6] @ rng.standard_normal(6) + 0.3 * rng.standard_normal(90)
    y = y - np.median(y) if loss == "squared" else np.where(y > np.median(y), 1.0, -1.0)
    form = "squared" if isinstance(norm, norms.L2) else "penalized"

    def fit(source: object) -> float:
        result = solve_sum(
            source, y, loss=loss, norm=norm, level=2.0, form=form, fit_intercept=True, tol=1e-9
        )
        assert result.converged
        return result.objective

    expected = fit(filled(X))
    for name in ("answers.bed", "answers-bits.store", "answers-dense.store", "answers-csc.store"):
        assert_allclose(fit(folder / name), expected, rtol=1e-8)


def test_large_scores_of_standardized_columns_in_a_store(folder: Path) -> None:
    """Column means far from zero, and vectors of any sum: a wrong sign of either would show."""
    X = _dense() + np.arange(31.0)
    standardized = (X - X.mean(axis=0)) / X.std(axis=0)
    V = np.random.default_rng(3).normal(1.0, 1.0, (45, 2))
    Z = standardized.T @ V
    bounds = 0.5 * np.abs(Z).max(axis=0)
    store = OnDisk(_store("far-means", X, "float64"))
    halves = Concatenated([part_of(store, columns=k) for k in np.split(np.arange(31), [20])])
    for design in (Standardized(store), Standardized(halves)):
        for scores, z, bound in zip(design.scores_above(V, bounds), Z.T, bounds, strict=True):
            columns, values = scores.above(bound)
            assert set(columns) == set(np.flatnonzero(np.abs(z) >= bound))
            assert_allclose(values, z[columns], rtol=1e-12)


def test_pickles_and_names_and_target(folder: Path) -> None:
    X = genotypes(10, 7, 0.0)
    naive_write_plink(folder / "small.bed", X, phenotype=np.arange(10) + 0.5)
    convert(folder / "small.bed", folder / "small.store")
    for design in (OnDisk(folder / "small.store"), PlinkBed(folder / "small.bed")):
        copy = pickle.loads(pickle.dumps(design))
        assert copy.feature_names == [f"rs{j}" for j in range(7)]
        assert_array_equal(copy.target, np.arange(10) + 0.5)
        assert "(10, 7)" in repr(copy)


# --- broken stores --------------------------------------------------------------------------------


def _made(folder: Path, sparse: bool = False) -> Path:
    X = sp.csc_array(_dense(40, 25) * (_dense(40, 25) > 5)) if sparse else _dense(40, 25)
    source, out = folder / "made.npz", folder / "made.store"
    sp.save_npz(source, X) if sparse else np.savez(source, X=X, y=np.arange(40.0))
    convert(source, out)
    return out


@pytest.mark.parametrize("sparse", [False, True])
def test_truncated_files_are_refused_when_opened(sparse: bool, tmp_path: Path) -> None:
    made = _made(tmp_path, sparse)
    for file in sorted(made.iterdir()):
        content = file.read_bytes()
        for length in (0, len(content) // 2, len(content) - 1):
            file.write_bytes(content[:length])
            with pytest.raises(StoreError, match=r"remove|again|broken"):
                OnDisk(made).verify()
        file.unlink()
        with pytest.raises(StoreError):
            OnDisk(made).verify()
        file.write_bytes(content)
    OnDisk(made).verify()


@pytest.mark.parametrize("sparse", [False, True])
def test_every_flipped_bit_is_found(sparse: bool, tmp_path: Path) -> None:
    made = _made(tmp_path, sparse)
    rng = np.random.default_rng(0)
    for file in sorted(made.iterdir()):
        good = file.read_bytes()
        for place in rng.integers(0, len(good), size=6).tolist():
            bad = bytearray(good)
            bad[place] ^= 1 << int(rng.integers(8))
            file.write_bytes(bytes(bad))
            with pytest.raises(StoreError):
                OnDisk(made).verify()
        file.write_bytes(good)
    OnDisk(made).verify()


def _sign(made: Path, *names: str, **change: object) -> None:
    """Change the manifest as a forger does, who writes checksums, too: of these files as well."""
    file = made / store.MANIFEST
    content = json.loads(file.read_text()) | change
    content.pop("crc32")
    for name in names:
        content["checksums"][name] = zlib.crc32((made / name).read_bytes())
    file.write_text(json.dumps({**content, "crc32": store.digest(content)}))


@pytest.mark.parametrize(
    "change",
    [
        {"n_samples": 41},
        {"n_samples": -40},
        {"n_samples": True},
        {"n_features": 0},
        {"n_chunks": 10**9},
        {"nonzeros": 2**61},
        {"dtype": "object"},
        {"layout": "pickle"},
        {"layout": ["dense"]},
        {"layout": "csc"},
        {"row_dtype": "int32"},
        {"checksums": {}},
        {"checksums": {"chunks.bin": 1, "../secret": 2}},
        {"checksums": None},
        {"version": 2},
        {"format": "else"},
    ],
    ids=str,
)
def test_manifests_with_a_valid_checksum_are_not_trusted(change: dict, tmp_path: Path) -> None:
    made = _made(tmp_path)
    _sign(made, **change)
    with pytest.raises(StoreError):
        OnDisk(made)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100_000, " " * 2**21])
def test_manifests_that_are_none(text: str, tmp_path: Path) -> None:
    made = _made(tmp_path)
    (made / store.MANIFEST).write_text(text)
    with pytest.raises(StoreError):
        OnDisk(made)


def test_rows_beyond_the_samples_never_reach_a_kernel(tmp_path: Path) -> None:
    made = _made(tmp_path, sparse=True)
    manifest = store.read_manifest(made)
    chunks, sums = store.read_chunks(made, manifest)
    rows = np.fromfile(made / store.ROWS, dtype=manifest.row_dtype)
    rows[3] = 10**6
    rows.tofile(made / store.ROWS)
    starts = store.read_starts(made, manifest)
    for k in range(manifest.n_chunks):
        part = rows[starts[chunks[k]] : starts[chunks[k + 1]]]
        sums[1, k] = zlib.crc32(part.tobytes())
    forged = chunks.astype("<i8").tobytes() + sums.astype("<u4").tobytes()
    (made / store.CHUNKS).write_bytes(forged)
    _sign(made, store.CHUNKS)
    design = OnDisk(made)
    for ask, given in (
        (design.scores, np.ones(40)),
        (design.gather, np.arange(25)),
        (design.predict, np.ones(25)),
    ):
        with pytest.raises(StoreError, match="row"):
            ask(given)


def test_a_store_cut_off_while_in_use_raises_and_does_not_end_the_process(tmp_path: Path) -> None:
    made = _made(tmp_path)
    design = OnDisk(made)
    design.scores(np.ones(40))
    os.truncate(made / store.VALUES, 100)
    with pytest.raises(StoreError, match="cut off while in use"):
        design.scores(np.ones(40))


def test_what_is_no_store_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="atomlearn convert"):
        as_design(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no file or folder"):
        as_design(tmp_path / "nothing.store")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="atomlearn convert"):
        as_design(tmp_path / "table.csv")


# --- broken PLINK files ---------------------------------------------------------------------------


def test_plink_files_that_do_not_fit_together(tmp_path: Path) -> None:
    bed = tmp_path / "a.bed"
    naive_write_plink(bed, genotypes(9, 6, 0.0))
    good = bed.read_bytes()
    for content, words in (
        (good[:-1], "cut off"),
        (good + b"\0", "cut off"),
        (good[:2], "not a PLINK"),
        (b"", "not a PLINK"),
        (b"\x6c\x1b\x00" + good[3:], "sample-major"),
        (b"PK\x03" + good[3:], "not a PLINK"),
    ):
        bed.write_bytes(content)
        with pytest.raises(StoreError, match=words):
            PlinkBed(bed)
    bed.write_bytes(good)
    bim = bed.with_suffix(".bim")
    lines = bim.read_text()
    fields = lines.splitlines()[0].split("\t")
    fields[3] = "9" * 30  # more than 64 bits hold
    bim.write_text("\t".join(fields) + lines[lines.index("\n") :])
    with pytest.raises(StoreError, match="position"):
        PlinkBed(bed)
    bim.write_text(lines.replace("rs3\t0", "rs3"))
    with pytest.raises(StoreError, match="line 4 of"):
        PlinkBed(bed)
    bim.unlink()
    with pytest.raises(FileNotFoundError, match=r"belongs to the \.bed"):
        PlinkBed(bed)


def test_phenotypes_and_windows(tmp_path: Path) -> None:
    bed = tmp_path / "a.bed"
    naive_write_plink(bed, genotypes(5, 45, 0.0), phenotype=np.array([1.0, 2.0, 0.0, 2.0, 1.0]))
    design = PlinkBed(bed)
    assert design.target is None  # 0 is unknown beside 1 and 2
    assert_array_equal(np.isnan(design.samples.phenotype), [False, False, True, False, False])
    groups = design.variants.windows(10_000)
    covered = np.concatenate(groups)
    assert set(covered.tolist()) == set(range(45))
    chromosomes = np.array(design.variants.chromosomes)
    for group in groups:
        assert np.unique(chromosomes[group]).size == 1
        assert np.ptp(design.variants.positions[group]) < 10_000


# --- memory ---------------------------------------------------------------------------------------

_LIMITED = """
import resource, sys
import numpy as np
from atomlearn.designs import OnDisk
from atomlearn import solve
y = np.random.default_rng(0).standard_normal(1000)
design = OnDisk(sys.argv[1])
solve(design, y, alpha=1e4 / y.size, fit_intercept=False)  # whatever is loaded late
now = int([l for l in open("/proc/self/status") if l.startswith("VmSize")][0].split()[1]) * 1024
resource.setrlimit(resource.RLIMIT_AS, (now + 48 * 2**20, -1))
result = solve(design, y, alpha=90.0 / y.size, fit_intercept=False)
assert result.converged, result.status
print(design.n_bytes)
"""


def test_a_store_three_times_the_memory_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("atomlearn.storage.conversion.writer", "atomlearn.storage.store.plink"):
        monkeypatch.setattr(f"{module}.READING", ReadingSizes(chunk_bytes=2**20))
    X = np.random.default_rng(0).standard_normal((20_000, 1000)).astype(np.float32)
    np.save(tmp_path / "x.npy", np.asfortranarray(X.T))
    convert(tmp_path / "x.npy", tmp_path / "x.store", memory=2**23)
    environment = os.environ | {"OMP_NUM_THREADS": "2", "MALLOC_ARENA_MAX": "2"}
    run = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(tmp_path / "x.store")],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) == X.nbytes


def test_more_copies_than_there_can_be(tmp_path: Path) -> None:
    write_plink(tmp_path / "g.bed", np.random.default_rng(0).integers(0, 3, (30, 8)).astype(float))
    made = tmp_path / "g.store"
    convert(tmp_path / "g.bed", made)
    counts = np.fromfile(made / store.COUNTS, dtype="<i8")
    for copies, fits in ((60, True), (61, False)):
        counts[0] = copies
        counts.tofile(made / store.COUNTS)
        _sign(made, store.COUNTS)
        with contextlib.nullcontext() if fits else pytest.raises(StoreError, match="cannot be"):
            OnDisk(made)


def test_verify_looks_at_what_was_read_before(tmp_path: Path) -> None:
    made = _made(tmp_path)
    design, v = OnDisk(made), np.ones(40)
    assert_allclose(design.scores(v).full(), _dense(40, 25).T @ v)
    design.verify()
    with (made / store.VALUES).open("r+b") as stream:
        stream.seek(1000)
        stream.write(b"damage!!")
    with pytest.raises(StoreError, match="checksum"):
        design.verify()


@pytest.mark.usefixtures("packed")
def test_a_cross_validation_over_packed_columns_beside_covariates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same choice and coefficients as of numbers in memory, by the search of large scores."""
    monkeypatch.setattr("atomlearn.core.paths.shared_levels.WHOLE", 0)
    rng = np.random.default_rng(0)
    X, known = genotypes(160, 60, 0.05), rng.standard_normal((160, 2))
    naive_write_plink(tmp_path / "some.bed", X)
    design = Standardized(PlinkBed(tmp_path / "some.bed"))
    array = np.hstack([design.gather(np.arange(60)).dense(), known])
    y = array[:, [3, 8, 61]].sum(axis=1) + rng.standard_normal(160)
    model = AtomicRegressorCV(n_alphas=12, tol=1e-9, unpenalized=[60, 61])
    found = clone(model).fit(Concatenated([design, as_design(known)]), y)
    expected = model.fit(array, y)
    assert found.alpha_ == pytest.approx(expected.alpha_, rel=1e-9)
    assert_allclose(found.coef_, expected.coef_, atol=1e-6)
    scores = "mean_test_score"
    assert_allclose(found.cv_results_[scores], expected.cv_results_[scores], rtol=1e-6)
