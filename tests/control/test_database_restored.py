"""A run database that was put back from a copy, or says what JSON has no word for: no number is given twice, and what is read is JSON."""

import asyncio
import json
import shutil

import pytest
from rodeo.control.database import Database


def kept(directory, work):
    """work(database) with the database of a directory, which is closed at the end."""

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
    await database.writer.close_run(number, "CLOSED", "GOOD", [], "", 1, 2, 3)
    return number


def runs(count):
    async def work(database):
        return [await one_run(database) for _ in range(count)]

    return work


@pytest.fixture
def restored(tmp_path):
    """A directory in which runs 1 to 5 were, and the database is a copy from after run 2."""
    assert kept(tmp_path, runs(2)) == [1, 2]
    shutil.copy(tmp_path / "runs.db", tmp_path / "copy")
    assert kept(tmp_path, runs(3)) == [3, 4, 5]
    for each in tmp_path.glob("runs.db*"):
        each.unlink()
    shutil.copy(tmp_path / "copy", tmp_path / "runs.db")
    return tmp_path


def test_a_database_that_was_put_back_from_a_copy_gives_no_number_twice_and_says_what_it_lacks(restored):
    async def work(database):
        return await one_run(database), database.health()["lost"], [row["number"] for row in await database.reads.runs()]

    number, lost, rows = kept(restored, work)
    assert (number, rows) == (6, [6, 2, 1])
    assert lost == 6  # a row and its end, of three runs


def test_folders_with_a_run_json_count_where_the_journal_is_gone_too(restored):
    (restored / "journal.jsonl").unlink()
    for name in ("000003", "000007", "20261124", "²"):
        (restored / "runs" / name).mkdir(parents=True)
    (restored / "runs" / "000003" / "run.json").write_text("{}")
    assert kept(restored, runs(2)) == [4, 5]


def test_what_is_no_number_is_unknown_in_a_row_and_rows_are_json(tmp_path):
    bad = {"nan": float("nan"), "more": [float("inf"), 1.5]}

    async def work(database):
        writer = database.writer
        number = await writer.open_run("lab", "test", "ana", "", {"classes": {}, "bad": bad}, "build", [])
        await writer.process(number, "readout", "local", "essential", 0, None, None, bad)
        await writer.alarm({"cause": "disk", "severity": "alarm", "raised_ns": 5, "what": "full", "value": float("nan"), "limit": float("inf")}, number)
        await writer.audit("ana", "shell", "expert", "start", bad, "done")
        await writer.remember("fact", bad)
        await writer.close_run(number, "CLOSED", "GOOD", [], "", 1, 2, 3)
        return await database.reads.run(number), await database.reads.audit(), await writer.recall("fact"), await database.reads.verify_audit()

    run, audit, fact, verified = kept(tmp_path, work)
    left = {"nan": None, "more": [None, 1.5]}
    assert json.loads(json.dumps([run, audit, fact], allow_nan=False)) is not None
    assert (run["processes"][0]["report"], audit[0]["arguments"], fact, run["configuration"]["bad"]) == (left, left, left, left)
    assert (run["alarms"][0]["value"], run["alarms"][0]["limit"]) == (None, None)
    assert verified == {"rows": 1, "broken": None}
