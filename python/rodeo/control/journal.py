"""The journal of a system: every record for the database, in order, on disk before it is in the tables. A database that is gone loses nothing, nor does kill -9.

A file of JSON lines. The first says what was before it: {"journal": id, "after": sequence, "kept": what the records up to there left, "place": host, path and
inode of the file, "former": [[id, its last sequence], ...]}; each further one is {"journal": id, "sequence": n, "crc": of the record, "record": {...}}. A line
without its end was never acknowledged and is cut off.

An id belongs to one file. The tables count what they have by id, so two files with one id would lose each other's records. A file that is not at its place is
a copy or a restored backup: it keeps its lines under their ids, and goes on under a new id. Sequences go on across ids.
"""

import contextlib
import fcntl
import json
import os
import socket
import uuid
import zlib
from pathlib import Path

from rodeo.control.kept import Kept
from rodeo.control.refused import Refused

NAME = "journal.jsonl"
FORMER = 64  # former ids that a journal remembers


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
    """Of one process at a time. Not thread-safe: the caller holds a lock. All calls block for the disk.

    `kept`: what all records leave. `damaged`: lines that could not be read; `torn`: bytes of a last line that was never acknowledged. `former`: [(id, last
    sequence)], oldest first. `renewed`: why it got a new id when it was opened, or empty. `opened_last`: its last sequence then. `host`: this host's name.
    """

    def __init__(self, directory, host=None):
        self.path = Path(directory) / NAME
        self.host = host or socket.gethostname()
        self.former, self.renewed, self.opened_last = [], "", 0
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
        header = place = None
        for number, line in enumerate(self._lines()):
            if number == 0:
                header = _header(line)
                if header is not None:
                    self.id, self.after, self.kept, place, self.former = header
                    self.last = self.after
                    continue
            found = parsed(line)
            if header is None and found is not None and found[1] > self.last:
                self._learn_id(found[0])
            if found is None or found[1] <= self.last or found[0] != self.id_of(found[1]):
                self.damaged += 1
                continue
            self.last = found[1]
            self.kept.take(found[2])
        if self.torn:
            self._file.truncate(self._end)
        self.opened_last = self.last
        if header is None:  # what it began with is lost; what can be read of it goes on
            self.fresh = self.id is None
            self.headless = not self.fresh
        if self.fresh:
            self.id = uuid.uuid4().hex[:16]
            self._begin_anew([])
        elif why := _moved(place, self._place(self._file)):
            self.renew(why)
        self._file.seek(self._end)

    def _learn_id(self, name):
        """The first line is lost: the ids are those of the lines."""
        if self.id is not None and name != self.id:
            self.former.append((self.id, self.last))
        self.id = name

    def _place(self, file):
        return {"host": self.host, "path": os.path.realpath(self.path), "inode": os.fstat(file.fileno()).st_ino}

    def renew(self, why):
        """A new id for all that comes after `opened_last`. OSError: the old id stays."""
        was = self.id, self.former
        self.former = [*self.former, (self.id, self.opened_last)][-FORMER:]
        self.id = uuid.uuid4().hex[:16]
        try:
            self._begin_anew(list(self.records(self.after)), after=None if self.headless else self.after)
        except OSError:
            self.id, self.former = was
            raise
        self.renewed = why

    @property
    def ids(self):
        """All ids that its lines may have."""
        return [*(name for name, _ in self.former), self.id]

    def id_of(self, sequence):
        """The id under which a record of this sequence goes to the tables."""
        return next((name for name, last in self.former if sequence <= last), self.id)

    def applied(self, lasts):
        """The sequence up to which tables have its records, None if they know none of its ids. `lasts`: {id: last sequence in the tables}."""
        bounds = {**dict(self.former), self.id: None}
        known = [last if bounds[name] is None else min(last, bounds[name]) for name, last in lasts.items() if name in bounds]
        return max(known, default=None)

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
                if found is not None and found[1] > last and found[0] in self.ids:
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
        file = open(part, "w+b", buffering=0)
        header = {"journal": self.id, "after": after, "kept": kept.as_json(), "place": self._place(file), "former": self.former}
        data = json.dumps(header).encode() + b"\n" + b"".join(line_of(self.id_of(sequence), sequence, record) for sequence, record in rest)
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
        former = [(str(name), int(last)) for name, last in value.get("former") or []]
        return str(value["journal"]), int(value["after"]), Kept(value["kept"]), value.get("place"), former
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _moved(was, place):
    """Why a file at `place` is not the one whose first line says `was`; empty if it is. Pure."""
    if was == place:
        return ""
    if not isinstance(was, dict):
        return "its first line does not say where it belongs"
    if (was.get("host"), was.get("path")) != (place["host"], place["path"]):
        return f"it is a copy of {was.get('host')}:{was.get('path')}"
    return "it was put back from a copy"


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
