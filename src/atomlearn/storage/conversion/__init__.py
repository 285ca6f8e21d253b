"""Conversion of data files into column stores."""
