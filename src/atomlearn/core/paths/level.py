"""Level: one level of a path on its way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from atomlearn.core.paths.refits import Point
from atomlearn.core.problem.problem import Problem
from atomlearn.core.problem.result import Certificate, Record, Result, Status


@dataclass(slots=True)
class Level:
    """One level on its way: its problem, its last point, and what was proved of it.

    whole : the problem at any level; amount : the level.
    """

    whole: Problem
    amount: float
    made: Problem | None = None
    point: Point | None = None
    certificate: Certificate | None = None
    status: Status | None = None
    seconds: float = 0.0
    work: float = 0.0
    history: list[Record] = field(default_factory=list)
    result: Result | None = None

    @property
    def problem(self) -> Problem:
        """The problem at this level."""
        if self.made is None:
            regularizer = replace(self.whole.regularizer, amount=self.amount)
            self.made = replace(self.whole, regularizer=regularizer)
        return self.made

    def learn(self, certificate: Certificate, gap: float, vectors: int) -> None:
        """Keep the certificate of the point, and whether it is enough."""
        assert self.point is not None
        self.certificate = certificate
        self.history.append(
            Record(
                iteration=len(self.history),
                passes=float(len(self.history) + 1),
                seconds=self.seconds,
                objective=certificate.objective,
                gap=certificate.gap,
                relative_gap=certificate.relative_gap,
                n_columns=int(self.point.positions.size),
                vectors=vectors,
            )
        )
        if certificate.relative_gap <= gap:
            self.status = Status.CONVERGED
        elif certificate.objective <= self.whole.negligible:
            self.status = Status.PERFECT_FIT
