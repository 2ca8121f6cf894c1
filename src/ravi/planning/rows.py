"""What is the largest number of a row, and the least? Of rows that compiled functions go through."""

from ravi._jit.functions import compiled


@compiled
def highest(row):  # type: ignore[no-untyped-def]
    """max_a row(a)."""
    value = row[0]
    for b in range(1, row.shape[0]):
        value = max(value, row[b])
    return value


@compiled
def lowest(row):  # type: ignore[no-untyped-def]
    """min_a row(a)."""
    value = row[0]
    for b in range(1, row.shape[0]):
        value = min(value, row[b])
    return value
