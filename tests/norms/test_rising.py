"""A norm of value, polar and best columns alone passes the suite."""

from atomlearn.core.norms.rising import Rising
from atomlearn.testing.norms import NormChecks


class TestRising(NormChecks):
    norm = Rising(0.5)
    n_features = 8
