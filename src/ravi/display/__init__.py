"""The display of results: in notebooks, in figures, in terminals and as progress bars."""
