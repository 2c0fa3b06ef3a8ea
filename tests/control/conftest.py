"""Shared by the tests of the control room: the package of the build, a runtime directory with a short path, and rooms with small systems."""

import contextlib
import importlib.util
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

# Tests import `scaled` from the nearest conftest, which is this one: it must have all names of the one above.
_spec = importlib.util.spec_from_file_location("tests_conftest", Path(__file__).resolve().parent.parent / "conftest.py")
_above = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_above)
BUILD, ROOT, TIMEOUT_SCALE, Process, Rodeo, scaled = (
    _above.BUILD,
    _above.ROOT,
    _above.TIMEOUT_SCALE,
    _above.Process,
    _above.Rodeo,
    _above.scaled,
)

sys.path.insert(0, str(BUILD / "python"))
os.environ["RODEO"] = str(BUILD / "rodeo")
os.environ["PYTHONPATH"] = str(BUILD / "python")
# Longer limits for silence: a machine that is ten times slower has not lost its processes.
os.environ.setdefault("RODEO_CONTROL_PATIENCE", str(4 * TIMEOUT_SCALE))
os.environ.pop("XDG_RUNTIME_DIR", None)


def _short_directory():
    """A short directory: the path of a Unix socket has at most 107 bytes, and pytest's directories need most of them."""
    return Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))


@contextlib.contextmanager
def _runtime_directory(directory):
    """Sets the runtime directory of all processes started during the block."""
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
    """A directory for one module, removed at the end. Its folder `run` is the runtime directory of all processes."""
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
    """A room in this process, without processes to run; the tests of a module share it."""
    from idle_room import IdleRoom

    with _runtime_directory(tmp_path_factory.mktemp("r")), IdleRoom() as room:
        yield room


@pytest.fixture(scope="module")
def room(place):
    """A controller of a launched system with one emulator and one readout; the tests of a module share it."""
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
