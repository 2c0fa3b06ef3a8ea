"""Run databases for tests: a database in a directory of the test, with small runs."""

import asyncio
import contextlib
import time

from conftest import scaled

LONG_S = 120.0
CONFIGURATION = {
    "system": '[control]\nname = "lab"\n',
    "file": "/there/lab.toml",
    "sha256": "0" * 64,
    "classes": {
        "reader": {
            "file": "/there/readers/reader.toml",
            "text": "[readout]\r\n# exact\n",
            "values": {"readout.threads": "2", "readout.name": '"reader"'},
            "origins": {"readout.threads": "default", "readout.name": "--set"},
            "settings": ["readout.name=lab-reader"],
            "sha256": "1" * 64,
        }
    },
}
PROCESSES = [
    {
        "name": "reader",
        "class": "reader",
        "kind": "readout",
        "host": "local",
        "role": "essential",
        "pid": 7,
        "build": "b1",
        "settings": ["readout.name=lab-reader"],
    }
]
ALARM = {
    "cause": "stall",
    "severity": "alarm",
    "raised_ns": 100,
    "what": "nothing comes",
    "value": 0.5,
    "limit": 1,
    "do": "look",
    "process": "reader",
    "acked_by": None,
    "acked_ns": None,
    "cleared_ns": None,
}


@contextlib.asynccontextmanager
async def opened(directory, url=None, system="lab", **options):
    """`async with opened(tmp_path) as database:`"""
    from rodeo.control.database.database import Database

    database = Database(url or f"sqlite:///{directory / 'runs.db'}", directory, system, **{"retry_s": 0.1, **options})
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def begin(database, **changes):
    """Adds an open run. Returns its number."""
    values = {
        "system": "lab",
        "run_type": "physics",
        "holder": "ana",
        "comment": "first light",
        "configuration": CONFIGURATION,
        "build": "b1",
        "processes": PROCESSES,
        **changes,
    }
    return await database.writer.open_run(**values)


async def end(database, number, **changes):
    values = {
        "state": "CLOSED",
        "condition": "GOOD",
        "flags": [],
        "reason": "",
        "first_event_ns": 10**9,
        "stopped_ns": 3 * 10**9,
        "closed_ns": 4 * 10**9,
        **changes,
    }
    await database.writer.close_run(number, **values)


async def whole_run(database, **changes):
    """Adds a closed run with rows in every table."""
    number, writer = await begin(database, **changes), database.writer
    await writer.transition(number, "start", "READY", "RUNNING", "ana", 5, 9, "done", "")
    await writer.process(
        number, "reader", "local", "essential", 0, None, None, {"run": {"condition": "GOOD"}, "chunks": {"sent": 8}}
    )
    await writer.file(number, "/data/run.data", "local", 4096, "a" * 64, 4, False, "closed")
    await writer.counters(number, "reader", {"fragments_built": 4, "rate": 0.5, "nothing": float("nan")}, 77)
    await writer.alarm(ALARM, number)
    await writer.note(number, "ana", "beam was off")
    await writer.quality(number, "muons", None, None, "good", "bob")
    await writer.audit("ana", "shell", "shifter", "start", {"run_type": "physics"}, "done")
    await end(database, number)
    return number


async def until(condition, what="it"):
    """Waits until condition() is true. Fails only after a very long time."""
    deadline = time.monotonic() + scaled(LONG_S)
    while not condition():
        assert time.monotonic() < deadline, f"waited too long for {what}"
        await asyncio.sleep(0.02)


async def good(database):
    """Waits until the database is available and has all written rows."""
    await until(
        lambda: (health := database.writer.health())["state"] == "good" and not health["journal"],
        f"the database: {database.writer.health()}",
    )


async def gone(database):
    await until(lambda: database.writer.health()["state"] == "gone", "the database to go")
