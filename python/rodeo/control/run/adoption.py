"""A new controller adopts the state that it finds: hosts, the database, running processes, and the open run."""

import logging
import time

from rodeo.control.refused import Refused
from rodeo.control.run.open_run import OpenRun
from rodeo.control.state import alarms, snapshots
from rodeo.control.state.snapshots import RunRow

LOG = logging.getLogger("rodeo.control")


def database_of(system):
    """Returns the run database of a system: `database` of the file, or runs.db in its directory."""
    from rodeo.control.database.database import Database

    return Database(system.database or f"sqlite:///{system.directory / 'runs.db'}", system.directory, system.name)


async def adopt(c):
    """Adopts remembered facts, the open row and the running processes. derive() then decides whether they belong together.
    If not, the state is ERROR \"foreign\", and the controller leaves them alone."""
    c.memory = snapshots.Memory.from_json(await _recalled(c, "memory"), time.monotonic())
    await _adopt_run(c)
    launched = await _recalled(c, "launched")
    launched = launched if isinstance(launched, dict) else {}
    lines = launched.get("lines")
    c.launching.lines = (
        {name: list(values) for name, values in lines if isinstance(values, list)} if isinstance(lines, list) else {}
    )
    await c.observer.look()
    processes = launched.get("processes") if isinstance(launched.get("processes"), dict) else {}
    for each in c.observer.members.values():
        known = processes.get(each.name)
        if each.alive is not False and isinstance(known, dict):  # None: its host does not answer yet
            each.writers = [one for one in known.get("writers") or [] if isinstance(one, str)]
            each.settings = [one for one in known.get("settings") or [] if isinstance(one, str)]
            each.remembered = known.get("pid"), known.get("sha256") if isinstance(known.get("sha256"), str) else None
            if each.pid is not None and each.pid == each.remembered[0]:
                each.expected_sha256 = each.remembered[1]
    if any(each.alive is not False for each in c.observer.members.values()):
        try:
            await c.launching.prepare(c.system.members)
        except Refused as refused:
            LOG.warning("configurations cannot be read now: %s", refused.what)
    c.telling.book = alarms.Book(await _standing(c), await _recalled(c, "shelf"))
    c.telling.last_run = await _last_run(c)
    await c.telling.find_left_open()
    c.derive()
    if c.run is not None:
        LOG.info("run %d is open: %s", c.run.number, c.derived.what)


async def _recalled(c, key):
    try:
        return await c.writer.recall(key)
    except Refused as refused:
        LOG.warning("%s cannot be recalled: %s", key, refused.what)
        return None


async def _adopt_run(c):
    """Adopts the open run: an open row means that a run is open, and the remembered run has the details."""
    rows = [row for row in await c.writer.open_runs() if row.get("system") in (None, c.system.name)]
    kept = OpenRun.from_json(await _recalled(c, "run"))
    if not rows:
        c.run = None
        return
    row = rows[-1]
    if kept is None or kept.number != row["number"]:
        kept = OpenRun(
            number=row["number"],
            type=row.get("type") or "",
            holder=row.get("holder") or "",
            comment=row.get("comment") or "",
            directory=str(c.folders.run(row["number"])),
            asked_ns=row.get("asked_ns"),
            first_event_ns=row.get("first_event_ns"),
        )
    c.run = kept
    c.run.blocks = await _blocks(c) or c.run.blocks


async def _blocks(c):
    try:
        return await c.writer.blocks()
    except Refused:
        return []


async def _standing(c):
    try:
        return await c.writer.alarms_standing()
    except Refused:
        return ()


async def _last_run(c):
    try:
        rows = await c.database.here.runs(limit=5)
    except Refused:
        return None
    for row in rows:
        if row.get("state") != "OPEN" and (c.run is None or row.get("number") != c.run.number):
            known = {name: row[name] for name in RunRow.__dataclass_fields__ if row.get(name) is not None}
            known["flags"] = tuple(known.get("flags") or ())
            return RunRow(**known)
    return None
