"""Event files to HDF5, and back: columns, and the bytes of every event (docs/formats/hdf5.md). usage: hdf5.py OUT LEVEL < NAMES | --back FILE"""

import contextlib
import io
import json
import os
import struct
import sys

import numpy as np

from rodeo.data_tools import layout
from rodeo.data_tools.pieces import CHUNK_FIELDS, EVENT_FIELDS, FRAGMENT_FIELDS, open_files, raw_pieces
from rodeo.data_tools.running import NOT_VERIFIED, Progress, Refused, end, names, needed, new_file, run, say

FORMAT, VERSION = "rodeo-events", 1
END = 0xffffffff  # in the place of an event's size
SLAB = 1 << 20  # bytes of a chunk of the dataset of bytes, and what is read at once


class Written(io.RawIOBase):
    """The file beneath HDF5. The library crashes where a disk is full: what fails is kept from it, and told to whoever asks with check()."""

    def __init__(self, path):
        super().__init__()
        self.path, self.file, self.error = path, open(path, "w+b", buffering=0), None

    def check(self):
        if self.error is not None:
            raise OSError(self.error.errno, self.error.strerror, self.path)

    def _tried(self, work, otherwise):
        if self.error is None:
            try:
                return work()
            except OSError as error:
                self.error = error
        return otherwise

    def write(self, data):
        left, wanted = memoryview(data).cast("B"), len(data)
        while len(left):
            left = left[self._tried(lambda: self.file.write(left), len(left)):]
        return wanted

    def readinto(self, buffer):
        view = memoryview(buffer).cast("B")
        read = self._tried(lambda: self.file.readinto(view), 0)
        view[read:] = bytes(len(view) - read)
        return len(view)

    def truncate(self, size=None):
        return self._tried(lambda: self.file.truncate(size), size)

    def seek(self, offset, whence=0):
        return self.file.seek(offset, whence)

    def tell(self):
        return self.file.tell()

    def flush(self):
        pass  # nothing is held back

    def readable(self):
        return True

    writable = seekable = readable

    def close(self):
        self.file.close()
        super().close()


class Columns:
    """Datasets that grow, compressed; of a group for each thing: event, fragment, chunk."""

    def __init__(self, file, level):
        self.file, self.options, self.rows = file, {"compression": "gzip", "compression_opts": level, "shuffle": True} if level else {}, {}

    def append(self, name, values):
        values = np.asarray(values)
        if name not in self.rows:
            rows = SLAB if values.dtype == np.uint8 else 16384
            self.file.create_dataset(name, shape=(0,), maxshape=(None,), dtype=values.dtype, chunks=(rows,), **self.options)
            self.rows[name] = 0
        dataset, before = self.file[name], self.rows[name]
        self.rows[name] = before + len(values)
        dataset.resize(self.rows[name], 0)
        dataset[before:] = values


def convert(paths, output, level=4):
    h5py = needed("h5py", "converting to HDF5")
    events = open_files(paths)
    chunks = holds_chunk_records(events)
    progress = Progress(f"converting to {output}", len(events))
    with new_file(output) as part, contextlib.closing(Written(part)) as written:
        with h5py.File(written, "w", libver="v110") as file:
            describe(file, events, paths)
            fill(Columns(file, level), events, paths, chunks, progress, written.check)
            file.attrs["events"] = file["event/l1_id"].shape[0] if "event/l1_id" in file else 0
            file.attrs["left_out_events"] = events.error_count
        written.check()
    progress.finish()
    return told(events)


def told(events):
    """Damaged events are named; the exit status."""
    for error in list(events.errors)[:20]:
        say(f"note: left out: {error}")
    if events.error_count:
        say(f"note: {events.error_count} damaged events were left out")
    return NOT_VERIFIED if events.error_count else 0


def holds_chunk_records(events):
    """Files of others have events whose data are no chunk records."""
    try:
        for columns in events[:1].iterate(["chunk.size"], events=1):
            return columns.events > 0
    except ValueError:
        return False
    return len(events) > 0


def describe(file, events, paths):
    file.attrs.update({"format": FORMAT, "version": VERSION, "files": len(paths)})
    info = events.info(0)
    file.attrs["info"] = json.dumps(info, default=str)
    for number, path in enumerate(paths):
        records = layout.file_records(path)
        dataset = file.create_dataset(f"file/{number}", data=np.frombuffer(records, np.uint8))
        dataset.attrs["name"] = os.fsencode(os.path.basename(path)).decode("utf-8", "backslashreplace")


def fill(out, events, paths, chunks, progress, check):
    totals = {"event.byte": 0, "event.fragment": 0, "event.chunk": 0, "fragment.chunk": 0}
    for name in ("event/byte_offsets", "event/fragment_offsets", "event/chunk_offsets", "fragment/chunk_offsets"):
        if chunks or "chunk" not in name:
            out.append(name, np.zeros(1, np.uint64))

    def offsets(name, key, ends):
        out.append(name, np.asarray(ends[1:], np.uint64) + np.uint64(totals[key]))
        totals[key] += int(ends[-1])

    done = 0
    for piece in raw_pieces(events, paths, chunks):
        base = totals["event.byte"]
        for field in EVENT_FIELDS:
            out.append(f"event/{field}", piece.columns[field])
        for field in FRAGMENT_FIELDS:
            out.append(field.replace(".", "/"), piece.columns[field])
        out.append("fragment/data_offset", (piece.fragment_at + base).astype(np.uint64))
        out.append("fragment/data_size", piece.fragment_size.astype(np.uint32))
        if chunks:
            for field in CHUNK_FIELDS:
                out.append(field.replace(".", "/"), piece.columns[field])
            out.append("chunk/offset", (piece.chunk_at + base).astype(np.uint64))
            offsets("event/chunk_offsets", "event.chunk", piece.columns["chunk.offsets"])
            offsets("fragment/chunk_offsets", "fragment.chunk", piece.columns["fragment.chunk_offsets"])
        offsets("event/fragment_offsets", "event.fragment", piece.columns["fragment.offsets"])
        offsets("event/byte_offsets", "event.byte", piece.offsets)
        out.append("bytes", piece.bytes)
        done += piece.events
        progress(done)
        check()


def back(path):
    """The records of the first file and every event on stdout, each behind its size, for whoever writes event files."""
    h5py = needed("h5py", "converting from HDF5")
    out = sys.stdout.buffer
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise Refused("data.unknown_kind", f"is no HDF5 file that can be read ({error})", path) from None
    with file:
        if file.attrs.get("format") != FORMAT or file.attrs.get("version") != VERSION:
            raise Refused("data.unknown_kind", "is an HDF5 file, but not one that `rodeo data convert` made", path, "its attribute `format` is to be rodeo-events, `version` 1")
        if "file/0" not in file or "event/byte_offsets" not in file:
            raise Refused("data.damaged", "the HDF5 file lacks what it should have", path)
        records = file["file/0"][:].tobytes()
        out.write(struct.pack("<I", len(records)) + records)
        sizes = np.diff(file["event/byte_offsets"][:].astype(np.int64))
        if (sizes < 0).any() or (sizes >= END).any() or ("bytes" in file and sizes.sum() != file["bytes"].shape[0]):
            raise Refused("data.damaged", "the offsets of events do not fit their bytes", path)
        progress, done, at = Progress(f"converting {path}", len(sizes)), 0, 0
        while done < len(sizes):
            count = max(1, int(np.searchsorted(np.cumsum(sizes[done:done + 100_000]), 8 * SLAB)))
            total = int(sizes[done:done + count].sum())
            slab, place = file["bytes"][at:at + total].tobytes(), 0
            for size in sizes[done:done + count].tolist():
                out.write(struct.pack("<I", size))
                out.write(slab[place:place + size])
                place += size
            at, done = at + total, done + count
            progress(done)
        out.write(struct.pack("<I", END))
        out.flush()
        progress.finish()
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "--back":
        end(run(back, sys.argv[2]))
    end(run(lambda: convert(names(), sys.argv[1], int(sys.argv[2]))))
