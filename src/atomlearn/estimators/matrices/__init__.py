"""Estimators over matrices."""
