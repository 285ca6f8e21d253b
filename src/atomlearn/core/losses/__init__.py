"""Losses: smooth convex functions of the predictions, summed over weighted samples."""
