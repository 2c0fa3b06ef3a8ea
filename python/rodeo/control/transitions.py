"""The system's own transitions: launch, close, abort, recover. Those of a run are in run_transitions.py; docs/control-room-states.md has the table."""

from rodeo.control import overrides
from rodeo.control.bring_up import launch_missing
from rodeo.control.refused import Refused
from rodeo.control.run_transitions import close_row, try_to_hold


async def launch(c, act, arguments):
    """Starts what is not there, sources first: a readout opens its cards when it is launched, so these are there before it, with triggers held.
    An essential that does not get ready: what this launch started is ended again, and the refusal says why."""
    lines = overrides.split_lines(arguments.get("set") or (), {member.name for member in c.system.members} | {one.name for one in c.system.classes})
    before, c.launching.lines = c.launching.lines, lines
    try:
        await c.launching.prepare(c.system.members)
    except Refused:
        c.launching.lines = before
        raise
    wanted_before = c.memory.wanted
    await c.remember(wanted="ready")
    changed = _changed(c) if lines != before else []
    if changed:
        await end_for_good(c, act, changed)
    return await launch_missing(c, act, wanted_before=wanted_before)


def _changed(c):
    """Names of living processes that other settings change, and of all that lie behind them on the way of the data: these have the old ones' cards or links open."""
    living = [each for each in c.observer.members.values() if each.alive]
    changed = [each for each in living if each.settings != c.launching.settings(each.member)]
    if not changed:
        return []
    first = min(each.member.process_class.start_order for each in changed)
    return [each.name for each in living if each in changed or each.member.process_class.start_order > first]


async def end_for_good(c, act, names):
    """Ends processes that hold nothing of a run, in order and for as long as it takes, and forgets them."""
    await c.launching.end_in_order(act, names)
    return await c.launching.forget(names)


async def close(c, act, arguments):
    """Ends all processes in order: readouts first, for they have the cards open; nothing flows any more. Nothing is killed: what does not end is named."""
    await c.remember(wanted="off")
    left = []
    for group in c.system.in_start_order():
        left += await end_for_good(c, act, [member.name for member in group])
    if left:
        raise Refused("control.left_over", "still there: " + ", ".join(sorted(left)), "rodeo control abort ends what processes have started; what another one holds has to be ended first")
    return {}


async def abort(c, act, arguments):
    """Ends everything at once: asks to stop, 5 s later TERM, 5 s later KILL. The run's row is closed as ABORTED, with what there is of it."""
    await c.remember(wanted="off")
    if c.run is not None:
        await c.keep_run(stopping=True, aborting=True, reason=c.run.reason or f"aborted by {act.actor}")
        await try_to_hold(c)
    left = []
    for group in c.system.in_start_order():
        left += await c.launching.end_at_once(act, [member.name for member in group])
    number = c.run.number if c.run else None
    if c.run is not None:
        await close_row(c, act, state="ABORTED", aborted=True)
    members = [member.name for member in c.system.members]
    await c.launching.end_left(act, members)
    left += await c.launching.forget(members)
    if left:
        raise Refused("control.left_over", "still there: " + ", ".join(sorted(left)), "end them by hand, or recover")
    return {"run": number} if number else {}


async def recover(c, act, arguments):
    """Leaves ERROR: ends what is left of a run and what has failed or is lost, closes the row. If something still serves, what is
    missing is launched beside it; else the system is OFF."""
    number = c.run.number if c.run else None
    if c.run is not None:
        await c.keep_run(stopping=True, reason=c.run.reason or f"recovered by {act.actor}", flags={"INTERRUPTED"})
        await try_to_hold(c)
    names = [each.name for each in c.observer.members.values() if each.member.per_run or each.phase in ("failed", "lost", "done", "launching") or each.name in c.foreign()]
    left = []
    for group in c.system.in_start_order():
        left += await c.launching.end_at_once(act, [member.name for member in group if member.name in names])
    if c.run is not None:
        await close_row(c, act, state="CLOSED")
    left += await c.end_strangers()
    await c.launching.end_left(act, names)
    left += await c.launching.forget(names)
    serves = any(each.alive for each in c.observer.members.values())
    await c.remember(wanted="ready" if serves else "off", clear=True)
    if left:
        raise Refused("control.left_over", "still there: " + ", ".join(sorted(left)), "end them by hand, or abort")
    if serves:
        await c.launching.prepare(c.system.members)
        await launch_missing(c, act)
    return {"run": number} if number else {}
