"""examples/systems/farm.toml in the control room: two runs with real cards, router, readouts, supervisor, nodes and recorder, and their stored results."""

import os
import re
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from browsing import LONG_S, Served, sees, shows, until
from conftest import BUILD, ROOT, scaled
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
    """The number of events in the recorder."""
    return next(each["numbers"]["events"] or 0 for each in document["processes"] if each["name"] == "recorder")


def run(room, meanwhile=lambda: None):
    """Does a run with some recorded events. Returns its number, the answer of the stop, and its row."""
    number = room.command("start", run_type="test")["run"]
    room.until(lambda document: document["run"]["number"] == number and accepted(document) >= 50, "events are recorded")
    meanwhile()
    return number, room.command("stop"), room.row(number)


def check_files(row, place, farm):
    """Checks that all accepted events are in files, that the database has the files' checksums, and that every byte is right."""
    files = row["files"]
    assert all(each["state"] == "closed" and each["sha256"] and each["path"].startswith(str(place)) for each in files)
    assert all(
        Path(each["path"]).parent.name == "recorder" and Path(each["path"]).parent.parent.name == f"{row['number']:06d}"
        for each in files
    )
    assert sum(each["events"] for each in files) == farm["recorded"] == farm["accepted"] + farm["debug"] > 0
    proven(files)


def proven(files):
    """Checks that every byte of these files is what the card sent."""
    done = subprocess.run(
        [BUILD / "rodeo", "data", "verify", *(each["path"] for each in files)], capture_output=True, text=True
    )
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
        assert (
            counters["supervisor", "events_accepted"] == farm["accepted"]
            and counters["supervisor", "events_rejected"] == farm["rejected"]
        )
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


def test_acceptance_10_a_slow_recorder_is_named_when_a_stop_is_overdue_and_nothing_is_killed(room):
    def each_write_takes(seconds):
        room.do(
            room.controller.observer.host_of("recorder").ask(
                "recorder", {"command": "slow_disk", "seconds": seconds}, scaled(60)
            )
        )

    room.acknowledge_all()
    room.command("start", run_type="test")
    room.until(lambda document: accepted(document) >= 20, "events are recorded")
    before, pid = room.controller.system, room.pid("recorder")
    room.controller.system = replace(before, classes=tuple(replace(each, stop_limit_s=0.1) for each in before.classes))
    each_write_takes(2)
    try:
        stopping = room.order("stop")
        document = room.until(
            lambda document: (
                "OVERDUE" in document["flags"]
                and any("recorder" in each for each in document["waiting_for"])
                and document
            ),
            "it is overdue",
        )
        assert document["state"] == "STOPPING" and room.pid("recorder") == pid
    finally:
        each_write_takes(0)
        room.controller.system = before
    done = stopping.result(scaled(300))
    assert done["condition"] == "GOOD" and done["farm"]["recorded"] == done["farm"]["accepted"] > 0


@pytest.mark.parametrize(
    "name",
    ["node-2", pytest.param("supervisor", marks=pytest.mark.slow), pytest.param("recorder", marks=pytest.mark.slow)],
)
def test_a_run_goes_on_with_the_next_life_of_what_was_killed_and_loses_nothing(room, name):
    def kill():
        before = room.pid(name)
        os.kill(before, signal.SIGKILL)
        room.until(
            lambda document: room.pid(name) not in (None, before) and phases(document)[name] == "running",
            f"{name} is there again",
        )
        had = accepted(room.document())
        room.until(lambda document: accepted(document) > had + 50, "events are recorded again")

    room.acknowledge_all()
    _, done, row = run(room, kill)
    farm = done["farm"]
    assert done["condition"] == "INCOMPLETE" and "DEGRADED" in done["flags"]
    assert f"{name} left no report" in done["reasons"]
    assert (
        farm["in"] == farm["accepted"] + farm["rejected"] + farm["debug"]
        and farm["partial"] == farm["readout_died"] == farm["undecided"] == 0
    )
    assert (
        farm["recorded"] >= farm["accepted"] + farm["debug"] > 0
        and done["sent"] == done["built"] == 32 * done["events"]
    )
    proven(row["files"])


@pytest.fixture(scope="module")
def page(room, browser):
    served = Served(room)
    try:
        served.open()
        page = browser.new_page(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")
        page.set_default_timeout(scaled(LONG_S) * 1000)
        page.goto(served.address())
        yield page
        page.close()
    finally:
        served.close()


def drawn(page):
    """The page's numbers of whole events by stage: {stage: {name: number}}."""
    rows = page.evaluate("""() => [...document.querySelectorAll('[data-farm]')].flatMap((stage) => [...stage.querySelectorAll('div')].map((row) =>
        [stage.dataset.farm, row.querySelector('dt').textContent, row.querySelector('dd').textContent]))""")
    stages = {}
    for stage, name, number in rows:
        stages.setdefault(stage, {})[name] = int(re.sub(r"\D", "", number) or -1)
    return stages


def told(farm):
    """The numbers that the page shows, from the document: {stage: {name: number}}."""
    names = {
        "supervisor": {"accepted": "accepted", "rejected": "rejected", "under way": "under_way"},
        "node": {"partial": "partial", "assigned again": "reassigned", "debug": "debug"},
        "recorder": {"recorded": "recorded", "luminosity block": "lumi_block"},
    }
    return {stage: {name: farm[key] for name, key in rows.items()} for stage, rows in names.items()}


def test_the_page_draws_the_farm_and_what_became_of_its_events(room, page):
    room.acknowledge_all()
    room.command("start", run_type="test")
    shows(page, "RUNNING")
    way = page.locator("[data-way] > ol > li")
    assert [each.strip() for each in way.locator("> h2").all_text_contents()] == [
        "Cards",
        "Router",
        "Readout",
        "Supervisor",
        "Filter nodes",
        "Recorder",
        "Files",
    ]
    assert [page.locator(f'[data-way] [data-process="{name}"]').count() for name in ("cards", "router", *FARM)] == [
        1
    ] * 8
    before = room.pid("node-2")
    os.kill(before, signal.SIGSTOP)  # the events of this node wait; they go to the other node when this one is gone
    room.until(lambda document: (document["numbers"]["farm"] or {}).get("under_way", 0) >= 2, "it has events")
    sees(page, '[data-process="node-2"]', "lost")
    os.kill(before, signal.SIGKILL)
    room.until(
        lambda document: room.pid("node-2") not in (None, before) and phases(document)["node-2"] == "running",
        "it is there again",
    )
    sees(page, '[data-process="node-2"]', "running")
    room.command("pause")
    farm = room.until(
        lambda document: (
            document["state"] == "PAUSED"
            and document["numbers"]["farm"]["under_way"] == 0
            and document["numbers"]["farm"]["recorded"]
            == document["numbers"]["farm"]["accepted"] + document["numbers"]["farm"]["debug"]
            and document["numbers"]["farm"]
        ),
        "all is decided and recorded",
    )
    assert farm["accepted"] > 0 and farm["rejected"] > 0 and farm["reassigned"] > 0 and farm["debug"] > 0
    until(
        page,
        "(number) => document.querySelector('[data-farm=\"recorder\"] dd').textContent.replace(/\\D/g, '') === String(number)",
        farm["recorded"],
    )
    room.until(
        lambda document: drawn(page) == told(document["numbers"]["farm"]), "the page has the numbers of the room"
    )
    room.command("stop")


def test_close_leaves_no_process_and_no_socket(room, place):
    pids = [each["pid"] for each in room.document()["processes"]]
    room.command("close")
    assert room.state == "OFF"
    assert not [pid for pid in pids if pid and os.path.exists(f"/proc/{pid}")]
    assert sorted(each.name for each in (place / "run").iterdir() if each.name.startswith("farm-")) == []
