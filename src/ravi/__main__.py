"""`python -m ravi` is the command `ravi`."""

from ravi.cli import main

main()
