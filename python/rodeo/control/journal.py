"""The journal of a system: every record for the database, in order, on disk before it is in the tables. A database that is gone loses nothing, nor does kill -9.

A file of JSON lines. The first says what was before it: {"journal": id, "after": sequence, "kept": what the records up to there left}; each further one is
{"journal": id, "sequence": n, "crc": of the record, "record": {...}}. A line without its end was never acknowledged and is cut off.
"""

import contextlib
import fcntl
import json
import os
import uuid
import zlib
from pathlib import Path

from rodeo.control.kept import Kept
from rodeo.control.refused import Refused

NAME = "journal.jsonl"


def line_of(journal, sequence, record):
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return f'{{"journal":"{journal}","sequence":{sequence},"crc":{zlib.crc32(text.encode())},"record":{text}}}\n'.encode()


def parsed(line):
    """(journal, sequence, record) of a line, None if it is not whole."""
    try:
        value = json.loads(line)
        record = value["record"]
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        if value["crc"] == zlib.crc32(text.encode()) and isinstance(value["sequence"], int) and isinstance(record, dict):
            return value["journal"], value["sequence"], record
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    return None


class Journal:
    """Of one process at a time. Not thread-safe: whoever calls holds a lock. All calls block for the disk.

    `kept`: what all records leave. `damaged`: lines that could not be read; `torn`: bytes of a last line that was never acknowledged.
    """

    def __init__(self, directory):
        self.path = Path(directory) / NAME
        self.id, self.after, self.last = None, 0, 0
        self.kept = Kept()
        self.damaged = self.torn = 0
        self.fresh = False  # there was none before
        self.headless = False  # what it began with is lost: `kept` has only what its other lines leave
        self._file = self._lock = None
        self._end = 0

    def open(self):
        """Reads what is there. Refused(control.database) if another process has it, or it cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = open(f"{self.path}.lock", "ab")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise Refused("control.database", f"another control room writes {self.path}", "rodeo control status says which one runs") from None
        except OSError as error:
            raise Refused("control.database", f"cannot write {self.path}: {error.strerror}", "set control.directory to one that you may write to") from None
        try:
            self._read()
        except OSError as error:
            self._lock.close()
            raise Refused("control.database", f"cannot use {self.path}: {error.strerror}", "see that the disk has room and is healthy") from None

    def _read(self):
        with contextlib.suppress(FileNotFoundError):
            Path(f"{self.path}.part").unlink()
        try:
            self._file = open(self.path, "r+b", buffering=0)
        except FileNotFoundError:
            self.fresh, self.id = True, uuid.uuid4().hex[:16]
            self._begin_anew([])
            return
        header = None
        for number, line in enumerate(self._lines()):
            if number == 0:
                header = _header(line)
                if header is not None:
                    self.id, self.after, self.kept = header
                    self.last = self.after
                    continue
            found = parsed(line)
            if found is None or found[1] <= self.last or (self.id is not None and found[0] != self.id):
                self.damaged += 1
                continue
            self.id, self.last = found[0], found[1]
            self.kept.take(found[2])
        if self.torn:
            self._file.truncate(self._end)
        if header is None:  # what it began with is lost; what can be read of it goes on
            self.fresh = self.id is None
            self.headless = not self.fresh
            self.id = self.id or uuid.uuid4().hex[:16]
            self._begin_anew(list(self.records(0)))
        self._file.seek(self._end)

    def _lines(self):
        """Whole lines. Sets `_end` to the end of the last one."""
        self._end = self.torn = 0
        with open(self.path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    self.torn = len(line)
                    return
                self._end += len(line)
                yield line

    def records(self, after):
        """(sequence, record) of all that came after a sequence, in order, from the file."""
        last = after
        with open(self.path, "rb") as file:
            for line in file:
                found = parsed(line) if line.endswith(b"\n") else None
                if found is not None and found[1] > last and found[0] == self.id:
                    last = found[1]
                    yield found[1], found[2]

    @property
    def size(self):
        """Bytes."""
        return self._end

    def append(self, entries, kept_before=0):
        """Writes [(sequence, record)] and waits for the disk. OSError: nothing of it is written. Those before the sequence `kept_before` are in `kept` already,
        because they could not be written when they came."""
        data = b"".join(line_of(self.id, sequence, record) for sequence, record in entries)
        try:
            _write_all(self._file, data)
            os.fsync(self._file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                self._file.truncate(self._end)
                self._file.seek(self._end)
            raise
        self._end += len(data)
        self.last = entries[-1][0]
        for sequence, record in entries:
            if sequence >= kept_before:
                self.kept.take(record)

    def compact(self, applied):
        """Forgets what is in the tables, up to the sequence `applied`: a new file with what all of it left. OSError: the old one stays."""
        rest = list(self.records(applied)) if applied < self.last else []
        self._begin_anew(rest, after=min(applied, self.last))

    def _begin_anew(self, rest, after=None):
        kept = self.kept
        after = (rest[0][0] - 1 if rest else self.last) if after is None else after
        part = f"{self.path}.part"
        header = json.dumps({"journal": self.id, "after": after, "kept": kept.as_json()}).encode() + b"\n"
        data = header + b"".join(line_of(self.id, sequence, record) for sequence, record in rest)
        file = open(part, "w+b", buffering=0)
        try:
            _write_all(file, data)
            os.fsync(file.fileno())
            os.replace(part, self.path)
            _sync_directory(self.path.parent)
        except OSError:
            file.close()
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
        if self._file is not None:
            self._file.close()
        self._file, self._end, self.after = file, len(data), after

    def close(self):
        for each in (self._file, self._lock):
            if each is not None:
                each.close()
        self._file = self._lock = None


def _header(line):
    try:
        value = json.loads(line)
        return str(value["journal"]), int(value["after"]), Kept(value["kept"])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _write_all(file, data):
    """A disk with little room takes a part of it, and refuses the rest only when that is tried."""
    left = memoryview(data)
    while left:
        left = left[file.write(left):]


def _sync_directory(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
