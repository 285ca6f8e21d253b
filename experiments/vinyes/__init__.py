"""Vinyes, Obozinski 2017: fast column generation for atomic norm regularization."""
