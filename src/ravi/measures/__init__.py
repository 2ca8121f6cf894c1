"""The measures of a run: what is recorded beside the learner."""
