"""A connection to one database, made again after a fault. Blocks for the disk or the server."""

import contextlib
import logging
import time

from rodeo.control.database.schema import fault_text, limited
from rodeo.control.database.tables import sa
from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.control")


class Connection:
    """One thread owns it. Any thread may read `why`, which is empty while the database is good, and `since_ns`."""

    def __init__(self, schema, *, retry_s, renew_after_s):
        self.schema, self.retry_s, self.renew_after_s = schema, retry_s, renew_after_s
        self.why, self.since_ns = "it has not answered yet", time.time_ns()
        self.next_s = 0.0  # monotonic time of the next attempt
        self._answered_s = 0.0  # monotonic time of the last answer
        self._engine = self._connection = self._identity = self._missing_s = None
        self._dirty = False

    @property
    def good(self):
        return not self.why

    def connect(self, begin, create=False):
        """Connects, and calls begin(connection) in the first transaction. If the database is gone, `why` says why, for example that it is of a newer version."""
        try:
            self._engine = self.schema.engine(create=create)
            self._connection = self._engine.connect()
            self.schema.bring_up(self._connection)
            self._identity, self._dirty = self.schema.identity(), True
            with limited(self._connection), self._connection.begin():
                begin(self._connection)
        except (sa.exc.SQLAlchemyError, OSError, Refused) as error:
            return self.lose(fault_text(error, self.schema))
        self.why, self.since_ns, self._missing_s = "", time.time_ns(), None
        self._answered_s = time.monotonic()
        return None

    def transaction(self, function):
        """Calls function(connection) in a transaction. If the database is gone, closes the connection and returns None."""
        self._dirty = True
        try:
            with limited(self._connection), self._connection.begin():
                answer = function(self._connection)
            self._answered_s = time.monotonic()
            return answer
        except (sa.exc.SQLAlchemyError, OSError) as error:
            return self.lose(fault_text(error, self.schema))

    def lose(self, why):
        if why != self.why:
            LOG.error("the run database is gone: %s", why)
            self.since_ns = time.time_ns()
        self.close()
        self.why, self.next_s = why, time.monotonic() + self.retry_s

    def close(self):
        connection, engine, self._connection, self._engine = self._connection, self._engine, None, None
        with contextlib.suppress(Exception):
            if connection is not None:
                connection.invalidate()
                connection.close()
        with contextlib.suppress(Exception):
            if engine is not None:
                engine.dispose()

    def look(self):
        """Notices that a silent server is gone, or that another SQLite file, or none, has the name of the open one."""
        if self.good and not self.schema.sqlite and time.monotonic() - self._answered_s >= self.retry_s:
            self.transaction(lambda connection: connection.execute(sa.select(1)))
        if self.good and self.schema.sqlite and (identity := self.schema.identity()) != self._identity:
            self.checkpoint()  # into the moved file, so that its WAL is not taken for the new file's
            self.lose(
                f"{self.schema} does not exist" if identity is None else f"another file has replaced {self.schema}"
            )

    def may_create(self, now_s):
        """True if the SQLite file has been missing for `renew_after_s`."""
        try:
            if not self.schema.sqlite or self.schema.path.exists() or not self.schema.path.parent.is_dir():
                self._missing_s = None
                return False
        except OSError:  # an unreadable file does not count as missing
            return False
        self._missing_s = now_s if self._missing_s is None else self._missing_s
        return now_s - self._missing_s >= self.renew_after_s

    def checkpoint(self):
        """When idle, moves the WAL into the SQLite file, so that a copy of this file is complete."""
        if self.good and self.schema.sqlite and self._dirty:
            with contextlib.suppress(Exception):
                self._connection.connection.driver_connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                self._dirty = False
