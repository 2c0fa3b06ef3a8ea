"""Routers and readouts as separate processes, for tests of the data between them."""

import contextlib
import json
import signal
import subprocess
import time

import pytest
from conftest import scaled
from running_readout import adds_up

ROUTER = """
[router]
name = "felix"
bus = "bus"

[router.input]
type = "generator"
links = 24
rate = "2kHz"
"""

READOUT = """
[run]
number = 7

[readout]
name = "net"

[readout.input]
type = "network"
bus = "bus"

[readout.builder]
type = "gbt"
timeout = "200ms"

[readout.extractor]
type = "rodeo"

[[readout.rob]]
source_id = "0x00610001"

[[readout.consumer]]
type = "processor"
work = "verify"
"""


class Side:
    """A router or a readout in a separate process."""

    def __init__(self, rodeo, verb, name, text, *settings):
        self.rodeo, self.verb, self.name = rodeo, verb, name
        configuration = rodeo.directory / f"{name}.toml"
        configuration.write_text(text)
        arguments = [part for setting in settings for part in ("--set", setting)]
        self.process = rodeo.start(verb, configuration, "--json", "-", *arguments)

    def wait_until(self, condition, what, patience=30):
        deadline = time.monotonic() + scaled(patience)
        status = None
        while True:
            assert self.process.poll() is None, f"it ended while we waited until {what}: {self.process.communicate()}"
            asked = self.rodeo(self.verb, "status", "--name", self.name, "-o", "json", exit_code=None)
            if asked.returncode == 0:
                status = json.loads(asked.stdout)
                if condition(status):
                    return status
            assert time.monotonic() < deadline, f"waited in vain until {what}: {status}"
            time.sleep(0.05)

    def finish(self, how=signal.SIGINT, exit_code=0):
        if how is not None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=scaled(60))
        assert exit_code is None or self.process.returncode == exit_code, err
        return json.loads(out), err

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=scaled(10))


@pytest.fixture
def sides(rodeo):
    """Starts routers and readouts. They always end with the test."""
    started = []

    def start(verb, name, text, *settings):
        started.append(Side(rodeo, verb, name, text, *settings))
        return started[-1]

    yield start
    for side in started:
        if side.process.poll() is None:
            side.process.send_signal(signal.SIGCONT)
            side.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                side.process.communicate(timeout=scaled(10))


def router(sides, *settings, text=ROUTER):
    side = sides("route", "felix", text, *settings)
    side.wait_until(lambda status: status["phase"] == "running", "it is on the bus")
    return side


def readout(sides, *settings, name="net"):
    return sides("readout", name, READOUT.replace('"net"', f'"{name}"'), *settings)


def has_built(count):
    return lambda status: status["chunks"]["built"] > count


def route_adds_up(report):
    return all(
        report[of][came]
        == report[of]["published"] + report[of]["no_subscriber"] + report[of]["not_taken"] + report[of].get("cut", 0)
        for of, came in (("chunks", "sent"), ("bytes", "in"))
    )


def all_is_verified(report):
    assert report["run"]["condition"] == "GOOD", report
    assert adds_up(report) and report["chunks"]["lost"] == {} and report["fragments"]["incomplete"] == 0
    assert report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}
