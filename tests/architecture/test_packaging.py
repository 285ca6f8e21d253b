"""What is published says one version, and carries what it needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

import atomlearn

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

if not (ROOT / "packaging").is_dir():
    pytest.skip("not a checkout: the files for packagers are not here", allow_module_level=True)


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("pyproject.toml", r'^version = "(.+)"$'),
        ("CITATION.cff", r"^version: (.+)$"),
        ("packaging/conda/recipe.yaml", r'^  version: "(.+)"$'),
    ],
)
def test_every_file_says_the_same_version(path: str, pattern: str) -> None:
    found = re.search(pattern, (ROOT / path).read_text(), re.MULTILINE)
    assert found is not None
    assert found.group(1) == atomlearn.__version__


def test_the_conda_recipe_asks_for_what_the_project_asks_for() -> None:
    recipe = (ROOT / "packaging/conda/recipe.yaml").read_text()
    run = recipe.split("  run:\n")[1].split("\n\n")[0]
    wanted = {line.strip(" -").replace(" ", "") for line in run.splitlines()} - {"python"}
    assert wanted == set(PROJECT["project"]["dependencies"])


def test_the_package_is_typed_and_its_sdist_leaves_out_what_is_ours_alone() -> None:
    assert (ROOT / "src/atomlearn/py.typed").is_file()
    assert ".github" in PROJECT["tool"]["scikit-build"]["sdist"]["exclude"]


def test_the_image_asks_for_extras_that_there_are() -> None:
    text = (ROOT / "packaging/Dockerfile").read_text()
    (extras,) = re.findall(r"/source\[([\w,]+)\]", text)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    for version in re.findall(r"^FROM python:(\S+)-slim", text, re.MULTILINE):
        assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]


@pytest.mark.parametrize("path", sorted((ROOT / ".github").rglob("*.yml")), ids=lambda p: p.name)
def test_the_files_of_the_forge_are_yaml(path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    read = yaml.safe_load(path.read_text(encoding="utf-8"))
    for job in read.get("jobs", {}).values():
        assert job["runs-on"]
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
