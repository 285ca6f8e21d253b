"""The blocks of README and tutorial need no package that their commands do not install."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

#: Refuses packages outside of a list, as if they were not installed, and runs the Python of a page.
RUNNER = """
import importlib.metadata, re, sys
page, *allowed = sys.argv[1:]
packages = importlib.metadata.packages_distributions()

class Absent:
    def find_spec(self, name, path=None, target=None):
        owners = packages.get(name.partition(".")[0], [])
        owners = {re.sub("[-_.]+", "-", owner).lower() for owner in owners}
        if owners and owners.isdisjoint(allowed):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return None

sys.meta_path.insert(0, Absent())
names = {}
text = open(page, encoding="utf-8").read()
for block in re.findall(r"^```python\\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
    exec(block, names)
"""


def plain(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def installed_by(command: str) -> set[str]:
    """Return the packages that ``pip install`` brings, with all that they depend on."""
    words = command.partition("#")[0].split()[2:]
    wanted = [Requirement(text) for text in PROJECT["dependencies"]]
    for word in words:
        if (extras := re.fullmatch(r'"\.\[(.*)\]"', word)) is not None:
            for extra in extras[1].split(","):
                wanted += map(Requirement, PROJECT["optional-dependencies"][extra])
        else:
            wanted.append(Requirement(word))
    found = {"atomlearn"}
    while wanted:
        name = plain(wanted.pop().name)
        if name in found:
            continue
        found.add(name)
        for text in metadata.requires(name) or []:
            needed = Requirement(text)
            if needed.marker is None or needed.marker.evaluate({"extra": ""}):
                wanted.append(needed)
    return found


@pytest.mark.parametrize("page", ["README.md", "docs/tutorial.md"])
def test_the_blocks_run_with_what_the_page_installs(page: str, tmp_path: Path) -> None:
    [command] = re.findall(r"^pip install .*", (ROOT / page).read_text(encoding="utf-8"), re.M)
    allowed = installed_by(command)
    assert "polars" not in allowed
    script = tmp_path / "runner.py"
    script.write_text(RUNNER, encoding="utf-8")
    words = [sys.executable, str(script), str(ROOT / page), *allowed]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env=os.environ | {"MPLBACKEND": "Agg"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_every_extra_of_the_readme_is_one() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| .* \| `(\w+)` \|$", text, re.MULTILINE)
    assert len(listed) >= 8
    assert set(listed) <= PROJECT["optional-dependencies"].keys()
