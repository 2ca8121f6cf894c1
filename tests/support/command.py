"""The command, called by its entry point: what `ravi WORDS` prints, and how it ends; a process takes a second."""

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess

import pytest

from ravi.cli import main


def typed(*words, cwd=None):
    """As `subprocess.run` tells it, of a command without a terminal."""
    out, err, status = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["ravi", *map(str, words)])
        patch.setattr(sys, "path", list(sys.path))
        if cwd is not None:
            patch.chdir(cwd)
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
    return CompletedProcess(sys.argv, status, out.getvalue(), err.getvalue())
