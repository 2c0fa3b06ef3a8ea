"""The journal: whole after kill -9 at any point, truncated where records were not acknowledged; each record is in the tables once, in order."""

import asyncio
import contextlib
import json
import random
import resource
import shutil
import signal
import sqlite3
import time

import pytest
from conftest import scaled
from databases import begin, end, good, opened
from rodeo.control.database.journal import Journal, line_of
from rodeo.control.refused import Refused
from test_database import do, script


def journal_of(path, count=5):
    """A journal with `count` records of facts: fact-1 = 1, fact-2 = 2."""
    journal = Journal(path)
    journal.open()
    journal.append(
        [
            (index, {"kind": "remember", "system": "lab", "key": f"fact-{index}", "value": index})
            for index in range(1, count + 1)
        ]
    )
    return journal


def test_what_was_appended_is_read_again(tmp_path):
    journal_of(tmp_path).close()
    journal = Journal(tmp_path)
    journal.open()
    assert (
        [sequence for sequence, _ in journal.records(2)] == [3, 4, 5]
        and journal.kept.remembered["fact-5"] == 5
        and not journal.fresh
    )
    journal.close()


def test_a_line_without_its_end_is_cut_off_wherever_it_ends(tmp_path):
    journal = journal_of(tmp_path, 2)
    whole = journal.path.read_bytes()
    journal.close()
    last = line_of(journal.id, 3, {"kind": "remember", "system": "lab", "key": "fact-3", "value": 3})
    for cut in range(1, len(last)):
        journal.path.write_bytes(whole + last[:cut])
        again = Journal(tmp_path)
        again.open()
        assert (again.last, again.torn, again.damaged, again.path.read_bytes()) == (2, cut, 0, whole)
        again.append([(3, {"kind": "remember", "system": "lab", "key": "fact-3", "value": 33})])
        assert [record["value"] for _, record in again.records(0)] == [1, 2, 33]
        again.close()


def test_lines_that_are_damaged_are_counted_and_the_others_kept(tmp_path):
    journal = journal_of(tmp_path)
    journal.close()
    lines = journal.path.read_bytes().splitlines(keepends=True)
    lines[3] = lines[3].replace(b"fact-3", b"fact-4")  # the record keeps the checksum of fact-3
    lines.insert(5, b"\xff\xfe nothing \n")
    journal.path.write_bytes(b"".join(lines))
    again = Journal(tmp_path)
    again.open()
    assert (again.damaged, [sequence for sequence, _ in again.records(0)], again.id) == (2, [1, 2, 4, 5], journal.id)
    again.close()


def test_a_first_line_that_is_damaged_costs_what_was_before_it_only(tmp_path):
    journal = journal_of(tmp_path)
    journal.close()
    journal.path.write_bytes(b"x" + journal.path.read_bytes())
    again = Journal(tmp_path)
    again.open()
    assert (again.damaged, again.former, again.last, again.kept.remembered) == (
        1,
        [(journal.id, 5)],
        5,
        {f"fact-{index}": index for index in range(1, 6)},
    )
    again.append([(6, {"kind": "remember", "system": "lab", "key": "fact-6", "value": 6})])
    again.close()
    third = Journal(tmp_path)
    third.open()
    assert (third.damaged, third.last) == (0, 6)
    third.close()


def test_a_journal_at_its_place_keeps_its_id_over_any_number_of_openings(tmp_path):
    journal = journal_of(tmp_path)
    journal.compact(3)
    journal.close()
    for _ in range(2):
        again = Journal(tmp_path)
        again.open()
        assert (again.id, again.former, again.renewed, [sequence for sequence, _ in again.records(0)]) == (
            journal.id,
            [],
            "",
            [4, 5],
        )
        again.close()


def copied(tmp_path):
    (tmp_path / "there").mkdir()
    shutil.copy(tmp_path / "journal.jsonl", tmp_path / "there")
    return tmp_path / "there", None


def on_another_host(tmp_path):
    return tmp_path, "another"


def put_back(tmp_path):
    shutil.copy(tmp_path / "journal.jsonl", tmp_path / "backup")
    (tmp_path / "backup").replace(tmp_path / "journal.jsonl")
    return tmp_path, None


def of_an_older_version(tmp_path):
    path = tmp_path / "journal.jsonl"
    first, *rest = path.read_bytes().splitlines(keepends=True)
    header = json.loads(first)
    del header["place"], header["former"]
    path.write_bytes(json.dumps(header).encode() + b"\n" + b"".join(rest))
    return tmp_path, None


@pytest.mark.parametrize(
    "how,why",
    [
        (copied, "a copy of"),
        (on_another_host, "a copy of"),
        (put_back, "restored"),
        (of_an_older_version, "does not contain"),
    ],
)
def test_a_journal_that_is_not_at_its_place_goes_on_under_a_new_id(tmp_path, how, why):
    journal = journal_of(tmp_path)
    journal.close()
    directory, host = how(tmp_path)
    again = Journal(directory, host)
    again.open()
    assert (
        again.id != journal.id
        and why in again.renewed
        and (again.last, again.damaged, again.kept.remembered["fact-5"]) == (5, 0, 5)
    )
    again.append([(6, {"kind": "remember", "system": "lab", "key": "fact-6", "value": 6})])
    again.close()
    third = Journal(directory, host)
    third.open()
    assert (third.id, third.renewed, third.former, third.damaged) == (again.id, "", [(journal.id, 5)], 0)
    assert [(sequence, third.id_of(sequence)) for sequence, _ in third.records(4)] == [(5, journal.id), (6, again.id)]
    third.close()


def test_what_tables_have_of_a_copy_ends_where_it_was_copied(tmp_path):
    journal = journal_of(tmp_path)
    journal.close()
    directory, _ = copied(tmp_path)
    copy = Journal(directory)
    copy.open()
    assert copy.applied({}) is None and copy.applied({"another": 9}) is None
    assert (
        copy.applied({journal.id: 3}) == 3
        and copy.applied({journal.id: 500}) == 5
        and copy.applied({journal.id: 500, copy.id: 7}) == 7
    )
    copy.close()


def test_compacting_keeps_what_stands_and_what_is_not_applied(tmp_path):
    journal = journal_of(tmp_path)
    journal.compact(3)
    journal.close()
    again = Journal(tmp_path)
    again.open()
    assert (again.id, again.after, again.last, [sequence for sequence, _ in again.records(0)]) == (
        journal.id,
        3,
        5,
        [4, 5],
    )
    assert again.kept.remembered == {f"fact-{index}": index for index in range(1, 6)}
    again.close()


def test_a_journal_that_has_lost_its_first_line_learns_from_the_database_what_was_in_it(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            await database.writer.remember("launched", {"cards": 7})
            await database.writer.remember("memory", {"wanted": "ready"})
        journal = tmp_path / "journal.jsonl"
        assert len(journal.read_text().splitlines()) == 1
        journal.write_text(
            "x"
            + journal.read_text()
            + line_of(
                json.loads(journal.read_text())["journal"],
                3,
                {"kind": "remember", "system": "lab", "key": "memory", "value": {"wanted": "off"}},
            ).decode()
        )
        async with opened(tmp_path) as database:
            await good(database)
            assert (await database.writer.recall("launched"), await database.writer.recall("memory")) == (
                {"cards": 7},
                {"wanted": "off"},
            )

    asyncio.run(main())


@contextlib.contextmanager
def longest_file(size):
    """Limits the size of files, like a full disk."""
    before, heard = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, heard)


def test_the_old_journal_stays_where_the_disk_has_no_room_for_the_new_one(tmp_path):
    journal = journal_of(tmp_path, 50)
    with longest_file(300), pytest.raises(OSError):
        journal.compact(journal.last)
    assert [each.name for each in tmp_path.glob("*.part")] == []
    journal.append([(51, {"kind": "remember", "system": "lab", "key": "fact-51", "value": 51})])
    journal.close()
    again = Journal(tmp_path)
    again.open()
    assert (again.last, again.damaged, again.torn, len(again.kept.remembered)) == (51, 0, 0, 51)
    again.close()


def test_a_journal_belongs_to_one_process(tmp_path):
    journal = journal_of(tmp_path)
    with pytest.raises(Refused) as refused:
        Journal(tmp_path).open()
    assert refused.value.code == "control.database"
    journal.close()


WRITING = """
import asyncio, sys
from pathlib import Path
from databases import opened

async def main(place, first):
    async with opened(place, busy_s=0.05) as database:
        number = first
        while True:
            await database.writer.note(None, "ana", str(number))
            print(number, flush=True)
            number += 1

asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
"""


def test_kill_9_at_any_point_leaves_each_record_once_and_in_order(tmp_path):
    async def prepare():
        async with opened(tmp_path) as database:
            await good(database)

    do(prepare())
    chance, acknowledged = random.Random(14), 0
    for life in range(3):
        process = script(WRITING, tmp_path, acknowledged + 1)
        holder = sqlite3.connect(tmp_path / "runs.db", isolation_level=None, timeout=scaled(60))
        try:
            wanted = acknowledged + chance.randint(1, 60)
            deadline = time.monotonic() + scaled(120)
            while acknowledged < wanted:
                assert time.monotonic() < deadline
                line = process.stdout.readline()
                assert line.strip(), "it ended by itself"
                acknowledged = int(line)
                if life % 2 and acknowledged == wanted - 1:
                    holder.execute("BEGIN IMMEDIATE")  # only the journal gets later records
        finally:
            process.send_signal(signal.SIGKILL)
            rest = process.stdout.read()
            process.communicate(timeout=scaled(60))
            holder.close()
        acknowledged = max([acknowledged, *(int(line) for line in rest.split() if line.isdigit())])

        texts = do(notes(tmp_path))
        assert texts[:acknowledged] == list(range(1, acknowledged + 1)) and len(texts) - acknowledged in (0, 1)
        acknowledged = len(texts)


async def notes(place):
    """All notes in the tables, after the journal was applied."""
    async with opened(place) as database:
        await good(database)
        assert [database.writer.health()[name] for name in ("unusable", "lost")] == [0, 0]
    connection = sqlite3.connect(place / "runs.db")
    try:
        return [int(text) for (text,) in connection.execute("select text from note order by id")]
    finally:
        connection.close()


def test_a_database_put_back_from_a_copy_gets_what_it_does_not_have(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            number = await begin(database)
            await database.writer.note(number, "ana", "before")
            await good(database)
            copy = sqlite3.connect(tmp_path / "copy.db")
            with sqlite3.connect(tmp_path / "runs.db") as source:
                source.backup(copy)
            source.close()
            copy.close()
            await database.writer.note(number, "ana", "after")
            await good(database)
        for name in ("runs.db-wal", "runs.db-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        (tmp_path / "copy.db").replace(tmp_path / "runs.db")
        async with opened(tmp_path) as database:
            await end(database, number)
            await good(database)
            run = await database.reads.run(number)
            assert ([each["text"] for each in run["notes"]], run["state"]) == (["after", "before"], "CLOSED")

    asyncio.run(main())


def test_the_journal_is_short_again_when_a_run_is_closed_and_written(tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            number = await begin(database)
            for index in range(50):
                await database.writer.note(number, "ana", str(index))
            await end(database, number)
        return (tmp_path / "journal.jsonl").read_text().splitlines()

    assert len(asyncio.run(main())) == 1
