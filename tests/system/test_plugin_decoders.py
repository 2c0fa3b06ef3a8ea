"""The Python decoders of the example plug-ins, on recordings of FELIX blocks made here from the layouts in muon.h and calorimeter.h."""

import binascii
import struct
import sys
import zlib

import numpy as np
import pytest
from conftest import BUILD, ROOT

if not list((BUILD / "python" / "rodeo").glob("_data*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )
for directory in (BUILD / "python", ROOT / "plugins/muon", ROOT / "plugins/calorimeter"):
    sys.path.insert(0, str(directory))
from calorimeter_decoder import calorimeter  # noqa: E402
from muon_decoder import muon  # noqa: E402

from rodeo import data  # noqa: E402


def blocks_of(chunks_by_elink):
    """1 KiB blocks with 16-bit trailers; each has a few whole chunks, then null trailers."""
    recording = b""
    for elink, chunks in chunks_by_elink.items():
        sequence, content = 0, b""
        for chunk in [*chunks, None]:
            piece = b"" if chunk is None else chunk + b"\0" * (len(chunk) % 2) + struct.pack("<H", 3 << 13 | len(chunk))
            if chunk is None or len(content) + len(piece) > 1020:
                recording += (
                    struct.pack("<HH", elink | sequence % 32 << 11, 0xABCD) + content + b"\0" * (1020 - len(content))
                )
                sequence, content = sequence + 1, b""
            content += piece
    return recording


def muon_chunk(l1_id, bcid, hits):
    body = struct.pack(f"<HH{len(hits)}I", l1_id & 0xFFFF, bcid | 0x5000, *hits)
    return body + struct.pack("<H", binascii.crc_hqx(body, 0xFFFF))


def test_muon_hits_of_a_recording(tmp_path):
    hits = {
        (elink, 65_500 + i): list(range(i, i + (i + elink) % 5)) for elink in (3, 8) for i in range(100)
    }  # the ids of 16 bits wrap
    path = tmp_path / "muon.felix"
    path.write_bytes(
        blocks_of(
            {
                elink: [muon_chunk(number, number % 3564, hits[elink, number]) for number in range(65_500, 65_600)]
                for elink in (3, 8)
            }
        )
    )
    columns = data.open(path, l1_id_bits=16).read(["l1_id", "chunk.link"], decoder=muon)
    assert columns.events == 100 and columns["l1_id"].tolist() == [number & 0xFFFF for number in range(65_500, 65_600)]
    assert columns["muon.good"].all() and len(columns["muon.good"]) == 200
    offsets, numbers = columns["muon.hits_offsets"], np.repeat(range(65_500, 65_600), 2)
    assert columns["muon.bcid"].tolist() == [number % 3564 for number in numbers]
    for i, (elink, number) in enumerate(zip(columns["chunk.link"].tolist(), numbers.tolist())):
        assert columns["muon.hits"][offsets[i] : offsets[i + 1]].tolist() == hits[elink, number]


def test_a_muon_chunk_with_any_flipped_bit_is_not_good():
    chunk = muon_chunk(5, 1200, [1, 2, 3])
    copies = []
    for bit in range(8 * len(chunk)):
        flipped = bytearray(chunk)
        flipped[bit // 8] ^= 1 << bit % 8
        copies.append(bytes(flipped))
    count = len(copies)
    all_of_them = data.Chunks(
        np.frombuffer(chunk + b"".join(copies), np.uint8),
        np.zeros(count + 1, np.uint32),
        np.zeros(count + 1, np.uint16),
        np.full(count + 1, len(chunk), np.uint32),
        len(chunk) * np.arange(count + 1),
    )
    assert muon(all_of_them)["good"].tolist() == [True] + [False] * count


def test_calorimeter_samples_of_a_recording(tmp_path):
    def chunk(elink, number):
        samples = [1000 * elink + number + i for i in range(10 + number % 3)]
        head = struct.pack("<IIHBBI", 0xCA10DA7A, number, number % 3564, number & 0xFF, 0, 4 * len(samples))
        body = head + struct.pack(f"<{len(samples)}I", *samples)
        return body + struct.pack("<I", zlib.crc32(body))

    path, ids = tmp_path / "calorimeter.felix", [2 << 24 | number for number in range(50)]
    good = {elink: [chunk(elink, number) for number in ids] for elink in (1, 2, 5)}
    good[5][7] = good[5][7][:-5] + b"\xee" + good[5][7][-4:]
    path.write_bytes(blocks_of(good))
    events = data.open(path, l1_id_offset=4)
    columns = events.read(["l1_id", "chunk.link"], decoder=calorimeter)
    assert columns["l1_id"].tolist() == ids
    assert columns["calorimeter.l1_id"].tolist() == np.repeat(ids, 3).tolist()
    assert columns["calorimeter.bcid"].tolist() == [number % 3564 for number in ids for _ in range(3)]
    assert columns["calorimeter.trigger_type"].tolist() == [number & 0xFF for number in ids for _ in range(3)]
    assert np.flatnonzero(~columns["calorimeter.good"]).tolist() == [7 * 3 + 2]
    offsets = columns["calorimeter.samples_offsets"]
    assert columns["calorimeter.samples"][offsets[4] : offsets[5]].tolist() == [
        2000 + ids[1] + i for i in range(10 + ids[1] % 3)
    ]
    assert calorimeter(events[0].fragments[0].chunks)["samples"].counts.tolist() == [10 + ids[0] % 3] * 3
