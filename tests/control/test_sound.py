"""Answers of processes are checked before any decision: every wrong shape gives an error sentence."""

import json
import random

import pytest
from looking import CARDS, READOUTS
from rodeo.control.state import numbers
from rodeo.control.state.snapshots import look_at
from rodeo.control.state.status_schema import MOST_PROBLEMS, SHAPES, checked
from rodeo.control.state.system_state import derive

READOUT = {
    "process": {
        "pid": 5,
        "name": "lab-readout-1",
        "kind": "readout",
        "phase": "running",
        "started_ns": 1,
        "build": "r1",
        "configuration_sha256": "ab",
    },
    "run": {"name": "x", "number": 7, "seconds": 9.5, "condition": "GOOD", "failure": ""},
    "links": 2,
    "offered_rate_hz": None,
    "chunks": {"sent": 10, "built": 8, "lost": {"late": 2}},
    "limited_by": "nothing",
    "fragments": {
        "built": 4,
        "events": 2,
        "incomplete": 1,
        "incomplete_by_reason": {"missing": 1},
        "missing_links": [],
        "removed_links": [],
    },
    "bytes": {"in": 100, "payload": 90, "written": 80},
    "files": ["/x"],
    "consumers": {"recorder": {"consumed": 4, "stalls": 0, "counters": {"bytes_written": 80}}},
    "input": {"sent": 10},
    "phase": "running",
    "limited_by_now": "nothing",
    "robs": [
        {
            "source_id": "0x1",
            "groups": 3,
            "pool_fill": 0.5,
            "links": [{"fid": "0x10", "state": "active", "chunks": 5, "missing": 0, "bad": 0}],
        }
    ],
    "queue_fill": {"recorder": 0.25},
}
EMULATOR = {
    "process": {"phase": "running"},
    "seconds": 5.0,
    "trigger": {
        "offered": 110,
        "accepted": 100,
        "vetoed": {"busy": 10},
        "held": False,
        "followers": [{"name": "felix:0", "missed": 0}],
        "link": None,
    },
    "functions": [{"name": "felix", "type": "FELIX", "triggers": 100, "chunks": 200, "counters": {"chunks_lost": 1}}],
}
ROUTER = {
    "run": {"name": "r", "seconds": 1.0, "condition": "GOOD"},
    "links": 2,
    "chunks": {"sent": 5, "published": 5},
    "subscribers": [{"name": "s", "waits": 0, "chunks": 5}],
    "input": {},
}
WHOLE = {"readout": READOUT, "emulator": EMULATOR, "router": ROUTER, "report": READOUT, "router_report": ROUTER}


@pytest.mark.parametrize("kind", WHOLE)
def test_a_whole_status_has_no_problem(kind):
    kept, problems = checked(kind, WHOLE[kind])
    assert problems == ()
    assert kept["process"] == WHOLE[kind]["process"] if "process" in kept else True
    assert checked(kind, json.loads(json.dumps(WHOLE[kind])))[0] == kept


def test_a_held_readout_says_who_it_is_and_nothing_of_a_run():
    assert checked("readout", {"process": {"phase": "ready", "pid": 5}}) == (
        {"process": {"phase": "ready", "pid": 5}},
        (),
    )
    assert "run is missing" in checked("readout", {"process": {"phase": "running"}})[1]


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("run", "number"), "7", "run.number: expected a count, got '7'"),
        (("run", "number"), -1, "run.number: expected a count, got -1"),
        (("run", "number"), True, "run.number: expected a count, got True"),
        (("run", "number"), None, "run.number is missing"),
        (("run", "seconds"), float("nan"), "run.seconds: expected a number, got nan"),
        (("run", "seconds"), 10**400, "run.seconds: expected a number, got 1000"),
        (("chunks", "lost"), [], "chunks.lost: expected a table of at most 100000, got a list of 0"),
        (("chunks", "lost", "late"), 1.5, "chunks.lost.late: expected a count, got 1.5"),
        (("robs",), {}, "robs: expected a list of at most 100000, got a table"),
        (("robs",), [5], "robs[0]: expected a table, got 5"),
        (("robs", 0, "links", 0, "fid"), 5, "robs[0].links[0].fid: expected a text, got 5"),
        (("limited_by_now",), "x" * 5000, "limited_by_now: expected a text"),
        (("process",), "x", "process: expected a table, got 'x'"),
        (("consumers", "recorder"), None, "consumers.recorder: expected a table, got nothing"),
    ],
)
def test_what_is_wrong_is_named_and_left_out(path, value, said):
    status = json.loads(json.dumps(READOUT))
    place = status
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    kept, problems = checked("readout", status)
    assert len(problems) == 1 and problems[0].startswith(said), problems
    assert kept["bytes"] == READOUT["bytes"], "the rest is unchanged"


@pytest.mark.parametrize("status", [None, 5, "x", [], [{}], True, float("nan")])
def test_what_is_no_table_is_one_problem(status):
    for kind in SHAPES:
        kept, problems = checked(kind, status)
        assert kept == {} and len(problems) == 1


def test_problems_are_bounded():
    _, problems = checked(
        "readout", {**READOUT, "chunks": {"sent": 1, "built": 1, "lost": {str(index): "x" for index in range(1000)}}}
    )
    assert len(problems) == MOST_PROBLEMS + 1 and problems[-1] == "and 984 more"


def broken(random_, value):
    """`value` with an unexpected part."""
    nonsense = [None, -1, 1e308 * 10, 10**30, "x", [], {}, [[]], {"a": {}}, True, float("nan"), [None], {"": None}]
    if isinstance(value, dict) and value and random_.random() < 0.8:
        key = random_.choice(list(value))
        return (
            {**value, key: broken(random_, value[key])}
            if random_.random() < 0.8
            else {other: one for other, one in value.items() if other != key}
        )
    if isinstance(value, list) and value and random_.random() < 0.8:
        return [broken(random_, value[0]), *value[1:]]
    return random_.choice(nonsense)


def test_whatever_is_answered_nothing_breaks_and_what_is_left_is_sound():
    random_ = random.Random(17)
    before = {}
    for turn in range(1_500):
        statuses = {}
        for kind, member in (("readout", READOUTS.members()[0]), ("emulator", CARDS.members()[0]), ("router", None)):
            status = WHOLE[kind]
            for _ in range(random_.randint(0, 3)):
                status = broken(random_, status)
            kept, _ = checked(kind, status)
            assert checked(kind, kept)[0] == kept
            assert json.loads(json.dumps(kept, allow_nan=False)) == kept
            statuses[kind] = (kind, kept)
            if member:
                assert derive([look_at(member, status, alive=True, answered_age_s=0.1)]).what
        now = numbers.Moment(float(turn), statuses, 10**9)
        earlier = numbers.Moment(float(turn) - 1, before) if before else None
        numbers.numbers(earlier, now, cards_at_start={"emulator": before.get("emulator", (None, None))[1]})
        numbers.limited_by(earlier, now), numbers.links_of(now)
        for kind in statuses:
            numbers.of_process(kind, earlier, now)
        before = statuses
