"""A supervisor with real readouts, nodes and a recorder is killed: each built event is decided once and has one result."""

import signal

import pytest
from test_farm import Farm, check_each_event_is_in_one_place


@pytest.fixture
def farm(rodeo):
    with Farm(rodeo) as farm:
        path = farm.directory / "farm.toml"
        # The supervisor waits for its nodes without a limit.
        path.write_text(
            path.read_text()
            .replace('rebuild_time = "500ms"', 'rebuild_time = "60s"\nnodes = 2')
            .replace('event_timeout = "3s"', 'event_timeout = "60s"')
            .replace('readout_grace = "2s"', 'readout_grace = "10s"')
        )
        yield farm


def test_a_killed_supervisor_loses_no_event_and_counts_each_decision_once(farm):
    farm.start_recorder()
    farm.start_supervisor()
    farm.start_node("node1")
    farm.start_node("node2")
    farm.start_readouts()
    for _ in range(2):
        before = len(farm.decisions())
        farm.until(lambda before=before: len(farm.decisions()) > before + 100, "nothing is decided")
        farm.kill("supervisor")
        farm.start_supervisor()
    farm.until(
        lambda: all(one["connected"] for one in farm.status("supervisor").get("readouts") or [{"connected": False}]),
        "the readouts are not connected",
    )
    one, two = farm.end_readouts(300)
    supervisor = farm.finish("supervisor")
    nodes = [farm.finish("node1"), farm.finish("node2")]
    farm.finish("recorder", signal.SIGINT)
    counts = check_each_event_is_in_one_place(farm, supervisor, ())
    built = min(one["fragments"]["built"], two["fragments"]["built"])
    alone = (
        max(one["fragments"]["built"], two["fragments"]["built"]) - built
    )  # the events that only one readout had built at the stop
    assert supervisor["events"]["after_common_end"] == alone
    assert sum(counts.values()) == built and counts["lost"] == 0, (counts, built)
    events = supervisor["events"]
    assert events["uncleared"] + events["undecided"] + events["held_untold"] == 0, supervisor
    assert all(node["events"]["unsafe"] == 0 and node["events"]["under_way"] == 0 for node in nodes), nodes
    for readout in (one, two):
        hlt = readout["consumers"]["hlt"]["counters"]
        assert (
            hlt["cleared"] + hlt["cleared_early"] == readout["fragments"]["built"]
            and hlt["uncleared"] == hlt["garbage"] == 0
        ), hlt
