"""The commands allowed in each state, and the reasons for refusals: one table, and the sentences for users."""

import random
from dataclasses import replace

import pytest
from looking import CARDS, READOUTS, row, seen
from rodeo.control.state.alarms import Alarm
from rodeo.control.state.refusals import COMMANDS, allowed, overtaken_by, refusals
from rodeo.control.state.snapshots import Act, Choice, Memory
from rodeo.control.state.system_state import derive
from test_derive import OFF, READY, STOPPING, anything

RUNNING = ("running", "running", "running")
NOTHING = ("absent", "absent", "absent")
ALL_READY = ("ready", "ready", "ready")
LOST = ("running", "killed", "running")
CHOICE = Memory("ready", Choice("readout-1", 0.0))

# name: (words, other arguments, the allowed commands)
TABLE = {
    "OFF": (NOTHING, {}, "launch"),
    "OFF, and what a process started goes on": (("absent", "left", "absent"), {"memory": OFF}, "abort"),
    "LAUNCHING": (ALL_READY, {"act": Act("launch")}, "abort"),
    "LAUNCHING, adopted": (("ready", "launching", "ready"), {"memory": READY}, "abort close"),
    "READY": (ALL_READY, {"memory": READY}, "start abort close"),
    "STARTING, no row yet": (ALL_READY, {"act": Act("start")}, "stop abort"),
    "STARTING": (("running", "running", "ready"), {"run": row(first_event_ns=None), "act": Act("start")}, "stop abort"),
    "RUNNING": (RUNNING, {"run": row(), "held": False}, "pause advance stop abort"),
    "RUNNING, pausing": (RUNNING, {"run": row(), "held": False, "act": Act("pause")}, "stop abort"),
    "RUNNING, no trigger authority": (RUNNING, {"run": row()}, "stop abort"),
    "PAUSED": (RUNNING, {"run": row(), "held": True}, "resume advance stop abort"),
    "PAUSED, a choice": (LOST, {"run": row(), "held": True, "memory": CHOICE}, "go_on stop abort"),
    "a choice, and nothing is left": (
        ("running", "killed", "lost"),
        {"run": row(), "held": True, "memory": CHOICE},
        "stop abort",
    ),
    "every readout failed": (
        ("running", "killed", "killed"),
        {"run": row(), "held": True, "memory": CHOICE},
        "stop abort",
    ),
    "STOPPING": (("running", "draining", "done"), {"run": STOPPING, "act": Act("stop")}, "abort"),
    "STOPPING, by nobody": (("running", "draining", "draining"), {"run": row()}, "stop abort"),
    "CLOSING the books": (("running", "done", "done"), {"run": STOPPING, "act": Act("stop")}, ""),
    "CLOSING the system": (("draining", "absent", "absent"), {"memory": OFF, "act": Act("close")}, "abort"),
    "aborting": (RUNNING, {"run": row(), "act": Act("abort")}, ""),
    "ERROR": (("killed", "ready", "ready"), {"memory": READY}, "abort recover close"),
    "ERROR with a run": (RUNNING, {"run": row(number=8)}, "stop abort recover"),
    "ERROR, recovering": (("killed", "ready", "ready"), {"memory": READY, "act": Act("recover")}, "abort"),
    "a silent host": (("silent", "ready", "ready"), {"memory": READY, "silent_hosts": ("far",)}, "abort close"),
}


def situation(words, *, held=None, run=None, act=None, memory=None, silent_hosts=(), **given):
    derived = derive(seen(*words, held=held), run, act, memory, silent_hosts=silent_hosts)
    return refusals(derived, run=run, act=act, memory=memory, **given)


@pytest.mark.parametrize("name", TABLE)
def test_what_may_be_given(name):
    words, given, expected = TABLE[name]
    answer = situation(words, **given)
    assert set(allowed(answer)) == set(expected.split()), answer
    assert all(reason is None or (reason and reason == reason.strip()) for reason in answer.values())


def test_a_launch_in_ready_launches_missing_processes_and_those_with_other_settings():
    expendable = replace(READOUTS, role="expendable")
    derived = derive(seen("ready", "ready", "failed", classes=(CARDS, expendable)), memory=READY)
    assert (derived.state, refusals(derived)["launch"]) == ("READY", None), "a process is missing"
    assert refusals(derived, act=Act("start"))["launch"] == "`start` is under way"
    whole = derive(seen(*ALL_READY), memory=READY)
    assert refusals(whole)["launch"] == "the system is READY, not OFF"
    assert refusals(whole, overrides=True)["launch"] is None
    running = derive(seen(*RUNNING), row(), memory=READY)
    assert refusals(running, run=row(), overrides=True)["launch"] == "run 7 is open"


@pytest.mark.parametrize("under_way", [one for one in COMMANDS if one not in ("launch", "close")])
def test_a_command_that_may_interrupt_another_is_not_refused_for_it(under_way):
    answer = situation(RUNNING, run=row(), held=False, act=Act(under_way))
    for command in ("stop", "abort"):
        assert (answer[command] is None) == (command in overtaken_by(under_way)), answer[command]
    assert set(overtaken_by(under_way)) <= {"stop", "abort"}


def test_clocks_that_are_apart_keep_a_run_from_starting():
    def why(clocks, limit_s=0.001):
        return situation(ALL_READY, memory=READY, clocks=clocks, clock_limit_s=limit_s)["start"]

    assert why({"far": 0.0009, "near": 0.0, "new": None}) is None
    assert (
        why({"far": 0.0032, "near": 0.002})
        == "the clock of host far is off by 3.2 ms, and runs need 1 ms (the alarm `clock`)"
    )
    assert why({"far": 5.0}, None) is None, "the rule is switched off"
    assert situation(RUNNING, run=row(), held=False, clocks={"far": 5.0}, clock_limit_s=0.001)["pause"] is None


def test_a_shelved_alarm_does_not_keep_a_run_from_starting():
    alarm = Alarm("x", "alarm", 1, "x is bad")
    assert "x is bad" in situation(ALL_READY, memory=READY, alarms=(alarm,))["start"]
    assert (
        situation(
            ALL_READY, memory=READY, alarms=(Alarm("x", "alarm", 1, "x is bad", shelved_by="ana", shelved_until_ns=9),)
        )["start"]
        is None
    )


def test_reasons_name_what_is_missing():
    def reason(command, words, **given):
        return situation(words, **given)[command]

    assert (
        reason("start", ("ready", "failed", "ready"), memory=READY)
        == "the system is ERROR (readout-1 ended with status 1), not READY"
    )
    assert "readout-1" in reason("start", ("ready", "absent", "ready"))
    assert reason("launch", RUNNING, run=row()) == "run 7 is open"
    assert reason("close", RUNNING, run=row()) == "run 7 is open: stop it first"
    assert reason("resume", LOST, run=row(), held=True, memory=CHOICE) == "readout-1 is lost: go_on without it, or stop"
    assert reason("pause", RUNNING, run=row()) == "no trigger authority answers: triggers cannot be held"
    assert reason("start", ALL_READY, memory=READY, act=Act("close")) == "`close` is under way"
    assert (
        reason("start", ("silent", "ready", "ready"), memory=READY, silent_hosts=("far",))
        == "host far is silent: its processes are unknown"
    )


def test_a_start_needs_database_disk_and_alarms_that_somebody_has_seen():
    def start(**given):
        return situation(ALL_READY, memory=READY, **given)["start"]

    assert start() is None
    assert "no run number" in start(run_numbers=0)
    assert start(run_numbers=1) is None
    assert "2.0 GB free" in start(disk_free_bytes=2 * 10**9, disk_stop_bytes=3 * 10**9)
    assert "500 s" in start(
        disk_free_bytes=9 * 10**9, disk_stop_bytes=3 * 10**9, disk_seconds_left=500, disk_time_s=600
    )
    assert start(disk_free_bytes=None, disk_stop_bytes=3 * 10**9) is None
    stands = Alarm("disk", "alarm", 1, "something burns")
    assert "something burns" in start(alarms=(stands,))
    assert start(alarms=(Alarm("disk", "alarm", 1, "x", acked_by="ana", acked_ns=2),)) is None
    assert start(alarms=(Alarm("disk", "alarm", 1, "x", cleared_ns=2),)) is None
    assert start(alarms=(Alarm("dead_time", "warning", 1, "x"),)) is None


def test_a_run_goes_on_and_stops_without_database_and_disk():
    answer = situation(
        RUNNING,
        run=row(),
        held=False,
        run_numbers=0,
        disk_free_bytes=0,
        disk_stop_bytes=1,
        alarms=(Alarm("a", "alarm", 1, "x"),),
    )
    assert {"pause", "advance", "stop", "abort"} == set(allowed(answer))


def test_there_is_always_a_way_out():
    random_ = random.Random(16)
    for _ in range(5_000):
        looks, run, act, memory, given = anything(random_)
        derived = derive(looks, run, act, memory, **given)
        answer = refusals(derived, run=run, act=act, memory=memory, run_numbers=random_.choice((None, 0, 1)))
        assert list(answer) == list(COMMANDS)
        if act is None:
            if run is not None:
                assert answer["stop"] is None and answer["abort"] is None, (derived, answer)
            elif not derived.flags:
                assert allowed(answer), (derived, answer)
        assert not (answer["start"] is None and (run or act or derived.state != "READY"))
