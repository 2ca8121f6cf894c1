"""The estimators of the kernel: what a learner knows of P from its data."""
