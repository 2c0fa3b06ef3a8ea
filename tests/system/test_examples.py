"""Every configuration in examples/ runs for a second and loses nothing, except intended losses."""

import contextlib
import json
import shutil
import time

import pytest
from conftest import BUILD, ROOT, scaled
from event_files import write_event_file
from running_emulator import emulated
from running_readout import adds_up

ALL = sorted((ROOT / "examples").glob("*.toml"))
EXAMPLES = [path for path in ALL if "[readout" in path.read_text()]
ROUTED = [path for path in ALL if "[router" in path.read_text()]
NETWORK = [path for path in EXAMPLES if 'type = "network"' in path.read_text()]
EMULATED = [path for path in ALL if "[[emulator.card]]" in path.read_text()]


def may_be_incomplete(text):
    """Allowed losses: injected faults make events incomplete; a looped recording stops in the middle of an event; no client clears kept fragments."""
    return "fault_" in text or "loop = true" in text or "hlt_request_handler" in text


@pytest.mark.parametrize("example", [path for path in EXAMPLES if path not in NETWORK], ids=lambda path: path.stem)
def test_an_example_runs(rodeo, example):
    text = example.read_text()
    if "plugins = " in text and not (BUILD / "plugins").is_dir():
        pytest.skip("this build has no plug-ins")
    if "recording.felix" in text:
        rodeo("data", "record", "recording.felix", "--links", 24, "--events", 3000)
    if "before._0001.data" in text:
        write_event_file(rodeo, "before._0001.data")
    shutil.copy(example, rodeo.directory)
    with emulated(rodeo, example.name) if "[[emulator.card]]" in text else contextlib.nullcontext():
        done = rodeo("readout", example.name, "--seconds", 1, "--json", "-")
    report = json.loads(done.stdout)
    assert report["run"]["condition"] in ({"INCOMPLETE", "GOOD"} if may_be_incomplete(text) else {"GOOD"}), done.stderr
    assert report["fragments"]["built"] > 0 and adds_up(report)
    if 'work = "verify' in text:
        unfinished = sum(
            one["counters"].get("unfinished_frames", 0) for one in report["consumers"].values()
        )  # a run cuts the last frame of each link
        assert report["verified"] == {"chunks": report["chunks"]["built"] - unfinished, "mismatches": 0}
    if report["files"]:
        rodeo("data", "verify", *report["files"])


def test_the_demo_is_its_example(rodeo):
    """The text is built in; this test runs it unchanged."""
    shutil.copy(ROOT / "examples" / "demo.toml", rodeo.directory)
    demo = json.loads(rodeo("demo", "--rate", "1kHz", "--links", 4, "--seconds", 0.3, "--json", "-").stdout)
    with emulated(
        rodeo,
        "demo.toml",
        "--set",
        "emulator.card[0].links=1",
        "--set",
        "emulator.card[0].elinks_per_link=4",
        "--set",
        "emulator.trigger.rate=1kHz",
    ):
        plain = json.loads(rodeo("readout", "demo.toml", "--seconds", 0.3, "--json", "-").stdout)
    assert demo["run"]["name"] == plain["run"]["name"]
    assert list(demo["consumers"]) == list(plain["consumers"]) and demo["links"] == plain["links"]


@pytest.mark.parametrize("example", EMULATED, ids=lambda path: path.stem)
def test_emulated_cards_of_an_example_are_there(rodeo, example):
    shutil.copy(example, rodeo.directory)
    report = json.loads(rodeo("emulate", example.name, "--seconds", 0.3, "--json", "-").stdout)
    assert report["functions"] and all(function["address"].startswith("0000:") for function in report["functions"])


@pytest.mark.parametrize(("router", "readout"), list(zip(ROUTED, NETWORK, strict=True)), ids=lambda path: path.stem)
def test_a_router_and_the_readout_behind_it_lose_nothing(rodeo, router, readout):
    for example in (router, readout):
        shutil.copy(example, rodeo.directory)
    card = emulated(rodeo, router.name) if "[[emulator.card]]" in router.read_text() else contextlib.nullcontext()
    with card, rodeo.start("route", router.name, "--seconds", 1, "--json", "-") as routed:
        built = json.loads(rodeo("readout", readout.name, "--json", "-").stdout)
        sent = json.loads(routed.communicate(timeout=scaled(30))[0])
    assert sent["run"]["condition"] == built["run"]["condition"] == "GOOD" and adds_up(built)
    assert (
        sent["chunks"]["sent"]
        == sent["chunks"]["published"]
        == built["chunks"]["built"]
        == built["verified"]["chunks"]
        > 0
    )


def test_every_example_is_run_by_something():
    assert set(ALL) == set(EXAMPLES) | set(EMULATED) | set(ROUTED)


def test_the_time_frames_of_the_cru_example_can_be_looked_at(rodeo):
    """The events are larger than the default limit of a sampler."""
    shutil.copy(ROOT / "examples" / "cru.toml", rodeo.directory)
    with emulated(rodeo, "cru.toml"), rodeo.start("readout", "cru.toml", "--seconds", 60) as readout:
        deadline = time.monotonic() + scaled(30)
        while rodeo("readout", "status", exit_code=None).returncode != 0 and time.monotonic() < deadline:
            time.sleep(0.05)
        shown = rodeo("events", "tail", "--events", 1, "--patience", "20s").stdout
        readout.terminate()
        readout.communicate(timeout=scaled(30))
    assert "12 chunks" in shown
