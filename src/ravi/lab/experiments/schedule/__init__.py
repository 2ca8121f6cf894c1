"""What a suite asks for: runs, settings, tuning, in which order."""
