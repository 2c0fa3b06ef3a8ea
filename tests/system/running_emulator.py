"""Emulated cards beside a test: `rodeo emulate` as a process that is there when the test goes on, and gone when it ends."""

import contextlib
import json
import time

from conftest import scaled


@contextlib.contextmanager
def emulated(rodeo, configuration, *arguments):
    """The process; its report is for emulator_report()."""
    with rodeo.start("emulate", configuration, *arguments) as process:
        try:
            deadline = time.monotonic() + scaled(20)
            while rodeo("emulate", "status", "-o", "json", exit_code=None).returncode != 0:
                assert process.poll() is None, process.stderr.read()
                assert time.monotonic() < deadline, "the emulator does not answer"
                time.sleep(0.05)
            yield process
        finally:
            if process.poll() is None:
                process.terminate()
                process.communicate(timeout=scaled(20))


def emulator_report(rodeo):
    return json.loads(rodeo("emulate", "status", "-o", "json").stdout)
