"""A real farm as the load of a network: on loopback and through the laboratory's switch; and other programs in its place."""

import json
import os
import shutil
import sys

import pytest
from conftest import BUILD, scaled

if not list((BUILD / "python" / "rodeo").glob("_network*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )
sys.path.insert(0, str(BUILD / "python"))
from rodeo.network import farm_load  # noqa: E402

needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("tc") is None, reason="host: network namespaces and eBPF need root and iproute2"
)

SMALL = {
    "readouts": "2",
    "nodes": "2",
    "event_size": "100000",
    "rate": "40",
    "arrivals": "periodic",
    "assignment": "round-robin",
    "seed": "1",
    "events_in_flight": "4",
    "request_credits": "0",
}
LAB = (
    "net",
    "lab",
    "--readouts",
    2,
    "--nodes",
    2,
    "--node-link",
    "25Mbps",
    "--uplink",
    "50Mbps",
    "--event-size",
    "100kB",
    "--rate",
    30,
    "--events-in-flight",
    4,
    "--duration",
    "1s",
)


@pytest.mark.parametrize("credits, waits", [(0, False), (1, True)])
def test_on_loopback_whole_events_are_built_and_every_one_is_in_the_sum(rodeo, monkeypatch, credits, waits):
    monkeypatch.setattr(farm_load, "PATIENCE", scaled(60))
    found = farm_load.run_here({**SMALL, "request_credits": str(credits)}, 0.3, str(rodeo.binary))
    events = found["events"]
    assert events["adds_up"] and events["in"] == events["rejected"] > 0 and events["partial"] == 0
    assert found["event_bytes"] == 2 * farm_load.fragment_bytes(100000, 2) == pytest.approx(100000, rel=0.01)
    assert (
        0 < found["latency_p50_us"] <= found["latency_p99_us"]
        and found["latency_p50_us"] <= 1.05 * found["building_p99_us"]
    )
    assert (found["waits_for_credit"] > 0) == waits


def test_a_farm_that_cannot_start_says_which_of_its_programs_ended_and_leaves_nothing(rodeo, monkeypatch, tmp_path):
    monkeypatch.setattr(farm_load.tempfile, "tempdir", str(tmp_path))
    with pytest.raises(farm_load.LoadFailed, match=r"(trigger|readout\d) ended with 3.*rate"):
        farm_load.run_here({**SMALL, "rate": "-1"}, 0.3, str(rodeo.binary))
    assert list(tmp_path.iterdir()) == []


@needs_namespaces
@pytest.mark.slow
def test_credits_keep_the_farm_within_a_buffer_that_it_overruns_without(rodeo):
    """Without credits the switch holds a whole event of each node; with credits, a fragment of each. 40 kB are enough for the fragments."""
    reports = {}
    for credits in (0, 1):
        done = rodeo(
            *LAB,
            "--load",
            "farm",
            "--buffer",
            "shared:120kB",
            "--request-credits",
            credits,
            "--json",
            "-",
            timeout=scaled(200),
        )
        reports[credits] = json.loads(done.stdout)
    for credits, report in reports.items():
        (run,) = report["runs"]
        assert report["load"] == "farm" and report["request_credits"] == credits
        assert run["events_completed"] > 0 and run["load"]["events_completed"] == run["events_completed"]
        assert 0 < run["max_buffer_bytes"] <= 120_000
    assert reports[1]["drops"] == 0 and reports[1]["max_buffer_bytes"] < reports[0]["max_buffer_bytes"]


PROGRAM = """#!{python}
import json, sys
for line in sys.stdin:
    said = json.loads(line)
    print(json.dumps({answer}), flush=True)
"""
MEASURED = (
    '{"seconds": said.get("seconds", 0), "rate_hz": len(said["settings"]["rate"]) if "settings" in said else 3.0, "events_requested": 5, "events_completed": 3, '
    '"latency_p50_us": 1.0, "latency_p99_us": 2.0, "mine": said["do"]}'
)


def program(rodeo, answer):
    path = rodeo.directory / "load.py"
    path.write_text(PROGRAM.replace("{python}", sys.executable).replace("{answer}", answer))
    path.chmod(0o755)
    return path


@needs_namespaces
def test_a_load_of_ones_own_is_started_measured_and_stopped(rodeo):
    report = json.loads(rodeo(*LAB, "--load", program(rodeo, MEASURED), "--json", "-").stdout)
    (run,) = report["runs"]
    assert (run["rate_hz"], run["events_completed"], run["latency_p99_us"], run["drops"]) == (3.0, 3, 2.0, 0)
    assert run["load"]["mine"] == "measure" and run["seconds"] == 1


@needs_namespaces
def test_what_goes_wrong_in_a_load_is_said(rodeo):
    done = rodeo(*LAB, "--load", program(rodeo, '{"error": "there is no sun", "code": "network.load"}'), exit_code=1)
    assert "error[network.load]" in done.stderr and "there is no sun" in done.stderr
    assert "--load and --hosts" in rodeo("net", "lab", "--load", "farm", "--hosts", "hosts.txt", exit_code=2).stderr


def test_sweeps_by_several_methods_stand_beside_each_other(rodeo):
    network = """
[network.topology]
readouts = 4
nodes = 4
uplink = "100Gbps"
[network.traffic]
rate = "1kHz"
[network.simulation]
duration = "20ms"
[network.executor]
workers = 1
[network.sweep]
[[network.sweep.axis]]
key = "event_size"
values = ["1MB", "2MB"]
"""
    (rodeo.directory / "sweep.toml").write_text(network)
    for method in ("formula", "simulation"):
        rodeo("net", "sweep", "sweep.toml", "--set", f"network.sweep.method={method}", "--out", method)
    done = rodeo("net", "plot", "formula", "--beside", "simulation", "--out", "both.png")
    head, *rows = [line.split() for line in done.stdout.splitlines()[:-1]]
    assert head == ["event_size", "formula", "simulation"] and [float(row[0]) for row in rows] == [1e6, 2e6]
    for _, formula, simulation in rows:
        assert float(simulation) == pytest.approx(float(formula), rel=0.1)
    assert (rodeo.directory / "both.png").stat().st_size > 1000
    assert "there are no results" in rodeo("net", "plot", "formula", "--beside", "nowhere", exit_code=2).stderr
