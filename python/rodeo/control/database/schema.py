"""Opens a run database by its URL: SQLite with settings for several writers, other databases as SQLAlchemy does. Makes the tables, or brings them up to
date."""

import contextlib
import logging
import os
import re
import socket
import sqlite3
import threading
import time
from pathlib import Path
from urllib.parse import quote

from rodeo.control.database.tables import HEAD, sa
from rodeo.control.paths import needed
from rodeo.control.refused import Refused
from rodeo.missing import remedy

LOG = logging.getLogger("rodeo.control")
MIGRATIONS = Path(__file__).parent / "migrations"
GONE_AFTER_MS = 12_000  # a server that accepts no bytes for this time is gone
LONGEST_STATEMENT_MS = 60_000  # limit of a statement; migrations have none
ANSWER_S = 60.0  # limit of a transaction with a server: a server that hangs still acknowledges bytes
NETWORK = re.compile(
    r"nfs4?|cifs|smb.*|9p|virtiofs|ceph|lustre|gpfs|beegfs.*|orangefs|pvfs2|ocfs2|gfs2|afs|glusterfs|fuse\..*|fuse"
)


class Schema:
    """A database by its URL. `path`: the SQLite file, else None. Refused(control.database) if the URL is invalid; control.package if its driver is missing."""

    def __init__(self, url, *, busy_s=5.0):
        try:
            self.url = sa.make_url(str(url))
            self.sqlite = self.url.get_backend_name() == "sqlite"
            self.url.get_dialect()
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ValueError) as error:
            raise Refused(
                "control.database",
                f"`{url}` is not the address of a database: {error}",
                "leave control.database empty for SQLite, or postgresql+psycopg://HOST/NAME",
            ) from None
        if self.sqlite and not self.url.database:
            raise Refused(
                "control.database", "a run database in memory would be lost with its process", "sqlite:///FILE"
            )
        self.path = Path(self.url.database).absolute() if self.sqlite else None
        self.busy_s = busy_s

    def __str__(self):
        return str(self.path) if self.sqlite else self.url.render_as_string(hide_password=True)

    def engine(self, *, create=False, writes=True):
        """Returns an engine without a pool. `create`: the engine may make the SQLite file. A connection belongs to the thread that makes it."""
        if not self.sqlite:
            try:
                return sa.create_engine(
                    self.url, poolclass=sa.pool.NullPool, connect_args=limits(self.url, self.busy_s)
                )
            except ModuleNotFoundError as error:
                raise Refused("control.package", f"the Python package `{error.name}` is missing", remedy()) from None
        uri = f"file:{quote(str(self.path))}?mode={'rwc' if create else 'rw'}"

        def connect():
            connection = sqlite3.connect(
                uri, uri=True, timeout=self.busy_s, isolation_level=None, check_same_thread=False
            )
            try:
                _set_up(connection, writes, self.busy_s, network_file_system(self.path))
            except BaseException:
                connection.close()
                raise
            return connection

        engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.pool.NullPool)
        sa.event.listen(
            engine, "begin", lambda connection: connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")
        )
        return engine

    def identity(self):
        """Returns a value that tells the SQLite file from other files of its name; None if it does not exist, or the database is not SQLite."""
        if not self.sqlite:
            return None
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def bring_up(self, connection):
        """Makes the tables or brings them up to date, in one transaction. Copies an SQLite file to FILE.before-VERSION before a change.
        Refused(control.database_version) if the tables are newer than this version."""
        with connection.begin():
            if version(connection) == HEAD:
                return
        needed("alembic")
        from alembic import command
        from alembic.config import Config
        from alembic.script import ScriptDirectory

        settings = Config()
        settings.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        known = {each.revision for each in ScriptDirectory.from_config(settings).walk_revisions()}
        with connection.begin():
            was = version(connection)
            _refuse_newer(was, known, self)
        if was is not None and self.sqlite and was != HEAD:
            self._copy(connection, f"{self.path}.before-{HEAD}")
        with connection.begin():
            was = version(connection)
            _refuse_newer(was, known, self)
            if was != HEAD:  # another process may have changed the tables already
                if self.url.get_backend_name() == "postgresql":
                    connection.execute(sa.text("set local statement_timeout = 0"))
                settings.attributes["connection"] = connection
                command.upgrade(settings, HEAD)

    def _copy(self, connection, target):
        with contextlib.closing(sqlite3.connect(target)) as copy:
            connection.connection.driver_connection.backup(copy)


def limits(url, busy_s):
    """Returns time limits of a PostgreSQL connection, for libpq drivers: some seconds for a vanished host, `busy_s` for locks of other processes.
    Parameters in the URL take precedence."""
    if url.drivername not in ("postgresql", "postgresql+psycopg", "postgresql+psycopg2"):
        return {}
    own = {
        "connect_timeout": int(max(2, busy_s)),
        "keepalives": 1,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": GONE_AFTER_MS,
        "options": f"-c statement_timeout={LONGEST_STATEMENT_MS} -c lock_timeout={int(max(1.0, busy_s) * 1000)}",
    }
    return {name: value for name, value in own.items() if name not in url.query}


@contextlib.contextmanager
def limited(connection):
    """Ends the connection to a server that does not answer within ANSWER_S: its driver would wait for ever. The transaction then fails."""
    driver = connection.connection.driver_connection
    if not hasattr(driver, "fileno"):  # SQLite
        yield
        return
    own = socket.socket(fileno=os.dup(driver.fileno()))

    def end():
        with contextlib.suppress(OSError):
            own.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(ANSWER_S, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        own.close()


def network_file_system(path, mounts=None):
    """Returns the type of the network file system that has `path`, or "". WAL needs memory that all its users share, and SQLite excludes network file
    systems from it. `mounts`: the text of /proc/self/mountinfo."""
    if mounts is None:
        try:
            mounts = Path("/proc/self/mountinfo").read_text()
        except OSError:
            return ""
    place, kind, longest = os.path.realpath(path), "", -1
    for line in mounts.splitlines():
        fields, _, rest = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), fields.split(" ")[4])
        if len(point) >= longest and (point == "/" or place == point or place.startswith(point + "/")):
            kind, longest = rest.split(" ")[0], len(point)
    return kind if NETWORK.fullmatch(kind) else ""


def _set_up(connection, writes, busy_s, network):
    """Sets up an SQLite connection. The change of the journal's mode briefly locks the whole file, and SQLite itself does not wait for this lock."""
    if not writes:
        connection.execute("PRAGMA query_only = ON")
        return
    end, mode = time.monotonic() + busy_s, "DELETE" if network else "WAL"
    while True:
        try:
            connection.execute(f"PRAGMA journal_mode = {mode}")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.05)
    connection.execute("PRAGMA synchronous = FULL")


def version(connection):
    """Returns the migration of the tables, or None without tables."""
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    return connection.execute(sa.text("select version_num from alembic_version")).scalar()


def _refuse_newer(was, known, schema):
    if was is not None and was not in known:
        raise Refused(
            "control.database_version",
            f"{schema} was made by a newer version of Rodeo (tables {was}; this one knows {HEAD})",
            "use that version",
        )


def refuse_other(connection, schema):
    """Checks the tables for a reader. Refused: control.database without tables, control.database_version if they are of another version."""
    was = version(connection)
    if was is None:
        raise Refused(
            "control.database",
            f"{schema} is not a run database",
            "rodeo control SYSTEM makes one; --database chooses another",
        )
    if was != HEAD:
        raise Refused(
            "control.database_version",
            f"{schema} has tables {was}, and this version of Rodeo reads {HEAD}",
            "rodeo control SYSTEM brings them up to date, unless they are newer",
        )


def fault_text(error, schema):
    """Describes the fault of a database for people, from its driver's error."""
    text = (
        str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        if str(error).strip()
        else type(error).__name__
    )
    if isinstance(error, Refused):
        return error.what
    if schema.sqlite and not os.path.exists(schema.path):
        return f"{schema} does not exist"
    if "locked" in text:
        return f"{schema} is locked by another process"
    if "not a database" in text or "malformed" in text:
        return f"{schema} is damaged ({text}); move it away, and a new one is made; rodeo runs import reads the run.json of former runs into it"
    if "full" in text:
        return f"{schema}: the disk is full"
    return f"{schema}: {text[:300]}"
