"""`python -m ravi.cli` is the command `ravi`."""

from ravi.cli import main

main()
