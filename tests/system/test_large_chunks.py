"""Chunks larger than a network page, from router to file: they are complete, verified on the way and in the file, and the balance has all bytes."""

import json

import pytest
from running_emulator import emulated
from running_readout import adds_up
from running_router import READOUT, all_is_verified, route_adds_up, router, sides
from test_card_input import chunks_sent, read, system

PAGE = 65536

ROUTER = """
[router]
name = "felix"
bus = "bus"
wait_for_subscribers = true

[router.input]
type = "generator"
links = 4
rate = "200Hz"
page_bytes = "{page}MiB"
format = "{mode}"
sizes = "uniform"
size_min = {least}
size_max = {most}
chunk_bytes = {least}
events = {events}
{groups}
"""

BUILDER = {
    "gbt": 'type = "gbt"\ntimeout = "2s"\nwindow = 256\nbuffers = 64\nchunk_size = {most}',
    "full": 'type = "full"\ntimeout = "2s"',
}
ROB = {"gbt": "", "full": "links_per_group = 2\n"}

FILES = """
[[readout.consumer]]
type = "file_writer"
directory = "data"
min_free = 0
"""


def run(rodeo, sides, mode, least, most, events, *settings):
    """A run with chunks of all sizes between two limits. Returns the reports of router and readout."""
    page = max(1, (4 * most + (1 << 20) - 1) >> 20)
    text = ROUTER.format(
        mode=mode, least=least, most=most, events=events, page=page, groups="groups = 2" if mode == "full" else ""
    )
    routed = router(sides, text=text)
    built = READOUT.replace('type = "gbt"\ntimeout = "200ms"', BUILDER[mode].format(most=most))
    built = built.replace('source_id = "0x00610001"\n', 'source_id = "0x00610001"\n' + ROB[mode]) + FILES
    report, _ = sides("readout", "net", built, *settings).finish(how=None, exit_code=None)
    sent, said = routed.finish(how=None)
    assert route_adds_up(sent), said
    return sent, report


def prove(rodeo, report):
    """The number of chunks in the run's files that are proven byte by byte."""
    verified = json.loads(rodeo("data", "verify", *report["files"], "-o", "json").stdout)
    return sum(one["proven_chunks"] for one in (verified if isinstance(verified, list) else [verified]))


@pytest.mark.parametrize("mode", ["gbt", "full"])
@pytest.mark.parametrize(
    "least, most, events",
    [
        (PAGE - 100, PAGE + 20, 40),
        pytest.param(2 * PAGE - 150, 2 * PAGE + 20, 200, marks=pytest.mark.slow),
        pytest.param(1000, 1100, 400, marks=pytest.mark.slow),
        pytest.param((1 << 20) - 40, 1 << 20, 20, marks=pytest.mark.slow),
    ],
)
def test_chunks_around_a_limit_are_whole_from_router_to_file(rodeo, sides, mode, least, most, events):
    sent, report = run(rodeo, sides, mode, least, most, events)
    all_is_verified(report)
    chunks = events * (4 if mode == "gbt" else 2)
    assert report["chunks"]["built"] == chunks and chunks * least <= report["bytes"]["in"] <= chunks * most
    assert sent["bytes"]["in"] == sent["bytes"]["published"] == report["bytes"]["in"] == report["bytes"]["built"]
    assert prove(rodeo, report) == chunks


@pytest.mark.parametrize("mode", ["gbt", "full"])
def test_chunks_beyond_max_chunk_are_flagged_never_proven_and_their_bytes_counted(rodeo, sides, mode):
    sent, report = run(rodeo, sides, mode, 100_000, 100_000, 30, "readout.input.max_chunk=90000")
    chunks = 30 * (4 if mode == "gbt" else 2)
    assert report["run"]["condition"] == "INCOMPLETE" and adds_up(report)
    assert report["chunks"]["built"] == chunks and report["fragments"]["incomplete"] == report["fragments"]["built"]
    assert report["bytes"]["lost"] == {"cut": chunks * 10_000} and sent["bytes"]["published"] == report["bytes"]["in"]
    assert report["verified"] == {"chunks": 0, "mismatches": 0}
    assert prove(rodeo, report) == 0


REPLAY = """
[readout]
name = "replay"
control = false
[readout.input]
type = "file"
file = "chunks.felix"
max_chunk = "{limit}B"
[readout.builder]
type = "gbt"
timeout = "2s"
chunk_size = {size}
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x00610001"
"""

REPLAYED = """
[router]
name = "felix"
bus = "bus"
wait_for_subscribers = true
[router.input]
type = "file"
file = "chunks.felix"
max_chunk = "{limit}B"
"""


def record(rodeo, size):
    rodeo(
        "data",
        "record",
        rodeo.directory / "chunks.felix",
        "--links",
        "4",
        "--events",
        "50",
        "--set",
        f"chunk_bytes={size}",
    )
    return 4 * 50


def are_cut_by_one(report, chunks, size):
    assert report["run"]["condition"] == "INCOMPLETE" and adds_up(report)
    assert (
        report["chunks"]["sent"]
        == report["chunks"]["built"]
        == report["input"]["oversize"]
        == report["input"]["cut_bytes"]
        == chunks
        > 0
    )
    assert report["bytes"]["in"] == chunks * size
    assert report["bytes"]["built"] == chunks * (size - 1) and report["bytes"]["lost"] == {"cut": chunks}


@pytest.mark.parametrize(
    "size, limit",
    [
        (3000, 2999),  # chunks come in pieces
        pytest.param(500, 499, marks=pytest.mark.slow),  # chunks are whole in a block
        pytest.param(3000, 3000, marks=pytest.mark.slow),
    ],
)
def test_bytes_that_max_chunk_of_a_recording_cuts_off_are_in_the_balance(rodeo, size, limit):
    chunks = record(rodeo, size)
    (rodeo.directory / "replay.toml").write_text(REPLAY.format(limit=limit, size=size))
    report = json.loads(rodeo("readout", "replay.toml", "--json", "-").stdout)
    if limit < size:
        are_cut_by_one(report, chunks, size)
    else:
        assert (
            report["run"]["condition"] == "GOOD" and report["bytes"]["in"] == report["bytes"]["built"] == chunks * size
        )


@pytest.mark.slow
def test_bytes_that_a_routers_max_chunk_cuts_off_are_in_its_balance(rodeo, sides):
    chunks = record(rodeo, 3000)
    routed = router(sides, text=REPLAYED.format(limit=2999))
    report, _ = sides("readout", "net", READOUT).finish(how=None, exit_code=None)
    sent, said = routed.finish(how=None)
    assert route_adds_up(sent) and sent["run"]["condition"] == "INCOMPLETE", said
    assert sent["bytes"]["in"] == chunks * 3000 and sent["bytes"]["cut"] == sent["input"]["oversize"] == chunks
    assert sent["bytes"]["published"] == report["bytes"]["in"] == chunks * 2999 and adds_up(report)


@pytest.mark.slow
@pytest.mark.parametrize("size", [500, 3000])
def test_bytes_that_max_chunk_of_a_card_cuts_off_are_in_the_balance(rodeo, size):
    configuration = system(rodeo, builder=f"chunk_size = {size}", input=f'max_chunk = "{size - 1}B"')
    text = (
        (rodeo.directory / configuration)
        .read_text()
        .replace("elinks_per_link = 4", f"elinks_per_link = 4\nchunk_size = {size}")
    )
    (rodeo.directory / configuration).write_text(text)
    with emulated(rodeo, configuration):
        report, _ = read(rodeo, configuration, seconds=0.5)
        are_cut_by_one(report, chunks_sent(rodeo), size)
