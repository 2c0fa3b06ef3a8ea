"""Finds the fragments and chunks in the bytes of raw events (docs/reference/formats/hdf5.md)."""

import struct
import zlib

import numpy as np

EVENT, ROB, ROD = 0xAA1234AA, 0xDD1234DD, 0xEE1234EE
LONG = 0xFFFF - 8  # chunks of at least this size have it in a separate word


def uncompressed(raw):
    """The bytes of an event with its payload uncompressed. Only the checksum and the header words about size and compression change."""
    words = np.frombuffer(raw, "<u4", len(raw) // 4)
    if words[0] != EVENT or words[3] >> 16 != 0x0500:
        return raw
    header, status = int(words[2]), int(words[5])
    compression = 6 + status + 11
    if words[compression] == 0:
        return raw
    checksum = int(words[6 + status])
    stored = bytes(raw[4 * header : len(raw) - (4 if checksum else 0)])
    payload = zlib.decompressobj().decompress(stored, 4 * int(words[compression + 1]))
    changed = words[:header].copy()
    changed[1] = header + len(payload) // 4 + (1 if checksum else 0)
    changed[compression] = 0
    end = struct.pack("<I", zlib.adler32(payload)) if checksum == 2 else b"\0\0\0\0" if checksum else b""
    if checksum and checksum != 2:
        changed[6 + status] = 0
        changed[1] -= 1
        end = b""
    return changed.tobytes() + payload + end


HEADER_FIELDS = (
    "source_id",
    "status",
    "time_ns",
    "global_id",
    "run_type",
    "run_number",
    "lumi_block",
    "l1_id",
    "bcid",
    "trigger_type",
)


def header_fields(raw):
    """The header values of an event of version 5, by names of columns; empty for other versions and damaged headers."""
    if len(raw) < 96:
        return {}
    words = struct.unpack_from("<24I", raw)
    if words[0] != EVENT or words[3] >> 16 != 0x0500 or 4 * (words[5] + 23) > len(raw):
        return {}
    status = struct.unpack_from(f"<{words[5]}I", raw, 24)
    own = struct.unpack_from("<11I", raw, 28 + 4 * words[5])
    return dict(
        zip(
            HEADER_FIELDS,
            (
                words[4],
                status[0] if status else 0,
                own[0] * 1_000_000_000 + own[1],
                own[3] << 32 | own[2],
                own[4],
                own[5],
                own[6],
                *own[7:10],
            ),
        )
    )


def data_of_fragments(raw):
    """Offset and size of the ROD data of each fragment in the bytes of an uncompressed event; -1 and 0 if a ROB has no readable ROD."""
    word = struct.Struct("<I").unpack_from
    size, header, status = word(raw, 4)[0], word(raw, 8)[0], word(raw, 20)[0]
    checksum = word(raw, 24 + 4 * status)[0]
    at, end, places = 4 * header, 4 * size - (4 if checksum else 0), []
    while at < end:
        rob_size, rob_header, rob_status = word(raw, at + 4)[0], word(raw, at + 8)[0], word(raw, at + 20)[0]
        rod = at + 4 * rob_header
        rod_end = at + 4 * rob_size - (4 if word(raw, at + 24 + 4 * rob_status)[0] else 0)
        statuses, data, position = struct.unpack_from("<III", raw, rod_end - 12) if rod_end - rod >= 48 else (0, 0, 2)
        if position > 1 or word(raw, rod)[0] != ROD or rod_end - rod != 4 * (12 + statuses + data):
            places.append((-1, 0))
        else:
            places.append((rod + 36 + (4 * statuses if position == 0 else 0), 4 * data))
        at += 4 * rob_size
    return places


def places_of_chunks(sizes, chunk_offsets, data_at):
    """Where the bytes of each chunk begin. Fragment i has its data at data_at[i], and its chunks are [chunk_offsets[i]:chunk_offsets[i + 1]] of `sizes`."""
    sizes = sizes.astype(np.int64)
    header = np.where(sizes >= LONG, 12, 8)
    record = header + sizes + (-sizes) % 4
    before = np.concatenate([[0], np.cumsum(record)])
    counts = np.diff(chunk_offsets)
    return np.repeat(np.asarray(data_at, np.int64) - before[chunk_offsets[:-1]], counts) + before[:-1] + header


def file_records(path):
    """The bytes before the first event of an event file."""
    with open(path, "rb") as file:
        head = file.read(16 << 20)

    def word(at):
        return struct.unpack_from("<I", head, at)[0]

    def text_end(at):
        return at + 4 + (word(at) + 3) // 4 * 4

    at = 4 * word(4)
    if word(at) == 0x1234AABB:
        at = text_end(text_end(at + 4))
    if word(at) == 0x1234AABC:
        count, at = word(at + 4), at + 8
        for _ in range(count):
            at = text_end(at)
    if word(at) == 0x1234BBBB:
        at += 4 * word(at + 4)
    return head[:at]
