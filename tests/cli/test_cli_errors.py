"""Every mistake gives one line with the remedy, exit code 2, and no traceback."""

from __future__ import annotations

import gzip
from inspect import signature
from pathlib import Path

import numpy as np
import pytest

from atomlearn import AtomicRegressor, FeatureGenerator, __version__, report
from atomlearn.cli import main
from atomlearn.cli.arguments import RunOptions
from atomlearn.cli.settings import SelectionSettings

GOOD = "a,b,label\n" + "".join(f"{i},{i * i % 7},{'yes' if i % 3 else 'no'}\n" for i in range(24))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    path.write_text(GOOD)
    return path


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """Run, expect exit code 2, return the one line that was printed."""
    assert main([str(argument) for argument in arguments]) == 2
    lines = capsys.readouterr().err.splitlines()
    errors = [line for line in lines if line.startswith("atomlearn: error: ")]
    assert len(errors) == 1
    assert errors[0] == lines[-1]
    assert "Traceback" not in "".join(lines)
    return errors[0]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--target", "lable"], "did you mean 'label'"),
        ([], "which column"),
        (["--target", "label", "--norm", "l3"], "unknown"),
        (["--target", "label", "--norm", "ksupport:k=0"], "at least 1"),
        (["--target", "label", "--norm", "ksupport:k=x"], "could not convert"),
        (["--target", "label", "--norm", "ksupport:20"], "ksupport:k=20"),
        (["--target", "label", "--norm", "ksupport:q=2"], "--norm 'ksupport:q=2'"),
        (["--target", "label", "--norm", "ksupport:k=1,2", "--alpha", "1"], "candidates"),
        (["--target", "label", "--norm", "ksupport", "--alpha", "1"], "has no k"),
        (["--target", "label", "--norm", "l1", "--n-features", "3"], "leave one of the two"),
        (["--target", "label", "--norm", "l1", "--cv", "--alpha", "1"], "leave one of the two"),
        (["--target", "label", "--one-se"], "--one-se goes with --norm"),
        (["--target", "label", "--additive", "--interactions"], "leave one of the two"),
        (["--target", "a", "--additive", "--covariates", "b"], "--covariates does not go with"),
        (["--target", "label", "--interactions", "--groups", "g"], "interactions of products"),
        (["--target", "label", "--stability", "--norm", "l1"], "leave one of the two"),
        (["--target", "label", "--loss", "squared"], "does not fit a classification"),
        (["--target", "a", "--task", "regression", "--loss", "logistic"], "does not fit a regr"),
        (["--target", "label", "--task", "regression"], "regression needs numbers"),
        (["--target", "label", "--positive", "maybe"], "its labels are 'no', 'yes'"),
        (["--target", "label", "--positive", "yes,no"], "leave a label out"),
        (["--target", "label", "--positive", "yes", "--task", "regression"], "--positive makes"),
        (["--target", "label", "--test-fraction", "0.01"], "holds out none"),
        (["--target", "label", "--drop", "c"], "no column 'c'"),
        (["--target", "label", "--n-features", "0"], "at least 1"),
        (["--target", "label", "--test-fraction", "1"], "share"),
        (["--target", "label", "--time-limit", "nan"], "positive"),
        (["--target", "label", "--seed", "-3"], "from 0"),
        (["--target", "label", "--frobnicate"], "unrecognized"),
        (["--target", "label", "--id", "label"], "'label' is the target, and can be nothing else"),
        (["--target", "a", "--weights", "a"], "'a' is the target"),
        (["--target", "label", "--out", ""], "--out: expected a name, got ''"),
        (["--target", "label", "--C", "1e300"], "too large for float64"),
        (["--target", "label", "--encoding", "rot13"], "is not rot13 text"),
        (["--target", "a", "--task", "classification"], "each class keeps a row"),
    ],
)
def test_wrong_options(
    data: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    expected: str,
) -> None:
    out = tmp_path / "out"
    assert expected in error_of(capsys, "select", data, "--out", out, *options)
    assert not (out / "model.json").exists()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "is empty"),
        ("a,label\n", "no data"),
        ("a,label\n1,x\n2\n", "line 3"),
        ("a,label\n1,x\n,y\n", "missing"),
        ("a,label\ninf,x\n2,y\n", "not finite"),
        ("a,label\n1,x\n2,x\n3,x\n", "same value"),
    ],
)
def test_wrong_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, expected: str
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(content)
    arguments = ("--target", "label", "--out", tmp_path / "out")
    assert expected in error_of(capsys, "select", path, *arguments)


def test_files_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A picture, a compressed table under a plain name: the file is named, with the remedy."""
    for content in (bytes(range(256)) * 9, gzip.compress(GOOD.encode())):
        path = tmp_path / "data.csv"
        path.write_bytes(content)
        arguments = ("--target", "label", "--out", tmp_path / "out")
        error = error_of(capsys, "select", path, *arguments)
        assert f"{path} is not UTF-8 or Windows-1252 text" in error
        assert "--encoding" in error


def test_missing_file_and_unknown_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = ("--out", tmp_path / "out", "--target", "y")
    assert "no file" in error_of(capsys, "select", tmp_path / "nowhere.csv", *out)
    (tmp_path / "data.xyz").write_bytes(b"\x00\x01")
    assert "format" in error_of(capsys, "select", tmp_path / "data.xyz", *out)
    np.savez(tmp_path / "d.npz", X=np.eye(3))
    arguments = ("select", tmp_path / "d.npz", "--out", tmp_path / "out")
    assert "has no target" in error_of(capsys, *arguments)


def test_no_pickle_is_ever_loaded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "d.npz", X=np.array([{"a": 1}], dtype=object), y=np.zeros(1))
    arguments = ("select", tmp_path / "d.npz", "--out", tmp_path / "out")
    assert "Object arrays cannot be loaded" in error_of(capsys, *arguments)


def test_out_is_a_file(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("select", data, "--target", "label", "--out", data)
    assert "is a file; give a folder" in error_of(capsys, *arguments)


def test_out_has_files_of_someone_else(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "theirs" / "selected.csv"
    theirs.parent.mkdir()
    theirs.write_text("mine")
    arguments = ("select", data, "--target", "label", "--out", theirs.parent)
    assert "has selected.csv, not written by atomlearn" in error_of(capsys, *arguments)
    assert theirs.read_text() == "mine"


def test_rare_class_and_cross_validation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(GOOD + "9,9,rare\n")
    arguments = ("--target", "label", "--norm", "l1", "--out", tmp_path / "out")
    assert "class 'rare' has 1 row" in error_of(capsys, "select", path, *arguments)


def test_predict_names_what_is_missing(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    arguments = ("--target", "label", "--n-features", "2", "--quiet", "--out", str(out))
    assert main(["select", str(data), *arguments]) == 0
    model = out / "model.json"
    narrow = tmp_path / "narrow.csv"
    narrow.write_text("a\n1\n2\n")
    assert "no column 'b'" in error_of(capsys, "predict", model, narrow)
    text = tmp_path / "text.csv"
    text.write_text("a,b\n1,x\n")
    assert "'x' on line 2" in error_of(capsys, "predict", model, text)
    assert "no file" in error_of(capsys, "predict", model, tmp_path / "none.csv")
    assert "none.json" in error_of(capsys, "predict", tmp_path / "none.json", data)
    assert "not a model file" in error_of(capsys, "predict", data, data)
    assert "no column 'name'" in error_of(capsys, "predict", model, data, "--id", "name")
    same = ("--out", tmp_path / "p.csv", "--explain", tmp_path / "p.csv")
    assert "two files, and both are" in error_of(capsys, "predict", model, data, *same)
    for place, said in ((tmp_path, "is the folder"), (tmp_path / "no" / "p.csv", "no folder")):
        error = error_of(capsys, "predict", model, data, "--out", place)
        assert said in error
        assert ".tmp" not in error, "the name is the one that was given"
    np.savez(tmp_path / "d.npz", X=np.eye(2), features=np.array(["a", "c"]))
    assert "no column 'b'" in error_of(capsys, "predict", model, tmp_path / "d.npz")
    huge = tmp_path / "huge.csv"
    huge.write_text("a,b\n1e308,1e308\n1,2\n")
    model_text = model.read_text()
    assert "not a finite" in error_of(capsys, "predict", _scaled(model, model_text), huge)


def _scaled(path: Path, text: str) -> Path:
    """Return a valid model whose coefficients are large enough to overflow."""
    import json

    content = json.loads(text)
    content["coefficients"] = [[1e10 for _ in row] for row in content["coefficients"]]
    other = path.with_name("large.json")
    other.write_text(json.dumps(content))
    return other


def test_debug_shows_the_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOMLEARN_DEBUG", "1")
    with pytest.raises(FileNotFoundError):
        main(["predict", str(tmp_path / "none.json"), "x.csv"])


def test_version_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"atomlearn {__version__}\n"
    for command in ([], ["select"], ["predict"], ["demo"]):
        assert main([*command, "--help"]) == 0
        text = capsys.readouterr().out
        assert "usage: atomlearn" in text
    assert main([]) == 2


def test_a_fault_of_our_own_is_one_line_with_a_code_of_its_own(monkeypatch, capsys) -> None:
    def fails(options: object) -> int:
        raise AssertionError("columns\nof different length")

    monkeypatch.setattr("atomlearn.cli.command_line._run", fails)
    assert main(["demo"]) == 70
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("atomlearn: internal error: AssertionError: columns of different length")
    assert "ATOMLEARN_DEBUG=1" in line
    monkeypatch.setenv("ATOMLEARN_DEBUG", "1")
    with pytest.raises(AssertionError):
        main(["demo"])


def test_the_help_says_what_each_value_is_and_the_defaults_of_python(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["select", "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    for option in ("out FOLDER", "groups FILE", "time-limit SECONDS", "memory-limit SIZE"):
        assert f"--{option}" in told
    plan, model = SelectionSettings(), FeatureGenerator(standardize=True)
    assert (plan.C, plan.gap, plan.standardize) == (model.C, model.tol, model.standardize)
    assert (0.5 * plan.gap, plan.gap) == (model.selected_tol, AtomicRegressor().tol)
    known = signature(report).parameters
    assert (RunOptions.test_fraction, plan.seed) == (
        known["test_fraction"].default,
        known["rng"].default,
    )
    for value in ("--n-features (default: auto: ", "to prove (default: 1e-6;"):
        assert value in told
