"""How do results look? In notebooks, in figures, and while one waits."""
