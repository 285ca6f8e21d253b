"""Intake: data files as they come, their columns understood, told, and turned into numbers."""
