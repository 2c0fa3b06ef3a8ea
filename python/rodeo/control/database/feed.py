"""A thread that copies the records of a store to the server of `control.database`, and reserves run numbers there. It alone waits for the server."""

import logging
import threading
import time

from rodeo.control.database import apply_records, feeding, queries, run_numbers, tables
from rodeo.control.database.connection import Connection
from rodeo.control.database.tables import sa
from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.control")
BATCH = 50  # records in one transaction with the server
FIRST_S = CLOSE_S = 10.0  # limits of the waits for the server when a room begins and ends


class Feed:
    """`store` is the Database, `schema` the server. `block`: how many run numbers are reserved at once."""

    def __init__(self, store, schema, *, retry_s, renew_after_s, block):
        self.store, self.block = store, block
        self.server = Connection(schema, retry_s=retry_s, renew_after_s=renew_after_s)
        self.fed = 0  # the last sequence that the server has
        self.unusable = self.lost = 0
        self.touched = set()  # runs that only the server has, with records newer than their run.json
        self._first = True
        self._tried, self._wake = threading.Event(), threading.Event()
        self._ending, self._thread = False, None

    def start(self):
        """Starts the thread. Returns after its first attempt to connect, but does not wait for a server that hangs."""
        self._thread = threading.Thread(target=self._run, daemon=True, name="rodeo feeds the server")
        self._thread.start()
        self._tried.wait(FIRST_S)

    def wake(self):
        self._wake.set()

    def end(self):
        """Feeds what waits, if the server answers, and ends the thread. A server that hangs holds up nothing: the rest stays in the store."""
        self._ending = True
        self.wake()
        if self._thread is not None:
            self._thread.join(CLOSE_S)

    def _run(self):
        while True:
            look = feeding.Look(
                connected=self.server.good,
                next_s=self.server.next_s,
                waiting=self.store.to_feed(),
                left=self.store.left,
                block=self.block,
                ending=self._ending,
            )
            step, wait_s = feeding.step(look, time.monotonic(), self.server.retry_s)
            if step == feeding.END:
                return self.server.close()
            try:
                getattr(self, f"_{step}")(wait_s)
            except Exception as error:  # the store is gone for now, or the numbers are at their end
                self.server.lose(error.what if isinstance(error, Refused) else f"{type(error).__name__}: {error}")
            if step != feeding.CONNECT or not self.server.good:
                self._tried.set()

    def _wait(self, wait_s):
        self.server.look()
        self._leave_run_json()
        self.server.checkpoint()
        self._wake.wait(wait_s)
        self._wake.clear()

    def _connect(self, _):
        path = self.server.schema.path
        new = self._first and path is not None and not path.exists()
        found = {}
        create = new or (self.server.may_create(time.monotonic()) and not self.store.runs)

        def begin(connection):
            found["last"] = apply_records.position(connection, self.store.id)
            found["standing"] = queries.standing(connection, self.store.system) if self.store.fresh else None
            ids = tables.unusable.c.journal.in_(self.store.ids)
            found["unusable"] = connection.execute(
                sa.select(sa.func.count()).select_from(tables.unusable).where(ids)
            ).scalar()

        self.server.connect(begin, create)
        if not self.server.good:
            return
        self.unusable = found["unusable"]
        if self._first:
            self.store.meet(found["last"] or 0, found["standing"])
        elif found["last"] is not None and (lacking := self.store.before_outbox() - found["last"]) > 0:
            LOG.error("%s is older than its store: it lacks %d records", self.server.schema, lacking)
            self.lost += lacking
        self._first = False

    def _reserve(self, _):
        least = self.store.least()
        block = self.server.transaction(
            lambda connection: run_numbers.reserve(connection, self.store.system, self.block, least)
        )
        if block is not None:
            self.store.add_block(*block)

    def _feed(self, _):
        records = self.store.next_records(BATCH)
        if not records:
            return
        store = records[0][0]
        batch = [(sequence, record) for name, sequence, record in records if name == store]
        unusable = self.server.transaction(lambda connection: apply_records.batch(connection, store, batch))
        if self.server.good:
            self.unusable += unusable
            self.fed = batch[-1][0]
            self.store.was_fed(self.fed)

    def _leave_run_json(self):
        """Updates run.json of closed runs that the store does not have, such as runs of an older version."""
        while self.server.good and self.touched:
            number = self.touched.pop()
            self.store.leave_run_json(self.server, number)
