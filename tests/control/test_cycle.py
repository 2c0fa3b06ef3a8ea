"""Whole cycles of a small system: launch, start, pause, resume, stop, close, with real cards and a real readout; and the resulting rows of the database."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from rodeo.control.refused import Refused
from running_room import phases


def events(document):
    return document["numbers"]["events"] or 0


def test_a_run_from_its_number_to_its_closed_row(room, place):
    assert room.state == "READY" and phases(room.document())["readout"] == "ready"
    number = room.command("start", comment="the first", run_type="test")["run"]
    assert room.state == "RUNNING"
    document = room.until(lambda document: events(document) >= 50 and document, "50 events are built")
    assert (
        document["run"]["number"] == number
        and document["run"]["holder"] == "ana"
        and document["run"]["comment"] == "the first"
    )
    done = room.command("stop")
    assert (
        done["run"] == number
        and done["condition"] == "GOOD"
        and done["flags"] == []
        and done["lost"] == {}
        and done["sent"] == done["built"] >= 100
    )
    assert room.state == "READY"
    row = room.row(number)
    assert (row["state"], row["condition"], row["type"]) == ("CLOSED", "GOOD", "test")
    folder = place / "t" / "runs" / f"{number:06d}"
    files = [each for each in row["files"] if each["state"] == "closed"]
    assert files and all(
        each["sha256"] == hashlib.sha256(Path(each["path"]).read_bytes()).hexdigest() for each in files
    )
    assert json.loads((folder / "run.json").read_text())["number"] == number
    assert room.do(room.controller.writer.open_runs()) == []


def test_the_next_run_has_the_next_number_and_books_of_its_own(room):
    first = room.command("start")["run"]
    room.until(lambda document: events(document) >= 20, "events come")
    one = room.command("stop")
    second = room.command("start")["run"]
    room.until(
        lambda document: document["run"] and document["run"]["number"] == second and events(document) >= 20,
        "events come",
    )
    two = room.command("stop")
    assert second == first + 1
    assert one["condition"] == two["condition"] == "GOOD"
    assert two["sent"] == two["built"] == 2 * two["events"]  # two links; no data of the run before


def test_a_pause_holds_the_trigger_and_nothing_else(room):
    room.command("start")
    room.command("pause")
    assert room.state == "PAUSED"
    asked = room.controller.trigger
    held, built = room.do(asked.hold()), events(room.document())
    room.until(lambda document: document["numbers"]["trigger_rate_hz"] == 0, "no more triggers come")
    assert room.do(asked.hold()) == held and events(room.document()) == built, (
        "all accepted events are built when the pause has returned"
    )
    assert room.refusal("pause") == "control.not_now"
    room.command("resume")
    before = events(room.document())
    room.until(lambda document: document["state"] == "RUNNING" and events(document) > before, "events come again")
    assert room.command("stop")["condition"] == "GOOD"


def test_luminosity_blocks_of_a_run_begin_when_somebody_says_so_and_stand_in_its_row(room):
    number = room.command("start")["run"]
    assert room.refusal("start") == "control.not_now"
    room.until(lambda document: events(document) >= 20, "events come")
    first = room.command("advance")
    assert (first["run"], first["lumi_block"], first["scan_step"]) == (number, 2, 0)
    had = events(room.document())
    room.until(lambda document: events(document) > had + 20, "events of the next block come")
    second = room.command("advance", scan_step=True)
    assert (second["lumi_block"], second["scan_step"]) == (3, 1) and second["sequence"] > first["sequence"]
    had = events(room.document())
    room.until(lambda document: events(document) > had + 20, "events of the last block come")
    done = room.command("stop")
    blocks = room.row(number)["lumi_blocks"]
    assert [(each["number"], each["scan_step"]) for each in blocks] == [(1, 0), (2, 0), (3, 1)]
    assert (
        blocks[0]["first_trigger"] == 0
        and blocks[2]["first_trigger"] - blocks[1]["first_trigger"] == second["sequence"] - first["sequence"]
    )
    assert sum(each["triggers"] for each in blocks) == done["events"] and all(
        each["first_id"] is not None for each in blocks
    )
    assert room.refusal("advance") == "control.not_now"


def test_the_next_run_begins_with_the_first_luminosity_block_again(room):
    number = room.command("start")["run"]
    room.until(lambda document: events(document) >= 20, "events come")
    done = room.command("stop")
    assert [
        (each["number"], each["scan_step"], each["first_trigger"], each["triggers"])
        for each in room.row(number)["lumi_blocks"]
    ] == [(1, 0, 0, done["events"])]


def test_acceptance_9_a_stop_ends_a_run_that_has_no_triggers(room):
    room.command("start")
    room.command("pause")
    assert room.command("stop")["condition"] == "GOOD"
    assert room.state == "READY"


def test_of_two_starts_at_once_one_has_a_number_and_the_other_is_busy(room):
    orders = [room.order("start", actor=name) for name in ("ana", "ben")]
    answers = []
    for each in orders:
        try:
            answers.append(each.result(300))
        except Refused as refused:
            answers.append(refused.code)
    runs = [answer["run"] for answer in answers if isinstance(answer, dict)]
    assert len(runs) == 1 and ("control.busy" in answers or "control.not_now" in answers)
    assert [row["number"] for row in room.do(room.controller.writer.open_runs())] == runs
    room.command("stop")


def test_a_command_goes_on_when_whoever_sent_it_is_gone(room):
    number = room.command("start")["run"]
    stopping = room.order("stop")
    room.until(lambda document: document["act"] or document["run"] is None, "the stop has begun")
    stopping.cancel()
    room.until(lambda document: document["state"] == "READY" and document["run"] is None, "the run is closed")
    assert room.row(number)["state"] == "CLOSED"


def test_commands_that_make_no_sense_now_are_refused(room):
    assert [room.refusal(name) for name in ("stop", "pause", "resume", "go_on", "recover")] == ["control.not_now"] * 5
    assert room.refusal("launch") == "control.not_now" or room.state == "READY"


def test_a_launch_with_other_settings_starts_anew_what_they_change(room):
    before = {name: room.pid(name) for name in ("cards", "readout")}
    room.command("launch", set=["readout:readout.builder.window=2048"])
    assert room.state == "READY"
    assert room.pid("cards") == before["cards"] and room.pid("readout") != before["readout"]
    assert room.refusal("launch", set=["readout:readout.builder.window=-1"]) == "control.configuration"
    room.command("launch", set=[])
    assert room.state == "READY"


def test_close_leaves_no_process_and_no_socket(room, place):
    pids = [room.pid(name) for name in ("cards", "readout")]
    room.command("close")
    assert room.state == "OFF"
    assert not [pid for pid in pids if os.path.exists(f"/proc/{pid}")]
    assert sorted(each.name for each in (place / "run").iterdir() if each.name.startswith("t-")) == []
    room.command("launch")
    assert room.state == "READY"


@pytest.mark.slow
def test_twenty_runs_in_a_row(room):
    if room.state == "OFF":
        room.command("launch")
    first = room.command("start")["run"]
    assert room.command("stop")["condition"] == "GOOD"
    for number in range(first + 1, first + 20):
        assert room.command("start")["run"] == number
        done = room.command("stop")
        assert (done["condition"], done["flags"]) == ("GOOD", [])
