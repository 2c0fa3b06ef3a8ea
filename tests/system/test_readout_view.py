"""The views of a run for users: the live view, `readout status`, and the verdict."""

import json
import re

import pytest
from conftest import scaled
from running_readout import CONFIGURATION, running, write_configuration
from terminal import on_a_terminal, screen

LOSSY = [
    "--set",
    "readout.input.fault_late=0.01",
    "--set",
    "readout.input.fault_missing=0.02",
    "--set",
    "readout.input.fault_duplicate=0.01",
]


@pytest.mark.parametrize("columns", [60, 80, 100, 120])
def test_the_view_fits_the_terminal_cuts_no_number_and_leaves_only_the_report(rodeo, columns):
    file = write_configuration(rodeo)
    text = on_a_terminal(rodeo, "readout", file, "--seconds", 2.5, *LOSSY, columns=columns)
    frames = [part.split("rodeo test", 1)[1] for part in text.split("\x1b[J") if "rodeo test" in part]
    assert frames, text
    for frame in frames:
        block = re.sub(r"\x1b\[\d+F.*", "", frame, flags=re.DOTALL)
        assert all(len(line) <= columns for line in block.splitlines())
        flat = re.sub(r"\s+", " ", block)
        assert re.search(r"lost \d[\d.]* ?k? \(\w+ [\d.]+", flat), block
        assert re.search(r"events_written [\d.]+( k)?( |$)", flat), block
    last = "\n".join(screen(text))
    assert "limited by:" not in last and "Ctrl-C ends it" not in last
    assert "limited by  " in last and "verdict " in last


def test_a_line_of_the_log_stands_above_the_view_whole(rodeo):
    # The view warns of a link with jumping numbers during the run.
    text = on_a_terminal(
        rodeo,
        "readout",
        write_configuration(rodeo),
        "--seconds",
        3,
        "--set",
        "readout.input.jump_link=2",
        "--set",
        "readout.input.jump_from=500",
        columns=100,
    )
    last = screen(text)
    assert sum("warning link 0x1000000000020000" in line for line in last) == 1, text
    assert not any("running 0:0" in line for line in last), "\n".join(last)


def test_a_run_says_at_once_what_it_is_going_to_do(rodeo):
    assert rodeo("readout", write_configuration(rodeo), "--seconds", 0.2).stderr.startswith(
        "run 7 of test: getting ready\n"
    )


def test_runs_number_themselves(rodeo):
    file = write_configuration(rodeo, CONFIGURATION.replace("number = 7\n", ""))
    for number in (1, 2, 3):
        done = rodeo("readout", file, "--seconds", 0.2, "--json", "-")
        report = json.loads(done.stdout)
        assert report["run"]["number"] == number and f"rodeo.{number:08}." in report["files"][0]
        assert f"run {number} of test, the next free number: getting ready" in done.stderr
    refused = rodeo("readout", file, "--set", "run.number=2", "--seconds", 0.2, exit_code=1).stderr
    assert "run 2 has files here already" in refused and "--set run.number=0" in refused and "`directory`" in refused


def test_a_run_of_no_events_is_refused(rodeo):
    assert "--events 0" in rodeo("readout", write_configuration(rodeo), "--events", 0, exit_code=2).stderr


def test_a_limit_of_loss_decides_the_exit_status_and_the_verdict(rodeo):
    file = write_configuration(rodeo)
    run = ["readout", file, "--set", "readout.input.events=2000", *LOSSY, "--json", "-"]

    def report(number, *arguments, exit_code):
        done = rodeo(*run, "--set", f"run.number={number}", *arguments, exit_code=exit_code)
        return json.loads(done.stdout)["loss"], done.stderr

    loss, said = report(1, exit_code=0)
    assert not loss["exceeded"] and loss["allowed"] == 1 and 0.01 < loss["fraction"] < 0.5
    assert re.search(
        r"verdict .*chunks lost of 1[56]\d\d\d .*fragments incomplete of 2000 .*--fail-on-loss sets a limit", said
    )
    loss, said = report(2, "--fail-on-loss", exit_code=6)
    assert loss["exceeded"] and loss["allowed"] == 0 and "TOO MUCH IS LOST" in said
    report(3, "--fail-on-loss=0.9", exit_code=0)
    report(4, "--set", "readout.fail_on_loss=0.001", exit_code=6)
    report(5, "--set", "readout.fail_on_loss=0.001", "--fail-on-loss=1", exit_code=0)
    assert (
        "nothing was lost" in rodeo("readout", file, "--set", "run.number=6", "--events", 100, "--fail-on-loss").stderr
    )


@pytest.mark.parametrize("value", ["2", "-0.1", "some"])
def test_a_fraction_that_is_none_is_refused(rodeo, value):
    assert (
        "--fail-on-loss" in rodeo("readout", write_configuration(rodeo), f"--fail-on-loss={value}", exit_code=2).stderr
    )


def test_status_names_condition_losses_and_bad_links(rodeo):
    with running(rodeo, "readout.input.fault_late=0.01", "readout.input.silent_link=3") as run:
        run.wait_until(
            lambda status: status["chunks"]["lost"].get("late") and status["fragments"]["missing_links"],
            "something is lost",
        )
        said = run.ask("status").stdout
        assert re.search(r"^condition +INCOMPLETE$", said, re.MULTILINE)
        assert re.search(r"^chunks lost +late \d+", said, re.MULTILINE)
        assert re.search(r"^bad links +0x1000000000030000 missing \d+, bad 0", said, re.MULTILINE), said
        csv = run.ask("status", "-o", "csv").stdout.splitlines()
        assert len(csv) == 2 and "bad_links" in csv[0]
        run.finish()


def test_status_can_be_watched_until_the_run_is_over(rodeo):
    with (
        running(rodeo, "readout.input.rate=1kHz") as run,
        rodeo.start("readout", "status", "--watch", "-o", "json", "--name", "test") as watch,
    ):
        looks = [json.loads(watch.stdout.readline()) for _ in range(2)]
        run.finish()
        error = watch.communicate(timeout=scaled(60))[1]
    assert looks[1]["run"]["seconds"] > looks[0]["run"]["seconds"]
    assert watch.returncode == 0 and "the run is over" in error
