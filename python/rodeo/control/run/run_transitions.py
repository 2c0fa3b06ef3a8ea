"""The transitions of a run: start, pause, resume, go_on, stop. A start begins with the sinks and ends with the trigger; a stop has the reverse order."""

import asyncio
import contextlib
import logging
import time

from rodeo.control.processes.launcher import Late
from rodeo.control.refused import Refused
from rodeo.control.run.bring_up import launch_missing
from rodeo.control.run.command_lock import Overtaken
from rodeo.control.run.trigger import Settling
from rodeo.control.state.draining import Draining
from rodeo.control.state.reactions import continue_without
from rodeo.control.state.snapshots import phase_of

LOG = logging.getLogger("rodeo.control")
PAUSE_SETTLES_S = 1.0  # limit of a pause's wait for readouts with a backlog


async def start(c, act, arguments):
    """Draws a number, starts readouts and farm, releases the trigger, and waits until each readout has built an event and the supervisor has one.
    Refused(control.not_started): only a row remains, which says that the run was not started."""
    await c.trigger.hold()
    await c.look()
    taking_part = [each for each in c.observer.members.values() if each.member.per_run and each.phase == "ready"]
    if not any(each.member.kind == "readout" for each in taking_part):
        raise Refused("control.not_started", "no readout is ready to build events", "launch")
    run = await c.open_run(act, arguments, taking_part)
    began_ns = time.time_ns()
    try:
        await _begin(c, act, run, {each.name for each in taking_part})
    except (Refused, Late) as error:
        why = error.what if isinstance(error, Refused) else str(error)
        await c.transition(act, "start", "READY", "READY", began_ns, "undone", why)
        await undo(c, act, f"not started: {why}")
        raise Refused(
            "control.not_started",
            f"run {run.number} was not started: {why}",
            "rodeo control logs shows what the process said",
        ) from None
    await c.keep_run(state="RUNNING", first_event_ns=time.time_ns())
    await c.transition(act, "start", "READY", "RUNNING", began_ns, "done", "")
    return {"run": run.number}


async def _begin(c, act, run, names):
    for group in c.system.in_start_order():
        members = [c.observer.members[member.name] for member in group if member.name in names]
        await _told_to_start(c, act, run, members)
    await c.trigger.begin_blocks()
    missing = any(
        each.phase not in ("ready", "running", "draining")
        for each in c.observer.members.values()
        if each.member.kind != "program"
    )
    await c.trigger.release(c.trigger.wait_for(missing))
    await _reached(c, act, names, c.system.event_limit_s * c.patience, _has_built, "no event within {:g} s: {}")


def _runs(each):
    return each.phase in ("running", "draining", "done")


def _has_built(each):
    """True if events have reached a process. Nodes and recorders may have none, because a node may get none and the selection may reject all."""
    status = each.status or {}
    if each.member.kind in ("node", "recorder"):
        return _runs(each)
    came = (
        (status.get("events") or {}).get("in")
        if each.member.kind == "supervisor"
        else (status.get("fragments") or {}).get("built")
    )
    return _runs(each) and bool(came)


async def _told_to_start(c, act, run, members):
    """Sends `start` to a group, and waits until its processes run."""
    order = {"command": "start", "run": run.number, "run_type": run.type}

    async def tell(each):
        own = {**order, "configuration_sha256": each.said_sha256}
        return await c.observer.host_of(each.name).ask(
            each.name, own, each.member.process_class.start_limit_s * c.patience
        )

    answers = await asyncio.gather(*(tell(each) for each in members), return_exceptions=True)
    refused = {
        each.name: getattr(answer, "what", str(answer))
        for each, answer in zip(members, answers)
        if isinstance(answer, Exception)
    }
    for name, why in refused.items():
        LOG.warning("%s was not started: %s", name, why)
    if broken := c.too_few(set(refused)):
        raise Refused("control.not_started", f"{broken[0]}: {refused.get(broken[0], 'does not run')}", "")
    limit_s = max((each.member.process_class.start_limit_s for each in members), default=0.0)
    await _reached(
        c,
        act,
        {each.name for each in members} - set(refused),
        limit_s * c.patience,
        _runs,
        "not running within {:g} s: {}",
    )


async def _reached(c, act, names, limit_s, reached, late):
    """Waits until all processes satisfy `reached`; after the limit, enough processes of each class suffice. Refused as soon as a class cannot have enough."""
    began_s = time.monotonic()

    def done():
        waiting = {name for name in names if not reached(c.observer.members[name])}
        gone = {name for name in waiting if c.observer.members[name].phase in ("failed", "absent", "done")}
        act.waiting_for = [
            f"{name}: {c.observer.members[name].phase} {time.monotonic() - began_s:.1f} s" for name in sorted(waiting)
        ]
        if broken := [name for name in c.too_few(gone) if name in gone]:
            each = c.observer.members[broken[0]]
            raise Refused("control.not_started", f"{broken[0]} {each.exit.text() if each.exit else 'does not run'}", "")
        return not waiting - gone or time.monotonic() - began_s > limit_s and not c.too_few(waiting)

    await c.until(act, done, limit_s=limit_s, what=late)


async def undo(c, act, reason):
    """Undoes a failed start: holds the trigger, ends the readouts in order, and closes the row as not started."""
    await c.keep_run(stopping=True, reason=c.run.reason or reason)
    await try_to_hold(c)
    await c.launching.end_in_order(act, per_run(c))
    await close_row(c, act, state="ABORTED", aborted=True)
    await _relaunched(c, act)


def per_run(c):
    return [member.name for member in c.system.members if member.per_run]


async def try_to_hold(c):
    """Holds the trigger if it answers. A run can end without this: switching off a card ends its data after the accepted triggers."""
    try:
        await c.trigger.hold()
    except Refused as refused:
        LOG.warning("%s", refused.what)


async def pause(c, act, arguments):
    """Holds the trigger, and waits briefly until all accepted events are built, so that the number of events stays the same. If the trigger authority
    does not confirm within 2 s, the run continues."""
    began_ns = time.time_ns()
    await c.trigger.hold(or_none=True)
    await c.keep_run(state="PAUSED")
    await _settle(c, act, most_s=PAUSE_SETTLES_S)
    await c.look()
    c.evaluate(fresh=True)
    await c.transition(act, "pause", "RUNNING", "PAUSED", began_ns, "done", "")
    return {"run": c.run.number} if c.run else {}


async def resume(c, act, arguments):
    """Releases the trigger."""
    began_ns = time.time_ns()
    await c.trigger.release()
    await c.keep_run(state="RUNNING")
    await c.transition(act, "resume", "PAUSED", "RUNNING", began_ns, "done", "")
    return {"run": c.run.number} if c.run else {}


async def advance(c, act, arguments):
    """Begins the next luminosity block at the next trigger and, on request, the next scan step."""
    begun = await c.trigger.advance(scan_step=arguments.get("scan_step", False))
    return {**({"run": c.run.number} if c.run else {}), **begun}


async def go_on(c, act, arguments):
    """Continues without the lost essential processes. Removes the links that no other process delivers; the trigger waits only for the other processes."""
    began_ns = time.time_ns()
    lost = dict(c.derived.broken)
    names = set(lost) | set(c.memory.without)
    if not c.trigger.authorities() and c.trigger.declared():
        raise Refused(
            "control.cannot_go_on", "the trigger authority itself is lost, and no other process offers triggers", "stop"
        )
    await _remove_links_of(c, lost)
    await c.trigger.release(c.trigger.wait_for(True))
    await c.keep_memory(continue_without(c.memory, lost))
    await c.keep_run(state="RUNNING", flags={"DEGRADED"})
    await c.transition(act, "go_on", "PAUSED", "RUNNING", began_ns, "done", "without " + ", ".join(sorted(names)))
    return {"run": c.run.number, "without": sorted(names)}


async def _remove_links_of(c, lost):
    """Removes the links of lost routers and cards from every running readout."""
    gone = set()
    for name in lost:
        gone |= c.links_brought_by(name)
    if not gone:
        return
    for each in c.observer.members.values():
        if each.member.kind != "readout" or each.phase != "running" or each.name in lost:
            continue
        links = {
            link.get("fid")
            for rob in (each.status or {}).get("robs") or []
            for link in rob.get("links") or []
            if link.get("state") != "removed"
        }
        for fid in sorted(links & gone):
            with contextlib.suppress(Refused):  # the link is removed already
                await c.observer.host_of(each.name).ask(
                    each.name, {"command": "link_remove", "fid": fid}, 5.0 * c.patience
                )


async def stop(c, act, arguments):
    """Ends the run in order. Returns when reports, sums and checksums of files are complete, the row is closed, and the next run's readouts are
    ready (else the summary has `not_ready`: why). Past its limit it is OVERDUE and shows the processes that it waits for; all processes stay alive."""
    if c.run is None:
        return {}
    began_ns, number, before = time.time_ns(), c.run.number, c.derived.state
    failed = (
        {"INTERRUPTED"} if set(c.derived.broken) - set(c.derived.ended) else set()
    )  # an essential process failed, and this ends the run
    await c.keep_run(
        stopping=True,
        reason=c.run.reason or arguments.get("reason") or "",
        flags=failed | set(arguments.get("flags") or ()),
    )
    await try_to_hold(c)
    await _settle(c, act)
    for group in c.system.in_stop_order():
        await c.launching.end_in_order(act, [member.name for member in group if member.per_run])
    summary = await close_row(
        c, act, state="CLOSED" if c.run.first_event_ns else "ABORTED", aborted=c.run.first_event_ns is None
    )
    await c.transition(act, "stop", before, "READY", began_ns, "done", "", run=number)
    why = await _relaunched(c, act)
    return {**summary, "not_ready": why} if why else summary


async def _settle(c, act, most_s=None):
    """Waits until the readouts have built all accepted events, for at most `most_s`. Stops waiting for readouts that make no progress."""
    names = [
        name for name in per_run(c) if c.observer.members[name].member.kind == "readout" and c.trigger.reaches(name)
    ]
    if not c.trigger.authorities() or not names:
        return
    await c.look()
    settling, accepted, began_s = Settling(c.patience), c.trigger.accepted(c.run), time.monotonic()

    def done():
        now_s, members = time.monotonic(), [c.observer.members[name] for name in names]
        running = {
            each.name: each.status for each in members if phase_of(each.snapshot(now_s)) in ("running", "draining")
        }
        over, act.waiting_for = settling.done(running, accepted, now_s)
        return over or most_s is not None and now_s - began_s > most_s * c.patience

    await c.until(act, done)


async def close_row(c, act, *, state, aborted=False):
    """Closes the books and the row of a run whose processes have ended. Returns a summary. No command can interrupt this."""
    sealed, act.sealed = act.sealed, True
    try:
        run = c.run
        await c.keep_run(stopped_ns=run.stopped_ns or time.time_ns(), state="CLOSING")
        await _drained(c, act, run)
        act.waiting_for = ["reports, files and sums"]
        await c.look()
        return await c.close_books(act, state, aborted)
    finally:
        act.sealed = sealed


async def _drained(c, act, run):
    """Waits until the routers have read and counted the chunks that readouts with a backlog left in routers and cards. Waits for a late answer
    until its process is lost."""
    sources = [each for each in c.observer.members.values() if each.member.kind in ("emulator", "router")]
    draining = Draining(run.cards_before, run.routers_before, c.patience)

    def done():
        there = [each for each in sources if each.alive and each.phase != "lost"]
        if late := [each.name for each in there if each.unanswered]:
            act.waiting_for = [f"{name}: does not answer" for name in late]
            return False
        cards, routers = (
            {each.name: each.status for each in there if each.member.kind == kind and each.status}
            for kind in ("emulator", "router")
        )
        over, act.waiting_for = draining.done(cards, routers, time.monotonic())
        return over

    await c.until(act, done)


async def _relaunched(c, act):
    """Launches the readouts of the next run. Returns why they are not ready, or None. This does not affect the ended run."""
    try:
        await relaunch(c, act)
    except Refused as refused:
        LOG.warning("the readouts of the next run are not ready: %s", refused.what)
        return refused.what
    return None


async def relaunch(c, act):
    """Launches the readouts of the next run. The holder restarts failed processes whose class has `restart` = never."""
    if c.memory.wanted == "off":
        return  # a former controller did not finish an abort or a close
    keep = [
        each.name
        for each in c.observer.members.values()
        if each.phase == "failed" and each.member.process_class.restart == "never"
    ]
    if c.too_few(set(keep)):
        return  # without these the system cannot become ready: the state is ERROR
    await c.launching.prepare(c.system.members)
    await launch_missing(c, act, keep=keep)


__all__ = [
    "Overtaken",
    "advance",
    "close_row",
    "go_on",
    "pause",
    "resume",
    "start",
    "stop",
    "try_to_hold",
    "undo",
]
