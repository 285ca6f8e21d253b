"""Problems over matrices: what can be solved term by term, the shape of W, the view of a term."""

from __future__ import annotations

from atomlearn.core.interfaces import Design
from atomlearn.core.interfaces.norm import Term
from atomlearn.core.problem.problem import Problem
from atomlearn.matrices.designs.reshaped import as_matrix_design
from atomlearn.matrices.norms.base import MatrixNorm


def check_problem(problem: Problem) -> None:
    """Raise where a ridge term would mix terms of W, or rays, which are solved for apart."""
    terms = problem.regularizer.norm.terms()
    norm = terms[0].norm
    if problem.tau and (
        len(terms) > 1 or not isinstance(norm, MatrixNorm) or norm.coordinates == "rays"
    ):
        raise ValueError(
            f"MatrixGeneration: tau > 0 mixes the terms of {problem.regularizer.norm!r}, which are "
            "solved for apart; use tau=0, norms.TraceNorm() or norms.PSD() alone, or "
            "solvers.AtomGeneration() for small matrices"
        )


def shape_of(problem: Problem) -> tuple[int, int]:
    """Return (p, q) of the problem's matrix; of its first unfolding for tensors."""
    for term in problem.regularizer.norm.terms():
        if isinstance(term.norm, MatrixNorm) and term.tensor is None:
            return term.norm.shape[0], term.norm.shape[1]
        if term.tensor is not None:
            return term.tensor[0], problem.design.shape[1] // term.tensor[0]
    raise TypeError(
        f"MatrixGeneration is for norms of matrices, got {problem.regularizer.norm!r}; use "
        "solvers.ColumnGeneration() for norms of vectors"
    )


def view_of(design: Design, term: Term, shape: tuple[int, int]) -> Design:
    """Return the design whose columns are the entries of this term."""
    if not isinstance(term.norm, MatrixNorm):
        return design
    own = (int(term.norm.shape[0]), int(term.norm.shape[1]))
    return as_matrix_design(design, own, term.tensor, term.mode)
