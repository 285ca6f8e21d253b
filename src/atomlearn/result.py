"""Result: what a fit found, its certificate, and why it ended."""

from atomlearn.core.problem.result import Certificate, MatrixPart, Record, Result, Status

__all__ = ["Certificate", "MatrixPart", "Record", "Result", "Status"]
