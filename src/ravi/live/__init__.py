"""How does a learner work on a stream that is not simulated? An agent acts and observes; an environment is adapted."""
