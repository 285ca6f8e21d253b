"""Intake: read a data file, interpret its columns, and turn them into numbers."""
