"""Settings of the whole suite: Hypothesis tries the same examples in each run.

``HYPOTHESIS_PROFILE=drawn`` draws others, and many more.
"""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("same", max_examples=40, derandomize=True, deadline=None, database=None)
settings.register_profile("drawn", max_examples=300, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))
