"""A supervisor as a process, between real readouts and filter nodes: what was built is decided once, whoever is killed on the way."""

import contextlib
import json
import signal
import struct
import time

from conftest import scaled
from sockets import written_to

READOUT = """
[run]
number = 3
[readout]
name = "{name}"
[readout.input]
type = "generator"
links = 4
rate = "1kHz"
events = {events}
[readout.builder]
type = "gbt"
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "{source_id}"
[[readout.consumer]]
type = "hlt_request_handler"
name = "hlt"
rate = "1kHz"
retention = "20s"
linger = "20s"
"""

SUPERVISOR = """
[farm.supervisor]
readouts = ["one.hlt", "two.hlt"]
run_number = 3
nodes = 2
decisions = "decisions"
event_timeout = "20s"
"""

NODE = """
[farm.node]
name = "{name}"
supervisor = "supervisor"
workers = 1
[farm.node.selection]
type = "fraction"
fraction = 0
"""

EVENTS = 1500


def until(condition, what):
    deadline = time.monotonic() + scaled(60)
    while not (value := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.02)
    return value


def status(rodeo, name):
    try:
        return written_to(rodeo.directory, f"{name}.control", b'{"command": "status"}')["reply"]
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def farm(rodeo, *names):
    """The processes of these names by name; those that are left are killed."""
    files = {
        "one": ("readout", READOUT.format(name="one", source_id="0x00610001", events=EVENTS)),
        "two": ("readout", READOUT.format(name="two", source_id="0x00610002", events=EVENTS)),
        "supervisor": ("farm supervise", SUPERVISOR),
        "a": ("farm filter", NODE.format(name="a")),
        "b": ("farm filter", NODE.format(name="b")),
    }
    processes = {}

    def start(name):
        verb, text = files[name]
        path = rodeo.directory / f"{name}.toml"
        path.write_text(text)
        processes[name] = rodeo.start(*verb.split(), path, "--json", f"{name}.json")
        return processes[name]

    try:
        yield processes, start
    finally:
        for process in processes.values():
            if process.poll() is None:
                process.kill()
            process.communicate()


def decisions(rodeo):
    """Each id with its verdicts, as the file has them."""
    found = {}
    data = (rodeo.directory / "decisions").read_bytes()
    assert len(data) % 9 == 0
    for number, verdict in struct.iter_unpack("<QB", data):
        found.setdefault(number, []).append(verdict)
    return found


def test_each_event_of_two_readouts_is_decided_once_though_the_supervisor_is_killed(rodeo):
    with farm(rodeo) as (processes, start):
        for name in ("supervisor", "a", "b", "one", "two"):
            start(name)
        until(lambda: (s := status(rodeo, "supervisor")) and s["events"]["rejected"] > 100, lambda: status(rodeo, "supervisor"))
        processes["supervisor"].send_signal(signal.SIGKILL)
        processes["supervisor"].communicate()
        start("supervisor")
        out, err = processes["supervisor"].communicate(timeout=scaled(60))
        assert processes["supervisor"].returncode == 0, err
        report = json.loads((rodeo.directory / "supervisor.json").read_text())
        events = report["events"]
        assert report["run"]["condition"] == "GOOD" and report["run"]["number"] == 3 and events["adds_up"], report
        assert events["in"] == events["rejected"] and events["uncleared"] + events["undecided"] + events["held_untold"] == 0, report
        found = decisions(rodeo)
        assert len(found) == EVENTS and {verdict for verdicts in found.values() for verdict in verdicts} == {1}
        for name in ("one", "two"):
            processes[name].communicate(timeout=scaled(60))
            consumers = json.loads((rodeo.directory / f"{name}.json").read_text())["consumers"]
            counters = next(one for one in consumers if one["name"] == "hlt")["counters"]
            assert counters["cleared"] + counters["cleared_early"] == EVENTS and counters["uncleared"] == 0, counters
