"""The demo, end to end, with small numbers: its output, and the promises of its report."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import httpx
import pytest
from conftest import scaled, without_packages


@pytest.fixture
def demo(rodeo):
    """Runs a small demo and returns its report and the finished process."""

    def run(*arguments, exit_code=0):
        done = rodeo(
            "demo", "--rate", "2kHz", "--links", 8, "--seconds", 1, "--json", "-", *arguments, exit_code=exit_code
        )
        return json.loads(done.stdout), done

    return run


def test_a_demo_builds_writes_and_verifies(demo):
    report, done = demo()
    assert report["run"]["condition"] == "GOOD"
    assert report["links"] == 8
    assert report["fragments"]["built"] > 0 and report["fragments"]["incomplete"] == 0
    assert report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}
    assert report["files_verified"]["events"] > 0 and report["files_verified"]["mismatches"] == 0
    assert report["files"] and report["bytes"]["written"] > 0
    assert "verified" in done.stderr


def test_acceptance_1_one_command_gives_emulator_readout_and_page(rodeo):
    """The demo ends with the sum that the page has shown live, and leaves no processes or files."""
    with rodeo.start("demo", "--rate", "1kHz", "--links", 4, "--seconds", 4) as demo:
        address = next(line.split("page: ")[1].strip() for line in demo.stderr if "page: " in line)
        with httpx.Client(base_url=address.split("/?")[0], follow_redirects=True, timeout=scaled(60)) as browser:
            assert "<title>" in browser.get(address).text
            document = browser.get("/api/state").json()
            while not (document["numbers"]["events"] or 0) > 0:
                document = browser.get("/api/state", params={"after": document["sequence"], "wait": 10}).json()
            assert {each["kind"]: each["phase"] for each in document["processes"]} == {
                "emulator": "running",
                "readout": "running",
            }
        _, error = demo.communicate(timeout=scaled(90))
    assert demo.returncode == 0, error
    assert "GOOD" in error and "verified" in error, error
    with pytest.raises(httpx.TransportError):
        httpx.get(address, timeout=scaled(60))


def test_a_demo_outlives_who_reads_what_it_says(rodeo):
    """`rodeo demo 2>&1 | tee log`: Ctrl-C goes to both processes."""
    with rodeo.start("demo", "--rate", "1kHz", "--links", 4, "--seconds", 60) as demo:
        address = next(line.split("page: ")[1].strip() for line in demo.stderr if "page: " in line)
        with httpx.Client(base_url=address.split("/?")[0], follow_redirects=True, timeout=scaled(60)) as browser:
            browser.get(address)
            while not (browser.get("/api/state").json()["numbers"]["events"] or 0) > 0:
                time.sleep(0.1)
        demo.stdout.close()
        demo.stderr.close()
        demo.send_signal(signal.SIGTERM)  # the command passes the signal on
        assert demo.wait(timeout=scaled(90)) == 0, "the demo has read the files back, and every byte is right"


def test_a_chain_without_a_farm_ends_in_the_readout(demo):
    report, done = demo("--chain", "--no-farm")
    assert report["run"]["condition"] == "GOOD" and "farm" not in report
    assert report["chunks"]["sent"] == report["chunks"]["built"] == 8 * report["fragments"]["built"] > 0
    assert report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}
    assert report["files_verified"]["events"] > 0 and report["files_verified"]["mismatches"] == 0
    assert {"emulator", "router", "readout"} <= set(report["cpu_seconds"]) and report["cpu_seconds"]["router"] > 0
    assert "router -> network" in done.stderr


def test_a_demo_needs_no_python(demo, rodeo):
    called = without_packages(rodeo)
    report, _ = demo()
    assert report["run"]["condition"] == "GOOD" and report["files_verified"]["events"] > 0
    done = rodeo("demo", "--rate", "2kHz", "--links", 8, "--seconds", 1, "--no-page")
    assert "GOOD" in done.stderr and "every byte verified" in done.stderr
    assert not called.exists(), "no Python was started"
    done = rodeo("demo", "--rate", "2kHz", "--links", 8, "--seconds", 1)
    assert "tools/setup run" in done.stderr and "continuing without the control room" in done.stderr
    assert "GOOD" in done.stderr and "rodeo.control.cli.demo" in called.read_text()


def test_every_way_to_run_a_demo_has_the_same_keys(demo):
    """The readout in this process, and the same in a control room, behind a router."""
    alone, chain = demo()[0], demo("--chain", "--no-farm")[0]
    for key in ("run", "chunks", "fragments", "bytes", "latency_us", "verified", "loss", "files_verified"):
        assert list(alone[key]) == list(chain[key])
    assert set(alone) == set(chain)


def test_every_chunk_sent_is_built_or_counted(demo):
    report, _ = demo()
    assert report["chunks"]["sent"] == report["chunks"]["built"] + sum(report["chunks"]["lost"].values())
    assert report["chunks"]["sent"] == 8 * report["fragments"]["built"]


def test_dead_time_is_what_was_offered_and_not_accepted(demo):
    report, _ = demo()
    offered, accepted = report["offered_rate_hz"], report["trigger_rate_hz"]
    assert report["dead_time_fraction"] == pytest.approx((offered - accepted) / offered, abs=1e-9)


def test_a_demo_that_verifies_nothing_does_not_pass(demo):
    report, done = demo("--set", "readout.consumer[2].fraction=0", exit_code=7)
    assert report["files_verified"]["events"] == 0
    assert "no written event could be verified" in done.stderr


def emulator_of(demo):
    """Waits for the emulated card's process and returns its pid."""
    deadline = time.monotonic() + scaled(20)
    while time.monotonic() < deadline:
        children = Path(f"/proc/{demo.pid}/task/{demo.pid}/children").read_text().split()
        if children:
            return int(children[0])
        time.sleep(0.01)
    raise AssertionError("the demo has no emulator")


def test_an_emulator_that_stands_still_over_the_end_of_a_run_loses_nothing(rodeo):
    with rodeo.start("demo", "--rate", "20kHz", "--links", 24, "--seconds", 1.5, "--json", "-") as demo:
        emulator = emulator_of(demo)
        time.sleep(0.7)
        deadline = time.monotonic() + scaled(60)
        out = None
        while out is None and time.monotonic() < deadline:
            try:
                os.kill(emulator, signal.SIGSTOP)
                time.sleep(0.25)
                os.kill(emulator, signal.SIGCONT)
            except ProcessLookupError:
                pass
            try:
                out, err = demo.communicate(timeout=0.07)
            except subprocess.TimeoutExpired:
                continue
        assert out is not None, "the demo did not end"
    report = json.loads(out)
    assert demo.returncode == 0 and report["run"]["condition"] == "GOOD", err
    assert report["chunks"]["sent"] == report["chunks"]["built"] == 24 * report["fragments"]["built"] > 0, err
    assert report["fragments"]["incomplete"] == 0 and report["chunks"]["lost"] == {}
    assert "cut_off" not in json.dumps(report["input"])
    assert report["offered_rate_hz"] == pytest.approx(20e3, rel=0.02)


def test_a_rate_that_no_trigger_has_is_refused_at_once(rodeo):
    done = rodeo("demo", "--rate", "1e12Hz", exit_code=2)
    assert "--rate 1 THz" in done.stderr and "at most 1 GHz" in done.stderr
    (rodeo.directory / "fast.toml").write_text(
        '[[emulator.card]]\ntype = "felix"\n[emulator.trigger]\nrate = "1e12Hz"\n'
    )
    assert "error[config.out_of_range]" in rodeo("check", "fast.toml", exit_code=3).stderr


def test_the_next_demo_removes_the_files_of_the_last(demo):
    first, _ = demo()
    second, _ = demo()
    assert not any(Path(file).exists() for file in first["files"])
    assert all(Path(file).exists() for file in second["files"])


def test_kept_files_survive_the_next_demo(demo):
    kept, _ = demo("--keep")
    demo()
    assert kept["files"] and all(Path(file).exists() for file in kept["files"])


def test_the_report_goes_to_a_file_too(demo, rodeo):
    rodeo("demo", "--rate", "1kHz", "--links", 2, "--seconds", 0.5, "--json", "report.json")
    assert json.loads((rodeo.directory / "report.json").read_text())["links"] == 2


def test_a_demo_without_links_is_refused(rodeo):
    done = rodeo("demo", "--links", 0, exit_code=2)
    assert "error[" in done.stderr and "links" in done.stderr


def test_two_demos_at_once_do_not_disturb_each_other(demo, rodeo):
    with rodeo.start("demo", "--rate", "1kHz", "--links", 4, "--seconds", 3, "--json", "-") as first:
        second, _ = demo()
        out, err = first.communicate(timeout=scaled(60))
        assert first.returncode == 0, err
    report = json.loads(out)
    assert report["run"]["condition"] == second["run"]["condition"] == "GOOD"
    assert all(Path(file).exists() for file in report["files"] + second["files"])


def test_what_a_demo_cannot_do_is_said_before_anything_starts(rodeo):
    for seconds in ("nan", "inf", "0", "-1"):
        rodeo("demo", "--seconds", seconds, exit_code=2)
    assert "bench build" in rodeo("demo", "--rate", "0", exit_code=2).stderr
    assert "only the chain has a farm" in rodeo("demo", "--no-farm", exit_code=2).stderr
    said = rodeo("demo", "--seconds", 1, "--set", "emulator.card[0].lnks=3", exit_code=3).stderr
    assert "error[config.unknown_key]" in said and "links" in said
    assert list(rodeo.directory.glob("*.emulator")) == []
