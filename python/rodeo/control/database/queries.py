"""Reads the run database: lists of runs, one run, differences of two runs, the audit and its chain. Times are UTC in ns, sizes in bytes."""

import asyncio
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from rodeo.control.database import tables
from rodeo.control.database.apply_records import AUDITED, START_OF_CHAIN, audit_sha256
from rodeo.control.database.run_json import OF_THE_RUN
from rodeo.control.database.schema import fault_text, limited, refuse_other
from rodeo.control.database.tables import OPEN, sa
from rodeo.control.refused import Refused

MOST_RUNS = 10_000
STANDING = tuple(
    "cause severity raised_ns what value limit do process acked_by acked_ns cleared_ns".split()
)  # of an alarm

# The members of a run in a list of runs.
KEYS = (
    "number",
    "system",
    "type",
    "state",
    "condition",
    "flags",
    "asked_ns",
    "first_event_ns",
    "stopped_ns",
    "closed_ns",
    "seconds",
    "paused_seconds",
    "events",
    "files",
    "bytes",
    "holder",
    "comment",
    "reason",
    "build",
    "config_sha256",
)


class Reads:
    """Reads one database (`schema`) in a thread of its own, which calls `before` first. Refused(control.database) if the database cannot be read."""

    def __init__(self, schema, before=None):
        self.schema = schema
        self._before = before
        self._pool = ThreadPoolExecutor(1, "rodeo reads the database")

    def close(self):
        self._pool.shutdown(wait=True)

    def now(self, function, *arguments):
        """Calls function(connection, ...) in a transaction of its own, in the calling thread."""
        if self._before is not None:
            self._before()
        engine = None
        try:
            engine = self.schema.engine(writes=False)
            with engine.connect() as connection, limited(connection), connection.begin():
                refuse_other(connection, self.schema)
                return function(connection, *arguments)
        except (sa.exc.SQLAlchemyError, OSError) as error:
            raise Refused(
                "control.database", f"the run database cannot be read: {fault_text(error, self.schema)}", ""
            ) from None
        finally:
            if engine is not None:
                engine.dispose()

    async def _do(self, function, *arguments):
        try:
            work = asyncio.get_running_loop().run_in_executor(self._pool, lambda: self.now(function, *arguments))
        except RuntimeError:
            raise Refused("control.database", "the run database is closed", "") from None
        return await work

    async def runs(self, limit=50, before=None, filters=None):
        """Returns rows of runs below the number `before`, newest first. `filters` has values for state, condition, type, system, holder and flag, since_ns,
        until_ns."""
        return await self._do(runs, limit, before, filters)

    async def run(self, number):
        """Returns one run: its row, and `transitions`, `processes`, `files`, `counters`, `alarms`, `notes`, `quality`, `configuration` (see
        database/configuration_files.py). Refused(control.no_run_number)."""
        return await self._do(run, number)

    async def configuration(self, number):
        """Returns the configuration of a run. Refused(control.no_run_number)."""
        return await self._do(configuration, number)

    async def diff(self, a, b):
        """Returns the differences of two runs: see diff()."""
        return await self._do(diff, a, b)

    async def audit(self, limit=100, before=None):
        """Returns rows of the audit, newest first."""
        return await self._do(audit, limit, before)

    async def verify_audit(self):
        """Returns {"rows", "broken": None | {"id", "why"}} of the whole chain."""
        return await self._do(verify_audit)

    async def notes(self, run=None):
        """Returns notes, newest first, each in its last version: all notes of a run, or the last 500."""
        return await self._do(notes, run)

    async def alarm_history(self, limit=100):
        """Returns alarms, newest first."""
        return await self._do(alarm_history, limit)

    async def open_runs(self, system=None):
        """Returns rows of open runs, oldest first."""
        return await self._do(open_runs, system)


def _row(found):
    row = dict(found._mapping)
    row["flags"] = row["flags"].split()
    if row["first_event_ns"] and row["stopped_ns"]:
        row["seconds"] = max(0.0, (row["stopped_ns"] - row["first_event_ns"]) / 1e9)
    else:
        row["seconds"] = None
    return row


def runs(connection, limit=50, before=None, filters=None):
    table, filters = tables.run, filters or {}
    query = sa.select(table).order_by(table.c.number.desc()).limit(max(0, min(int(limit), MOST_RUNS)))
    if before is not None:
        query = query.where(table.c.number < int(before))
    for name in ("state", "condition", "type", "system", "holder"):
        if filters.get(name):
            query = query.where(table.c[name] == filters[name])
    if filters.get("flag"):
        query = query.where((sa.literal(" ") + table.c.flags + " ").like(f"% {filters['flag']} %"))
    if filters.get("since_ns"):
        query = query.where(table.c.asked_ns >= filters["since_ns"])
    if filters.get("until_ns"):
        query = query.where(table.c.asked_ns <= filters["until_ns"])
    rows = [_row(each) for each in connection.execute(query)]
    totals, paused = (of(connection, [row["number"] for row in rows]) for of in (_totals, _pauses))
    return [
        {
            **row,
            **totals.get(row["number"], NOTHING),
            "paused_seconds": paused_seconds(row, paused.get(row["number"], ())),
        }
        for row in rows
    ]


NOTHING = {"events": None, "files": 0, "bytes": 0}


def _totals(connection, numbers):
    """Returns {run: {"events", "files", "bytes"}}. The books give the number of events. Without books it is the smallest count of a readout, or None."""
    file, counter = tables.file, tables.counter
    totals = {}
    if not numbers:
        return totals
    between = (min(numbers), max(numbers))
    for each in connection.execute(
        sa.select(file.c.run, sa.func.count(), sa.func.sum(file.c.bytes))
        .where(file.c.run.between(*between))
        .group_by(file.c.run)
    ):
        totals[each[0]] = {**NOTHING, "files": each[1], "bytes": int(each[2] or 0)}
    for which in (
        counter.c.name == "fragments_built",
        sa.and_(counter.c.name == "events", counter.c.process == OF_THE_RUN),
    ):
        query = sa.select(counter.c.run, sa.func.min(counter.c.value)).where(counter.c.run.between(*between), which)
        for number, events in connection.execute(query.group_by(counter.c.run)):
            totals.setdefault(number, dict(NOTHING))["events"] = int(events)
    return totals


def _pauses(connection, numbers):
    """Returns {run: [(what, when_ns)]}: pauses and their ends, in order."""
    table, found = tables.transition, {}
    if numbers:
        query = (
            sa.select(table.c.run, table.c.name, table.c.ended_ns)
            .where(
                table.c.run.between(min(numbers), max(numbers)),
                table.c.name.in_(("pause", "resume", "go_on")),
                table.c.outcome == "done",
            )
            .order_by(table.c.id)
        )
        for number, name, ended_ns in connection.execute(query):
            found.setdefault(number, []).append((name, ended_ns))
    return found


def paused_seconds(row, pauses):
    """Returns the seconds of the run during which `pause` held the triggers; None if unknown. Pure."""
    if row["seconds"] is None:
        return None
    total_ns, since_ns = 0, None
    for name, when_ns in (*pauses, ("stop", row["stopped_ns"])):
        if name == "pause":
            since_ns = when_ns if since_ns is None else since_ns
        elif since_ns is not None and when_ns is not None:
            total_ns, since_ns = (
                total_ns + max(0, min(when_ns, row["stopped_ns"]) - max(since_ns, row["first_event_ns"])),
                None,
            )
    return min(row["seconds"], total_ns / 1e9)


def open_runs(connection, system=None):
    query = sa.select(tables.run).where(tables.run.c.state == OPEN).order_by(tables.run.c.number)
    return [_row(each) for each in connection.execute(query.where(tables.run.c.system == system) if system else query)]


def _run_row(connection, number):
    found = connection.execute(sa.select(tables.run).where(tables.run.c.number == int(number))).first()
    if found is None:
        last = connection.execute(sa.select(sa.func.max(tables.run.c.number))).scalar()
        raise Refused(
            "control.no_run_number",
            f"there is no run {number}",
            f"the last one is {last}" if last else "there is no run yet: rodeo control start",
        )
    return _row(found)


def _of_run(connection, table, number, *order):
    query = sa.select(table).where(table.c.run == number).order_by(*(table.c[name] for name in order))
    return [
        {name: value for name, value in each._mapping.items() if name not in ("run", "id")}
        for each in connection.execute(query)
    ]


def run(connection, number):
    row = _run_row(connection, number)
    number = row["number"]
    processes = _of_run(connection, tables.process, number, "name")
    for each in processes:
        each["settings"] = json.loads(each["settings"]) if each["settings"] else []
        each["report"] = json.loads(each["report"]) if each["report"] else None
    counters = [
        {**each, "value": _number(each["value"])}
        for each in _of_run(connection, tables.counter, number, "process", "name", "when_ns")
    ]
    return {
        **row,
        **_totals(connection, [number]).get(number, NOTHING),
        "paused_seconds": paused_seconds(row, _pauses(connection, [number]).get(number, ())),
        "transitions": _of_run(connection, tables.transition, number, "id"),
        "processes": processes,
        "files": _of_run(connection, tables.file, number, "host", "path"),
        "counters": counters,
        "lumi_blocks": _of_run(connection, tables.lumi_block, number, "first_trigger"),
        "alarms": [
            _alarm(each)
            for each in connection.execute(
                sa.select(tables.alarm).where(tables.alarm.c.run == number).order_by(tables.alarm.c.raised_ns)
            )
        ],
        "notes": notes(connection, number),
        "quality": _of_run(connection, tables.quality, number, "id"),
        "configuration": _configuration(connection, row["config_sha256"]),
    }


def _number(value):
    return int(value) if float(value).is_integer() else value


def _configuration(connection, sha256):
    text = (
        connection.execute(sa.select(tables.config.c.content).where(tables.config.c.sha256 == sha256)).scalar()
        if sha256
        else None
    )
    return json.loads(text) if text else None


def configuration(connection, number):
    row = _run_row(connection, number)
    settings = {
        each["name"]: {
            "class": each["class"],
            "kind": each["kind"],
            "host": each["host"],
            "settings": json.loads(each["settings"] or "[]"),
        }
        for each in _of_run(connection, tables.process, row["number"], "name")
        if each["class"]
    }
    found = _configuration(connection, row["config_sha256"]) or {}
    return {**found, "run": row["number"], "build": row["build"], "sha256": row["config_sha256"], "processes": settings}


def values_of(configuration):
    """Returns {"CLASS key": TOML text} of a configuration, without the system file."""
    return {
        f"{name} {key}": value
        for name, one in ((configuration or {}).get("classes") or {}).items()
        for key, value in (one.get("values") or {}).items()
    }


def diff(connection, a, b):
    """Returns {"a", "b": rows, "run": {name: [a, b]}, "configuration": [{"class", "key", "a", "b"}], "settings": [{"process", "a", "b"}],
    "counters": [{"process", "name", "a", "b"}]}, with differences only. None is a value that one run lacks. `files` is the number of files in
    each state, because names and checksums always differ."""
    first, second = (one | {"files": _in_states(one["files"])} for one in (run(connection, a), run(connection, b)))
    names = (
        "type",
        "condition",
        "flags",
        "build",
        "holder",
        "comment",
        "events",
        "files",
        "bytes",
        "seconds",
        "reason",
    )
    settings = [
        {each["name"]: each["settings"] for each in one["processes"] if each["class"]} for one in (first, second)
    ]
    counters = [{(each["process"], each["name"]): each["value"] for each in one["counters"]} for one in (first, second)]
    return {
        "a": first["number"],
        "b": second["number"],
        "run": {name: [first[name], second[name]] for name in names if first[name] != second[name]},
        "configuration": [
            {"class": key.split(" ", 1)[0], "key": key.split(" ", 1)[1], "a": x, "b": y}
            for key, x, y in _differences(values_of(first["configuration"]), values_of(second["configuration"]))
        ],
        "settings": [{"process": name, "a": x, "b": y} for name, x, y in _differences(*settings)],
        "counters": [{"process": key[0], "name": key[1], "a": x, "b": y} for key, x, y in _differences(*counters)],
    }


def _in_states(files):
    """Counts a run's files in each state: `3 closed, 1 missing`."""
    counts = Counter(each["state"] for each in files)
    return ", ".join(f"{count} {state}" for state, count in sorted(counts.items())) or None


def _differences(a, b):
    return [(key, a.get(key), b.get(key)) for key in sorted({*a, *b}) if a.get(key) != b.get(key)]


def audit(connection, limit=100, before=None):
    query = sa.select(tables.audit).order_by(tables.audit.c.id.desc()).limit(max(0, min(int(limit), 100_000)))
    rows = [
        dict(each._mapping) for each in connection.execute(query.where(tables.audit.c.id < before) if before else query)
    ]
    return [{**row, "arguments": json.loads(row["arguments"])} for row in rows]


def verify_audit(connection):
    """Verifies that every row has the checksum of the row before, and that the last written row is present."""
    previous, count = START_OF_CHAIN, 0
    for each in connection.execution_options(yield_per=1000).execute(
        sa.select(tables.audit).order_by(tables.audit.c.id)
    ):
        row, count = each._mapping, count + 1
        if row["id"] != count:
            return {"rows": count - 1, "broken": {"id": count, "why": "it is missing"}}
        if row["previous"] != previous:
            return {
                "rows": count - 1,
                "broken": {"id": count, "why": "the row before it was changed after this row was written"},
            }
        if audit_sha256({name: row[name] for name in ("id", *AUDITED, "previous")}) != row["sha256"]:
            return {"rows": count - 1, "broken": {"id": count, "why": "it was changed"}}
        previous = row["sha256"]
    head = connection.execute(
        sa.select(tables.chain.c.last, tables.chain.c.sha256).where(tables.chain.c.name == "audit")
    ).first()
    if head is None or (head.last, head.sha256) != (count, previous):
        return {"rows": count, "broken": {"id": count + 1, "why": "rows at the end are missing"}}
    return {"rows": count, "broken": None}


def notes(connection, run=None):
    table = tables.note
    query = sa.select(table).order_by(table.c.id.desc())
    rows = [
        dict(each._mapping)
        for each in connection.execute(query.where(table.c.run == int(run)) if run is not None else query.limit(500))
    ]
    replaced = {row["replaces"]: row["id"] for row in rows if row["replaces"] is not None}
    return [
        {**row, "versions": _versions(row, {each["id"]: each for each in rows})}
        for row in rows
        if row["id"] not in replaced
    ]


def _versions(row, by_id):
    count, seen = 1, {row["id"]}
    while (row := by_id.get(row["replaces"])) is not None and row["id"] not in seen:
        seen.add(row["id"])
        count += 1
    return count


def _alarm(found):
    row = dict(found._mapping)
    return {
        **{name: row[name] for name in STANDING},
        **{name: None if row[name] is None else json.loads(row[name]) for name in ("value", "limit")},
        "run": row["run"],
    }


def alarm_history(connection, limit=100):
    query = (
        sa.select(tables.alarm)
        .order_by(tables.alarm.c.raised_ns.desc(), tables.alarm.c.cause)
        .limit(max(0, min(int(limit), MOST_RUNS)))
    )
    return [_alarm(each) for each in connection.execute(query)]


def remembered(connection, system):
    """Returns {key: value} of the facts that a system remembers."""
    fact = tables.remembered
    rows = connection.execute(sa.select(fact).where(fact.c.system == system))
    return {each.key: json.loads(each.value) for each in rows}


def alarms_standing(connection, system):
    """Returns the alarms of a system that are not both acknowledged and cleared."""
    alarm = tables.alarm
    standing = sa.select(alarm).where(
        alarm.c.system == system,
        alarm.c.followed_ns.is_(None),
        sa.or_(alarm.c.acked_by.is_(None), alarm.c.cleared_ns.is_(None)),
    )
    return [{name: row[name] for name in STANDING} for row in map(_alarm, connection.execute(standing))]


def blocks(connection, system):
    """Returns the luminosity blocks of the open run of a system."""
    rows = open_runs(connection, system)
    return _of_run(connection, tables.lumi_block, rows[-1]["number"], "first_trigger") if rows else []


def standing(connection, system):
    """Returns what a new store of this system must know, in the form of the first line of an older version's journal."""
    return {
        "remembered": remembered(connection, system),
        "open_runs": open_runs(connection, system),
        "blocks": blocks(connection, system),
        "alarms": alarms_standing(connection, system),
    }
