"""Settings: sizes, shares and steps of the wing of matrices, none of which a user has to choose."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Settings:
    """What decides between ways to the same answer, and what tells rounding.

    None of them changes what is proved. Sizes bound memory or were found by timing both ways
    (``benchmarks/matrices``; ``benchmarks/tuning/rooms.py`` varies each of them); shares of a
    default alpha are of the papers.
    """

    # Designs of matrices.

    #: Entries of the largest matrix of scores that is ever made dense on request.
    dense_entries: int = 2**27
    #: Samples for each number of S from which on a product is cheaper after an SVD of S that lowers
    #: its rank.
    samples_a_number: int = 20
    #: Numbers of the images of rays that are formed in one product: a few milliseconds.
    rays_at_once: int = 2**20

    # Norms and the search for their best atoms.

    #: Relative distance of the bounds from below and above that a certificate asks for.
    accuracy: float = 1e-9
    #: Probability that a bound from above fails (over the random start; that is delta above).
    failure: float = 1e-12
    #: Matrices whose shorter side is at most this ...
    dense_side: int = 256
    #: ... and that have at most so many entries are decomposed in full.
    decomposed_entries: int = 2**19
    #: Steps of Lanczos between two looks at the bounds ...
    look: int = 8
    #: ... and in all.
    most_steps: int = 500
    #: Columns of a block of the bases.
    basis_columns: int = 16
    #: Rounding of a Ritz value, relative to the largest one.
    ritz_rounding: float = 1e-14
    #: A matrix is symmetric, and an eigenvalue not negative, up to this share of its size.
    asymmetry: float = 1e-10
    #: Relative rounding of values, of inner products of atoms that are one, and of bounds.
    rounding: float = 1e-12
    #: Supports a search for sparse atoms starts from: of vectors, of discs, and at random.
    starts: int = 20
    #: Indices that may leave a support, and that may enter it, in one exchange.
    exchanges: int = 3
    #: Matrices of at most so many rows, and columns, on average, see branch and bound, ...
    branch_side: int = 32
    #: ... to so many nodes.
    branch_nodes: int = 3000

    # Pursuit, robust components and sparse ones.

    #: Entries of an atom for each sample, as in Figures 2 and 3 of [L].
    entries_a_sample: int = 4
    #: Share of the least alpha without a part in use: noise far below the signal, little shrinkage.
    share_of_noise: float = 0.01
    #: Rows whose robust coordinates are fitted at a time.
    rows_together: int = 4096
    #: Share of the least alpha without components.
    share_of_alpha: float = 0.1


SETTINGS = Settings()
