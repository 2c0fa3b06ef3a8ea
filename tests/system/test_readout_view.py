"""What a person sees of a run: the live view, `readout status`, and the verdict."""

import json
import re

import pytest
from running_readout import CONFIGURATION, running, write_configuration
from terminal import on_a_terminal, screen

LOSSY = ["--set", "readout.input.fault_late=0.01", "--set", "readout.input.fault_missing=0.02", "--set", "readout.input.fault_duplicate=0.01"]


def test_a_limit_of_loss_decides_the_exit_status_and_the_verdict(rodeo):
    file = write_configuration(rodeo)
    run = ["readout", file, "--set", "readout.input.events=2000", *LOSSY, "--json", "-"]

    def report(number, *arguments, exit_code):
        done = rodeo(*run, "--set", f"run.number={number}", *arguments, exit_code=exit_code)
        return json.loads(done.stdout)["loss"], done.stderr

    loss, said = report(1, exit_code=0)
    assert not loss["exceeded"] and loss["allowed"] == 1 and 0.01 < loss["fraction"] < 0.5
    assert re.search(r"verdict .*chunks lost of 1[56]\d\d\d .*fragments incomplete of 2000 .*--fail-on-loss sets a limit", said)
    loss, said = report(2, "--fail-on-loss", exit_code=6)
    assert loss["exceeded"] and loss["allowed"] == 0 and "TOO MUCH IS LOST" in said
    report(3, "--fail-on-loss=0.9", exit_code=0)
    report(4, "--set", "readout.fail_on_loss=0.001", exit_code=6)
    report(5, "--set", "readout.fail_on_loss=0.001", "--fail-on-loss=1", exit_code=0)
    assert "nothing was lost" in rodeo("readout", file, "--set", "run.number=6", "--events", 100, "--fail-on-loss").stderr


@pytest.mark.parametrize("value", ["2", "-0.1", "some"])
def test_a_fraction_that_is_none_is_refused(rodeo, value):
    assert "--fail-on-loss" in rodeo("readout", write_configuration(rodeo), f"--fail-on-loss={value}", exit_code=2).stderr
