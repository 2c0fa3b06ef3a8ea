"""Reads events in pieces: columns, raw bytes and the places of fragments and chunks. Memory does not grow with the files."""

import os
import zlib
from typing import NamedTuple

import numpy as np

from rodeo.data_tools import layout

EVENT_FIELDS = (
    "l1_id",
    "global_id",
    "bcid",
    "run_number",
    "lumi_block",
    "run_type",
    "trigger_type",
    "time_ns",
    "status",
    "source_id",
    "file",
)
FRAGMENT_FIELDS = tuple(
    f"fragment.{name}"
    for name in (
        "source_id",
        "l1_id",
        "bcid",
        "trigger_type",
        "run_number",
        "detector_event_type",
        "status",
        "missing_links",
        "removed_links",
    )
)
CHUNK_FIELDS = ("chunk.link", "chunk.status", "chunk.size")
PIECE_EVENTS = 20_000  # at most
PIECE_BYTES = 32 << 20  # a piece of events of mean size has at most this size


class RawPiece(NamedTuple):
    """A piece with the bytes of its events: event i is [offsets[i]:offsets[i + 1]] of `bytes`. Places of fragments and chunks are offsets in `bytes`, too."""

    columns: dict
    events: int
    bytes: np.ndarray
    offsets: np.ndarray
    fragment_at: np.ndarray
    fragment_size: np.ndarray
    chunk_at: np.ndarray
    crcs: np.ndarray  # CRC-32 of each event


def open_files(paths):
    """Opens files. Damaged events are left out and counted in .error_count. No index file is written."""
    import rodeo.data

    return rodeo.data.open(list(paths), damaged="skip", index=False)


def piece_of(events, paths):
    """The number of events in a piece."""
    mean = sum(map(os.path.getsize, paths)) // max(len(events), 1)
    return max(1, min(PIECE_EVENTS, PIECE_BYTES // max(mean, 1)))


def raw_pieces(events, paths, chunks):
    """Yields pieces with the columns and the bytes of the same events."""
    fields = [*EVENT_FIELDS, *FRAGMENT_FIELDS, *(CHUNK_FIELDS if chunks else ())]
    raw = iter(open_files(paths))
    for columns in events.iterate(fields, events=piece_of(events, paths)):
        parts, crcs, fragment_at, fragment_size, at = [], [], [], [], 0
        offsets = np.zeros(columns.events + 1, np.uint64)
        for i in range(columns.events):
            event = next(raw)
            part = layout.uncompressed(memoryview(event.raw))
            for place, length in layout.data_of_fragments(part):
                fragment_at.append(at + place if place >= 0 else at)
                fragment_size.append(length)
            parts.append(np.frombuffer(part, np.uint8))
            crcs.append(zlib.crc32(part))
            at += len(part)
            offsets[i + 1] = at
        fragment_at = np.array(fragment_at, np.int64)
        chunk_at = (
            layout.places_of_chunks(columns["chunk.size"], columns["fragment.chunk_offsets"], fragment_at)
            if chunks
            else np.zeros(0, np.int64)
        )
        joined = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
        yield RawPiece(
            columns,
            columns.events,
            joined,
            offsets,
            fragment_at,
            np.array(fragment_size, np.int64),
            chunk_at,
            np.array(crcs, np.uint32),
        )
