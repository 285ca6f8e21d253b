"""No block of code on any page is one that nobody runs."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from atomlearn.cli.arguments import build_parser

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *DOCS.glob("*.md"), *DOCS.glob("papers/*.md")]


def blocks(page: Path, language: str) -> list[str]:
    """Return the fenced blocks of a language."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_languages_of_blocks_are_those_that_somebody_runs() -> None:
    """Others are pictures and what was printed; of R see below and test_pages."""
    known = {"python", "sh", "r", "text", ""}
    for page in PAGES:
        for mark in re.findall(r"^```([^`\n]*)$", page.read_text(encoding="utf-8"), re.MULTILINE):
            assert mark in known or mark.startswith("{"), (page.name, mark)


COMMANDS = [
    (page.name, line)
    for page in PAGES
    for block in blocks(page, "sh")
    for line in block.replace("\\\n", " ").splitlines()
    if line.startswith("atomlearn ")
]


@pytest.mark.parametrize(("page", "line"), COMMANDS)
def test_every_command_of_a_page_is_one_the_command_line_takes(page: str, line: str) -> None:
    given = build_parser().parse_args(shlex.split(line, comments=True)[1:])
    assert given.command == line.split()[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_from_page_to_page_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), target
    for target in re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", page.read_text("utf-8")):
        made = target.startswith("gallery/")
        at = ROOT / "examples" / f"{target}.py" if made else page.parent / f"{target}.md"
        exists = at.exists() or at.name == "index.py" or at.with_suffix(".rst").exists()
        assert exists, target


def _reticulate() -> bool:
    """Whether R can import this package: old reticulates do not take NumPy 2."""
    if shutil.which("Rscript") is None:
        return False
    lines = "library(reticulate); import('atomlearn'); reticulate::r_to_py(matrix(1.0))"
    return _r(lines).returncode == 0


def _r(lines: str) -> subprocess.CompletedProcess[str]:
    command = ["Rscript", "--vanilla", "-e", lines]
    environment = os.environ | {"RETICULATE_PYTHON": sys.executable}
    return subprocess.run(command, capture_output=True, text=True, env=environment)


def test_the_lines_of_reticulate_give_the_same_fit() -> None:
    from atomlearn import norms
    from tests.oracles.sums import solve_sum

    if not _reticulate():
        pytest.skip("R with a reticulate that takes this NumPy is not installed")
    (block,) = [b for b in blocks(DOCS / "interop.md", "r") if "library(reticulate)" in b]
    made = "X <- matrix(sin(1:6000), 200); y <- X[, 1] - 2 * X[, 3] + 0.1 * cos(1:200)\n"
    done = _r(made + block + "\ncat('coef', format(fit$coef, digits = 15))")
    assert done.returncode == 0, done.stderr
    coef = np.array(done.stdout.split("coef")[1].split(), dtype=float)
    X = np.sin(np.arange(1.0, 6001.0)).reshape(200, 30, order="F")
    y = X[:, 0] - 2 * X[:, 2] + 0.1 * np.cos(np.arange(1.0, 201.0))
    ours = solve_sum(X, y, norm=norms.KSupport(10), level=5.0, fit_intercept=True)
    np.testing.assert_allclose(coef, ours.coef, atol=1e-5)
