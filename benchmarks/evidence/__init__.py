"""How often verdicts, error bounds and intervals are right, on data whose truth is known.

    python -m benchmarks.evidence --draws 200
    python -m benchmarks.evidence --draws 200 --only knockoffs --out benchmarks/results/evidence.csv
    python -m benchmarks.evidence --list

Every module of this package adds settings with ``setting`` (``settings.py``); the table has a row
for each figure of a setting, with its standard error over draws.
"""
