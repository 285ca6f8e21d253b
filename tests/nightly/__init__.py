"""What takes too long for every change: faults at random moments, and sizes at their edges."""
