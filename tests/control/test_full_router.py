"""A farm whose router is full: one run is stopped with its backlog; in another run the supervisor is killed. The balances add up."""

import os
import shutil
import signal

import pytest
from conftest import ROOT
from running_room import RunningRoom, phases

pytestmark = pytest.mark.slow

SLOW = 'fraction = 0.25\ntime = "fixed"\nmean_time = "10ms"\n'  # two nodes decide some 200 events a second


@pytest.fixture(scope="module")
def room(place):
    """4 kHz, readouts that keep few fragments, and slow nodes: the readouts block the router."""
    shutil.copytree(ROOT / "examples" / "systems" / "farm", place / "farm")
    shutil.copy(ROOT / "examples" / "systems" / "farm.toml", place)

    def change(name, *pairs):
        file = place / "farm" / name
        text = file.read_text()
        for old, new in pairs:
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        file.write_text(text)

    change("emulator.toml", ('rate = "1kHz"', 'rate = "4kHz"'))
    change("readout.toml", ('retention = "5s"', "max_fragments = 300"))
    change("farm.toml", ("fraction = 0.25\n", SLOW))
    with RunningRoom(place / "farm.toml") as room:
        room.command("launch")
        yield room


def fill(room):
    """The fill of the router's fullest queue."""
    return next(each["numbers"].get("fill") or 0 for each in room.document()["processes"] if each["name"] == "router")


def full(room):
    room.command("start", run_type="test")
    room.until(lambda _: fill(room) > 0.9, "the router is full")


def check(done):
    assert done["condition"] != "WRONG", done["reasons"]
    assert done["sent"] == done["built"] + sum(done["lost"].values()), done
    assert set(done["lost"]) <= {
        "router_undelivered",
        "router_no_subscriber",
        "stop_limit",
        "run_ended",
        "incomplete",
        "card_cut_off",
        "not_reported",
    }, done["lost"]
    farm = done["farm"]
    assert farm["in"] == sum(farm[key] for key in ("accepted", "rejected", "debug", "readout_died", "undecided")), farm


def test_a_run_that_is_stopped_with_a_full_router_adds_up(room):
    room.acknowledge_all()
    full(room)
    done = room.command("stop")
    print(done)
    check(done)


def test_a_run_whose_supervisor_is_killed_before_a_full_router_adds_up(room):
    room.acknowledge_all()
    full(room)
    before = room.pid("supervisor")
    os.kill(before, signal.SIGKILL)
    room.until(
        lambda document: room.pid("supervisor") not in (None, before) and phases(document)["supervisor"] == "running",
        "the supervisor is there again",
    )
    room.until(lambda _: fill(room) > 0.9, "the router is full")
    done = room.command("stop")
    print(done)
    check(done)
    assert "not_reported" not in done["lost"], "each router and readout has left its report"
