"""Result: what a fit found, its certificate, and why it ended."""

from atomlearn.core.problem.factored import MatrixPart
from atomlearn.core.problem.result import Certificate, Record, Result, Status

__all__ = ["Certificate", "MatrixPart", "Record", "Result", "Status"]
