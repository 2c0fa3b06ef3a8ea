"""Serves a `rodeo readout` without a control room: draws its run number from the run database, and makes a row from its report. Blocks."""

import json
import socket
from pathlib import Path

from rodeo.control.database import run_numbers, tables
from rodeo.control.database.run_json import STDIN
from rodeo.control.database.tables import sa
from rodeo.control.refused import Refused
from rodeo.control.state import status_schema
from rodeo.control.state.numbers import counters_of

SYSTEM = "readout"  # the system of runs without a control room
LONGEST = 64 * 2**20


def draw_number(schema, system=SYSTEM, least=1):
    """Takes a run number, at least `least`, of a database, which it makes if needed. A store that feeds a server gives it from its blocks. Refused(control.database)."""
    engine = schema.engine(create=True)
    try:
        with engine.connect() as connection:
            schema.bring_up(connection)
            with connection.begin():
                server = connection.execute(sa.select(tables.store.c.server)).scalar()
                if not server:
                    return run_numbers.reserve(connection, system, least=least)[0]
                number = run_numbers.take(connection, least=least)
                if number is None:
                    raise Refused(
                        "control.database",
                        f"{schema} has no run number left from {least} on",
                        f"its room takes the next ones from {server}, when it is there",
                    )
                return number
    except sa.exc.SQLAlchemyError as error:
        from rodeo.control.database.schema import fault_text

        raise Refused(
            "control.database", f"the run database cannot be written: {fault_text(error, schema)}", ""
        ) from None
    finally:
        engine.dispose()


def is_report(value):
    """Whether JSON is the end-of-run report of a readout, as opposed to the run.json of a control room."""
    return (
        isinstance(value, dict)
        and "format" not in value
        and isinstance(value.get("run"), dict)
        and isinstance(value.get("fragments"), dict)
    )


def record(path, value, system=None):
    """Makes the run of a report, in the form of a control room's run.json. The run ends at the time of the file; its length in the report gives its begin.
    Refused(control.run_json)."""
    path = Path(path)
    report, problems = status_schema.checked("report", value)
    run = report.get("run") or {}
    number = run.get("number")
    if not number:
        raise Refused(
            "control.run_json",
            f"{path}: the report has no run number" + (f" ({problems[0]})" if problems else ""),
            "reports of `rodeo readout --json` have one",
        )
    stopped_ns = path.stat().st_mtime_ns
    begun_ns = stopped_ns - int((run.get("seconds") or 0) * 1e9)
    condition = run.get("condition") or "ABORTED"
    name = run.get("name") or SYSTEM
    counters = [
        {"process": name, "name": key, "labels": "", "when_ns": stopped_ns, "value": count}
        for key, count in counters_of(report).items()
    ]
    return {
        "number": number,
        "system": system or SYSTEM,
        "type": "",
        "state": tables.ABORTED if condition == "ABORTED" else tables.CLOSED,
        "condition": condition,
        "flags": [],
        "asked_ns": begun_ns,
        "first_event_ns": begun_ns,
        "stopped_ns": stopped_ns,
        "closed_ns": stopped_ns,
        "reason": run.get("failure") or "",
        "build": "",
        "holder": "",
        "comment": ("report" if path == STDIN else f"report {path.name}") + " of a readout without a control room",
        "configuration": None,
        "config_sha256": None,
        "processes": [
            {
                "name": name,
                "class": name,
                "kind": "readout",
                "host": socket.gethostname(),
                "role": "essential",
                "pid": None,
                "build": None,
                "settings": [],
                "exit": None,
                "signal": None,
                "core": None,
                "report": report,
            }
        ],
        "files": [_file(path, each) for each in dict.fromkeys(report.get("files") or ())],
        "counters": counters,
        "transitions": [],
        "quality": [],
        "notes": [],
        "alarms": [],
    }


def _file(report, name):
    """Finds a file that a report names: at its path, else beside the report."""
    found = next((each for each in (Path(name), report.parent / name) if each.is_file()), None)
    return {
        "host": socket.gethostname(),
        "path": str((found or Path(name)).absolute()),
        "bytes": found.stat().st_size if found else None,
        "sha256": None,
        "events": None,
        "verified": False,
        "state": "closed" if found else "missing",
    }


def read(path):
    """Returns the report in a file, or None if the file contains anything else."""
    try:
        with open(path, encoding="utf-8") as file:
            value = json.loads(file.read(LONGEST))
    except (OSError, ValueError, RecursionError):
        return None
    return value if is_report(value) else None
