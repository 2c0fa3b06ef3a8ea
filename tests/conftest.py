"""Shared by the Python tests: the place of the build, calls of the command, and one scale for time-outs."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("RODEO_BUILD_DIR", ROOT / "build")).resolve()
TIMEOUT_SCALE = float(os.environ.get("RODEO_TEST_TIMEOUT_SCALE", "1"))


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: left out of ./test, run by ./test all")
    # In the background of a script SIGINT is ignored, and processes of the tests would inherit this.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport():
    skip_is_failure((yield).get_result())


@pytest.hookimpl(hookwrapper=True)
def pytest_make_collect_report():
    skip_is_failure((yield).get_result())


def skip_is_failure(report):
    """Required by tools/ctest: all needs of the tests are installed. The skip reason of needs that no set-up can give, such as root, begins with `host: `."""
    if "RODEO_SKIP_IS_FAILURE" in os.environ and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if not reason.removeprefix("Skipped: ").startswith("host: "):
            report.outcome, report.longrepr = "failed", f"a skip is a failure after set-up: {reason}"


def scaled(seconds):
    """Scales a time-out of an undisturbed release build for the build under test."""
    return seconds * TIMEOUT_SCALE


class Process(subprocess.Popen):
    def __exit__(self, exception, value, traceback):
        if exception is not None:
            self.kill()  # a stopped process would never end
        super().__exit__(exception, value, traceback)

    def communicate(self, input=None, timeout=None):
        """If the process does not end in time, the error lists the states of its threads."""
        try:
            return super().communicate(input, timeout)
        except subprocess.TimeoutExpired as expired:
            expired.cmd = f"[{self.threads()}] {self.args}"
            raise

    def threads(self):
        """For each thread: its name, state, used CPU seconds, and kernel function that it waits in."""
        said = []
        for thread in Path(f"/proc/{self.pid}/task").glob("*"):
            with contextlib.suppress(OSError):
                name, fields = (thread / "stat").read_text().split("(", 1)[1].rsplit(") ", 1)
                fields = fields.split()
                seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                waits = (thread / "wchan").read_text().strip("0") if os.access(thread / "wchan", os.R_OK) else ""
                said.append(f"{name} {fields[0]} {seconds:.1f} s {waits}".strip())
        return ", ".join(said)

    def wait_until_it_catches(self, number):
        """Waits until the process handles signals: an earlier signal would end it without a report."""
        deadline, caught = time.monotonic() + scaled(20), 0
        while not caught >> (number - 1) & 1:
            assert self.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
            caught = int(re.search("SigCgt:\t(.*)", Path(f"/proc/{self.pid}/status").read_text())[1], 16)


class Rodeo:
    """The command under test, run in a directory of the test, with a separate runtime directory."""

    def __init__(self, directory):
        self.binary = BUILD / "rodeo"
        self.directory = directory
        # An inherited runtime directory contains sockets of other processes.
        inherited = {name: value for name, value in os.environ.items() if name != "RODEO_RUNTIME_DIR"}
        self.environment = {
            **inherited,
            "XDG_RUNTIME_DIR": str(directory),
            "TMPDIR": str(directory),
            "XDG_CACHE_HOME": str(directory / "cache"),
            "NO_COLOR": "1",
        }

    def __call__(self, *arguments, timeout=60, exit_code=0, **options):
        """Runs to the end and returns the CompletedProcess. The test fails if the exit code differs from `exit_code` (None: any)."""
        done = subprocess.run(
            [str(self.binary), *map(str, arguments)],
            cwd=self.directory,
            env=self.environment,
            text=True,
            capture_output=True,
            timeout=scaled(timeout),
            stdin=subprocess.DEVNULL,
            **options,
        )
        assert not re.search(r"\d (warning|info|error) error\[", done.stderr or ""), (
            f"a line of the log says its level twice: {done.stderr}"
        )
        if exit_code is not None:
            assert done.returncode == exit_code, (
                f"{done.args} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
            )
        return done

    def start(self, *arguments, **options):
        """Starts without waiting. The caller ends the process (`with rodeo.start(...) as process:` and process.terminate()).
        If the test fails within the `with`, the process is killed."""
        options = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            "stdin": subprocess.DEVNULL,
            **options,
        }
        return Process([str(self.binary), *map(str, arguments)], cwd=self.directory, env=self.environment, **options)


def without_packages(rodeo):
    """Gives a rodeo a Python without packages. Returns a file with the arguments of each call."""
    interpreter, called = rodeo.directory / "bare-python", rodeo.directory / "called"
    interpreter.write_text(f'#!/bin/sh\necho "$@" >> {called}\nexec {sys.executable} -S "$@"\n')
    interpreter.chmod(0o755)
    rodeo.environment["RODEO_PYTHON"] = str(interpreter)
    return called


@pytest.fixture
def rodeo(tmp_path):
    return Rodeo(tmp_path)
