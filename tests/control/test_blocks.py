"""Luminosity blocks of a run, from the marks of the trigger authority: their begins and contents."""

import asyncio

from databases import begin, end, opened
from rodeo.control.run.open_run import OpenRun
from rodeo.control.state.luminosity_blocks import Block, blocks_of, with_recorded


def trigger(*marks, accepted=100):
    return {
        "accepted": accepted,
        "marks": [
            {"id": 7_000 + sequence, "lumi_block": block, "scan_step": step, "sequence": sequence}
            for sequence, block, step in marks
        ],
    }


def shown(blocks):
    return [(each.first_trigger, each.number, each.scan_step, each.first_id, each.triggers) for each in blocks]


def test_a_block_goes_from_its_mark_to_the_next_and_the_last_one_goes_on():
    assert shown(blocks_of([], trigger((40, 1, 0), (60, 2, 0), (90, 2, 1)), 40, 5)) == [
        (0, 1, 0, 7_040, 20),
        (20, 2, 0, 7_060, 30),
        (50, 2, 1, 7_090, None),
    ]


def test_the_last_block_ends_with_the_last_trigger():
    assert shown(blocks_of([], trigger((40, 1, 0), (60, 2, 0)), 40, 5, over=True)) == [
        (0, 1, 0, 7_040, 20),
        (20, 2, 0, 7_060, 40),
    ]
    assert shown(blocks_of([], trigger((40, 1, 0), accepted=None), 40, 5, over=True)) == [(0, 1, 0, 7_040, None)]


def test_marks_of_a_run_before_are_not_this_run_s():
    assert shown(blocks_of([], trigger((0, 1, 0), (39, 2, 0), (40, 1, 0)), 40, 5)) == [(0, 1, 0, 7_040, None)]


def test_what_was_known_stays_when_the_authority_has_forgotten_its_mark():
    known = blocks_of([], trigger((40, 1, 0), (60, 2, 0)), 40, 5)
    assert shown(blocks_of(known, trigger((70, 3, 0)), 40, 9)) == [
        (0, 1, 0, 7_040, 20),
        (20, 2, 0, 7_060, 10),
        (30, 3, 0, 7_070, None),
    ]
    assert blocks_of(known, None, 40, 9, over=True) == known
    assert [Block.from_json(each.as_json()) for each in known] == known and Block.from_json({"first": 1}) is None


def test_recorded_events_are_of_the_files_of_a_block_if_one_block_alone_has_its_number():
    blocks = blocks_of([], trigger((40, 1, 0), (60, 2, 0), (90, 2, 1)), 40, 5)
    files = [
        {
            "path": f"/runs/000001/recorder/rodeo.00000001.physics_Main.daq.RAW._lb{block:04}._recorder._000{number}.data",
            "events": events,
        }
        for number, (block, events) in enumerate(((1, 5), (1, 7), (2, 9), (0, 3), (1, None)))
    ]
    assert [each.recorded for each in with_recorded(blocks, files)] == [12, None, None]
    assert [each.recorded for each in with_recorded(blocks[:1], [])] == [0]


def test_what_is_remembered_of_a_run_does_not_grow_with_its_blocks():
    run = OpenRun(number=7, blocks=[each.as_json() for each in blocks_of([], trigger((40, 1, 0)), 40, 5)])
    assert run.as_json() == OpenRun(number=7).as_json()


def test_the_next_controller_finds_the_blocks_of_the_open_run_in_their_own_records(tmp_path):
    async def main():
        server = tmp_path / "server.db"
        async with opened(tmp_path / "lab", url=f"sqlite:///{server}") as database:
            number = await begin(database)
            for block in blocks_of([], trigger((40, 1, 0), (60, 2, 0)), 40, 5):
                await database.writer.lumi_block(number, block)
        server.rename(tmp_path / "away.db")
        async with opened(tmp_path / "lab", url=f"sqlite:///{tmp_path / 'nowhere' / 'server.db'}") as database:
            blocks = [Block.from_json(each) for each in await database.writer.blocks()]
            await end(database, number)
            return blocks, await database.writer.blocks()

    blocks, after = asyncio.run(main())
    assert shown(blocks) == [(0, 1, 0, 7_040, 20), (20, 2, 0, 7_060, None)] and after == []
