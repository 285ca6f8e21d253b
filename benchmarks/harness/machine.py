"""What was measured on: the kind of machine and the versions. No names, no paths."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

LIBRARIES = (
    "atomlearn", "numpy", "scipy", "scikit-learn",
    "celer", "skglm", "adelie", "glum", "scikit-survival", "numba", "modopt", "cvxpy", "clarabel",
    "torch", "glmstar", "pybiglasso",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Processor, cores, memory, threads asked for, and how busy it is right now."""
    return {
        "processor": _line("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(_memory() / 2**30, 1),
        "system": platform.system(),
        "python": platform.python_version(),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "not set"),
        "load": round(os.getloadavg()[0], 2),
    }


def libraries() -> dict[str, str]:
    """Versions of what is installed of the libraries that take part."""
    found = {}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def commit() -> str:
    """Return the commit that is measured, "-dirty" where files of it were changed."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return described.stdout.strip() or "not a git checkout"


def _line(path: str, key: str) -> str:
    try:
        lines = Path(path).read_text().splitlines()
    except OSError:
        return ""
    return next((x.split(":", 1)[1].strip() for x in lines if x.startswith(key)), "")


def _memory() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
