"""Automatic reactions: a table of moments, and of reactions that must never follow."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from looking import CARDS, READOUTS, row, seen
from rodeo.control.state.reactions import KINDS, Disk, given_up, continue_without, react
from rodeo.control.state.refusals import refusals
from rodeo.control.state.snapshots import Act, Choice, Memory
from rodeo.control.state.system import ProcessClass
from rodeo.control.state.system_state import derive
from test_derive import OFF, READY, STARTING, STOPPING, anything

RUNNING = ("running", "running", "running")
LOST = ("running", "killed", "running")


def after(
    words, memory=READY, *, held=False, run=None, act=None, now_s=100.0, classes=(CARDS, READOUTS), disk=None, **others
):
    """Returns (reactions by kind, memory) at one moment."""
    looks = seen(*words, held=held, classes=classes, **others)
    derived = derive(looks, run, act, memory)
    reactions, memory = react(
        derived, looks, run=run, act=act, memory=memory, now_s=now_s, choose_limit_s=30.0, disk=disk
    )
    assert len({one.kind for one in reactions}) == len(reactions) or all(one.kind == "restart" for one in reactions), (
        "one reaction of each kind"
    )
    return {one.kind: one for one in reactions}, memory


def test_a_run_that_is_well_is_left_alone():
    assert after(RUNNING, run=row())[0] == {}
    assert after(("ready", "ready", "ready"))[0] == {}
    assert after(("absent", "absent", "absent"))[0] == {}


def test_the_trigger_is_held_at_once_for_an_essential_process_and_somebody_may_choose():
    reactions, memory = after(LOST, run=row())
    assert reactions["hold"].process == "readout-1" and "signal 9" in reactions["hold"].why
    assert reactions["mark"].flags == ("DEGRADED",)
    assert memory.choice == Choice("readout-1", 100.0, "ended by signal 9") and memory.held_for == "readout-1"
    assert "stop" not in reactions


def test_nobody_chooses_and_the_run_is_stopped_in_order():
    _, memory = after(LOST, run=row())
    early, memory = after(LOST, memory, held=True, run=row(), now_s=129.9)
    assert "stop" not in early and "hold" not in early
    late, _ = after(LOST, memory, held=True, run=row(), now_s=130.0)
    assert late["stop"].flags == ("INTERRUPTED",) and "readout-1 ended by signal 9" in late["stop"].why


def test_the_choice_and_its_time_survive_the_controller():
    _, memory = after(LOST, run=row())
    again = Memory.from_json(memory.as_json(), 110.0)
    assert again.choice == memory.choice and again.held_for == "readout-1" and again.wanted == "ready"
    assert "stop" in after(LOST, again, held=True, run=row(), now_s=131.0)[0]


def test_a_time_of_another_boot_begins_now():
    memory = Memory(choice=Choice("readout-1", 5000.0), restarts={"x": (4000.0,)})
    again = Memory.from_json(memory.as_json(), 12.0)
    assert again.choice.since_s == 12.0 and again.restarts == {"x": (12.0,)}


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        [],
        {"choice": 5, "without": 3, "restarts": []},
        {"choice": {"process": 5}, "without": [5, None], "restarts": {"x": ["y", None]}, "held_for": 7, "wanted": "x"},
    ],
)
def test_a_memory_that_is_nonsense_is_none(value):
    memory = Memory.from_json(value, 1.0)
    assert memory.choice is None and memory.without == frozenset() and memory.wanted is None and memory.held_for is None


def test_what_was_lost_and_answers_again_gets_its_triggers_back():
    reactions, memory = after(("running", "lost", "running"), run=row())
    assert "hold" in reactions and memory.choice
    reactions, memory = after(RUNNING, memory, held=True, run=row(), now_s=105.0)
    assert reactions["release"].why == "readout-1 is back" and memory.choice is None
    reactions, memory = after(RUNNING, memory, held=False, run=row(), now_s=106.0)
    assert "release" not in reactions and memory.held_for is None
    assert "stop" not in after(RUNNING, memory, run=row(), now_s=200.0)[0]


def test_triggers_that_a_person_holds_are_not_released():
    reactions, memory = after(("running", "lost", "running"), held=True, run=row())
    assert "hold" not in reactions and memory.held_for is None and memory.choice
    assert "release" not in after(RUNNING, memory, held=True, run=row())[0]


def test_to_go_on_without_what_was_lost_releases_the_trigger_and_is_remembered():
    _, memory = after(LOST, run=row())
    memory = continue_without(memory, derive(seen(*LOST, held=True), row(), None, memory).broken)
    assert memory.choice is None and memory.without == {"readout-1"}
    reactions, memory = after(
        LOST, Memory.from_json(memory.as_json(), 140.0), held=True, run=row(flags=("DEGRADED",)), now_s=140.0
    )
    assert set(reactions) == {"release"} and "without readout-1" in reactions["release"].why
    assert after(LOST, memory, held=False, run=row(flags=("DEGRADED",)), now_s=200.0)[0] == {}


def test_a_second_loss_after_a_choice_is_a_choice_again():
    memory = Memory("ready", without=frozenset({"readout-1"}))
    reactions, memory = after(("running", "killed", "lost"), memory, run=row())
    assert reactions["hold"].process == "readout-2" and memory.choice.process == "readout-2"


def test_a_second_loss_during_a_choice_does_not_begin_the_time_anew():
    _, memory = after(LOST, run=row())
    _, memory = after(("running", "killed", "killed"), memory, held=True, run=row(), now_s=120.0)
    assert memory.choice.since_s == 100.0


def test_what_a_run_went_on_without_is_forgotten_with_the_run():
    memory = Memory("ready", Choice("readout-1", 1.0), frozenset({"readout-1"}), "readout-1")
    _, memory = after(("ready", "ready", "ready"), memory)
    assert (
        memory.choice is None and memory.without == frozenset() and memory.held_for is None and memory.wanted == "ready"
    )


def test_a_dead_trigger_authority_cannot_be_held_and_the_run_stops_after_its_time():
    reactions, memory = after(("killed", "running", "running"), held=None, run=row())
    assert "hold" not in reactions and memory.choice.process == "cards"
    assert (
        "INTERRUPTED"
        in after(("killed", "running", "running"), memory, held=None, run=row(), now_s=131.0)[0]["stop"].flags
    )


@pytest.mark.parametrize(
    "words", [("running", "done", "done"), ("running", "draining", "draining"), ("running", "lossy", "done")]
)
def test_the_end_of_the_input_is_an_orderly_stop(words):
    reactions, _ = after(words, run=row())
    assert reactions["stop"].flags == ()


def test_one_readout_at_its_end_holds_the_trigger_and_interrupts_nothing():
    reactions, memory = after(("running", "done", "running"), run=row())
    assert reactions["hold"].process == "readout-1"
    assert after(("running", "done", "running"), memory, held=True, run=row(), now_s=131.0)[0]["stop"].flags == ()


@pytest.mark.parametrize(
    ("words", "run", "memory", "kind", "flags"),
    [
        (("absent", "absent", "absent"), row(), READY, "stop", ("INTERRUPTED",)),
        (("absent", "absent", "absent"), row(), Memory(), "stop", ("INTERRUPTED",)),
        (("running", "killed", "done"), row(), READY, "stop", ("INTERRUPTED",)),
        (("running", "done", "killed"), STOPPING, READY, "stop", ()),
        (("running", "running", "running"), STOPPING, READY, "stop", ()),
        (("ready", "ready", "running"), STARTING, READY, "undo_start", ()),
        (("ready", "done", "absent"), None, READY, "relaunch", ()),
        (("ready", "ready", "absent"), None, OFF, "close", ()),
    ],
)
def test_the_next_controller_finishes_what_a_dead_one_began(words, run, memory, kind, flags):
    reactions, _ = after(words, memory, held=True, run=run)
    assert kind in reactions and reactions[kind].flags == flags, reactions
    meanwhile, _ = after(words, memory, held=True, run=run, act=Act("stop"))
    assert kind not in meanwhile, "it is in progress"


def test_the_disk_stops_a_run_in_order():
    full = Disk(free_bytes=2 * 10**9, stop_bytes=3 * 10**9)
    short = Disk(free_bytes=10**12, seconds_left=500.0, stop_bytes=3 * 10**9, least_seconds=600.0)
    for disk in (full, short):
        reactions, _ = after(RUNNING, run=row(), disk=disk)
        assert reactions["stop"].why.startswith("disk") and reactions["stop"].flags == ()
        assert "stop" in after(RUNNING, held=True, run=row(), disk=disk)[0], "paused is not stopped"
        assert after(RUNNING, run=row(), disk=disk, act=Act("stop"))[0] == {}
        assert after(("ready", "ready", "ready"), disk=disk)[0] == {}
    assert after(RUNNING, run=row(), disk=Disk(None, None, 3 * 10**9, 600.0))[0] == {}, "unknown values stop nothing"


MONITOR = ProcessClass("monitor", "readout", Path("/m.toml"), role="expendable", restart="in_run")


def restarts(word, memory, now_s, run=None, one=MONITOR, **others):
    reactions, memory = after(
        RUNNING if run else ("ready", "ready", "ready"),
        memory,
        run=run,
        now_s=now_s,
        classes=(CARDS, READOUTS, one),
        monitor=word,
        **others,
    )
    return reactions.get("restart"), memory


def test_an_expendable_is_restarted_three_times_with_back_off_and_not_a_fourth():
    run, memory, when, at = row(flags=("DEGRADED",)), READY, 1000.0, []
    for _ in range(300):
        one, memory = restarts("killed", memory, when, run)
        if one:
            at.append(when)
            assert one.process == "monitor" and one.why == f"restart {len(at)} of 3"
            _, memory = restarts("running", memory, when + 0.5, run)  # the process starts, and dies again
        when += 1.0
    assert at == [1001.0, 1006.0, 1023.0] and given_up(memory, "monitor", when)
    assert not given_up(memory, "monitor", when + 600.0)


def test_who_is_restarted():
    run = row(flags=("DEGRADED",))
    waited = replace(READY, failed_s={"monitor": 0.0})
    assert restarts("killed", waited, 10.0, run)[0] and restarts("failed", waited, 10.0)[0]
    assert not restarts("done", waited, 10.0, run)[0], "it ended normally"
    assert not restarts("lost", waited, 10.0, run)[0], "it may answer again"
    assert not restarts("killed", waited, 10.0, run, replace(MONITOR, restart="never"))[0]
    between = replace(MONITOR, restart="between_runs")
    assert not restarts("killed", waited, 10.0, run, between)[0] and restarts("killed", waited, 10.0, None, between)[0]
    assert not restarts("killed", waited, 10.0, run, act=Act("stop"))[0], "not during another act"
    assert not restarts("killed", waited, 10.0, STOPPING)[0]
    assert not restarts("killed", replace(waited, wanted="off"), 10.0)[0]
    assert not restarts("killed", replace(waited, without=frozenset({"monitor"})), 10.0, run)[0]


def test_one_too_many_of_a_class_is_not_restarted_in_a_run():
    group = ProcessClass("monitor", "readout", Path("/m.toml"), count=2, role="at_least", at_least=1, restart="in_run")
    waited = replace(READY, failed_s={"monitor-1": 0.0, "monitor-2": 0.0})
    one, _ = after(
        RUNNING,
        waited,
        run=row(),
        now_s=10.0,
        classes=(CARDS, READOUTS, group),
        monitor_1="killed",
        monitor_2="running",
    )
    assert one["restart"].process == "monitor-1" and "hold" not in one
    both, _ = after(
        RUNNING, waited, run=row(), now_s=10.0, classes=(CARDS, READOUTS, group), monitor_1="killed", monitor_2="killed"
    )
    assert "restart" not in both and "hold" in both


def test_what_never_happens_by_itself():
    random_ = random.Random(15)
    kinds = set()
    for _ in range(5_000):
        looks, run, act, memory, given = anything(random_)
        derived = derive(looks, run, act, memory, **given)
        if memory:
            memory = replace(memory, failed_s={look.name: 0.0 for look in looks})
        disk = random_.choice((None, Disk(1, 1.0, 2, 3.0), Disk(5, None, 2, 3.0)))
        reactions, remembered = react(
            derived, looks, run=run, act=act, memory=memory, now_s=random_.random() * 1000, disk=disk
        )
        for one in reactions:
            kinds.add(one.kind)
            assert one.kind in KINDS and one.why
            if one.kind == "restart":
                look = next(look for look in looks if look.name == one.process)
                assert run is None or look.member.role != "essential", "an essential process is not restarted in a run"
        begun = [one for one in reactions if one.kind in ("stop", "undo_start", "relaunch", "close")]
        assert len(begun) <= (1 if act is None else 0)
        if run is None:
            assert not {"stop", "undo_start", "hold", "mark"} & {one.kind for one in reactions}
        if derived.foreign:
            assert not begun and not any(one.kind == "restart" for one in reactions), (
                "foreign processes are not touched"
            )
        assert remembered.wanted == (memory.wanted if memory else None), (
            "only the holder of control changes the wanted state"
        )
    assert {"hold", "stop", "undo_start", "relaunch", "close", "mark", "restart"} <= kinds


RECORDERS = ProcessClass("recorder", "recorder", Path("/lab/farm.toml"), role="expendable", restart="in_run")
SUPERVISOR = ProcessClass("supervisor", "supervisor", Path("/lab/farm.toml"), role="expendable", restart="in_run")
FARM = (CARDS, READOUTS, SUPERVISOR, RECORDERS)
THREE_TIMES = Memory("ready", restarts={"recorder": (10.0, 20.0, 40.0), "supervisor": (10.0, 20.0, 40.0)})


def of_farm(memory, *, recorder="running", supervisor="running", now_s=100.0, held=False, classes=FARM, **options):
    return after(
        RUNNING,
        memory,
        run=row(),
        now_s=now_s,
        held=held,
        classes=classes,
        recorder=recorder,
        supervisor=supervisor,
        **options,
    )


@pytest.mark.parametrize("name", ["supervisor", "recorder"])
def test_what_the_flow_needs_is_restarted_and_is_the_crews_choice_when_it_is_given_up(name):
    """The process is expendable, so three restarts are automatic. But no data flow without it, so its fourth death needs a decision."""
    reactions, memory = of_farm(replace(THREE_TIMES, restarts={}), **{name: "killed"}, now_s=98.0)
    reactions, memory = of_farm(memory, **{name: "killed"})
    assert reactions["restart"].process == name and memory.choice is None and "hold" not in reactions
    reactions, memory = of_farm(THREE_TIMES, **{name: "killed"})
    assert "restart" not in reactions and memory.gone == {name}
    reactions, memory = of_farm(memory, **{name: "killed"}, now_s=101.0)
    assert (
        reactions["hold"].process == name
        and memory.choice.process == name
        and "no event flows without it" in memory.choice.what
    )
    reactions, _ = of_farm(memory, **{name: "killed"}, held=True, now_s=131.0)
    assert reactions["stop"].flags == ("INTERRUPTED",) and name in reactions["stop"].why


def test_a_run_cannot_go_on_without_what_the_flow_needs():
    _, memory = of_farm(THREE_TIMES, supervisor="killed")
    _, memory = of_farm(memory, supervisor="killed", now_s=101.0)
    looks = seen(*RUNNING, held=True, classes=FARM, recorder="running", supervisor="killed")
    derived = derive(looks, row(), None, memory)
    assert derived.state == "PAUSED" and derived.indispensable == ("supervisor",)
    assert refusals(derived, run=row(), memory=memory)["go_on"] == "no event flows without supervisor: stop"


def test_one_of_several_recorders_may_be_given_up():
    several = (*FARM[:3], replace(RECORDERS, count=2))
    memory = Memory("ready", restarts={"recorder-1": (10.0, 20.0, 40.0), "recorder-2": (11.0, 21.0, 41.0)})
    _, memory = of_farm(memory, classes=several, recorder_1="killed", recorder_2="running")
    reactions, memory = of_farm(memory, classes=several, recorder_1="killed", recorder_2="running", now_s=101.0)
    assert memory.gone == {"recorder-1"} and memory.choice is None and "hold" not in reactions
    _, memory = of_farm(memory, classes=several, recorder_1="killed", recorder_2="killed", now_s=102.0)
    reactions, memory = of_farm(memory, classes=several, recorder_1="killed", recorder_2="killed", now_s=103.0)
    assert "hold" in reactions and memory.choice


def test_what_is_never_restarted_is_asked_for_at_its_first_death():
    never = (*FARM[:3], replace(RECORDERS, restart="between_runs"))
    _, memory = of_farm(READY, classes=never, recorder="killed")
    reactions, memory = of_farm(memory, classes=never, recorder="killed", now_s=101.0)
    assert "hold" in reactions and memory.choice.process == "recorder"


def test_a_restart_that_its_host_refused_is_tried_again_and_counts():
    once = replace(THREE_TIMES, restarts={"recorder": (95.0,)})
    _, memory = of_farm(once, recorder="absent")
    reactions, memory = of_farm(memory, recorder="absent", now_s=104.0)
    assert reactions["restart"].why == "restart 2 of 3" and not memory.gone
    _, memory = of_farm(THREE_TIMES, recorder="absent")
    assert not memory.gone, "it is briefly absent during its start"
    assert of_farm(memory, recorder="absent", now_s=102.0)[1].gone == {"recorder"}
    assert of_farm(memory, recorder="launching", now_s=102.0)[1].gone == frozenset()


def test_processes_of_a_farm_that_end_with_the_run_are_no_loss():
    looks = seen("running", "done", "done", held=True, classes=FARM, recorder="running", supervisor="done")
    _, memory = react(derive(looks, STOPPING, None, READY), looks, run=STOPPING, memory=READY, now_s=1.0)
    derived = derive(looks, STOPPING, None, memory)
    assert derived.state == "STOPPING" and "DEGRADED" not in derived.flags and memory.choice is None


EXPENDABLE = {
    "cards": replace(CARDS, role="expendable"),
    "router": ProcessClass("router", "router", Path("/lab/r.toml"), role="expendable"),
    "supervisor": SUPERVISOR,
    "recorder": RECORDERS,
}


def of_expendable(memory, name, word, *, now_s, **options):
    """One moment of a run in which the last process of this name is `word`. The triggers are held by no process."""
    classes = (EXPENDABLE["cards"], READOUTS, EXPENDABLE["router"], SUPERVISOR, RECORDERS)
    words = {
        "cards": "running",
        "readout_1": "running",
        "readout_2": "running",
        "router": "running",
        "supervisor": "running",
        "recorder": "running",
        name: word,
    }
    looks = tuple(
        replace(one, answered_age_s=options["age_s"]) if one.name == name and "age_s" in options else one
        for one in seen(classes=classes, **words)
    )
    derived = derive(looks, row(), None, memory)
    reactions, memory = react(derived, looks, run=row(), memory=memory, now_s=now_s, choose_limit_s=30.0)
    return {one.kind: one for one in reactions}, memory, derived


@pytest.mark.parametrize("name", ["cards", "router"])
def test_the_last_card_or_router_is_not_given_up_in_silence(name):
    _, memory, _ = of_expendable(READY, name, "killed", now_s=100.0)
    reactions, memory, derived = of_expendable(memory, name, "killed", now_s=101.0)
    assert memory.choice.process == name and "no event flows without it" in memory.choice.what
    assert (
        derived.indispensable == (name,)
        and refusals(derived, run=row(), memory=memory)["go_on"] == f"no event flows without {name}: stop"
    )
    assert of_expendable(memory, name, "killed", now_s=131.0)[0]["stop"].flags == ("INTERRUPTED",)


@pytest.mark.parametrize("name", ["cards", "router", "supervisor", "recorder"])
def test_the_last_of_a_kind_that_does_not_answer_for_long_becomes_a_choice(name):
    _, memory, _ = of_expendable(READY, name, "lost", now_s=100.0, age_s=29.0)
    reactions, memory, _ = of_expendable(memory, name, "lost", now_s=101.0, age_s=30.0)
    assert memory.choice is None and memory.gone == {name}, "it may answer again within choose_limit"
    reactions, memory, _ = of_expendable(memory, name, "lost", now_s=102.0, age_s=31.0)
    assert (
        memory.choice.process == name
        and "has not answered for 31 s, and no event flows without it" in memory.choice.what
    )
    _, memory, derived = of_expendable(memory, name, "running", now_s=103.0)
    assert memory.choice is None and not memory.gone and not derived.broken, "it answers again"
