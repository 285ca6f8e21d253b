"""Whole paths of smooth losses: processor seconds to an accuracy, against the packages for them."""
