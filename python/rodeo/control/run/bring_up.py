"""Launches the missing processes of a system: at a launch, after a recovery, and between runs."""

import logging

from rodeo.control.refused import Refused
from rodeo.control.run.command_lock import Overtaken

LOG = logging.getLogger("rodeo.control")


async def launch_missing(c, act, *, wanted_before="ready", keep=()):
    """Launches all missing processes except `keep`. Returns {"launched": names, "without": {name: why}}."""
    names, without = [], {}
    try:
        for group in c.system.in_stop_order():
            todo = [
                member.name
                for member in group
                if c.observer.members[member.name].alive is False and member.name not in keep
            ]
            names += todo
            without.update(
                await _launch_group(c, act, [member.name for member in group if member.name not in keep], todo)
            )
            if broken := _broken(c, without):
                raise Refused(
                    "control.launch",
                    "; ".join(f"{name} {without[name]}" for name in broken),
                    f"rodeo control logs {broken[0]}",
                )
        if builds := _other_builds(c):
            raise Refused("control.build", builds, "make all builds equal, and launch again")
    except (Refused, Overtaken):
        await c.remember(
            wanted=wanted_before if wanted_before == "ready" and set(names) < set(c.observer.members) else "off"
        )
        left = await c.launching.end_at_once(act, names)
        left += await c.launching.forget(
            [name for name in names if name not in without]
        )  # keeps the exits of the others visible
        if left:
            LOG.warning("left over: %s", ", ".join(left))
        raise
    await c.keep_launched()
    return {"launched": names, "without": without}


async def _launch_group(c, act, members, todo):
    """Launches `todo` and waits for all of `members`. Returns {name: why} of members that are not ready."""
    without = {}
    for name in todo:
        try:
            await c.launching.launch(name)
        except Refused as refused:
            without[name] = refused.what
    without.update(await c.launching.ready(act, [name for name in members if name not in without]))
    return without


def _broken(c, without):
    """Returns the members in `without` whose class now has too few."""
    broken = []
    for one in c.system.classes:
        names = [member.name for member in one.members()]
        missing = [name for name in names if name in without]
        if len(names) - len(missing) < one.needed:
            broken += missing
    return broken


def _other_builds(c):
    """Returns a sentence if the processes have different builds, else an empty text."""
    by = {}
    for each in c.observer.members.values():
        if each.alive and each.process.get("build"):
            by.setdefault(each.process["build"], []).append(each.name)
    return (
        ""
        if len(by) < 2
        else "processes are of different builds: "
        + "; ".join(f"{build}: {', '.join(names[:5])}" for build, names in sorted(by.items()))
    )
