"""Value iteration on counts, to the end, with a bonus, a set or a known-state rule."""
