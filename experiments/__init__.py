"""The tables and figures of the four papers, from this repository: one package a paper."""
