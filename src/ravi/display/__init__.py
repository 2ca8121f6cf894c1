"""How are results displayed? In notebooks, in figures, and as progress bars."""
