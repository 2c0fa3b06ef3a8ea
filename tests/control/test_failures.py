"""Processes that are killed, stopped, missing or do not start, and a killed controller: the reactions, and acts that must never happen."""

import dataclasses
import os
import signal
import stat

import pytest
from conftest import scaled
from rodeo.control.processes import kernel
from rodeo.control.refused import Refused
from room_process import RoomProcess
from running_room import RunningRoom, phases
from small_systems import emulator_file, one_card, process, readout_file, two_of_three, two_readouts, write


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_acceptance_4_an_essential_that_is_killed_holds_the_trigger_and_interrupts_the_run(place):
    with RunningRoom(one_card(place / "a", name="a", choose_limit="1s")) as room:
        room.command("launch")
        number = room.command("start")["run"]
        os.kill(room.pid("readout"), signal.SIGKILL)
        room.until(lambda document: document["run"] is None and document["last_run"], "the run is ended by the rule")
        row = room.row(number)
        assert row["state"] == "CLOSED" and row["condition"] != "GOOD" and "INTERRUPTED" in row["flags"]
        assert "readout" in row["reason"] and "signal 9" in row["reason"]
        room.until(
            lambda document: any(each["cause"] == "process.failed:readout" for each in document["alarms"]),
            "the first cause is an alarm",
        )
        held = room.controller.trigger
        assert room.do(held.hold()) == room.do(held.hold())
        assert room.refusal("start") == "control.not_now"  # after an error no run can start
        room.until_state("ERROR")
        room.command("recover")
        room.acknowledge_all()
        room.until_state("READY")
        room.command("start")
        assert room.command("stop")["condition"] == "GOOD"


def test_the_run_goes_on_without_an_essential_if_somebody_says_so(place):
    with RunningRoom(two_readouts(place / "b", name="b", role="essential", restart="never")) as room:
        room.command("launch")
        room.command("start")
        os.kill(room.pid("spare"), signal.SIGKILL)
        held = room.until(
            lambda document: document["run"]["choice"] and document["state"] == "PAUSED" and document,
            "the trigger is held, and a decision is requested",
        )
        assert held["run"]["choice"]["process"] == "spare"
        assert (held["headline"]["word"], held["what"]) == ("NO DATA", "the run takes no data: spare: has failed")
        assert room.command("go_on")["without"] == ["spare"]
        before = room.document()["numbers"]["events"] or 0
        room.until(
            lambda document: document["state"] == "RUNNING" and (document["numbers"]["events"] or 0) > before + 20,
            "events are built",
        )
        assert "DEGRADED" in room.document()["flags"]
        assert [each["name"] for each in room.document()["processes"] if each["left_out"]] == ["spare"]
        done = room.command("stop")
        assert done["condition"] in ("INCOMPLETE", "ABORTED") and "DEGRADED" in done["flags"]


def test_a_class_goes_on_as_long_as_it_has_enough_and_then_somebody_is_asked(place):
    with RunningRoom(two_of_three(place / "k", name="k")) as room:
        room.command("launch")
        room.command("start")
        os.kill(room.pid("readout-2"), signal.SIGKILL)
        room.until(
            lambda document: phases(document)["readout-2"] == "failed" and "DEGRADED" in document["flags"],
            "it is missed",
        )
        before = room.document()["numbers"]["events"] or 0
        room.until(
            lambda document: document["state"] == "RUNNING" and (document["numbers"]["events"] or 0) > before + 20,
            "two are enough: data go on",
        )
        assert room.document()["run"]["choice"] is None
        assert (
            next(each for each in room.document()["alarms"] if each["cause"] == "process.failed:readout-2")["severity"]
            == "warning"
        )
        os.kill(room.pid("readout-1"), signal.SIGKILL)
        room.until(lambda document: document["run"] and document["run"]["choice"], "one is too few")
        assert room.document()["run"]["choice"]["process"].startswith("readout-")
        assert any(
            each["cause"] == "process.failed:readout-1" and each["severity"] == "alarm"
            for each in room.document()["alarms"]
        )
        done = room.command("stop")
        assert "DEGRADED" in done["flags"] and done["condition"] in ("INCOMPLETE", "ABORTED"), done


def test_acceptance_5_a_process_that_is_stopped_is_lost_and_heals_when_it_goes_on(place):
    with RunningRoom(one_card(place / "c", name="c"), patience=scaled(1)) as room:
        room.command("launch")
        number = room.command("start")["run"]
        pid = room.pid("readout")
        os.kill(pid, signal.SIGSTOP)
        room.until(lambda document: phases(document)["readout"] == "lost" and document["run"]["choice"], "it is lost")
        assert alive(pid)
        os.kill(pid, signal.SIGCONT)
        room.until(
            lambda document: document["state"] == "RUNNING" and phases(document)["readout"] == "running",
            "it is there again, and data come",
        )
        done = room.command("stop")
        assert done["run"] == number and done["sent"] == done["built"] + sum(done["lost"].values())


def test_a_stop_that_waits_says_for_whom_and_kills_nobody(place):
    file = one_card(place / "d", name="d")
    file.write_text(file.read_text().replace('stop_limit = "300s"', 'stop_limit = "100ms"'))
    with RunningRoom(file) as room:
        room.command("launch")
        room.command("start")
        pid = room.pid("readout")
        os.kill(pid, signal.SIGSTOP)
        stopping = room.order("stop")
        document = room.until(
            lambda document: (
                "OVERDUE" in document["flags"]
                and any("readout" in each for each in document["waiting_for"])
                and document
            ),
            "it is overdue",
        )
        assert document["state"] == "STOPPING" and document["act"]["name"] == "stop" and alive(pid)
        assert room.refusal("start") == "control.busy"
        os.kill(pid, signal.SIGCONT)
        assert stopping.result(scaled(300))["condition"] in ("GOOD", "INCOMPLETE")
        room.until_state("READY")


def test_an_abort_ends_what_stands_still_and_closes_the_row(place):
    with RunningRoom(one_card(place / "e", name="e"), patience=scaled(0.2)) as room:
        room.command("launch")
        number = room.command("start")["run"]
        pids = [room.pid("cards"), room.pid("readout")]
        os.kill(pids[1], signal.SIGSTOP)
        stopping = room.order("stop")
        room.until(lambda document: document["act"] and document["act"]["name"] == "stop", "the stop has begun")
        room.command("abort", confirm=True)
        assert stopping.exception(scaled(300)).code == "control.overtaken"
        assert room.state == "OFF" and not any(map(alive, pids))
        assert (room.row(number)["state"], room.row(number)["condition"]) == ("ABORTED", "ABORTED")
        room.command("launch")
        assert room.state == "READY"


def test_an_expendable_is_restarted_and_joins_the_run(place):
    with RunningRoom(two_readouts(place / "f", name="f")) as room:
        room.command("launch")
        room.command("start")
        pid = room.pid("spare")
        os.kill(pid, signal.SIGKILL)
        room.until(
            lambda document: room.pid("spare") != pid and phases(document)["spare"] == "running", "it runs again"
        )
        assert room.process("spare")["restarts"] == 1 and room.state == "RUNNING"
        before = room.document()["numbers"]["events"] or 0
        room.until(lambda document: (document["numbers"]["events"] or 0) > before, "data go on")
        assert "DEGRADED" in room.document()["run"]["flags"]
        done = room.command("stop")
        assert done["condition"] == "INCOMPLETE", str(done)
        room.until_state("READY")


@pytest.mark.slow
def test_acceptance_6_an_expendable_is_restarted_and_not_a_fourth_time(place):
    with RunningRoom(two_readouts(place / "g", name="g")) as room:
        room.command("launch")
        room.command("start")
        for time in range(1, 4):
            pid = room.pid("spare")
            os.kill(pid, signal.SIGKILL)
            room.until(
                lambda document: room.pid("spare") != pid and phases(document)["spare"] == "running", f"restart {time}"
            )
        os.kill(room.pid("spare"), signal.SIGKILL)
        room.until(
            lambda document: any(each["cause"] == "process.given_up:spare" for each in document["alarms"]),
            "it is given up",
        )
        assert room.process("spare")["restarts"] == 3 and room.state == "RUNNING"
        room.command("stop")


def test_acceptance_7_a_start_names_the_essential_that_is_missing(place):
    with RunningRoom(one_card(place / "h", name="h")) as room:
        room.command("launch")
        os.kill(room.pid("cards"), signal.SIGKILL)
        room.until_state("ERROR")
        assert "cards" in room.document()["commands"]["start"]
        with pytest.raises(Refused) as refused:
            room.command("start")
        assert refused.value.code == "control.not_now" and "recover" in refused.value.next, (
            "the error names an allowed command"
        )
        room.command("recover")
        room.until_state("READY", "OFF")


def test_acceptance_8_a_launch_that_fails_leaves_no_process(place):
    directory = place / "i"
    emulator_file(directory)
    readout_file(directory)
    file = write(
        directory,
        process("cards", "emulator", configuration="emulator.toml"),
        process("readout", "readout", configuration="readout.toml", set=['readout.input.cards=["0000:77:00.0"]']),
        name="i",
    )
    with RunningRoom(file) as room:
        assert room.refusal("launch") == "control.launch"
        assert room.state == "OFF" and not any(
            each["pid"] and alive(each["pid"]) for each in room.document()["processes"]
        )
        assert room.do(room.controller.writer.open_runs()) == []


def test_acceptance_8_a_start_that_fails_is_undone_and_leaves_no_open_row(place):
    file = one_card(place / "j", name="j", rate="0.001Hz", event_limit="100ms")
    with RunningRoom(file) as room:
        room.command("launch")
        assert room.refusal("start") == "control.not_started"
        assert room.do(room.controller.writer.open_runs()) == []
        row = room.row(1)
        assert row["condition"] == "ABORTED" and row["reason"].startswith("not started: no event")
        room.until_state("READY")


def test_a_stop_takes_the_place_of_a_start_that_waits_for_events(place):
    with RunningRoom(one_card(place / "k", name="k", rate="0.001Hz")) as room:
        room.command("launch")
        starting = room.order("start")
        room.until(
            lambda document: document["run"] and phases(document)["readout"] == "running",
            "it waits for the first event",
        )
        room.command("stop")
        assert starting.exception(scaled(300)).code == "control.overtaken"
        assert room.do(room.controller.writer.open_runs()) == []
        room.until_state("READY")


def test_acceptance_17_a_disk_that_fills_ends_the_run_in_order(place):
    with RunningRoom(one_card(place / "l", name="l")) as room:
        room.command("launch")
        number = room.command("start")["run"]
        room.controller.system = dataclasses.replace(room.controller.system, disk_stop_bytes=2**62)
        room.until(lambda document: document["run"] is None and document["last_run"], "the run is ended by the rule")
        row = room.row(number)
        assert row["condition"] == "GOOD" and "disk" in row["reason"]
        room.until_state("READY")
        assert "disk" in room.document()["commands"]["start"]


def test_the_next_controller_adopts_the_run(place):
    file = one_card(place / "m", name="m")
    first = RunningRoom(file).__enter__()
    try:
        first.command("launch")
        number = first.command("start", comment="goes on")["run"]
        before = first.document()
        pids = [first.pid("cards"), first.pid("readout")]
    finally:
        first.leave()
    assert all(map(alive, pids))
    with RunningRoom(file) as room:
        document = room.document()
        assert (
            document["state"] == "RUNNING"
            and document["run"]["number"] == number
            and document["run"]["comment"] == "goes on"
        )
        assert [room.pid("cards"), room.pid("readout")] == pids
        room.until(
            lambda document: (document["numbers"]["events"] or 0) > (before["numbers"]["events"] or 0), "data go on"
        )
        assert room.command("stop")["condition"] == "GOOD"


def test_what_a_controller_had_begun_to_stop_the_next_one_finishes(place):
    file = one_card(place / "n", name="n")
    first = RunningRoom(file).__enter__()
    try:
        first.command("launch")
        number = first.command("start")["run"]
        pid = first.pid("readout")
        os.kill(pid, signal.SIGSTOP)
        first.order("stop")
        first.until(lambda document: document["act"] and document["state"] == "STOPPING", "the stop has begun")
    finally:
        first.leave()
    os.kill(pid, signal.SIGCONT)
    with RunningRoom(file) as room:
        room.until(
            lambda document: document["state"] == "READY" and document["run"] is None,
            "the run is closed, and the next one can begin",
        )
        assert room.row(number)["state"] == "CLOSED"


def test_the_next_controller_finds_a_run_of_another_number_foreign(place):
    file = one_card(place / "o", name="o")
    first = RunningRoom(file).__enter__()
    try:
        first.command("launch")
        number = first.command("start")["run"]
        first.do(
            first.controller.writer.close_run(number, "CLOSED", "ABORTED", [], "closed by another user", None, 1, 2)
        )
    finally:
        first.leave()
    with RunningRoom(file) as room:
        room.until_state("ERROR")
        assert "foreign" in room.document()["what"]
        assert alive(room.pid("readout"))
        room.command("recover")
        room.acknowledge_all()
        room.until_state("READY")


def test_acceptance_3_a_killed_controller_loses_no_event_and_the_next_one_adopts_the_run(place):
    with RoomProcess(one_card(place / "p", name="p"), "p") as room:
        room.client.launch()
        number = room.client.start()["run"]
        before = room.client.status()
        room.kill()
        room.begin()
        after = room.client.status()
        assert after["state"] == "RUNNING" and after["run"]["number"] == number
        pids = [[each["pid"] for each in document["processes"]] for document in (before, after)]
        assert pids[0] == pids[1] and all(map(alive, pids[1]))
        room.until(
            lambda document: (document["numbers"]["events"] or 0) > (before["numbers"]["events"] or 0), "data go on"
        )
        done = room.client.stop()
        assert done["condition"] == "GOOD" and done["sent"] == done["built"] == 2 * done["events"]
        kept = [path for path in (place / "p" / "p").rglob("*") if not path.is_symlink()]
        open_to_others = [str(path) for path in kept if stat.S_IMODE(path.stat().st_mode) & 0o027]
        assert len(kept) > 10 and not open_to_others, "control.umask is 0027"


def test_what_a_process_started_and_left_is_named_and_an_abort_ends_it(place):
    parent = process("parent", "program", command=["/bin/sh", "-c", "setsid sleep 1000 & exec sleep 1001"])

    def there():
        return len(kernel.processes_with("RODEO_PROCESS", f"{os.environ['RODEO_RUNTIME_DIR']}:left@local/parent"))

    with RunningRoom(write(place / "left", parent, name="left")) as room:
        room.command("launch")
        room.until(lambda _: there() == 2, "there are two")
        assert room.refusal("close") == "control.left_over"
        room.until(
            lambda document: (
                document["state"] == "OFF"
                and document["what"].startswith("parent has ended, but processes that it started still run: ")
            ),
            "it is named",
        )
        assert room.refusal("launch") == "control.not_now"
        room.command("abort", confirm=True)
        assert there() == 0
        room.until_state("OFF")
        room.command("launch")
