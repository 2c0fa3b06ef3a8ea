"""Runs a user's function that selects events. Writes to stdout r when ready, then in order for every event 1 (selected), 0 (not), or t (took too long).
usage: judge.py FILE.py[:FUNCTION] SECONDS < NAMES"""

import importlib.util
import os
import signal
import sys
import time

from rodeo.data_tools.running import Refused, end, names, run, say

_TOLD_S = 0.5
_MOST_IN_TURN = 3  # gives up after this number of hangs in a row: a function that hangs at each event would never end


def function_of(text):
    file, _, name = text.rpartition(".py:")
    file, name = (file + ".py", name) if file else (text, "keep")
    spec = importlib.util.spec_from_file_location("rodeo_users_filter", file)
    if spec is None or spec.loader is None:
        raise Refused(
            "data.function",
            "is not a Python file: its name lacks .py",
            file,
            "--python FILE.py[:FUNCTION]; without a name, the function is `keep`",
        )
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # SystemExit in the user's module must not end the run
        raise failed(error, file, "cannot be run") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise Refused(
            "data.function",
            f"has no function `{name}`",
            file,
            "name one: --python FILE.py:FUNCTION; without a name it is `keep`",
        )
    return function, file


def failed(error, file, what):
    return Refused("data.function", f"{what}: {type(error).__name__}: {error}", _place(error, file))


def _place(error, file):
    """The line of the user's file where the error was raised."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if os.path.abspath(trace.tb_frame.f_code.co_filename) == os.path.abspath(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return f"{file}:{line}" if line else file


class _TooLong(BaseException):
    """A BaseException, so that `except Exception` in the user's function does not catch it."""


def _too_long(_number, _frame):
    raise _TooLong


def judge(text, hang_s, paths):
    from rodeo.data_tools.pieces import open_files

    # Stdout is for the answers: what the function prints goes to stderr.
    answers = os.fdopen(os.dup(1), "wb", buffering=1 << 12)
    os.dup2(2, 1)
    function, file = function_of(text)
    signal.signal(signal.SIGALRM, _too_long)
    events = open_files(paths)
    answers.write(b"r")
    told, in_turn = 0.0, 0
    for number in range(len(events)):
        if (now := time.monotonic()) - told >= _TOLD_S:
            answers.flush()
            told = now
        try:
            event = events[number]
        except ValueError:  # the event is damaged, so the function does not see it
            answers.write(b"0")
            continue
        answer = _answer(function, file, number, event, hang_s)
        answers.write(answer)
        in_turn = in_turn + 1 if answer == b"t" else 0
        if in_turn == _MOST_IN_TURN:
            answers.flush()
            raise Refused(
                "data.function",
                f"took longer than {hang_s:g} s at {in_turn} events in turn",
                file,
                "allow more time with --hang TIME",
            )
    answers.flush()


def _answer(function, file, number, event, hang_s):
    try:
        try:
            signal.setitimer(signal.ITIMER_REAL, hang_s)
            return b"1" if function(event) else b"0"
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except _TooLong as late:
        say(
            f"{_place(late, file)}: took longer than {hang_s:g} s at event {number} (L1 id {event.l1_id:#010x}), which is left out"
        )
        return b"t"
    except (Exception, SystemExit) as error:
        raise failed(error, file, f"failed at event {number} (L1 id {event.l1_id:#010x})") from error


if __name__ == "__main__":
    end(run(lambda: judge(sys.argv[1], float(sys.argv[2]), names())))
