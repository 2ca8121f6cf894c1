"""RAVI-UCB and what wraps it: parts that keep its guarantee, unknown T, unknown rewards, changing rewards."""
