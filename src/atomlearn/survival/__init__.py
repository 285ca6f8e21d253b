"""Survival times: Cox's partial likelihood, its targets, and how well risks are ordered."""
