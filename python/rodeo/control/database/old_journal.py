"""Takes over the `journal.jsonl` that rooms wrote before version 0003 of the tables: what stood when it begins, and its records, each once.

A file of JSON lines. The first one is {"journal": id, "after": sequence, "kept": what stood there, "former": [[id, its last sequence], ...]}; each other one is
{"journal": id, "sequence": n, "crc": checksum of the record, "record": {...}}. A last line without its end was never acknowledged.
"""

import contextlib
import json
import zlib
from itertools import groupby

from rodeo.control.database import apply_records, queries, tables
from rodeo.control.database.tables import CLOSED, OPEN

NAME = "journal.jsonl"


def read(path):
    """Returns (first line, [(id, sequence, record)] in order, number of damaged lines). The first line is {} if it is damaged. OSError."""
    head, lines, damaged, last = {}, [], 0, -1
    with open(path, "rb") as file:
        for number, line in enumerate(file):
            if not line.endswith(b"\n"):
                break
            value = None
            with contextlib.suppress(ValueError, RecursionError):
                value = json.loads(line)
            if number == 0 and isinstance(value, dict) and isinstance(value.get("kept"), dict):
                head = value
            elif _whole(value) and value["sequence"] > last:
                last = value["sequence"]
                lines.append((value["journal"], last, value["record"]))
            else:
                damaged += 1
    return head, lines, damaged


def _whole(value):
    try:
        text = json.dumps(value["record"], sort_keys=True, separators=(",", ":"))
        return value["crc"] == zlib.crc32(text.encode()) and isinstance(value["sequence"], int) and value["journal"]
    except (LookupError, TypeError, RecursionError):
        return False


def take(connection, path, system, server):
    """Puts a journal into a store, in the caller's transaction. `server`: the store feeds a server; it then gets the records, too. Returns (the last sequence,
    how many records are lost)."""
    head, lines, lost = read(path)
    after, kept = int(head.get("after") or 0), head.get("kept") or {}
    ids = {head.get("journal"), *(name for name, _ in head.get("former") or ()), *(name for name, _, _ in lines)}
    known = [last for name in ids - {None} if (last := apply_records.position(connection, name)) is not None]
    if server or not known:  # the tables are those of the server, or new
        stand(connection, system, kept)
    else:
        lost += max(0, after - max(known))
    for name, group in groupby(lines, key=lambda line: line[0]):
        group = [(sequence, record) for _, sequence, record in group]
        apply_records.batch(connection, name, group)
        for sequence, record in group if server else ():
            apply_records.upsert(
                connection, tables.outbox, {"sequence": sequence}, {"store": name, "record": json.dumps(record)}
            )
    if kept.get("last_number"):
        apply_records.count(connection, system, int(kept["last_number"]))
    return max([after, *(sequence for _, sequence, _ in lines)]), lost


def stand(connection, system, kept):
    """Makes the facts, open runs, blocks and alarms of `kept` (queries.standing) the only ones of a system that stand in a store."""
    fact, run, alarm = tables.remembered, tables.run, tables.alarm
    opened = kept.get("open_runs") or ()
    numbers = [row["number"] for row in opened]
    connection.execute(fact.delete().where(fact.c.system == system))
    for row in queries.alarms_standing(connection, system):
        where = alarm.c.system == system, alarm.c.cause == row["cause"], alarm.c.raised_ns == row["raised_ns"]
        connection.execute(alarm.update().where(*where).values(followed_ns=row["raised_ns"]))
    connection.execute(
        run.update()
        .where(run.c.system == system, run.c.state == OPEN, run.c.number.not_in(numbers))
        .values(state=CLOSED, reason="its end is not known")
    )
    records = [
        *({"kind": "remember", "key": key, "value": value} for key, value in (kept.get("remembered") or {}).items()),
        *({**row, "kind": "alarm", "run": None} for row in kept.get("alarms") or ()),
        *({**row, "kind": "open"} for row in opened),
        *({**block, "kind": "lumi_block", "run": numbers[-1]} for block in (kept.get("blocks") or ()) if numbers),
    ]
    for record in records:
        with contextlib.suppress(LookupError, TypeError):
            apply_records.KINDS[record["kind"]](connection, {**record, "system": system})
