"""Linear mixture MDPs."""
