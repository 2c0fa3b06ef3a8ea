"""The headline: a table of stalls. For each class of process that is silent, dead, full or slow: the word, and the cause in picture, alarm and run."""

from dataclasses import replace
from pathlib import Path

import pytest
from looking import CARDS, look, row
from rodeo.control.cli.status_text import headline as first_line
from rodeo.control.cli.status_text import text
from rodeo.control.state.alarms import Condition
from rodeo.control.state.conditions import conditions
from rodeo.control.state.headline import (
    BLOCKED_S,
    IDLE_S,
    LOSES_DATA,
    LOSES_TRIGGERS,
    NO_DATA,
    NO_TRIGGERS,
    OF_STATES,
    SEVERITIES,
    Flow,
    FlowMeter,
    first_cause,
    headline,
    standing,
    troubled,
)
from rodeo.control.state.losses import Silent
from rodeo.control.state.numbers import Moment, limited_by
from rodeo.control.state.system import ProcessClass
from rodeo.control.state.system_state import derive
from test_derive import READY

CHAIN = (
    CARDS,
    ProcessClass("router", "router", Path("/lab/r")),
    ProcessClass("readout", "readout", Path("/lab/readout.toml"), count=2),
    ProcessClass("supervisor", "supervisor", Path("/lab/f")),
    ProcessClass("node", "node", Path("/lab/f")),
    ProcessClass("recorder", "recorder", Path("/lab/f")),
)
NAMES = ("cards", "router", "readout-1", "readout-2", "supervisor", "node", "recorder")
BLOCKED = Flow(zero_s=10.0, offered=True, dead_time=1.0)
GOOD = Flow(incomplete_ppm=0.0, dead_time=0.001)
LIMITS = {"partial_limit_ppm": 1000.0, "dead_time_limit": 0.05}
SLOW = Flow(incomplete_ppm=0.0, dead_time=0.4)


def seen(**words):
    return tuple(
        look(member, words.get(member.name.replace("-", "_"), "running"), since_ns=100)
        for one in CHAIN
        for member in one.members()
    )


def said(looks, flow, limited=None, **given):
    """Returns (headline, cause, alarms by cause) at a moment of a run."""
    derived, run = derive(looks, row(), None, READY), row()
    found = first_cause(derived, looks, limited, run=run, standing=standing(flow))
    word = headline(derived, flow, found, run=run, incomplete_limit_ppm=1000.0, **LIMITS)
    alarms = conditions(
        derived,
        looks,
        {"trigger_rate_hz": 0.0 if flow.zero_s else 1000.0, "dead_time_fraction": flow.dead_time},
        run=run,
        memory=READY,
        limited_by=found,
        headline=word,
        **given,
    )
    return word, found, {one.cause: one for one in alarms}


def test_a_run_that_takes_data_is_running():
    word, found, alarms = said(seen(), GOOD)
    assert (word.word, word.severity, word.cause, found, alarms) == ("RUNNING", "good", None, None, {})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "word, stage",
    [("lost", "does not answer"), ("killed", "has failed"), ("absent", "is not there"), ("done", "has ended")],
)
def test_the_cause_of_a_run_without_data_is_the_process_that_is_gone(name, word, stage):
    victim = {"process": "readout-2" if name == "readout-1" else "readout-1", "stage": "processor"}
    looks = seen(**{name.replace("-", "_"): word})
    got, found, alarms = said(looks, BLOCKED, victim)
    first = {"process": name, "stage": stage}
    assert (got.word, got.severity, got.cause, found) == (NO_DATA, "alarm", first, first), "headline and picture"
    assert (alarms["no_data"].severity, alarms["no_data"].process, alarms["no_data"].what) == (
        "alarm",
        name,
        f"the run takes no data: {name}: {stage}",
    )
    assert alarms[f"back_pressure:{name}"].process == name and "back_pressure:" + victim["process"] not in alarms
    assert got.what == alarms["no_data"].what, "the reason of the run is the sentence of the alarm"


@pytest.mark.parametrize("name", NAMES)
def test_a_process_that_owes_answers_is_the_cause_before_it_counts_as_lost(name):
    looks = tuple(replace(one, unanswered=2, answered_age_s=2.0) if one.name == name else one for one in seen())
    got, found, _ = said(looks, BLOCKED, {"process": "readout-1", "stage": "processor"})
    assert got.word == NO_DATA and found == {"process": name, "stage": "does not answer"}
    assert said(looks, GOOD)[1] is None, "there is no cause while data flow"


@pytest.mark.parametrize(
    "limited",
    [
        {"process": "recorder", "stage": "disk"},
        {"process": "supervisor", "stage": "filter nodes"},
        {"process": "readout-1", "stage": "processor"},
    ],
)
def test_what_is_full_or_slow_is_named_by_those_that_know(limited):
    got, _, alarms = said(seen(), BLOCKED, limited)
    assert (got.word, got.cause, alarms["no_data"].process) == (NO_DATA, limited, limited["process"])
    got, _, alarms = said(seen(), SLOW, limited)
    assert (got.word, got.severity, got.cause) == (LOSES_TRIGGERS, "warning", limited) and "no_data" not in alarms


def test_of_several_the_first_that_went_is_the_cause():
    looks = tuple(
        replace(one, since_ns={"recorder": 50, "node": 60}.get(one.name, 100))
        for one in seen(recorder="killed", node="killed", supervisor="lost")
    )
    assert said(looks, BLOCKED)[1] == {"process": "recorder", "stage": "has failed"}
    assert said(seen(recorder="lost", cards="lost"), BLOCKED)[1]["process"] == "cards", (
        "of processes lost at once, the first in the data flow"
    )


def test_a_cause_that_is_not_known_yet_is_not_that_of_the_victim():
    busy = {"trigger": {"offered": 9, "accepted": 0, "vetoed": {"busy": 5}, "busy_card": "felix:0"}}
    before = {
        "cards": ("emulator", {"trigger": {**busy["trigger"], "vetoed": {"busy": 1}}}),
        "readout-1": ("readout", {"chunks": {}}),
    }
    after = {"cards": ("emulator", busy), "readout-1": ("readout", {"chunks": {}})}
    limited = limited_by(Moment(1.0, before), Moment(2.0, after))
    got, found, alarms = said(seen(), BLOCKED, limited)
    assert limited is None and found is None and got.word == NO_DATA
    assert "not known yet" in alarms["no_data"].what and not any(each.startswith("back_pressure") for each in alarms)


def test_a_run_of_few_triggers_has_seconds_without_one():
    assert said(seen(), Flow(zero_s=BLOCKED_S / 2, offered=True))[0].word == "RUNNING"
    assert said(seen(), Flow(zero_s=IDLE_S / 2))[0].word == "RUNNING"
    assert said(seen(), Flow(zero_s=IDLE_S))[0].word == NO_TRIGGERS


def test_data_that_are_lost_have_a_word_while_others_flow():
    assert said(seen(), Flow(incomplete_ppm=1001.0, dead_time=0.0))[0].word == LOSES_DATA
    got = said(seen(readout_1="killed"), GOOD)[0]
    assert (got.word, got.severity, got.cause["process"]) == (LOSES_DATA, "alarm", "readout-1")


def test_a_silent_process_is_the_cause_as_soon_as_triggers_are_lost():
    assert (
        troubled(SLOW, **LIMITS)
        and troubled(Flow(zero_s=0.0, offered=True), **LIMITS)
        and troubled(Flow(partial_ppm=1001.0), **LIMITS)
        and troubled(Flow(silent=(Silent("readout-1", "0x10", 3.0),)), **LIMITS)
        and not troubled(GOOD, **LIMITS)
        and not troubled(Flow(zero_s=5.0), **LIMITS)
        and not troubled(Flow(partial_ppm=1000.0, lacking="readout-1"), **LIMITS)
    )


def test_other_states_are_their_own_headline():
    for state in OF_STATES:
        derived = replace(derive(seen(), row(), None, READY), state=state)
        got = headline(
            derived,
            BLOCKED,
            None,
            run=None if state in ("OFF", "READY") else row(),
            incomplete_limit_ppm=1.0,
            **LIMITS,
        )
        assert got.severity in SEVERITIES and (got.word == state or state == "RUNNING")


def test_the_meter_knows_for_how_long_nothing_is_accepted():
    meter, moment = FlowMeter(), Moment(0.0, {})
    flows = [
        meter.update(float(second), {"trigger_rate_hz": rate, "offered_rate_hz": 500.0}, None, moment)
        for second, rate in enumerate([10.0, 0.0, 0.0, 0, None, 0.0])
    ]
    assert [each.zero_s for each in flows] == [None, 0.0, 1.0, 2.0, None, 0.0] and flows[1].offered

    def of(built, incomplete):
        return Moment(0.0, {"r": ("readout", {"fragments": {"built": built, "incomplete": incomplete}})})

    assert meter.update(9.0, {}, of(1000, 500), of(2000, 500)).incomplete_ppm == 0.0, "earlier losses do not count now"
    assert meter.update(9.0, {}, of(1000, 0), of(2000, 10)).incomplete_ppm == 10_000.0
    assert meter.update(9.0, {}, of(1000, 0), of(1000, 0)).incomplete_ppm is None


def test_a_stall_names_the_process_that_holds_it_up():
    looks = seen()
    derived, limited = derive(looks, row(), None, READY), {"process": "supervisor", "stage": "does not answer"}
    found = {
        one.cause: one
        for one in conditions(
            derived,
            looks,
            {"trigger_rate_hz": 9.0},
            run=row(),
            memory=READY,
            process_numbers={"readout-1": {"rate_hz": 0.0}},
            limited_by=limited,
        )
    }
    stall: Condition = found["stall:readout-1"]
    assert "supervisor: does not answer" in stall.what and stall.do == "look at supervisor and its log"


def test_the_shell_says_the_word_and_the_first_cause():
    document = {
        "state": "RUNNING",
        "flags": [],
        "system": {"name": "lab"},
        "headline": {
            "word": NO_DATA,
            "severity": "alarm",
            "cause": {"process": "supervisor", "stage": "does not answer"},
        },
        "what": "the run takes no data: supervisor: does not answer",
        "waiting_for": [],
        "run": None,
        "numbers": {},
        "limited_by": None,
        "processes": [],
        "alarms": [],
        "links": {},
        "lease": None,
        "last_run": None,
        "database": {"state": "good", "journal": 0},
        "time_ns": 1,
    }
    assert first_line(document).startswith("[X] lab  RUNNING  NO DATA")
    assert "  the run takes no data: supervisor: does not answer" in text(document).splitlines()
    assert first_line({**document, "headline": {"word": "RUNNING", "severity": "good", "cause": None}}).startswith(
        "[>] lab  RUNNING  control"
    )
