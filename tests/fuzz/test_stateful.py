"""Conversions and checkpoints under any order of kills, full disks, damage and changed sources."""

import errno
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from atomlearn import solvers
from atomlearn.datasets import convert
from atomlearn.designs import OnDisk
from tests.oracles.sums import solve_sum

FEW = settings(
    max_examples=int(os.environ.get("FUZZ_EXAMPLES", "6")),
    stateful_step_count=10,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
#: What a process asks of the system on the way to a file that is safely there.
CALLS = ("fsync", "replace", "rename", "open")


class Killed(BaseException):
    """As sudden as a kill: nothing catches it."""


class Failing:
    """Patch the system: the n-th call from now on fails, as a kill or as a full disk."""

    def __init__(self, after, full):
        self.left, self.full = after, full
        self.kept = {name: getattr(os, name) for name in CALLS}

    def __enter__(self):
        for name, call in self.kept.items():
            setattr(os, name, self._counted(call))

    def __exit__(self, *_):
        for name, call in self.kept.items():
            setattr(os, name, call)

    def _counted(self, call):
        def wrapped(*arguments, **named):
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.ENOSPC, "no space left on device") if self.full else Killed
            return call(*arguments, **named)

        return wrapped


class Conversions(RuleBasedStateMachine):
    """A store is the source as it was when its conversion ended, or it is not there."""

    @initialize(sparse=st.booleans())
    def begin(self, sparse):
        self.folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
        self.sparse, self.version, self.expected = sparse, 0, None
        self.source = self.folder / ("x.svm" if sparse else "x.csv")
        self.out = self.folder / "x.store"
        self.change()

    @rule()
    def change(self):
        """Another table of the same size under the same name."""
        self.version += 1
        rng = np.random.default_rng(self.version)
        self.X = np.round(rng.normal(size=(9, 4)), 2) + 0.001
        if self.sparse:
            rows = [" ".join(f"{j + 1}:{x}" for j, x in enumerate(row)) for row in self.X]
            text = "".join(f"{i % 2} {row}\n" for i, row in enumerate(rows))
        else:
            text = "a,b,c,d\n" + "".join(",".join(map(str, row)) + "\n" for row in self.X.tolist())
        self.source.write_text(text)
        os.utime(self.source, ns=(self.version, self.version * 10**9))

    @rule(after=st.integers(0, 40), full=st.booleans())
    def convert_and_fail(self, after, full):
        self.convert(Failing(after, full))

    @rule()
    def convert_again(self):
        self.convert(None)

    def convert(self, failing):
        if self.out.exists():
            return
        try:
            if failing is None:
                convert(self.source, self.out)
            else:
                with failing:
                    convert(self.source, self.out)
        except (Killed, OSError):
            assert failing is not None
        # A kill right behind the last step leaves a whole store.
        if self.out.exists():
            self.expected = self.X.copy()

    @rule(place=st.integers(0, 10**6), what=st.sampled_from(["journal.json", "values.bin"]))
    def damage_the_journal(self, place, what):
        file = self.folder / "x.store.partial" / "journal.json"
        if what == "journal.json" and file.is_file() and file.stat().st_size:
            content = bytearray(file.read_bytes())
            content[place % len(content)] ^= 1 << place % 8
            file.write_bytes(content)

    @rule()
    def remove(self):
        if self.out.exists():
            shutil.rmtree(self.out)
            self.expected = None

    @invariant()
    def a_store_is_whole_and_right(self):
        if getattr(self, "expected", None) is not None:
            design = OnDisk(self.out)
            design.verify()
            np.testing.assert_array_equal(design.gather(np.arange(4)).dense(), self.expected)

    def teardown(self):
        shutil.rmtree(self.folder, ignore_errors=True)


class Checkpoints(RuleBasedStateMachine):
    """Whatever happens to a checkpoint: the same answer, or one line that says to remove it."""

    @initialize()
    def begin(self):
        rng = np.random.default_rng(0)
        self.folder = Path(tempfile.mkdtemp())
        self.X, self.y = rng.normal(size=(20, 6)), rng.normal(size=20)
        self.best = solve_sum(self.X, self.y, level=0.5, tol=1e-10).objective
        self.is_damaged = False

    def go_on(self, steps):
        return solve_sum(self.X, self.y, level=0.5, tol=1e-8, max_iter=steps,
                     observers=[solvers.Checkpoint(self.folder, every_s=0)])  # fmt: skip

    @rule(steps=st.integers(0, 30))
    def solve_some(self, steps):
        try:
            result = self.go_on(steps)
        except ValueError as error:
            said = str(error)
            assert self.is_damaged, said
            assert "remove it" in said, said
            assert "\n" not in said
            (self.folder / "checkpoint.npz").unlink()
            self.is_damaged = False
            return
        assert result.objective - self.best <= result.gap + 1e-12
        assert result.objective >= self.best - 1e-9
        self.is_damaged = False

    @rule(after=st.integers(0, 12), full=st.booleans())
    def solve_and_fail(self, after, full):
        if self.is_damaged:
            return
        try:
            with Failing(after, full):
                self.go_on(30)
        except (Killed, OSError):
            pass

    @rule(place=st.integers(0, 10**6), cut=st.booleans())
    def damage(self, place, cut):
        file = self.folder / "checkpoint.npz"
        if file.is_file() and file.stat().st_size:
            content = bytearray(file.read_bytes())
            place %= len(content)
            content[place] ^= 1 << place % 8
            file.write_bytes(content[:place] if cut else content)
            self.is_damaged = True

    def teardown(self):
        shutil.rmtree(self.folder, ignore_errors=True)


TestConversions = Conversions.TestCase
TestConversions.settings = FEW
TestCheckpoints = Checkpoints.TestCase
TestCheckpoints.settings = FEW
