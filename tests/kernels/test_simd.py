"""ATOMLEARN_SIMD: which vector instructions the kernels use, and that all give the same answers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from atomlearn._kernels._native import simd

LEVELS = ["baseline", "avx2", "avx512"]
#: Tests that pass through every loop, and its last steps.
SHORT = "(small_shape or float32_data or stored or genotypes) and not threads"


def run(limit: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python under this limit: a process chooses when it loads the kernels."""
    environment = os.environ | {"ATOMLEARN_SIMD": limit}
    return subprocess.run(
        [sys.executable, *arguments], env=environment, capture_output=True, text=True, check=False
    )


def level_under(limit: str) -> str:
    done = run(limit, "-c", "from atomlearn._kernels._native import simd; print(simd())")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_no_more_instructions_are_used_than_the_limit_allows() -> None:
    best = level_under("")
    assert simd() in LEVELS[: LEVELS.index(best) + 1]  # this process may have a limit of its own
    for limit in LEVELS:
        assert level_under(limit) == min(limit, best, key=LEVELS.index)


def test_an_unknown_limit_is_refused_with_those_there_are() -> None:
    done = run("sse9", "-c", "from atomlearn._kernels import max_threads")
    assert done.returncode == 1
    assert 'ImportError: ATOMLEARN_SIMD must be baseline, avx2 or avx512, got "sse9"' in done.stderr


@pytest.mark.parametrize("limit", [level for level in LEVELS if level != simd()])
def test_kernels_agree_with_their_naive_twins_under_every_limit(limit: str) -> None:
    here = Path(__file__).parent
    files = [str(here / f"test_{name}_kernels.py") for name in ("dense", "stored")]
    options = ["-q", "-n", "0", "-p", "no:cacheprovider", "-k", SHORT]
    done = run(limit, "-m", "pytest", *options, "--rootdir", str(here.parents[1]), *files)
    assert done.returncode == 0, done.stdout[-3000:]
