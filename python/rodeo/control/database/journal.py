"""The journal of a system has every record for the database, in order, on disk before it is in the tables. Records survive a missing database and kill -9.

A file of JSON lines. The first line describes the state before it: {"journal": id, "after": sequence, "kept": result of the records up to there,
"place": host, path and inode of the file, "former": [[id, its last sequence], ...]}. Each further line is {"journal": id, "sequence": n, "crc": checksum
of the record, "record": {...}}. A last line without its end was never acknowledged, and is cut off.

An id belongs to one file. The tables count their records by id, so two files with one id would lose each other's records. A file that is not at its place is
a copy or a restored backup: its lines keep their ids, and new lines get a new id. Sequences continue across ids.
"""

import contextlib
import fcntl
import json
import os
import socket
import uuid
import zlib
from pathlib import Path

from rodeo.control.database.journal_state import Kept
from rodeo.control.refused import Refused

NAME = "journal.jsonl"
FORMER = 64  # former ids that a journal remembers


def line_of(journal, sequence, record):
    text = json.dumps(record, sort_keys=True, separators=(",", ":"))
    return (
        f'{{"journal":"{journal}","sequence":{sequence},"crc":{zlib.crc32(text.encode())},"record":{text}}}\n'.encode()
    )


def parsed(line):
    """Returns (journal, sequence, record) of a line, or None if the line is damaged."""
    try:
        value = json.loads(line)
        record = value["record"]
        text = json.dumps(record, sort_keys=True, separators=(",", ":"))
        if (
            value["crc"] == zlib.crc32(text.encode())
            and isinstance(value["sequence"], int)
            and isinstance(record, dict)
        ):
            return value["journal"], value["sequence"], record
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    return None


class Journal:
    """Used by one process at a time. Not thread-safe: the caller holds a lock. All calls block for the disk.

    `kept` is the result of all records. `damaged` counts unreadable lines; `torn` counts bytes of a last line that was never acknowledged.
    `former` is [(id, last sequence)], oldest first. `renewed` says why the journal got a new id, or is empty. `opened_last` is its last sequence
    at open(). `host` is this host's name.
    """

    def __init__(self, directory, host=None):
        self.path = Path(directory) / NAME
        self.host = host or socket.gethostname()
        self.former, self.renewed, self.opened_last = [], "", 0
        self.id, self.after, self.last = None, 0, 0
        self.kept = Kept()
        self.damaged = self.torn = 0
        self.fresh = False  # no journal existed
        self.headless = False  # the first line is lost: `kept` has only the result of the other lines
        self._file = self._lock = None
        self._end = 0

    def open(self):
        """Locks and reads the file. Refused(control.database) if another process has it, or it cannot be written."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._lock = open(f"{self.path}.lock", "ab")
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise Refused(
                "control.database",
                f"another control room writes {self.path}",
                "rodeo control status shows which one runs",
            ) from None
        except OSError as error:
            raise Refused(
                "control.database",
                f"cannot write {self.path}: {error.strerror}",
                "set control.directory to a directory that you may write to",
            ) from None
        try:
            self._read()
        except OSError as error:
            self._lock.close()
            raise Refused(
                "control.database",
                f"cannot use {self.path}: {error.strerror}",
                "check that the disk has free space and no errors",
            ) from None

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
            self.kept.add(found[2])
        if self.torn:
            self._file.truncate(self._end)
        self.opened_last = self.last
        if header is None:  # the first line is lost; the readable lines stay
            self.fresh = self.id is None
            self.headless = not self.fresh
        if self.fresh:
            self.id = uuid.uuid4().hex[:16]
            self._begin_anew([])
        elif why := _moved(place, self._place(self._file)):
            self.renew(why)
        self._file.seek(self._end)

    def _learn_id(self, name):
        """Reads the ids from the lines when the first line is lost."""
        if self.id is not None and name != self.id:
            self.former.append((self.id, self.last))
        self.id = name

    def _place(self, file):
        return {"host": self.host, "path": os.path.realpath(self.path), "inode": os.fstat(file.fileno()).st_ino}

    def renew(self, why):
        """Gives records after `opened_last` a new id. OSError: the old id stays."""
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
        """Returns all ids that the lines may have."""
        return [*(name for name, _ in self.former), self.id]

    def id_of(self, sequence):
        """Returns the id under which a record of this sequence goes to the tables."""
        return next((name for name, last in self.former if sequence <= last), self.id)

    def applied(self, lasts):
        """Returns the last sequence that is in the tables, or None if they know none of the ids. `lasts` is {id: last sequence in the tables}."""
        bounds = {**dict(self.former), self.id: None}
        known = [
            last if bounds[name] is None else min(last, bounds[name]) for name, last in lasts.items() if name in bounds
        ]
        return max(known, default=None)

    def _lines(self):
        """Yields complete lines. Sets `_end` to the end of the last one."""
        self._end = self.torn = 0
        with open(self.path, "rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    self.torn = len(line)
                    return
                self._end += len(line)
                yield line

    def records(self, after):
        """Yields (sequence, record) of all records after a sequence, in order, from the file."""
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
        """Writes [(sequence, record)] and waits for the disk. OSError: none of them is written. Records before the sequence `kept_before` are in `kept`
        already, because an earlier attempt to write them failed."""
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
                self.kept.add(record)

    def compact(self, applied):
        """Removes records up to the sequence `applied`, which are in the tables: a new file begins with their result. OSError: the old file stays."""
        rest = list(self.records(applied)) if applied < self.last else []
        self._begin_anew(rest, after=min(applied, self.last))

    def _begin_anew(self, rest, after=None):
        kept = self.kept
        after = (rest[0][0] - 1 if rest else self.last) if after is None else after
        part = f"{self.path}.part"
        file = open(part, "w+b", buffering=0)
        header = {
            "journal": self.id,
            "after": after,
            "kept": kept.as_json(),
            "place": self._place(file),
            "former": self.former,
        }
        data = (
            json.dumps(header).encode()
            + b"\n"
            + b"".join(line_of(self.id_of(sequence), sequence, record) for sequence, record in rest)
        )
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
    """Says why a file at `place` is another file than the one at `was`, the place in its first line. Empty: it is the same file. Pure."""
    if was == place:
        return ""
    if not isinstance(was, dict):
        return "its first line does not contain its place"
    if (was.get("host"), was.get("path")) != (place["host"], place["path"]):
        return f"it is a copy of {was.get('host')}:{was.get('path')}"
    return "it was restored from a copy"


def _write_all(file, data):
    """Writes in a loop: a nearly full disk accepts a part, and fails only at the next write."""
    left = memoryview(data)
    while left:
        left = left[file.write(left) :]


def _sync_directory(path):
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
