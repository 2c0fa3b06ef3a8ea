"""The run database of a system: one thread writes the journal, one the tables, one reads. Callers wait for the journal, never for the tables.

A record goes first to the journal, then to the tables. The same transaction stores its position in the journal. So each record is in the tables once
and in order, even if a process is killed or the database is away for hours. Only the tables can draw a run number: it waits for all records before it.
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

from rodeo.control.database.journal import Journal
from rodeo.control.paths import needed
from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.control")
BATCH = 200  # records in one transaction
UNWRITTEN = 20_000  # the largest number of records in memory while neither journal nor database accepts them
COMPACT_BYTES = 2**20
IN_RUN_JSON = ("close", "flags", "transition", "process", "file", "counters", "lumi_block", "alarm", "note", "quality")
_FOLDER = re.compile(r"[0-9]{6,15}")  # the folder of a run


class Database:
    """`url` is SQLAlchemy's, `directory` has the journal, `system` is the name in the rows (default: the directory's name).

    A database that another process locks for longer than `busy_s` counts as gone; the next attempt follows after `retry_s`. A removed SQLite file
    is made anew after `renew_after_s`, when no run is open. Owns its threads from open() to close().
    """

    def __init__(self, url, directory, system=None, *, busy_s=5.0, retry_s=1.0, renew_after_s=30.0):
        needed("sqlalchemy")
        from rodeo.control.database.queries import Reads
        from rodeo.control.database.schema import Schema
        from rodeo.control.database.writer import Writer

        self.directory = Path(directory)
        self.system = system or self.directory.absolute().name
        self.schema = Schema(url, busy_s=busy_s)
        self.retry_s, self.renew_after_s = retry_s, renew_after_s
        self.journal = Journal(self.directory)
        self.writer, self.reads = Writer(self), Reads(self.schema, before=self._wait_for_tables)
        self._of_journal = threading.RLock()  # held during waits for the disk; acquired before _lock
        self._lock = threading.RLock()  # protects all members below; held briefly
        self._wake_journal, self._wake_tables = threading.Condition(self._lock), threading.Condition(self._lock)
        self._incoming, self._pending, self._asks = deque(), deque(), deque()
        self._unwritten = {}  # sequence -> record that the journal could not write
        self._sequence = self._applied = 0
        self._unusable = self._lost = self._counted = 0
        self._why = "it was not opened"
        self._since_ns = time.time_ns()
        self._journal_why = ""
        self._ending = False
        self._threads = []
        self._engine = self._connection = self._identity = None
        self._dirty = False
        self._lined_up = False  # whether _line_up() has succeeded since open()
        self._touched = set()  # runs with records newer than their run.json
        self._missing_s = None
        self._next_s = 0.0

    # Life
    async def open(self):
        """Reads the journal and starts the threads. health() reports a missing database; that is no error. Refused(control.database) if the journal cannot
        be opened."""
        await asyncio.to_thread(self._open)

    def _open(self):
        self.journal.open()
        self._sequence, self._applied = self.journal.last, self.journal.after
        if self.journal.damaged:
            LOG.error("%s: %d damaged lines are left out", self.journal.path, self.journal.damaged)
        if self.journal.renewed:
            LOG.warning("%s: %s; it continues under a new id", self.journal.path, self.journal.renewed)
        self._connect(first=True)
        for target in (self._write_journal, self._write_tables):
            thread = threading.Thread(target=target, daemon=True, name=f"rodeo {target.__name__.strip('_')}")
            thread.start()
            self._threads.append(thread)

    async def close(self):
        """Writes as many records as possible to the tables, and ends the threads. The rest stays in the journal."""
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
            LOG.error(
                "%d records are in neither the journal nor the database: %s", len(self._unwritten), self._journal_why
            )
        self._disconnect()
        self.journal.close()

    def health(self):
        """{"state": good | gone, "why", "since_ns", "journal": records not yet in the tables, "unusable": records that fit no table, "lost": lost records,
        "journal_why": why the journal cannot be written, or empty}. Any thread."""
        with self._lock:
            return {
                "state": "gone" if self._why else "good",
                "why": self._why,
                "since_ns": self._since_ns,
                "journal": max(0, self._sequence - self._applied),
                "unusable": self._unusable,
                "lost": self._lost + self.journal.damaged,
                "journal_why": self._journal_why,
            }

    def floor(self, known=False):
        """Returns the largest run number given before, by the journal and the folders of runs, or 0: a new database, or one restored from a copy,
        continues after it. `known`: the database has runs of this system. Then only folders with a run.json count, because others may be anything."""
        numbers = [self.journal.kept.last_number]
        with contextlib.suppress(OSError):
            numbers += [
                int(each.name)
                for each in (self.directory / "runs").iterdir()
                if _FOLDER.fullmatch(each.name) and not (known and not (each / "run.json").is_file())
            ]
        return max(numbers)

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
                    LOG.warning(
                        "run %d is open in %s, but has ended: its row is taken from its run.json",
                        row["number"],
                        self.schema,
                    )

    # For the writer
    def submit(self, record):
        """Submits a record for the tables. The Future is done when the record is on disk, or when the write has failed. Any thread."""
        future = Future()
        with self._lock:
            if self._ending or not self._threads:
                raise Refused("control.database", "the run database is closed", "")
            self._sequence += 1
            self._incoming.append((self._sequence, record, future))
            self._wake_journal.notify()
        return future

    def ask(self, function):
        """Returns a Future of function(connection). The thread of the tables calls the function in a transaction, after all earlier records. The Future raises
        Refused(control.database) if the database is gone. Any thread."""
        future = Future()
        with self._lock:
            if self._ending or not self._threads:
                raise Refused("control.database", "the run database is closed", "")
            self._asks.append((self._sequence, function, future))
            self._wake_tables.notify()
        return future

    def kept(self, function):
        """Returns function(Kept). Kept has the journal's open run, alarms and remembered facts, including all submitted records."""
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
                if not self._why:  # else _line_up() reads them from the file when the database is back
                    self._pending.extend((sequence, record) for sequence, record, _ in taken)
                self._wake_tables.notify_all()
        for _, _, future in taken:
            if not future.done():
                future.set_result(None)

    def _append(self, taken):
        """Writes earlier failed records first, so that the file has the order of the records."""
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
                    self.journal.kept.add(record)
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
            if (
                self._connection is not None
                and self.schema.sqlite
                and (identity := self.schema.identity()) != self._identity
            ):
                self._checkpoint()  # into the moved file, so that its WAL is not taken for the new file's
                self._gone(
                    f"{self.schema} does not exist" if identity is None else f"another file has replaced {self.schema}"
                )
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
        """Writes records to the tables, until none is left or the database is gone."""
        from rodeo.control.database import apply_records

        while self._connection is not None:
            with self._lock:
                records = [self._pending[index] for index in range(min(BATCH, len(self._pending)))]
            if not records:
                return self._compact(least=COMPACT_BYTES)
            journal = self.journal.id_of(records[0][0])
            records = [each for each in records if self.journal.id_of(each[0]) == journal]
            unusable = self._transaction(lambda connection: apply_records.batch(connection, journal, records))
            if self._connection is None:
                return None
            self._touched.update(
                number
                for _, record in records
                if record["kind"] in IN_RUN_JSON and isinstance(number := record.get("run", record.get("number")), int)
            )
            with self._lock:
                for _ in records:
                    self._pending.popleft()
                self._applied = max(self._applied, records[-1][0])
                self._unusable += unusable
                for sequence, _ in records:
                    self._unwritten.pop(sequence, None)
                self._wake_tables.notify_all()

    def _answer(self, asked):
        """Answers the first `asked` waiting questions. The database has not been tried yet for later questions."""
        for _ in range(asked):
            with self._lock:
                after, function, future = self._asks[0]
                if self._connection is not None and self._applied < after and not self._ending:
                    return  # earlier records come first
                self._asks.popleft()
                why = self._why
            if self._connection is None:
                future.set_exception(
                    Refused(
                        "control.database",
                        f"the run database is gone: {why}",
                        "an open run continues; no run can start until the database is back",
                    )
                )
                continue
            try:
                value = self._transaction(function, again=3)
            except Exception as error:
                future.set_exception(error)
                continue
            if self._connection is None:
                future.set_exception(
                    Refused(
                        "control.database",
                        f"the run database is gone: {self._why}",
                        "an open run continues; no run can start until the database is back",
                    )
                )
            else:
                future.set_result(value)

    def _transaction(self, function, again=0):
        """Calls function(connection) in a transaction. If the database is gone, closes the connection and returns None. With several writers (not SQLite)
        another one may draw the same first number. Then this repeats the call, at most `again` times."""
        from rodeo.control.database.tables import sa

        self._dirty = True
        try:
            with self._connection.begin():
                return function(self._connection)
        except (sa.exc.SQLAlchemyError, OSError) as error:
            if isinstance(error, sa.exc.IntegrityError):
                if again:
                    return self._transaction(function, again - 1)
                raise
            from rodeo.control.database.schema import fault_text

            self._gone(fault_text(error, self.schema))
            return None

    def _leave_run_json(self):
        """Updates run.json of closed runs from the tables, also for late tables and for notes that follow years later."""
        from rodeo.control.database import queries, run_json

        while self._connection is not None and self._touched:
            number = self._touched.pop()
            folder = self.directory / "runs" / f"{number:06d}"
            if not os.path.isdir(folder):
                continue
            with contextlib.suppress(Refused, OSError):  # no such run, or a full disk
                record = self._transaction(lambda connection: queries.run(connection, number))
                if record is not None and record["state"] != "OPEN" and record["system"] == self.system:
                    run_json.keep(folder, record)

    def _checkpoint(self):
        """When idle, moves the WAL into the SQLite file, so that a copy of this file is complete."""
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
            self._pending.clear()  # the journal's file has these records
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
        """True if a missing file may be made: at the first connection, or after its removal, when no run is open."""
        try:
            if not self.schema.sqlite or self.schema.path.exists():
                self._missing_s = None
                return False
            if not self.directory.is_dir() or not self.schema.path.parent.is_dir():
                return False
        except OSError:  # an unreadable file does not count as missing
            return False
        with self._lock:
            if self.journal.kept.runs:
                return False
        now_s = time.monotonic()
        if self._missing_s is None:
            self._missing_s = now_s
        return first or now_s - self._missing_s >= self.renew_after_s

    def _connect(self, first=False):
        """Opens the database, and queues the records that it lacks."""
        from rodeo.control.database.schema import fault_text
        from rodeo.control.database.tables import journal, sa, unusable

        create = self._may_create(first)
        try:
            self._engine = self.schema.engine(create=create)
            self._connection = self._engine.connect()
            self.schema.bring_up(self._connection)
            self._identity = self.schema.identity()
            with self._connection.begin():
                rows = self._connection.execute(
                    sa.select(journal.c.id, journal.c.last).where(journal.c.id.in_(self.journal.ids))
                )
                lasts = {row.id: row.last for row in rows}
            if not self._lined_up and lasts.get(self.journal.id, 0) > self.journal.opened_last:
                with self._of_journal:
                    self.journal.renew("the database has later records of it: it was restored from a copy")
                LOG.warning("%s: %s; it continues under a new id", self.journal.path, self.journal.renewed)
            last = self.journal.applied(lasts)
            if create and not self.journal.fresh:
                LOG.error(
                    "%s did not exist, and is made anew; rodeo runs import reads the run.json of former runs into it",
                    self.schema,
                )
            self._line_up(last)
            with self._connection.begin():
                self._unusable = self._connection.execute(
                    sa.select(sa.func.count()).select_from(unusable).where(unusable.c.journal.in_(self.journal.ids))
                ).scalar()
        except Exception as error:
            if isinstance(error, Refused) and error.code == "control.package":
                raise
            self._disconnect()
            with self._lock:
                reason = fault_text(error, self.schema)
                if reason != self._why:
                    LOG.error("the run database is gone: %s", reason)
                self._why, self._next_s = reason, time.monotonic() + self.retry_s
                self._pending.clear()
            return
        if first or self.journal.headless:
            self._seed()

    def _line_up(self, last):
        """Queues all records that the tables lack, in order: those of the file, and those that the file could not store."""
        with self._of_journal:
            after = self.journal.after
            lacking, last = 0 if last is None else max(0, after - last), after if last is None else last
            waiting = dict(self.journal.records(last))  # read without _lock: this may take long
            with self._lock:
                if lacking:
                    LOG.error("%s is older than its journal: %d records are in neither", self.schema, lacking)
                    self._lost += lacking - self._counted
                    self._counted = lacking
                self._sequence = max(self._sequence, last)  # a journal restored from a copy must not reuse numbers
                waiting.update({sequence: record for sequence, record in self._unwritten.items() if sequence > last})
                self._pending = deque(sorted(waiting.items()))
                self._applied = self._pending[0][0] - 1 if self._pending else self._sequence - len(self._incoming)
                self._why, self._since_ns, self._lined_up = "", time.time_ns(), True
                self._wake_tables.notify_all()

    def _seed(self):
        """Gives a journal that is new, or has lost its first line, the older facts from the tables."""
        if not self.journal.fresh and not self.journal.headless:
            return
        from rodeo.control.database.queries import kept_of

        found = self._transaction(lambda connection: kept_of(connection, self.system))
        if found is not None:
            with self._of_journal, contextlib.suppress(OSError):
                for _, record in self.journal.records(0):
                    found.add(record)
                self.journal.kept, self.journal.headless = found, False
                self.journal.compact(self.journal.after)

    def _compact(self, least):
        """Removes from the journal the records that are in the tables. Must not run during a run, because only the journal can restore an open run."""
        with self._of_journal:
            with self._lock:
                if (
                    self._why
                    or self._pending
                    or self._incoming
                    or self._unwritten
                    or self._applied < self._sequence
                    or self.journal.kept.runs
                    or self.journal.size < least
                ):
                    return
                if self.journal.after == self._applied:
                    return
            try:  # waits for the disk without _lock: new records are written after it
                self.journal.compact(self._applied)
            except OSError as error:
                LOG.warning("%s cannot be made shorter: %s", self.journal.path, error)

    def _wait_for_tables(self, limit_s=5.0):
        """Waits until all submitted records are in the tables, unless the database is gone. Every read begins with this."""
        end = time.monotonic() + limit_s
        with self._lock:
            wanted = self._sequence
            while self._applied < wanted and not self._why and self._threads and time.monotonic() < end:
                self._wake_tables.wait(0.1)


def read_only(url, *, busy_s=5.0):
    """Returns the Reads of a database that another process may be writing. Refused(control.database) if the URL is invalid."""
    needed("sqlalchemy")
    from rodeo.control.database.queries import Reads
    from rodeo.control.database.schema import Schema

    return Reads(Schema(url, busy_s=busy_s))


__all__ = ["Database", "read_only"]
