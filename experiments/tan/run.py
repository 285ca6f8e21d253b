"""[T]: the results behind Figures 1 to 17, at the sizes of config.json; processor seconds.

python -m experiments.tan.run [--smoke] [--resume] [part ...], the parts being those of config.json
"""

from __future__ import annotations

from experiments.common.run import main
from experiments.tan import groups, real, synthetic
from experiments.tan.theorems import theorems

PARTS = {
    "theorems": theorems,
    "inexact": synthetic.inexact,
    "small": synthetic.small,
    "shift": synthetic.shift,
    "large": synthetic.large,
    "density": synthetic.density,
    "times": synthetic.times,
    "sparse_times": synthetic.sparse_times,
    "mkl": synthetic.mkl,
    "real": real.real,
    "sensitivity": real.sensitivity,
    "polynomial": real.polynomial,
    "stored": real.stored,
    "real_products": real.real_products,
    "kddb": real.kddb,
    "group_times": groups.group_times,
    "group_race": groups.group_race,
    "groups": groups.groups,
    "kernels": groups.kernels,
    "trees": groups.trees,
    "optima": groups.optima,
}

if __name__ == "__main__":
    main(__file__, PARTS, __doc__)
