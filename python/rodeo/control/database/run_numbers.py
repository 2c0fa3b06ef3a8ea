"""Run numbers. A database gives the next one, or reserves a block of them for a system; a store gives the numbers of its blocks. In the caller's transaction."""

from rodeo.control.database import apply_records, tables
from rodeo.control.database.tables import LARGEST_RUN, sa
from rodeo.control.refused import Refused

BLOCK = 1000  # run numbers that a system reserves at once


def highest(connection):
    """Returns the largest number that this database has given, or 0. Ignores impossible numbers of an older import."""
    counts = [tables.run_number.c.last, tables.run.c.number]
    return max(
        connection.execute(sa.select(sa.func.max(each)).where(each <= LARGEST_RUN)).scalar() or 0 for each in counts
    )


def reserve(connection, system, count=1, least=1):
    """Returns (first, last) of at most `count` numbers from `least` that no other system gets. Refused(control.database) if none is left."""
    # All writers lock this row first, so that two systems never see the same highest number.
    connection.execute(sa.select(tables.chain.c.last).where(tables.chain.c.name == "audit").with_for_update())
    first = max(highest(connection) + 1, least)
    if first > LARGEST_RUN:
        raise Refused(
            "control.database",
            f"the run database has given out its last run number, {LARGEST_RUN}",
            "begin another database",
        )
    last = min(first + count - 1, LARGEST_RUN)
    apply_records.count(connection, system, last)
    return first, last


def add(connection, first, last):
    """Adds a block to a store."""
    connection.execute(tables.number_block.insert().values(first=first, next=first, last=last))


def left(connection):
    """Returns how many numbers the blocks of a store still have."""
    block = tables.number_block.c
    return int(connection.execute(sa.select(sa.func.sum(block.last - block.next + 1))).scalar() or 0)


def take(connection, used=lambda first, last: 0, least=1):
    """Takes the next number of a store's blocks, at least `least`; None if none is left. `used(first, last)`: the largest number among these that is in use
    outside of the tables, or 0."""
    block, run = tables.number_block, tables.run.c.number
    rows = sa.select(block).where(block.c.next <= block.c.last, block.c.last >= least).order_by(block.c.first)
    for each in connection.execute(rows).all():
        known = connection.execute(sa.select(sa.func.max(run)).where(run.between(each.first, each.last))).scalar() or 0
        number = max(each.next, least, known + 1, used(each.first, each.last) + 1)
        connection.execute(block.update().where(block.c.first == each.first).values(next=min(number, each.last) + 1))
        if number <= each.last:
            return number
    return None


def drop(connection):
    """Drops all blocks of a store: another file may give the same numbers."""
    connection.execute(tables.number_block.delete())
