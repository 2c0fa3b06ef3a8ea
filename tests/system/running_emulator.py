"""Emulated cards for a test: the process `rodeo emulate` is ready before the test continues, and ends with the test."""

import contextlib
import json
import time

from conftest import scaled


@contextlib.contextmanager
def emulated(rodeo, configuration, *arguments):
    """Starts the process and yields it; emulator_report() reads its report."""
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
