"""
Text: which words tell
======================

A column of free text becomes sparse columns, a word each; sparse stays sparse.
"""

import shlex
import subprocess
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

folder = Path(tempfile.mkdtemp())


def run(command):
    """Print a command, and what it prints."""
    words = shlex.split(command)
    told = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    print(f"$ {command}\n{told.stdout}")


rng = np.random.default_rng(0)
common = [
    first + last for first in ["ba", "ko", "ni", "du", "mi"] for last in ["lan", "rek", "tis"]
]
praise = ["excellent", "reliable", "quick", "friendly"]
blame = ["broken", "late", "refund", "rude"]
reviews, stars = [], []
for _ in range(800):
    good = rng.random() < 0.5
    told = rng.choice(praise if good else blame, rng.integers(0, 3))
    words = [*rng.choice(common, 12), *told]
    reviews.append(" ".join(rng.permutation(words)))
    stars.append("good" if good else "bad")
pd.DataFrame({"review": reviews, "stars": stars}).to_csv(folder / "reviews.csv", index=False)

# %%
# Without ``--text`` a column of free text is left out, and that is said.

run("atomlearn select reviews.csv --target stars --text review --n-features 8 --out words")

# %%
# The words, and which way they point.

found = pd.read_csv(folder / "words/selected.csv")
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
sizes = found["coefficient"]
ax.barh(found["feature"], sizes, color=["C3" if size < 0 else "C0" for size in sizes])
ax.invert_yaxis()
ax.set_xlabel("coefficient (to the right: good)")

# %%
# Next: :doc:`/implicit` (pairs of words, without forming them), :doc:`/data` (stores on disk).
