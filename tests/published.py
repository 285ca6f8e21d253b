"""The package as users will get it: python -m tests.published [PYTHON ...].

The source archive is built from a tree without its history, a wheel from that archive for each
Python, and each wheel is installed into an empty environment where no compiler can be called.
There ``atomlearn demo`` must run. Without arguments: every supported Python on the path.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
#: A wheel may have this size, in bytes.
LARGEST = 15_000_000


def main(arguments: list[str]) -> int:
    """Build, install and run for each Python; return how many of them failed."""
    pythons = arguments or supported()
    if not pythons:
        raise SystemExit("no supported Python is on the path; name one as an argument")
    failed = []
    with TemporaryDirectory() as name:
        folder = Path(name)
        archive = source_archive(folder)
        print(f"{archive.name}: {archive.stat().st_size:,} bytes", flush=True)
        for number, python in enumerate(pythons):
            try:
                print(f"{python}: {installed(python, archive, folder / str(number))}", flush=True)
            except (subprocess.CalledProcessError, ValueError) as error:
                failed.append(python)
                print(f"{python}: {error}", flush=True)
    print("failed:", ", ".join(failed) or "none")
    return len(failed)


def supported() -> list[str]:
    """Return the commands of the supported Pythons that start on this machine."""
    prefix = "Programming Language :: Python :: 3."
    minor = [line[len(prefix) :] for line in PROJECT["classifiers"] if line.startswith(prefix)]
    found = []
    for name in [f"python3.{number}" for number in minor]:
        path = shutil.which(name)
        if path and starts(path):
            found.append(path)
    return found


def starts(python: str) -> bool:
    """Return whether this Python runs: a version manager has commands of absent versions, too."""
    return not subprocess.run([python, "-c", ""], capture_output=True, check=False).returncode


def source_archive(folder: Path) -> Path:
    """Return the source archive, built from the files of the tree without its history."""
    listed = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT, text=True)
    tree = folder / "tree"
    for name in filter(None, listed.split("\0")):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    builder = environment(folder / "builder", sys.executable)
    pip(builder, "install", "scikit-build-core>=0.10")
    code = "import scikit_build_core.build as build; build.build_sdist('../sdist')"
    subprocess.run([str(builder), "-c", code], cwd=tree, check=True, capture_output=True)
    return next((folder / "sdist").glob("*.tar.gz"))


def installed(python: str, archive: Path, folder: Path) -> str:
    """Build the wheel, install it where nothing compiles, run the demo; return what was seen."""
    builder = environment(folder / "build", python)
    pip(builder, "wheel", "--no-deps", "--wheel-dir", str(folder), str(archive))
    wheel = next(folder.glob("*.whl"))
    size = wheel.stat().st_size
    if size > LARGEST:
        raise ValueError(f"{wheel.name} has {size:,} bytes; expected at most {LARGEST:,}")
    user = environment(folder / "empty", python)
    pip(user, "install", f"{wheel}[report]", CC="false", CXX="false")
    command = [str(user.parent / "atomlearn"), "demo"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    if not (folder / "atomlearn-demo" / "report.html").is_file():
        raise ValueError("atomlearn demo wrote no report")
    return f"{wheel.name}, {size:,} bytes; demo ran"


def environment(folder: Path, python: str) -> Path:
    """Make an empty virtual environment, and return its Python."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    return folder / "bin" / "python"


def pip(python: Path, *arguments: str, **variables: str) -> None:
    """Run pip; its words appear where it fails."""
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, env=os.environ | variables, check=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
