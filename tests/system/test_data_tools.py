"""merge, filter, diff, convert and plot: the verbs of `rodeo data` that make new files from event files."""

import json
import os
import re
import resource
import subprocess

import pytest
from conftest import BUILD, TIMEOUT_SCALE, scaled
from event_files import prove, read_event_file
from terminal import on_a_terminal, screen

NAME = "{}.00431493.physics_Main.daq.RAW._lb0012._sample._{:04}.data"

READOUT = """
[run]
number = 7
type = "test"
[readout]
name = "{name}"
[readout.input]
type = "generator"
links = {links}
rate = "50kHz"
events = {events}
{faults}
[readout.builder]
type = "gbt"
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "{rob}"
[[readout.consumer]]
type = "file_writer"
directory = "{name}"
full_queue = "wait"
"""


@pytest.fixture
def samples(tmp_path):
    subprocess.run([BUILD / "tests/storage/write_sample_files", tmp_path], check=True, timeout=scaled(30))
    return tmp_path


def readout(rodeo, name, rob, links=8, events=2000, faults=""):
    """The files of a readout of these triggers."""
    (rodeo.directory / f"{name}.toml").write_text(
        READOUT.format(name=name, rob=rob, links=links, events=events, faults=faults)
    )
    return json.loads(rodeo("readout", f"{name}.toml", "--json", "-").stdout)["files"]


def left(directory, name):
    return sorted(path.name for path in directory.iterdir() if path.name.startswith(name))


def test_two_readouts_become_one_file_of_full_events(rodeo):
    one, two = readout(rodeo, "one", "0x00610001"), readout(rodeo, "two", "0x00610002", links=4)
    report = json.loads(rodeo("data", "merge", *two, *one, "--output", "merged", "-o", "json").stdout)
    assert (report["events_in"], report["events_out"], report["complete_events"], report["adds_up"]) == (
        4000,
        2000,
        2000,
        True,
    )
    assert report["most_held_events"] <= 2000 and report["by"] == "global_id"
    (file,) = report["files"]
    merged = read_event_file(rodeo.directory / file["file"])
    assert all([rob.source_id for rob in event.robs] == [0x00610001, 0x00610002] for event in merged.events)
    assert prove(merged) == (2000 * 12, 0)
    verified = json.loads(rodeo("data", "verify", file["file"], "-o", "json").stdout)[0]
    assert verified["proven_chunks"] == 24000 and verified["robs"] == 4000
    assert "duplicate_events 0" in rodeo("data", "merge", *two, *one, "--output", "again").stdout
    assert "the same, 0 different" in rodeo("data", "diff", file["file"], "again._0001.data").stdout


PLAYED = """
[run]
type = "test"
[readout]
name = "played"
[readout.input]
type = "event_file"
timing = "fast"
file = "merged._0001.data"
{robs}
[readout.builder]
type = "gbt"
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x00610009"
[[readout.consumer]]
type = "processor"
work = "verify"
seed = {seed}
"""


def test_a_readout_plays_one_of_two_robs_whose_links_have_the_same_ids(rodeo):
    one, two = (
        readout(rodeo, "one", "0x00610001", events=100),
        readout(rodeo, "two", "0x00610002", links=4, events=100, faults="seed = 2"),
    )
    rodeo("data", "merge", *one, *two, "--output", "merged")
    (rodeo.directory / "both.toml").write_text(PLAYED.format(robs="", seed=1))
    for verb in (["check"], ["readout"]):
        said = rodeo(*verb, "both.toml", exit_code=3).stderr
        assert all(
            text in said
            for text in ("readout.link_of_two_robs", "0x00610001", "0x00610002", 'readout.input.robs = ["0x00610001"]')
        )
    for rob, links, seed in (("0x00610001", 8, 1), ("0x00610002", 4, 2)):
        (rodeo.directory / "one.toml").write_text(PLAYED.format(robs=f'robs = ["{rob}"]', seed=seed))
        rodeo("check", "one.toml")
        report = json.loads(rodeo("readout", "one.toml", "--json", "-").stdout)
        assert report["run"]["condition"] == "GOOD" and report["chunks"]["built"] == 100 * links


def test_what_only_one_readout_has_is_flagged(rodeo):
    one, two = readout(rodeo, "one", "0x00610001", events=300), readout(rodeo, "two", "0x00610002", events=200)
    report = json.loads(rodeo("data", "merge", *one, *two, "--output", "merged", "-o", "json").stdout)
    assert (report["complete_events"], report["incomplete_events"], report["missing_robs"]) == (200, 100, 100)
    assert "ROBs missing" in rodeo("data", "list", "merged._0001.data", "--all").stdout
    assert [event.status for event in read_event_file(rodeo.directory / "merged._0001.data").events][-1] == [
        0x00800000,
        1,
        0x00610002,
    ]
    assert len(read_event_file(rodeo.directory / "merged._0001.data").events) == 300


def test_memory_is_flat(rodeo):
    """Files larger than the memory limit of the merge."""
    files = readout(rodeo, "one", "0x00610001", links=96, events=20000) + readout(
        rodeo, "two", "0x00610002", links=96, events=20000
    )
    assert sum((rodeo.directory / file).stat().st_size for file in files) > 180e6
    limit = (
        None if TIMEOUT_SCALE > 1 else lambda: resource.setrlimit(resource.RLIMIT_DATA, (80 << 20, 80 << 20))
    )  # no limit with sanitizers, which need more memory
    report = json.loads(
        rodeo("data", "merge", *files, "--output", "merged", "-o", "json", "--window", 100, preexec_fn=limit).stdout
    )
    assert report["complete_events"] == 20000 and report["most_held_events"] <= 200


def test_filters_and_their_sums(rodeo, samples):
    name = NAME.format("faulty", 1)
    report = json.loads(rodeo("data", "filter", name, "--status", "good", "--output", "good", "-o", "json").stdout)
    events = read_event_file(samples / name).events
    good = [event for event in events if event.status[0] == 0]
    assert report["events_in"] == len(events) == report["kept"] + report["other_status"]
    assert [event.l1id for event in read_event_file(samples / "good._0001.data").events] == [
        event.l1id for event in good
    ]
    assert prove(read_event_file(samples / "good._0001.data"))[0] > 0
    report = json.loads(
        rodeo(
            "data",
            "filter",
            NAME.format("sound", 1),
            NAME.format("sound", 2),
            "--output",
            "split",
            "--max-events",
            2,
            "-o",
            "json",
        ).stdout
    )
    assert [file["events"] for file in report["files"]] == [2, 2, 2]
    rodeo("data", "filter", name, "--l1id", "7:", "--output", "x", exit_code=2)
    rodeo("data", "filter", name, "--status", "odd", "--output", "x", exit_code=2)
    assert "no event meets" in rodeo("data", "filter", name, "--stream", "debug_None", "--output", "none").stderr


def test_a_file_that_is_not_whole_is_refused_by_name(rodeo, samples):
    name = NAME.format("sound", 1)
    whole = (samples / name).read_bytes()
    for content, code in (
        (whole[:-7], "data.not_closed"),
        (b"", "data.empty"),
        (b"#!/bin/sh\n" * 30, "data.unknown_kind"),
    ):
        (samples / name).write_bytes(content)
        for verb in ("merge", "filter"):
            done = rodeo("data", verb, NAME.format("sound", 2), name, "--output", "new", exit_code=1)
            assert f"error[{code}]: {name}" in done.stderr and "Traceback" not in done.stderr
    (samples / name).write_bytes(whole[:3000] + bytes([whole[3000] ^ 1]) + whole[3001:])
    assert "data.damaged" in rodeo("data", "filter", name, "--output", "new", exit_code=1).stderr
    assert left(samples, "new") == []


def test_names_that_are_no_text_and_files_that_are_there(rodeo, samples):
    odd = os.fsencode(samples) + b"/\xff\xfe.data"
    os.link(samples / NAME.format("sound", 1), odd)
    done = subprocess.run(
        [BUILD / "rodeo", "data", "filter", odd, "--output", os.fsencode(samples) + b"/\xff"],
        capture_output=True,
        timeout=scaled(30),
    )
    assert done.returncode == 0, done.stderr
    again = subprocess.run(
        [BUILD / "rodeo", "data", "filter", odd, "--output", os.fsencode(samples) + b"/\xff"],
        capture_output=True,
        timeout=scaled(30),
    )
    assert again.returncode == 5 and b"file.exists" in again.stderr


def test_a_full_disk_leaves_nothing(rodeo, samples):
    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))

    done = rodeo("data", "filter", NAME.format("sound", 1), "--output", "new", exit_code=1, preexec_fn=small)
    assert "file.write" in done.stderr and left(samples, "new") == []


def test_diff_says_where(rodeo, samples):
    name = NAME.format("sound", 1)
    same = rodeo("data", "diff", name, name)
    assert "3 events the same, 0 different" in same.stdout
    changed = bytearray((samples / name).read_bytes())
    at = len(changed) - 40 - 60  # this place is in the last chunk
    changed[at] ^= 0x10
    (samples / "changed.data").write_bytes(changed)
    report = json.loads(rodeo("data", "diff", name, "changed.data", "-o", "json", exit_code=7).stdout)
    assert (report["same_events"], report["different_events"]) == (2, 1)
    (found,) = [one for one in report["differences"] if one["field"].startswith("chunk bytes")]
    assert found["offset_a_bytes"] == found["offset_b_bytes"] == at and found["where"].startswith(
        "ROB 0x006b0007, link id"
    )


def test_a_readout_plays_what_another_has_written(rodeo):
    (before,) = readout(rodeo, "before", "0x00610001", events=1000, faults="fault_missing = 0.001")
    text = (
        (rodeo.directory / "before.toml")
        .read_text()
        .replace("before", "again")
        .replace('type = "generator"', f'type = "event_file"\nfile = "{before}"')
    )
    lines = [line for line in text.splitlines() if not line.startswith(("links", "events", "fault", "rate"))]
    (rodeo.directory / "again.toml").write_text("\n".join(lines))
    for timing in ("timing=fast", "timing=recorded", "rate=100kHz"):
        report = json.loads(
            rodeo(
                "readout", "again.toml", "--set", f"readout.input.{timing}", "--set", "run.number=0", "--json", "-"
            ).stdout
        )
        (after,) = report["files"]
        compared = json.loads(
            rodeo("data", "diff", before, after, "--ignore-times", "--all", "-o", "json", exit_code=7).stdout
        )
        assert {(one["where"], one["field"]) for one in compared["differences"] if one["where"] != "file"} <= {
            ("event", "run number"),
            ("event", "run type"),
            ("ROB 0x00610001", "ROD run number"),
        }  # the run type of the generator is simulation
        assert (
            compared["events_a"] == compared["events_b"] == 1000 and compared["only_in_a"] == compared["only_in_b"] == 0
        )
    looped = json.loads(
        rodeo(
            "readout",
            "again.toml",
            "--set",
            "readout.input.loop=true",
            "--set",
            "readout.input.timing=fast",
            "--set",
            "run.number=0",
            "--seconds",
            0.5,
            "--json",
            "-",
        ).stdout
    )
    assert looped["fragments"]["built"] > 1000 and looped["run"]["condition"] in ("GOOD", "INCOMPLETE")


def test_verify_shows_no_progress_of_short_work_and_takes_threads(rodeo, samples):
    names = [NAME.format("sound", number) for number in (1, 2, 3)]
    one = rodeo("data", "verify", *names, "--threads", 1)
    assert one.stderr == "" and one.stdout == rodeo("data", "verify", *names, "--threads", 5).stdout
    rodeo("data", "verify", names[0], "--threads", 0, exit_code=2)


def test_long_work_says_how_far_it_is(rodeo):
    """A slow generator: the recording cannot be complete before the first progress line is due."""
    text = on_a_terminal(rodeo, "data", "record", "slow.felix", "--links", 12, "--events", 1800, "--set", "rate=1kHz")
    assert re.search(r"recording slow.felix: \d+(\.\d+)? ?.?B, .*B/s", text)
    assert not any("recording slow.felix:" in line for line in screen(text)), "the line is erased from the screen"


@pytest.mark.slow
def test_a_hundred_thousand_files(rodeo, samples):
    """More names than a command line can have, given by a pattern."""
    many = samples / "many"
    many.mkdir()
    for number in range(100_000):
        os.symlink(samples / NAME.format("sound", 3), many / f"a_name_of_some_length_{number:06}.data")
    report = rodeo("data", "verify", "many/*.data", timeout=120).stdout
    assert report.endswith("100000 of 100 000 files sound\n") and report.count(": sound\n") == 100_000
    assert "data.same_file" in rodeo("data", "merge", "many/*.data", "--output", "new", exit_code=2, timeout=120).stderr
    assert "data.no_files" in rodeo("data", "merge", "many/*.other", "--output", "new", exit_code=1).stderr
