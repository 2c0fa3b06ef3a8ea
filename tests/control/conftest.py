"""What the tests of the control room share: the package of the build, a runtime directory with a short path, and rooms with small systems."""

import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

# Tests say `from conftest import scaled`, and the nearest conftest is this one: it has all that the one above has.
_spec = importlib.util.spec_from_file_location("tests_conftest", Path(__file__).resolve().parent.parent / "conftest.py")
_above = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_above)
BUILD, ROOT, TIMEOUT_SCALE, Process, Rodeo, scaled = _above.BUILD, _above.ROOT, _above.TIMEOUT_SCALE, _above.Process, _above.Rodeo, _above.scaled

sys.path.insert(0, str(BUILD / "python"))
os.environ["RODEO"] = str(BUILD / "rodeo")
os.environ["PYTHONPATH"] = str(BUILD / "python")
# Silence counts for less here: a machine that is ten times slower has not lost its processes.
os.environ.setdefault("RODEO_CONTROL_PATIENCE", str(4 * TIMEOUT_SCALE))
os.environ.pop("XDG_RUNTIME_DIR", None)


def _short_directory():
    """A Unix socket's path has 107 bytes at most, and pytest's own directories take most of that."""
    return Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))


@contextlib.contextmanager
def _runtime_directory(directory):
    """That of all processes that are started meanwhile."""
    before = os.environ.get("RODEO_RUNTIME_DIR")
    os.environ["RODEO_RUNTIME_DIR"] = str(directory)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("RODEO_RUNTIME_DIR", None)
        else:
            os.environ["RODEO_RUNTIME_DIR"] = before


@pytest.fixture(scope="module")
def place():
    """A directory for one module: `run` in it is the runtime directory of all processes, and nothing is left of it afterwards."""
    directory = _short_directory()
    runtime = directory / "run"
    runtime.mkdir(mode=0o700)
    try:
        with _runtime_directory(runtime):
            yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def idle_room(tmp_path_factory):
    """A room in this process, with nothing to run; the tests of a module share it."""
    from idle_room import IdleRoom

    with _runtime_directory(tmp_path_factory.mktemp("r")), IdleRoom() as room:
        yield room


@pytest.fixture(scope="module")
def room(place):
    """A controller of a system of one emulator and one readout, launched; the tests of a module share it."""
    from running_room import RunningRoom
    from small_systems import one_card

    with RunningRoom(one_card(place)) as room:
        room.command("launch")
        yield room


@pytest.fixture(scope="module")
def browser():
    from browsing import chromium

    with chromium() as browser:
        yield browser
