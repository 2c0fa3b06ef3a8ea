"""The state of the system follows from its processes, the open run and the current act: docs/reference/control-room-states.md, row by row."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from looking import CARDS, READOUTS, look, row, seen
from rodeo.control.state.snapshots import PHASES, Act, Choice, Exit, Look, Memory, RunRow, look_at, phase_of
from rodeo.control.state.system import ProcessClass
from rodeo.control.state.system_state import FLAGS, STATES, derive

READY = Memory(wanted="ready")
OFF = Memory(wanted="off")
STOPPING = row(stopping=True, state="STOPPING")
STARTING = row(state="STARTING", first_event_ns=None)

# name: (words of cards, readout-1 and readout-2; other arguments; state; heal)
WITHOUT_A_RUN = {
    "nothing is there": (("absent", "absent", "absent"), {}, "OFF", None),
    "nothing is there, though a run was wanted: the host began anew": (
        ("absent", "absent", "absent"),
        {"memory": READY},
        "OFF",
        None,
    ),
    "all have ended in order": (("done", "done", "done"), {"memory": OFF}, "OFF", None),
    "one failed when the system was closed": (("killed", "done", "done"), {"memory": OFF}, "OFF", None),
    "all are gone and one failed": (("killed", "done", "done"), {"memory": READY}, "ERROR", None),
    "some get ready": (("ready", "launching", "ready"), {"memory": READY}, "LAUNCHING", None),
    "all are ready": (("ready", "ready", "ready"), {"memory": READY}, "READY", None),
    "cards that run serve as well": (("running", "ready", "ready"), {"memory": READY}, "READY", None),
    "an essential process failed in READY": (("ready", "failed", "ready"), {"memory": READY}, "ERROR", None),
    "an essential process was killed in READY": (("killed", "ready", "ready"), {"memory": READY}, "ERROR", None),
    "an essential process does not answer in READY": (("ready", "lost", "ready"), {"memory": READY}, "ERROR", None),
    "the run is over and its readouts have ended": (
        ("ready", "done", "done"),
        {"memory": READY},
        "LAUNCHING",
        "relaunch",
    ),
    "the run is over and its readouts are gone": (
        ("ready", "absent", "absent"),
        {"memory": READY},
        "LAUNCHING",
        "relaunch",
    ),
    "one of the next run's readouts is not there yet": (
        ("ready", "ready", "absent"),
        {"memory": READY},
        "LAUNCHING",
        "relaunch",
    ),
    "a readout failed at its launch: nothing is tried again": (
        ("ready", "failed", "absent"),
        {"memory": READY},
        "ERROR",
        None,
    ),
    "something is missing, and nobody knows what was wanted": (("ready", "absent", "ready"), {}, "ERROR", None),
    "the controller died while it closed the system": (
        ("ready", "done", "absent"),
        {"memory": OFF},
        "CLOSING",
        "close",
    ),
    "it was closed, and everything is there": (("ready", "ready", "ready"), {"memory": OFF}, "CLOSING", "close"),
    "a readout runs, and no run is open": (("ready", "running", "ready"), {"memory": READY}, "ERROR", None),
    "a held readout comes to its end": (("ready", "draining", "ready"), {"memory": READY}, "LAUNCHING", None),
    "a stranger": (("ready", "ready", "ready"), {"strangers": ("lab-old",)}, "ERROR", None),
    "a host is silent, and nothing is known of it": (
        ("unknown", "unknown", "unknown"),
        {"silent_hosts": ("local",)},
        "OFF",
        None,
    ),
    "a host is silent, and a system was there": (
        ("unknown", "unknown", "unknown"),
        {"silent_hosts": ("local",), "memory": READY},
        "ERROR",
        None,
    ),
}

WITH_A_RUN = {
    "takes data": (("running", "running", "running"), {"held": False}, "RUNNING", None),
    "nobody knows of the trigger": (("running", "running", "running"), {}, "RUNNING", None),
    "triggers are held": (("running", "running", "running"), {"held": True}, "PAUSED", None),
    "an essential readout failed": (("running", "failed", "running"), {"held": False}, "RUNNING", None),
    "an essential readout failed, and triggers are held": (
        ("running", "killed", "running"),
        {"held": True},
        "PAUSED",
        None,
    ),
    "an essential readout does not answer": (("running", "lost", "running"), {"held": False}, "RUNNING", None),
    "no readout answers": (("running", "lost", "lost"), {"held": True}, "PAUSED", None),
    "the cards failed": (("killed", "running", "running"), {}, "RUNNING", None),
    "the cards ended, and nobody had told them": (("done", "running", "running"), {}, "RUNNING", None),
    "one readout came to its end": (("running", "done", "running"), {"held": False}, "RUNNING", None),
    "one readout comes to its end": (("running", "draining", "running"), {"held": False}, "RUNNING", None),
    "every readout comes to its end": (("running", "draining", "draining"), {"held": False}, "STOPPING", "stop"),
    "every readout has come to its end": (("running", "done", "done"), {"held": True}, "CLOSING", "stop"),
    "every readout ended, data were lost": (("running", "lossy", "done"), {}, "CLOSING", "stop"),
    "one failed and the other came to its end": (("running", "killed", "done"), {}, "CLOSING", "stop"),
    "no process is there": (("absent", "absent", "absent"), {}, "CLOSING", "stop"),
    "only the cards are there": (("running", "absent", "absent"), {}, "CLOSING", "stop"),
    "the start was not begun": (("ready", "ready", "ready"), {"run": STARTING, "held": True}, "STARTING", "undo_start"),
    "the start was half done": (
        ("ready", "running", "ready"),
        {"run": STARTING, "held": True},
        "STARTING",
        "undo_start",
    ),
    "started, and the triggers not yet released": (
        ("ready", "running", "running"),
        {"run": STARTING, "held": True},
        "STARTING",
        "undo_start",
    ),
    "started, released, and no event yet": (
        ("ready", "running", "running"),
        {"run": STARTING, "held": False},
        "RUNNING",
        None,
    ),
    "a readout died in the start": (
        ("ready", "killed", "ready"),
        {"run": STARTING, "held": True},
        "STARTING",
        "undo_start",
    ),
    "the stop was begun": (("running", "running", "running"), {"run": STOPPING, "held": True}, "STOPPING", "stop"),
    "the stop goes on": (("running", "draining", "done"), {"run": STOPPING, "held": True}, "STOPPING", "stop"),
    "the stop goes on, and a readout failed": (
        ("running", "draining", "killed"),
        {"run": STOPPING},
        "STOPPING",
        "stop",
    ),
    "the cards died while it stops": (("killed", "draining", "draining"), {"run": STOPPING}, "STOPPING", "stop"),
    "the readouts are gone and the books not closed": (
        ("running", "done", "done"),
        {"run": STOPPING},
        "CLOSING",
        "stop",
    ),
    "another run's readout": (("running", "running", "running"), {"run": row(number=8)}, "ERROR", None),
    "a host fell silent a moment ago": (("silent", "silent", "silent"), {"silent_hosts": ("local",)}, "RUNNING", None),
    "a new controller, and a silent host": (
        ("unknown", "unknown", "unknown"),
        {"silent_hosts": ("local",)},
        "RUNNING",
        None,
    ),
    "a new controller, one readout comes to its end and the other's host is silent": (
        ("running", "draining", "unknown"),
        {"held": False},
        "RUNNING",
        None,
    ),
    "a new controller, a silent host, a stop": (
        ("unknown", "unknown", "unknown"),
        {"silent_hosts": ("local",), "run": STOPPING},
        "STOPPING",
        None,
    ),
}

# act, words, whether there is a run: state
UNDER_AN_ACT = [
    ("launch", ("absent", "absent", "absent"), False, "LAUNCHING"),
    ("launch", ("ready", "failed", "launching"), False, "LAUNCHING"),
    ("start", ("ready", "ready", "ready"), False, "STARTING"),
    ("start", ("ready", "running", "ready"), True, "STARTING"),
    ("start", ("ready", "running", "killed"), True, "STARTING"),
    ("pause", ("running", "running", "running"), True, "RUNNING"),
    ("go_on", ("running", "killed", "running"), True, "RUNNING"),
    ("stop", ("running", "running", "running"), True, "STOPPING"),
    ("stop", ("killed", "draining", "done"), True, "STOPPING"),
    ("stop", ("running", "lost", "done"), True, "STOPPING"),
    ("stop", ("running", "done", "done"), True, "CLOSING"),
    ("stop", ("ready", "done", "done"), False, "LAUNCHING"),
    ("stop", ("ready", "launching", "ready"), False, "LAUNCHING"),
    ("abort", ("running", "running", "running"), True, "STOPPING"),
    ("abort", ("killed", "killed", "killed"), True, "CLOSING"),
    ("abort", ("ready", "ready", "ready"), False, "CLOSING"),
    ("close", ("ready", "ready", "ready"), False, "CLOSING"),
    ("close", ("draining", "absent", "absent"), False, "CLOSING"),
    ("recover", ("killed", "ready", "ready"), False, "ERROR"),
    ("recover", ("ready", "launching", "ready"), False, "LAUNCHING"),
    ("recover", ("running", "running", "killed"), True, "STOPPING"),
    ("recover", ("killed", "killed", "killed"), True, "CLOSING"),
]


def state_of(words, *, held=None, **given):
    return derive(
        seen(*words, held=held), given.pop("run", None), given.pop("act", None), given.pop("memory", None), **given
    )


@pytest.mark.parametrize("case", WITHOUT_A_RUN)
def test_without_a_run(case):
    words, given, state, heal = WITHOUT_A_RUN[case]
    derived = state_of(words, **given)
    assert (derived.state, derived.heal) == (state, heal), derived


@pytest.mark.parametrize("case", WITH_A_RUN)
def test_with_a_run(case):
    words, given, state, heal = WITH_A_RUN[case]
    derived = state_of(words, **{"run": row(), **given})
    assert (derived.state, derived.heal) == (state, heal), derived
    assert derived.what


@pytest.mark.parametrize(("act", "words", "run", "state"), UNDER_AN_ACT)
def test_under_an_act(act, words, run, state):
    derived = state_of(words, held=False, run=row() if run else None, act=Act(act), memory=READY)
    assert derived.state == state, derived
    assert derived.heal is None, "the act that began it continues"


def test_what_is_lost_is_named_with_its_reason():
    derived = state_of(("running", "killed", "running"), run=row())
    assert derived.broken == {"readout-1": "ended by signal 9"}
    assert "readout-1 ended by signal 9" in derived.what
    assert derived.flags == ("DEGRADED",)


def test_a_readout_at_its_end_while_others_go_on_is_ended_and_no_failure():
    derived = state_of(("running", "done", "running"), run=row())
    assert derived.ended == ("readout-1",) and list(derived.broken) == ["readout-1"]
    assert state_of(("running", "killed", "running"), run=row()).ended == ()


def test_a_run_that_goes_on_without_a_readout_is_degraded_and_not_broken():
    derived = state_of(
        ("running", "killed", "running"), run=row(), held=False, memory=Memory(without=frozenset({"readout-1"}))
    )
    assert derived.state == "RUNNING" and derived.broken == {} and list(derived.degraded) == ["readout-1"]
    assert "DEGRADED" in derived.flags
    last = state_of(("running", "killed", "done"), run=row(), memory=Memory(without=frozenset({"readout-1"})))
    assert (last.state, last.heal) == ("CLOSING", "stop")


@pytest.mark.parametrize(
    ("role", "at_least", "bad", "broken"),
    [
        ("expendable", 1, 3, False),
        ("at_least", 2, 1, False),
        ("at_least", 2, 2, True),
        ("at_least", 0.5, 1, False),
        ("at_least", 0.5, 2, True),
        ("at_least", 1, 2, False),
        ("essential", 1, 1, True),
    ],
)
def test_roles(role, at_least, bad, broken):
    group = ProcessClass("readout", "readout", Path("/r.toml"), count=3, role=role, at_least=at_least)
    words = {f"readout_{index + 1}": "killed" if index < bad else "running" for index in range(3)}
    derived = derive(seen("running", classes=(CARDS, group), **words), row())
    assert bool(derived.broken) == broken and bool(derived.degraded) != broken
    assert "DEGRADED" in derived.flags


def test_an_expendable_that_is_launched_again_in_a_run_hinders_nothing():
    monitor = ProcessClass("monitor", "readout", Path("/m.toml"), role="expendable")
    for word in ("launching", "ready", "absent", "failed", "lost", "done"):
        derived = derive(
            seen("running", "running", "running", classes=(CARDS, READOUTS, monitor), monitor=word, held=False), row()
        )
        assert (derived.state, derived.heal) == ("RUNNING", None), (word, derived)
        assert list(derived.degraded) == ["monitor"] and "DEGRADED" in derived.flags


def test_an_expendable_does_not_keep_a_run_open():
    monitor = ProcessClass("monitor", "readout", Path("/m.toml"), role="expendable")
    derived = derive(seen("running", "done", "done", classes=(CARDS, READOUTS, monitor), monitor="running"), row())
    assert (derived.state, derived.heal, derived.waiting_for) == ("STOPPING", "stop", ("monitor: running",))
    alone = derive(seen("running", classes=(CARDS, monitor), monitor="running"), row())
    assert (alone.state, alone.heal) == ("RUNNING", None)


def test_another_configuration_or_build_is_foreign():
    ready = list(seen())
    ready[1] = replace(ready[1], expected_sha256="a" * 64, configuration_sha256="b" * 64)
    derived = derive(ready, None, None, READY)
    assert derived.state == "ERROR" and derived.foreign[0].startswith("readout-1 has another configuration")
    ready[1] = replace(ready[1], expected_sha256="b" * 64, build="one")
    ready[2] = replace(ready[2], build="two")
    derived = derive(ready, None, None, READY)
    assert derived.state == "ERROR" and "different builds: one, two" in derived.what


def test_flags():
    overdue = derive(seen("running", "draining", "draining"), row(stopping=True), Act("stop", age_s=61, limit_s=60))
    assert overdue.flags == ("OVERDUE",) and overdue.waiting_for == ("readout-1: draining", "readout-2: draining")
    blind = state_of(("silent", "silent", "silent"), run=row(), silent_hosts=("local",))
    assert blind.flags == ("BLIND",)
    removed = list(seen("running", "running", "running"))
    removed[1] = replace(removed[1], status={"robs": [{"links": [{"fid": "0x1", "state": "removed"}]}]})
    assert derive(removed, row()).flags == ("DEGRADED",)


def test_a_host_that_is_silent_for_long_has_lost_its_processes():
    looks = [replace(one, answered_age_s=31.0) for one in seen("silent", "silent", "silent")]
    derived = derive(looks, row(), silent_hosts=("local",))
    assert set(derived.phases.values()) == {"lost"} and "nothing was heard of it" in derived.broken["cards"]


def test_phases():
    member = READOUTS.members()[0]
    assert phase_of(look(member, "lost", answered_age_s=2.9)) == "running", (
        "lost only after three polls and three seconds"
    )
    assert phase_of(look(member, "lost", unanswered=2)) == "running"
    assert phase_of(look(member, "stopped")) == "draining", "its exit status shows how it ended"
    assert phase_of(look(member, "prepared")) == "launching"
    assert phase_of(look(member, "sideways")) == "lost" and phase_of(look(CARDS.members()[0], "sideways")) == "running"
    assert phase_of(look(member, "running", alive=False, exit=Exit(status=7))) == "done"
    assert phase_of(look(ProcessClass("p", "program", command=("x",)).members()[0], "launching")) == "running"


def test_a_look_takes_who_it_is_from_its_status_and_nothing_from_nonsense():
    member = READOUTS.members()[0]
    good = look_at(
        member,
        {"process": {"phase": "ready", "pid": 5, "build": "b", "configuration_sha256": "c"}},
        alive=True,
        answered_age_s=0.1,
    )
    assert (good.phase_said, good.pid, good.build, good.configuration_sha256, good.problems) == (
        "ready",
        5,
        "b",
        "c",
        (),
    )
    bad = look_at(member, {"process": {"phase": 5}, "run": "?"}, alive=True, answered_age_s=0.1)
    assert bad.phase_said is None and phase_of(bad) == "lost" and bad.problems
    assert "sends an invalid status" in derive([bad], row()).broken["readout-1"]


def anything(random_):
    """Random Looks, row, act and memory, independent of each other."""
    kinds = ("emulator", "readout", "router", "program")
    classes = tuple(
        ProcessClass(
            f"c{index}",
            random_.choice(kinds),
            role=random_.choice(("essential", "at_least", "expendable")),
            at_least=random_.choice((0.5, 1, 2, 9)),
            count=random_.randint(1, 3),
            restart=random_.choice(("never", "between_runs", "in_run")),
        )
        for index in range(random_.randint(0, 4))
    )
    looks = []
    for member in (member for one in classes for member in one.members()):
        status = random_.choice(
            (
                None,
                {},
                {"trigger": None},
                {
                    "trigger": {
                        "held": random_.choice((True, False, False, None, 3)),
                        "link": random_.choice((None, {}, {"a": 1})),
                    }
                },
                {"robs": [{}, {"links": [{}]}]},
            )
        )
        looks.append(
            Look(
                member,
                alive=random_.choice((True, False, None)),
                phase_said=random_.choice((None, "", "nonsense", *PHASES, "stopped")),
                exit=random_.choice((None, Exit(), Exit(status=0), Exit(status=5), Exit(signal=11, core="core"))),
                answered_age_s=random_.choice((None, 0.0, 2.0, 5.0, 1e9)),
                unanswered=random_.choice((0, 3, 10**6)),
                launched_age_s=random_.choice((None, 0.0, 1e6)),
                status=status,
                problems=random_.choice(((), ("x",))),
                build=random_.choice((None, "a", "b")),
                configuration_sha256=random_.choice((None, "a", "a", "a", "b")),
                expected_sha256=random_.choice((None, "a")),
                run_number=random_.choice((None, 7, 7, 7, 8)),
            )
        )
    run = random_.choice(
        (
            None,
            RunRow(
                7,
                state=random_.choice((*STATES, "", "x")),
                stopping=random_.random() < 0.5,
                first_event_ns=random_.choice((None, 1)),
            ),
        )
    )
    act = random_.choice(
        (
            None,
            None,
            Act(
                random_.choice(
                    ("launch", "start", "pause", "resume", "stop", "abort", "recover", "close", "go_on", "x")
                ),
                age_s=random_.random() * 9,
                limit_s=random_.choice((None, 5)),
            ),
        )
    )
    names = [one.name for one in looks]
    memory = random_.choice(
        (
            None,
            Memory(
                random_.choice((None, "ready", "off")),
                random_.choice((None, Choice("c0", 0.0))),
                frozenset(random_.sample(names, random_.randint(0, len(names)))),
            ),
        )
    )
    return (
        looks,
        run,
        act,
        memory,
        {"silent_hosts": random_.choice(((), ("local",))), "strangers": random_.choice(((), (), ("x",)))},
    )


def test_whatever_is_seen_there_is_one_state():
    random_ = random.Random(14)
    reached = set()
    for _ in range(5_000):
        looks, run, act, memory, given = anything(random_)
        derived = derive(looks, run, act, memory, **given)
        assert derived.state in STATES and set(derived.flags) <= set(FLAGS) and derived.what, derived
        assert derived.heal in (None, "stop", "undo_start", "relaunch", "close") and (
            act is None or derived.heal is None
        )
        assert set(derived.phases) == {one.name for one in looks} and set(derived.phases.values()) <= set(PHASES)
        assert not set(derived.broken) & set(derived.degraded)
        assert derived == derive(looks, run, act, memory, **given), "only the arguments decide"
        if run is None:
            assert derived.state not in ("RUNNING", "PAUSED", "STOPPING"), "no run is open"
        elif act is None or act.name != "launch":
            assert derived.state not in ("OFF", "READY"), "a run is open"
        reached.add(derived.state)
    assert reached == set(STATES)


def test_readouts_that_end_because_they_were_told_to_are_not_missing():
    for words in (("done", "draining"), ("done", "running"), ("done", "done")):
        assert derive(seen("running", *words), STOPPING, Act("stop", age_s=1, limit_s=60)).flags == (), words
    assert derive(seen("running", "done", "running"), row()).flags == ("DEGRADED",)  # without an order to stop
    assert derive(seen("running", "failed", "draining"), STOPPING, Act("stop", age_s=1, limit_s=60)).flags == (
        "DEGRADED",
    )
    assert derive(seen("failed", "done", "done"), STOPPING, Act("stop", age_s=1, limit_s=60)).flags == ("DEGRADED",)
