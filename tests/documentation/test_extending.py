"""The classes of docs/extending.md pass the suites that the page says they have to."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "extending.md"
# What comes after these parts adds to lists of the package, which other tests go through.
_PARTS = PAGE.read_text(encoding="utf-8").split("(own-map)=")[0]
exec("".join(re.findall(r"^```python\n(.*?)^```", _PARTS, re.MULTILINE | re.DOTALL)))
