"""Judgements of users on the data of a run: quality of subsystems, and TAINTED; with a real database and a reduced controller."""

import asyncio
from types import SimpleNamespace

import pytest
from databases import begin, end, good, opened, whole_run
from rodeo.control.refused import Refused
from rodeo.control.run import judgements
from rodeo.control.run.open_run import OpenRun
from rodeo.control.state.snapshots import RunRow


class Controller:
    def __init__(self, database, run=None, last=None):
        self.writer, self.reads, self.run = database.writer, database.reads, run
        self.telling = SimpleNamespace(last_run=last)

    async def keep_run(self, *, flags=()):
        self.run.flags |= set(flags)

    def publish(self):
        """Ignores the change."""


async def judged(c, name="quality", actor="ana", **arguments):
    defaults = {
        "quality": {
            "subsystem": "muons",
            "verdict": "good",
            "run": None,
            "from_ns": None,
            "to_ns": None,
            "confirm": False,
        },
        "taint": {"text": "why", "run": None, "back": False},
    }
    return await getattr(judgements, name)(c, {**defaults[name], **arguments}, actor)


def do(work, tmp_path):
    async def main():
        async with opened(tmp_path) as database:
            await work(database)

    asyncio.run(main())


def test_a_judgement_is_a_row_of_the_run_that_is_meant(tmp_path):
    async def work(database):
        first, second = await whole_run(database), await begin(database)
        assert await judged(Controller(database, OpenRun(second))) == {
            "run": second,
            "subsystem": "muons",
            "verdict": "good",
        }
        await judged(Controller(database, OpenRun(second)), run=first, verdict="bad", from_ns=5, to_ns=9)
        await end(database, second)
        await judged(Controller(database, last=RunRow(second)), subsystem=" calorimeter ", verdict="test")
        await good(database)
        rows = [
            (each["subsystem"], each["verdict"], each["from_ns"], each["to_ns"], each["by"])
            for each in (await database.reads.run(first))["quality"]
        ]
        assert rows[-1] == ("muons", "bad", 5, 9, "ana")
        assert [(each["subsystem"], each["verdict"]) for each in (await database.reads.run(second))["quality"]] == [
            ("muons", "good"),
            ("calorimeter", "test"),
        ]

    do(work, tmp_path)


def test_somebody_else_confirms_a_judgement(tmp_path):
    async def work(database):
        c = Controller(database, last=RunRow(await whole_run(database)))
        await judged(c, verdict="bad", from_ns=5, to_ns=9)
        await good(database)
        for actor, arguments, why in (
            ("ana", {"verdict": "bad"}, "own"),
            ("eve", {"verdict": "good"}, "says bad"),
            ("eve", {"subsystem": "tracker"}, "there is none"),
            ("eve", {"verdict": "bad", "from_ns": 6}, "there is none"),
        ):
            with pytest.raises(Refused, match=why):
                await judged(c, actor=actor, confirm=True, **arguments)
        await judged(c, actor="eve", verdict="bad", confirm=True)
        await good(database)
        last = (await database.reads.run(1))["quality"][-1]
        assert (last["by"], last["verified_by"], last["from_ns"], last["to_ns"], last["verdict"]) == (
            "ana",
            "eve",
            5,
            9,
            "bad",
        )

    do(work, tmp_path)


def test_what_makes_no_sense_is_refused(tmp_path):
    async def work(database):
        c = Controller(database)
        with pytest.raises(Refused, match="no run is open"):
            await judged(c)
        c.telling.last_run = RunRow(await whole_run(database))
        for arguments in ({"subsystem": " "}, {"from_ns": 9, "to_ns": 9}, {"run": 99}):
            with pytest.raises(Refused):
                await judged(c, **arguments)

    do(work, tmp_path)


def test_a_closed_run_is_tainted_and_not_any_more(tmp_path):
    async def work(database):
        number = await begin(database)
        await end(database, number, flags=["INTERRUPTED"])
        c = Controller(database, last=RunRow(number, flags=("INTERRUPTED",)))
        assert await judged(c, "taint", text="the wrong mask") == {"run": number, "tainted": True}
        await good(database)
        row = await database.reads.run(number)
        assert (
            row["flags"] == ["INTERRUPTED", "TAINTED"] == list(c.telling.last_run.flags)
            and row["notes"][0]["text"] == "TAINTED: the wrong mask"
        )
        assert [each["number"] for each in await database.reads.runs(filters={"flag": "TAINTED"})] == [number]
        await judged(c, "taint", back=True, run=number)
        await good(database)
        assert (await database.reads.run(number))["flags"] == ["INTERRUPTED"] == list(c.telling.last_run.flags)
        with pytest.raises(Refused):
            await judged(c, "taint", run=99)

    do(work, tmp_path)


def test_an_open_run_is_tainted_at_its_end(tmp_path):
    async def work(database):
        c = Controller(database, OpenRun(await begin(database)))
        await judged(c, "taint")
        assert c.run.flags == {"TAINTED"}
        await judged(c, "taint", back=True)
        assert c.run.flags == set()

    do(work, tmp_path)
