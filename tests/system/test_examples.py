"""Every configuration in examples/ runs for a second, and loses nothing that it does not mean to lose."""

import json
import shutil

import pytest
from conftest import ROOT
from running_readout import adds_up

EXAMPLES = sorted((ROOT / "examples").glob("*.toml"))
# What an example needs besides itself, and how it is meant to end.
MEANT_TO_BE_INCOMPLETE = {"ttc-aligned"}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(rodeo, example):
    if "recording.felix" in example.read_text():
        rodeo("data", "record", "recording.felix", "--links", 24, "--events", 3000)
    shutil.copy(example, rodeo.directory)
    done = rodeo("readout", example.name, "--seconds", 1, "--json", "-")
    report = json.loads(done.stdout)
    assert report["run"]["condition"] == ("INCOMPLETE" if example.stem in MEANT_TO_BE_INCOMPLETE else "GOOD"), done.stderr
    assert report["fragments"]["built"] > 0 and adds_up(report)
    assert report["verified"]["mismatches"] == 0 and report["verified"]["chunks"] == report["chunks"]["built"]
    rodeo("data", "verify", *report["files"])


def test_the_demo_is_its_example(rodeo):
    """The text itself is built in; here: that it is run as it stands."""
    shutil.copy(ROOT / "examples" / "demo.toml", rodeo.directory)
    demo = json.loads(rodeo("demo", "--rate", "1kHz", "--links", 4, "--seconds", 0.3, "--json", "-").stdout)
    plain = json.loads(rodeo("readout", "demo.toml", "--set", "readout.input.links=4", "--set", "readout.input.rate=1kHz", "--seconds", 0.3, "--json", "-").stdout)
    assert demo["run"]["name"] == plain["run"]["name"]
    assert list(demo["consumers"]) == list(plain["consumers"]) and demo["links"] == plain["links"]
