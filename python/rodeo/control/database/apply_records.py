"""Puts records of a store into the tables, in the caller's transaction. The caller keeps the order, and applies each record once."""

import hashlib
import json

from rodeo.control.database import tables
from rodeo.control.database.tables import CLOSED, OPEN, sa

START_OF_CHAIN = "0" * 64  # the migration inserts it, so that the first writer has a row to lock


def canonical(value):
    """JSON text that is equal for equal values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def config_sha256(configuration):
    return hashlib.sha256(canonical(configuration).encode()).hexdigest()


def _open(connection, record):
    """Inserts the row of a run, its configuration and its processes."""
    number, configuration = record["number"], record.get("configuration")
    count(connection, record["system"], number)
    sha256 = keep_config(connection, configuration) if configuration is not None else None
    connection.execute(
        tables.run.insert().values(
            number=number,
            system=record["system"],
            type=record["type"],
            state=OPEN,
            flags="",
            asked_ns=record["asked_ns"],
            reason="",
            config_sha256=sha256,
            build=record.get("build") or "",
            holder=record.get("holder") or "",
            comment=record.get("comment") or "",
        )
    )
    for each in record.get("processes") or ():
        upsert(
            connection,
            tables.process,
            {"run": number, "name": str(each["name"])},
            {
                "class": each.get("class"),
                "kind": each.get("kind"),
                "host": each.get("host"),
                "role": each.get("role"),
                "pid": each.get("pid"),
                "build": each.get("build"),
                "settings": canonical(each.get("settings") or []),
            },
        )


def keep_config(connection, configuration):
    """Stores a configuration, one row for all runs that share it. Returns its checksum."""
    sha256 = config_sha256(configuration)
    if connection.execute(sa.select(tables.config.c.sha256).where(tables.config.c.sha256 == sha256)).scalar() is None:
        connection.execute(tables.config.insert().values(sha256=sha256, content=canonical(configuration)))
    return sha256


def count(connection, system, number):
    last = connection.execute(sa.select(tables.run_number.c.last).where(tables.run_number.c.system == system)).scalar()
    if last is None:
        connection.execute(tables.run_number.insert().values(system=system, last=number))
    elif last < number:
        connection.execute(tables.run_number.update().where(tables.run_number.c.system == system).values(last=number))


def upsert(connection, table, key, values):
    """Updates the row of this key, or inserts it."""
    where = [table.c[name] == value for name, value in key.items()]
    if not values or not connection.execute(table.update().where(*where).values(**values)).rowcount:
        connection.execute(table.insert().values(**key, **values))


def opened(connection, record):
    """Records the begin of a run. ValueError if another run has its number, as after an import."""
    run = tables.run.c
    there = connection.execute(sa.select(run.system, run.asked_ns).where(run.number == record["number"])).first()
    if there is not None and tuple(there) == (record["system"], record["asked_ns"]):
        return
    if there is not None:
        raise ValueError(f"another run has the number {record['number']}: of `{there.system}`")
    connection.execute(
        tables.run.update()
        .where(tables.run.c.system == record["system"], tables.run.c.state == OPEN)
        .values(
            state=CLOSED,
            closed_ns=record["asked_ns"],
            reason=f"its end is not known: run {record['number']} was opened after it",
        )
    )
    _open(connection, record)


def closed(connection, record):
    """Records the end of a run. Inserts the row if this database lacks it. ValueError if the run is closed already."""
    values = {
        "state": record["state"],
        "condition": record["condition"],
        "flags": " ".join(record["flags"]),
        "reason": record["reason"],
        **{name: record[name] for name in ("first_event_ns", "stopped_ns", "closed_ns")},
    }
    was = connection.execute(sa.select(tables.run.c.state).where(tables.run.c.number == record["number"])).scalar()
    if was is None:
        count(connection, record["system"], record["number"])
        connection.execute(
            tables.run.insert().values(
                number=record["number"],
                system=record["system"],
                type="",
                asked_ns=record["first_event_ns"] or record["closed_ns"],
                build="",
                holder="",
                comment="",
                **values,
            )
        )
    elif was == OPEN:
        connection.execute(tables.run.update().where(tables.run.c.number == record["number"]).values(**values))
    else:
        raise ValueError(f"run {record['number']} is {was} already")


def flags(connection, record):
    """Changes the flags of a closed run; an open run gets its flags at its end."""
    was = connection.execute(sa.select(tables.run.c.flags).where(tables.run.c.number == record["number"])).scalar()
    if was is None:
        raise ValueError(f"there is no run {record['number']}")
    now = sorted({*was.split(), *record["add"]} - {*record["remove"]})
    connection.execute(tables.run.update().where(tables.run.c.number == record["number"]).values(flags=" ".join(now)))


def process(connection, record):
    values = {name: record[name] for name in ("host", "role", "exit", "signal", "core", "report")}
    upsert(connection, tables.process, {"run": record["run"], "name": record["name"]}, values)


def file(connection, record):
    values = {name: record[name] for name in ("bytes", "sha256", "events", "verified", "state")}
    upsert(connection, tables.file, {"run": record["run"], "host": record["host"], "path": record["path"]}, values)


def counters(connection, record):
    for name, value in record["values"].items():
        key = {
            "run": record["run"],
            "process": record["process"],
            "name": name,
            "labels": "",
            "when_ns": record["when_ns"],
        }
        upsert(connection, tables.counter, key, {"value": value})


def lumi_block(connection, record):
    values = {name: record[name] for name in ("number", "scan_step", "first_id", "seen_ns", "triggers", "recorded")}
    upsert(connection, tables.lumi_block, {"run": record["run"], "first_trigger": record["first_trigger"]}, values)


def alarm(connection, record):
    table = tables.alarm
    key = {"system": record["system"], "cause": record["cause"], "raised_ns": record["raised_ns"]}
    connection.execute(
        table.update()
        .where(
            table.c.system == record["system"],
            table.c.cause == record["cause"],
            table.c.raised_ns < record["raised_ns"],
            table.c.followed_ns.is_(None),
        )
        .values(followed_ns=record["raised_ns"])
    )
    values = {
        name: record[name] for name in ("severity", "what", "do", "process", "acked_by", "acked_ns", "cleared_ns")
    }
    values.update({name: None if record[name] is None else canonical(record[name]) for name in ("value", "limit")})
    was = connection.execute(
        sa.select(table.c.run).where(*(table.c[name] == value for name, value in key.items()))
    ).first()
    if was is None or was.run is None:
        values["run"] = record["run"]  # the run in which it was raised
    upsert(connection, table, key, values)


def audit(connection, record):
    """Inserts a row whose checksum includes the checksum of the row before."""
    last = connection.execute(
        sa.select(tables.chain.c.last, tables.chain.c.sha256).where(tables.chain.c.name == "audit").with_for_update()
    ).first()
    number, previous = last.last + 1, last.sha256
    values = {"id": number, **{name: record[name] for name in AUDITED}}
    values["previous"] = previous
    values["sha256"] = audit_sha256(values)
    connection.execute(tables.audit.insert().values(**values))
    upsert(connection, tables.chain, {"name": "audit"}, {"last": number, "sha256": values["sha256"]})


AUDITED = ("system", "time_ns", "actor", "whence", "role", "command", "arguments", "outcome", "detail")


def audit_sha256(row):
    """Returns the checksum of all values of a row except `sha256`."""
    return hashlib.sha256(canonical([row[name] for name in ("id", *AUDITED, "previous")]).encode()).hexdigest()


def remembered(connection, record):
    where = {"system": record["system"], "key": record["key"]}
    if record["value"] is None:
        connection.execute(
            tables.remembered.delete().where(*(tables.remembered.c[name] == value for name, value in where.items()))
        )
    else:
        upsert(connection, tables.remembered, where, {"value": canonical(record["value"])})


def _insert(table, *names):
    def put(connection, record):
        connection.execute(table.insert().values(**{name: record[name] for name in names}))

    return put


KINDS = {
    "open": opened,
    "close": closed,
    "flags": flags,
    "process": process,
    "file": file,
    "counters": counters,
    "lumi_block": lumi_block,
    "alarm": alarm,
    "audit": audit,
    "remember": remembered,
    "transition": _insert(
        tables.transition, "run", "name", "from_state", "to_state", "actor", "began_ns", "ended_ns", "outcome", "detail"
    ),
    "note": _insert(tables.note, "run", "author", "written_ns", "text", "replaces"),
    "quality": _insert(tables.quality, "run", "subsystem", "from_ns", "to_ns", "verdict", "by", "verified_by"),
}


def _of_record(error):
    """True if the record is unusable, False if the database has failed."""
    return type(error) is sa.exc.StatementError or isinstance(
        error, (sa.exc.IntegrityError, sa.exc.DataError, sa.exc.ProgrammingError, sa.exc.InterfaceError)
    )


def position(connection, store):
    """Returns the last sequence of a store that is in the tables, or None."""
    row = sa.select(tables.journal.c.last).where(tables.journal.c.id == store).with_for_update()
    return connection.execute(row).scalar()


def batch(connection, journal, records):
    """Applies [(sequence, record)] of the store with the id `journal`, in order, and skips those already applied. A record that fits no table goes to
    `unusable`. Returns the number of unusable records."""
    last = position(connection, journal)
    unusable = 0
    fresh = [(sequence, record) for sequence, record in records if last is None or sequence > last]
    for sequence, record in fresh:
        point = connection.begin_nested()
        try:
            KINDS[record["kind"]](connection, record)
            point.commit()
        except (sa.exc.StatementError, LookupError, TypeError, ValueError, OverflowError, AttributeError) as error:
            if isinstance(error, sa.exc.StatementError) and not _of_record(error):
                raise
            point.rollback()
            unusable += 1
            why = str(getattr(error, "orig", None) or error)[:500]
            upsert(
                connection,
                tables.unusable,
                {"journal": journal, "sequence": sequence},
                {"record": canonical(record), "why": f"{type(error).__name__}: {why}"},
            )
    if fresh:
        upsert(connection, tables.journal, {"id": journal}, {"last": fresh[-1][0]})
    return unusable
