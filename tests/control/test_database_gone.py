"""Each row of "When the database is gone" (docs/run-database.md) with a server of `control.database`: PostgreSQL that stops, hangs, or loses its tables."""

import asyncio
import sqlite3
import subprocess

import postgresql
import pytest
from conftest import scaled
from databases import ALARM, begin, end, gone, good, opened, until, whole_run
from rodeo.control.database import run_json
from rodeo.control.refused import Refused
from running_room import RunningRoom
from small_systems import one_card
from test_database import do, script


@pytest.fixture(scope="module")
def running_server():
    with postgresql.running() as server:
        yield server


@pytest.fixture
def server(running_server):
    """The server with an empty database."""
    running_server.empty()
    return running_server


def texts(run):
    """The notes of a run, the oldest first."""
    return [each["text"] for each in reversed(run["notes"])]


def once(server):
    """All notes of the server in the order of their rows."""
    return [text for (text,) in server.sql("select text from note order by id")]


def test_a_whole_run_is_on_the_server(tmp_path, server):
    async def main():
        async with opened(tmp_path, server.url) as database:
            number = await whole_run(database)
            await good(database)
            run = await database.reads.run(number)
            assert (run["state"], run["condition"], run["events"], texts(run)) == (
                "CLOSED",
                "GOOD",
                4,
                ["beam was off"],
            )
            assert (await database.reads.verify_audit())["broken"] is None

    do(main())
    assert server.sql("select number, state from run") == [(1, "CLOSED")]


def test_row_1_an_open_run_goes_on_and_ends_and_its_records_follow_once_and_in_order(tmp_path, server):
    async def main():
        async with opened(tmp_path, server.url) as database:
            number, writer = await begin(database), database.writer
            await good(database)
            back = server.stop()
            try:
                for index in range(20):
                    await writer.note(number, "ana", str(index))
                await gone(database)
                await end(database, number, flags=["DEGRADED"])
                assert writer.health()["journal"] == 21
                assert await begin(database) == number + 1
                await end(database, number + 1)
            finally:
                back()
            await good(database)
            run = await database.reads.run(number)
            assert (run["state"], run["flags"], texts(run)) == (
                "CLOSED",
                ["DEGRADED"],
                [str(index) for index in range(20)],
            )
            assert await begin(database) == number + 2
            assert [writer.health()[name] for name in ("unusable", "lost")] == [0, 0]

    do(main())


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from databases import ALARM, begin, end, gone, good, opened

async def main(place, url):
    async with opened(place, url) as database:
        number = await begin(database)
        await good(database)
        print("begun", flush=True)
        sys.stdin.readline()  # the server is down
        await database.writer.alarm(ALARM, number)
        await database.writer.remember("memory", {"choice": "reader"})
        for index in range(20):
            await database.writer.note(number, "ana", str(index))
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def test_row_4_a_room_that_begins_without_its_database_knows_run_alarms_and_choices(tmp_path, server):
    process = script(KILLED, tmp_path, server.url, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "begun\n"
    back = server.stop()
    try:
        process.communicate("down\n", timeout=scaled(120))

        async def main():
            async with opened(tmp_path, server.url) as database:
                await gone(database)
                writer = database.writer
                assert [row["number"] for row in await writer.open_runs()] == [1]
                assert (await writer.alarms_standing(), await writer.recall("memory")) == (
                    [ALARM],
                    {"choice": "reader"},
                )
                await end(database, 1)
                back()
                await good(database)
                run = await database.reads.run(1)
                assert (run["state"], texts(run)) == ("CLOSED", [str(index) for index in range(20)])

        do(main())
    finally:
        if server.process.poll() is not None:
            back()
    assert once(server) == [str(index) for index in range(20)]


FULL = """
import asyncio, resource, sys
from pathlib import Path
from databases import begin, end, good, opened, until

async def main(place, url):
    async with opened(place, url) as database:
        number = await begin(database)
        await good(database)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))  # less than a page of the file
        for index in range(300):
            await database.writer.note(number, "ana", str(index) + " " * 100)
        last = index
        await until(lambda: not database.writer.health()["journal"], "the server's rows")
        health = database.writer.health()
        assert health["file_why"] and not health["lost"] and health["run_numbers"] == 0, health
        texts = [int(each["text"]) for each in reversed((await database.reads.run(number))["notes"])]
        assert texts == list(range(last + 1)), texts
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await end(database, number)
        await until(lambda: not database.writer.health()["file_why"], "the disk")
        await good(database)
        run = await database.reads.run(number)
        assert run["state"] == "CLOSED" and [int(each["text"]) for each in reversed(run["notes"])] == texts
        assert not database.writer.health()["lost"]
    print("whole")

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def test_row_5_records_go_to_the_server_while_the_disk_is_full(tmp_path, server):
    process = script(FULL, tmp_path, server.url)
    assert process.communicate(timeout=scaled(300))[0].split() == ["whole"] and process.returncode == 0


def test_row_6_a_record_that_fits_no_table_is_kept_and_holds_nothing_up(tmp_path, server):
    async def main():
        async with opened(tmp_path, server.url) as database:
            number = await begin(database)
            await database.writer.file(number, "/a", "local", 2**70, None, None, False, "closed")
            await end(database, number)
            await end(database, number)  # ends the run a second time
            await good(database)
            assert database.writer.health()["unusable"] == 2 and (await database.reads.run(number))["state"] == "CLOSED"

    do(main())
    assert server.sql("select count(*) from unusable") == [(2,)]


def test_row_3_a_server_that_has_lost_its_tables_gets_new_ones_and_later_numbers(tmp_path, server):
    async def main():
        async with opened(tmp_path, server.url) as database:
            for _ in range(2):
                await end(database, await begin(database))
            await good(database)
        server.empty()
        async with opened(tmp_path, server.url) as database:
            await good(database)
            number = await begin(database)
            await end(database, number)
            await good(database)
            assert (number, (await database.reads.run(number))["state"]) == (3, "CLOSED")
            assert [row["number"] for row in await database.here.runs()] == [3, 2, 1]

    do(main())


def test_rows_of_another_system_do_not_hold_up_a_run(tmp_path, server):
    async def main():
        async with opened(tmp_path / "here", server.url) as here, opened(tmp_path / "there", server.url) as there:
            there.system = "annex"
            numbers = [await begin(here), await begin(there, system="annex")]
            for database, number in zip((here, there), numbers):
                await end(database, number)
                await good(database)
            assert len({*numbers}) == 2
            assert [row["state"] for row in await here.reads.runs()] == ["CLOSED"] * 2

    do(main())


def test_row_2_a_copy_of_the_local_file_put_back_in_a_run_gets_what_it_lacks(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            number = await begin(database)
            await database.writer.note(number, "ana", "before")
            await good(database)
            with sqlite3.connect(tmp_path / "runs.db") as source:
                copy = sqlite3.connect(tmp_path / "copy.db")
                source.backup(copy)
                copy.close()
            source.close()
            await database.writer.note(number, "ana", "after")
            await good(database)
            (tmp_path / "runs.db").rename(tmp_path / "away.db")
            await database.writer.note(number, "ana", "without")
            await gone(database)
            (tmp_path / "copy.db").rename(tmp_path / "runs.db")
            await good(database)
            await end(database, number)
            await good(database)
            run = await database.reads.run(number)
            assert (run["state"], texts(run)) == ("CLOSED", ["before", "after", "without"])
            assert database.writer.health()["lost"] == 0

    do(main())


def test_row_2_a_run_that_has_ended_but_is_open_in_a_copy_is_closed_from_its_run_json(tmp_path):
    """Once more in test_database_restored.py for a room that begins."""
    folder = tmp_path / "runs" / "000001"

    async def main():
        async with opened(tmp_path) as database:
            number = await begin(database)
            await good(database)
            with sqlite3.connect(tmp_path / "runs.db") as source:
                copy = sqlite3.connect(tmp_path / "copy.db")
                source.backup(copy)
                copy.close()
            source.close()
            folder.mkdir(parents=True)
            await end(database, number)
        assert (folder / "run.json").is_file()
        for each in tmp_path.glob("runs.db*"):
            each.unlink()
        (tmp_path / "copy.db").rename(tmp_path / "runs.db")
        async with opened(tmp_path) as database:
            assert await database.writer.open_runs() == []
            assert (await database.reads.run(number))["condition"] == "GOOD"
            assert await begin(database) == number + 1

    do(main())


def test_two_rooms_draw_from_the_server_at_once(tmp_path, server):
    async def one(database, system):
        numbers = []
        for _ in range(5):
            numbers.append(await begin(database, system=system))
            await end(database, numbers[-1])
        return numbers

    async def main():
        async with opened(tmp_path / "here", server.url) as here, opened(tmp_path / "there", server.url) as there:
            there.system = "annex"
            found = await asyncio.gather(one(here, "lab"), one(there, "annex"))
            await good(here)
            await good(there)
            return found

    found = do(main())
    assert len({*found[0], *found[1]}) == 10
    assert {number for (number,) in server.sql("select number from run")} == {*found[0], *found[1]}


def test_row_4_a_room_that_begins_without_its_file_knows_the_open_run_from_its_run_json(tmp_path):
    folder = tmp_path / "runs" / "000002"

    async def before():
        async with opened(tmp_path) as database:
            await end(database, await begin(database))
            folder.mkdir(parents=True)
            number = await begin(database)
            await until((folder / "run.json").exists, "run.json")
            await database.writer.note(number, "ana", "lost with the file")

    do(before())
    for each in tmp_path.glob("runs.db*"):
        each.unlink()

    async def after():
        async with opened(tmp_path) as database:
            assert [(row["number"], row["holder"]) for row in await database.writer.open_runs()] == [(2, "ana")]
            with pytest.raises(Refused, match="run 2 of `lab` is open"):
                await begin(database)
            await end(database, 2)
            run = await database.reads.run(2)
            assert (run["state"], [each["name"] for each in run["processes"]]) == ("CLOSED", ["reader"])
            assert await begin(database) == 3
        assert '"state": "CLOSED"' in (folder / "run.json").read_text()

    do(after())


def test_a_room_starts_and_ends_runs_while_its_server_is_gone(place, server):
    file = one_card(place)
    text = file.read_text()
    file.write_text(text.replace("[control]\n", f'[control]\ndatabase = "{server.url}"\n'))
    with RunningRoom(file) as room:
        room.command("launch")
        room.until(lambda document: document["database"]["run_numbers"] == 1000, "a block of run numbers")
        room.until(lambda document: not document["database"]["journal"], "nothing is left to send")
        back = server.stop()
        try:
            room.until(lambda document: document["database"]["state"] == "gone", "the server is missed")
            room.until(lambda document: any(each["cause"] == "database" for each in document["alarms"]), "the warning")
            room.command("start", run_type="test")
            room.until(lambda document: document["numbers"]["events"], "events come")
            room.command("stop")
            assert room.document()["database"]["run_numbers"] == 999
            record = run_json.read(place / "t" / "runs" / "000001" / "run.json")
            assert (record["state"], record["condition"]) == ("CLOSED", "GOOD")
        finally:
            back()
        room.until(lambda document: document["database"]["state"] == "good", "the server is back")
        room.until(lambda document: not document["database"]["journal"], "the server has all records")
        assert room.row(1)["condition"] == "GOOD"
    assert server.sql("select number, state from run") == [(1, "CLOSED")]
