"""Requests to a running readout: status, links, stop, and refusals."""

import json
import signal

import pytest
from conftest import Rodeo
from running_readout import CONFIGURATION, adds_up, running, write_configuration
from sockets import written_to


def test_a_link_is_removed_and_taken_back_while_running(rodeo):
    with running(rodeo) as run:
        fid = run.links()[3]["fid"]
        run.ask("link", "remove", fid)
        run.wait_until(
            lambda status: status["chunks"]["lost"].get("link_removed", 0) > 100, "its chunks are counted as removed"
        )
        assert [link["state"] for link in run.links()].count("removed") == 1
        run.ask("link", "restore", fid)
        assert all(link["state"] == "active" for link in run.links())
        report, talk = run.finish()
    assert adds_up(report)
    assert f"link {fid} removed by hand" in talk and f"link {fid} restored by hand" in talk


def test_the_runtime_directory_of_whoever_runs_the_tests_is_left_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path / "of somebody else"))
    with running(Rodeo(tmp_path)) as run:
        assert run.status()["phase"] == "running"
        report, _ = run.finish()
    assert report["run"]["condition"] == "GOOD"
    assert not (tmp_path / "of somebody else").exists()


def test_what_a_readout_cannot_do_is_refused(rodeo):
    with running(rodeo) as run:
        fid = run.links()[0]["fid"]
        assert "already" in run.ask("link", "restore", fid, exit_code=5).stderr
        assert "no ROB" in run.ask("link", "remove", "0x1000000fff540000", exit_code=5).stderr
        run.ask("link", "remove", "nonsense", exit_code=2)


@pytest.mark.parametrize(
    "line",
    [b'{"command":"status","x":1e400}', b"[" * 30000 + b"]" * 30000, b"\xff\xfe", b'{"command":'],
    ids=["number", "brackets", "bytes", "cut"],
)
def test_whatever_is_written_to_the_control_socket_the_run_goes_on(rodeo, line):
    with running(rodeo) as run:
        answer = written_to(rodeo.directory, "test.control", line)
        assert answer["ok"] is False and answer["code"] == "config.bad_json"
        assert run.status()["phase"] == "running"
        report, _ = run.finish()
    assert report["run"]["condition"] == "GOOD" and adds_up(report)


def test_stop_ends_a_run_in_order(rodeo):
    with running(rodeo) as run:
        run.ask("stop")
        report, _ = run.finish(how=None)
    assert report["run"]["condition"] == "GOOD" and adds_up(report)


def test_the_only_readout_needs_no_name(rodeo):
    with running(rodeo):
        assert json.loads(rodeo("readout", "status", "-o", "json").stdout)["run"]["name"] == "test"


def test_a_killed_readout_is_not_taken_for_a_running_one(rodeo):
    with running(rodeo, text=CONFIGURATION.replace('name = "test"', 'name = "dead"'), name="dead") as run:
        run.process.kill()
        run.process.wait()
        sockets = sorted(path.name for path in rodeo.directory.rglob("dead.*"))
        assert "dead.control" in sockets and "dead.events" in sockets
        assert "no readout runs" in rodeo("readout", "status", exit_code=4).stderr
        assert "error[readout.no_sampler]" in rodeo("events", "tail", "--events", 1, exit_code=4).stderr
    assert not list(rodeo.directory.rglob("dead.control*"))
    with running(rodeo):
        assert json.loads(rodeo("readout", "status", "-o", "json").stdout)["run"]["name"] == "test"
        assert rodeo("events", "tail", "--events", 1, "-o", "json").stdout


def test_a_readout_that_is_stopped_by_a_signal_is_named(rodeo):
    with running(rodeo) as run:
        run.process.send_signal(signal.SIGSTOP)
        said = rodeo("readout", "status", "--name", "test", exit_code=4).stderr
        run.process.send_signal(signal.SIGCONT)
        assert (
            f"process {run.process.pid} is there, but a signal has stopped it" in said
            and f"kill -CONT {run.process.pid}" in said
        )
        run.finish()


def test_a_second_readout_of_the_same_name_is_refused(rodeo):
    with running(rodeo):
        done = rodeo(
            "readout",
            write_configuration(rodeo, name="second.toml"),
            "--set",
            "readout.consumer[2].directory=other",
            "--seconds",
            1,
            exit_code=5,
        )
    assert "error[process.name_taken]" in done.stderr


@pytest.mark.parametrize(
    "verb", [["status"], ["stop"], ["link", "list"], ["link", "remove", "0x1000000000540000"]], ids=" ".join
)
def test_nobody_running_is_unreachable(rodeo, verb):
    assert "error[process." in rodeo("readout", *verb, "--name", "nobody", exit_code=4).stderr
    rodeo("readout", *verb, exit_code=4)


def test_a_silent_link_is_removed_by_policy_and_taken_back(rodeo):
    text = CONFIGURATION + "\n[readout.link_policy]\nremove_after_events = 50\n"
    settings = ["readout.input.silent_link=2", "readout.input.silent_from=2000", "readout.input.silent_for=4000"]
    with running(rodeo, *settings, text=text) as run:
        run.wait_until(
            lambda status: any(link["removed_by_policy"] for rob in status["robs"] for link in rob["links"]),
            "the link is removed",
        )
        run.wait_until(
            lambda status: not any(link["removed_by_policy"] for rob in status["robs"] for link in rob["links"]),
            "the link is restored",
        )
        report, talk = run.finish()
    assert "removed by policy" in talk and "restored by policy" in talk
    assert report["run"]["condition"] == "INCOMPLETE" and adds_up(report)
