"""Checkpoints: killed anywhere a solve goes on to the same answer; those of others are refused."""

from __future__ import annotations

import io
import json
import os
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray

from atomlearn import designs, norms, solvers
from atomlearn.core import Progress
from atomlearn.core.solvers import checkpoint
from atomlearn.core.solvers.fingerprint import fingerprint
from atomlearn.losses import Squared
from atomlearn.paths import path
from atomlearn.problem import Problem, Regularizer
from atomlearn.solvers import Checkpoint
from tests.oracles.sums import solve_sum

Array = NDArray[np.float64]


def _data(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 90))
    return X, X[:, :8].sum(axis=1) + 0.3 * rng.standard_normal(60)


class _Killed(BaseException):
    """What a kill looks like to the code: nothing may tidy up after it."""


class _Kill:
    def __init__(self, after: int) -> None:
        self.after = after

    def __call__(self, progress: Progress) -> None:
        if progress.state.iteration >= self.after:
            raise _Killed


CASES: list[tuple[solvers.ColumnGeneration | Any, norms.L1 | Any, str, dict[str, Any]]] = [
    (solvers.ColumnGeneration(batch=3), norms.L1(), "penalized", {"level": 3.0}),
    (solvers.ColumnGeneration(batch=3), norms.KSupport(4), "squared", {"level": 3.0}),
    (solvers.ColumnGeneration(batch=1), norms.L1(), "constrained", {"radius": 6.0}),
    (solvers.AtomGeneration(), norms.L1(), "penalized", {"level": 8.0}),
]


@pytest.mark.parametrize(
    ("solver", "norm", "form", "amount"), CASES, ids=lambda case: type(case).__name__
)
@pytest.mark.parametrize("kill_after", [0, 1, 3])
def test_killed_and_resumed_is_the_same_answer(
    solver: Any, norm: Any, form: Any, amount: dict[str, float], kill_after: int, tmp_path: Path
) -> None:
    assert_resumes(solver, norm, form, amount, kill_after, tmp_path)


def assert_resumes(
    solver: Any, norm: Any, form: Any, amount: dict[str, float], kill_after: int, tmp_path: Path
) -> None:
    X, y = _data()
    kind: dict[str, Any] = {"norm": norm, "form": form, "solver": solver, "fit_intercept": True}
    kind |= {"tol": 1e-8, "max_iter": 5000, **amount}
    whole = solve_sum(X, y, **kind)
    assert whole.converged
    assert whole.iterations > kill_after
    keep = Checkpoint(tmp_path, every_s=0)
    with pytest.raises(_Killed):
        solve_sum(X, y, **kind, observers=[keep, _Kill(kill_after)])
    resumed = solve_sum(X, y, **kind, observers=[Checkpoint(tmp_path, every_s=0)])
    assert resumed.converged
    assert_allclose(resumed.objective, whole.objective, rtol=2e-8)
    assert_array_equal(np.abs(resumed.coef) > 1e-5, np.abs(whole.coef) > 1e-5)
    iterations = [record.iteration for record in resumed.history]
    assert iterations == list(range(len(iterations)))
    passes = [record.passes for record in resumed.history]
    assert passes == sorted(passes)
    assert resumed.passes >= kill_after


def test_what_is_done_resumes_in_one_pass_and_goes_further(tmp_path: Path) -> None:
    X, y = _data()
    first = solve_sum(X, y, level=3.0, tol=1e-3, observers=[Checkpoint(tmp_path)])
    again = solve_sum(X, y, level=3.0, tol=1e-3, observers=[Checkpoint(tmp_path)])
    assert again.iterations == first.iterations
    assert again.passes == first.passes + 1
    assert len(again.history) == len(first.history)
    assert_allclose(again.weights, first.weights, rtol=1e-12, atol=1e-14)
    further = solve_sum(X, y, level=3.0, tol=1e-9, observers=[Checkpoint(tmp_path)])
    assert further.converged
    assert further.relative_gap <= 1e-9


def _other(change: str) -> dict[str, Any]:
    X, y = _data()
    kind: dict[str, Any] = {"X": X, "y": y, "norm": norms.KSupport(3), "level": 3.0}
    changed: dict[str, Any] = {
        "y": y + 1e-12,
        "X": np.where(np.arange(90) == 0, X + 1e-3, X),
        "norm": norms.KSupport(4),
        "level": 3.0000001,
        "tau": 0.1,
        "fit_intercept": True,
        "sample_weight": np.linspace(1, 2, 60),
        "loss": "squared_hinge",
        "form": "squared",
    }
    if change == "shape":
        return kind | {"X": X[:, :80]}
    if change == "loss":
        kind["y"] = np.sign(y)
    return kind | {change: changed[change]}


CHANGES = [
    "y",
    "X",
    "norm",
    "level",
    "tau",
    "fit_intercept",
    "sample_weight",
    "loss",
    "form",
    "shape",
]


@pytest.mark.parametrize("change", CHANGES)
def test_checkpoints_of_other_problems_are_refused(change: str, tmp_path: Path) -> None:
    X, y = _data()
    target = np.sign(y) if change == "loss" else y
    kind: dict[str, Any] = {"norm": norms.KSupport(3), "level": 3.0}
    solve_sum(X, target, **kind, observers=[Checkpoint(tmp_path)])
    other = _other(change)
    with pytest.raises(ValueError, match=r"another (problem|data).*remove it"):
        solve_sum(other.pop("X"), other.pop("y"), **other, observers=[Checkpoint(tmp_path)])
    solve_sum(X, target, **kind, observers=[Checkpoint(tmp_path)])


class _OfOtherStates(solvers.ColumnGeneration):
    state_format: ClassVar[str] = "other states"


def test_other_solvers_and_broken_files_are_refused(tmp_path: Path) -> None:
    X, y = _data()
    kind: dict[str, Any] = {"norm": norms.KSupport(3), "level": 3.0, "form": "squared"}
    solve_sum(X, y, **kind, observers=[Checkpoint(tmp_path)])
    with pytest.raises(ValueError, match="solver"):
        solve_sum(X, y, **kind, solver=_OfOtherStates(), observers=[Checkpoint(tmp_path)])
    file = tmp_path / "checkpoint.npz"
    good = file.read_bytes()
    # A name in its first header that is longer than it is: the error of zipfile repeats all of it.
    long = good[:26] + b"\xff\x0f" + good[28:]
    for bad in (b"", b"PK", good[:-30], good[: len(good) // 2], b"\x80\x04]." * 30, long):
        file.write_bytes(bad)
        with pytest.raises(ValueError, match="remove it to begin afresh") as caught:
            solve_sum(X, y, **kind, observers=[Checkpoint(tmp_path)])
        assert len(str(caught.value)) < 500
    with zipfile.ZipFile(io.BytesIO(good)) as whole, zipfile.ZipFile(file, "w") as damaged:
        for name in whole.namelist():
            content = b"no array" if name == "state_columns.npy" else whole.read(name)
            damaged.writestr(name, content)
    with pytest.raises(ValueError, match="a part of it is no array"):
        solve_sum(X, y, **kind, observers=[Checkpoint(tmp_path)])
    np.savez(file, about=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="remove it to begin afresh"):
        solve_sum(X, y, **kind, observers=[Checkpoint(tmp_path)])


def test_paths_keep_one_file_a_level(tmp_path: Path) -> None:
    X, y = _data()
    keep = (Checkpoint(tmp_path, every_s=0, many=True),)
    solver = solvers.ColumnGeneration()
    found = path(X, y, norm="l1", n_alphas=4, solver=solver, observers=keep, fit_intercept=False)
    assert len(list(tmp_path.glob("*.npz"))) == 4
    assert_allclose(
        path(
            X, y, norm="l1", n_alphas=4, solver=solver, observers=keep, fit_intercept=False
        ).objectives,
        found.objectives,
        rtol=1e-6,
    )


def digest(norm: Any) -> str:
    X, y = _data()
    penalty = Regularizer(norm, "penalized", 1.0)
    return fingerprint(Problem.build(designs.as_design(X), y, Squared(), penalty))


def test_equal_norms_have_equal_fingerprints() -> None:
    assert digest(norms.KSupport(3)) == digest(norms.KSupport(3))
    assert digest(norms.Scaled(norms.L1(), 2.0)) != digest(norms.Scaled(norms.L1(), 3.0))


def test_a_write_that_fails_halfway_leaves_the_checkpoint_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _data()
    keep = Checkpoint(tmp_path)
    first = solve_sum(X, y, level=3.0, tol=1e-3, observers=[keep])
    whole = Path.open

    def half(path: Path, mode: str = "r", *rest: Any, **named: Any) -> Any:
        stream = whole(path, mode, *rest, **named)
        if "w" not in mode:
            return stream

        class Full:
            def __enter__(self) -> Full:
                return self

            def __exit__(self, *error: object) -> None:
                stream.close()

            def write(self, content: Any) -> None:
                stream.write(bytes(content)[: len(content) // 2])
                stream.flush()
                raise OSError("no space left on the device")

        return Full()

    monkeypatch.setattr(Path, "open", half)
    with pytest.raises(OSError, match="no space"):
        solve_sum(X, y, level=3.0, tol=1e-9, observers=[Checkpoint(tmp_path)])
    monkeypatch.undo()
    again = solve_sum(X, y, level=3.0, tol=1e-3, observers=[Checkpoint(tmp_path)])
    assert again.iterations == first.iterations
    assert again.passes == first.passes + 1


def test_checkpoints_are_written_once_an_interval(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = _data()
    now, written = [0.0], []
    monkeypatch.setattr(checkpoint, "time", SimpleNamespace(monotonic=lambda: now[0]))
    replacing = os.replace

    def counted(source: Any, target: Any) -> None:
        written.append(now[0])
        replacing(source, target)

    monkeypatch.setattr(os, "replace", counted)

    def tick(progress: Progress) -> None:
        now[0] += 1.0

    keep = Checkpoint(tmp_path, every_s=3.0)
    kind: dict[str, Any] = {"level": 0.05, "tol": 1e-12, "max_iter": 10}
    result = solve_sum(
        X, y, solver=solvers.ColumnGeneration(batch=1), observers=[tick, keep], **kind
    )
    assert result.iterations == 10
    # After 3, 6 and 9 of the 11 points, and at the end.
    assert written == [3.0, 6.0, 9.0, 11.0]


class _Huberized(Squared):
    """A user's own loss, whose parameter is nowhere but in an attribute."""

    def __init__(self, delta: float) -> None:
        self._delta = delta


class _Remembering(norms.L1):
    """A user's own norm that remembers something: no parameter of it."""

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight
        self._memo: dict[str, float] = {}


def test_losses_and_norms_of_a_user_are_told_apart_by_their_parameters(tmp_path: Path) -> None:
    X, y = _data()
    solve_sum(X, y, loss=_Huberized(1.0), level=3.0, observers=[Checkpoint(tmp_path)])
    solve_sum(X, y, loss=_Huberized(1.0), level=3.0, observers=[Checkpoint(tmp_path)])
    with pytest.raises(ValueError, match="of another problem"):
        solve_sum(X, y, loss=_Huberized(2.0), level=3.0, observers=[Checkpoint(tmp_path)])
    plain = Regularizer(norms.L1(), "penalized", 1.0)
    task, digests = Problem.build(designs.as_design(X), y, Squared(), plain), []
    for norm in (_Remembering(1.0), _Remembering(1.0), _Remembering(2.0)):
        norm._memo["polar"] = float(len(digests))
        penalty = Regularizer(norm, "penalized", 1.0)
        digests.append(fingerprint(replace(task, regularizer=penalty)))
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("key", ["format", "version"])
def test_checkpoints_of_another_format_or_version_alone_are_refused(
    key: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 600)), rng.standard_normal(20)
    solve_sum(X, y, norm="l1", level=3.0, observers=[Checkpoint(tmp_path)])
    [file] = tmp_path.glob("*.npz")
    with np.load(file) as held:
        arrays = dict(held)
    about = json.loads(arrays["about"].item())
    about[key] = "another"
    np.savez(file, **(arrays | {"about": np.array(json.dumps(about))}))
    with pytest.raises(ValueError, match=r"cannot be read .*another.*remove it"):
        solve_sum(X, y, norm="l1", level=3.0, observers=[Checkpoint(tmp_path)])
