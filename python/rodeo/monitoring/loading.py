"""Loads the monitors of a Python file."""

import importlib.util
import linecache
import sys
import traceback
from pathlib import Path

from rodeo.monitoring.errors import INVALID, MonitorError
from rodeo.monitoring.monitor import Monitor


def load(path):
    """The monitors of a file, in their order there. MonitorError if the file has none or cannot be run."""
    path = Path(path)
    if not path.is_file():
        raise MonitorError(
            "file.open", f"there is no file {path}", "a monitor is a Python file: docs/how-to/monitoring.md"
        )
    specification = importlib.util.spec_from_file_location("rodeo_monitor_file", path)
    if specification is None or specification.loader is None:
        raise MonitorError("monitor.file", f"{path} is not a Python file (*.py)", status=INVALID)
    module = importlib.util.module_from_spec(specification)
    sys.path.insert(0, str(path.resolve().parent))  # the file may import modules from its directory
    try:
        specification.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise MonitorError(
            "monitor.file", f"{where(error, path)}: {error}", f"{sys.executable} -m pip install {error.name}", INVALID
        ) from error
    except BaseException as error:
        raise MonitorError("monitor.file", f"{where(error, path)}: {said(error)}", status=INVALID) from error
    monitors = [one for one in vars(module).values() if isinstance(one, Monitor)]
    if not monitors:
        raise MonitorError(
            "monitor.none",
            f"{path} has no monitor",
            "@rodeo.monitor(size=hist.Hist(...)) above a function makes one",
            INVALID,
        )
    names = [one.name for one in monitors]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise MonitorError(
            "monitor.file",
            f"{path} has two monitors called {twice}",
            'rename one with @rodeo.monitor(name="...", ...)',
            INVALID,
        )
    return monitors


def said(error):
    """An exception in one line."""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}"
    return f"{type(error).__name__}: {str(error).splitlines()[0]}" if str(error) else type(error).__name__


def where(error, path):
    """`file:line` of the last line of this file in the traceback of an exception."""
    if isinstance(error, SyntaxError) and error.filename and is_same(error.filename, path):
        return f"{path}:{error.lineno}"
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if is_same(frame.filename, path)]
    return f"{path}:{lines[-1]}" if lines else str(path)


def is_same(file, path):
    """Whether a file name of Python is this file."""
    return Path(file).resolve() == Path(path).resolve()


def code_at(path, line):
    return linecache.getline(str(path), line).strip()
