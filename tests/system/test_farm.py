"""Readouts, supervisor, filter nodes and recorder as processes: each event has one result, also when processes are killed."""

import collections
import json
import shutil
import signal
import struct
import time

import pytest
from conftest import ROOT, scaled
from event_files import read_event_file
from frozen import check_document
from sockets import written_to

READOUT = """
[run]
number = 7
type = "test"
[readout]
name = "{name}"
[readout.input]
type = "generator"
links = 4
rate = "{rate}"
chunk_bytes = 40
[readout.builder]
type = "gbt"
chunk_size = 40
window = 1024
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "{rob}"
[[readout.consumer]]
type = "hlt_request_handler"
name = "hlt"
rate = "{rate}"
retention = "2s"
linger = "5s"
"""

FARM = """
[farm.supervisor]
name = "supervisor"
run_number = 7
readouts = ["one.hlt", "two.hlt"]
recorders = ["recorder"]
decisions = "decisions"
event_timeout = "{event_timeout}"
rebuild_time = "500ms"
readout_grace = "2s"

[farm.node]
supervisor = "supervisor"
events = 16

{selection}

[farm.recorder]
name = "recorder"
run_number = 7
directory = "files"
min_free = "1MiB"
payload = "provable seed=1 crc=0"
"""

HALF = """
[farm.node.selection]
type = "fraction"
fraction = 0.5
"""

MINE = """
[farm.node.selection]
type = "python"
file = "mine.py"
"""

VERDICTS = ("accepted", "rejected", "debug", "lost")


class Farm:
    """The processes of a run, in the directory of the test."""

    def __init__(self, rodeo, rate="400Hz"):
        self.rodeo, self.directory = rodeo, rodeo.directory
        self.processes = {}
        self.configure()
        for name, rob in (("one", "0x00510001"), ("two", "0x00520001")):
            text = READOUT.format(name=name, rob=rob, rate=rate)
            (self.directory / f"{name}.toml").write_text(text)

    def configure(self, selection=HALF, more="", event_timeout="3s"):
        text = FARM.replace("{selection}", selection).replace("{event_timeout}", event_timeout)
        (self.directory / "farm.toml").write_text(text + more)

    def start(self, name, *arguments):
        self.processes[name] = self.rodeo.start(
            *arguments, "--json", f"{name}.json", stdout=None, stderr=open(self.directory / f"{name}.log", "a")
        )
        return self.processes[name]

    def start_readouts(self):
        for name in ("one", "two"):
            self.start(name, "readout", f"{name}.toml")

    def end_readouts(self, decisions):
        """Stops the readouts after this number of decided events. They serve kept fragments until these are cleared."""
        self.until(lambda: len(self.decisions()) >= decisions, "too little is decided")
        for name in ("one", "two"):
            self.processes[name].send_signal(signal.SIGINT)
        return [self.finish(name) for name in ("one", "two")]

    def status(self, name):
        """The status of a process; None while it does not answer."""
        try:
            return written_to(self.directory, f"{name}.control", b'{"command": "status"}')["reply"]
        except (OSError, ValueError, KeyError):
            return {}

    def start_supervisor(self):
        return self.start("supervisor", "farm", "supervise", "farm.toml")

    def start_node(self, name, *settings):
        return self.start(
            name,
            "farm",
            "filter",
            "farm.toml",
            "--set",
            f"farm.node.name={name}",
            *(part for one in settings for part in ("--set", one)),
        )

    def start_recorder(self):
        return self.start("recorder", "farm", "record", "farm.toml")

    def finish(self, name, how=None, exit_codes=(0,)):
        process = self.processes.pop(name)
        if how is not None:
            process.send_signal(how)
        try:
            process.wait(timeout=scaled(90))
        finally:
            log = (self.directory / f"{name}.log").read_text()
        assert process.returncode in exit_codes, f"{name}: {process.returncode}\n{log}"
        return json.loads((self.directory / f"{name}.json").read_text())

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def until(self, condition, what):
        deadline = time.monotonic() + scaled(60)
        while not condition():
            for name, process in self.processes.items():
                assert process.poll() in (None, 0), f"{name} ended: {(self.directory / f'{name}.log').read_text()}"
            assert time.monotonic() < deadline, what
            time.sleep(0.02)

    def decisions(self):
        """The verdict of each id in the supervisor's file. The first entry of an id counts."""
        path = self.directory / "decisions"
        data = path.read_bytes() if path.exists() else b""
        verdicts = {}
        for at in range(0, len(data) // 9 * 9, 9):
            event, verdict = struct.unpack_from("<QB", data, at)
            verdicts.setdefault(event, VERDICTS[verdict])
        return verdicts

    def recorded(self):
        """Ids by stream in closed files. Checks each file and every byte of the payload."""
        ids = collections.defaultdict(list)
        assert not list((self.directory / "files").glob("*.writing"))
        for path in sorted((self.directory / "files").glob("*.data")):
            self.rodeo("data", "verify", path)
            ids[path.name.split(".")[2]] += [event.global_id for event in read_event_file(path).events]
        return ids

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()


@pytest.fixture
def farm(rodeo):
    with Farm(rodeo) as farm:
        yield farm


def check_each_event_is_in_one_place(farm, supervisor, streams_of_debug):
    """Checks that files, decisions and the supervisor's report agree."""
    verdicts = farm.decisions()
    counts = collections.Counter(verdicts.values())
    assert supervisor["events"]["adds_up"]
    recorded = farm.recorded()
    ids = [event for stream in recorded.values() for event in stream]
    assert len(ids) == len(set(ids)), "an id occurs twice"
    accepted = {event for event, verdict in verdicts.items() if verdict == "accepted"}
    debug = {event for event, verdict in verdicts.items() if verdict == "debug"}
    assert accepted | debug == set(ids)
    # If one readout gets an event long after the other, the event is assigned without that readout.
    assert set(recorded) <= {"physics_Main", "debug_NodePartial", *streams_of_debug}
    return counts


def test_what_is_accepted_is_in_verified_files_and_nothing_else(farm):
    farm.start_recorder()
    farm.start_supervisor()
    farm.start_node("node1")
    farm.start_node("node2", "farm.node.building=steps")
    farm.start_readouts()
    farm.until(lambda: len(farm.decisions()) >= 100, "too little is decided")
    for name in ("one", "supervisor", "node1", "recorder"):
        check_document(f"status-{name}", farm.status(name))
    one, two = farm.end_readouts(300)
    supervisor = farm.finish("supervisor", signal.SIGINT)
    nodes = [farm.finish("node1"), farm.finish("node2")]
    recorder = farm.finish("recorder", signal.SIGINT)
    for name, report in (("one", one), ("supervisor", supervisor), ("node1", nodes[0]), ("recorder", recorder)):
        check_document(f"report-{name}", report)
    counts = check_each_event_is_in_one_place(farm, supervisor, ())
    built = one["fragments"]["built"]
    assert two["fragments"]["built"] > 100 and built > 100
    whole = min(built, two["fragments"]["built"])
    assert len(farm.recorded()["debug_NodePartial"]) <= max(built, two["fragments"]["built"]) - whole
    assert counts["accepted"] + counts["rejected"] >= whole
    assert 0.3 < counts["accepted"] / whole < 0.7
    assert recorder["events"]["recorded"] == counts["accepted"] + counts["debug"]
    for node in nodes:
        events = node["events"]
        assert events["assigned"] == events["accepted"] + events["rejected"] + events["debug"] + events["lost"]
        assert node["supervisor"]["over"] and events["unsafe"] == 0
    assert sum(node["events"]["accepted"] for node in nodes) == counts["accepted"]


def test_a_killed_recorder_loses_nothing_and_records_nothing_twice(farm):
    # The time-out is longer than the absence of the recorder, also on a slow machine. So no event is assigned again.
    farm.configure(event_timeout="30s")
    farm.start_recorder()
    farm.start_supervisor()
    farm.start_node("node1")
    farm.start_readouts()
    for _ in range(2):
        before = len(farm.decisions())
        farm.until(lambda: len(farm.decisions()) > before + 100, "nothing is decided")
        farm.kill("recorder")
        farm.start_recorder()
    farm.end_readouts(before + 300)
    supervisor = farm.finish("supervisor", signal.SIGINT)
    farm.finish("node1")
    recorder = farm.finish("recorder", signal.SIGINT)
    assert recorder["events"]["read_back"] > 0
    counts = check_each_event_is_in_one_place(farm, supervisor, ())
    assert counts["accepted"] > 100
    assert any(".recovered." in path.name for path in (farm.directory / "files").iterdir())


@pytest.mark.slow
def test_events_of_a_killed_node_are_built_by_another_and_kept_apart(farm):
    farm.start_recorder()
    farm.start_supervisor()
    farm.start_node("node1")
    farm.start_node("node2", "farm.node.selection.time=fixed", "farm.node.selection.mean_time=300ms")
    farm.start_readouts()
    farm.until(lambda: len(farm.decisions()) > 100, "nothing is decided")
    farm.kill("node2")
    farm.end_readouts(300)
    supervisor = farm.finish("supervisor", signal.SIGINT)
    node = farm.finish("node1")
    farm.finish("recorder", signal.SIGINT)
    counts = check_each_event_is_in_one_place(farm, supervisor, ("debug_NodeBuildOnly",))
    assert len(farm.recorded()["debug_NodeBuildOnly"]) > 0
    assert node["events"]["build_only"] > 0 and counts["lost"] == 0


@pytest.mark.slow
def test_a_selection_in_python_that_crashes_fails_its_events_alone(farm):
    (farm.directory / "mine.py").write_text(
        "import os, rodeo\n"
        "@rodeo.select\n"
        "def mine(event):\n"
        "    if event.global_id % 200 == 7: os.kill(os.getpid(), 9)\n"
        "    return rodeo.accept('Main') if event.global_id % 2 == 0 else rodeo.reject()\n"
    )
    farm.configure(MINE)
    farm.start_recorder()
    farm.start_supervisor()
    farm.start_node("node1")
    farm.start_readouts()
    farm.end_readouts(300)
    supervisor = farm.finish("supervisor", signal.SIGINT)
    node = farm.finish("node1")
    farm.finish("recorder", signal.SIGINT)
    counts = check_each_event_is_in_one_place(farm, supervisor, ("debug_NodeSelection",))
    crashed = farm.recorded()["debug_NodeSelection"]
    assert len(crashed) == node["counters"]["selection_failed"] > 0
    assert all(event % 200 == 7 for event in crashed)
    assert counts["accepted"] > 50 and counts["rejected"] > 50


@pytest.mark.slow
def test_closed_files_go_to_their_target(farm):
    target = farm.directory / "target"
    farm.configure(more=f'max_file_events = 100\n[farm.recorder.target]\ndirectory = "{target}"\n')
    farm.start_recorder()
    farm.start_supervisor()
    farm.start_node("node1")
    farm.start_readouts()
    farm.end_readouts(300)
    farm.finish("supervisor", signal.SIGINT)
    farm.finish("node1")
    recorder = farm.finish("recorder", signal.SIGINT)
    assert recorder["target"]["stored_files"] == len(list(target.glob("*.data"))) > 1
    assert recorder["target"]["files_left"] == 0
    assert not list((farm.directory / "files").glob("*.data"))
    ids = [event.global_id for path in target.glob("*.data") for event in read_event_file(path).events]
    assert len(ids) == len(set(ids)) == recorder["events"]["recorded"]


@pytest.mark.slow
def test_the_examples_are_a_farm(farm):
    """Uses the example's selection in Python, which keeps every hundredth of these small events."""
    for name in ("node.toml", "recorder.toml", "selection.py"):
        shutil.copy(ROOT / "examples" / "farm" / name, farm.directory)
    own = '[farm.node.selection]\ntype = "python"\nfile = "selection.py"\n'
    text = (farm.directory / "node.toml").read_text()
    (farm.directory / "python.toml").write_text(text[: text.index("[farm.node.selection]")] + own)
    farm.rodeo("check", "node.toml", "recorder.toml", "python.toml", ROOT / "examples" / "farm" / "supervisor.toml")
    farm.start(
        "recorder",
        "farm",
        "record",
        "recorder.toml",
        "--set",
        "farm.recorder.run_number=7",
        "--set",
        "farm.recorder.directory=files",
    )
    farm.start_supervisor()
    farm.start("node1", "farm", "filter", "node.toml")
    farm.start("node2", "farm", "filter", "python.toml", "--set", "farm.node.name=node2")
    farm.start_readouts()
    farm.end_readouts(600)
    supervisor = farm.finish("supervisor", signal.SIGINT)
    farm.finish("node1"), farm.finish("node2")
    farm.finish("recorder", signal.SIGINT)
    counts = check_each_event_is_in_one_place(farm, supervisor, ("calibration_Sample",))
    assert all(event % 100 == 0 for event in farm.recorded()["calibration_Sample"])
    assert counts["accepted"] > 0 and counts["rejected"] > counts["accepted"]
