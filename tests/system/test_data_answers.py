"""The judgements of `rodeo data`: sound or damaged files, other formats and versions, and RDH pages of real detectors. All verbs must agree."""

import gzip
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD, scaled

if not list((BUILD / "python" / "rodeo").glob("_data*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )
sys.path.insert(0, str(BUILD / "python"))

from rodeo import data
from rodeo.data_tools import plot

NAME = "{}.00431493.physics_Main.daq.RAW._lb0012._sample._{:04}.data"
SOUND = NAME.format("sound", 1)


@pytest.fixture
def samples(tmp_path):
    subprocess.run([BUILD / "tests/storage/write_sample_files", tmp_path], check=True, timeout=scaled(30))
    return tmp_path


def older_file():
    """An event file of an older ATLAS format: version 2, events of format 3.0."""
    words = (
        struct.pack("<10I", 0x1234AAAA, 8, 2, 2, 8042026, 120340, 0, 2008, 0x1234AABB, 4)
        + b"SFO1"
        + struct.pack("<I", 4)
        + b"All "
    )
    words += struct.pack("<9I", 0x1234BBBB, 9, 91668, 0, 0, 0, 0, 0, 0)
    return words + b"".join(
        struct.pack("<10I", 0x1234CCCC, 4, number, 24, 0xAA1234AA, 6, 6, 0x03000000, 0x790B50, 0)
        for number in range(1, 4)
    )


def page(link, packet, orbit, number, stop, payload=b"", cru=183, endpoint=0):
    size = 64 + len(payload)
    return (
        struct.pack(
            "<16I",
            7 | 64 << 8 | (endpoint << 8 | link) << 16,
            32 << 8,
            size | size << 16,
            link | packet % 256 << 8 | cru << 16 | endpoint << 28,
            0,
            orbit,
            2,
            0,
            3,
            number | stop << 16,
            0,
            0,
            0,
            0,
            0,
            0,
        )
        + payload
    )


def pages(orbits, links=(0, 1, 2), shared=False, of=None, endpoint=0):
    """A file of an endpoint's data: three pages per frame, links in turn; `of` selects some links."""
    packets, kept = {}, {link: b"" for link in of or links}
    for orbit in orbits:
        for number in range(3):
            for link in links:
                counter = None if shared else link
                packet = packets[counter] = packets.get(counter, -1) + 1
                if link in kept:
                    kept[link] += page(
                        link,
                        packet,
                        orbit,
                        number,
                        number == 2,
                        b"" if number == 2 else bytes(orbit * 7 + link * i & 0xFF for i in range(96)),
                        endpoint=endpoint,
                    )
    return b"".join(kept.values())


def verified(rodeo, *names, exit_code=0):
    done = rodeo("data", "verify", *names, "-o", "json", exit_code=exit_code)
    return [one["answer"] for one in json.loads(done.stdout)], done


def test_verify_has_three_answers_each_with_its_status_and_its_word(rodeo, samples):
    sound = (samples / SOUND).read_bytes()
    files = {
        "damaged": sound[:2000] + bytes([sound[2000] ^ 1]) + sound[2001:],
        "cut.data": sound[:20],
        "empty": b"",
        "zeros": bytes(9000),
        "dump.raw": pages(range(5))[:100],
        "head.raw": pages(range(5))[:40],
        "gz": gzip.compress(sound),
        "text": b"# no data\n",
        "one": b"\xaa",
        "older.raw": older_file(),
        "rdh5": b"".join(bytes([5]) + page(0, i, i, 0, 1)[1:] for i in range(4)),
        "later": sound.replace(b"Rodeo-Format=1", b"Rodeo-Format=2"),
    }
    for name, content in files.items():
        (samples / name).write_bytes(content)
    reseal(samples / "later")
    assert verified(rodeo, SOUND)[0] == ["sound"]
    for name in ("damaged", "cut.data", "empty", "zeros", "dump.raw", "head.raw"):
        assert verified(rodeo, name, exit_code=7)[0] == ["damaged"], name
    for name, code, answer in (
        ("gz", "data.unknown_kind", "not_ours"),
        ("text", "data.unknown_kind", "not_ours"),
        ("one", "data.unknown_kind", "not_ours"),
        ("older.raw", "data.other_version", "other_version"),
        ("rdh5", "data.other_version", "other_version"),
        ("later", "data.other_version", "other_version"),
    ):
        answers, done = verified(rodeo, name, exit_code=1)
        assert answers == [answer] and f"error[{code}]" in done.stderr and "read by" in done.stderr, name
    said = rodeo("data", "verify", "older.raw", exit_code=1).stdout
    assert "OF ANOTHER VERSION" in said and "format 3.0" in said and "pybes3" in said
    os.mkdir(samples / "directory")
    os.mkfifo(samples / "fifo")
    for name in ("directory", "fifo"):
        assert "error[file.not_regular]" in rodeo("data", "verify", name, exit_code=2).stderr
    assert verified(rodeo, "gz", "text", exit_code=1)[0] == ["not_ours"] * 2
    assert verified(rodeo, "damaged", "cut.data", exit_code=7)[0] == ["damaged"] * 2
    assert verified(rodeo, SOUND, "damaged", "gz", exit_code=6)[0] == ["sound", "damaged", "not_ours"]


def reseal(path):
    import zlib

    content = path.read_bytes()
    at = content.index(b"Rodeo-CRC32=") + 12
    path.write_bytes(
        content[:at] + b"%08x" % zlib.crc32(content[:at] + b"00000000" + content[at + 8 :]) + content[at + 8 :]
    )


def test_what_is_not_ours_is_refused_by_all_and_leaves_nothing(rodeo, samples):
    (samples / "older.raw").write_bytes(older_file())
    (samples / "text").write_bytes(b"# no data\n")
    there = sorted(os.listdir(samples))
    for name, code in (("older.raw", "data.other_version"), ("text", "data.unknown_kind")):
        for verb, *more in (
            ("info",),
            ("list",),
            ("dump",),
            ("recover",),
            ("merge", "--output", "new"),
            ("filter", "--output", "new"),
            ("convert", "--output", "new.h5"),
            ("plot", "--output", "new.png"),
        ):
            done = rodeo("data", verb, name, *more, exit_code=1)
            assert f"error[{code}]" in done.stderr and "Traceback" not in done.stderr, (verb, done.stderr)
        assert f"error[{code}]" in rodeo("data", "diff", SOUND, name, exit_code=1).stderr
        for damaged in ("raise", "skip"):
            with pytest.raises(data.DataError, match=code):
                data.open(samples / name, damaged=damaged)
    assert sorted(os.listdir(samples)) == there


@pytest.mark.parametrize("orbits", [range(500, 504), range(500, 600, 11), [500, 501, 511, 530, 533, 590, 598, 700]])
@pytest.mark.parametrize("shared", [False, True])
def test_pages_of_detectors_are_judged_by_the_rules_that_they_show(rodeo, orbits, shared):
    orbits = list(orbits)
    for name, content, links in (
        ("all.raw", pages(orbits, shared=shared), 3),
        ("some.raw", pages(orbits, shared=shared, of=(1,)), 1),
        ("two.raw", pages(orbits, shared=shared) + pages(orbits, shared=not shared, endpoint=1), 6),
    ):
        (rodeo.directory / name).write_bytes(content)
        assert verified(rodeo, name)[0] == ["sound"]
        events = data.open(rodeo.directory / name, index=False)
        columns = events.read(["l1_id", "chunk.link", "chunk.status"])
        assert columns["l1_id"].tolist() == orbits and not columns["chunk.status"].any()
        assert len(set(columns["chunk.link"].tolist())) == links and len(columns["chunk.link"]) == links * len(orbits)
    content = pages(orbits, shared=shared)
    (rodeo.directory / "lost.raw").write_bytes(content[:160] + content[320:])  # drops the second page of a frame
    assert verified(rodeo, "lost.raw", exit_code=7)[0] == ["damaged"]
    with pytest.raises(data.DataError, match="damaged"):
        data.open(rodeo.directory / "lost.raw", index=False).read()


def test_recordings_are_proven_with_their_seed(rodeo):
    rodeo("data", "record", "x.felix", "--events", 60, "--links", 4, "--seed", 5)
    (one,) = json.loads(rodeo("data", "verify", "x.felix", "--seed", 5, "-o", "json").stdout)
    assert one["proven_chunks"] == one["chunks"] == 240
    recording = bytearray((rodeo.directory / "x.felix").read_bytes())
    recording[recording.index(b"\xc5", 600) + 9] ^= 4  # changes a byte of a payload
    (rodeo.directory / "bad.felix").write_bytes(recording)
    assert verified(rodeo, "bad.felix")[0] == ["sound"]  # `verify` also reports that the payload is not proven
    done = rodeo("data", "verify", "bad.felix", "--seed", 5, exit_code=7)
    assert "does not match the seed" in done.stdout
    assert "no chunk is provable with --seed 6" in rodeo("data", "verify", "bad.felix", "--seed", 6).stdout


@pytest.mark.parametrize("shared", [False, True])
def test_all_tools_miss_the_same_frame(rodeo, shared):
    """Frames follow random triggers. Most triggers come in the orbit after the last one."""
    orbits, orbit = [], 500
    for i in range(100):
        orbit += 1 if i * 7 % 10 < 6 else 2 + i * i * 2654435761 % 97
        orbits.append(orbit)
    sound = pages(orbits, shared=shared)
    frame = 96 * 2 + 64 * 3
    for name, content in (("sound", sound), ("missing", sound[: 30 * frame] + sound[31 * frame :])):
        (rodeo.directory / f"{name}.dump").write_bytes(content)
    (answer,), done = verified(rodeo, "sound.dump")
    assert answer == "sound" and any("change the step" in text for text in json.loads(done.stdout)[0]["unprotected"])
    assert len(data.open(rodeo.directory / "sound.dump").read(["l1_id"])["l1_id"]) == 100
    (answer,), done = verified(rodeo, "missing.dump", exit_code=7)
    assert answer == "damaged" and "orbit: link 0" in done.stdout
    with pytest.raises(ValueError, match="1 pages that do not begin the next frame"):
        data.open(rodeo.directory / "missing.dump").read(["l1_id"])


def test_endpoints_have_their_own_steps_and_findings_name_them(rodeo):
    one, other = pages(range(100, 160), endpoint=0, shared=True), pages(range(100, 600, 11), endpoint=1, shared=True)
    frame = 96 * 2 + 64 * 3
    (rodeo.directory / "sound.dump").write_bytes(one + other)
    (rodeo.directory / "missing.dump").write_bytes(one + other[: 5 * frame] + other[6 * frame :])
    (answer,), done = verified(rodeo, "sound.dump")
    assert answer == "sound" and "orbits from frame to frame  1 or 11" in rodeo(
        "data", "info", "sound.dump"
    ).stdout.replace("   ", "  ")
    (answer,), done = verified(rodeo, "missing.dump", exit_code=7)
    assert "orbit: CRU 0xb7 endpoint 1, link 0, superpage" in done.stdout


class Pieces(dict):
    events = 3


def test_links_of_two_robs_with_one_id_are_two_links():
    import numpy as np

    columns = Pieces(
        {
            "status": np.zeros(3),
            "size": np.full(3, 9),
            "time_ns": np.arange(3),
            "bcid": np.arange(3),
            "fragment.source_id": np.array([1, 2] * 3),
            "fragment.missing_links": np.zeros(6, int),
            "fragment.chunk_offsets": np.array([0, 1, 2, 3, 3, 4, 4]),
            "chunk.link": np.full(4, 7),
        }
    )
    totals = plot.Totals()
    totals.add(columns, True)
    assert totals.missing_by_link() == [((2, 7), 2)]


def test_a_chunk_says_of_which_rob_it_is(samples):
    columns = data.open(samples / SOUND).read(["chunk.source_id", "chunk.link"])
    assert len(columns["chunk.source_id"]) == len(columns["chunk.link"]) > 0 and set(
        columns["chunk.source_id"].tolist()
    ) == {0x006B0007}
    columns = data.open(samples / SOUND).read(["chunk.source_id", "chunk.data"])
    assert set(columns["chunk.source_id"].tolist()) == {0x006B0007}


# Files of real detectors are not part of the project: RODEO_REAL_FILES is a folder with such files.
if "RODEO_REAL_FILES" in os.environ:

    @pytest.mark.parametrize("path", sorted(Path(os.environ["RODEO_REAL_FILES"]).iterdir()), ids=lambda path: path.name)
    def test_a_real_file_has_one_answer_in_all_tools(rodeo, path):
        done = rodeo("data", "verify", path, "-o", "json", exit_code=None)
        (one,) = json.loads(done.stdout)
        print(path.name, one["answer"], one.get("what") or [finding["what"] for finding in one["findings"]])
        assert done.returncode == {"sound": 0, "damaged": 7, "not_ours": 1, "other_version": 1}[one["answer"]], (
            done.stderr
        )
        if one["answer"] in ("not_ours", "other_version"):
            with pytest.raises(data.DataError):
                data.open(path, damaged="skip", index=False)
            assert rodeo("data", "merge", path, "--output", "new", exit_code=1).returncode == 1 and not list(
                rodeo.directory.glob("new*")
            )
        elif one["answer"] == "sound":
            columns = data.open(path, index=False).read(["l1_id", "chunk.status"])
            last = int(columns["chunk.offsets"][-2])  # frames cut by the end of the file are sound, and flagged
            assert not columns["chunk.status"][:last].any()
