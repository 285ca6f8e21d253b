"""Changes are tried on a copy of the package: the tests must import that, not the install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_a_change_that_a_test_notices_is_killed_in_the_copy() -> None:
    command = [sys.executable, "-m", "tests.mutation", "--known", "--trusting"]
    done = subprocess.run(
        [*command, "--only", "lifting/trees"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    killed, imported, total = done.stdout.splitlines()
    assert killed.startswith("killed")
    assert imported.endswith("src/atomlearn/lifting/trees.py")
    assert str(ROOT) not in imported
    assert total == "1 of 1 killed"
