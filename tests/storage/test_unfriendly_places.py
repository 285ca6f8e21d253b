"""Files that lie about their size, and places that take no files: one line, and nothing left."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import resource
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from atomlearn.cli import main
from atomlearn.datasets import convert, read
from atomlearn.designs import OnDisk
from atomlearn.storage.conversion import to_store
from atomlearn.storage.formats.held import LIMITS, check_declared, fits
from atomlearn.storage.intake import read as intake

CSV = "a,b,y\n" + "".join(f"{i // 2},{i * i % 7}.5,{i % 2}\n" for i in range(40))
PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def test_a_short_libsvm_file_does_not_ask_for_two_billion_columns(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 2000000000:1\n0 1:1\n")
    with pytest.raises(ValueError, match=r"2,000,000,001 columns and 2 entries.*index wrong"):
        read(path)
    with pytest.raises(ValueError, match="index wrong"):
        convert(path, tmp_path / "a.store")
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.svm"]


@pytest.mark.parametrize("ending", PACKED)
def test_compressed_text_cut_off_anywhere(ending, tmp_path):
    whole, path = PACKED[ending](CSV.encode()), tmp_path / f"t.csv{ending}"
    path.write_bytes(whole)
    assert read(path, "y").X.shape == (40, 2)
    for end in range(1, len(whole) - 1, 3):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match=r"^[^\n]*t\.csv[^\n]*$"):
            read(path, "y")


def test_an_npz_cut_off_anywhere(tmp_path):
    stream = io.BytesIO()
    np.savez_compressed(stream, X=np.eye(5), y=np.arange(5.0))
    path = tmp_path / "t.npz"
    for end in range(1, len(stream.getvalue()) - 1, 5):
        path.write_bytes(stream.getvalue()[:end])
        with pytest.raises(ValueError, match=r"^[^\n]*t\.npz[^\n]*$"):
            read(path)


@pytest.mark.parametrize("shape", [(2**40, 5), (2**62, 2**62), (10**30, 1), (-1, 5), (41, 5)])
def test_a_header_that_declares_more_than_there_is(shape, tmp_path):
    content = npy(np.ones((40, 5))).replace(b"(40, 5)", str(shape).encode())
    path = tmp_path / "t.npy"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^[^\n]*t\.npy[^\n]*$"):
        read(path)
    with zipfile.ZipFile(tmp_path / "t.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.npy", content)
    with pytest.raises(ValueError, match=r"^[^\n]*t\.npz[^\n]*$"):
        read(tmp_path / "t.npz")


def test_two_arrays_of_one_name(tmp_path):
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.writestr("X.npy", npy(np.eye(3)))
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("X.npy", npy(np.eye(4)))
    with pytest.raises(ValueError, match="two arrays of the same name"):
        read(tmp_path / "t.npz")


def test_declared_sizes_are_held_against_what_is_stored():
    check_declared("f", "it", 100, 100)
    check_declared("f", "it", LIMITS.piece_bytes, 1, LIMITS.unpacked)
    with pytest.raises(ValueError, match="f is damaged or cut off"):
        check_declared("f", "it", 101, 100)
    with pytest.raises(ValueError, match="damaged"):
        check_declared("f", "it", LIMITS.piece_bytes + 1, 1000, LIMITS.unpacked)
    with pytest.raises(ValueError, match="f does not fit in memory"):
        fits("f", "it", 2**60)


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_a_pipe_or_a_device_is_no_file(kind, tmp_path):
    path = tmp_path / "t.csv"
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(os.devnull)
    with pytest.raises(ValueError, match="no file but a pipe or a device"):
        read(path, "y")


@pytest.mark.parametrize("name", ["names.json", "values.bin", "chunks.bin", "manifest.json"])
def test_a_pipe_inside_a_store_is_not_waited_for(name, tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    convert(tmp_path / "t.csv", tmp_path / "t.store")
    (tmp_path / "t.store" / name).unlink()
    os.mkfifo(tmp_path / "t.store" / name)
    with pytest.raises(ValueError, match=r"missing|no file|not a column store"):
        _ = OnDisk(tmp_path / "t.store").names


def test_a_store_may_be_made_of_links_to_its_files(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    convert(tmp_path / "t.csv", tmp_path / "t.store", target="y")
    (tmp_path / "linked").mkdir()
    for file in (tmp_path / "t.store").iterdir():
        (tmp_path / "linked" / file.name).symlink_to(file)
    ours, theirs = OnDisk(tmp_path / "linked"), OnDisk(tmp_path / "t.store")
    np.testing.assert_array_equal(
        ours.scores(np.ones(40)).full(), theirs.scores(np.ones(40)).full()
    )


def test_a_fault_of_the_data_leaves_nothing_behind(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(CSV + "1,text,0\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="text"):
            convert(path, tmp_path / "t.store", target="y")
        assert [entry.name for entry in tmp_path.iterdir()] == ["t.csv"]


def test_a_folder_that_is_somebody_elses_is_not_cleared(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    theirs = tmp_path / "t.store.partial"
    theirs.mkdir()
    (theirs / "thesis.tex").write_text("three years")
    with pytest.raises(ValueError, match=r"thesis\.tex is no file of a conversion"):
        convert(tmp_path / "t.csv", tmp_path / "t.store")
    assert (theirs / "thesis.tex").read_text() == "three years"


def test_a_link_in_the_place_of_the_work_is_not_followed(tmp_path):
    (tmp_path / "t.csv").write_text(CSV)
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "values.bin").write_text("theirs")
    (tmp_path / "t.store.partial").symlink_to(tmp_path / "theirs")
    with pytest.raises(ValueError, match="is a link"):
        convert(tmp_path / "t.csv", tmp_path / "t.store")
    assert (tmp_path / "theirs" / "values.bin").read_text() == "theirs"


@contextlib.contextmanager
def files_end_at(most_bytes):
    """No file of this process grows beyond: a disk that is full."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def command(*arguments):
    return main([str(argument) for argument in arguments])


@pytest.fixture
def wide(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "t.npz", X=rng.normal(size=(200, 300)), y=rng.integers(0, 2, 200))
    return tmp_path / "t.npz"


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(wide, capsys):
    out = wide.with_name("t.store")
    with files_end_at(100_000):
        assert command("convert", wide, out) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "too large" in said
    assert not out.exists()
    assert command("convert", wide, out) == 0
    X = np.load(wide)["X"]
    np.testing.assert_allclose(OnDisk(out).gather(np.arange(300)).dense(), X)


def test_a_full_disk_leaves_no_empty_folder_of_results(wide, capsys):
    out = wide.with_name("results")
    with files_end_at(1):
        assert command("select", wide, "--n-features", 3, "--out", out / "a") == 2
    assert "Traceback" not in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(wide, capsys):
    wide.parent.chmod(0o555)
    try:
        code = command("convert", wide, wide.with_name("t.store"))
    finally:
        wide.parent.chmod(0o755)
    assert code == 2
    assert "permission" in capsys.readouterr().err.lower()


#: Two commands in one process: the second names a column that is not there.
FOREIGN = """
import sys
from atomlearn.cli import main
select = ["select", sys.argv[1], "--norm", "l1", "--alpha", "0.01", "--test-fraction", "0",
          "--out", sys.argv[2]]
assert main([*select, "--target", "y"]) == 0
sys.exit(main([*select, "--target", sys.argv[3]]))
"""


def test_names_that_the_locale_cannot_show(tmp_path):
    folder = tmp_path / "données"
    folder.mkdir()
    (folder / "tâble.csv").write_text(CSV.replace("a,b", "β,=b"), encoding="utf-8")
    out = folder / "sortie"
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN, str(folder / "tâble.csv"), str(out), "zé"],
        env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True, text=True, timeout=300, check=False,
        encoding="utf-8", errors="replace",
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    table = (out / "selected.csv").read_text(encoding="utf-8")
    assert "'=b" in table
    assert (out / "model.json").is_file()


def test_a_file_that_changes_while_it_is_read_is_no_table(wide, monkeypatch):
    def and_then(reader):
        def read_on(*given, **named):
            found = reader(*given, **named)
            os.utime(wide, ns=(1, 1))
            return found

        return read_on

    monkeypatch.setattr(intake, "read_matrix", and_then(intake.read_matrix))
    monkeypatch.setattr(to_store, "_transpose", and_then(to_store._transpose))
    with pytest.raises(ValueError, match="changed while it was read"):
        read(wide)
    os.utime(wide)
    with pytest.raises(ValueError, match="changed while it was read"):
        convert(wide, wide.with_name("t.store"))
    assert [entry.name for entry in wide.parent.iterdir()] == ["t.npz"]


@pytest.mark.parametrize("words", [["inspect"], ["predict"]])
def test_a_newline_in_a_name_leaves_one_line(words, wide, capsys, monkeypatch):
    monkeypatch.chdir(wide.parent)
    given = [*words, "a\nb.json", *(["t.npz"] if words == ["predict"] else [])]
    assert command(*given) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_pipe_is_no_model(wide, capsys):
    os.mkfifo(wide.with_name("model.json"))
    assert command("predict", wide.with_name("model.json"), wide) == 2
    assert "a folder, a pipe or a device" in capsys.readouterr().err
