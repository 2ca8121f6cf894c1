"""Linear MDPs: least squares on features of pairs."""
