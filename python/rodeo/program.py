"""The command starts programs of this package with this module: python3 -m rodeo.program MODULE ARGUMENTS...

It adds what all programs need. A failed write to stdout loses the result, so it is a separate error: no handler mistakes it for an error of the file
that the program writes. A missing Python package is an error with its remedy, without a traceback.
"""

import os
import runpy
import sys

from rodeo.missing import remedy
from rodeo.saying import say


class OutputLost(BaseException):
    """Writing to stdout failed. A BaseException, so that handlers of other failures do not catch it."""


class Stdout:
    """sys.stdout whose failed writes raise OutputLost. If the reader has ended, they raise BrokenPipeError as usual."""

    def __init__(self, stream):
        self._stream = stream

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def _try(self, function, *arguments):
        try:
            return function(*arguments)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputLost(error.strerror or str(error)) from None

    def write(self, text):
        return self._try(self._stream.write, text)

    def writelines(self, lines):
        return self._try(self._stream.writelines, lines)

    def flush(self):
        return self._try(self._stream.flush)


def main(module):
    """Runs a module as `python3 -m module` does. Returns the exit status; it is 0 if the reader of stdout has ended."""
    if sys.stdout is not None:
        sys.stdout = Stdout(sys.stdout)
    try:
        status = _status_of(module)
        if sys.stdout is not None:
            sys.stdout.flush()
        return status
    except OutputLost as lost:
        say(
            f"error[cli.output]: the output could not be written to stdout: {lost}\n  make room, or send stdout elsewhere"
        )
        _discard_stdout()
        return 1
    except BrokenPipeError:
        _discard_stdout()
        return 0
    except ImportError as missing:
        if os.environ.get("RODEO_LOG") == "debug":
            raise
        say(
            f"error[cli.python]: {sys.executable}: {missing}\n  {remedy()}, or name an interpreter that has it: RODEO_PYTHON=/path/to/python3"
        )
        return 1


def _status_of(module):
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        say(ended.code)
        return 1
    return 0


def _discard_stdout():
    """Prevents Python from writing unwritten output again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    name = sys.argv.pop(1)
    sys.exit(main(name))
