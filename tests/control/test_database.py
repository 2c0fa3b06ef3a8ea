"""The run database: numbers, rows, the chain of the audit; and a database that is removed, locked, damaged, or on a full disk."""

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD, scaled
from databases import ALARM, begin, end, gone, good, opened, until, whole_run
from rodeo.control.database import run_json
from rodeo.control.database.queries import paused_seconds
from rodeo.control.refused import Refused

HERE = Path(__file__).parent


def do(work):
    """Runs a test's coroutine."""
    return asyncio.run(work)


def script(text, *arguments, **options):
    """Starts a Python process with the package and the helpers of these tests."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(BUILD / "python"), str(HERE)])}
    return subprocess.Popen(
        [sys.executable, "-B", "-c", text, *map(str, arguments)],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def test_numbers_that_processes_and_threads_draw_at_once_have_no_repeats(tmp_path):
    drawing = """
import asyncio, sys
from pathlib import Path
from databases import begin, end, opened
from rodeo.control.database.database import Database

async def main(url, place, systems):
    place.mkdir()
    async with opened(place, url, busy_s=300.0) as database:
        async def one(system):
            for _ in range(3):
                number = await begin(database, system=system)
                await end(database, number)
                sys.stdout.write(f"{number} ")  # one write per number, because the other thread writes, too
                sys.stdout.flush()
        await asyncio.gather(*(asyncio.to_thread(lambda each=each: asyncio.run(one(each))) for each in systems))

place = Path(sys.argv[2])
asyncio.run(main(sys.argv[1], place, [f"{place.name}-{index}" for index in range(2)]))
"""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    processes = [script(drawing, url, tmp_path / f"p{index}") for index in range(2)]
    numbers = [int(number) for process in processes for number in process.communicate(timeout=scaled(600))[0].split()]
    assert [process.returncode for process in processes] == [0, 0]
    assert len(numbers) == len({*numbers}) == 12

    async def rows():
        async with opened(tmp_path) as database:
            return await database.reads.runs(100)

    assert [row["number"] for row in do(rows())] == sorted(numbers, reverse=True)


def test_one_run_of_a_system_is_open_at_a_time(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            first = await begin(database)
            with pytest.raises(Refused) as refused:
                await begin(database)
            other = await begin(database, system="test")
            assert (first, other, refused.value.code) == (1, 2, "control.run_open") and "run 1" in refused.value.what
            assert [row["number"] for row in await database.writer.open_runs()] == [1, 2]
            await end(database, first)
            assert await begin(database) == 3

    do(main())
    with (
        sqlite3.connect(tmp_path / "runs.db") as connection,
        pytest.raises(sqlite3.IntegrityError),
    ):  # a trigger in the tables refuses this for all writers
        connection.execute("update run set state = 'OPEN' where number = 1")
    connection.close()


def test_all_that_is_written_of_a_run_can_be_read(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            run = await database.reads.run(await whole_run(database))
            assert (run["state"], run["condition"], run["seconds"], run["bytes"], run["events"]) == (
                "CLOSED",
                "GOOD",
                2.0,
                4096,
                4,
            )
            assert [(each["name"], each["outcome"]) for each in run["transitions"]] == [("start", "done")]
            reader = run["processes"][0]
            assert (reader["kind"], reader["exit"], reader["pid"], reader["report"]["chunks"], reader["settings"]) == (
                "readout",
                0,
                7,
                {"sent": 8},
                ["readout.name=lab-reader"],
            )
            assert [(each["path"], each["sha256"], each["verified"]) for each in run["files"]] == [
                ("/data/run.data", "a" * 64, False)
            ]
            assert {each["name"]: each["value"] for each in run["counters"]} == {"fragments_built": 4, "rate": 0.5}
            assert (
                run["alarms"] == [{**ALARM, "run": 1}]
                and run["notes"][0]["text"] == "beam was off"
                and run["quality"][0]["verdict"] == "good"
            )
            assert run["configuration"]["classes"]["reader"]["text"] == "[readout]\r\n# exact\n"
            assert [row["number"] for row in await database.reads.runs(filters={"condition": "GOOD"})] == [1]
            assert await database.reads.runs(filters={"condition": "WRONG"}) == []
            with pytest.raises(Refused, match="no run 9"):
                await database.reads.run(9)

    do(main())


@pytest.mark.parametrize(
    ("pauses", "paused"),
    [
        ((), 0.0),
        ((("pause", 11), ("resume", 13)), 2.0),
        ((("pause", 11), ("resume", 12), ("pause", 15), ("go_on", 18)), 4.0),
        ((("pause", 18),), 2.0),
        ((("resume", 5), ("pause", 5), ("resume", 12)), 2.0),
        ((("pause", 11), ("pause", 13), ("resume", 14)), 3.0),
        ((("pause", 11), ("resume", None)), 9.0),
    ],
)
def test_paused_time_is_that_between_a_pause_and_what_ends_it(pauses, paused):
    row = {"seconds": 10.0, "first_event_ns": 10 * 10**9, "stopped_ns": 20 * 10**9}
    assert paused_seconds(row, [(name, when and when * 10**9) for name, when in pauses]) == paused
    assert paused_seconds({**row, "seconds": None}, ()) is None


def test_the_rows_of_runs_say_how_long_they_were_paused(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            number = await begin(database)
            for name, ended_ns in (("pause", 15 * 10**8), ("resume", 2 * 10**9)):
                await database.writer.transition(number, name, "", "", "ana", 0, ended_ns, "done")
            await end(database, number)
            await good(database)
            assert [row["paused_seconds"] for row in await database.reads.runs()] == [0.5] and (
                await database.reads.run(number)
            )["paused_seconds"] == 0.5

    do(main())


def test_a_newer_version_of_a_note_takes_the_place_of_the_older(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            await database.writer.note(None, "ana", "bean was off")
            (first,) = await database.reads.notes()
            await database.writer.note(None, "ana", "beam was off", replaces=first["id"])
            assert [(each["text"], each["versions"]) for each in await database.reads.notes()] == [("beam was off", 2)]

    do(main())


def test_an_alarm_stands_until_it_is_both_cleared_and_acknowledged(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            writer = database.writer
            standing = [
                ALARM,
                {**ALARM, "acked_by": "ana", "acked_ns": 110},
                {**ALARM, "raised_ns": 200},
                {**ALARM, "raised_ns": 200, "cleared_ns": 210},
            ]
            for each in standing:
                await writer.alarm(each, None)
                assert await writer.alarms_standing() == [each]
            await writer.alarm({**standing[-1], "acked_by": "bob", "acked_ns": 220}, None)
            assert await writer.alarms_standing() == []
            assert [(each["raised_ns"], each["acked_by"]) for each in await database.reads.alarm_history()] == [
                (200, "bob"),
                (100, "ana"),
            ]

    do(main())


def test_what_stands_is_there_for_the_next_controller(tmp_path):
    async def before():
        async with opened(tmp_path) as database:
            await begin(database)
            await database.writer.alarm(ALARM, 1)
            await database.writer.remember("run", {"number": 1})
            await database.writer.remember("gone", 1)
            await database.writer.remember("gone", None)

    do(before())

    async def after():
        async with opened(tmp_path) as database:
            writer = database.writer
            assert [row["number"] for row in await writer.open_runs()] == [1]
            assert (await writer.alarms_standing(), await writer.recall("run"), await writer.recall("gone")) == (
                [ALARM],
                {"number": 1},
                None,
            )
            await end(database, 1)

    do(after())


def test_the_audit_shows_what_was_changed_and_what_is_missing(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            for index in range(4):
                await database.writer.audit(
                    "ana", "shell", "shifter", "note", {"text": str(index)}, "done" if index else "refused"
                )
            assert [row["arguments"]["text"] for row in await database.reads.audit(limit=3)] == ["3", "2", "1"]
            assert await database.reads.verify_audit() == {"rows": 4, "broken": None}
            for statement, broken in (
                ("update audit set actor = 'bob' where id = 2", 2),
                ("delete from audit where id = 3", 3),
                ("delete from audit where id = 4", 4),
                ("delete from audit", 1),
            ):
                edited = sqlite3.connect(tmp_path / "copy.db")
                with sqlite3.connect(tmp_path / "runs.db") as source:
                    source.backup(edited)
                source.close()
                with edited:
                    edited.execute(statement)
                edited.close()
                async with opened(tmp_path / "elsewhere", f"sqlite:///{tmp_path / 'copy.db'}") as copy:
                    assert (await copy.reads.verify_audit())["broken"]["id"] == broken, statement

    do(main())


def lock(path):
    """Locks the database against other writers, as another process would."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    return connection.close


def remove(path):
    away = path.with_name("away.db")
    path.rename(away)
    return lambda: away.rename(path)


def damage(path):
    """Replaces the database by a file that is not a database."""
    away = path.with_name("away.db")
    path.rename(away)
    path.write_bytes(b"no database " * 1000)
    return lambda: away.replace(path)


def hide(path):
    """Makes stat() fail with an error other than "no such file", as on a network file system that is away for a moment."""
    away = path.with_name("away.db")
    path.rename(away)
    path.symlink_to("x" * 300)
    return lambda: away.replace(path)


@pytest.mark.parametrize("harm", [lock, remove, damage, hide])
def test_acceptance_21_a_run_ends_whole_while_the_database_is_gone_and_is_replayed(tmp_path, harm):
    async def main():
        async with opened(tmp_path, busy_s=0.2) as database:
            number, writer = await begin(database), database.writer
            await good(database)
            heal = harm(tmp_path / "runs.db")
            try:
                await writer.note(number, "ana", "0")
                await gone(database)
                for index in range(1, 20):
                    await writer.note(number, "ana", str(index))
                await writer.remember("memory", {"choice": "reader"})
                await end(database, number, flags=["DEGRADED"])
                assert writer.health()["journal"] == 22
                with pytest.raises(Refused) as refused:
                    await begin(database)
                assert refused.value.code == "control.database" and "runs.db" in refused.value.what
            finally:
                heal()
            await good(database)
            run = await database.reads.run(number)
            assert (run["state"], run["flags"]) == ("CLOSED", ["DEGRADED"])
            assert [each["text"] for each in reversed(run["notes"])] == [str(index) for index in range(20)]
            assert await writer.open_runs() == [] and await writer.recall("memory") == {"choice": "reader"}
            assert await begin(database) == number + 1
            assert [writer.health()[name] for name in ("unusable", "lost")] == [0, 0]

    do(main())


def test_no_room_begins_with_a_damaged_file_and_one_begins_when_it_is_back(tmp_path):
    async def before():
        async with opened(tmp_path) as database:
            await begin(database)
            await database.writer.remember("run", {"number": 1})

    do(before())
    heal = damage(tmp_path / "runs.db")

    async def after():
        with pytest.raises(Refused) as refused:
            async with opened(tmp_path):
                pass
        assert refused.value.code == "control.database" and "damaged" in refused.value.what
        heal()
        async with opened(tmp_path) as database:
            assert [row["number"] for row in await database.writer.open_runs()] == [1]
            assert await database.writer.recall("run") == {"number": 1}

    do(after())


def test_a_database_that_was_deleted_is_begun_anew_with_the_run_and_the_next_number(tmp_path):
    async def main():
        async with opened(tmp_path, renew_after_s=0.1) as database:
            for _ in range(2):
                await end(database, await begin(database))
            number = await begin(database)
            await good(database)
            (tmp_path / "runs.db").unlink()
            await gone(database)
            await database.writer.note(number, "ana", "the file was deleted")
            await asyncio.sleep(0.5)
            assert not (
                tmp_path / "runs.db"
            ).exists()  # during an open run the writer makes no new database: the file may come back
            await end(database, number)
            await good(database)
            assert (await database.reads.run(number))["notes"][0]["text"] == "the file was deleted"
            assert await begin(database) == number + 1

    do(main())


def test_a_database_that_is_new_beside_folders_of_runs_gives_numbers_behind_theirs(tmp_path):
    (tmp_path / "runs" / "000041").mkdir(parents=True)

    async def main():
        async with opened(tmp_path) as database:
            assert await begin(database) == 42

    do(main())


def test_a_disk_that_is_full_costs_nothing_when_there_is_room_again(tmp_path):
    full = """
import asyncio, resource, sys
from pathlib import Path
from databases import begin, end, gone, good, opened

async def main(place):
    async with opened(place) as database:
        number = await begin(database)
        await good(database)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))  # less than a page of the file
        for index in range(30):
            await database.writer.note(number, "ana", str(index))
        await gone(database)
        health = database.writer.health()
        assert health["file_why"] and health["lost"] == 0 and health["journal"] == 30, health
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        await end(database, number)
        await good(database)
        run = await database.reads.run(number)
        assert [each["text"] for each in reversed(run["notes"])] == [str(index) for index in range(30)] and run["state"] == "CLOSED"
        assert not database.writer.health()["file_why"] and database.writer.health()["lost"] == 0
        print("whole")

asyncio.run(main(Path(sys.argv[1])))
"""
    process = script(full, tmp_path)
    assert process.communicate(timeout=scaled(300))[0].split() == ["whole"] and process.returncode == 0


def test_the_folder_of_a_run_has_the_same_as_the_database_also_when_that_came_late(tmp_path):
    folder = tmp_path / "runs" / "000001"

    async def main():
        async with opened(tmp_path) as database:
            number = await begin(database)
            folder.mkdir(parents=True)
            await good(database)
            heal = remove(tmp_path / "runs.db")
            await database.writer.transition(number, "stop", "RUNNING", "READY", "ana", 1, 2, "done")
            await end(database, number)
            await gone(database)
            assert not (folder / "run.json").exists()
            heal()
            await until((folder / "run.json").exists, "run.json")
            await database.writer.note(number, "ana", "said later")
        async with opened(tmp_path) as database:
            return await database.reads.run(number)

    run = do(main())
    assert run_json.read(folder / "run.json") == json.loads(json.dumps(run)) and run["notes"] and run["transitions"]


def test_a_record_that_fits_no_table_is_kept_and_counted_and_holds_nothing_up(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            number = await begin(database)
            await database.writer.file(number, "/a", "local", 2**70, None, None, False, "closed")
            await end(database, number)
            await end(database, number)  # ends the run a second time
            await good(database)
            assert database.writer.health()["unusable"] == 2 and (await database.reads.run(number))["state"] == "CLOSED"

    do(main())


def test_text_that_no_database_takes_is_made_harmless(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            await database.writer.note(None, "a\0na", "half a pair \ud800, and too long " + "x" * 30_000)
            (note,) = await database.reads.notes()
            assert note["author"] == "ana" and note["text"].startswith("half a pair ?") and len(note["text"]) == 20_000
            assert database.writer.health()["unusable"] == 0

    do(main())


def test_what_is_no_database_is_refused(tmp_path):
    from rodeo.control.database.database import Database

    for url in ("nonsense", "sqlite://", "nosuch://host/name"):
        with pytest.raises(Refused) as refused:
            Database(url, tmp_path)
        assert refused.value.code == "control.database", url
