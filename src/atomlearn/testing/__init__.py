"""Test suites that any design, loss, norm, master or solver can inherit, and problems for them.

>>> from atomlearn.testing.norms import NormChecks  # doctest: +SKIP

The suites need pytest, which is not loaded before one of them is imported.
"""
