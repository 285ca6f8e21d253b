"""[T]: Figures 1 to 17, at the sizes of config.json; seconds of the processor, one thread.

python -m experiments.tan.run [--smoke] [inexact synthetic large density shift real sensitivity
                                         polynomial groups kernels trees optima]
"""

from __future__ import annotations

from experiments.common.run import main
from experiments.tan import groups, real, synthetic

PARTS = {
    "inexact": synthetic.inexact,
    "synthetic": synthetic.comparison,
    "large": synthetic.comparison,
    "density": synthetic.density,
    "shift": synthetic.shift,
    "real": real.comparison,
    "sensitivity": real.sensitivity,
    "polynomial": real.polynomial,
    "groups": groups.comparison,
    "kernels": groups.kernels,
    "trees": groups.trees,
    "optima": groups.optima,
}

if __name__ == "__main__":
    main(__file__, PARTS, __doc__)
