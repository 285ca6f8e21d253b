"""The tests of other packages, run on our estimators: ``python -m tests.peers``."""
