"""The shell's verbs for the run database: `rodeo runs list|show|diff|config|export|import|take|audit`."""

import argparse
import datetime
import difflib
import json
import re
import sys
from pathlib import Path

from rodeo import saying
from rodeo.control.cli import help_text
from rodeo.control.refused import Refused

EXITS = {  # exit statuses from src/cli/explain/error_codes.md; other codes have 5 (refused)
    "control.argument": 2,
    "control.unknown_verb": 2,
    "control.which_database": 2,
    "control.no_run_number": 2,
    "control.system": 3,
    "control.package": 1,
    "control.run_json": 1,
    "control.no_config": 1,
    "control.check": 1,
    "control.command": 1,
    "control.gone": 4,
    "base.runtime_dir": 1,
}
EPILOGUE = help_text.EXITS.format(partial="some were not imported", seven="the audit was tampered with")
FILTERS = {  # words of `rodeo runs list`
    "state": ("OPEN", "CLOSED", "ABORTED"),
    "condition": ("GOOD", "INCOMPLETE", "WRONG", "ABORTED"),
    "flag": ("DEGRADED", "INTERRUPTED", "TAINTED"),
}
SECONDS = {"s": 1, "min": 60, "h": 3600, "d": 86400}
LONGEST_AGO_S = 100 * 366 * 86400  # the database counts ns in 64 bits


def parser(verb, formats="table json csv"):
    made = help_text.Parser(
        prog=f"rodeo runs {verb}", description=VERBS[verb][1] + ".", epilog=EPILOGUE, allow_abbrev=False
    )
    made.add_argument(
        "--database",
        metavar="DATABASE",
        help="an SQLite file, or an address like postgresql+psycopg://HOST/NAME (default: RODEO_DATABASE, runs.db here or in one "
        "directory below, or that of the running control room)",
    )
    made.add_argument("--system", metavar="FILE", help="the database of this system file, or of a system's directory")
    if formats:
        made.add_argument(
            "-o",
            "--output",
            choices=formats.split(),
            default=formats.split()[0],
            metavar=formats.replace(" ", "|"),
            help=f"output format (default {formats.split()[0]})",
        )
    return made


def schema_of(options, store=False):
    from rodeo.control.paths import needed

    needed("sqlalchemy")
    from rodeo.control.cli import runs
    from rodeo.control.database.schema import Schema

    return Schema(runs.database_url(options.database, options.system, store))


def read(options, function, *arguments):
    """Calls function(connection, ...) of database/queries.py on the chosen database."""
    schema = schema_of(options)
    from rodeo.control.database.queries import Reads

    if schema.path is not None and not schema.path.exists():
        raise Refused(
            "control.database",
            f"the run database {schema.path} does not exist",
            "rodeo control SYSTEM makes one; --database chooses another",
        )
    return Reads(schema).now(function, *arguments)


def run_number(text):
    """A run number: 12 or 000012."""
    if not re.fullmatch(r"[0-9]{1,18}", text) or not 1 <= int(text) < 2**31:
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is not a run number (1 to 2147483647)")
    return int(text)


def count(text):
    """A whole number from 0."""
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is not a whole number from 0")
    return int(text)


def word_of(words):
    """A reader of one of these words, in any case."""

    def read(text):
        if text.upper() in words:
            return text.upper()
        near = difflib.get_close_matches(text.upper()[:40], words, 1, 0.6)
        raise argparse.ArgumentTypeError(
            f"`{text[:40]}` is not one of {', '.join(words)}" + (f"; did you mean {near[0]}?" if near else "")
        )

    return read


def moment(text):
    """UTC ns of 2026-11-24, 2026-11-24T12:00, or 2h (two hours ago)."""
    if match := re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(s|min|h|d)", text):
        if float(match[1]) * SECONDS[match[2]] > LONGEST_AGO_S:
            raise argparse.ArgumentTypeError(f"`{text[:40]}` is longer ago than 100 years")
        return int(
            datetime.datetime.now(datetime.timezone.utc).timestamp() * 10**9
            - float(match[1]) * SECONDS[match[2]] * 10**9
        )
    try:
        when = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"`{text[:40]}` is not a time; for example 2026-11-24, 2026-11-24T12:00 (UTC), or 2h for two hours ago"
        ) from None
    seconds = (when if when.tzinfo else when.replace(tzinfo=datetime.timezone.utc)).timestamp()
    if abs(seconds) >= 2**63 // 10**9:
        raise argparse.ArgumentTypeError(f"`{text[:40]}` is not in the years 1678 to 2261")
    return int(seconds) * 10**9


def say(text):
    print(text, flush=True)


def rows_out(options, keys, rows, text):
    from rodeo.control.printed import csv_text

    if options.output == "json":
        say(json.dumps(rows, indent=2))
    elif options.output == "csv":
        sys.stdout.write(csv_text(keys, [[row.get(key) for key in keys] for row in rows]))
    else:
        say(text(rows))


def newest(options, limit=0, before=None, filters=None):
    """Returns (the newest `limit` rows of runs, 0: all; whether older ones exist). Reads in pieces, so that the length of the database is not limited."""
    from rodeo.control.database import queries

    rows, wanted = [], limit + 1 if limit else sys.maxsize
    while len(rows) < wanted:
        count = min(queries.MOST_RUNS, wanted - len(rows))
        piece = read(options, queries.runs, count, before, filters)
        rows += piece
        if len(piece) < count:
            break
        before = piece[-1]["number"]
    return rows[: wanted - 1], len(rows) == wanted


def run_list(argv):
    made = parser("list")
    made.add_argument(
        "--limit", type=count, default=20, metavar="N", help="the number of runs, the newest (default 20; 0: all)"
    )
    made.add_argument("--before", type=run_number, metavar="RUN", help="only runs older than this run")
    for name, what in (("type", "of a type"), ("holder", "started by this user")):
        made.add_argument(f"--{name}", metavar=name.upper(), help=f"only runs {what}")
    for name, words in FILTERS.items():
        made.add_argument(
            f"--{name}",
            type=word_of(words),
            metavar=name.upper(),
            help=f"only such runs: {', '.join(words[:-1])} or {words[-1]}",
        )
    made.add_argument(
        "--since", type=moment, metavar="TIME", help="started since: 2026-11-24, 2026-11-24T12:00 (UTC), or 2h ago"
    )
    made.add_argument("--until", type=moment, metavar="TIME", help="started until")
    options = made.parse_args(argv)
    filters = {
        name: getattr(options, name) or ("" if name in FILTERS else None)
        for name in ("type", "state", "condition", "flag", "holder")
    }
    filters.update(since_ns=options.since, until_ns=options.until)
    schema_of(options)
    from rodeo.control.cli import runs
    from rodeo.control.database import queries

    rows, more = newest(options, options.limit, options.before, filters)
    chosen = any(filters.values()) or options.before is not None

    def text(rows):
        if not rows and chosen:
            return "no runs match\n  rodeo runs list without filters shows all"
        return runs.list_text(rows) + (f"\nolder ones: rodeo runs list --before {rows[-1]['number']}" if more else "")

    rows_out(options, queries.KEYS, rows, text)


def run_show(argv):
    made = parser("show")
    made.add_argument("run", type=run_number, nargs="?", metavar="RUN", help="its number (default: the last one)")
    options = made.parse_args(argv)
    schema_of(options)
    from rodeo.control.cli import runs
    from rodeo.control.database import queries

    record = read(
        options,
        lambda connection: queries.run(connection, options.run if options.run is not None else last_run(connection)),
    )
    if options.output == "json":
        say(json.dumps(record, indent=2))
    elif options.output == "csv":
        rows_out(options, queries.KEYS, [{**record, "files": len(record["files"])}], None)
    else:
        say(runs.show_text(record))


def last_run(connection):
    from rodeo.control.database import queries

    rows = queries.runs(connection, 1)
    if not rows:
        raise Refused("control.no_run_number", "there are no runs yet", "rodeo control start begins one")
    return rows[0]["number"]


def run_diff(argv):
    made = parser("diff")
    made.add_argument("a", type=run_number, metavar="RUN", help="a run")
    made.add_argument("b", type=run_number, metavar="RUN", help="another")
    options = made.parse_args(argv)
    schema_of(options)
    from rodeo.control.cli import runs
    from rodeo.control.database import queries
    from rodeo.control.printed import csv_text

    found = read(options, queries.diff, options.a, options.b)
    if options.output == "json":
        say(json.dumps(found, indent=2))
    elif options.output == "csv":
        rows = [["run", "", name, one, two] for name, (one, two) in found["run"].items()]
        rows += [["configuration", each["class"], each["key"], each["a"], each["b"]] for each in found["configuration"]]
        rows += [["settings", each["process"], "", each["a"], each["b"]] for each in found["settings"]]
        rows += [["counters", each["process"], each["name"], each["a"], each["b"]] for each in found["counters"]]
        sys.stdout.write(csv_text(["what", "of", "name", "a", "b"], rows))
    else:
        say(runs.diff_text(found))


def run_config(argv):
    made = parser("config", "table json")
    made.add_argument("run", type=run_number, metavar="RUN", help="its number")
    made.add_argument("--directory", metavar="DIR", help="a new or empty directory (default run-NNNNNN-configuration)")
    options = made.parse_args(argv)
    schema_of(options)
    from rodeo.control.database import configuration_files, queries

    configuration = read(options, queries.configuration, options.run)
    directory = Path(options.directory or f"run-{options.run:06d}-configuration")
    written = configuration_files.write(directory, configuration)
    if options.output == "json":
        say(
            json.dumps(
                {"run": options.run, "directory": str(directory), "files": [str(each) for each in written]}, indent=2
            )
        )
    else:
        say("\n".join(map(str, written)))


def run_export(argv):
    made = parser("export", "table json")
    made.add_argument("runs", type=run_number, nargs="*", metavar="RUN", help="their numbers (default: all)")
    made.add_argument(
        "--to",
        metavar="DIR",
        default=".",
        help="directory for the files run-NNNNNN.json, or - for one run on stdout (default: here)",
    )
    options = made.parse_args(argv)
    schema_of(options)
    from rodeo.control.database import queries, run_json

    numbers = options.runs or [row["number"] for row in reversed(newest(options)[0])]
    if options.to == "-":
        if len(numbers) != 1:
            raise Refused(
                "control.argument",
                f"rodeo runs export: one run can go to stdout, not {len(numbers)}",
                "name one run, or --to DIRECTORY",
            )
        return say(json.dumps(run_json.document(read(options, queries.run, numbers[0])), indent=1))
    paths = []
    try:
        Path(options.to).mkdir(parents=True, exist_ok=True)
        for number in numbers:
            record = read(options, queries.run, number)
            paths.append(str(run_json.write_file(Path(options.to) / f"run-{number:06d}.json", record)))
    except OSError as error:
        raise Refused(
            "control.directory",
            f"cannot write {error.filename or options.to}: {error.strerror}",
            "name another directory: --to",
        ) from None
    if options.output == "json":
        say(json.dumps({"files": paths}, indent=2))
    else:
        say("\n".join(paths) or "no runs\n  rodeo control start begins one")


def run_import(argv):
    made = parser("import")
    made.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="run.json or an exported file, a run's folder, a system's directory, or the report of `rodeo readout --json` (-: from stdin)",
    )
    made.add_argument("--of", metavar="NAME", help="the system name for runs from such reports (default: readout)")
    options = made.parse_args(argv)
    schema = schema_of(options)
    from rodeo.control.database import import_runs
    from rodeo.control.database.bare_readout import STDIN
    from rodeo.control.printed import Cell, table

    paths = [STDIN if path == "-" else path for path in options.paths]
    results = [
        {"file": str(path), "number": number, "outcome": outcome}
        for path, number, outcome in import_runs.import_paths(schema, paths, options.of)
    ]
    rows_out(
        options,
        ("file", "number", "outcome"),
        results,
        lambda rows: "\n".join(
            table(
                ["run", "file", "outcome"],
                [
                    [
                        Cell(row["number"]),
                        Cell(row["file"]),
                        Cell(row["outcome"], style=None if row["outcome"] in IMPORTED else "bad"),
                    ]
                    for row in rows
                ],
            )
        ),
    )
    good = sum(row["outcome"] in IMPORTED for row in results)
    return 0 if good == len(results) else 6 if good else 1


def run_take(argv):
    made = parser("take", "table json")
    made.add_argument(
        "--of", metavar="NAME", default="readout", help="the system name for the number (default: readout)"
    )
    made.add_argument("--least", type=run_number, default=1, metavar="N", help="at least this number (default: 1)")
    options = made.parse_args(argv)
    schema = schema_of(options, store=True)
    from rodeo.control.database import bare_readout

    number = bare_readout.draw_number(schema, options.of, options.least)
    say(json.dumps({"run": number}) if options.output == "json" else str(number))


IMPORTED = ("imported", "there already")


def run_audit(argv):
    made = parser("audit")
    made.add_argument(
        "--limit", type=count, default=50, metavar="N", help="the number of rows, the newest (default 50; 0: all)"
    )
    options = made.parse_args(argv)
    schema_of(options)
    from rodeo.control.cli import runs
    from rodeo.control.database import queries

    rows, found = read(
        options,
        lambda connection: (queries.audit(connection, options.limit or 100_000), queries.verify_audit(connection)),
    )
    if options.output == "json":
        say(
            json.dumps(
                {"rows": found["rows"], "verified": found["broken"] is None, "broken": found["broken"], "audit": rows},
                indent=2,
            )
        )
    else:
        rows_out(
            options,
            (
                "id",
                "time_ns",
                "system",
                "actor",
                "whence",
                "role",
                "command",
                "arguments",
                "outcome",
                "detail",
                "sha256",
            ),
            rows,
            runs.audit_text,
        )
    if found["broken"] is None:
        if options.output == "table" and found["rows"]:
            say(f"{found['rows']} rows, none changed or missing")
        return 0
    saying.say(
        f"error[control.audit]: row {found['broken']['id']} of the audit: {found['broken']['why']}\n  later rows prove nothing; look at a copy"
    )
    return 7


VERBS = {
    "list": (run_list, "Lists runs, the newest first"),
    "show": (run_show, "Shows all data of a run"),
    "diff": (run_diff, "Compares two runs: configuration, settings, counters, outcome"),
    "config": (run_config, "Writes the exact configuration of a run as files"),
    "export": (run_export, "Writes runs as JSON files, which import reads"),
    "import": (run_import, "Imports runs of another database, or from run.json in their folders"),
    "take": (run_take, "Takes the next number, for a readout without a control room"),
    "audit": (run_audit, "Shows who did what, and verifies that no row was changed"),
}


def usage():
    return help_text.page(
        ["rodeo runs VERB"],
        "The run database: the runs, their configurations, users and results.",
        tables=[("Verbs", [(verb, what) for verb, (_, what) in VERBS.items()])],
        remark="rodeo runs VERB --help shows more.",
        exits=EPILOGUE,
    )


def dispatch(argv):
    if not argv or argv[0] in ("-h", "--help"):
        say(usage())
        return 0 if argv else 2
    if argv[0] not in VERBS:
        from rodeo.control.state.commands import nearest

        near = nearest(argv[0], VERBS)
        raise Refused(
            "control.unknown_verb",
            f"rodeo runs: there is no verb `{argv[0][:40]}`",
            f"did you mean `{near}`?" if near else "rodeo runs --help lists the verbs",
        )
    return VERBS[argv[0]][0](argv[1:])


def main(argv=None):
    """Runs one verb. Returns the exit status, as in `rodeo --help`."""
    try:
        return dispatch(sys.argv[1:] if argv is None else argv) or 0
    except Refused as refused:
        saying.say(refused)
        return EXITS.get(refused.code, 5)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
