"""Argyriou, Foygel, Srebro 2012: sparse prediction with the k-support norm."""
