"""`rodeo demo --chain`: all processes from card to recorder, with and without a control room. Tests its report, and the death of processes."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from conftest import scaled

SMALL = ("demo", "--chain", "--rate", "300Hz", "--links", 10)
STAGES = {"emulator", "router", "readout", "processor", "hlt", "supervisor", "node", "recorder"}
PARTS = ["card", "router", "readout-1", "readout-2", "supervisor", "node-1", "node-2", "recorder"]


def parts_of(number):
    """Returns {name: pid} of the processes of a demo, given its process; names as in the system file."""
    found = {}
    for process in Path("/proc").iterdir():
        try:
            words = (
                (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if process.name.isdigit()
                else []
            )
        except (FileNotFoundError, ProcessLookupError):
            continue
        for word in words:
            if match := re.fullmatch(rf"[a-z.]+\.name=demo-{number}(?:-(.+))?", word):
                found[match[1] or "card"] = int(process.name)
    return found


def all_parts(demo):
    deadline = time.monotonic() + scaled(30)
    while set(PARTS) > set(found := parts_of(demo.pid)):
        assert time.monotonic() < deadline and demo.poll() is None, f"there are {sorted(found)}"
        time.sleep(0.05)
    return found


def wait_for_decisions(rodeo, demo):
    """Waits until the farm has decided some events."""
    deadline = time.monotonic() + scaled(30)
    while not any(path.stat().st_size >= 9 * 50 for path in rodeo.directory.rglob("decisions") if path.is_file()):
        assert time.monotonic() < deadline and demo.poll() is None, "nothing is decided"
        time.sleep(0.05)


def check_sum(report):
    """Each trigger has one result, and the accepted events are in files."""
    farm = report["farm"]
    assert farm["adds_up"] and farm["triggers"] > 0
    assert (
        farm["triggers"]
        == farm["accepted"] + farm["rejected"] + farm["debug"] + farm["readout_died"] + farm["undecided"]
    )
    assert (
        report["files_verified"]["events"] == farm["accepted"] + farm["debug"] == farm["recorded"]
        and report["files_verified"]["mismatches"] == 0
    )


def check_nothing_is_left(rodeo, demo):
    assert parts_of(demo.pid) == {}
    assert [path.name for path in rodeo.directory.rglob(f"demo-{demo.pid}*") if path.is_socket()] == []


def check_ended_well(rodeo, demo, out, error):
    assert demo.returncode == 0, error
    report = json.loads(out)
    assert report["run"]["condition"] == "GOOD", error
    check_sum(report)
    check_nothing_is_left(rodeo, demo)


def test_every_trigger_of_a_chain_is_in_a_file_or_accounted_for(rodeo):
    done = rodeo(*SMALL, "--seconds", 1.5, "--json", "-")
    report = json.loads(done.stdout)
    farm = report["farm"]
    assert report["run"]["condition"] == "GOOD" and report["links"] == 10, done.stderr
    check_sum(report)
    assert 0 < farm["accepted"] < farm["triggers"] and (
        farm["debug"],
        farm["partial"],
        farm["readout_died"],
        farm["undecided"],
    ) == (0, 0, 0, 0)
    assert report["chunks"] == {"sent": 10 * farm["triggers"], "built": 10 * farm["triggers"], "lost": {}}
    assert report["fragments"]["built"] == 2 * farm["triggers"] and report["fragments"]["incomplete"] == 0
    assert report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}
    assert STAGES <= set(report["cpu_seconds"]) and all(report["cpu_seconds"][stage] > 0 for stage in STAGES)
    assert [one["name"] for one in report["processes"]] == PARTS and all(
        one["condition"] in ("GOOD", None) for one in report["processes"]
    )
    assert {
        "offered_rate_hz",
        "trigger_rate_hz",
        "dead_time_fraction",
        "limited_by",
        "bytes",
        "latency_us",
        "loss",
        "consumers",
        "input",
    } <= set(report)
    assert f"each trigger is in one place: {farm['triggers']} triggers" in done.stderr


def check_what_the_bus_says(rodeo, demo):
    """`rodeo route list` distinguishes services of a farm from publishers of links."""
    bus = rodeo.directory / "cache" / "rodeo" / "demo" / f"run-{demo.pid}" / "bus"
    listed = {
        one["name"].removeprefix(f"demo-{demo.pid}-"): one
        for one in json.loads(rodeo("route", "list", "--bus", bus, "-o", "json").stdout)
    }
    assert all(one["alive"] for one in listed.values())
    services = {name: one["service"] for name, one in listed.items() if one["service"]}
    assert services == {
        "readout-1.hlt": "fragments",
        "readout-2.hlt": "fragments",
        "supervisor": "assignments",
        "recorder": "events",
    }
    assert [one["links"] for one in listed.values() if one["service"] is None and one["links"]] == [10]
    shown = rodeo("route", "list", "--bus", bus).stdout
    assert all(words in shown for words in ("serves fragments", "assigns events", "records events", "publishes links"))


def test_ctrl_c_ends_a_chain_in_order(rodeo):
    with rodeo.start(*SMALL, "--seconds", 600, "--json", "-") as demo:
        all_parts(demo)
        wait_for_decisions(rodeo, demo)
        check_what_the_bus_says(rodeo, demo)
        demo.send_signal(signal.SIGINT)
        out, error = demo.communicate(timeout=scaled(60))
    check_ended_well(rodeo, demo, out, error)


def test_a_node_that_the_supervisor_never_had_ends_with_the_chain(rodeo):
    """The supervisor never knew the node, so the node gets no message about the end of the run."""
    with rodeo.start(*SMALL, "--seconds", 600, "--json", "-") as demo:
        deadline = time.monotonic() + scaled(60)
        while "supervisor" not in (found := parts_of(demo.pid)):
            assert demo.poll() is None and time.monotonic() < deadline
            time.sleep(0.002)
        os.kill(found["node-1"], signal.SIGSTOP)
        try:
            wait_for_decisions(rodeo, demo)
            demo.send_signal(signal.SIGINT)
            deadline = time.monotonic() + scaled(
                10
            )  # if the node has met the supervisor, the supervisor waits for its events
            while "supervisor" in parts_of(demo.pid) and time.monotonic() < deadline:
                time.sleep(0.05)
        finally:
            os.kill(found["node-1"], signal.SIGCONT)
        out, error = demo.communicate(timeout=scaled(60))
    check_ended_well(rodeo, demo, out, error)


@pytest.mark.parametrize(
    "name",
    [
        "supervisor",
        pytest.param("router", marks=pytest.mark.slow),
        pytest.param("readout-1", marks=pytest.mark.slow),
        pytest.param("card", marks=pytest.mark.slow),
    ],
)
def test_a_part_that_dies_ends_a_chain_that_no_room_looks_after(rodeo, name):
    with rodeo.start(*SMALL, "--seconds", 600, "--json", "-") as demo:
        parts = all_parts(demo)
        wait_for_decisions(rodeo, demo)
        os.kill(parts[name], signal.SIGKILL)
        out, error = demo.communicate(timeout=scaled(90))
    assert demo.returncode == 1, error
    report = json.loads(out)
    assert report["run"]["condition"] == "ABORTED" and f"{name} ended before the run" in report["run"]["failure"]
    assert f"{name} ended before the run" in error
    check_nothing_is_left(rodeo, demo)


@pytest.mark.slow
def test_a_supervisor_that_dies_at_the_end_holds_up_nobody(rodeo):
    with rodeo.start(*SMALL, "--seconds", 600, "--json", "-") as demo:
        parts = all_parts(demo)
        wait_for_decisions(rodeo, demo)
        os.kill(parts["supervisor"], signal.SIGSTOP)  # a stopped supervisor does not end normally before the kill
        demo.send_signal(signal.SIGINT)
        while b"ending the run" not in os.read(demo.stderr.fileno(), 1 << 16):
            pass
        os.kill(parts["supervisor"], signal.SIGKILL)
        out, _ = demo.communicate(timeout=scaled(90))
    assert demo.returncode == 1
    report = json.loads(out)
    assert report["run"]["condition"] == "ABORTED" and "supervisor left no report" in report["run"]["failure"]
    check_nothing_is_left(rodeo, demo)


def test_a_chain_in_a_control_room_outlives_a_filter_node(rodeo):
    """The node is restarted, its events go to the other node, and the sum is right over both of its starts."""
    with rodeo.start(*SMALL, "--seconds", 3) as demo:
        parts = all_parts(demo)
        wait_for_decisions(rodeo, demo)
        os.kill(parts["node-1"], signal.SIGKILL)
        _, error = demo.communicate(timeout=scaled(90))
    assert demo.returncode == 0, error
    assert "each trigger is in one place" in error and "no report   of node-1" in error
    assert re.search(r"triggers = \d+ accepted \+ \d+ rejected \+ \d+ debug \+ 0 readout_died \+ 0 undecided", error)
    check_nothing_is_left(rodeo, demo)


def test_what_is_wrong_with_the_settings_of_a_chain_is_said_before_anything_starts(rodeo):
    for setting, said in (
        ("farm.node.slots=3", "events"),
        ("farm.recorder.sink=each", "sync"),
        ("readout.builder.chunk=40", "chunk_size"),
        ("router.nam=a", "name"),
    ):
        done = rodeo(*SMALL, "--set", setting, exit_code=3)
        assert "error[config.unknown_key]" in done.stderr and setting.split("=")[0] in done.stderr, said
