"""examples/systems/farm.toml through the control room: two runs with real cards, router, readouts, supervisor, nodes and recorder, and what is kept of them."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import BUILD, ROOT
from running_room import RunningRoom, phases

FARM = ("readout-1", "readout-2", "supervisor", "node-1", "node-2", "recorder")


@pytest.fixture(scope="module")
def room(place):
    shutil.copytree(ROOT / "examples" / "systems" / "farm", place / "farm")
    shutil.copy(ROOT / "examples" / "systems" / "farm.toml", place)
    with RunningRoom(place / "farm.toml") as room:
        room.command("launch")
        yield room


def accepted(document):
    """Events that the recorder has."""
    return next(each["numbers"]["events"] or 0 for each in document["processes"] if each["name"] == "recorder")


def run(room, meanwhile=lambda: None):
    """A run with some recorded events: its number, what the stop returned, its row."""
    number = room.command("start", run_type="test")["run"]
    room.until(lambda document: document["run"]["number"] == number and accepted(document) >= 50, "events are recorded")
    meanwhile()
    return number, room.command("stop"), room.row(number)


def check_files(row, place, farm):
    """All that was accepted is in files whose checksums are in the database, and every byte of it is proven."""
    files = row["files"]
    assert all(each["state"] == "closed" and each["sha256"] and each["path"].startswith(str(place)) for each in files)
    assert all(Path(each["path"]).parent.name == "recorder" and Path(each["path"]).parent.parent.name == f"{row['number']:06d}" for each in files)
    assert sum(each["events"] for each in files) == farm["recorded"] == farm["accepted"] + farm["debug"] > 0
    proven(files)


def proven(files):
    """Every byte of these files is what the card sent."""
    done = subprocess.run([BUILD / "rodeo", "data", "verify", *(each["path"] for each in files)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "proven byte by byte" in done.stdout


def test_two_runs_of_a_farm_are_good_and_their_books_add_up(room, place):
    before = phases(room.document())
    assert {name: before[name] for name in FARM} == dict.fromkeys(FARM, "ready")
    numbers = []
    for _ in range(2):
        number, done, row = run(room)
        numbers.append(number)
        farm = done["farm"]
        assert (done["condition"], done["flags"], done["reasons"]) == ("GOOD", [], [])
        assert farm["in"] == farm["accepted"] + farm["rejected"] == done["events"]
        assert (farm["debug"], farm["partial"], farm["readout_died"]) == (0, 0, 0)
        assert done["sent"] == done["built"] == 32 * done["events"] and done["lost"] == {}
        assert 0 < farm["accepted"] < farm["in"]
        check_files(row, place, farm)
        assert {each["name"] for each in row["processes"]} == {"cards", "router", *FARM}
        counters = {(each["process"], each["name"]): each["value"] for each in row["counters"]}
        assert counters["supervisor", "events_accepted"] == farm["accepted"] and counters["supervisor", "events_rejected"] == farm["rejected"]
        assert room.state == "READY" and not room.document()["alarms"]
    assert numbers[1] == numbers[0] + 1


def test_files_of_the_recorder_and_the_run_database_agree_on_luminosity_blocks(room, place):
    def next_block():
        assert room.command("advance")["lumi_block"] == 2
        had = accepted(room.document())
        room.until(lambda document: accepted(document) > had + 50, "events of the second block are recorded")

    number, done, row = run(room, next_block)
    assert done["condition"] == "GOOD", done["reasons"]
    blocks = row["lumi_blocks"]
    assert [(each["number"], each["scan_step"]) for each in blocks] == [(1, 0), (2, 0)]
    assert sum(each["triggers"] for each in blocks) == done["farm"]["in"]
    for each in blocks:
        files = [file for file in row["files"] if f"._lb{each['number']:04}." in file["path"]]
        assert files and sum(file["events"] for file in files) == each["recorded"] > 0
    assert sum(each["recorded"] for each in blocks) == done["farm"]["recorded"]


@pytest.mark.parametrize("name", ["node-2", pytest.param("supervisor", marks=pytest.mark.slow), pytest.param("recorder", marks=pytest.mark.slow)])
def test_a_run_goes_on_with_the_next_life_of_what_was_killed_and_loses_nothing(room, name):
    def kill():
        before = room.pid(name)
        os.kill(before, signal.SIGKILL)
        room.until(lambda document: room.pid(name) not in (None, before) and phases(document)[name] == "running", f"{name} is there again")
        had = accepted(room.document())
        room.until(lambda document: accepted(document) > had + 50, "events are recorded again")

    room.acknowledge_all()
    _, done, row = run(room, kill)
    farm = done["farm"]
    assert done["condition"] == "INCOMPLETE" and "DEGRADED" in done["flags"]
    assert done["reasons"][-1 if name != "node-2" else 0] == f"{name} left no report", done["reasons"]
    assert farm["in"] == farm["accepted"] + farm["rejected"] + farm["debug"] and farm["partial"] == farm["readout_died"] == farm["undecided"] == 0
    assert farm["recorded"] >= farm["accepted"] + farm["debug"] > 0 and done["sent"] == done["built"] == 32 * done["events"]
    proven(row["files"])


def test_close_leaves_no_process_and_no_socket(room, place):
    pids = [each["pid"] for each in room.document()["processes"]]
    room.command("close")
    assert room.state == "OFF"
    assert not [pid for pid in pids if pid and os.path.exists(f"/proc/{pid}")]
    assert sorted(each.name for each in (place / "run").iterdir() if each.name.startswith("farm-")) == []
