"""`rodeo demo --chain`: all processes from card to recorder, in a control room. Tests its report, and the death of processes."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from conftest import scaled, without_packages

SMALL = ("demo", "--chain", "--rate", "300Hz", "--links", 10)
IMPATIENT = ("--set", "farm.node.readout_grace=2s", "--set", "farm.supervisor.readout_grace=2s")
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


def test_a_chain_that_is_told_to_end_ends_in_order(rodeo):
    with rodeo.start(*SMALL, "--seconds", 600, "--no-page", "--json", "-") as demo:
        all_parts(demo)
        wait_for_decisions(rodeo, demo)
        check_what_the_bus_says(rodeo, demo)
        demo.send_signal(signal.SIGTERM)
        out, error = demo.communicate(timeout=scaled(90))
    check_ended_well(rodeo, demo, out, error)
    assert "page: " not in error


@pytest.mark.parametrize(
    "name",
    [
        "readout-1",
        pytest.param("router", marks=pytest.mark.slow),
        pytest.param("card", marks=pytest.mark.slow),
    ],
)
def test_a_part_that_is_needed_and_dies_ends_a_chain(rodeo, name):
    with rodeo.start(*SMALL, *IMPATIENT, "--seconds", 600, "--json", "-") as demo:
        parts = all_parts(demo)
        wait_for_decisions(rodeo, demo)
        os.kill(parts[name], signal.SIGKILL)
        out, error = demo.communicate(timeout=scaled(180))
    assert demo.returncode == 1, error
    report = json.loads(out)
    assert name in report["run"]["failure"] and report["run"]["condition"] != "GOOD", error
    assert f"no report   of {name}" in error
    check_nothing_is_left(rodeo, demo)


@pytest.mark.parametrize(
    "name",
    [
        "node-1",
        pytest.param("supervisor", marks=pytest.mark.slow),
        pytest.param("recorder", marks=pytest.mark.slow),
    ],
)
def test_a_chain_outlives_a_process_of_its_farm(rodeo, name):
    """The process is restarted, and the sum is right over both of its starts."""
    with rodeo.start(*SMALL, "--seconds", 5, "--json", "-") as demo:
        parts = all_parts(demo)
        wait_for_decisions(rodeo, demo)
        os.kill(parts[name], signal.SIGKILL)
        out, error = demo.communicate(timeout=scaled(120))
    assert demo.returncode == 0, error
    report = json.loads(out)
    assert report["farm"]["adds_up"] and report["farm"]["readout_died"] == report["farm"]["undecided"] == 0
    assert "each trigger is in one place" in error and f"no report   of {name}" in error
    assert re.search(r"triggers = \d+ accepted \+ \d+ rejected \+ \d+ debug \+ 0 readout_died \+ 0 undecided", error)
    check_nothing_is_left(rodeo, demo)


@pytest.mark.slow
def test_a_supervisor_that_dies_at_the_end_delays_nothing(rodeo):
    with rodeo.start(*SMALL, *IMPATIENT, "--seconds", 600, "--json", "-") as demo:
        parts = all_parts(demo)
        wait_for_decisions(rodeo, demo)
        os.kill(parts["supervisor"], signal.SIGSTOP)  # so that it does not end normally before the kill
        demo.send_signal(signal.SIGTERM)
        while b"the run ends in order" not in os.read(demo.stderr.fileno(), 1 << 16):
            pass
        os.kill(parts["supervisor"], signal.SIGKILL)
        out, error = demo.communicate(timeout=scaled(180))
    assert demo.returncode == 6, error
    report = json.loads(out)
    assert report["run"]["condition"] == "INCOMPLETE" and report["farm"]["adds_up"] is None
    assert "this cannot be checked without the reports of the card and of all supervisors" in error
    check_nothing_is_left(rodeo, demo)


def test_without_its_packages_a_chain_is_refused_and_names_the_command_that_installs_them(rodeo):
    called = without_packages(rodeo)
    for options in ((), ("--no-farm",), ("--no-page",), ("--json", "-")):
        done = rodeo(*SMALL, *options, exit_code=1)
        assert "error[control.package]" in done.stderr and "tools/setup run" in done.stderr and done.stdout == ""
    assert called.read_text().count("rodeo.control.cli.demo") == 4


def test_what_is_wrong_with_the_settings_of_a_chain_is_said_before_anything_starts(rodeo):
    for setting, said in (
        ("farm.node.slots=3", "events"),
        ("farm.recorder.sink=each", "sync"),
        ("readout.builder.chunk=40", "chunk_size"),
        ("router.nam=a", "name"),
    ):
        done = rodeo(*SMALL, "--set", setting, exit_code=3)
        assert "error[config.unknown_key]" in done.stderr and setting.split("=")[0] in done.stderr, said
