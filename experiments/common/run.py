"""How an experiment is started: python -m experiments.<paper>.run [--smoke] [--resume] [part]"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from experiments.common.runs import Runs

Part = Callable[[Runs, Mapping[str, Any]], None]


def main(file: str, parts: Mapping[str, Part], description: str | None) -> None:
    """Run the parts named, or all, at the sizes of config.json, and keep what they find."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--smoke", action="store_true", help="small sizes, in seconds")
    parser.add_argument("--resume", action="store_true", help="make only what is not kept yet")
    parser.add_argument("parts", nargs="*", help=f"some of {', '.join(parts)}")
    arguments = parser.parse_args()
    directory = Path(file).resolve().parent
    config = json.loads((directory / "config.json").read_text())
    sizes = config["smoke" if arguments.smoke else "full"]
    runs = Runs(directory, arguments.smoke, arguments.resume)
    for name in arguments.parts or parts:
        try:
            parts[name](runs, sizes[name])
        except FileNotFoundError as error:
            print(f"{name} left out: {error}", flush=True)
