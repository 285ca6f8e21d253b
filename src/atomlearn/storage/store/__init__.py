"""Designs that read a column store or a PLINK .bed from disk in every pass."""
