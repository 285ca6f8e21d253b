"""Hierarchical interactions: a pair is selected with one (weak) or both (strong) main effects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from atomlearn._support import positive
from atomlearn.core import Array, Columns, Membership
from atomlearn.lifting.latent import LatentNorm


class Hierarchy(LatentNorm):
    """Latent group norm for hierarchical interactions, under weak or strong heredity.

    beta_i are the coefficients of main effects and beta_ij those of interactions. "weak": the
    groups are {i}, {i, ij} and {j, ij}, so that beta_ij is selected with beta_i or beta_j.
    "strong": the groups are {i} and {i, j, ij}, so that beta_ij is selected with both. [V] section
    4.3; Yan, Bien (2017), doi:10.1214/17-STS622.

    Parameters
    ----------
    kind : {"weak", "strong"}
        Weak heredity (at least one main effect) or strong heredity (both main effects).
    pairs : None or array-like of shape (n_pairs, 2)
        Indices (i, j) of the main effects of each interaction column. Columns of X are the main
        effects first, then the interactions in this order; i = j means the square of a feature.
        None: all pairs i < j in lexicographic order, the order of
        ``designs.Polynomial.interactions`` and of scikit-learn's
        ``PolynomialFeatures(interaction_only=True, include_bias=False)``.
    pair_weight : float > 0
        Weight delta_B of the groups with an interaction; groups of one main effect have weight 1.
        A larger weight selects fewer interactions.

    References
    ----------
    [V] section 4.3; Yan, Bien 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from atomlearn import norms
    >>> norm = norms.Hierarchy("strong")  # two main effects, then their product
    >>> round(norm.value(np.array([3.0, 0.0, 4.0])), 6)
    5.0
    """

    def __init__(self, kind: str = "weak", pairs: Any = None, pair_weight: float = 1.0) -> None:
        """Store the parameters, which the class documents."""
        self.kind = kind
        self.pairs = pairs
        self.pair_weight = pair_weight

    def membership(self, n_features: int) -> Membership:
        """Return the groups: single main effects, then each interaction with its main effects.

        With weak heredity each interaction has one group for each of its main effects; with strong
        heredity it has one group with both. ``n_features`` counts main effects and interactions.
        """
        if self.kind not in ("weak", "strong"):
            raise ValueError(f"Hierarchy: kind must be 'weak' or 'strong', got {self.kind!r}")
        pairs = self._pairs(n_features)
        n_main = n_features - pairs.shape[0]
        # i and j are the main effects of each interaction, and ``mixed`` marks those with i != j.
        i, j = np.sort(pairs, axis=1).T
        column = n_main + np.arange(pairs.shape[0])
        mixed = i != j
        # Each table has one group per row, by its features. A square (i = j) has one main effect.
        if self.kind == "weak":
            tables = [np.column_stack([i, column]), np.column_stack([j, column])[mixed]]
        else:
            tables = [np.column_stack([i, column])[~mixed], np.column_stack([i, j, column])[mixed]]
        # List the features of all groups one after the other, with the start of each group.
        members = np.concatenate([np.arange(n_main), *(table.ravel() for table in tables)])
        sizes = [np.ones(n_main), *(np.full(len(table), table.shape[1]) for table in tables)]
        starts = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
        return Membership(members, starts, starts.size - 1)

    def _delta(self, sets: Membership) -> Array:
        """Return the weights of the groups: 1 for single main effects, else ``pair_weight``.

        ``sets`` are the groups.
        """
        weight = positive("Hierarchy: pair_weight", self.pair_weight)
        return np.where(sets.sizes == 1, 1.0, weight)

    def _pairs(self, n_features: int) -> Columns:
        """Return the main effects of each interaction, (n_pairs, 2), after checks.

        ``n_features`` counts main effects and interactions.
        """
        if self.pairs is None:
            # Solve n_main + n_main (n_main - 1) / 2 = n_features for n_main.
            n_main = (math.isqrt(8 * n_features + 1) - 1) // 2
            if n_main * (n_main + 1) // 2 != n_features:
                raise ValueError(
                    f"Hierarchy: {n_features} columns are not d main effects and all d (d - 1) / 2 "
                    "pairs for any d; pass pairs=, or build the columns with "
                    "designs.Polynomial.interactions(X)"
                )
            first, second = np.triu_indices(n_main, 1)
            return np.column_stack([first, second]).astype(np.int64)
        pairs = np.asarray(self.pairs)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
            raise TypeError(
                f"Hierarchy: pairs must be whole numbers of shape (n_pairs, 2), got dtype "
                f"{pairs.dtype} of shape {pairs.shape}"
            )
        n_main = n_features - pairs.shape[0]
        if n_main < 1 or pairs.min(initial=0) < 0 or pairs.max(initial=0) >= n_main:
            raise ValueError(
                f"Hierarchy: {n_features} columns with {pairs.shape[0]} pairs leave {n_main} main "
                "effects, to which the pairs must refer; main effects come first"
            )
        return pairs.astype(np.int64)
