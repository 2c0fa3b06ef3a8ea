"""What programs say to people on stderr. A failed write to stderr stops nothing: it may be closed, on a full disk, or its reader may have ended."""

import atexit
import os
import sys


def say(text, out=None, end="\n"):
    """One line, or several, on `out` (stderr)."""
    try:
        if out := out or sys.stderr:
            print(text, end=end, file=out, flush=True)
    except OSError:
        pass


@atexit.register
def _leave():
    """Prevents Python from writing unwritten text again at exit, which would change the exit status."""
    try:
        if sys.stderr:
            sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
