"""What a suite says, and whether it is valid."""
