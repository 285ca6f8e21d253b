"""Survival times: Cox's partial likelihood, its targets, and the concordance of risks."""
