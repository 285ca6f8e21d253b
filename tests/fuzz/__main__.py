"""python -m tests.fuzz -n 10000: so many mutated files in all, shared between the formats."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.fuzz.campaign import campaign
from tests.fuzz.corpus import targets


def main() -> int:
    """Run; return 1 where a reader broke the rule."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("-n", type=int, default=10_000, help="mutated files in all")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--only", help="names of targets that contain this")
    parser.add_argument("--show", type=int, default=3, help="faults to show of each kind")
    options = parser.parse_args()
    names = [name for name in targets() if options.only is None or options.only in name]
    share = max(1, options.n // max(len(names), 1))
    total: Counter[str] = Counter()
    for name in names:
        began = time.monotonic()
        counts, faults = campaign(name, share, options.seed)
        total += counts
        print(f"{name:<20} {dict(counts)} {time.monotonic() - began:.1f} s", flush=True)
        kinds = Counter((where, what[:50]) for _, where, what in faults)
        for kind, count in kinds.most_common():
            seeds = [seed for seed, where, what in faults if (where, what[:50]) == kind]
            what = next(what for _, where, what in faults if (where, what[:50]) == kind)
            print(f"    {count} x {kind[0]}: {what}  seeds {seeds[: options.show]}", flush=True)
    print(f"in all {dict(total)}")
    return int(total["impolite"] + total["crashed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
