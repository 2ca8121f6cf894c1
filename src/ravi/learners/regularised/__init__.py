"""Mirror steps of policies without RAVI's bonus, or on other evaluations."""
