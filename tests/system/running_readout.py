"""Shared by the tests of `rodeo readout`: a small configuration, and a readout that runs during a test."""

import contextlib
import json
import signal
import subprocess
import time

from conftest import scaled

CONFIGURATION = """
[run]
number = 7

[readout]
name = "test"

[readout.input]
type = "generator"
links = 8
rate = "2kHz"

[readout.builder]
type = "gbt"

[readout.extractor]
type = "rodeo"

[[readout.rob]]
source_id = "0x00610001"

[[readout.consumer]]
type = "processor"
work = "verify"

[[readout.consumer]]
type = "event_sampler"

[[readout.consumer]]
type = "file_writer"
directory = "files"
"""


class Running:
    """A readout process, with its report after its end."""

    def __init__(self, rodeo, process, name):
        self.rodeo, self.process, self.name = rodeo, process, name

    def ask(self, *arguments, exit_code=0):
        return self.rodeo("readout", *arguments, "--name", self.name, exit_code=exit_code)

    def status(self):
        return json.loads(self.ask("status", "-o", "json").stdout)

    def links(self):
        return json.loads(self.ask("link", "list", "-o", "json").stdout)

    def wait_until(self, condition, what):
        """Polls the status until the condition holds."""
        deadline = time.monotonic() + scaled(30)
        while True:
            assert self.process.poll() is None, f"it ended while we waited until {what}: {self.process.communicate()}"
            status = self.status()
            if condition(status):
                return status
            assert time.monotonic() < deadline, f"waited in vain until {what}: {status}"
            time.sleep(0.05)

    def finish(self, how=signal.SIGINT, exit_code=0):
        """Ends the readout by a signal and returns its report."""
        if how is not None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=scaled(60))
        assert self.process.returncode == exit_code, err
        return json.loads(out), err


def write_configuration(rodeo, text=CONFIGURATION, name="run.toml"):
    path = rodeo.directory / name
    path.write_text(text)
    return path


@contextlib.contextmanager
def running(rodeo, *settings, text=CONFIGURATION, name="test", options=()):
    """Starts a readout and waits until it has built a fragment. The readout always ends with the test."""
    configuration = write_configuration(rodeo, text)
    arguments = [part for setting in settings for part in ("--set", setting)]
    process = rodeo.start("readout", configuration, "--json", "-", *options, *arguments)
    try:
        run = Running(rodeo, process, name)
        deadline = time.monotonic() + scaled(30)
        while rodeo("readout", "status", "--name", name, exit_code=None).returncode != 0:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline, "it does not answer"
            time.sleep(0.05)
        run.wait_until(lambda status: status["fragments"]["built"] > 0, "something is built")
        yield run
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=scaled(10))


def adds_up(report):
    bytes_hold = report["bytes"]["built"] is None or report["bytes"]["in"] == report["bytes"]["built"] + sum(
        report["bytes"]["lost"].values()
    )
    return bytes_hold and report["chunks"]["sent"] == report["chunks"]["built"] + sum(report["chunks"]["lost"].values())
