"""The store of a room: whole after kill -9 at any point, fed to a server once and in order, its id bound to its place, and taken over from older versions."""

import asyncio
import json
import random
import shutil
import signal
import sqlite3
import time
from pathlib import Path

import postgresql
import pytest
from conftest import scaled
from databases import ALARM, begin, end, gone, good, opened, until
from rodeo.control.cli.runs import database_url
from rodeo.control.database import feeding, schema, tables
from rodeo.control.database.bare_readout import draw_number
from rodeo.control.database.schema import Schema, network_file_system
from rodeo.control.refused import Refused
from test_database import do, script

OLD = Path(__file__).parent / "before_the_store"


@pytest.fixture(scope="module")
def running_server():
    with postgresql.running() as server:
        yield server


@pytest.fixture
def server(running_server):
    running_server.empty()
    return running_server


def rows(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def texts(path):
    return [text for (text,) in rows(path, "select text from note order by id")]


# The place of a store
async def one_fact(directory, host=None, wait=False):
    """Opens a store, writes a fact and a note; returns (id, why it was renewed, the facts before)."""
    async with opened(directory, f"sqlite:///{directory.parent / 'server.db'}", host=host) as database:
        before = await database.writer.recall("fact")
        await database.writer.remember("fact", (before or 0) + 1)
        await database.writer.note(None, "ana", f"{database.id} {before}")
        await good(database)
        return database.id, database.renewed, before


def copied(directory):
    shutil.copytree(directory, directory.parent / "there")
    return directory.parent / "there", None


def on_another_host(directory):
    return directory, "another"


def put_back(directory):
    shutil.copy(directory / "runs.db", directory / "backup")
    (directory / "backup").replace(directory / "runs.db")
    return directory, None


def test_a_store_at_its_place_keeps_its_id_over_any_number_of_openings(tmp_path):
    found = [do(one_fact(tmp_path / "lab")) for _ in range(3)]
    assert [each[1:] for each in found] == [("", None), ("", 1), ("", 2)] and len({each[0] for each in found}) == 1


@pytest.mark.parametrize(
    ("how", "why"), [(copied, "a copy of"), (on_another_host, "a copy of"), (put_back, "restored")]
)
def test_a_store_that_is_not_at_its_place_goes_on_under_a_new_id(tmp_path, how, why):
    first, _, _ = do(one_fact(tmp_path / "lab"))
    directory, host = how(tmp_path / "lab")
    second, renewed, before = do(one_fact(directory, host))
    assert second != first and why in renewed and before == 1
    assert do(one_fact(directory, host)) == (second, "", 2)
    assert texts(tmp_path / "server.db") == [f"{first} None", f"{second} 1", f"{second} 2"]


def test_a_store_belongs_to_one_process(tmp_path):
    async def main():
        async with opened(tmp_path):
            with pytest.raises(Refused) as refused:
                async with opened(tmp_path):
                    pass
            assert refused.value.code == "control.database" and "another control room" in refused.value.what

    do(main())


# The server
WRITING = """
import asyncio, sys
from pathlib import Path
from databases import opened

async def main(place, first):
    async with opened(place, f"sqlite:///{place / 'server.db'}", busy_s=0.05) as database:
        number = first
        while True:
            await database.writer.note(None, "ana", str(number))
            print(number, flush=True)
            number += 1

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


def test_kill_9_at_any_point_leaves_each_record_once_and_in_order(tmp_path):
    url = f"sqlite:///{tmp_path / 'server.db'}"

    async def fed():
        async with opened(tmp_path, url) as database:
            await good(database)
            assert [database.writer.health()[name] for name in ("unusable", "lost")] == [0, 0]

    do(fed())
    chance, acknowledged = random.Random(14), 0
    for life in range(4):
        process = script(WRITING, tmp_path, acknowledged + 1)
        holder = sqlite3.connect(tmp_path / "server.db", isolation_level=None, timeout=scaled(60))
        try:
            wanted = acknowledged + chance.randint(1, 60)
            deadline = time.monotonic() + scaled(120)
            while acknowledged < wanted:
                assert time.monotonic() < deadline
                line = process.stdout.readline()
                assert line.strip(), "it ended by itself"
                acknowledged = int(line)
                if life % 2 and acknowledged == wanted - 1:
                    holder.execute("BEGIN IMMEDIATE")  # only the store gets later records
        finally:
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read()
            process.communicate(timeout=scaled(60))
            holder.close()
        acknowledged = max([acknowledged, *(int(line) for line in rest.split() if line.isdigit())])
        do(fed())
        found = texts(tmp_path / "runs.db")
        assert found[:acknowledged] == [str(number) for number in range(1, acknowledged + 1)]
        assert len(found) - acknowledged in (0, 1) and texts(tmp_path / "server.db") == found
        assert rows(tmp_path / "runs.db", "select count(*) from outbox") == [(0,)]
        acknowledged = len(found)


def test_a_room_that_is_killed_before_it_knows_that_the_server_has_a_record_tells_it_again(tmp_path):
    async def main(forgets):
        async with opened(tmp_path, f"sqlite:///{tmp_path / 'server.db'}") as database:
            if forgets:
                database.was_fed = lambda sequence: None
            await database.writer.note(None, "ana", str(forgets))
            await until(lambda: database.feed.fed >= database._sequence, "the server")
            database.to_feed = lambda: 0

    do(main(True))
    assert rows(tmp_path / "runs.db", "select count(*) from outbox") == [(1,)]
    do(main(False))
    assert texts(tmp_path / "server.db") == ["True", "False"]
    assert rows(tmp_path / "runs.db", "select count(*) from outbox") == [(0,)]


def test_a_server_that_hangs_holds_up_neither_a_run_nor_the_end_of_the_room(tmp_path, server, monkeypatch):
    monkeypatch.setattr(schema, "ANSWER_S", 1.0)

    async def main():
        async with opened(tmp_path, server.url, busy_s=2.0) as database:
            number = await begin(database)
            await good(database)
            go_on = server.hang()
            try:
                for index in range(20):
                    await database.writer.note(number, "ana", str(index))
                await end(database, number)
                assert await begin(database) == number + 1
                await gone(database)
                await end(database, number + 1)
                assert (await database.here.run(number + 1))["state"] == "CLOSED"
            except BaseException:
                go_on()
                raise
        return go_on

    go_on = do(main())  # the room has ended
    go_on()

    async def after():
        async with opened(tmp_path, server.url) as database:
            await good(database)

    do(after())
    assert server.sql("select text from note order by id") == [(str(index),) for index in range(20)]
    assert server.sql("select number, state from run order by number") == [(1, "CLOSED"), (2, "CLOSED")]


def test_a_server_that_hangs_when_a_room_begins_does_not_hold_it_up(tmp_path, server):
    go_on = server.hang()
    try:

        async def main():
            async with opened(tmp_path, server.url, busy_s=2.0) as database:
                assert database.writer.health()["run_numbers"] == 0
                with pytest.raises(Refused, match="no run number is left"):
                    await begin(database)
                await database.writer.remember("fact", 1)
                go_on()
                await good(database)
                assert await begin(database) == 1

        do(main())
    finally:
        go_on()


def test_records_that_wait_in_the_file_go_to_the_server_before_those_in_memory(tmp_path, server):
    async def main():
        async with opened(tmp_path, server.url) as database:
            number = await begin(database)
            await good(database)
            back = server.stop()
            await database.writer.note(number, "ana", "in the file")
            (tmp_path / "runs.db").rename(tmp_path / "away.db")
            await database.writer.note(number, "ana", "in memory")
            await until(lambda: database.file.why, "the file to be missed")
            back()
            await until(lambda: not database.feed.server.why, "the server")
            await asyncio.sleep(0.3)
            assert server.sql("select text from note") == []
            (tmp_path / "away.db").rename(tmp_path / "runs.db")
            await good(database)
            assert server.sql("select text from note order by id") == [("in the file",), ("in memory",)]
            assert database.health()["lost"] == 0

    do(main())


def look(**changes):
    return feeding.Look(
        **{"connected": True, "next_s": 0.0, "waiting": 0, "left": 1000, "block": 1000, "ending": False, **changes}
    )


@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({}, ("wait", 1.0)),
        ({"connected": False}, ("connect", 0.0)),
        ({"connected": False, "next_s": 10.25}, ("wait", 0.25)),
        ({"connected": False, "next_s": 99.0, "waiting": 5}, ("wait", 1.0)),
        ({"waiting": 5}, ("feed", 0.0)),
        ({"left": 500, "waiting": 5}, ("reserve", 0.0)),
        ({"left": 501, "waiting": 5}, ("feed", 0.0)),
        ({"left": None}, ("wait", 1.0)),
        ({"ending": True}, ("end", 0.0)),
        ({"ending": True, "waiting": 5, "left": 0}, ("feed", 0.0)),
        ({"ending": True, "waiting": 5, "connected": False}, ("end", 0.0)),
    ],
)
def test_what_the_thread_of_the_server_does_next(changes, step):
    assert feeding.step(look(**changes), 10.0, 1.0) == step


# Run numbers
def test_systems_that_reserve_at_once_get_different_blocks_and_a_start_needs_no_server_while_one_lasts(
    tmp_path, server
):
    async def starts(database, system):
        return [await one(database, system) for _ in range(7)]

    async def one(database, system):
        number = await begin(database, system=system)
        await end(database, number)
        return number

    async def main():
        async with (
            opened(tmp_path / "a", server.url, block=10, system="a") as a,
            opened(tmp_path / "b", server.url, block=10, system="b") as b,
        ):
            drawn = await asyncio.gather(starts(a, "a"), starts(b, "b"))
            back = server.stop()
            try:
                lasting = []
                with pytest.raises(Refused) as refused:
                    while True:
                        lasting.append(await one(a, "a"))
                assert refused.value.code == "control.database" and "no run number is left" in refused.value.what
                assert lasting and a.writer.health()["run_numbers"] == 0
            finally:
                back()
            await good(a)
            await until(lambda: a.left, "new numbers")
            drawn.append([*lasting, await one(a, "a")])
            await good(a)
        numbers = [number for each in drawn for number in each]
        assert len(numbers) == len({*numbers})
        assert {number for (number,) in server.sql("select number from run")} == {*numbers}

    do(main())


def test_a_block_begins_behind_the_highest_number_of_the_server_and_of_the_store(tmp_path):
    server = f"sqlite:///{tmp_path / 'server.db'}"
    draw_number(Schema(server), "another", 41)
    (tmp_path / "annex").mkdir()
    draw_number(Schema(f"sqlite:///{tmp_path / 'annex' / 'runs.db'}"), "annex", 5000)

    async def first(system):
        async with opened(tmp_path / system, server, system) as database:
            return await begin(database, system=system)

    assert [do(first("lab")), do(first("annex"))] == [42, 5001]


def test_numbers_for_readouts_come_from_the_same_block(tmp_path, monkeypatch):
    server, store = f"sqlite:///{tmp_path / 'server.db'}", Schema(f"sqlite:///{tmp_path / 'runs.db'}")

    async def main():
        async with opened(tmp_path, server, block=10) as database:
            first = await begin(database)
            assert [draw_number(store), draw_number(store, least=first + 5)] == [first + 1, first + 5]
            await end(database, first)
            assert await begin(database) == first + 6

    do(main())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rodeo.control.paths.rooms", list)
    assert database_url(store=True) == str(store.url)
    with pytest.raises(Refused, match="the runs of runs.db are on a server"):
        database_url()
    while True:
        try:
            assert 1 <= draw_number(store) <= 20
        except Refused as refused:
            assert "no run number left" in refused.what and "server.db" in refused.next
            break
    assert draw_number(Schema(server)) > 10


def test_a_copy_has_none_of_the_numbers_that_the_original_may_give(tmp_path):
    url = f"sqlite:///{tmp_path / 'server.db'}"

    async def main():
        async with opened(tmp_path / "here", url, system="lab") as here:
            await end(here, await begin(here))
            await good(here)
            shutil.copytree(tmp_path / "here", tmp_path / "there")
            (tmp_path / "server.db").rename(tmp_path / "away.db")
            async with opened(tmp_path / "there", url.replace("server", "nowhere/server"), system="annex") as there:
                with pytest.raises(Refused, match="no run number is left"):
                    await begin(there, system="annex")
            assert await begin(here) == 2

    do(main())


# File systems
MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /net rw shared:5 - nfs4 filer:/net rw,vers=4.2
31 30 8:2 / /net/local\\040disk rw - xfs /dev/sdb1 rw
32 22 0:31 / /mnt/sshfs rw - fuse.sshfs host: rw
33 22 0:32 / /mnt/usb rw - fuseblk /dev/sdc1 rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/rodeo/runs.db", ""),
        ("/net/lab/runs.db", "nfs4"),
        ("/network/lab/runs.db", ""),
        ("/net/local disk/runs.db", ""),
        ("/mnt/sshfs/runs.db", "fuse.sshfs"),
        ("/mnt/usb/runs.db", ""),
    ],
)
def test_a_network_file_system_is_known(path, kind):
    assert network_file_system(path, MOUNTS) == kind


def test_on_a_network_file_system_the_rollback_journal_is_used(tmp_path, monkeypatch):
    async def main():
        async with opened(tmp_path) as database:
            await database.writer.note(None, "ana", "with a WAL")
        assert (tmp_path / "runs.db").read_bytes()[18] == 2
        monkeypatch.setattr(schema, "network_file_system", lambda path: "nfs4")
        async with opened(tmp_path) as database:
            await database.writer.note(None, "ana", "without")
            assert not list(tmp_path.glob("runs.db-wal")) and len(await database.reads.notes()) == 2
        assert (tmp_path / "runs.db").read_bytes()[18] == 1

    do(main())


# Older versions
def older(directory, kind):
    """Makes the files of a room of an older version, with an open run and 5 records that wait. Returns the address of its database."""
    (directory / "lab").mkdir()
    (directory / "net").mkdir()
    shutil.copy(OLD / kind / "journal.txt", directory / "lab" / "journal.jsonl")
    file = directory / "lab" / "runs.db" if kind == "local" else directory / "net" / "server.db"
    with sqlite3.connect(file) as connection:
        connection.executescript((OLD / kind / "tables.sql").read_text())
    connection.close()
    return f"sqlite:///{file}"


@pytest.mark.parametrize("kind", ["local", "server"])
@pytest.mark.parametrize("away", [False, True])
def test_files_of_an_older_version_are_taken_over_with_the_records_that_wait(tmp_path, kind, away):
    url, lab, net = older(tmp_path, kind), tmp_path / "lab", tmp_path / "net"
    if away:
        net.rename(tmp_path / "away")

    async def main(first):
        async with opened(lab, url) as database:
            writer = database.writer
            assert [row["number"] for row in await writer.open_runs()] == [2]
            assert await writer.recall("memory") == {"choice": "reader"} and await writer.recall("launched") == {
                "processes": {}
            }
            assert {each["cause"] for each in await writer.alarms_standing()} == {"stall", "disk"}
            if first:
                await writer.note(2, "ana", "of this version")
                if away:
                    (tmp_path / "away").rename(net)
            await good(database)
            assert [database.health()[name] for name in ("lost", "unusable")] == [0, 0]
            assert [row["number"] for row in await database.reads.runs()] == [2, 1]
            return (await database.reads.run(2))["notes"]

    for first in (True, False):
        notes = [each["text"] for each in reversed(do(main(first)))]
        assert notes == ["written", "waits 1", "waits 2", "of this version"]
    assert not (lab / "journal.jsonl").exists() and (lab / "journal.jsonl.taken").exists()

    async def on():
        async with opened(lab, url) as database:
            await end(database, 2)
            number = await begin(database, comment="the next one")
            await good(database)
            assert (await database.reads.run(2))["condition"] == "GOOD"
            assert (await database.reads.run(1))["files"][0]["path"] == "/data/run.data"
            assert (await database.reads.verify_audit()) == {"rows": 2, "broken": None}
            return number

    assert do(on()) == 3


def test_a_take_over_that_is_killed_before_its_end_is_done_again_and_has_each_record_once(tmp_path, monkeypatch):
    url, lab = older(tmp_path, "server"), tmp_path / "lab"

    def killed(*_):
        raise SystemExit

    async def main():
        async with opened(lab, url) as database:
            await good(database)
            return [each["text"] for each in reversed((await database.reads.run(2))["notes"])]

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", killed)
        with pytest.raises(SystemExit):
            do(main())
    assert (lab / "journal.jsonl").exists() and texts(lab / "runs.db") == ["written", "waits 1", "waits 2"]
    assert do(main()) == ["written", "waits 1", "waits 2"] == texts(tmp_path / "net" / "server.db")[1:]


def test_damaged_lines_of_an_older_journal_are_counted_and_the_others_taken(tmp_path):
    url, path = older(tmp_path, "local"), tmp_path / "lab" / "journal.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    waits = next(index for index, line in enumerate(lines) if b"waits 1" in line)
    lines[waits] = lines[waits].replace(b"waits 1", b"waits 9")  # the record keeps its checksum
    lines.insert(waits, b"\xff\xfe nothing \n")
    path.write_bytes(b"".join(lines) + b'{"a line without its end')

    async def main():
        async with opened(tmp_path / "lab", url) as database:
            assert database.health()["lost"] == 2
            return [each["text"] for each in reversed((await database.reads.run(2))["notes"])]

    assert do(main()) == ["written", "waits 2"]


def test_an_older_journal_alone_gives_a_new_file_what_stood_in_it(tmp_path):
    url, lab = older(tmp_path, "local"), tmp_path / "lab"
    (lab / "runs.db").unlink()

    async def main():
        async with opened(lab, url) as database:
            assert [row["number"] for row in await database.writer.open_runs()] == [2]
            assert await database.writer.recall("memory") == {"choice": "reader"}
            assert {each["cause"] for each in await database.writer.alarms_standing()} == {"stall", "disk"}
            await end(database, 2)
            assert await begin(database) == 3

    do(main())


def test_a_new_room_of_a_system_finds_on_the_server_what_stands(tmp_path):
    url = f"sqlite:///{tmp_path / 'server.db'}"

    async def main():
        async with opened(tmp_path / "lost", url) as database:
            number = await begin(database)
            await database.writer.alarm(ALARM, number)
            await database.writer.remember("memory", {"choice": "reader"})
        async with opened(tmp_path / "new", url) as database:
            assert [row["number"] for row in await database.writer.open_runs()] == [number]
            assert await database.writer.recall("memory") == {"choice": "reader"}
            assert await database.writer.alarms_standing() == [ALARM]
            await end(database, number)
            await good(database)
            assert (await database.reads.run(number))["state"] == "CLOSED"

    do(main())


def test_an_older_version_is_one_whose_tables_are_older(tmp_path):
    older(tmp_path, "local")
    with sqlite3.connect(tmp_path / "lab" / "runs.db") as connection:
        assert connection.execute("select version_num from alembic_version").fetchall() == [("0002",)]
    connection.close()
    first = json.loads((tmp_path / "lab" / "journal.jsonl").read_text().splitlines()[0])
    assert first["kept"]["last_number"] == 1 and tables.HEAD > "0002"


def test_an_imported_run_with_a_number_of_the_block_is_not_mixed_with_another(tmp_path):
    """The number is not given, or the server keeps the records of the second run apart."""
    server = tmp_path / "server.db"

    async def main():
        async with opened(tmp_path / "lab", f"sqlite:///{server}") as database:
            await end(database, await begin(database))
            await good(database)
            with sqlite3.connect(server, timeout=scaled(60)) as other:
                other.execute("insert into run select 2, 'other', type, state, condition, flags, 7, first_event_ns, stopped_ns, closed_ns, reason, "
                              "config_sha256, build, holder, comment from run where number = 1")  # fmt: skip
            other.close()
            number = await begin(database)
            await good(database)
            assert number == 2 and database.writer.health()["unusable"] == 1
            assert (await database.reads.run(2))["system"] == "other"
            assert (await database.here.run(2))["state"] == "OPEN"

    do(main())


def test_a_system_that_gets_a_server_in_a_run_keeps_its_run_and_goes_back_without_one(tmp_path):
    lab, server = tmp_path / "lab", f"sqlite:///{tmp_path / 'server.db'}"
    alone = f"sqlite:///{lab / 'runs.db'}"

    async def begun():
        async with opened(lab, alone) as database:
            await end(database, await begin(database))
            await database.writer.remember("memory", {"choice": "reader"})
            return await begin(database)

    async def one_more(url, opened_before):
        async with opened(lab, url) as database:
            assert [row["number"] for row in await database.writer.open_runs()] == opened_before
            assert await database.writer.recall("memory") == {"choice": "reader"}
            for number in opened_before:
                await end(database, number)
            number = await begin(database)
            await end(database, number)
            await good(database)
            assert database.health()["unusable"] == 0
            return number, [(row["number"], row["state"]) for row in await database.reads.runs()]

    assert do(begun()) == 2
    assert do(one_more(server, [2])) == (3, [(3, "CLOSED"), (2, "CLOSED")])
    assert do(one_more(alone, [])) == (4, [(number, "CLOSED") for number in (4, 3, 2, 1)])
    assert do(one_more(server, [])) == (5, [(number, "CLOSED") for number in (5, 3, 2)])


def test_a_server_that_is_restored_from_a_copy_says_what_it_lacks_and_gets_what_follows(tmp_path):
    server, copy = tmp_path / "server.db", tmp_path / "copy.db"

    async def main():
        async with opened(tmp_path / "lab", f"sqlite:///{server}") as database:
            number = await begin(database)
            await good(database)
            wal = tmp_path / "server.db-wal"
            await until(lambda: not wal.exists() or not wal.stat().st_size, "all of it in the file itself")
            shutil.copy(server, copy)
            for index in range(3):
                await database.writer.note(number, "ana", f"lost {index}")
            await good(database)
            copy.replace(server)
            await until(lambda: database.health()["lost"] == 3, "the loss")
            await database.writer.note(number, "ana", "follows")
            await end(database, number)
            await good(database)
            run = await database.reads.run(number)
            assert (run["state"], [each["text"] for each in run["notes"]]) == ("CLOSED", ["follows"])
            assert len((await database.here.run(number))["notes"]) == 4

    do(main())
