"""The table of stalls: each class of process is silent, dead, full or slow. Word, cause, alarm, what page and shell show, and the
reason of the run come from statuses of the processes."""

import copy
import json
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from conftest import scaled
from looking import CARDS, SYSTEM, look, row
from rodeo.control.cli.status_text import text
from rodeo.control.run.open_run import OpenRun, reason_of
from rodeo.control.state.balance import balance
from rodeo.control.state.conditions import conditions
from rodeo.control.state.document import build
from rodeo.control.state.headline import (
    GOOD_S,
    LOSES_DATA,
    LOSES_TRIGGERS,
    NO_DATA,
    NO_TRIGGERS,
    FlowMeter,
    Headline,
    Trouble,
    first_cause,
    headline,
    loss,
    troubled,
)
from rodeo.control.state.numbers import Moment, limited_by, links_of, numbers, of_process
from rodeo.control.state.system import ProcessClass
from rodeo.control.state.system_state import derive
from test_derive import READY
from test_page_build import WEB, node

CHAIN = (
    CARDS,
    ProcessClass("router", "router", Path("/lab/r")),
    ProcessClass("readout", "readout", Path("/lab/readout.toml"), count=2),
    ProcessClass("supervisor", "supervisor", Path("/lab/f")),
    ProcessClass("node", "node", Path("/lab/f")),
    ProcessClass("recorder", "recorder", Path("/lab/f")),
)
NETWORK = (CHAIN[2],)  # readouts of real cards or of the network: no process knows the triggers
LOOKS, BEGIN, STEP_S = 8, 2, 0.9  # the fault begins after BEGIN looks
DEAD_TIME, INCOMPLETE, PARTIAL = 0.05, 1000.0, 1000.0
LIMITS = {"dead_time_limit": DEAD_TIME, "partial_limit_ppm": PARTIAL}
SELDOM = "0x22"  # a link that brings one chunk in four looks, the others one of each event
ROBS = {"0x1": ("0x10",), "0x2": ("0x20", "0x21", SELDOM)}


class Room:
    """Statuses of a running system, and what the room makes of them at each look."""

    def __init__(self, classes=CHAIN, held=False):
        self.members = {member.name: member for one in classes for member in one.members()}
        self.status = {name: self._first(member.kind) for name, member in self.members.items()}
        self.answered_s = dict.fromkeys(self.members, 0.0)
        self.words, self.held, self.without, self.known = {}, held, frozenset(), frozenset()
        self.before, self.meter, self.now_s, self.looks = None, FlowMeter(), 0.0, 0
        self.troubles, self.trouble = Trouble(), ""

    @staticmethod
    def _first(kind):
        return {
            "emulator": {
                "trigger": {"offered": 0, "accepted": 0, "held": False},
                "functions": [{"counters": {"chunks_dropped": 0}}],
            },
            "router": {
                "links": 2,
                "chunks": {"sent": 0},
                "subscribers": [{"name": "readout-1", "waits": 0}, {"name": "readout-2", "waits": 0}],
            },
            "readout": {
                "robs": [
                    {"source_id": rob, "links": [{"fid": fid, "state": "active", "chunks": 0} for fid in fids]}
                    for rob, fids in ROBS.items()
                ],
                "fragments": {"built": 0, "events": 0, "incomplete": 0},
                "chunks": {"sent": 0, "built": 0, "lost": {}},
                "limited_by_now": "nothing",
            },
            "supervisor": {"events": {"in": 0, "accepted": 0, "debug": 0, "partial": 0}, "limited_by": "nothing"},
            "node": {
                "events": {"assigned": 0, "under_way": 0},
                "readouts": [{"name": f"readout-{one}.hlt", "lost_fragments": 0} for one in (1, 2)],
            },
            "recorder": {"events": {"recorded": 0, "waiting": 0}, "bytes": {"events": 10**6}},
        }[kind]

    def go_on(
        self,
        *,
        offered=900,
        accepted=900,
        built=900,
        of=None,
        silent=(),
        lost=0,
        card_lost=0,
        partial=0,
        lost_fragments=(0, 0),
        quiet=(),
        say=None,
    ):
        """One look. The counters grow by the given numbers, those of a readout by `of`. Processes in `silent` keep their last status. `partial` events lack
        `lost_fragments` of each readout. The links in `quiet`, (readout, fid), bring nothing. `say` {process: members of its status}."""
        self.now_s += STEP_S
        self.looks += 1
        for name, status in self.status.items():
            if name in silent or status is None:
                continue
            status, kind = copy.deepcopy(status), self.members[name].kind
            if kind == "emulator":
                status["trigger"].update(
                    offered=status["trigger"]["offered"] + offered,
                    accepted=status["trigger"]["accepted"] + accepted,
                    held=self.held,
                )
                status["functions"][0]["counters"]["chunks_dropped"] += card_lost
            elif kind == "router":
                status["chunks"]["sent"] += 2 * built
            elif kind == "readout":
                grows = (of or {}).get(name, built)
                status["fragments"]["built"] = (status["fragments"]["built"] or 0) + len(ROBS) * grows
                status["fragments"]["events"] = status["fragments"].get("events", 0) + grows
                for link in (link for rob in status["robs"] for link in rob["links"]):
                    brings = grows if link["fid"] != SELDOM else min(grows, self.looks % 4 == 0)
                    link["chunks"] = link.get("chunks", 0) + (0 if (name, link["fid"]) in quiet else brings)
                status["chunks"]["built"] += grows
                status["chunks"]["lost"]["late"] = status["chunks"]["lost"].get("late", 0) + lost
            elif kind == "supervisor":
                grow = {"accepted": accepted - partial, "debug": partial, "partial": partial}
                status["events"] |= {key: status["events"].get(key, 0) + count for key, count in grow.items()}
            elif kind == "node":
                for one, count in zip(status["readouts"], lost_fragments):
                    one["lost_fragments"] += count
            status.update((say or {}).get(name, {}))
            self.status[name], self.answered_s[name] = status, self.now_s
        return self._judged()

    def _judged(self):
        after = Moment(
            self.now_s,
            {name: (self.members[name].kind, status) for name, status in self.status.items()},
            answered_s=dict(self.answered_s),
            left_out=self.without,
        )
        looks, run = tuple(self._look(name, member) for name, member in self.members.items()), row()
        derived, known = derive(looks, run, None, replace(READY, without=self.without)), numbers(self.before, after)
        flow = self.meter.update(self.now_s, known, self.before, after)
        cause = first_cause(
            derived,
            looks,
            limited_by(self.before, after),
            run=run,
            standing=troubled(flow, **LIMITS),
            stalled=flow.stalled,
            lost=loss(flow, PARTIAL),
        )
        word = headline(derived, flow, cause, run=run, incomplete_limit_ppm=INCOMPLETE, **LIMITS)
        by_process = {name: of_process(name, self.before, after) for name in self.members}
        alarms = conditions(
            derived,
            looks,
            known,
            run=run,
            memory=READY,
            known=self.known,
            links=links_of(after, flow.silent),
            limited_by=cause,
            flow=flow,
            headline=word,
            process_numbers=by_process,
        )
        self.before, self.numbers = after, known
        self.trouble = self.troubles.update(self.now_s, word, self.trouble)
        self.last = dict(derived=derived, looks=looks, run=run, numbers=known, process_numbers=by_process)
        self.last |= dict(limited_by=cause, headline=word, links=links_of(after, flow.silent))
        return word, cause, {one.cause: one for one in alarms}

    def document(self):
        """The document of the last look."""
        return build(sequence=1, time_ns=10**18, since_ns=1, system=SYSTEM, build="r1", memory=READY, **self.last)

    def _look(self, name, member):
        age_s = self.now_s - self.answered_s[name]
        word = self.words.get(name, "running")
        polls = {} if word != "running" else {"unanswered": round(age_s / STEP_S), "answered_age_s": age_s + 0.2}
        return replace(look(member, word, status=self.status[name]), since_ns=100, **polls)


def after_some_looks(fault, room=None, dead=None, begin=BEGIN):
    """What the room says of a system that was good, and then had `fault` (arguments of go_on) for some looks."""
    room = room or Room()
    assert all(room.go_on()[0] == Headline("RUNNING", "good") for _ in range(begin))
    if dead:
        room.status[dead], room.words[dead] = None, "killed"
    return [room.go_on(**fault) for _ in range(LOOKS)][-1]


STOPPED = {"accepted": 0, "built": 0}  # the cards are busy: triggers are offered, none is accepted
FULL = {  # full process -> the statuses that report it, and the first cause
    "cards": ({}, None),  # the cards are busy because of the stages after them, which say nothing
    "router": (
        {"router": {"standing": [{"name": "reader", "waits_for": "pages", "seconds": 9.0}]}},
        ("router", "reader waits for pages"),
    ),
    "readout-1": ({"readout-1": {"limited_by_now": "writer"}}, ("readout-1", "writer")),
    "supervisor": ({"supervisor": {"limited_by": "retention"}}, ("supervisor", "retention")),
    "node": ({"supervisor": {"limited_by": "filter nodes"}}, ("supervisor", "filter nodes")),
    "recorder": (
        {
            "supervisor": {"limited_by": "filter nodes"},
            "node": {"events": {"assigned": 9, "under_way": 10}},
            "recorder": {"events": {"recorded": 9, "waiting": 8}},
        },
        ("recorder", "disk"),
    ),
}


def of(pair):
    return pair and {"process": pair[0], "stage": pair[1]}


# The places of causes that the picture does not show at the process itself.
PLACES = {("readout-1", "writer"): "files", ("recorder", "disk"): "files", ("supervisor", "filter nodes"): "node"}


@dataclass(frozen=True)
class Stall:
    """A row of the table: what happens, and what follows. `given`: arguments of go_on(). `dead`: this process is killed. `cause`: (process, stage) or None."""

    name: str
    fault: str
    given: dict
    word: str
    severity: str
    cause: tuple | None
    dead: str | None = None
    begin: int = BEGIN
    alarm: str | None = None  # the alarm that names the loss; then nothing waits

    @property
    def sentence(self):
        """The sentence that alarm, page and run must have."""
        said = {
            NO_DATA: "the run takes no data",
            LOSES_DATA: "the run loses data",
            LOSES_TRIGGERS: "the run loses triggers",
        }
        return f"{said[self.word]}: " + (
            f"{self.cause[0]}: {self.cause[1]}" if self.cause else "the cause is not known yet"
        )


def stalls():
    for name, (says, cause) in FULL.items():
        silent = {**STOPPED, "silent": (name,)}
        slow = {"accepted": 500, "built": 500, "say": says}
        yield Stall(name, "silent", silent, NO_DATA, "alarm", (name, "does not answer"))
        yield Stall(name, "dead", STOPPED, NO_DATA, "alarm", (name, "has failed"), dead=name)
        yield Stall(name, "full", {**STOPPED, "say": says}, NO_DATA, "alarm", cause)
        yield Stall(name, "slow", slow, LOSES_TRIGGERS, "warning", cause)
    idle = {"of": {"readout-2": 0}}
    yield Stall("readout-2", "builds nothing", idle, LOSES_DATA, "alarm", ("readout-2", "builds nothing"))
    lack = ("readout-2", "events lack its fragments")
    for fault, given in (("partial", {}), ("partial and full", {"accepted": 450, "say": FULL["node"][0]})):
        given |= {"partial": 450, "lost_fragments": (1, 450)}
        yield Stall("node", fault, given, LOSES_DATA, "warning", lack, alarm="partial")
    for fids, what in ((("0x10",), "link 0x10"), (("0x21",), "link 0x21"), (ROBS["0x2"], "ROB 0x2")):
        quiet = {"quiet": [("readout-1", fid) for fid in fids]}
        cause = ("readout-1", f"{what} brings nothing")
        given = {"begin": 50, "alarm": f"link:readout-1:{fids[0]}"}
        yield Stall("readout-1", f"{what} is silent", quiet, LOSES_DATA, "warning", cause, **given)


STALLS = {f"{row.name} {row.fault}": row for row in stalls()}


@pytest.mark.parametrize("row", STALLS.values(), ids=STALLS)
def test_each_stall_has_its_word_and_one_cause_everywhere(row):
    word, picture, alarms = after_some_looks(row.given, dead=row.dead, begin=row.begin)
    cause = of(row.cause)
    assert (word.word, word.severity, word.cause, picture) == (row.word, row.severity, cause, cause)
    assert word.what == row.sentence
    if row.alarm:
        assert row.alarm in alarms and alarms[row.alarm].process == row.cause[0]
        assert not [each for each in alarms if each.startswith("back_pressure")]
    if row.word != NO_DATA:
        assert "no_data" not in alarms
        return
    assert alarms["no_data"].process == (cause and row.cause[0]) and alarms["no_data"].what == row.sentence
    assert {each.split(":")[1] for each in alarms if each.startswith("back_pressure")} == (
        {row.cause[0]} if cause else set()
    )


@pytest.fixture(scope="module")
def walked():
    """Returns {row of the table: (its room after the stall, what the page says of its document)}, from one call of the page's code."""
    rooms = {name: Room() for name in STALLS}
    for name, row in STALLS.items():
        after_some_looks(row.given, rooms[name], dead=row.dead, begin=row.begin)
    done = subprocess.run(
        [node() / "node", WEB / "tests" / "texts.js"],
        input=json.dumps([room.document() for room in rooms.values()]),
        capture_output=True,
        text=True,
        timeout=scaled(60),
    )
    assert done.returncode == 0, done.stderr
    return {name: (room, page) for (name, room), page in zip(rooms.items(), json.loads(done.stdout), strict=True)}


@pytest.mark.parametrize("name", STALLS)
def test_the_page_shows_each_stall_with_its_sentence_and_its_place(walked, name):
    row, (room, page) = STALLS[name], walked[name]
    tone = {"alarm": "bad", "warning": "warn"}[row.severity]
    assert page["head"][:2] == [row.word, tone] and page["head"][2] != "RUNNING"
    assert page["what"] == row.sentence
    place = row.cause and PLACES.get(row.cause, room.members[row.cause[0]].process_class.name)
    sentence = row.cause and f"first delayed here: {row.cause[0]}, {row.cause[1]}"
    assert page["delayed"] == ({place: sentence} if row.cause else {}) and page["strange"] is None
    assert page["below"] == ("" if row.cause else "data are delayed; the place is not known yet")
    gone = row.fault in ("silent", "dead")
    assert {each: tone for each, (tone, _) in page["bad"].items()} == ({row.name: "bad"} if gone else {})
    whole = room.members[row.name].process_class
    assert page["counts"][whole.name] == f"{whole.count - gone}/{whole.count}"
    assert page["recording"]["tone"] == (
        "good" if row.word != NO_DATA else "idle" if row.dead == "recorder" else "warn"
    )


@pytest.mark.parametrize("name", STALLS)
def test_the_shell_shows_each_stall_with_its_sentence(walked, name):
    row, room = STALLS[name], walked[name][0]
    lines = text(room.document()).splitlines()
    assert row.word in lines[0] and lines[1] == f"  {row.sentence}"
    assert ("  limited by {} ({})".format(*row.cause) in lines) if row.cause else "limited by" not in "\n".join(lines)


@pytest.mark.parametrize("name", STALLS)
def test_the_reason_of_the_run_names_the_cause_of_each_stall_that_cost_data(walked, name):
    row, room = STALLS[name], walked[name][0]
    books = balance({"readout-1": None})
    named = [row.sentence] if row.severity == "alarm" and row.cause else []
    assert reason_of(OpenRun(7, trouble=room.trouble), books).split("; ") == [*named, *books.reasons]


@pytest.mark.parametrize("classes", [CHAIN, NETWORK])
def test_triggers_without_an_event_are_no_data(classes):
    word, _, _ = (
        after_some_looks({"built": 0}, Room(classes))
        if classes is CHAIN
        else after_some_looks({"built": 0, "say": {"readout-1": {"limited_by_now": "writer"}}}, Room(classes))
    )
    assert (word.word, word.severity) == (NO_DATA, "alarm")
    assert classes is CHAIN or word.cause == of(("readout-1", "writer")), "a full disk without an authority"


def test_without_triggers_and_without_a_cause_no_trigger_comes():
    room = Room(NETWORK)
    room.go_on()
    assert [room.go_on(built=0) for _ in range(13)][-1][0].word == NO_TRIGGERS
    room = Room()
    room.go_on()
    assert [room.go_on(offered=0, accepted=0, built=0) for _ in range(13)][-1][0].word == NO_TRIGGERS


@pytest.mark.parametrize("classes", [CHAIN, NETWORK])
def test_one_readout_that_builds_nothing_loses_data(classes):
    word, cause, alarms = after_some_looks({"of": {"readout-2": 0}}, Room(classes))
    assert (word.word, word.severity, word.cause) == (
        LOSES_DATA,
        "alarm",
        of(("readout-2", "builds nothing")),
    ) and cause == word.cause
    assert "stall:readout-2" in alarms and "stall:readout-1" not in alarms
    word, cause, _ = after_some_looks(
        {"of": {"readout-2": 0}, "say": {"readout-1": {"limited_by_now": "writer"}}}, Room(classes)
    )
    assert word.word == LOSES_DATA and cause == of(("readout-1", "writer")), (
        "a process that says what it waits for is named first"
    )


@pytest.mark.parametrize("classes", [CHAIN, NETWORK])
def test_a_readout_without_which_the_run_goes_on_may_build_nothing(classes):
    room = Room(classes)
    room.without = frozenset(["readout-2"])
    word, cause, alarms = after_some_looks({"of": {"readout-2": 0}}, room)
    assert (word.word, cause, list(alarms)) == ("RUNNING", None, [])
    assert after_some_looks({"of": {"readout-1": 0}}, Room(classes))[0].word == LOSES_DATA
    room = Room(classes)
    room.without = frozenset(["readout-2"])
    assert after_some_looks({"of": {"readout-1": 0}}, room)[0].word == NO_DATA, "no readout of the run builds"


LEFT_OUT = {  # alarm -> the status that raises it, unless the readout is left out
    "stall:readout-2": {},
    "back_pressure:readout-2": {"limited_by_now": "writer"},
    "incomplete": {"fragments": {"built": 10**6, "incomplete": 9 * 10**5}},
    "metric.gone:readout-2:rate_hz": {"fragments": {"built": None, "incomplete": 0}},
    "link:readout-2:0x10": {"robs": [{"links": [{"fid": "0x10", "state": "lost"}]}]},
    "out_of_step:readout-2:0x20": {"robs": [{"links": [{"fid": "0x20", "out_of_step": True}]}]},
}


@pytest.mark.parametrize("alarm", LEFT_OUT)
def test_a_readout_that_is_left_out_raises_no_alarm_and_is_no_cause(alarm):
    for without in frozenset(["readout-2"]), frozenset():
        room = Room()
        room.go_on()
        room.without, room.known = without, frozenset([("readout-2", "rate_hz")])
        room.go_on()
        given = {"of": {"readout-2": 0}, "say": {"readout-2": LEFT_OUT[alarm]}}
        word, cause, alarms = [room.go_on(**given) for _ in range(LOOKS)][-1]
        if without:
            assert (word.word, cause, list(alarms)) == ("RUNNING", None, [])
        else:
            assert alarm in alarms


@pytest.mark.parametrize("left", ["dead", "silent"])
def test_a_process_that_is_left_out_is_not_the_cause_of_a_later_stall(left):
    room = Room()
    room.go_on()
    room.without, silent = frozenset(["readout-2"]), ("readout-2",)
    if left == "dead":
        room.status["readout-2"], room.words["readout-2"] = None, "killed"
    assert [room.go_on(silent=silent) for _ in range(LOOKS)][-1][0].word == "RUNNING"
    full = {"supervisor": {"limited_by": "retention"}}
    word, cause, alarms = [room.go_on(**STOPPED, silent=silent, say=full) for _ in range(LOOKS)][-1]
    assert (word.word, cause) == (NO_DATA, of(("supervisor", "retention")))
    assert left == "silent" or "continues without it" in alarms["process.failed:readout-2"].do


def test_what_is_left_out_is_in_no_number_of_the_run():
    room = Room()
    room.go_on()
    room.without = frozenset(["readout-2"])
    for _ in range(3):
        room.go_on(of={"readout-2": 0})
    assert room.numbers["events"] == 4 * 900, "events that every readout of the run has built"


@pytest.mark.parametrize(
    ("lost", "word"), [({"lost": 0}, "RUNNING"), ({"lost": 1}, LOSES_DATA), ({"card_lost": 2}, LOSES_DATA)]
)
def test_lost_chunks_of_readouts_and_cards_reach_the_headline(lost, word):
    assert after_some_looks(lost)[0].word == word  # a look has 1,800 chunks; the limit is 1 lost chunk of 1,000


def test_links_that_are_out_of_the_build_lose_nothing():
    room = Room()
    for count in range(4):
        word = room.go_on(
            say={"readout-1": {"chunks": {"sent": 9, "built": 9, "lost": {"link_removed": 1000 * count}}}}
        )[0].word
    assert word == "RUNNING"


def test_a_run_of_few_triggers_takes_data():
    """A trigger comes every fourth look. The look may come before or after the readout has built the event."""
    room = Room()
    for _ in range(5):
        for counts in (
            {"offered": 1, "accepted": 1, "built": 0},
            {"offered": 0, "accepted": 0, "built": 1},
            *[{"offered": 0, "accepted": 0, "built": 0}] * 2,
        ):
            assert room.go_on(**counts)[0].word == "RUNNING"
        for counts in (
            {"offered": 0, "accepted": 0, "built": 1},
            {"offered": 1, "accepted": 1, "built": 0},
            *[{"offered": 0, "accepted": 0, "built": 0}] * 2,
        ):
            assert room.go_on(**counts)[0].word == "RUNNING"


def test_triggers_that_are_held_for_a_process_that_is_gone_are_no_data():
    room = Room()
    room.go_on()
    room.held, room.status["readout-1"], room.words["readout-1"] = True, None, "killed"
    word, cause, alarms = room.go_on(offered=0, accepted=0, built=0)
    assert (word.word, word.severity, word.cause) == (
        NO_DATA,
        "alarm",
        of(("readout-1", "has failed")),
    ) and cause == word.cause
    assert alarms["no_data"].what == word.what == "the run takes no data: readout-1: has failed"
    room = Room(held=True)
    assert room.go_on(offered=0, accepted=0, built=0)[0].word == "PAUSED", "a person holds the triggers"


def test_a_trouble_that_has_healed_is_no_reason_any_more():
    trouble, bad = Trouble(), Headline(NO_DATA, "alarm", {"process": "node", "stage": "has failed"})
    good = Headline("RUNNING", "good")
    said = trouble.update(0.0, replace(bad, word=LOSES_DATA), "")
    assert said == "the run loses data: node: has failed"
    assert trouble.update(1.0, replace(bad, cause={"process": "cards", "stage": "has failed"}), said) == said
    assert trouble.update(1.0, bad, said) == "the run takes no data: node: has failed", "the worse with the same cause"
    said = trouble.update(0.0, replace(bad, cause=None), "")
    assert said == "", "an alarm without a cause says nothing"
    said = trouble.update(1.0, bad, said)
    assert trouble.update(2.0, replace(bad, word=LOSES_DATA), said) == said == "the run takes no data: node: has failed"
    assert trouble.update(2.0, replace(bad, cause={"process": "cards", "stage": "has failed"}), said) == said, (
        "the first cause stays"
    )
    assert trouble.update(3.0, good, said) == said and trouble.update(3.0 + GOOD_S - 0.1, good, said) == said
    assert (
        trouble.update(63.0, Headline("PAUSED", "warning"), said) == said and trouble.update(64.0, good, said) == said
    ), "the minute begins anew"
    assert trouble.update(64.0 + GOOD_S, good, said) == ""
