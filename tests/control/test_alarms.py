"""Alarms: their causes, and their life - raised, latched, acknowledged, cleared, also over a restart."""

import json

import pytest
from looking import CARDS, READOUTS, look, row, seen
from rodeo.control.refused import Refused
from rodeo.control.state.alarms import MOST_STANDING, RESTORED_LOOKS, Alarm, Book, Condition
from rodeo.control.state.conditions import conditions
from rodeo.control.state.snapshots import Act, Memory
from rodeo.control.state.system_state import derive
from test_derive import READY

RUNNING = ("running", "running", "running")
GOOD = {
    "trigger_rate_hz": 1000.0,
    "dead_time_fraction": 0.001,
    "incomplete_ppm": 0.0,
    "disk_free_bytes": 10**12,
    "disk_seconds_left": 1e6,
}
DISK = {"disk_warn_bytes": 10 * 10**9, "disk_stop_bytes": 3 * 10**9, "disk_time_s": 600.0}


def found(words=RUNNING, numbers=GOOD, *, run=None, act=None, memory=READY, held=False, **given):
    run = row() if run is None and "running" in words[1:] else run
    looks = seen(*words, held=held)
    derived = derive(looks, run, act, memory, silent_hosts=given.get("silent_hosts", ()))
    return {
        one.cause: one for one in conditions(derived, looks, numbers, run=run, act=act, memory=memory, **DISK, **given)
    }


def test_a_good_run_has_no_alarm():
    assert (
        found(process_numbers={"readout-1": {"rate_hz": 1000.0, "events": 5}}, known={("readout-1", "rate_hz")}) == {}
    )
    assert found(("ready", "ready", "ready"), {}) == {}
    assert found(("absent", "absent", "absent"), None) == {}


@pytest.mark.parametrize(
    ("words", "given", "cause", "severity"),
    [
        (("running", "killed", "running"), {}, "process.failed:readout-1", "alarm"),
        (("running", "lost", "running"), {}, "process.lost:readout-1", "alarm"),
        (("running", "done", "running"), {}, "process.ended:readout-1", "alarm"),
        (("killed", "ready", "ready"), {}, "process.failed:cards", "alarm"),
        (
            ("running", "killed", "running"),
            {"memory": Memory(without=frozenset({"readout-1"}))},
            "process.failed:readout-1",
            "warning",
        ),
        (RUNNING, {"silent_hosts": ("far",)}, "host.silent:far", "alarm"),
        (RUNNING, {"database_good": False, "journal": 12}, "database", "alarm"),
        (RUNNING, {"database_good": False, "run_numbers": 0}, "database", "alarm"),
        (RUNNING, {"database_good": False, "run_numbers": 101}, "database", "warning"),
        (RUNNING, {"run_numbers": 100}, "database:run_numbers", "warning"),
        (RUNNING, {"act": Act("stop", age_s=61, limit_s=60)}, "overdue:stop", "warning"),
        (RUNNING, {"numbers": {**GOOD, "disk_free_bytes": 9 * 10**9}}, "disk", "warning"),
        (RUNNING, {"numbers": {**GOOD, "disk_free_bytes": 2 * 10**9}}, "disk", "alarm"),
        (RUNNING, {"numbers": {**GOOD, "disk_seconds_left": 1000.0}}, "disk.time", "warning"),
        (RUNNING, {"numbers": {**GOOD, "disk_seconds_left": 100.0}}, "disk.time", "alarm"),
        (RUNNING, {"numbers": {**GOOD, "trigger_rate_hz": 0.0}}, "no_triggers", "warning"),
        (RUNNING, {"numbers": {**GOOD, "dead_time_fraction": 0.2}}, "dead_time", "warning"),
        (RUNNING, {"numbers": {**GOOD, "incomplete_ppm": 5000.0}}, "incomplete", "warning"),
        (RUNNING, {"numbers": {**GOOD, "partial_ppm": 1001.0}}, "partial", "warning"),
        (RUNNING, {"process_numbers": {"readout-1": {"rate_hz": 0.0, "events": 7}}}, "stall:readout-1", "alarm"),
        (RUNNING, {"limited_by": {"process": "readout-1", "stage": "recorder"}}, "back_pressure:readout-1", "warning"),
        (
            RUNNING,
            {"links": {"bad": [{"process": "readout-1", "fid": "0x10", "state": "removed"}]}},
            "link:readout-1:0x10",
            "warning",
        ),
        (
            RUNNING,
            {
                "links": {
                    "bad": [
                        {
                            "process": "readout-1",
                            "fid": "0x10",
                            "state": "active",
                            "out_of_step": True,
                            "bcid_offset": 5,
                        }
                    ]
                }
            },
            "out_of_step:readout-1:0x10",
            "warning",
        ),
        (
            RUNNING,
            {"known": {("readout-1", "rate_hz")}, "process_numbers": {"readout-1": {"rate_hz": None}}},
            "metric.gone:readout-1:rate_hz",
            "warning",
        ),
        (RUNNING, {"known": {("readout-1", "fill")}}, "metric.gone:readout-1:fill", "warning"),
    ],
)
def test_each_rule(words, given, cause, severity):
    one = found(words, **{"numbers": GOOD, **given})
    assert cause in one and one[cause].severity == severity, one
    assert one[cause].what and one[cause].do, "it says what to do"


def test_who_was_told_to_stop_may_come_to_its_end():
    assert "process.ended:readout-1" not in found(
        ("running", "done", "running"), run=row(stopping=True), act=Act("stop", age_s=1, limit_s=60)
    )


def test_cards_that_follow_build_nothing_and_do_not_stall():
    assert found(process_numbers={"cards": {"rate_hz": 0.0, "events": 0}, "readout-1": {"rate_hz": 9.0}}) == {}


def test_a_paused_run_has_no_alarm_of_its_data():
    nothing = {**GOOD, "trigger_rate_hz": 0.0, "dead_time_fraction": 0.9}
    assert found(numbers=nothing, held=True) == {}


def test_a_core_file_is_named_and_so_is_a_process_that_is_given_up():
    from dataclasses import replace

    from rodeo.control.state.snapshots import Exit

    one = replace(READOUTS, restart="between_runs")
    looks = (
        look(CARDS.members()[0], "ready"),
        look(one.members()[0], "killed", exit=Exit(signal=11, core="/lab/core.1")),
        look(one.members()[1], "ready"),
    )
    memory = Memory("ready", restarts={"readout-1": (1.0, 2.0, 3.0)})
    causes = {
        each.cause: each for each in conditions(derive(looks, None, None, memory), looks, memory=memory, now_s=10.0)
    }
    assert "core file /lab/core.1" in causes["process.failed:readout-1"].do
    assert causes["process.given_up:readout-1"].severity == "alarm"
    assert "process.given_up:readout-1" not in {
        each.cause for each in conditions(derive(looks, None, None, memory), looks, memory=memory, now_s=700.0)
    }


def test_a_status_that_is_not_understood_is_named():
    looks = (
        look(CARDS.members()[0], "ready"),
        look(READOUTS.members()[0], "ready", problems=("run.number is missing",)),
        look(READOUTS.members()[1], "ready"),
    )
    causes = {one.cause: one for one in conditions(derive(looks, None, None, READY), looks)}
    assert "run.number is missing" in causes["process.status:readout-1"].what


FAILED = Condition("process.failed:x", "alarm", "x failed", process="x")
SLOW = Condition("dead_time", "warning", "20 % dead", 0.2, 0.05, needs=(3, 4))


def causes(book):
    return [one.cause for one in book.standing()]


def test_an_alarm_stays_until_it_is_cleared_and_acknowledged():
    book = Book()
    assert [kind for kind, _ in book.evaluate([FAILED], 1)] == ["raised"] and book.evaluate([FAILED], 2) == []
    assert [kind for kind, _ in book.evaluate([], 3)] == ["cleared"] and causes(book) == ["process.failed:x"], (
        "it is not acknowledged"
    )
    assert book.acknowledge("process.failed:x", "ana", 4).acked_by == "ana" and book.standing() == ()
    book.evaluate([FAILED], 5)
    assert book.acknowledge("process.failed:x", "ana", 6).acked_ns == 6 and causes(book) == ["process.failed:x"], (
        "the alarm still stands"
    )
    assert [kind for kind, _ in book.evaluate([], 7)] == ["cleared", "gone"] and book.standing() == ()


def test_an_acknowledgement_hides_neither_another_cause_nor_the_same_one_again_nor_a_worse_one():
    book = Book()
    book.evaluate([FAILED, Condition("disk", "warning", "little room")], 1)
    book.acknowledge("disk", "ana", 2)
    assert [one.acked_by for one in book.standing()] == [None, "ana"]
    assert [(kind, one.cause) for kind, one in book.evaluate([FAILED, Condition("disk", "alarm", "no room")], 3)] == [
        ("raised", "disk")
    ]
    assert {one.cause: one.acked_by for one in book.standing()} == {"disk": None, "process.failed:x": None}
    book.acknowledge("disk", "ana", 4)
    book.evaluate([FAILED, Condition("disk", "warning", "little room")], 5)
    assert {one.cause: one.severity for one in book.standing()}["disk"] == "alarm", "latched"
    book.acknowledge("process.failed:x", "ana", 6)
    book.evaluate([], 7)
    assert [kind for kind, _ in book.evaluate([FAILED], 8)] == ["raised"]


def test_what_comes_and_goes_is_raised_and_what_came_once_is_not():
    book = Book()
    for now, there in enumerate([1, 0, 0, 0, 0, 1, 1, 0]):
        assert book.evaluate([SLOW] if there else [], now) == []
    assert [kind for kind, _ in book.evaluate([SLOW], 9)] == ["raised"], "true in three of four looks"
    for now in range(10, 13):
        assert book.evaluate([], now) == []
    assert [kind for kind, _ in book.evaluate([], 13)] == ["cleared"], "true in none of four looks"


def test_values_follow_and_the_time_of_the_raising_stays():
    book = Book()
    book.evaluate([Condition("disk", "warning", "9 GB", 9)], 1)
    book.evaluate([Condition("disk", "warning", "8 GB", 8)], 2)
    assert [(one.what, one.value, one.raised_ns) for one in book.standing()] == [("8 GB", 8, 1)]


def test_acceptance_18_acknowledgements_survive_a_restart():
    book = Book()
    book.evaluate([FAILED, Condition("disk", "alarm", "no room", 1, 3)], 1)
    book.acknowledge("disk", "ana", 2)
    again = Book(json.loads(json.dumps([one.as_json() for one in book.standing()])))
    assert again.standing() == book.standing()
    assert again.evaluate([FAILED, Condition("disk", "alarm", "no room", 1, 3)], 3) == []
    assert [kind for kind, _ in again.evaluate([FAILED], 4)] == ["cleared", "gone"]
    assert (
        Book(
            [
                None,
                5,
                {},
                {"cause": "x"},
                {"cause": 1, "severity": "alarm", "raised_ns": 1, "what": ""},
                {"cause": "x", "severity": "?", "raised_ns": 1, "what": ""},
            ]
        ).standing()
        == ()
    )


def test_an_acknowledgement_survives_a_restart_after_which_the_first_looks_know_nothing():
    disk = Condition("disk", "alarm", "no room", 1, 3)
    book = Book()
    book.evaluate([disk], 1)
    book.acknowledge("disk", "ana", 2)
    again = Book([one.as_json() for one in book.standing()])
    assert [again.evaluate(found, 3) for found in ([], [], [disk], [disk])] == [[]] * 4 and again.standing()[
        0
    ].acked_by == "ana"
    unseen = Book([{**one.as_json(), "acked_by": None, "acked_ns": None} for one in book.standing()])
    assert [kind for kind, _ in unseen.evaluate([], 3)] == ["cleared"], (
        "an alarm without acknowledgement blocks a start only while its cause exists"
    )
    over = Book([one.as_json() for one in book.standing()])
    assert [kind for _ in range(RESTORED_LOOKS) for kind, _ in over.evaluate([], 4)] == ["cleared", "gone"]


def test_what_does_not_stand_cannot_be_acknowledged():
    with pytest.raises(Refused) as refused:
        Book().acknowledge("nothing", "ana", 1)
    assert refused.value.code == "control.no_alarm"


def test_a_number_that_a_process_has_said_is_expected_of_it_while_it_runs():
    book = Book()
    derived = derive(seen(*RUNNING), row())
    book.learn(derived, {"readout-1": {"rate_hz": 5.0, "events": None}, "cards": {"rate_hz": 1.0, "fill": 0.5}})
    assert book.known == {("readout-1", "rate_hz"), ("cards", "rate_hz")}
    book.learn(derive(seen("running", "lost", "running"), row()), {})
    assert ("readout-1", "rate_hz") in book.known, "a lost process has not ended"
    book.learn(derive(seen("running", "done", "running"), row()), {})
    assert book.known == {("cards", "rate_hz")}


def test_the_list_begins_with_what_nobody_has_seen():
    book = Book(
        [
            Alarm("a", "alarm", 1, "a", acked_by="ana", acked_ns=2).as_json(),
            Alarm("b", "warning", 5, "b").as_json(),
            Alarm("c", "alarm", 3, "c").as_json(),
            Alarm("d", "alarm", 4, "d").as_json(),
        ]
    )
    assert causes(book) == ["d", "c", "b", "a"]


def test_an_alarm_takes_the_place_of_a_warning_where_none_is_free():
    book = Book()
    warnings = [Condition(f"w{number:03}", "warning", "w") for number in range(MOST_STANDING)]
    for now_ns, warning in enumerate(warnings, 1):
        book.evaluate(warnings[:now_ns], now_ns)
    book.evaluate([one for one in warnings if one.cause != "w007"], 1000)
    more = Condition("more", "warning", "m")
    assert book.evaluate([*warnings[:7], *warnings[8:], more], 1001) == [] and book.left_out == 1
    found = [*warnings[:7], *warnings[8:], more, Condition("a", "alarm", "a"), Condition("b", "alarm", "b")]
    assert [(kind, one.cause, one.acked_by) for kind, one in book.evaluate(found, 1002)] == [
        ("gone", "w007", "rule"),
        ("raised", "a", None),
        ("raised", "b", None),
    ]
    assert len(book.standing()) == MOST_STANDING and "w000" not in causes(book) and book.left_out == 2
    assert book.evaluate(found, 1003) == [] and book.left_out == 2
