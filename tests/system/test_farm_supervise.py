"""A supervisor that is killed between real readouts, nodes and a recorder: what was built is decided once, and is in one place."""

import signal

import pytest
from test_farm import FARM, Farm, check_each_event_is_in_one_place

CONFIGURATION = FARM.replace("[farm.node]", 'nodes = 2\nrebuild_time = "20s"\n[farm.node]', 1).replace('event_timeout = "3s"', 'event_timeout = "30s"')


@pytest.fixture
def farm(rodeo):
    with Farm(rodeo, farm=CONFIGURATION) as farm:
        yield farm


def test_a_killed_supervisor_loses_no_event_and_counts_each_decision_once(farm):
    farm.start_recorder()
    farm.start_supervisor()
    farm.start_node("node1")
    farm.start_node("node2")
    for name in ("one", "two"):
        farm.start(name, "readout", f"{name}.toml")
    for _ in range(2):
        before = len(farm.decisions())
        farm.until(lambda before=before: len(farm.decisions()) > before + 100, "nothing is decided")
        farm.kill("supervisor")
        farm.start_supervisor()
    farm.until(lambda: all(one["connected"] for one in farm.status("supervisor").get("readouts") or [{"connected": False}]), "the readouts are not there")
    for name in ("one", "two"):
        farm.processes[name].send_signal(signal.SIGINT)
    one, two = farm.finish("one"), farm.finish("two")
    supervisor = farm.finish("supervisor")
    nodes = [farm.finish("node1"), farm.finish("node2")]
    farm.finish("recorder", signal.SIGINT)
    counts = check_each_event_is_in_one_place(farm, supervisor, ("debug_NodePartial",))  # readouts begin and end at different events
    built = max(one["fragments"]["built"], two["fragments"]["built"])
    assert sum(counts.values()) == built and counts["lost"] == 0, (counts, built)
    events = supervisor["events"]
    assert events["uncleared"] + events["undecided"] + events["held_untold"] == 0, supervisor
    assert all(node["events"]["unsafe"] == 0 and node["events"]["under_way"] == 0 for node in nodes), nodes
    for readout in (one, two):
    
        assert hlt["cleared"] + hlt["cleared_early"] == readout["fragments"]["built"] and hlt["uncleared"] == hlt["garbage"] == 0, hlt
