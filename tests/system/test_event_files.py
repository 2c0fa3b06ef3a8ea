"""Event files, read by an independent reader that shares no code with the C++, and the verbs of `rodeo data` on sound and damaged files."""

import csv
import io
import json
import os
import subprocess

import pytest
from conftest import BUILD, scaled
from event_files import Broken, prove, read_event_file

NAME = "{}.00431493.physics_Main.daq.RAW._lb0012._sample._{:04}.data"


@pytest.fixture
def samples(tmp_path):
    subprocess.run([BUILD / "tests/storage/write_sample_files", tmp_path], check=True, timeout=scaled(30))
    return tmp_path


def adler32_of(rodeo, path):
    return json.loads(rodeo("data", "info", path, "-o", "json").stdout)[0]["adler32"]


def test_a_sequence_of_files_is_what_the_documents_say(samples):
    files = [read_event_file(samples / NAME.format("sound", number)) for number in (1, 2, 3)]
    assert [len(file.events) for file in files] == [3, 3, 2]
    assert [event.number for file in files for event in file.events] == list(range(1, 9))
    assert [file.end["blocks_in_sequence"] for file in files] == [3, 6, 8]
    assert [file.end["last"] for file in files] == [0, 0, 1]
    for number, file in enumerate(files, 1):
        assert file.file_number == number
        assert file.limits == (3, 0)
        assert file.application == "sample"
        assert file.core_name + f"._{number:04}.data" == NAME.format("sound", number)
        assert file.run == [431493, 8, 1, 3, 0x10, 0x20, 0x30, 0x40, 0, 0]
        assert file.strings[0].startswith("GUID=")
        assert file.string("Site") == "test bench"
        assert file.strings[-3:] == ["Stream=physics_Main", "Project=sound", "LumiBlock=12"]
    assert len({file.string("GUID") for file in files}) == 3
    assert [prove(file) for file in files] == [(15, 0), (15, 0), (10, 0)]


CONFIGURATION = """
[run]
number = 431493
type = "test"
[readout]
name = "{name}"
[readout.input]
type = "generator"
links = 12
rate = "20kHz"
events = 3000
seed = {seed}
crc = true
ecr_triggers = 700
{faults}
[readout.builder]
type = "gbt"
[readout.extractor]
type = "rodeo"
[readout.checker]
type = "crc32"
[[readout.rob]]
source_id = "0x006b0007"
[[readout.consumer]]
type = "file_writer"
name = "file_writer"
directory = "."
max_file_events = 2000
full_queue = "wait"
"""

FAULTS = "\n".join(
    f"fault_{kind} = 0.002" for kind in ("missing", "duplicate", "late", "corrupt", "l1id", "truncated", "bcid")
)


@pytest.mark.parametrize("name, faults", [("good", ""), ("bad", FAULTS)])
def test_what_a_readout_writes_is_what_the_links_sent(rodeo, name, faults):
    (rodeo.directory / "run.toml").write_text(CONFIGURATION.format(name=name, faults=faults, seed=len(name)))
    done = rodeo("readout", "run.toml", "--json", "report.json", exit_code=None)
    assert done.returncode == 0, done.stderr
    report = json.loads((rodeo.directory / "report.json").read_text())
    files = [read_event_file(rodeo.directory / path) for path in sorted(report["files"])]
    assert [len(file.events) for file in files] == [2000, report["fragments"]["built"] - 2000]
    counts = [prove(file) for file in files]
    events = [event for file in files for event in file.events]
    chunks = sum(len(event.robs[0].rod.chunks) for event in events)
    assert chunks == report["chunks"]["built"] == sum(map(sum, counts))
    assert sum(bool(event.robs[0].status[0]) for event in events) == report["fragments"]["incomplete"]
    assert bool(faults) == (sum(flagged for _, flagged in counts) > 0) == (report["fragments"]["incomplete"] > 0)
    for event in events:
        rod = event.robs[0].rod
        assert (rod.l1id >> 24, rod.l1id & 0xFFFFFF) == divmod(event.number - 1, 700)
        missing = rod.status[1] if len(rod.status) > 1 else 0
        assert missing + len(rod.chunks) == 12
        assert not {chunk.link_id for chunk in rod.chunks} & set(rod.status[2 : 2 + missing])
        assert len(rod.status) == (2 + missing + 2 if missing else 1) and (
            not missing or bin(rod.status[2 + missing]).count("1") == missing
        )
    verified = json.loads(rodeo("data", "verify", *report["files"], "-o", "json").stdout)
    assert [(one["sound"], one["proven_chunks"], one["flagged_chunks"]) for one in verified] == [
        (True, *count) for count in counts
    ]


def test_event_fields_arrive(samples):
    event = read_event_file(samples / NAME.format("sound", 2)).events[1]
    rod = event.robs[0].rod
    assert (event.number, event.l1id, event.global_id) == (5, 0x01000005, (1 << 32) + 5)
    assert (event.run_type, event.run_number, event.lumi_block) == (1, 431493, 12)
    assert event.stream_tags == '<Tag name="Main" type="physics" lumi="1"/>'
    assert (rod.minor, rod.event_type, rod.run_number, rod.l1id) == (5, 9, 431493, 0x01000005)
    assert event.robs[0].source_id == rod.source_id == 0x006B0007
    assert (rod.bcid, rod.trigger_type) == (event.bcid, event.trigger_type)


def test_faults_are_flagged_as_the_documents_say(samples):
    file = read_event_file(samples / NAME.format("faulty", 1))
    rods = [event.robs[0].rod for event in file.events]
    assert rods[1].status == [0x4, 1, 0x00540003, 0b01000, 0]
    assert (
        rods[4].status == [0x24, 5] + [0x00540000 + link for link in range(5)] + [0b11111, 0] and rods[4].chunks == []
    )
    assert rods[5].status == [0xC, 1, 0x00540003, 0b01000, 0] and rods[5].chunks[1].rodeo_status == 0x2
    assert (rods[6].chunks[2].rodeo_status, rods[6].chunks[2].felix_status, len(rods[6].chunks[2].data)) == (
        0x1,
        0x1,
        17,
    )
    assert len(rods[2].chunks[4].data) == 70000
    assert all(rod.position == 1 for rod in rods)
    assert all(event.robs[0].checksum_type == 2 for event in file.events)
    assert prove(file) == (31, 2)


def test_a_compressed_payload_holds_the_same_events(samples):
    file = read_event_file(samples / NAME.format("compressed", 1))
    assert all(event.compression == 1 for event in file.events)
    assert prove(file) == (40, 0)


def test_both_readers_find_damage(samples, rodeo):
    path = samples / NAME.format("faulty", 1)
    sound = path.read_bytes()
    for at in range(100, len(sound), 997):
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 0x20]) + sound[at + 1 :])
        with pytest.raises((Broken, ValueError)):
            prove(read_event_file(path))
        assert rodeo("data", "verify", path, exit_code=7).stdout.count("DAMAGED") == 1


def test_verify_counts_what_the_other_reader_counts(samples, rodeo):
    names = [NAME.format("sound", 1), NAME.format("faulty", 1), NAME.format("compressed", 1)]
    reports = json.loads(rodeo("data", "verify", *names, "-o", "json").stdout)
    for name, report in zip(names, reports):
        proven, flagged = prove(read_event_file(samples / name))
        assert (report["sound"], report["proven_chunks"], report["chunks"]) == (True, proven, proven + flagged)
        assert report["findings"] == [] and report["unprotected"] == []
    assert reports[1]["incomplete_robs"] == 3 and reports[1]["missing_links"] == 7


def test_list_and_info_name_every_event_and_file(samples, rodeo):
    files = [NAME.format("sound", number) for number in (1, 2, 3)]
    rows = list(csv.DictReader(io.StringIO(rodeo("data", "list", *files, "-o", "csv").stdout)))
    extended = [(str(n), "", str(n // 5 << 24 | n)) for n in range(1, 9)]  # the files do not describe their ids
    assert [(row["event"], row["ecr"], row["l1id"]) for row in rows] == extended
    infos = list(csv.DictReader(io.StringIO(rodeo("data", "info", *files, "-o", "csv").stdout)))
    assert [info["events"] for info in infos] == ["3", "3", "2"]
    assert all(info["crc32"] == "holds" for info in infos)


def test_list_calls_no_damaged_event_ok(samples, rodeo):
    """A flipped bit in the data, in the L1 id, or in the nanoseconds (only the header check covers these); and a file without checksums."""
    path = samples / NAME.format("sound", 1)
    sound = path.read_bytes()
    second = sound.index(bytes.fromhex("aa3412aa"), sound.index(bytes.fromhex("aa3412aa")) + 4)
    for offset, status in (
        (300, ["ok", "damaged", "ok"]),
        (60, ["ok", "damaged", "ok"]),
        (36, ["ok", "header not proven", "ok"]),
        (None, ["ok"] * 3),
    ):
        content = bytearray(sound)
        if offset is not None:
            content[second + offset] ^= 1
        path.write_bytes(content)
        done = rodeo("data", "list", path, "-o", "json")
        assert [event["status"] for event in json.loads(done.stdout)] == status
        assert ("the checks of the headers show which" in done.stderr) == (offset is not None)
        assert rodeo("data", "list", path).stdout.count("damaged: event 2") == ("damaged" in status)
    foreign = sound.replace(b"Rodeo-", b"Other-")
    path.write_bytes(foreign)
    assert {event["status"] for event in json.loads(rodeo("data", "list", path, "-o", "json").stdout)} == {"ok"}


def test_info_says_of_the_end_record_what_is_known(samples, rodeo):
    path = samples / NAME.format("sound", 1)
    sound = path.read_bytes()
    second = sound.index(bytes.fromhex("cccc3412"), sound.index(bytes.fromhex("cccc3412")) + 4)
    for content, closed, events, said in (
        (sound, True, 3, "yes"),
        (sound[:-40], False, 3, "no: the end record is missing"),
        (sound[:second] + b"x" + sound[second + 1 :], None, 1, f"not known: byte {second}: separator marker"),
        (sound[:-50], None, 2, "not known: byte"),
    ):
        path.write_bytes(content)
        (info,) = json.loads(rodeo("data", "info", path, "-o", "json").stdout)
        assert (info["closed"], info["events"]) == (closed, events)
        assert said in rodeo("data", "info", path).stdout


def test_dump_shows_one_event_for_people_and_programs(samples, rodeo):
    file = NAME.format("faulty", 1)
    text = rodeo("data", "dump", file, "--event", "7").stdout
    assert "NSW Micromegas" in text and "truncated, FELIX: truncated by firmware" in text
    (event,) = json.loads(rodeo("data", "dump", file, "--l1id", "0x01000006", "-o", "json").stdout)
    words = {field["name"]: field["value"] for field in event["fields"]}
    assert words["extended L1 id"] == 0x01000006
    chunks = [chunk for chunk in event["children"][0]["children"][0]["children"] if chunk["kind"] == "chunk"]
    expected = read_event_file(samples / file).events[5].robs[0].rod.chunks
    assert [bytes.fromhex(chunk["bytes"]) for chunk in chunks] == [chunk.data for chunk in expected]
    rodeo("data", "dump", file, "--event", "99", exit_code=1)


def test_recover_saves_a_file_that_was_never_closed(samples, rodeo):
    path = samples / NAME.format("faulty", 1)
    expected = read_event_file(path).events
    cut = samples / "killed._0001.writing"
    cut.write_bytes(path.read_bytes()[:-500])
    rodeo("data", "verify", cut.name, exit_code=7)
    (row,) = json.loads(rodeo("data", "recover", cut.name, "-o", "json").stdout)
    saved = read_event_file(samples / row["saved_to"])
    assert (row["events_saved"], row["events_missing"]) == (7, 1) and saved.events == expected[:7]
    assert adler32_of(rodeo, row["saved_to"]) == row["adler32"]
    rodeo("data", "verify", row["saved_to"])
    assert "nothing to recover" in rodeo("data", "recover", row["saved_to"]).stderr


def test_recover_marks_headers_that_nothing_proves(samples, rodeo):
    """The lumi block of an event (word 14) contradicts its neighbours. The low word of its global id (word 10) contradicts nothing: only the header
    check reveals it."""
    path = samples / NAME.format("sound", 1)
    sound, events = path.read_bytes(), len(read_event_file(path).events)
    second = sound.index(bytes.fromhex("aa3412aa"), sound.index(bytes.fromhex("aa3412aa")) + 4)
    for word, marked in ((14, 1), (10, 1)):
        at = second + 4 * word
        path.write_bytes(sound[:at] + bytes([sound[at] ^ 4]) + sound[at + 1 :])
        (row,) = json.loads(rodeo("data", "recover", path, "-o", "json").stdout)
        assert (row["events_saved"], row["events_marked"], row["damaged_places"]) == (events, marked, 0)
        (verified,) = json.loads(rodeo("data", "verify", row["saved_to"], "-o", "json").stdout)
        (info,) = json.loads(rodeo("data", "info", row["saved_to"], "-o", "json").stdout)
        assert verified["sound"] and verified["unproven_headers"] == info["unproven_headers"] == marked
        listed = json.loads(rodeo("data", "list", row["saved_to"], "-o", "json").stdout)
        assert [event["status"] != "ok" for event in listed] == [False, True] + [False] * (events - 2)
        assert (
            f"{marked} event{'s' if marked > 1 else ''} saved from a damaged file"
            in rodeo("data", "verify", row["saved_to"]).stdout
        )
        os.remove(row["saved_to"])


@pytest.mark.parametrize("verb", ["info", "list", "dump", "recover", "verify"])
def test_a_pipe_is_refused_without_waiting_for_its_writer(rodeo, verb):
    os.mkfifo(rodeo.directory / "pipe")
    assert "error[file.not_regular]" in rodeo("data", verb, "pipe", exit_code=2, timeout=20).stderr


def test_where_there_is_nothing_to_recover_nobody_says_so(rodeo):
    (rodeo.directory / "file.writing").write_bytes(bytes(5000))
    done = rodeo("data", "verify", "file.writing", exit_code=7)
    assert "DAMAGED" in done.stdout and "there is nothing to recover" in done.stderr and "saves" not in done.stderr
    assert "it contains no event marker" in rodeo("data", "recover", "file.writing", exit_code=1).stderr


@pytest.mark.parametrize("verb", ["info", "list", "dump"])
def test_recovery_is_offered_where_there_is_something_to_recover(samples, rodeo, verb):
    content = (samples / NAME.format("sound", 1)).read_bytes()
    first = content.index(bytes.fromhex("cccc3412"))
    for size, said in ((100, "there is nothing to recover"), (first + 2000, "save its events: rodeo data recover")):
        (samples / "broken.data").write_bytes(
            content[:32] + b"oops" + content[36:size]
        )  # overwrites the marker of the second record
        done = rodeo("data", verb, "broken.data", exit_code=1)
        assert done.stderr.startswith("error[data.header]") and said in done.stderr


@pytest.mark.parametrize("verb", ["info", "list", "dump", "recover"])
def test_what_holds_no_data_is_said_plainly(samples, rodeo, verb):
    (samples / "empty").write_bytes(b"")
    (samples / "zeros").write_bytes(bytes(10000))
    (samples / "letter").write_text("Dear reader, this is no event file.")
    for name, word in (
        ("empty", "empty"),
        ("zeros", ""),
        ("letter", ""),
        (".", "directory"),
        ("absent", "No such file"),
    ):
        done = rodeo("data", verb, name, exit_code=None)
        assert done.returncode in (1, 2) and done.stdout == "", done
        assert done.stderr.startswith("error[") and word in done.stderr


def test_one_bad_file_among_good_ones_is_reported_and_the_rest_done(samples, rodeo):
    done = rodeo("data", "info", NAME.format("sound", 1), "absent", exit_code=6)
    assert "431493" in done.stdout and "absent" in done.stderr
    assert rodeo("data", "verify", NAME.format("sound", 1), "absent", exit_code=6).stdout.count("sound\n") >= 1
