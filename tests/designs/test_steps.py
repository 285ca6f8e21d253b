"""A design of shape, dtype, scores and gather alone passes the suite."""

import numpy as np

from atomlearn.interfaces import Design
from atomlearn.storage.steps import StepDesign, Steps
from atomlearn.testing.designs import DesignChecks


class TestSteps(DesignChecks):
    def build(self) -> tuple[Design, np.ndarray]:
        return StepDesign(Steps(20)), np.tril(np.ones((20, 20)))
