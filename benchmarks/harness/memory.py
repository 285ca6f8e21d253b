"""Peak memory of this process (Linux): what was resident at most since the last reset."""

from __future__ import annotations

import re
from pathlib import Path


def reset_peak() -> None:
    """Forget the peak so far: the next one counts from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """Return the peak of resident memory in bytes."""
    return _status("VmHWM")


def resident_bytes() -> int:
    """Return the resident memory in bytes."""
    return _status("VmRSS")


def _status(key: str) -> int:
    text = Path("/proc/self/status").read_text()
    found = re.search(rf"^{key}:\s+(\d+) kB", text, re.MULTILINE)
    assert found is not None
    return 1024 * int(found[1])
