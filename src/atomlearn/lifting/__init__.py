"""Norms defined by a lift: latent groups, chains, trees, hierarchies, operators, unions."""
