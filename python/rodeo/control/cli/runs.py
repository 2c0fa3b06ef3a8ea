"""Runs in the shell: their display, and the choice of the database."""

import contextlib
import os
import sqlite3
import tomllib
from pathlib import Path

from rodeo.control import paths
from rodeo.control.database import apply_records
from rodeo.control.database.tables import OPEN
from rodeo.control.printed import Cell, number, properties, table, utc
from rodeo.control.refused import Refused

VARIABLE = "RODEO_DATABASE"
CONDITIONS = {"GOOD": "good", "INCOMPLETE": "warning", "ABORTED": "bad", "WRONG": "bad"}

# The columns of a list of runs: title for people, key for programs.
COLUMNS = (
    ("run", "number"),
    ("started (UTC)", "asked_ns"),
    ("length [s]", "seconds"),
    ("type", "type"),
    ("events", "events"),
    ("files", "files"),
    ("size [MB]", "bytes"),
    ("state", "state"),
    ("condition", "condition"),
    ("flags", "flags"),
    ("holder", "holder"),
    ("comment", "comment"),
)


def url_of(text):
    """The address of a database; a file name means SQLite."""
    return text if "://" in text else f"sqlite:///{Path(text).absolute()}"


def database_url(database=None, system=None, store=False):
    """The address of the database: `database` (an address or a file), else of `system` (its file or directory), else $RODEO_DATABASE, runs.db here or in the
    only directory below that has one, or of the running control room. Of a system with a server this is the server, with `store` its own runs.db.
    Refused(control.which_database) if none or several are found."""
    if database:
        return url_of(database)
    if system:
        return _of_system(Path(system), store)
    if os.environ.get(VARIABLE):
        return url_of(os.environ[VARIABLE])
    here = [each for each in (Path("runs.db"), *sorted(Path(".").glob("*/runs.db"))) if each.is_file()]
    stores = [] if store else [each for each in here if _feeds_a_server(each)]
    here = [each for each in here if each not in stores]
    if here and (here[0] == Path("runs.db") or len(here) == 1):
        return url_of(str(here[0]))
    if here:
        raise Refused(
            "control.which_database",
            "several run databases are here: " + ", ".join(map(str, here[:5])),
            "choose one: --database",
        )
    rooms = paths.rooms()
    if len(rooms) == 1:
        from rodeo.control.client import connect

        with connect(rooms[0]) as client:
            return _of_system(Path(client.status()["system"]["file"]), store)
    if rooms:
        raise Refused(
            "control.which_database",
            "several control rooms of yours run: " + ", ".join(rooms),
            "choose one by its file: --system",
        )
    raise Refused(
        "control.which_database",
        f"{f'the runs of {stores[0]} are on a server' if stores else 'no run database is here'}, and no control room of yours runs",
        "--database or --system names one; rodeo control SYSTEM makes one",
    )


def _feeds_a_server(path):
    """Whether a runs.db is the store of a system whose runs are all on a server. It may lack older ones."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as file,
    ):
        return any(server for (server,) in file.execute("select server from store"))
    return False


def _is_system(path):
    try:
        return "control" in tomllib.loads(path.read_text())
    except (OSError, ValueError):
        return False


def _of_system(path, store):
    if path.is_dir():
        files = (
            [] if (path / "runs.db").is_file() else [each for each in sorted(path.glob("*.toml")) if _is_system(each)]
        )
        if len(files) > 1:
            raise Refused(
                "control.which_database",
                f"{path} has several system files: " + ", ".join(each.name for each in files[:5]),
                "name one of them: --system",
            )
        if not files:
            return url_of(str(path / "runs.db"))
        path = files[0]
    from rodeo.control.state.system import load

    system = load(path, paths.rodeo_command(), check_classes=False)
    return (not store and system.database) or url_of(str(system.directory / "runs.db"))


# As text
def _condition(row):
    return Cell(row["condition"], style=CONDITIONS.get(row["condition"]))


def list_text(rows):
    """A table of runs; without runs, advice."""
    if not rows:
        return "no runs\n  rodeo control start begins one; rodeo runs import reads run.json of another database"
    return "\n".join(
        table(
            [title for title, _ in COLUMNS],
            [
                [
                    Cell(row["number"]),
                    Cell(utc(row["asked_ns"])),
                    number(row["seconds"], digits=1),
                    Cell(row["type"]),
                    number(row["events"]),
                    number(row["files"]),
                    number(row["bytes"], 1e6, 1),
                    Cell(row["state"], style="strong" if row["state"] == OPEN else None),
                    _condition(row),
                    Cell(row["flags"], style="warning"),
                    Cell(row["holder"]),
                    Cell(row["comment"]),
                ]
                for row in rows
            ],
            if_any=("flags", "holder", "comment"),
        )
    )


def show_text(record):
    """All data of a run, for a terminal."""
    parts = [
        properties(
            [
                ("run", Cell(record["number"], style="strong")),
                ("system", Cell(record["system"])),
                ("type", Cell(record["type"])),
                ("state", Cell(record["state"])),
                ("condition", _condition(record)),
                ("flags", Cell(record["flags"], style="warning")),
                ("reason", Cell(record["reason"] or None)),
                ("started (UTC)", Cell(utc(record["asked_ns"]))),
                ("first event (UTC)", Cell(utc(record["first_event_ns"]))),
                ("stopped (UTC)", Cell(utc(record["stopped_ns"]))),
                ("closed (UTC)", Cell(utc(record["closed_ns"]))),
                ("length [s]", number(record["seconds"], digits=3)),
                ("of it paused [s]", number(record["paused_seconds"] or None, digits=3)),
                ("events", number(record["events"])),
                ("size [MB]", number(record["bytes"], 1e6, 3)),
                ("holder", Cell(record["holder"])),
                ("comment", Cell(record["comment"] or None)),
                ("build", Cell(record["build"] or None)),
                ("configuration", Cell(record["config_sha256"])),
            ]
        )
    ]
    parts += _section(
        "transitions",
        ["transition", "from", "to", "by", "began (UTC)", "took [s]", "outcome", "detail"],
        [
            [
                Cell(each["name"]),
                Cell(each["from_state"]),
                Cell(each["to_state"]),
                Cell(each["actor"]),
                Cell(utc(each["began_ns"])),
                number(_took(each), digits=3),
                Cell(each["outcome"], style=None if each["outcome"] == "done" else "warning"),
                Cell(each["detail"]),
            ]
            for each in record["transitions"]
        ],
    )
    parts += _section(
        "processes",
        ["process", "kind", "host", "role", "pid", "exit", "signal", "core"],
        [
            [
                Cell(each["name"]),
                Cell(each["kind"]),
                Cell(each["host"]),
                Cell(each["role"]),
                Cell(each["pid"]),
                Cell(each["exit"], style="bad" if each["exit"] else None),
                Cell(each["signal"], style="bad"),
                Cell(each["core"]),
            ]
            for each in record["processes"]
        ],
    )
    parts += _section(
        "files",
        ["file", "host", "state", "size [MB]", "events", "verified", "sha256"],
        [
            [
                Cell(each["path"]),
                Cell(each["host"]),
                Cell(each["state"], style=None if each["state"] == "closed" else "warning"),
                number(each["bytes"], 1e6, 3),
                number(each["events"]),
                Cell("yes" if each["verified"] else "no"),
                Cell(each["sha256"], each["sha256"] and each["sha256"][:16]),
            ]
            for each in record["files"]
        ],
    )
    parts += _section(
        "counters",
        ["process", "counter", "value"],
        [
            [
                Cell(each["process"]),
                Cell(each["name"]),
                number(each["value"], digits=0 if isinstance(each["value"], int) else 3),
            ]
            for each in last_counters(record["counters"])
            if each["value"]
        ],
    )
    parts += _section(
        "alarms",
        ["alarm", "severity", "raised (UTC)", "cleared (UTC)", "acknowledged by", "what"],
        [
            [
                Cell(each["cause"]),
                Cell(each["severity"], style="bad" if each["severity"] == "alarm" else "warning"),
                Cell(utc(each["raised_ns"])),
                Cell(utc(each["cleared_ns"])),
                Cell(each["acked_by"]),
                Cell(each["what"]),
            ]
            for each in record["alarms"]
        ],
    )
    parts += _section(
        "notes",
        ["written (UTC)", "by", "note"],
        [[Cell(utc(each["written_ns"])), Cell(each["author"]), Cell(each["text"])] for each in record["notes"]],
    )
    parts += _section(
        "luminosity blocks",
        ["block", "scan step", "first trigger", "first id", "triggers", "recorded"],
        [
            [Cell(each[name]) for name in ("number", "scan_step", "first_trigger", "first_id", "triggers", "recorded")]
            for each in record.get("lumi_blocks") or ()
        ],
    )
    parts += _section(
        "quality",
        ["subsystem", "from (UTC)", "to (UTC)", "verdict", "by", "verified by"],
        [
            [
                Cell(each["subsystem"]),
                Cell(utc(each["from_ns"])),
                Cell(utc(each["to_ns"])),
                Cell(each["verdict"]),
                Cell(each["by"]),
                Cell(each["verified_by"]),
            ]
            for each in record["quality"]
        ],
    )
    return "\n\n".join("\n".join(lines) for lines in parts)


def _section(name, titles, rows):
    return [table(titles, rows)] if rows else []


def _took(transition):
    began, ended = transition["began_ns"], transition["ended_ns"]
    return max(0, ended - began) / 1e9 if began is not None and ended is not None else None


def last_counters(counters):
    """The last value of each counter."""
    last = {}
    for each in counters:
        last[each["process"], each["name"], each["labels"]] = each
    return list(last.values())


def diff_text(found):
    """The differences of two runs, for a terminal."""
    a, b = f"run {found['a']}", f"run {found['b']}"
    parts = []
    if found["run"]:
        parts.append(
            table(["", a, b], [[Cell(name), _either(one), _either(two)] for name, (one, two) in found["run"].items()])
        )
    for title, key, first in (
        ("configuration", "configuration", ("class", "key")),
        ("set over it", "settings", ("process",)),
        ("counters", "counters", ("process", "name")),
    ):
        rows = [[*(Cell(each[name]) for name in first), _either(each["a"]), _either(each["b"])] for each in found[key]]
        if rows:
            parts.append([f"{title}:", *table([*first, a, b], rows)])
    return "\n\n".join("\n".join(lines) for lines in parts) or f"{a} and {b} differ only in their time"


def _either(value):
    if isinstance(value, float):
        return Cell(value, f"{value:.3f}")
    return Cell(value, "(empty)" if value == "" else None)


def audit_text(rows):
    """The audit, oldest first, so that the newest row is above the prompt."""
    if not rows:
        return "the audit is empty"
    return "\n".join(
        table(
            ["#", "when (UTC)", "who", "from", "role", "command", "arguments", "outcome", "detail"],
            [
                [
                    Cell(row["id"]),
                    Cell(utc(row["time_ns"])),
                    Cell(row["actor"]),
                    Cell(row["whence"]),
                    Cell(row["role"]),
                    Cell(row["command"]),
                    Cell(apply_records.canonical(row["arguments"]) if row["arguments"] else None),
                    Cell(row["outcome"], style=None if row["outcome"] == "done" else "warning"),
                    Cell(row["detail"]),
                ]
                for row in reversed(rows)
            ],
        )
    )
