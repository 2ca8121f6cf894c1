"""How are many runs made, kept and read? Suites as data, a driver with its workers, a store of results."""
