"""Two readouts of one run, without trigger list or authority. The link of one of them starts late, or is silent for half a period of its ids up to twenty
periods. The farm puts chunks of two triggers into one event only with a flag."""

import random
import signal
import struct

import pytest
from conftest import TIMEOUT_SCALE
from event_files import MASK64, mix, read_event_file
from test_farm import Farm
from test_silent_recordings import WRONG_ID

pytestmark = pytest.mark.slow

READOUT = """
[run]
number = 7
type = "test"
[readout]
name = "{name}"
[readout.input]
type = "generator"
links = {links}
rate = "4kHz"
chunk_bytes = 40
seed = 1
l1id_bits = 8
events = {events}
{silence}
[readout.builder]
type = "gbt"
[readout.extractor]
type = "rodeo"
l1id_bits = 8
bcid_offset = {bcid_offset}
[[readout.rob]]
source_id = "{rob}"
[[readout.consumer]]
type = "hlt_request_handler"
name = "hlt"
rate = "4kHz"
retention = "2s"
linger = "5s"
"""

ALL = """
[farm.node.selection]
type = "fraction"
fraction = 1.0
"""


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_readouts_give_a_trigger_one_identity_or_flag_it(rodeo, seed):
    draw = random.Random(seed)
    begin, silence = draw.randrange(2000, 3000), draw.randrange(128, 5120)
    silence += silence % 256 == 0  # a silence of whole periods looks like a pause of the trigger
    mixed, flagged, sound, report = run_of_two(rodeo, draw, begin, silence)
    assert mixed == 0 and sound > begin, (seed, silence, mixed, flagged, sound)
    assert report["fragments"]["incomplete_by_reason"].get("doubtful_id", 0) > 1000, report["fragments"]


@pytest.mark.skipif(TIMEOUT_SCALE != 1, reason="sanitizers slow the farm, which then misses no round of 256 ids")
def test_a_readout_that_starts_late_with_short_ids_ends_by_name(rodeo):
    mixed, flagged, sound, report = run_of_two(
        rodeo, random.Random(1), begin=0, silence=300, more=20_000, exit_codes=(1,)
    )
    assert mixed == 0, (mixed, flagged, sound)
    assert "readout.joined_unplaced" in report["run"]["failure"], report["run"]


def run_of_two(rodeo, draw, begin, silence, more=2000, exit_codes=(0,)):
    """Returns the numbers of events that mix triggers without a flag, of flagged and of sound events, and the report of the readout with the silent link."""
    events = begin + silence + more
    triggers = {}  # the number at the begin of a chunk's payload -> its trigger
    for link in range(3):
        for event in range(events):
            triggers[mix(1 + (link << 32 | event) * 0xD1342543DE82EF95 & MASK64) + 40 & MASK64] = event
    with Farm(rodeo) as farm:
        farm.configure(selection=ALL)
        silent = f"silent_link = 0\nsilent_from = {begin}\nsilent_for = {silence}"
        for name, rob, links, silence_of in (("one", "0x00510001", 3, ""), ("two", "0x00520001", 1, silent)):
            text = READOUT.format(
                name=name, rob=rob, links=links, events=events, silence=silence_of, bcid_offset=draw.choice((-1, 4))
            )
            (rodeo.directory / f"{name}.toml").write_text(text)
        config = rodeo.directory / "farm.toml"
        config.write_text(config.read_text().replace('payload = "provable seed=1 crc=0"\n', ""))
        farm.start_recorder()
        farm.start_supervisor()
        farm.start_node("node")
        farm.start_readouts()
        reports = [farm.finish("two", exit_codes=exit_codes), farm.finish("one")]
        farm.finish("supervisor", signal.SIGINT)
        farm.finish("node")
        farm.finish("recorder", signal.SIGINT)
    mixed = flagged = sound = 0
    for path in (rodeo.directory / "files").glob("*.data"):
        for event in read_event_file(path).events:
            chunks = [chunk for rob in event.robs for chunk in rob.rod.chunks]
            found = {triggers[struct.unpack_from("<Q", chunk.data, 8)[0]] for chunk in chunks}
            if any(rob.rod.status[0] & WRONG_ID for rob in event.robs) or any(chunk.rodeo_status for chunk in chunks):
                flagged += 1
            elif len(found) > 1:
                mixed += 1
            else:
                sound += 1
    return mixed, flagged, sound, reports[0]
