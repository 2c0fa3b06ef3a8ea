"""A farm without a trigger: two readouts of time frames of one CRU start at different moments; the farm builds whole time frames of both."""

import signal

import pytest
from running_emulator import emulated
from test_farm import HALF, Farm

pytestmark = pytest.mark.slow

CARD = """
[emulator]
name = "cards"
[[emulator.card]]
type = "cru"
name = "cru"
address = "0000:af:00.0"
endpoints = 2
links = 2
frame_size = "1KiB"
overflow = "busy"
first_orbit = 100
[emulator.trigger]
rate = "1kHz"
"""

READOUT = """
[run]
number = 7
type = "test"
[readout]
name = "{name}"
[readout.input]
type = "card"
cards = ["0000:af:00.{endpoint}"]
memory = "32MiB"
superpage = "32KiB"
time_frame_length = 8
orbits_per_frame = {orbits}
start_generator = true
[readout.builder]
type = "gbt"
chunk_size = "16KiB"
window = 256
timeout = "1s"
[readout.extractor]
type = "rdh"
orbits_per_frame = {orbits}
[[readout.rob]]
source_id = "0x0051000{endpoint}"
[[readout.consumer]]
type = "processor"
name = "processor"
work = "verify_rdh"
orbits_per_frame = {orbits}
seed = 1
[[readout.consumer]]
type = "hlt_request_handler"
name = "hlt"
rate = "125Hz"
retention = "4s"
linger = "2s"
"""


@pytest.fixture
def farm(rodeo):
    (rodeo.directory / "card.toml").write_text(CARD)
    with emulated(rodeo, "card.toml"), Farm(rodeo) as farm:
        farm.configure(HALF.replace("0.5", "1.0"))
        text = (rodeo.directory / "farm.toml").read_text().replace('payload = "provable seed=1 crc=0"', "")
        text = text.replace(
            'readout_grace = "2s"', 'readout_grace = "20s"\nassign_after = "20s"'
        )  # a busy host may start the second readout late
        (rodeo.directory / "farm.toml").write_text(text)
        yield farm


def configure(farm, orbits=(8, 8)):
    for endpoint, name in enumerate(("one", "two")):
        (farm.directory / f"{name}.toml").write_text(
            READOUT.format(name=name, endpoint=endpoint, orbits=orbits[endpoint])
        )


def begin(farm):
    configure(farm)
    farm.start_recorder()
    farm.start_supervisor()
    farm.start_node("node")
    farm.start("one", "readout", "one.toml")
    farm.until(
        lambda: farm.status("one").get("fragments", {}).get("built", 0) >= 100, "the first readout builds nothing"
    )
    farm.start("two", "readout", "two.toml")
    farm.until(lambda: len(farm.decisions()) >= 200, "too little is decided")


def check(farm, supervisor):
    events = supervisor["events"]
    assert events["adds_up"] and events["undecided"] == events["partial"] == events["readout_died"] == 0, events
    # On a busy host a node may be silent for node_grace: its events are then recorded to the debug stream.
    assert events["before_common_start"] >= 50 and events["accepted"] + events["debug"] == events["in"] >= 200, events
    ids = sorted(farm.decisions())
    assert ids == list(range(ids[0], ids[-1] + 1)), "all ids from the first to the last that both can have"


def test_whole_time_frames_are_those_that_both_readouts_have(farm):
    begin(farm)
    for name in ("one", "two"):
        farm.processes[name].send_signal(signal.SIGINT)
    reports = [farm.finish(name, exit_codes=(0, 6)) for name in ("one", "two")]
    check(farm, farm.finish("supervisor"))
    for report in reports:
        counters = report["consumers"]["hlt"]["counters"]
        assert counters["cleared_early"] == counters["uncleared"] == 0, counters
        assert report["verified"]["mismatches"] == 0
    farm.finish("node")
    farm.finish("recorder", signal.SIGINT)


def test_a_supervisor_that_is_stopped_first_ends_while_readouts_go_on(farm):
    begin(farm)
    supervisor = farm.finish("supervisor", signal.SIGINT)
    check(farm, supervisor)
    assert all(farm.processes[name].poll() is None for name in ("one", "two"))


def test_readouts_of_other_time_frames_are_refused_by_name(farm):
    configure(farm, orbits=(8, 4))
    farm.start_supervisor()
    for name in ("one", "two"):
        farm.start(name, "readout", f"{name}.toml")
    supervisor = farm.processes.pop("supervisor")
    assert supervisor.wait(timeout=60) == 1
    log = (farm.directory / "supervisor.log").read_text()
    assert "error[farm.other_numbering]" in log and "time frames of 4 orbits" in log and "one.hlt" in log, log
