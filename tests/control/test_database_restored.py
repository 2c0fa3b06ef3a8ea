"""A run database restored from a copy, or with values that JSON lacks: no run number is used twice, and rows are valid JSON."""

import asyncio
import contextlib
import json
import shutil
import sqlite3

import pytest
from databases import gone, good
from rodeo.control.database.database import Database


def kept(directory, work):
    """Calls work(database) with the database of a directory, and closes the database."""

    async def whole():
        database = Database(f"sqlite:///{directory / 'runs.db'}", directory, "lab")
        await database.open()
        try:
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(whole())


async def one_run(database):
    number = await database.writer.open_run("lab", "test", "ana", "", {"classes": {}}, "build", [])
    (database.directory / "runs" / f"{number:06d}").mkdir(parents=True, exist_ok=True)
    await database.writer.close_run(number, "CLOSED", "GOOD", [], "", 1, 2, 3)
    return number


def runs(count):
    async def work(database):
        return [await one_run(database) for _ in range(count)]

    return work


def kept_centrally(directory, central, work, system="lab"):
    """Calls work(database) with the store of a directory and the database of all systems."""

    async def whole():
        database = Database(f"sqlite:///{central}", directory, system, retry_s=0.1)
        await database.open()
        try:
            return await work(database)
        finally:
            await database.close()

    return asyncio.run(whole())


async def files_of_a_run(database, system, names):
    """Adds a run with files. Returns its number."""
    number = await database.writer.open_run(system, "test", "ana", "", {"classes": {}}, "build", [])
    for name in names:
        await database.writer.file(number, f"/data/{name}", "local", 4096, "a" * 64, 4, True, "closed")
    await database.writer.close_run(number, "CLOSED", "GOOD", [], "", 1, 2, 3)
    return number


def test_a_directory_copied_while_its_room_runs_loses_no_record_of_either(tmp_path):
    (tmp_path / "here").mkdir()
    central = tmp_path / "central.db"

    async def main():
        original = Database(f"sqlite:///{central}", tmp_path / "here", "lab", retry_s=0.1)
        await original.open()
        await files_of_a_run(original, "lab", ["before"])
        shutil.copytree(tmp_path / "here", tmp_path / "there")
        copy = Database(f"sqlite:///{central}", tmp_path / "there", "annex", retry_s=0.1)
        await copy.open()
        numbers = {}
        for round_ in range(3):  # both directories use the same sequence numbers
            for database, system in ((original, "lab"), (copy, "annex")):
                names = [f"{system}-{round_}-{index}" for index in range(3)]
                numbers[await files_of_a_run(database, system, names)] = [f"/data/{name}" for name in names]
        await good(original)
        await good(copy)
        found = {
            number: sorted(each["path"] for each in (await original.reads.run(number))["files"]) for number in numbers
        }
        health = original.health(), copy.health()
        await copy.close()
        await original.close()
        return numbers, found, health, original.id, copy

    numbers, found, health, first, copy = asyncio.run(main())
    assert found == numbers and len(numbers) == 6
    assert [(each["lost"], each["unusable"]) for each in health] == [(0, 0)] * 2
    assert copy.id != first and copy.renewed


def overwritten(backup, file):
    shutil.copyfile(backup, file)  # this copy does not change the file's inode


def renamed(backup, file):
    backup.replace(file)


def copy_of(file, target):
    """Copies a database that a room may be writing."""
    with contextlib.closing(sqlite3.connect(file)) as source, contextlib.closing(sqlite3.connect(target)) as copy:
        source.backup(copy)


@pytest.mark.parametrize("put_back", [overwritten, renamed])
def test_a_backup_put_back_after_the_database_went_on_loses_no_later_record(tmp_path, put_back):
    (tmp_path / "here").mkdir()
    central, file, backup = tmp_path / "central.db", tmp_path / "here" / "runs.db", tmp_path / "backup"

    async def run(database):
        return await files_of_a_run(database, "lab", ["a", "b"])

    async def run_and_backup(database):
        number = await run(database)
        copy_of(file, backup)
        await run(database)
        return number

    async def later(database):
        numbers = [await run(database) for _ in range(2)]
        await good(database)
        rows = [await database.reads.run(number) for number in (1, 2, *numbers)]
        return (
            numbers,
            [(row["state"], len(row["files"])) for row in rows],
            database.health()["lost"],
            database.renewed,
        )

    assert kept_centrally(tmp_path / "here", central, run_and_backup) == 1
    put_back(backup, file)
    numbers, rows, lost, renewed = kept_centrally(tmp_path / "here", central, later)
    assert (numbers, rows, lost) == ([1001, 1002], [("CLOSED", 2)] * 4, 0)
    assert "restored" in renewed


def test_what_a_moved_directory_had_not_yet_told_the_database_is_told_once(tmp_path):
    """Waiting records keep their ids. So the server has each record once, even if two copies of a store feed it."""
    (tmp_path / "here").mkdir()
    central = tmp_path / "central.db"

    async def gone_at_the_end(database):
        number = await database.writer.open_run("lab", "test", "ana", "", {"classes": {}}, "build", [])
        await good(database)
        central.rename(tmp_path / "away")
        await gone(database)
        await database.writer.note(number, "ana", "waits")
        shutil.copytree(tmp_path / "here", tmp_path / "there")
        return number

    async def read(database):
        await good(database)
        return [each["text"] for each in (await database.reads.run(1))["notes"]]

    assert kept_centrally(tmp_path / "here", central, gone_at_the_end) == 1
    (tmp_path / "away").rename(central)
    assert kept_centrally(tmp_path / "there", central, read) == ["waits"]
    assert kept_centrally(tmp_path / "here", central, read) == ["waits"]


@pytest.fixture
def restored(tmp_path):
    """A directory after runs 1 to 5, with a copy of the database from after run 2."""
    assert kept(tmp_path, runs(2)) == [1, 2]
    shutil.copy(tmp_path / "runs.db", tmp_path / "copy")
    assert kept(tmp_path, runs(3)) == [3, 4, 5]
    for each in tmp_path.glob("runs.db*"):
        each.unlink()
    shutil.copy(tmp_path / "copy", tmp_path / "runs.db")
    return tmp_path


def test_a_database_that_was_put_back_from_a_copy_gives_no_number_twice_and_says_what_it_is(restored):
    async def work(database):
        return await one_run(database), database.renewed, [row["number"] for row in await database.reads.runs()]

    assert kept(restored, work) == (6, "it was restored from a copy", [6, 2, 1])


def test_folders_without_a_run_json_do_not_count(restored):
    shutil.rmtree(restored / "runs")
    for name in ("000003", "000007", "20261124", "²"):
        (restored / "runs" / name).mkdir(parents=True)
    (restored / "runs" / "000003" / "run.json").write_text("{}")
    assert kept(restored, runs(2)) == [4, 5]


@pytest.fixture
def copied_in_a_run(tmp_path):
    """A directory whose database is a copy from the middle of run 1; the run has ended since."""

    async def begun(database):
        await database.writer.open_run("lab", "test", "ana", "", {"classes": {}}, "build", [])

    async def ended(database):
        (tmp_path / "runs" / "000001").mkdir(parents=True)
        await database.writer.note(1, "ana", "good beam")
        await database.writer.process(1, "reader", "local", "essential", 0, None, None, {"chunks": {"sent": 8}})
        await database.writer.close_run(1, "CLOSED", "GOOD", [], "", 1, 2, 3)

    kept(tmp_path, begun)
    shutil.copy(tmp_path / "runs.db", tmp_path / "copy")
    kept(tmp_path, ended)
    for each in tmp_path.glob("runs.db*"):
        each.unlink()
    shutil.copy(tmp_path / "copy", tmp_path / "runs.db")
    return tmp_path


def test_a_run_that_has_ended_since_a_copy_was_made_is_not_open_for_a_room_that_begins(copied_in_a_run):
    before = (copied_in_a_run / "runs" / "000001" / "run.json").read_bytes()

    async def work(database):
        return await database.writer.open_runs(), await database.reads.run(1)

    rows, run = kept(copied_in_a_run, work)
    assert (rows, run["state"], run["condition"], run["closed_ns"]) == ([], "CLOSED", "GOOD", 3)
    assert ([each["text"] for each in run["notes"]], [each["name"] for each in run["processes"]]) == (
        ["good beam"],
        ["reader"],
    )
    assert (copied_in_a_run / "runs" / "000001" / "run.json").read_bytes() == before


def test_a_run_that_has_ended_since_a_copy_was_made_keeps_nobody_from_starting_one(copied_in_a_run):
    assert kept(copied_in_a_run, runs(1)) == [2]


def test_the_run_json_of_one_run_is_not_written_over_with_that_of_another(copied_in_a_run):
    file = copied_in_a_run / "runs" / "000001" / "run.json"
    for each in copied_in_a_run.glob("runs.db*"):
        each.unlink()
    (copied_in_a_run / "runs" / "000001").rename(copied_in_a_run / "away")  # without it, the number is used again

    async def work(database):
        number = await database.writer.open_run("lab", "test", "ana", "", {"classes": {}}, "build", [])
        (copied_in_a_run / "away").rename(copied_in_a_run / "runs" / f"{number:06d}")
        await database.writer.close_run(number, "ABORTED", "ABORTED", [], "", None, 2, 3)

    kept(copied_in_a_run, work)
    assert '"state": "CLOSED"' in file.read_text()


def test_what_is_no_number_is_unknown_in_a_row_and_rows_are_json(tmp_path):
    bad = {"nan": float("nan"), "more": [float("inf"), 1.5]}

    async def work(database):
        writer = database.writer
        number = await writer.open_run("lab", "test", "ana", "", {"classes": {}, "bad": bad}, "build", [])
        await writer.process(number, "readout", "local", "essential", 0, None, None, bad)
        await writer.alarm(
            {
                "cause": "disk",
                "severity": "alarm",
                "raised_ns": 5,
                "what": "full",
                "value": float("nan"),
                "limit": float("inf"),
            },
            number,
        )
        await writer.audit("ana", "shell", "expert", "start", bad, "done")
        await writer.remember("fact", bad)
        await writer.close_run(number, "CLOSED", "GOOD", [], "", 1, 2, 3)
        return (
            await database.reads.run(number),
            await database.reads.audit(),
            await writer.recall("fact"),
            await database.reads.verify_audit(),
        )

    run, audit, fact, verified = kept(tmp_path, work)
    left = {"nan": None, "more": [None, 1.5]}
    assert json.loads(json.dumps([run, audit, fact], allow_nan=False)) is not None
    assert (run["processes"][0]["report"], audit[0]["arguments"], fact, run["configuration"]["bad"]) == (
        left,
        left,
        left,
        left,
    )
    assert (run["alarms"][0]["value"], run["alarms"][0]["limit"]) == (None, None)
    assert verified == {"rows": 1, "broken": None}
