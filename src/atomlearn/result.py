"""Result: what a fit found, its certificate, and why it ended."""

from atomlearn.core.interfaces.certificate import Certificate, Status
from atomlearn.core.interfaces.factored import MatrixPart
from atomlearn.core.problem.result import Record, Result

__all__ = ["Certificate", "MatrixPart", "Record", "Result", "Status"]
