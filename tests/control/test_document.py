"""The document: it has every key that its readers need, it is valid JSON with any content, and a delta plus the previous document gives the new one."""

import dataclasses
import json

from looking import SYSTEM, row, seen
from rodeo.control.run.publisher import whom
from rodeo.control.state.alarms import Alarm
from rodeo.control.state.document import build, delta
from rodeo.control.state.headline import Headline
from rodeo.control.state.refusals import COMMANDS, refusals
from rodeo.control.state.snapshots import Act, Choice, Memory
from rodeo.control.state.system_state import derive
from test_derive import READY

KEYS = {
    "": "sequence time_ns system state flags since_ns what waiting_for act run last_run numbers limited_by headline processes links alarms lease commands hosts externals database",
    "system": "name file directory build sha256",
    "act": "name actor began_ns limit_s",
    "run": "number type state condition flags asked_ns first_event_ns stopped_ns seconds holder comment directory reason choice",
    "numbers": "trigger_rate_hz offered_rate_hz dead_time_fraction events incomplete incomplete_ppm partial_ppm bytes_in_per_second bytes_written_per_second bytes_written recording "
    "disk_free_bytes disk_seconds_left farm chunks",
    "links": "total active removed bad",
    "lease": "holder fence until_ns asked_by",
}
PROCESS = "name class kind host role needed phase pid since_ns seen_ns exit restarts left_out build configuration_sha256 what numbers cpu rss_bytes"
ALARM = "cause severity raised_ns acked_by acked_ns cleared_ns what value limit do process shelved_by shelved_until_ns"


def document(**given):
    looks = given.pop("looks", seen("running", "killed", "running", held=True))
    run, act, memory = (
        given.get("run", row()),
        given.get("act"),
        given.get("memory", Memory("ready", Choice("readout-1", 100.0, "died"))),
    )
    derived = derive(looks, run, act, memory)
    answer = refusals(derived, run=run, act=act, memory=memory)
    return build(
        **{
            **dict(
                sequence=5,
                time_ns=10**18,
                system=SYSTEM,
                build="r1",
                derived=derived,
                since_ns=1,
                looks=looks,
                run=run,
                act=act,
                memory=memory,
                refusals=answer,
                now_s=110.0,
            ),
            **given,
        }
    )


def test_every_key_is_there():
    got = document(act=Act("pause", "ana", 1.0, 2.0, 9), alarms=(Alarm("a", "alarm", 1, "a"),))
    for path, keys in KEYS.items():
        assert set(got[path] if path else got) == set(keys.split()), path
    assert set(got["processes"][0]) == set(PROCESS.split()) and set(got["alarms"][0]) == set(ALARM.split())
    assert list(got["commands"]) == list(COMMANDS)
    assert got["state"] == "PAUSED" and got["run"]["state"] == "PAUSED" and got["run"]["number"] == 7
    assert (
        got["processes"][1]["phase"] == "failed"
        and got["processes"][1]["exit"] == {"status": None, "signal": 9, "core": None}
        and got["processes"][1]["what"] == "ended by signal 9"
    )


def test_what_goes_on_is_never_better_than_the_headline():
    assert document(looks=seen("running", "running", "running", held=False))["what"] == "run 7 takes data"
    bad = Headline("NO DATA", "alarm", {"process": "readout-1", "stage": "writer"})
    got = document(looks=seen("running", "running", "running", held=False), headline=bad)
    assert (got["what"], got["headline"]) == ("the run takes no data: readout-1: writer", bad.as_json())


def test_a_choice_says_until_when():
    assert document()["run"]["choice"] == {"process": "readout-1", "what": "died", "until_ns": 10**18 + 50 * 10**9}
    assert document(now_s=1000.0)["run"]["choice"]["until_ns"] == 10**18
    assert document(memory=READY)["run"]["choice"] is None


def test_without_a_run_there_is_none_and_nothing_is_made_up():
    got = document(
        run=None,
        looks=seen("absent", "absent", "absent"),
        memory=None,
        last_run=row(number=6, condition="GOOD", state="CLOSED"),
    )
    assert (
        got["run"] is None
        and got["act"] is None
        and got["last_run"]["number"] == 6
        and got["last_run"]["condition"] == "GOOD"
        and got["last_run"]["state"] == "CLOSED"
    )
    assert got["state"] == "OFF" and got["flags"] == []
    assert all(value is None for key, value in got["numbers"].items() if key != "chunks") and got["database"] == {
        "state": "gone",
        "journal": 0,
        "run_numbers": None,
    }


def test_what_json_cannot_carry_is_null():
    got = document(
        numbers={
            "trigger_rate_hz": float("nan"),
            "events": float("inf"),
            "chunks": {"sent": 1, "built": 1, "lost": {"late": 0}},
        },
        hosts=({"name": "local", "seen": {1, 2}, "path": SYSTEM.file},),
    )
    assert got["numbers"]["trigger_rate_hz"] is None and got["numbers"]["events"] is None
    assert json.loads(json.dumps(got, allow_nan=False)) == got


def test_a_delta_and_what_was_before_give_the_whole():
    before, after = (
        document(),
        document(sequence=6, memory=READY, looks=seen("running", "running", "running", held=False)),
    )
    change = delta(before, after)
    assert {**before, **change} == after and change["sequence"] == 6 and "system" not in change and "state" in change
    assert delta(None, after) == after and set(delta(after, after)) == {"sequence", "time_ns"}


def test_who_does_not_answer_is_named_before_those_that_wait_for_him():
    phases = {"readout": "running", "supervisor": "draining", "recorder": "running", "node": "lost"}
    assert whom(["supervisor: draining 4.0 s"], phases) == ("node: lost", "supervisor: draining 4.0 s")
    assert whom(["node: lost 4.0 s"], phases, {"recorder": 64}) == (
        "recorder: 64 events are not safe yet",
        "node: lost 4.0 s",
    )
    assert whom([], {"readout": "running"}) == ()


def test_what_stands_is_said_of_a_process_that_nothing_else_is_said_of():
    looks = list(seen("running", "running", "running"))
    looks[1] = dataclasses.replace(
        looks[1], status={"standing": [{"name": "worker 0", "waits_for": "consumers", "seconds": 12.4}]}
    )
    got = document(looks=looks)["processes"]
    assert (got[0]["what"], got[1]["what"]) == ("", "worker 0 has waited for consumers for 12 s")
