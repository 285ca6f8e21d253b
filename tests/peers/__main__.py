"""Run the tests of other packages on our estimators, and count them.

python -m tests.peers                 all of them
python -m tests.peers skglm celer     some packages

scikit-learn's tests are installed with it. skglm, celer and what they compile with are put into
``build/peers``, beside the environment, which stays as it is.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ROOT / "build" / "peers"
#: The files of tests of each package, from its folder on.
FILES = {
    "sklearn": (
        "linear_model/tests/test_coordinate_descent.py",
        "linear_model/tests/test_logistic.py",
        "linear_model/tests/test_quantile.py",
        "linear_model/_glm/tests/test_glm.py",
        "feature_selection/tests/test_from_model.py",
    ),
    "skglm": ("tests/test_estimators.py",),
    "celer": (
        "tests/test_lasso.py",
        "tests/test_enet.py",
        "tests/test_logreg.py",
        "tests/test_mtl.py",
    ),
}
#: Their versions, with those of numba and llvmlite, which they compile with.
PACKAGES = ("skglm==0.5", "celer==0.7.4", "numba==0.68.1", "llvmlite==0.50.0")


def install() -> None:
    """Put the packages into ``build/peers``, unless they are there."""
    if not all((TARGET / name.partition("==")[0]).exists() for name in PACKAGES):
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        subprocess.run([*pip, "--no-deps", "--target", str(TARGET), *PACKAGES], check=True)


def folder_of(peer: str) -> Path:
    """Return the folder of an installed package."""
    if (TARGET / peer).exists():
        return TARGET / peer
    found = importlib.util.find_spec(peer)
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def run(peer: str, options: list[str]) -> int:
    """Run the tests of a package; return pytest's exit status."""
    folder = folder_of(peer)
    paths = [str(ROOT), str(TARGET)]
    variables = {"ATOMLEARN_PEER": peer, "PYTHONPATH": os.pathsep.join(paths)}
    files = [str(folder / file) for file in FILES[peer]]
    quiet = ["-q", "--no-header", "-W", "ignore", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", "-p", "tests.peers.plugin", *quiet]
    # Neither our settings of pytest nor theirs, and no folder "tests" of either in the way.
    command += ["-c", os.devnull, "--rootdir", str(folder), *options, *files]
    TARGET.mkdir(parents=True, exist_ok=True)
    print(f"{peer}: its tests on our estimators", flush=True)
    return subprocess.run(command, env={**os.environ, **variables}, cwd=TARGET).returncode


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.peers", description=__doc__)
    parser.add_argument("peers", nargs="*", choices=[*FILES, []], help="all if none is named")
    given, options = parser.parse_known_args()
    peers = given.peers or list(FILES)
    if set(peers) - {"sklearn"}:
        install()
    return max(run(peer, options) for peer in peers)


if __name__ == "__main__":
    sys.exit(main())
