"""Tuning: the numbers that the speed of the masters depends on, and what each of them trades."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tuning:
    """Sizes, shares and bounds of the masters: they decide how fast, never what is found.

    ``benchmarks/sensitivity.py`` varies each of them. Sizes are entries, works are operations.

    armijo : share of the promised decrease that a line search asks for (the textbook's).
    inner_steps : bound on the steps of a method inside another. Rounding ends them before.
    halvings : bound on the trials of a line search.
    slice_work : work of a kernel between two looks at the clock, where there is a time limit:
        about 0.05 s. More overruns the limit, less starts the kernel again and again.
    pivots : between two of so many an interrupt is heard.

    rounding_share : share of f below which the difference of two values of f counts as rounding.
    negligible_move : relative change of predictions below which its curvature is rounding.
    newton_regularization : of Newton's equation, relative to 1 / step: larger slows the last steps
        down, smaller loses digits where columns are dependent.
    least_share : where damping all columns alike does not pay, each is damped relative to its own
        curvature, or to this share of the largest where that is more. Smaller loses digits.
    slow_steps : after so many in a row, none of which halves the gap, the damping changes.
    newton_patience : rounds without progress before the best point is given back.
    direct_limit : size of a Newton system from which conjugate gradients replace a factorization:
        a factor of 6000 takes 288 MB and some seconds.

    few_columns : columns that are worked on whole; and columns that are not stored, or groups in
        use, up to which a kernel has them.
    small_entries : entries of a block whose re-fit takes a kernel a millisecond or two.
    column_entries : entries of a dense block whose columns a kernel works on, and which are
        gathered and scored in less time than a pass takes by its overhead.
    least_free : fewer candidates for free than that are no block worth taking whole.
    gram_columns, gram_work : columns of a Gram matrix, and work of making it.
    gram_entries, structured_entries : entries of a block of which it is made (256 MB as an array;
        where a structure spares the array time alone counts).
    model_share, coupled_share : share of the gap to which a quadratic model of a loss is solved; of
        one that couples samples, or has free columns, whose models cost more to make.
    least_curvature : share of the largest curvature to which a smaller one is raised.

    Examples
    --------
    >>> TUNING.few_columns
    500
    """

    armijo: float = 1e-4
    inner_steps: int = 100
    halvings: int = 20
    slice_work: float = 1e8
    pivots: int = 1000

    rounding_share: float = 1e-8
    negligible_move: float = 1e-11
    newton_regularization: float = 1e-6
    least_share: float = 1e-9
    slow_steps: int = 3
    newton_patience: int = 20
    direct_limit: int = 6000

    few_columns: int = 500
    small_entries: int = 2**17
    column_entries: int = 2**21
    least_free: int = 100
    gram_columns: int = 2000
    gram_work: int = 2**33
    gram_entries: int = 2**25
    structured_entries: int = 2**28
    model_share: float = 0.01
    coupled_share: float = 0.001
    least_curvature: float = 1e-10


#: What all masters use.
TUNING = Tuning()
