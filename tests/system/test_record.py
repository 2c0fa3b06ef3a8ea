"""Recordings of FELIX blocks: made by `rodeo data record`, described by `rodeo data`, and read here without any C++ code."""

import json
import signal
import struct
import time

import pytest

from block_recordings import chunks_of
from conftest import scaled


def test_a_recording_holds_every_trigger_of_every_link(rodeo, tmp_path):
    file = tmp_path / "card.felix"
    report = json.loads(rodeo("data", "record", str(file), "--links", "24", "--events", "500", "-o", "json").stdout)
    assert report["chunks"] == 24 * 500
    assert report["size_bytes"] == file.stat().st_size
    chunks = chunks_of(file)
    assert len(chunks) == 24
    for of_link in chunks.values():
        assert [struct.unpack_from("<I", chunk)[0] for chunk in of_link] == list(range(500))
        assert all(len(chunk) == 40 and chunk[7] == 0xC6 for chunk in of_link)


def test_long_chunks_are_read_whole(rodeo, tmp_path):
    for size in (65536, 65537, 1 << 20):
        file = tmp_path / str(size)
        rodeo(
            "data",
            "record",
            file,
            "--links",
            "1",
            "--events",
            "3",
            "--set",
            "format=full",
            "--set",
            f"chunk_bytes={size}",
        )
        assert "sound" in rodeo("data", "verify", file).stdout
        (elink,) = json.loads(rodeo("data", "list", file, "-o", "json").stdout)
        assert (elink["chunks"], elink["smallest_chunk_bytes"], elink["largest_chunk_bytes"]) == (3, size, size)


def test_chunks_that_the_card_flagged_are_told(rodeo, tmp_path):
    file = tmp_path / "flagged"
    arguments = ["--links", "4", "--events", "2000", "--fault", "truncated=0.01", "-o", "json"]
    flagged = json.loads(rodeo("data", "record", file, *arguments).stdout)["fault_truncated"]
    (verified,) = json.loads(rodeo("data", "verify", file, "-o", "json", exit_code=7).stdout)
    assert (verified["verdict"], verified["card_flagged_chunks"], verified["firmware_truncated"]) == (
        "flagged",
        flagged,
        flagged,
    )
    (info,) = json.loads(rodeo("data", "info", file, "-o", "json").stdout)
    assert (info["sound"], info["card_flagged_chunks"], info["firmware_truncated"]) == (False, flagged, flagged)
    assert (
        sum(elink["card_flagged_chunks"] for elink in json.loads(rodeo("data", "list", file, "-o", "json").stdout))
        == flagged
    )
    assert "FLAGGED by the card" in rodeo("data", "verify", file, exit_code=7).stdout


def test_a_damaged_block_is_named_with_its_place(rodeo, tmp_path):
    file = tmp_path / "damaged"
    rodeo("data", "record", file, "--links", "4", "--events", "2000")
    content = bytearray(file.read_bytes())
    content[37 * 1024 + 3] ^= 0xFF
    file.write_bytes(content)
    (verified,) = json.loads(rodeo("data", "verify", file, "-o", "json", exit_code=7).stdout)
    first = verified["findings"][0]
    assert first["offset_bytes"] == 37 * 1024 and first["what"].startswith("block 37: 1 bad_marker")
    assert verified["errors"]["bad_marker"] == verified["errors"]["sequence_gaps"] == 1
    assert f"byte {37 * 1024}: block 37: 1 bad_marker" in rodeo("data", "verify", file, exit_code=7).stdout


def test_the_same_seed_makes_the_same_faults(rodeo, tmp_path):
    seen = []
    for name in ("one", "two"):
        file = tmp_path / name
        arguments = [
            "--links",
            "8",
            "--events",
            "2000",
            "--seed",
            "3",
            "--fault",
            "missing=0.01",
            "--fault",
            "corrupt=0.01",
        ]
        report = json.loads(rodeo("data", "record", str(file), *arguments, "-o", "json").stdout)
        assert report["fault_missing"] > 100 and report["fault_corrupt"] > 100
        assert report["chunks"] == 8 * 2000 - report["fault_missing"]
        seen.append(chunks_of(file))
    assert seen[0] == seen[1]


def test_an_input_of_a_configuration_is_recorded(rodeo, tmp_path):
    config = tmp_path / "run.toml"
    config.write_text('[readout.input]\ntype = "generator"\nlinks = 4\nrate = "50kHz"\nevents = 300\nl1id_bits = 16\n')
    report = json.loads(rodeo("data", "record", str(tmp_path / "x"), "--config", str(config), "-o", "json").stdout)
    assert report["chunks"] == 1200


def test_phase_2_blocks_and_the_trigger_list(rodeo, tmp_path):
    file = tmp_path / "phase2"
    arguments = [
        "--links",
        "8",
        "--events",
        "100",
        "--blocks",
        "phase2",
        "--block-size",
        "4KiB",
        "--trigger-elink",
        "2000",
    ]
    rodeo("data", "record", str(file), *arguments)
    info = json.loads(rodeo("data", "info", str(file), "-o", "json").stdout)
    info = info[0] if isinstance(info, list) else info
    assert "sound" in json.dumps(info)
    assert file.stat().st_size % 4096 == 0


def test_an_input_without_chunks_leaves_no_empty_recording(rodeo, tmp_path):
    done = rodeo(
        "data", "record", tmp_path / "none", "--links", "1", "--events", "10", "--set", "occupancy=0", exit_code=1
    )
    assert done.stderr.startswith("error[readout.no_chunks]") and not list(tmp_path.glob("none*"))


def test_what_cannot_be_recorded_is_refused(rodeo, tmp_path):
    there = tmp_path / "there"
    there.write_text("precious")
    assert "file.exists" in rodeo("data", "record", str(there), "--links", "1", exit_code=5).stderr
    assert there.read_text() == "precious"
    assert "recording_links" in rodeo("data", "record", str(tmp_path / "x"), "--links", "500", exit_code=2).stderr
    assert (
        "did you mean `missing`?"
        in rodeo("data", "record", str(tmp_path / "x"), "--fault", "mising=1", exit_code=2).stderr
    )
    unknown = rodeo("data", "record", str(tmp_path / "x"), "--fault", "nosuch=1", exit_code=2).stderr
    assert "there is no fault `nosuch`" in unknown and "out_of_sequence" in unknown and "position" not in unknown
    assert "config.out_of_range" in rodeo("data", "record", str(tmp_path / "x"), "--links", "0", exit_code=3).stderr
    assert "/nowhere/x" in rodeo("data", "record", "/nowhere/x", "--links", "1", exit_code=1).stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["there"]


def test_a_recording_that_is_stopped_in_the_middle_ends_good(rodeo):
    rodeo("data", "record", "run.felix", "--links", 24, "--events", 20000)
    text = (
        '[readout.input]\ntype = "file"\nfile = "run.felix"\nloop = true\nrate = "50kHz"\n[readout.builder]\nworkers = 2\n'
        '[[readout.rob]]\nsource_id = "0x610001"\n[[readout.consumer]]\ntype = "processor"\nwork = "verify"\n'
    )
    (rodeo.directory / "run.toml").write_text(text)
    for more in [], ["--set", "readout.input.loop=false"]:
        report = json.loads(rodeo("readout", "run.toml", "--seconds", 0.2, "--json", "-", *more).stdout)
        assert report["run"]["condition"] == "GOOD", report
        assert report["verified"]["mismatches"] == 0 and report["verified"]["chunks"] == report["chunks"]["sent"] > 0


@pytest.mark.parametrize("rate, bits, flips", [("1.2kHz", 32, 0), ("8kHz", 24, 0.0003), ("0", 24, 0.0003)])
@pytest.mark.parametrize("elink", [None, 2000])
def test_a_recording_loses_nothing_at_any_rate_but_what_is_wrong_in_it(rodeo, rate, bits, flips, elink):
    """Blocks of small chunks fill more slowly than the time-out of events, ids may be damaged, and a list must stay in step with the data."""
    events = 2000
    arguments = [
        "--links",
        8,
        "--events",
        events,
        "--set",
        f"l1id_bits={bits}",
        "--fault",
        f"l1id={flips}",
        "-o",
        "json",
    ]
    arguments += ["--trigger-elink", elink] if elink else []
    flipped = json.loads(rodeo("data", "record", "run.felix", *arguments).stdout).get("fault_l1id", 0)
    text = (
        f'[readout.input]\ntype = "file"\nfile = "run.felix"\nrate = "{rate}"\nl1id_bits = {bits}\ntrigger_elink = {elink or -1}\n'
        f'[readout.builder]\ntrigger_list = {str(elink is not None).lower()}\n[readout.extractor]\ntype = "rodeo"\nl1id_bits = {bits}\n'
        '[[readout.rob]]\nsource_id = "0x610001"\n'
    )
    (rodeo.directory / "run.toml").write_text(text)
    report = json.loads(rodeo("readout", "run.toml", "--json", "-").stdout)
    assert report["chunks"]["sent"] == 8 * events
    assert sum(report["chunks"]["lost"].values()) <= flipped, report["chunks"]
    assert report["fragments"]["incomplete"] <= 2 * flipped, report["fragments"]


@pytest.mark.parametrize("ends", [True, False])
def test_a_recording_that_is_interrupted_says_so_unless_it_would_never_have_ended(rodeo, ends):
    arguments = ["data", "record", "run.felix", "--links", 4, "--set", "rate=1MHz", "-o", "json"]
    if ends:
        arguments += ["--events", 10**12]
    else:
        (rodeo.directory / "run.toml").write_text('[readout.input]\ntype = "generator"\n')
        arguments += ["--config", "run.toml"]
    part = rodeo.directory / "run.felix.part"
    with rodeo.start(*arguments) as recording:
        deadline = time.monotonic() + scaled(20)
        while not part.exists() or part.stat().st_size == 0:
            assert recording.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        recording.send_signal(signal.SIGINT)
        out, err = recording.communicate(timeout=scaled(30))
    report = json.loads(out)
    left = rodeo.directory / ("run.felix.part" if ends else "run.felix")
    assert [path.name for path in rodeo.directory.glob("run.felix*")] == [left.name] == [report["file"]]
    if ends:
        assert (
            recording.returncode == 6 and "error[readout.recording_interrupted]" in err and "run.felix.part" in err
        ), err
    else:
        assert recording.returncode == 0 and not err, err
    lengths = {len(of_link) for of_link in chunks_of(left).values()}
    assert report["chunks"] == 4 * lengths.pop() and not lengths  # all links end with the same event
