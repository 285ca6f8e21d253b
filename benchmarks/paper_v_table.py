"""[V]'s Table 1, California housing with all interactions: see paper_v, which has the methods."""

from __future__ import annotations

from benchmarks.paper_v import race, table_1

if __name__ == "__main__":
    race("paper_v_table", [table_1])
