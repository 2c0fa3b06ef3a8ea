"""The run database of a system: one thread writes the journal, one the tables, one reads. Whoever calls waits for the journal, never for the tables.

A record is first in the journal, then in the tables; the tables know up to where, in the same transaction. So a process that is killed, or a database that
comes back after hours, leaves each record there once and in its order. What can be drawn only in the tables, the number of a run, waits for all before it.
"""

import asyncio
import contextlib
import logging
import os
import re
import threading
import time
from collections import deque
from concurrent.futures import Future
from pathlib import Path

from rodeo.control.journal import Journal
from rodeo.control.place import needed
from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.control")
BATCH = 200  # records in one transaction
UNWRITTEN = 20_000  # records at most that wait in memory while neither journal nor database takes them
COMPACT_BYTES = 2**20
IN_RUN_JSON = ("close", "flags", "transition", "process", "file", "counters", "lumi_block", "alarm", "note", "quality")
_FOLDER = re.compile(r"[0-9]{6,15}")  # of a run


class Database:
    """`url` as SQLAlchemy has it, `directory` where the journal is kept, `system` its name in the rows (else the directory's).

    `busy_s`: for how long another process may hold the database before it counts as gone; it is tried again each `retry_s`. `renew_after_s`: a file of SQLite that was removed is begun anew
    after so long, when no run is open. Owns its threads from open() to close().
    """

    def __init__(self, url, directory, system=None, *, busy_s=5.0, retry_s=1.0, renew_after_s=30.0):
        needed("sqlalchemy")
        from rodeo.control.reads import Reads
        from rodeo.control.schema import Schema
        from rodeo.control.writer import Writer

        self.directory = Path(directory)
        self.system = system or self.directory.absolute().name
        self.schema = Schema(url, busy_s=busy_s)
        self.retry_s, self.renew_after_s = retry_s, renew_after_s
        self.journal = Journal(self.directory)
        self.writer, self.reads = Writer(self), Reads(self.schema, before=self._settled)
        self._of_journal = threading.RLock()  # held while the disk is waited for; taken before the other
        self._lock = threading.RLock()  # of all below, for instants only
        self._wake_journal, self._wake_tables = threading.Condition(self._lock), threading.Condition(self._lock)
        self._incoming, self._pending, self._asks = deque(), deque(), deque()
        self._unwritten = {}  # sequence -> record: what the journal could not take
        self._sequence = self._applied = 0
        self._unusable = self._lost = self._counted = 0
        self._why = "it was not opened"
        self._since_ns = time.time_ns()
        self._journal_why = ""
        self._ending = False
        self._threads = []
        self._engine = self._connection = self._identity = None
        self._dirty = False
        self._lined_up = False  # once, since it was opened
        self._touched = set()  # runs of which something was written since their run.json
        self._missing_s = None
        self._next_s = 0.0

    # Life
    async def open(self):
        """Reads the journal and begins. A database that is gone is no error: see health(). Refused(control.database) if the journal cannot be kept."""
        await asyncio.to_thread(self._open)

    def _open(self):
        self.journal.open()
        self._sequence, self._applied = self.journal.last, self.journal.after
        if self.journal.damaged:
            LOG.error("%s: %d lines are damaged and left out", self.journal.path, self.journal.damaged)
        if self.journal.renewed:
            LOG.warning("%s: %s; it goes on under a new id", self.journal.path, self.journal.renewed)
        self._connect(first=True)
        for target in (self._write_journal, self._write_tables):
            thread = threading.Thread(target=target, daemon=True, name=f"rodeo {target.__name__.strip('_')}")
            thread.start()
            self._threads.append(thread)

    async def close(self):
        """Puts into the tables what can be, and ends the threads. What is left is in the journal."""
        await asyncio.to_thread(self._close)

    def _close(self):
        with self._lock:
            self._ending = True
            self._wake_journal.notify_all()
            self._wake_tables.notify_all()
        for thread in self._threads:
            thread.join()
        self._threads = []
        self.reads.close()
        if self._unwritten:
            self._lost += len(self._unwritten)
            LOG.error("%d records are in neither the journal nor the database: %s", len(self._unwritten), self._journal_why)
        self._disconnect()
        self.journal.close()

    def health(self):
        """{"state": good | gone, "why", "since_ns", "journal": records that are not in the tables yet, "unusable": records that fit no table, "lost": records
        that are nowhere, "journal_why": why the journal cannot be written, or empty}. Any thread."""
        with self._lock:
            return {"state": "gone" if self._why else "good", "why": self._why, "since_ns": self._since_ns, "journal": max(0, self._sequence - self._applied),
                    "unusable": self._unusable, "lost": self._lost + self.journal.damaged, "journal_why": self._journal_why}

    def floor(self, known=False):
        """The largest number that was given before, by the journal and the folders of runs, 0 if none: a database that is begun anew, or was put back from a
        copy, goes on behind it. `known`: the database has runs of this system, so that only folders with a run.json count; others may be anything."""
        numbers = [self.journal.kept.last_number]
        with contextlib.suppress(OSError):
            numbers += [int(each.name) for each in (self.directory / "runs").iterdir() if _FOLDER.fullmatch(each.name) and not (known and not (each / "run.json").is_file())]
        return max(numbers)

    def close_ended(self, connection):
        """Rows that are open, of runs whose run.json says how they ended: of a copy made during the run. They become what run.json says."""
        from rodeo.control import reads, run_json, runs

        for row in reads.open_runs(connection, self.system):
            record = run_json.ended(self.directory / "runs" / f"{row['number']:06d}")
            if record is not None and (record.get("number"), record.get("asked_ns"), record.get("system")) == (row["number"], row["asked_ns"], self.system):
                with contextlib.suppress(Refused), connection.begin_nested():
                    runs.put(connection, record)
                    LOG.warning("run %d is open in %s, and has ended: its row is what its run.json says", row["number"], self.schema)

    # For the writer
    def submit(self, record):
        """A record for the tables. The Future is done when it is on disk, or when it was seen that the disk does not take it. Any thread."""
        future = Future()
        with self._lock:
            if self._ending or not self._threads:
                raise Refused("control.database", "the run database is closed", "")
            self._sequence += 1
            self._incoming.append((self._sequence, record, future))
            self._wake_journal.notify()
        return future

    def ask(self, function):
        """A Future of function(connection), in the thread of the tables, in a transaction, behind all records that came before. It raises
        Refused(control.database) if the database is gone. Any thread."""
        future = Future()
        with self._lock:
            if self._ending or not self._threads:
                raise Refused("control.database", "the run database is closed", "")
            self._asks.append((self._sequence, function, future))
            self._wake_tables.notify()
        return future

    def kept(self, function):
        """function(Kept): what the journal knows of the open run, alarms and remembered facts, with all records that were submitted."""
        with self._lock:
            wanted = self._sequence
            while self._incoming and self._incoming[0][0] <= wanted and self._threads:
                self._wake_tables.wait(0.05)
        with self._of_journal:
            return function(self.journal.kept)

    # The thread of the journal
    def _write_journal(self):
        while True:
            with self._lock:
                if not self._incoming and not self._ending:
                    self._wake_journal.wait(self.retry_s)
                taken, ending = list(self._incoming), self._ending
            if taken or self._unwritten:
                self._journalled(taken)
            if ending and not taken:
                return

    def _journalled(self, taken):
        with self._of_journal:
            self._append(taken)
            with self._lock:
                for _ in taken:
                    self._incoming.popleft()
                if not self._why:  # else they are read from the file when the database is back
                    self._pending.extend((sequence, record) for sequence, record, _ in taken)
                self._wake_tables.notify_all()
        for _, _, future in taken:
            if not future.done():
                future.set_result(None)

    def _append(self, taken):
        """What could not be written before comes first: the order in the file is that of the records."""
        with self._lock:
            entries = [*sorted(self._unwritten.items()), *((sequence, record) for sequence, record, _ in taken)]
        if not entries:
            return
        try:
            self.journal.append(entries, kept_before=taken[0][0] if taken else entries[-1][0] + 1)
            with self._lock:
                self._unwritten.clear()
                self._journal_why = ""
        except OSError as error:
            if not self._journal_why:
                LOG.error("%s cannot be written: %s", self.journal.path, error)
            with self._lock:
                self._journal_why = f"{self.journal.path}: {error.strerror or error}"
                for sequence, record, _ in taken:
                    self.journal.kept.take(record)
                    self._unwritten[sequence] = record
                while len(self._unwritten) > UNWRITTEN:
                    del self._unwritten[min(self._unwritten)]
                    self._lost += 1

    # The thread of the tables
    def _write_tables(self):
        while True:
            with self._lock:
                idle = not self._ready() and not self._wake_tables.wait(self.retry_s)
                ending, asked = self._ending and not self._threads[0].is_alive(), len(self._asks)
            if self._connection is not None and self.schema.sqlite and (identity := self.schema.identity()) != self._identity:
                self._checkpoint()  # into the file that was moved, so that nothing of it is taken for a part of the other
                self._gone(f"{self.schema} is not there" if identity is None else f"another file was put in the place of {self.schema}")
            if self._connection is None and (asked or ending or time.monotonic() >= self._next_s):
                self._connect()
            if self._connection is not None:
                self._apply()
            self._answer(asked)
            if idle or ending:
                self._leave_run_json()
                self._checkpoint()
            if ending:
                return self._compact(least=0)

    def _ready(self):
        if self._why or self._ending:
            return bool(self._asks) or (self._ending and not self._threads[0].is_alive())
        return bool(self._pending) or bool(self._asks and self._asks[0][0] <= self._applied)

    def _apply(self):
        """Records into the tables, until none is left or the database is gone."""
        from rodeo.control import apply

        while self._connection is not None:
            with self._lock:
                records = [self._pending[index] for index in range(min(BATCH, len(self._pending)))]
            if not records:
                return self._compact(least=COMPACT_BYTES)
            journal = self.journal.id_of(records[0][0])
            records = [each for each in records if self.journal.id_of(each[0]) == journal]
            unusable = self._transaction(lambda connection: apply.batch(connection, journal, records))
            if self._connection is None:
                return None
            self._touched.update(number for _, record in records if record["kind"] in IN_RUN_JSON and isinstance(number := record.get("run", record.get("number")), int))
            with self._lock:
                for _ in records:
                    self._pending.popleft()
                self._applied = max(self._applied, records[-1][0])
                self._unusable += unusable
                for sequence, _ in records:
                    self._unwritten.pop(sequence, None)
                self._wake_tables.notify_all()

    def _answer(self, asked):
        """The first `asked` of those that wait: for those that came later the database has not been tried yet."""
        for _ in range(asked):
            with self._lock:
                after, function, future = self._asks[0]
                if self._connection is not None and self._applied < after and not self._ending:
                    return  # what came before it comes first
                self._asks.popleft()
                why = self._why
            if self._connection is None:
                future.set_exception(Refused("control.database", f"the run database is not there: {why}", "a run goes on; no run can be started until it is back"))
                continue
            try:
                value = self._transaction(function, again=3)
            except Exception as error:
                future.set_exception(error)
                continue
            if self._connection is None:
                future.set_exception(Refused("control.database", f"the run database is not there: {self._why}", "a run goes on; no run can be started until it is back"))
            else:
                future.set_result(value)

    def _transaction(self, function, again=0):
        """function(connection) in a transaction, or None and no connection any more if the database is gone. Where several may write at once (not SQLite),
        somebody else may take the same first number: then it is done `again`."""
        from rodeo.control.tables import sa

        self._dirty = True
        try:
            with self._connection.begin():
                return function(self._connection)
        except (sa.exc.SQLAlchemyError, OSError) as error:
            if isinstance(error, sa.exc.IntegrityError):
                if again:
                    return self._transaction(function, again - 1)
                raise
            from rodeo.control.schema import why

            self._gone(why(error, self.schema))
            return None

    def _leave_run_json(self):
        """Folders of runs that are closed have the same as the tables, also when these come late, or a note is written years later."""
        from rodeo.control import reads, run_json

        while self._connection is not None and self._touched:
            number = self._touched.pop()
            folder = self.directory / "runs" / f"{number:06d}"
            if not os.path.isdir(folder):
                continue
            with contextlib.suppress(Refused, OSError):  # no such run, or a disk that is full: nothing hangs on it
                record = self._transaction(lambda connection: reads.run(connection, number))
                if record is not None and record["state"] != "OPEN" and record["system"] == self.system:
                    run_json.keep(folder, record)

    def _checkpoint(self):
        """When there is nothing else to do, the file of SQLite alone is made to be the whole database: whoever copies or moves it has all."""
        if self._connection is None or not self.schema.sqlite or not self._dirty:
            return
        with contextlib.suppress(Exception):
            self._connection.connection.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            self._dirty = False

    def _gone(self, reason):
        LOG.error("the run database is gone: %s", reason)
        self._disconnect()
        with self._lock:
            self._why, self._since_ns, self._missing_s = reason, time.time_ns(), None
            self._pending.clear()  # the file has them
            self._next_s = time.monotonic() + self.retry_s

    def _disconnect(self):
        connection, engine, self._connection, self._engine = self._connection, self._engine, None, None
        with contextlib.suppress(Exception):
            if connection is not None:
                connection.invalidate()
                connection.close()
        with contextlib.suppress(Exception):
            if engine is not None:
                engine.dispose()

    def _may_create(self, first):
        """Whether a file that is not there may be made: in the beginning, or when it was removed and nothing of a run would be torn apart by that."""
        try:
            if not self.schema.sqlite or self.schema.path.exists():
                self._missing_s = None
                return False
            if not self.directory.is_dir() or not self.schema.path.parent.is_dir():
                return False
        except OSError:  # of a file that cannot be looked at nobody knows that it is not there
            return False
        with self._lock:
            if self.journal.kept.runs:
                return False
        now_s = time.monotonic()
        if self._missing_s is None:
            self._missing_s = now_s
        return first or now_s - self._missing_s >= self.renew_after_s

    def _connect(self, first=False):
        """Opens the database, and lines up what it does not have yet."""
        from rodeo.control.schema import why
        from rodeo.control.tables import journal, sa, unusable

        create = self._may_create(first)
        try:
            self._engine = self.schema.engine(create=create)
            self._connection = self._engine.connect()
            self.schema.bring_up(self._connection)
            self._identity = self.schema.identity()
            with self._connection.begin():
                rows = self._connection.execute(sa.select(journal.c.id, journal.c.last).where(journal.c.id.in_(self.journal.ids)))
                lasts = {row.id: row.last for row in rows}
            if not self._lined_up and lasts.get(self.journal.id, 0) > self.journal.opened_last:
                with self._of_journal:
                    self.journal.renew("the database has later records of it: it was put back from a copy")
                LOG.warning("%s: %s; it goes on under a new id", self.journal.path, self.journal.renewed)
            last = self.journal.applied(lasts)
            if create and not self.journal.fresh:
                LOG.error("%s was not there, and is begun anew; rodeo runs import reads the run.json of former runs into it", self.schema)
            self._line_up(last)
            with self._connection.begin():
                self._unusable = self._connection.execute(sa.select(sa.func.count()).select_from(unusable).where(unusable.c.journal.in_(self.journal.ids))).scalar()
        except Exception as error:
            if isinstance(error, Refused) and error.code == "control.package":
                raise
            self._disconnect()
            with self._lock:
                reason = why(error, self.schema)
                if reason != self._why:
                    LOG.error("the run database is gone: %s", reason)
                self._why, self._next_s = reason, time.monotonic() + self.retry_s
                self._pending.clear()
            return
        if first or self.journal.headless:
            self._seed()

    def _line_up(self, last):
        """Everything that the tables do not have, in order: from the file, and what it could not take."""
        with self._of_journal:
            after = self.journal.after
            lacking, last = 0 if last is None else max(0, after - last), after if last is None else last
            waiting = dict(self.journal.records(last))  # of a long run much is read: nobody else waits for that
            with self._lock:
                if lacking:
                    LOG.error("%s is older than its journal: %d records are in neither", self.schema, lacking)
                    self._lost += lacking - self._counted
                    self._counted = lacking
                self._sequence = max(self._sequence, last)  # a journal that was put back from a copy must not use numbers twice
                waiting.update({sequence: record for sequence, record in self._unwritten.items() if sequence > last})
                self._pending = deque(sorted(waiting.items()))
                self._applied = self._pending[0][0] - 1 if self._pending else self._sequence - len(self._incoming)
                self._why, self._since_ns, self._lined_up = "", time.time_ns(), True
                self._wake_tables.notify_all()

    def _seed(self):
        """A journal that is new, or has lost its first line, learns what the tables know that are older than its lines."""
        if not self.journal.fresh and not self.journal.headless:
            return
        from rodeo.control.reads import kept_of

        found = self._transaction(lambda connection: kept_of(connection, self.system))
        if found is not None:
            with self._of_journal, contextlib.suppress(OSError):
                for _, record in self.journal.records(0):
                    found.take(record)
                self.journal.kept, self.journal.headless = found, False
                self.journal.compact(self.journal.after)

    def _compact(self, least):
        """The journal forgets what is in the tables, when no run is open: until then it can bring the run back alone."""
        with self._of_journal:
            with self._lock:
                if self._why or self._pending or self._incoming or self._unwritten or self._applied < self._sequence or self.journal.kept.runs or self.journal.size < least:
                    return
                if self.journal.after == self._applied:
                    return
            try:  # the disk is waited for without the lock: what comes meanwhile is written behind it
                self.journal.compact(self._applied)
            except OSError as error:
                LOG.warning("%s cannot be made shorter: %s", self.journal.path, error)

    def _settled(self, limit_s=5.0):
        """Before something is read: waits until what was submitted is in the tables, unless the database is gone."""
        end = time.monotonic() + limit_s
        with self._lock:
            wanted = self._sequence
            while self._applied < wanted and not self._why and self._threads and time.monotonic() < end:
                self._wake_tables.wait(0.1)


def read_only(url, *, busy_s=5.0):
    """The Reads of a database that another process may be writing. Refused(control.database) if the URL is none."""
    needed("sqlalchemy")
    from rodeo.control.reads import Reads
    from rodeo.control.schema import Schema

    return Reads(Schema(url, busy_s=busy_s))


__all__ = ["Database", "read_only"]
