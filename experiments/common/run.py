"""How an experiment is started: python -m experiments.<paper>.run [--smoke] [part ...]"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments.common.claims import Record

Part = Callable[[Record, Mapping[str, Any]], None]


def main(file: str, parts: Mapping[str, Part], description: str | None) -> None:
    """Run the parts named, or all, at the sizes of config.json."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--smoke", action="store_true", help="small sizes, in seconds")
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(parts)}")
    arguments = parser.parse_args()
    directory = Path(file).resolve().parent
    config = json.loads((directory / "config.json").read_text())
    sizes = config["smoke" if arguments.smoke else "full"]
    record = Record(directory, arguments.smoke)
    for name in arguments.parts or parts:
        parts[name](record, sizes[name])
