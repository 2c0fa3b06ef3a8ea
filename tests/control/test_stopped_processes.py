"""Default settings: each class of process of a farm is stopped for half a minute, one after the other. One run goes on, no process is given up, and
counters show the cost (docs/explanation/farm-supervisor.md)."""

import os
import shutil
import signal
import time

import pytest
from conftest import ROOT, scaled
from running_room import RunningRoom, phases

pytestmark = pytest.mark.slow

STOPPED_S = 30  # The only fixed wait.
# Each class, with a counter that says what its stop has cost, as docs/explanation/farm-supervisor.md lists them. An emulator offers fewer triggers.
STOPS = {
    "cards": None,
    "router": "vetoed",
    "readout-1": "lost_timed_out",
    "supervisor": "vetoed",
    "node-1": "node_gone",
    "recorder": "record_again",
}


@pytest.fixture(scope="module")
def room(place):
    shutil.copytree(ROOT / "examples" / "systems" / "farm", place / "farm")
    shutil.copy(ROOT / "examples" / "systems" / "farm.toml", place)
    with RunningRoom(place / "farm.toml", patience=1.0) as room:  # the default patience
        room.command("launch")
        yield room


def recorded(document):
    return next(each["numbers"]["events"] or 0 for each in document["processes"] if each["name"] == "recorder")


def pids(room):
    return {each["name"]: each["pid"] for each in room.document()["processes"]}


def counted(room):
    """Returns {counter: sum over the processes of the farm}, including the vetoed triggers."""
    sums = {}
    for name in pids(room):
        status = room.do(room.controller.observer.host_of(name).ask(name, {"command": "status"}, scaled(60)))
        found = (status.get("trigger") or {}).get("vetoed") or {} if name == "cards" else status.get("counters") or {}
        for counter, count in found.items():
            key = "vetoed" if name == "cards" else counter
            sums[key] = sums.get(key, 0) + count
    return sums


def stop(room, name):
    """Stops a process for the promised time, and waits until all takes data again."""
    pid = room.pid(name)
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(STOPPED_S)
    finally:
        os.kill(pid, signal.SIGCONT)
    room.until(
        lambda document: document["state"] == "RUNNING" and set(phases(document).values()) == {"running"},
        f"{name} is there again",
    )
    had = recorded(room.document())
    room.until(lambda document: recorded(document) > had + 200, f"events are recorded again after {name}")


def test_each_class_may_be_stopped_for_half_a_minute(room):
    number = room.command("start", run_type="test")["run"]
    room.until(lambda document: recorded(document) >= 50, "events are recorded")
    before = pids(room)
    for name, counter in STOPS.items():
        counts = counted(room)
        stop(room, name)
        cost = {key: count - counts.get(key, 0) for key, count in counted(room).items()}
        assert (room.document()["run"]["number"], pids(room)) == (number, before), (
            f"the run or a process did not survive {name}"
        )
        assert counter is None or cost[counter] > 0, f"{name}: {cost}"
    done = room.command("stop")
    farm = done["farm"]
    assert (done["condition"], done["sent"], done["lost"]) == ("INCOMPLETE", done["built"], {}), done["reasons"]
    assert farm["in"] == farm["accepted"] + farm["rejected"] + farm["debug"] == done["events"], farm
    assert (
        farm["readout_died"] == farm["undecided"] == farm["uncleared"] == 0 < farm["partial"] and farm["reassigned"] > 0
    ), farm
    assert farm["recorded"] == farm["accepted"] + farm["debug"], farm
