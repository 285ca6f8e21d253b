"""Tan, Tsang, Wang 2014: towards ultrahigh dimensional feature selection for big data."""
