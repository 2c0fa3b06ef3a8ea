"""Event files to HDF5, and back: columns, and the bytes of every event (docs/reference/formats/hdf5.md). usage: hdf5.py OUT LEVEL FORM < NAMES | --back FILE"""

import contextlib
import csv
import io
import json
import os
import struct
import sys
import zlib

import numpy as np

from rodeo.data_tools import layout
from rodeo.data_tools.pieces import CHUNK_FIELDS, EVENT_FIELDS, FRAGMENT_FIELDS, open_files, raw_pieces
from rodeo.data_tools.running import NOT_VERIFIED, Progress, Refused, end, names, needed, new_file, run, say

FORMAT, VERSION = "rodeo-events", 2
READ = (1, 2)  # version 1 has no checksums
END = 0xFFFFFFFF  # stands in place of an event's size
SLAB = 1 << 20  # size of HDF5 chunks of the dataset /bytes, and of one read


class Written(io.RawIOBase):
    """The file that HDF5 writes to. The library crashes when a disk is full, so this class hides errors from it; check() raises them."""

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
            left = left[self._tried(lambda: self.file.write(left), len(left)) :]
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
        pass  # this file buffers nothing

    def readable(self):
        return True

    writable = seekable = readable

    def close(self):
        self.file.close()
        super().close()


class Columns:
    """Compressed datasets that grow, in the groups event, fragment and chunk. `checksums` has the CRC-32 of each dataset's values."""

    def __init__(self, file, level):
        self.file, self.options, self.rows = (
            file,
            {"compression": "gzip", "compression_opts": level, "shuffle": True} if level else {},
            {},
        )
        self.checksums = {}

    def append(self, name, values):
        values = np.asarray(values)
        self.checksums[name] = zlib.crc32(_little(values), self.checksums.get(name, 0))
        if name not in self.rows:
            rows = SLAB if values.dtype == np.uint8 else 16384
            self.file.create_dataset(
                name, shape=(0,), maxshape=(None,), dtype=values.dtype, chunks=(rows,), **self.options
            )
            self.rows[name] = 0
        dataset, before = self.file[name], self.rows[name]
        self.rows[name] = before + len(values)
        dataset.resize(self.rows[name], 0)
        dataset[before:] = values


def convert(paths, output, level=4, form="table"):
    h5py = needed("h5py", "converting to HDF5")
    events = open_files(paths)
    refuse_other_runs(events, paths)
    chunks = holds_chunk_records(events)
    progress = Progress(f"converting to {output}", len(events))
    with new_file(output) as part, contextlib.closing(Written(part)) as written:
        with h5py.File(written, "w", libver="v110") as file:
            out = Columns(file, level)
            describe(file, events, paths, out.checksums)
            fill(out, events, paths, chunks, progress, written.check)
            file.attrs["events"] = file["event/l1_id"].shape[0] if "event/l1_id" in file else 0
            file.attrs["left_out_events"] = events.error_count
            file.attrs["checksums"] = json.dumps(out.checksums | {"attributes": attributes_sum(file)})
        written.check()
    progress.finish()
    say_made(events, output, form)
    return told(events)


def say_made(events, output, form):
    """Prints the name and contents of the new file in the format of `-o`."""
    name = os.fsencode(output).decode("utf-8", "backslashreplace")
    columns = {
        "file": name,
        "events": len(events) - events.error_count,
        "damaged_events": events.error_count,
        "bytes": os.path.getsize(output),
    }
    if form == "json":
        print(json.dumps(columns))
    elif form == "csv":
        csv.writer(sys.stdout, lineterminator="\n").writerows([columns.keys(), columns.values()])
    else:
        count = {key: f"{value:,}".replace(",", " ") for key, value in columns.items() if key != "file"}
        print(f"{name}: {count['events']} events, {count['bytes']} bytes")


def refuse_other_runs(events, paths):
    """Refuses files of several runs: the HDF5 file is converted back to one event file, which has one run."""
    runs = [
        (path, number)
        for path, number in ((path, events.info(i).get("run_number")) for i, path in enumerate(paths))
        if number is not None
    ]
    for path, number in runs:
        if number != runs[0][1]:
            raise Refused(
                "data.other_run",
                f"is of run {number}, {os.fsdecode(runs[0][0])} is of run {runs[0][1]}",
                path,
                "convert the files of one run at a time",
            )


def told(events):
    """Lists damaged events and returns the exit status."""
    for error in list(events.errors)[:20]:
        say(f"note: left out: {error}")
    if events.error_count:
        say(f"note: {events.error_count} damaged events were left out")
    return NOT_VERIFIED if events.error_count else 0


def holds_chunk_records(events):
    """Whether event data are chunk records, as only Rodeo writes them. For a file without events, the file's records decide."""
    try:
        for columns in events[:1].iterate(["chunk.size"], events=1):
            return columns.events > 0
    except ValueError:
        return False
    return len(events) > 0 or "Rodeo-Format=1" in events.info(0).get("free_strings", [])


def _little(values):
    """The values as little-endian bytes, the same on every machine."""
    return np.ascontiguousarray(values, values.dtype.newbyteorder("<")).tobytes()


def attributes_sum(file):
    """CRC-32 of the attributes of the root and of the records, without the checksums."""
    said = {key: str(value) for key, value in file.attrs.items() if key != "checksums"}
    names = [str(file[f"file/{number}"].attrs.get("name", "")) for number in range(int(file.attrs["files"]))]
    return zlib.crc32(json.dumps([said, names], sort_keys=True).encode())


def describe(file, events, paths, checksums):
    file.attrs.update({"format": FORMAT, "version": VERSION, "files": len(paths)})
    info = events.info(0)
    file.attrs["info"] = json.dumps(info, default=str)
    for number, path in enumerate(paths):
        records = layout.file_records(path)
        dataset = file.create_dataset(f"file/{number}", data=np.frombuffer(records, np.uint8))
        checksums[f"file/{number}"] = zlib.crc32(records)
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
        out.append("event/crc32", piece.crcs)
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
    """Writes to stdout, for the process that checks the events and writes the event file: the number of records, the records, the events, END. Each
    record and event follows its size."""
    h5py = needed("h5py", "converting from HDF5")
    try:
        file = h5py.File(path, "r")
    except OSError as error:
        raise Refused("data.unknown_kind", f"is not a readable HDF5 file ({error})", path) from None
    with file:
        if file.attrs.get("format") != FORMAT or file.attrs.get("version") not in READ:
            raise Refused(
                "data.unknown_kind",
                "is an HDF5 file, but not one that `rodeo data convert` made",
                path,
                "its attribute `format` must be rodeo-events, `version` 1 or 2",
            )
        records = [f"file/{number}" for number in range(max(1, int(file.attrs.get("files", 1))))]
        if "event/byte_offsets" not in file or not all(name in file for name in records):
            raise Refused("data.damaged", "the HDF5 file lacks event offsets or file records", path)
        if has_checksums(file):
            refuse_what_was_changed(file, path)
        out = sys.stdout.buffer
        out.write(struct.pack("<I", len(records)))
        for name in records:
            one = _read(file, name, np.uint8, path).tobytes()
            out.write(struct.pack("<I", len(one)) + one)
        _send_events(file, path, out)
        out.write(struct.pack("<I", END))
        out.flush()
    return 0


def has_checksums(file):
    """Whether the file must match its checksums. A changed `version` alone turns no check off."""
    return file.attrs["version"] != 1 or "checksums" in file.attrs or "event/crc32" in file


def refuse_what_was_changed(file, path):
    """Checks every dataset and attribute but /bytes against its checksum. /bytes has a checksum for each event."""
    try:
        checksums = json.loads(file.attrs["checksums"])
        attributes = checksums.pop("attributes")
        checksums.pop("bytes", None)
    except (KeyError, ValueError, AttributeError):
        raise Refused("data.damaged", "the HDF5 file lacks its checksums", path) from None
    if "event/crc32" not in checksums:
        raise Refused("data.damaged", "the HDF5 file lacks the checksums of its events", path)
    there = []
    file.visititems(lambda name, item: there.append(name) if hasattr(item, "dtype") else None)
    for name in sorted(set(there) - set(checksums) - {"bytes"}):
        raise Refused("data.damaged", f"/{name} was added later", path)
    for name, checksum in checksums.items():
        if name not in file:
            raise Refused("data.damaged", f"/{name} is missing", path)
        if _sum(file, name, path) != checksum:
            raise Refused(
                "data.damaged",
                f"/{name} was changed: its checksum does not match",
                path,
                "convert the event files once more",
            )
    if attributes_sum(file) != attributes:
        raise Refused("data.damaged", "the attributes were changed: their checksum does not match", path)


def _sum(file, name, path):
    """CRC-32 of the values of a dataset, read in parts."""
    dataset, checksum = file[name], 0
    if not hasattr(dataset, "dtype") or dataset.ndim != 1:
        return None
    for at in range(0, dataset.shape[0], SLAB):
        try:
            checksum = zlib.crc32(_little(dataset[at : at + SLAB]), checksum)
        except OSError as error:
            raise Refused("data.damaged", f"/{name} cannot be read ({error})", path) from None
    return checksum


def _column(file, field, path):
    if f"event/{field}" not in file:
        raise Refused("data.damaged", f"/event/{field} is missing", path)
    return _read(file, f"event/{field}", np.integer, path)


def refuse_other_columns(columns, number, event, path):
    """For a file without checksums: refuses columns that differ from the header of the event."""
    for field, value in layout.header_fields(event).items():
        if number >= len(columns[field]) or int(columns[field][number]) != value:
            raise Refused(
                "data.damaged",
                f"/event/{field}: the value of event {number} differs from its bytes",
                path,
                "convert the event files once more",
            )


def _read(file, name, kind, path, where=slice(None)):
    """Reads values and refuses other types: converted to bytes, they would make wrong events."""
    if not np.issubdtype(file[name].dtype, kind) or file[name].ndim != 1:
        raise Refused(
            "data.damaged", f"/{name} is {file[name].dtype}, not the type that `rodeo data convert` writes", path
        )
    try:
        return file[name][where]
    except OSError as error:
        raise Refused("data.damaged", f"/{name} cannot be read ({error})", path) from None


def _send_events(file, path, out):
    offsets = _read(file, "event/byte_offsets", np.integer, path).astype(np.int64)
    sizes = np.diff(offsets)
    there = file["bytes"].shape[0] if "bytes" in file and file["bytes"].ndim == 1 else 0
    if len(offsets) == 0 or offsets[0] != 0 or (sizes < 0).any() or (sizes >= END).any() or offsets[-1] != there:
        raise Refused("data.damaged", "the offsets of events do not fit their bytes", path)
    checked = has_checksums(file)
    columns = {} if checked else {field: _column(file, field, path) for field in layout.HEADER_FIELDS}
    progress, done, at = Progress(f"converting {path}", len(sizes)), 0, 0
    while done < len(sizes):
        count = max(1, int(np.searchsorted(np.cumsum(sizes[done : done + 100_000]), 8 * SLAB)))
        total = int(sizes[done : done + count].sum())
        slab, place = _read(file, "bytes", np.uint8, path, slice(at, at + total)).tobytes() if total else b"", 0
        wanted = (
            _read(file, "event/crc32", np.integer, path, slice(done, done + count)).tolist()
            if checked
            else [None] * count
        )
        for number, size in enumerate(sizes[done : done + count].tolist()):
            event = slab[place : place + size]
            if checked and (number >= len(wanted) or zlib.crc32(event) != wanted[number]):
                raise Refused(
                    "data.damaged",
                    f"event {done + number} of /bytes was changed: its checksum does not match",
                    path,
                    "convert the event files once more",
                )
            if not checked:
                refuse_other_columns(columns, done + number, event, path)
            out.write(struct.pack("<I", size))
            out.write(event)
            place += size
        at, done = at + total, done + count
        progress(done)
    progress.finish()


if __name__ == "__main__":
    if sys.argv[1] == "--back":
        end(run(back, sys.argv[2]))
    end(run(lambda: convert(names(), sys.argv[1], int(sys.argv[2]), sys.argv[3])))
