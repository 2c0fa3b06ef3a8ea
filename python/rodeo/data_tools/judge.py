"""A user's function that says of each event whether it is wanted: 1 or 0 for every event on stdout, in order. usage: judge.py FILE.py[:FUNCTION] < NAMES"""

import importlib.util
import os
import sys

from rodeo.data_tools.running import Refused, end, names, run


def function_of(text):
    file, _, name = text.rpartition(".py:")
    file, name = (file + ".py", name) if file else (text, "keep")
    spec = importlib.util.spec_from_file_location("rodeo_users_filter", file)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise failed(error, file, "cannot be run") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise Refused("data.function", f"has no function `{name}`", file, "--python FILE.py:FUNCTION names one; without a name it is `keep`")
    return function, file


def failed(error, file, what):
    """Where in the user's file it happened."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if os.path.abspath(trace.tb_frame.f_code.co_filename) == os.path.abspath(file):
            line = trace.tb_lineno
        trace = trace.tb_next
    return Refused("data.function", f"{what}: {type(error).__name__}: {error}", f"{file}:{line}" if line else file)


def judge(text, paths):
    from rodeo.data_tools.pieces import open_files

    # What the function prints is for people: stdout is for the answers.
    answers = os.fdopen(os.dup(1), "wb", buffering=1 << 12)
    os.dup2(2, 1)
    function, file = function_of(text)
    events = open_files(paths)
    for number in range(len(events)):
        try:
            event = events[number]
        except ValueError:  # damaged, which is not for the function
            answers.write(b"0")
            continue
        try:
            wanted = bool(function(event))
        except Exception as error:
            answers.flush()
            raise failed(error, file, f"failed at event {number} (L1 id {event.l1_id:#010x})") from error
        answers.write(b"1" if wanted else b"0")
    answers.flush()


if __name__ == "__main__":
    end(run(lambda: judge(sys.argv[1], names())))
