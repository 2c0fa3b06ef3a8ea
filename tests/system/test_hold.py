"""What a run control needs from processes: readouts that wait for their run, triggers that wait for a release, and identities of processes."""

import contextlib
import json
import os
import shutil
import signal
import time

import pytest
from conftest import ROOT, scaled
from running_emulator import emulated, emulator_report
from sockets import written_to

SYSTEMS = ROOT / "examples" / "systems"

GENERATOR = """
[run]
type = "test"
[readout]
name = "held"
[readout.input]
type = "generator"
links = 2
rate = "500Hz"
[readout.builder]
type = "gbt"
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "processor"
work = "verify"
[[readout.consumer]]
type = "file_writer"
name = "writer"
directory = "files"
"""


def until(condition, what):
    deadline = time.monotonic() + scaled(60)
    while not (value := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(0.02)
    return value


def asked(rodeo, socket, command="status", **request):
    """The answer of the process at this socket; None without a process. It uses the socket directly, because tests call it often."""
    try:
        return written_to(rodeo.directory, socket, json.dumps({"command": command, **request}).encode())
    except (OSError, ValueError):
        return None


class Held:
    """A readout launched with --hold that is ready."""

    def __init__(self, rodeo, process, name):
        self.rodeo, self.process, self.name = rodeo, process, name
        until(lambda: self.phase() == "ready", f"{name} is not ready")

    def ask(self, *arguments, exit_code=0):
        return self.rodeo("readout", *arguments, "--name", self.name, exit_code=exit_code)

    def status(self):
        assert self.process.poll() is None, f"{self.name} has ended: {self.process.communicate()}"
        answer = asked(self.rodeo, f"{self.name}.control")
        return answer and answer["reply"]

    def phase(self):
        status = self.status()
        return status and status["process"]["phase"]

    def start(self, run, *arguments):
        self.ask("start", "--run", run, *arguments)
        until(lambda: self.phase() == "running", f"{self.name} does not run")

    def built(self, most=1):
        until(
            lambda: self.status()["fragments"]["built"] >= most, lambda: f"{self.name} builds nothing: {self.status()}"
        )

    def stop(self):
        """Ends the readout and returns its report and its stderr."""
        self.ask("stop")
        out, err = self.process.communicate(timeout=scaled(60))
        assert self.process.returncode == 0, err
        return json.loads(out) if out else None, err


@contextlib.contextmanager
def held(rodeo, configuration, name, *settings):
    sets = [argument for one in settings for argument in ("--set", one)]
    process = rodeo.start("readout", configuration, "--hold", "--json", "-", *sets)
    try:
        yield Held(rodeo, process, name)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=scaled(60))


def hold(rodeo, name):
    """The number of accepted triggers, when no more come."""
    answer = asked(rodeo, f"{name}.emulator", "trigger_hold")
    assert answer["reply"]["held"] is True
    return answer["reply"]["accepted"]


def data_files(rodeo):
    return sorted(path.name for path in rodeo.directory.rglob("*.data"))


def test_one_emulator_serves_run_after_run(rodeo):
    """The numbers continue, also after a readout was killed. Each run begins and ends with the trigger."""
    configuration, name, directory = (
        SYSTEMS / "one_card" / "readout.toml",
        "one-card",
        f"readout.consumer[file_writer].directory={rodeo.directory / 'files'}",
    )
    with emulated(rodeo, SYSTEMS / "one_card" / "emulator.toml", "--hold"):
        before = 0
        for run, killed in ((12, False), (13, True), (14, False)):
            with held(rodeo, configuration, name, directory) as readout:
                assert emulator_report(rodeo)["trigger"]["held"] is True
                readout.start(run, "--type", "cosmics")
                assert emulator_report(rodeo)["trigger"]["accepted"] == before, "nothing is offered before the release"
                rodeo("emulate", "release")
                readout.built(100)
                if killed:
                    readout.process.kill()
                    readout.process.wait()
                    before = hold(rodeo, name)
                    continue
                accepted = hold(rodeo, name)
                assert hold(rodeo, name) == accepted
                report, said = readout.stop()
            assert report["run"]["number"] == run and report["run"]["condition"] == "GOOD", said
            assert report["fragments"]["built"] == accepted - before and report["chunks"]["built"] == 8 * (
                accepted - before
            )
            assert report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}
            (file,) = report["files"]
            assert f"{run:08d}" in file
            (event,) = json.loads(rodeo("data", "dump", file, "--event", 1, "-o", "json").stdout)
            fields = {field["name"]: field["meaning"] for field in event["fields"]}
            assert (fields["run number"], fields["run type"]) == (str(run), "cosmics")
            before = accepted
        trigger = emulator_report(rodeo)["trigger"]
        assert trigger["dead_time_fraction"] == 0 and trigger["offered"] == trigger["accepted"] == before, (
            "held time is not dead time"
        )
        assert "triggers are held" in rodeo("emulate", "status").stdout


@pytest.mark.parametrize("how", ["request", "signal"])
def test_a_held_readout_that_is_not_wanted_leaves_nothing(rodeo, how):
    (rodeo.directory / "run.toml").write_text(GENERATOR)
    with held(rodeo, "run.toml", "held") as readout:
        assert readout.status()["run"]["number"] == 0 and readout.status()["phase"] == "ready"
        if how == "request":
            report, said = readout.stop()
        else:
            readout.process.send_signal(signal.SIGTERM)
            report, said = readout.process.communicate(timeout=scaled(60))
            assert readout.process.returncode == 0, said
        assert not report and "no run was started" in said
    assert not [path for path in (rodeo.directory / "files").iterdir()]


def test_a_start_that_is_refused_leaves_a_readout_ready(rodeo):
    (rodeo.directory / "run.toml").write_text(GENERATOR)
    with held(rodeo, "run.toml", "held") as readout:
        readout.start(7)
        readout.built()
        assert readout.ask("start", "--run", 8, exit_code=5).stderr.startswith("error[process.not_ready]")
        readout.stop()
    with held(rodeo, "run.toml", "held") as readout:
        for request, code in (
            ({"run": 8}, "process.other_configuration"),
            ({"run": 8, "configuration_sha256": "0" * 64}, "process.other_configuration"),
        ):
            assert asked(rodeo, "held.control", "start", **request)["code"] == code
        assert "holiday" in readout.ask("start", "--run", 8, "--type", "holiday", exit_code=2).stderr
        assert "run 7" in readout.ask("start", "--run", 7, exit_code=1).stderr, "its files are there"
        assert readout.phase() == "ready"
        readout.start(8)
        readout.built()
        report, said = readout.stop()
    assert report["run"]["condition"] == "GOOD" and report["run"]["number"] == 8, said
    assert len(data_files(rodeo)) == 2


def test_what_a_follower_gets_is_held_where_it_is_assigned(rodeo):
    """Two emulators with one trigger, each with a readout. In each run both have the same triggers."""
    system = SYSTEMS / "two_cards"
    with contextlib.ExitStack() as processes:
        for name in ("authority", "follower"):
            process = processes.enter_context(rodeo.start("emulate", system / f"{name}.toml", "--hold"))
            processes.callback(process.terminate)
            until(lambda name=name: status_of(rodeo, name), f"{name} does not answer")
        until(lambda: status_of(rodeo, "follower")["trigger"]["link"]["connected"], "the follower does not follow")
        assert status_of(rodeo, "follower")["trigger"]["held"] is None, "a follower does not know it"
        refused = rodeo("emulate", "release", "--name", "follower", exit_code=5).stderr
        assert refused.startswith("error[emulator.follows]") and "`authority`" in refused
        before = 0
        for run in (1, 2):
            with contextlib.ExitStack() as both:
                readouts = [
                    both.enter_context(
                        held(rodeo, system / "readout.toml", f"readout-{number}", *settings_of(rodeo, number))
                    )
                    for number in (1, 2)
                ]
                readouts[0].start(run)
                rodeo("emulate", "release", "--name", "authority")
                assert status_of(rodeo, "authority")["trigger"]["wait_for"] == 2
                assert status_of(rodeo, "authority")["trigger"]["accepted"] == before, "it waits for both"
                readouts[1].start(run)
                for readout in readouts:
                    readout.built(100)
                accepted = hold(rodeo, "authority")
                reports = [readout.stop()[0] for readout in readouts]
            for report in reports:
                assert report["run"]["condition"] == "GOOD" and report["fragments"]["built"] == accepted - before, (
                    report
                )
            before = accepted
        with held(rodeo, system / "readout.toml", "readout-1", *settings_of(rodeo, 1)) as alone:
            alone.start(3)
            rodeo("emulate", "release", "--name", "authority", "--wait-for", 1)
            alone.built(10)
            hold(rodeo, "authority")
            assert alone.stop()[0]["run"]["condition"] == "GOOD"


def status_of(rodeo, name):
    answer = asked(rodeo, f"{name}.emulator")
    return answer and answer["reply"]


def settings_of(rodeo, number):
    return (
        f"readout.name=readout-{number}",
        f"readout.input.cards=0000:42:0{number - 1}.0",
        f"readout.input.connector={number - 1}",
        f"readout.rob[0].source_id=0x0061000{number}",
        f"readout.consumer[file_writer].directory={rodeo.directory / 'files'}",
    )


def test_a_router_lives_on_and_the_next_readout_misses_nothing(rodeo):
    """A readout of the network reports running when the publishers know it: it gets all later data."""
    system = SYSTEMS / "chain"
    with emulated(rodeo, system / "emulator.toml", "--hold"), rodeo.start("route", system / "router.toml") as router:
        until(lambda: asked(rodeo, "chain.router"), "the router does not answer")
        before = 0
        for run in (1, 2):
            with held(
                rodeo,
                system / "readout.toml",
                "chain",
                f"readout.consumer[file_writer].directory={rodeo.directory / 'files'}",
            ) as readout:
                readout.start(run)
                assert readout.status()["input_ready"] is True
                rodeo("emulate", "release")
                readout.built(100)
                accepted = hold(rodeo, "chain")
                readout.built(accepted - before)
                report, said = readout.stop()
            assert report["run"]["condition"] == "GOOD" and report["fragments"]["built"] == accepted - before, said
            before = accepted
        chunks = asked(rodeo, "chain.router")["reply"]["chunks"]
        assert chunks["no_subscriber"] == chunks["not_taken"] == 0 and chunks["published"] == 8 * before
        router.terminate()
        router.communicate(timeout=scaled(60))


def test_a_process_says_who_it_is(rodeo):
    (rodeo.directory / "run.toml").write_text(GENERATOR)
    setting = "readout.input.rate=200Hz"
    checked = json.loads(rodeo("check", "run.toml", "--set", setting, "-o", "json").stdout)[0]["configuration_sha256"]
    assert checked != json.loads(rodeo("check", "run.toml", "-o", "json").stdout)[0]["configuration_sha256"]
    with held(rodeo, "run.toml", "held", setting) as readout:
        said = readout.status()["process"]
        assert (said["kind"], said["name"], said["pid"], said["configuration_sha256"]) == (
            "readout",
            "held",
            readout.process.pid,
            checked,
        )
        assert (
            abs(said["started_ns"] * 1e-9 - time.time()) < 3600
            and json.loads(rodeo("version", "-o", "json").stdout)["revision"] in said["build"]
        )
    with emulated(rodeo, SYSTEMS / "one_card" / "emulator.toml") as emulator:
        said = emulator_report(rodeo)["process"]
        assert (said["kind"], said["name"], said["pid"], said["phase"]) == (
            "emulator",
            "one-card",
            emulator.pid,
            "ready",
        )
    (rodeo.directory / "router.toml").write_text(
        '[router]\nname = "r"\nbus = "bus"\n[router.input]\ntype = "generator"\nlinks = 2\nrate = "100Hz"\n'
    )
    with rodeo.start("route", "router.toml") as router:
        said = until(lambda: asked(rodeo, "r.router"), "the router does not answer")["reply"]["process"]
        assert (said["kind"], said["name"], said["pid"], said["phase"]) == ("router", "r", router.pid, "running")
        router.terminate()
        router.communicate(timeout=scaled(60))


@pytest.mark.parametrize(
    ("noun", "module"), [("control", "rodeo.control.cli.verbs"), ("runs", "rodeo.control.cli.runs_verbs")]
)
def test_control_and_runs_become_python(rodeo, noun, module):
    """The control command replaces itself by the process: it gets each signal once, and its exit status is the command's."""
    interpreter = rodeo.directory / "python"
    interpreter.write_text('#!/bin/sh\necho "$$ $*"\nexit 6\n')
    interpreter.chmod(0o755)
    rodeo.environment["RODEO_PYTHON"] = str(interpreter)
    with rodeo.start(noun, "verb", "--help", "--", "-x", "--set=a b") as process:
        said, _ = process.communicate(timeout=scaled(60))
    assert process.returncode == 6
    assert said == f"{process.pid} -B -m rodeo.program {module} verb --help -- -x --set=a b\n"
    rodeo.environment["RODEO_PYTHON"] = os.fspath(rodeo.directory / "nowhere")
    assert "cannot run" in rodeo(noun, exit_code=1).stderr


@pytest.mark.parametrize("example", sorted(SYSTEMS.rglob("*.toml")), ids=lambda path: str(path.relative_to(SYSTEMS)))
def test_an_example_of_a_system_is_valid(rodeo, example):
    shutil.copytree(SYSTEMS, rodeo.directory / "systems")
    secret = rodeo.directory / "systems" / "many_hosts" / "secret"
    secret.write_text("secret of the triggers")
    secret.chmod(0o600)
    rodeo("check", rodeo.directory / "systems" / example.relative_to(SYSTEMS))
