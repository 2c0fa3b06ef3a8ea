"""The journal of runs in SQLite: each run is committed when it ends, so that a killed sweep can continue."""

import hashlib
import json
import socket
import sqlite3
import time
from pathlib import Path


def canonical(settings):
    """A text that identifies settings, independent of their order."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":"))


def key_of(method, settings):
    return hashlib.sha256(f"{method}\n{canonical(settings)}".encode()).hexdigest()


class Journal:
    """One process writes, any process may read. Method and settings (seed included) identify a run."""

    def __init__(self, path, revision=""):
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.revision = revision
        self.database = sqlite3.connect(self.path)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute(
            "PRAGMA synchronous=NORMAL"
        )  # with WAL the file is consistent after a kill; a power cut may lose the last rows
        self.database.execute(
            "CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, method TEXT NOT NULL, settings TEXT NOT NULL, result TEXT NOT NULL,"
            " ended REAL NOT NULL, seconds REAL NOT NULL, host TEXT NOT NULL, revision TEXT NOT NULL)"
        )
        self.database.commit()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.database.close()

    def find(self, method, settings):
        """The result of this run, or None."""
        row = self.database.execute("SELECT result FROM runs WHERE key = ?", (key_of(method, settings),)).fetchone()
        return None if row is None else json.loads(row[0])

    def write(self, method, settings, result, seconds, host=None):
        self.database.execute(
            "INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                key_of(method, settings),
                method,
                canonical(settings),
                canonical(result),
                time.time(),
                seconds,
                host or socket.gethostname(),
                self.revision,
            ),
        )
        self.database.commit()

    def __len__(self):
        return self.database.execute("SELECT COUNT(*) FROM runs").fetchone()[0]

    def rows(self):
        """Every run as one flat dict: settings, results, place and time."""
        for method, settings, result, ended, seconds, host, revision in self.database.execute(
            "SELECT method, settings, result, ended, seconds, host, revision FROM runs ORDER BY ended, key"
        ):
            yield {
                "method": method,
                **json.loads(settings),
                **json.loads(result),
                "ended": ended,
                "run_seconds": seconds,
                "host": host,
                "revision": revision,
            }


def write_parquet(rows, path):
    """Writes a list of flat dicts as one Parquet file. Its columns are all keys that occur; missing values are null."""
    import pyarrow
    import pyarrow.parquet

    columns = list(dict.fromkeys(name for row in rows for name in row))
    arrays = {}
    for name in columns:
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        if str in kinds and len(kinds) > 1:  # the column mixes "infinite" and numbers of bytes
            values = [None if value is None else str(value) for value in values]
        elif kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]
        arrays[name] = pyarrow.array(values)
    temporary = Path(path).with_suffix(".writing")
    pyarrow.parquet.write_table(pyarrow.table(arrays), temporary)
    temporary.replace(path)


def read_parquet(path):
    import pyarrow.parquet

    return pyarrow.parquet.read_table(path).to_pylist()
