"""The system's own transitions: launch, close, abort, recover. run/run_transitions.py has those of a run; docs/reference/control-room-states.md has the table."""

from rodeo.control.processes import overrides
from rodeo.control.refused import Refused
from rodeo.control.run.bring_up import launch_missing
from rodeo.control.run.run_transitions import close_row, try_to_hold


async def launch(c, act, arguments):
    """Starts missing processes, sources first: a readout opens its cards at its launch, so the cards are ready before it, with triggers held.
    If an essential process does not become ready, ends the processes of this launch, and refuses with the reason."""
    lines = overrides.split_lines(
        arguments.get("set") or (),
        {member.name for member in c.system.members} | {one.name for one in c.system.classes},
    )
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
    """Returns names of living processes whose settings change, and of all processes downstream of them, because these have cards or links of the old ones
    open."""
    living = [each for each in c.observer.members.values() if each.alive]
    changed = [each for each in living if each.settings != c.launching.settings(each.member)]
    if not changed:
        return []
    first = min(each.member.process_class.start_order for each in changed)
    return [each.name for each in living if each in changed or each.member.process_class.start_order > first]


async def end_for_good(c, act, names):
    """Ends processes that hold no data of a run, in order and without a time limit, and forgets them."""
    await c.launching.end_in_order(act, names)
    return await c.launching.forget(names)


async def close(c, act, arguments):
    """Ends all processes in order while no data flow: readouts first, because they have the cards open. Asks only; the refusal names the remaining
    processes."""
    await c.remember(wanted="off")
    left = []
    for group in c.system.in_start_order():
        left += await end_for_good(c, act, [member.name for member in group])
    if left:
        raise Refused(
            "control.left_over",
            "still there: " + ", ".join(sorted(left)),
            "rodeo control abort ends processes that others have started; end the holder of a socket first",
        )
    return {}


async def abort(c, act, arguments):
    """Ends all processes at once: asks them to stop, 5 s later TERM, 5 s later KILL. Closes the run's row as ABORTED, with the available data."""
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
    """Leaves ERROR: ends processes of a run and failed or lost processes, and closes the row. If some processes still run, launches the
    missing ones; else the system is OFF."""
    number = c.run.number if c.run else None
    if c.run is not None:
        await c.keep_run(stopping=True, reason=c.run.reason or f"recovered by {act.actor}", flags={"INTERRUPTED"})
        await try_to_hold(c)
    names = [
        each.name
        for each in c.observer.members.values()
        if each.member.per_run or each.phase in ("failed", "lost", "done", "launching") or each.name in c.foreign()
    ]
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
