"""The run database of a room: one SQLite file, runs.db, is the truth. One thread writes it. If `control.database` names a server, another thread feeds the server
(feed.py). README.md has the states.
"""

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import re
import socket
import threading
import time
import uuid
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from rodeo.control.paths import needed
from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.control")
NAME = "runs.db"
BATCH = 200  # records in one transaction
UNWRITTEN = 20_000  # the largest number of records in memory while the file cannot be written
IN_RUN_JSON = (
    "open",
    "close",
    "flags",
    "transition",
    "process",
    "file",
    "counters",
    "lumi_block",
    "alarm",
    "note",
    "quality",
)
_FOLDER = re.compile(r"[0-9]{6,15}")  # the folder of a run


@dataclass(frozen=True)
class Drawn:
    """The result of a question that has written the next record itself."""

    record: dict


class Database:
    """`url` is SQLAlchemy's: `directory`/runs.db, or the server that this file feeds. `system` is the name in the rows (default: the directory's name).

    A database that another process locks for longer than `busy_s` counts as gone; the next attempt follows after `retry_s`. A removed SQLite file
    is made anew after `renew_after_s`, when no run is open. `block`: how many run numbers are reserved at once. `host`: this host's name.
    Owns its threads from open() to close().
    """

    def __init__(
        self, url, directory, system=None, *, busy_s=5.0, retry_s=1.0, renew_after_s=30.0, block=None, host=None
    ):
        needed("sqlalchemy")
        from rodeo.control.database.connection import Connection
        from rodeo.control.database.feed import Feed
        from rodeo.control.database.queries import Reads
        from rodeo.control.database.run_numbers import BLOCK
        from rodeo.control.database.schema import Schema
        from rodeo.control.database.writer import Writer

        self.directory = Path(directory).absolute()
        self.system, self.host = system or self.directory.name, host or socket.gethostname()
        self.retry_s = retry_s
        named, path, times = Schema(url, busy_s=busy_s), self.directory / NAME, {"retry_s": retry_s}
        times["renew_after_s"] = renew_after_s
        self.schema = named if named.path == path else Schema(f"sqlite:///{path}", busy_s=busy_s)
        self.file = Connection(self.schema, **times)
        self.feed = None if named is self.schema else Feed(self, named, block=block or BLOCK, **times)
        self.writer = Writer(self)
        self.here = Reads(self.schema, before=self._wait_for_file)
        self.reads = self.here if self.feed is None else Reads(named, before=self._wait_for_server)

        self.id, self.ids, self.renewed = None, [], ""
        self.left = None  # run numbers in the blocks; None while the file is gone
        self.runs = set()  # open runs of this system
        self.fresh = False  # the file was made at open(), and no older version has left a journal
        self._lock = threading.Lock()  # protects _queue, _ending; held briefly
        self._wake = threading.Condition(self._lock)
        self._queue, self._ending, self._thread, self._lock_file = deque(), False, None, None
        # Of the thread that writes the file; others read numbers only.
        self._recent = deque()  # (sequence, record): unwritten ones, and all since the last moment without an open run
        self._sequence = self._written = self._opened = self._given = 0
        self._outbox = self._unusable = self._lost = 0
        self._facts = {}  # key -> record of a remembered fact
        self._touched = set()  # runs with records newer than their run.json

    # Life
    async def open(self):
        """Opens the file and starts the threads. Refused(control.database) if the file cannot be used: a room needs its store. A missing server is no error."""
        await asyncio.to_thread(self._open)

    def _open(self):
        if self.feed is not None:
            self.feed.server.schema.engine().dispose()  # its driver is there, else Refused(control.package)
        self._lock_directory()
        try:
            self._take_over()
        except BaseException:
            self.file.close()
            self._lock_file.close()
            raise
        self._thread = threading.Thread(target=self._run, daemon=True, name="rodeo writes the run database")
        self._thread.start()
        if self.feed is not None:
            self.feed.start()

    def _take_over(self):
        new = not os.path.lexists(self.schema.path)
        self.file.connect(self._begin, create=new)
        if not self.file.good:
            newer = "newer version" in self.file.why
            raise Refused(
                "control.database_version" if newer else "control.database",
                self.file.why,
                "use that version"
                if newer
                else "check its disk; put the file or a copy back, or move it away: a room without runs.db makes a new one",
            )
        journal = self._journal()
        if journal.exists():
            os.replace(journal, f"{journal}.taken")
        if new and any(self._folders()):
            LOG.error("%s did not exist; rodeo runs import reads the run.json of former runs into it", self.schema)
        if self.renewed:
            LOG.warning("%s: %s; it continues under a new id", self.schema, self.renewed)

    async def close(self):
        """Writes all records, feeds the server as long as it answers, and ends the threads. The rest waits in the file."""
        await asyncio.to_thread(self._close)

    def _close(self):
        if self.feed is not None:
            self.feed.end()
        with self._lock:
            self._ending = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        for reads in {self.here, self.reads}:
            reads.close()
        if unwritten := self._sequence - self._written:
            self._lost += unwritten
            LOG.error("%d records are not in %s: %s", unwritten, self.schema, self.file.why)
        self.file.close()
        if self._lock_file is not None:
            self._lock_file.close()

    def _lock_directory(self):
        path = f"{self.schema.path}.lock"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock_file = open(path, "ab")
            fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock_file.close()
            raise Refused(
                "control.database",
                f"another control room writes {self.schema}",
                "rodeo control status shows which one runs",
            ) from None
        except OSError as error:
            raise Refused(
                "control.database",
                f"cannot write {path}: {error.strerror}",
                "set control.directory to a directory that you may write to",
            ) from None

    def health(self):
        """{"state": good | gone, "why", "since_ns", "journal": records that the file or the server lacks, "unusable": records that fit no table, "lost": lost
        records, "file_why": why the file cannot be written, or empty, "run_numbers": how many are left, None without a server}. Any thread."""
        feed, bad = self.feed, [each for each in (self.file, self.feed and self.feed.server) if each and each.why]
        return {
            "state": "gone" if bad else "good",
            "why": "; ".join(each.why for each in bad),
            "since_ns": bad[0].since_ns if bad else (feed.server if feed else self.file).since_ns,
            "journal": len(self._queue) + self._sequence - max(self._written, feed.fed if feed else 0) + self._outbox,
            "unusable": feed.unusable if feed else self._unusable,
            "lost": self._lost + (feed.lost if feed else 0),
            "file_why": self.file.why,
            "run_numbers": 0 if self.file.why else self.left if feed else None,
        }

    # For the writer
    def submit(self, record):
        """Submits a record. The Future is done when the record is on disk, or when the write has failed. Any thread."""
        return self._put(record)

    def ask(self, function):
        """Returns a Future of function(connection). The thread of the file calls the function in a transaction, after all earlier records. The Future raises
        Refused(control.database) if the file is gone. Any thread."""
        return self._put(function)

    def draw(self, record):
        """Returns a Future of the number of a new run, whose row is written in the same transaction. Refused: control.run_open, control.database."""
        return self._put(lambda connection: self._draw(connection, record))

    def _put(self, what):
        future = Future()
        with self._lock:
            if self._ending or self._thread is None:
                raise Refused("control.database", "the run database is closed", "")
            self._queue.append((what, future))
            self._wake.notify_all()
        return future

    def close_ended(self, connection):
        """Closes open rows of runs that have ended according to their run.json, as in a copy made during the run. The rows get the values of run.json."""
        from rodeo.control.database import import_runs, queries, run_json

        for row in queries.open_runs(connection, self.system):
            record = run_json.ended(self.directory / "runs" / f"{row['number']:06d}")
            if record is not None and (record.get("number"), record.get("asked_ns"), record.get("system")) == (
                row["number"],
                row["asked_ns"],
                self.system,
            ):
                with contextlib.suppress(Refused), connection.begin_nested():
                    import_runs.put(connection, record)
                    self.runs.discard(row["number"])
                    LOG.warning(
                        "run %d is open in %s, but has ended: its row is taken from its run.json",
                        row["number"],
                        self.schema,
                    )

    # Run numbers
    def _draw(self, connection, record):
        from rodeo.control.database import queries, run_numbers

        self.close_ended(connection)
        if opened := queries.open_runs(connection, record["system"]):
            number = opened[-1]["number"]
            raise Refused(
                "control.run_open",
                f"run {number} of `{record['system']}` is open",
                "rodeo control stop ends it; if no room has it, a new room of this system closes it",
            )
        if self.feed is None:
            number, _ = run_numbers.reserve(connection, record["system"], least=self._least(connection))
        elif (number := run_numbers.take(connection, self._used)) is None:
            raise Refused(
                "control.database",
                "no run number is left: " + (self.feed.server.why or "the server has not given any yet"),
                "runs can start when the server of control.database is back",
            )
        record = {**record, "kind": "open", "number": number}
        if self._apply(connection, [(self._sequence + 1, record)]):
            raise Refused("control.database", f"the record of run {number} fits no table", "")
        return Drawn(record)

    def _folders(self):
        """Yields (number, folder) of the folders of runs."""
        with contextlib.suppress(OSError):
            for each in (self.directory / "runs").iterdir():
                if _FOLDER.fullmatch(each.name):
                    yield int(each.name), each

    def _least(self, connection):
        """Returns the least number that the next run may have: a new file, or one restored from a copy, continues after the folders of runs. If the file has
        runs of this system, only folders with a run.json count, because others may be anything."""
        from rodeo.control.database.tables import run_number, sa

        known = sa.select(run_number.c.last).where(run_number.c.system == self.system)
        known = connection.execute(known).scalar() is not None
        numbers = [n for n, folder in self._folders() if not known or (folder / "run.json").is_file()]
        return max([self._given, *numbers]) + 1

    def _used(self, first, last):
        return max((n for n in (self._given, *(n for n, _ in self._folders())) if first <= n <= last), default=0)

    # For the feed
    def to_feed(self):
        """Returns how many records the server lacks, and can have now."""
        if self.file.good or self._outbox:
            return self._outbox if self.file.good else 0
        return max(0, self._sequence - max(self._written, self.feed.fed))

    def next_records(self, count):
        """Returns [(store, sequence, record)], the next ones for the server. While the file cannot be written, they come from memory: the server may be on
        another disk. Records that wait in the file come first."""
        from rodeo.control.database.tables import outbox, sa

        query = sa.select(outbox.c.store, outbox.c.sequence, outbox.c.record).order_by(outbox.c.sequence).limit(count)
        with contextlib.suppress(Refused):
            return [
                (row.store, row.sequence, json.loads(row.record))
                for row in self.ask(lambda connection: connection.execute(query).all()).result()
            ]
        after = max(self._written, self.feed.fed)
        with self._lock:
            return [(self.id, *each) for each in self._recent if each[0] > after and not self._outbox][:count]

    def was_fed(self, sequence):
        """Removes what the server has."""
        from rodeo.control.database.tables import outbox

        fed = outbox.delete().where(outbox.c.sequence <= sequence)
        with contextlib.suppress(Refused):
            self.ask(lambda connection: connection.execute(fed).rowcount).result()

    def before_outbox(self):
        """Returns the last sequence that a good server has."""
        from rodeo.control.database.tables import outbox, sa

        first = sa.select(sa.func.min(outbox.c.sequence))
        return (self.ask(lambda connection: connection.execute(first).scalar()).result() or self._written + 1) - 1

    def meet(self, last, standing):
        """The first talk with the server since open(). `last`: what it has under this store's id. `standing`: what stands for this system, for a new store."""
        from rodeo.control.database.old_journal import stand

        def begin(connection):
            if last > self._opened:
                self._renew(connection, "the server has later records of it: it was restored from a copy")
                self._place(connection)
            if standing is not None and self._sequence == self._opened:
                stand(connection, self.system, standing)

        self.ask(begin).result()

    def least(self):
        from rodeo.control.database import run_numbers

        return self.ask(lambda connection: max(self._least(connection), run_numbers.highest(connection) + 1)).result()

    def add_block(self, first, last):
        from rodeo.control.database import run_numbers

        self.ask(lambda connection: run_numbers.add(connection, first, last)).result()

    # The thread of the file
    def _run(self):
        while True:
            with self._lock:
                if not self._queue and not self._ending:
                    self._wake.wait(self.retry_s)
                items, ending = list(self._queue), self._ending
            self.file.look()
            asked = any(not isinstance(what, dict) for what, _ in items)
            if not self.file.good and (asked or ending or time.monotonic() >= self.file.next_s):
                create = self.file.may_create(time.monotonic()) and not self.runs
                self.file.connect(lambda connection: self._rejoin(connection, create), create)
                if not self.file.good:
                    self.left = None
            self._do(items)
            if not items:
                self._write()
                self._leave_run_json()
                self.file.checkpoint()
                if ending:
                    return

    def _do(self, items):
        for is_record, group in groupby(items, key=lambda item: isinstance(item[0], dict)):
            group = list(group)
            if is_record:
                for record, _ in group:
                    self._keep(record)
                self._write()
            for what, future in group:
                answer = None
                try:
                    answer = None if is_record else self._answer(what)
                except Exception as error:
                    self._done(future, error=error)
                else:
                    self._done(future, answer)

    def _done(self, future, value=None, error=None):
        with self._lock:
            self._queue.popleft()
        if future.set_running_or_notify_cancel():
            future.set_result(value) if error is None else future.set_exception(error)

    def _answer(self, function):
        value = self._transaction(function) if self.file.good else None
        if not self.file.good:
            raise Refused(
                "control.database",
                f"the run database is gone: {self.file.why}",
                "an open run continues; no run can start until the database is back",
            )
        if isinstance(value, Drawn):
            self._keep(value.record)
            self._wrote([self._recent[-1]])
            self._given = max(self._given, value.record["number"])
            return value.record["number"]
        return value

    def _keep(self, record):
        """Gives a record its sequence, and keeps it in memory."""
        with self._lock:
            self._sequence += 1
            self._recent.append((self._sequence, record))
            if len(self._recent) > UNWRITTEN and self._recent.popleft()[0] > self._written:
                self._lost += 1
        with contextlib.suppress(LookupError):
            if record["kind"] == "open" and record["system"] == self.system:
                self.runs.add(record["number"])
            elif record["kind"] == "close":
                self.runs.discard(record["number"])
            elif record["kind"] == "remember":
                self._facts[record["key"]] = record

    def _write(self):
        """Writes the records in memory, until none is left or the file is gone."""
        while self.file.good and self._written < self._sequence:
            after = self._written
            batch = list(islice((each for each in self._recent if each[0] > after), BATCH))
            self._transaction(lambda connection: self._apply(connection, batch))
            if self.file.good:
                self._wrote(batch)

    def _wrote(self, batch):
        self._written = batch[-1][0]
        self._touched.update(
            number
            for _, record in batch
            if record["kind"] in IN_RUN_JSON and isinstance(number := record.get("run", record.get("number")), int)
        )
        with self._lock:
            while self._recent and not self.runs and self._recent[0][0] <= self._written:
                self._recent.popleft()
        if self.feed is not None:
            self.feed.wake()

    def _apply(self, connection, batch):
        """Puts [(sequence, record)] into the tables, and into the outbox for the server. Returns how many fit no table."""
        from rodeo.control.database import apply_records
        from rodeo.control.database.tables import outbox

        has = apply_records.position(connection, self.id) or 0
        unusable = apply_records.batch(connection, self.id, batch)
        waiting = [
            {"sequence": sequence, "store": self.id, "record": json.dumps(record)}
            for sequence, record in batch
            if self.feed is not None and sequence > max(has, self.feed.fed)
        ]
        if waiting:
            connection.execute(outbox.insert(), waiting)
        return unusable

    # The file
    def _journal(self):
        from rodeo.control.database.old_journal import NAME as journal

        return self.directory / journal

    def _begin(self, connection):
        """Takes the file over, at open(). In its first transaction."""
        from rodeo.control.database import apply_records, old_journal, queries
        from rodeo.control.database.tables import journal, sa, store

        row = connection.execute(sa.select(store)).first()
        self.fresh = row is None and not connection.execute(sa.select(journal.c.id)).first()
        self.id = uuid.uuid4().hex[:16] if row is None else row.id
        self._sequence = apply_records.position(connection, self.id) or 0
        if self._journal().exists():
            last, lost = old_journal.take(connection, self._journal(), self.system, self.feed is not None)
            self._sequence, self._lost, self.fresh = max(self._sequence, last), self._lost + lost, False
            if lost:
                LOG.error("%s: %d records are neither in it nor in %s", self._journal(), lost, self.schema)
        elif self.fresh:
            self._reopen(connection)
        self._opened = self._written = self._sequence
        if row is not None and (why := _moved(row, self.host, os.path.realpath(self.schema.path), self._inode())):
            self._renew(connection, why)
        self._place(connection)
        self._facts = {
            key: {"kind": "remember", "system": self.system, "key": key, "value": value}
            for key, value in queries.remembered(connection, self.system).items()
        }
        vars(self).update(self._count(connection))

    def _reopen(self, connection):
        """Gives a new file the open run of this system, as its run.json has it from its begin."""
        from rodeo.control.database import import_runs, run_json

        for _, folder in sorted(self._folders(), reverse=True):
            with contextlib.suppress(Refused):
                record = run_json.read(folder / run_json.NAME)
                if record.get("state") == "OPEN" and record.get("system") == self.system:
                    import_runs.put(connection, record, keep_open=True)
                    LOG.error("%s is new; run %d is open in its run.json", self.schema, record["number"])
                return

    def _rejoin(self, connection, new):
        """Goes on with a file that has come back, with a copy of it, or with a `new` one: the records since the last moment without a run are in memory."""
        from rodeo.control.database import apply_records

        has = apply_records.position(connection, self.id)
        first = self._recent[0][0] if self._recent else self._sequence + 1
        self._written = max(min(has or 0, self._sequence), first - 1)
        if new:
            LOG.error(
                "%s did not exist, and is made anew; rodeo runs import reads the run.json of former runs", self.schema
            )
            for record in list(self._facts.values()):
                self._keep(record)
        elif has is not None and (lacking := first - 1 - has) > 0:
            LOG.error("%s is older than its room: it lacks %d records", self.schema, lacking)
            self._lost += lacking
        self._place(connection)
        vars(self).update(self._count(connection))

    def _renew(self, connection, why):
        """Gives this file a new id: records after `_opened` are written under it. Its run numbers are dropped, because another file may give them."""
        from rodeo.control.database import run_numbers
        from rodeo.control.database.tables import outbox

        before, self.id, self.renewed = self.id, uuid.uuid4().hex[:16], why
        after = outbox.c.store == before, outbox.c.sequence > self._opened
        connection.execute(outbox.update().where(*after).values(store=self.id))
        run_numbers.drop(connection)
        if self._thread is not None:
            LOG.warning("%s: %s; it continues under a new id", self.schema, why)

    def _place(self, connection):
        """Writes where this file is, and under which id it writes."""
        from rodeo.control.database import apply_records
        from rodeo.control.database.tables import journal, store

        server = "" if self.feed is None else str(self.feed.server.schema)
        connection.execute(store.delete())
        place = {"host": self.host, "path": os.path.realpath(self.schema.path), "inode": self._inode()}
        connection.execute(store.insert().values(id=self.id, server=server, **place))
        if apply_records.position(connection, self.id) is None:
            connection.execute(journal.insert().values(id=self.id, last=self._written))

    def _inode(self):
        return os.stat(self.schema.path).st_ino

    def _count(self, connection):
        """Reads what other threads ask for."""
        from rodeo.control.database import queries, run_numbers
        from rodeo.control.database.tables import journal, outbox, sa, unusable

        found = {
            "_unusable": connection.execute(sa.select(sa.func.count()).select_from(unusable)).scalar(),
            "runs": {row["number"] for row in queries.open_runs(connection, self.system)},
        }
        if self.feed is not None:
            found["_outbox"] = connection.execute(sa.select(sa.func.count()).select_from(outbox)).scalar()
            found["left"] = run_numbers.left(connection)
            found["ids"] = list(connection.execute(sa.select(journal.c.id)).scalars())
        return found

    def _transaction(self, function):
        """Calls function(connection) in a transaction of the file, and then knows what it has changed."""
        found = self.file.transaction(lambda connection: (function(connection), self._count(connection)))
        if found is None:
            return None
        vars(self).update(found[1])
        return found[0]

    def _leave_run_json(self):
        """Updates run.json of closed runs, also for notes that follow years later."""
        while self.file.good and self._touched:
            number = self._touched.pop()
            if not self.leave_run_json(self.file, number) and self.feed is not None:
                self.feed.touched.add(number)

    def leave_run_json(self, connection, number):
        """Writes run.json from a database: at the begin of a run, and after its end. Returns False if the database does not have the run."""
        from rodeo.control.database import queries, run_json

        folder = self.directory / "runs" / f"{number:06d}"
        if folder.is_dir():
            try:
                record = connection.transaction(lambda one: queries.run(one, number))
                new = record is not None and (record["state"] != "OPEN" or not (folder / run_json.NAME).exists())
                if new and record["system"] == self.system:
                    run_json.keep(folder, record)
            except Refused:
                return False
            except OSError as error:
                LOG.warning("run.json of run %d: %s", number, error)
        return True

    def _wait_for_file(self, limit_s=5.0):
        """Waits until all submitted records are in the file, unless it is gone. Every read begins with this."""
        end = time.monotonic() + limit_s
        while (self._queue or self._written < self._sequence) and not self.file.why and time.monotonic() < end:
            time.sleep(0.01)

    def _wait_for_server(self, limit_s=5.0):
        end = time.monotonic() + limit_s
        while (health := self.health())["journal"] and health["state"] == "good" and time.monotonic() < end:
            time.sleep(0.01)


def _moved(row, host, path, inode):
    """Says why a file is another one than that of the row of `store`, or "". Pure."""
    if (row.host, row.path) != (host, path):
        return f"it is a copy of {row.host}:{row.path}"
    return "" if row.inode == inode else "it was restored from a copy"
