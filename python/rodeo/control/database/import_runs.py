"""Imports runs into another database: from a run.json, or from the report of a readout without a control room. Blocks."""

from pathlib import Path

from rodeo.control.database import apply_records, bare_readout, queries, run_json, tables
from rodeo.control.database.tables import OPEN, sa
from rodeo.control.printed import utc
from rodeo.control.refused import Refused


def put(connection, record, keep_open=False):
    """Inserts a run of a run.json into a database, or replaces its open row. Returns False if the database has this run already, else True. An open run is
    closed, unless `keep_open`.
    Refused: control.run_exists if another run has its number; control.run_json if a part of it fits no table."""
    try:
        number_ = int(record["number"])
        if not 1 <= number_ <= tables.LARGEST_RUN:  # later numbers would be larger still
            raise Refused(
                "control.run_json", f"{str(record['number'])[:40]} is not a run number (1 to {tables.LARGEST_RUN})", ""
            )
        there = connection.execute(
            sa.select(tables.run.c.asked_ns, tables.run.c.system, tables.run.c.state).where(
                tables.run.c.number == number_
            )
        ).first()
        if there is not None:
            if (there.asked_ns, there.system) == (record["asked_ns"], record["system"]):
                if there.state != OPEN or record["state"] == OPEN:
                    return False
                for table_ in tables.RUN_TABLES:
                    connection.execute(table_.delete().where(table_.c.run == number_))
                connection.execute(tables.run.delete().where(tables.run.c.number == number_))
                there = None
        if there is not None:
            raise Refused(
                "control.run_exists",
                f"another run has the number {number_}: of `{there.system}`, started {utc(there.asked_ns)} UTC",
                "import it into another database",
            )
        _put(connection, record, keep_open)
        queries.run(connection, number_)
        return True
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        OverflowError,
        sa.exc.IntegrityError,
        sa.exc.DataError,
    ) as error:
        raise Refused(
            "control.run_json",
            f"run {record.get('number')}: {type(error).__name__}: {getattr(error, 'orig', None) or error}",
            "",
        ) from None


def _put(connection, record, keep_open):
    number_ = int(record["number"])
    row = {name: record[name] for name in queries.KEYS if name in tables.run.c and name != "flags"}
    apply_records.count(connection, record["system"], number_)
    if record["state"] == OPEN and not keep_open:  # this database has no controller that could close it
        row.update(
            state=tables.CLOSED,
            reason="; ".join(
                filter(
                    None, [record["reason"], "its end is unknown, because it was open when its run.json was written"]
                )
            ),
        )
    if record.get("configuration") is not None:
        row["config_sha256"] = apply_records.keep_config(connection, record["configuration"])
    connection.execute(tables.run.insert().values(**row, flags=" ".join(record["flags"])))
    for each in record["processes"]:
        each = {
            **each,
            "settings": apply_records.canonical(each["settings"]),
            "report": None if each["report"] is None else apply_records.canonical(each["report"]),
        }
        _insert(connection, tables.process, number_, each)
    for table_, key in (
        (tables.transition, "transitions"),
        (tables.file, "files"),
        (tables.counter, "counters"),
        (tables.lumi_block, "lumi_blocks"),
        (tables.quality, "quality"),
    ):
        for each in record.get(key) or ():  # older versions have no luminosity blocks
            _insert(connection, table_, number_, each)
    for each in record["notes"]:
        _insert(connection, tables.note, number_, {**each, "replaces": None})
    for each in record["alarms"]:
        apply_records.alarm(connection, {**each, "system": record["system"], "run": number_})


def _insert(connection, table_, number_, values):
    known = {name: value for name, value in values.items() if name in table_.c and name not in ("run", "id")}
    connection.execute(table_.insert().values(run=number_, **known))


def _found(paths):
    """Returns the files of runs, and results for paths without any. Refused(control.run_json) if the only path has none."""
    files, results = [], []
    for path in paths:
        try:
            files += run_json.found([path])
        except Refused as refused:
            if len(paths) == 1:
                raise
            results.append((Path(path), None, refused.what))
    return list(dict.fromkeys(files)), results


def import_paths(schema, paths, system=None):
    """Imports run.json files and reports of readouts (for `system`) from `paths`. Returns [(path, number or None, "imported" | "there already" | why not)]."""
    files, results = _found(paths)
    engine = schema.engine(create=True)
    try:
        with engine.connect() as connection:
            schema.bring_up(connection)
            for path in files:
                number_ = None
                try:
                    report = bare_readout.read(path)
                    record = run_json.read(path) if report is None else bare_readout.record(path, report, system)
                    number_ = record.get("number")
                    with connection.begin():
                        results.append((path, number_, "imported" if put(connection, record) else "there already"))
                except Refused as refused:
                    results.append((path, number_, refused.what))
    except sa.exc.SQLAlchemyError as error:
        from rodeo.control.database.schema import fault_text

        raise Refused(
            "control.database", f"the run database cannot be written: {fault_text(error, schema)}", ""
        ) from None
    finally:
        engine.dispose()
    return results
